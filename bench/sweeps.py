"""A sweep: for how long others wait while it is proven that nothing names a payload, against a proof that reads the whole store meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from bench.measure import Row, compared, in_turn, text
from palaver import Session, UserMessage
from palaver.ids import BlobId, DialogId
from palaver.log import MessageEntry, draft
from palaver.store import open_store
from palaver.store.erasing import Erasing, Mark
from tests import postgres

_ENTRIES = 100_000
_A_DIALOG = 500
_SIZE = 2_000
_PAYLOADS = 1_000
_MEANWHILE = 100
_ROUNDS = 7


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Look for a thousand payloads in a store of two hundred megabytes, in which a hundred entries were written since the first look began."""
    entries = _ENTRIES // 10 if quick else _ENTRIES
    rows = list(_measured("SQLite", str(folder / "store.db"), entries))
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None or find_spec("psycopg") is None:
        return [*rows, Row("a sweep of PostgreSQL", f"not measured: {reason or 'psycopg is not installed'}")]
    with postgres.server(programs, on_disk=True, shared_buffers="128MB") as server:
        return [*rows, *_measured("PostgreSQL", server.url(), entries)]


def _measured(name: str, url: str, entries: int) -> Iterator[Row]:
    with closing(open_store(url)) as store:
        assert isinstance(store, Erasing)
        payloads = [store.put_blob(b"%d" % number) for number in range(_PAYLOADS)]
        session = Session.create(store, "long")
        for start in range(0, entries, _A_DIALOG):
            dialog = session.new_dialog("assistant").dialog_id
            _say(store, dialog, range(start, start + _A_DIALOG))
        looked = store.unnamed(payloads, 0.0)
        _say(store, session.root.dialog_id, range(_MEANWHILE))
        now, before = in_turn(
            partial(_locked, store, payloads, looked.mark), partial(_locked, store, payloads, None), _ROUNDS
        )
    what = f"{name}: how long others wait for a sweep, {entries:,} entries, {entries * _SIZE >> 20:,} MB; if all were read then"
    yield compared(what, now, before, "≤ 0.1")


def _say(store: Erasing, dialog: DialogId, numbers: range) -> None:
    said = [draft(MessageEntry(message=UserMessage.text(text(_SIZE, number))))[0] for number in numbers]
    store.append(dialog, said, store.last(dialog).turn_head)


def _locked(store: Erasing, payloads: Sequence[BlobId], since: Mark | None, _number: int) -> None:
    """Do what a sweep does while others wait; remove nothing, so that it can be done again."""
    with store.erasing() as eraser:
        assert len(eraser.unnamed(payloads, 0.0, since)) == len(payloads)
