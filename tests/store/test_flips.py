"""Bits that were flipped in the headers of a file: whatever reads or writes then works, or raises an error of palaver's own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import apsw
import pytest

from palaver import Dialog, Session
from palaver.errors import PalaverError
from palaver.log import Handle, Instructions, Label, Place, Section, UnknownEntry, draft
from palaver.store import SqliteStore, Store, verify_store
from palaver.testing.logs import model, result, user
from palaver.transcripts.doctor import examine

_CELLS = struct.Struct(">xxxHHx")
_COLUMNS = (
    20  # bytes that say of which kind a row's columns are (https://www.sqlite.org/fileformat2.html#record_format)
)


class Sound(NamedTuple):
    """A file with a session in which everything is whole.

    Attributes:
        content: Its bytes.
        session: The session's id.
        rows: Where each row of the headers begins.
        page: Where the page ends.
    """

    content: bytes
    session: str
    rows: list[int]
    page: int


def written(path: Path) -> str:
    """Write a session of every kind of header: calls, results, instructions, a label, an unknown kind, a tombstone, a compaction, forks."""
    store = SqliteStore(path)
    with closing(store), Session.create(store=store) as session:
        dialog = session.root
        for at in range(4):
            dialog.append([user(f"question {at}"), model("I look", f"call{at}", response=f"r{at}")])
            dialog.append([result(f"call{at}"), model(f"answer {at}")])
        dialog.put_text("a secret")
        erased = Handle(dialog.dialog_id, store.last(dialog.dialog_id).seq)
        dialog.compaction.preview("fold", 150, model="gpt-4o").approve()
        place = dialog.dialog_id
        rules = Instructions(sections=(Section(name="a", text="Be brief."),))
        store.append(place, [draft(rules)[0]], store.last(place).turn_head)
        store.annotate(place, draft(Label(target=Place(dialog=place, seq=0), label="first"))[0])
        store.annotate(place, draft(UnknownEntry.model_validate({"kind": "later", "x": 1}))[0])
        session.erase(entries=[erased])
    with closing(SqliteStore(path)) as again, Session.open(again, session.session_id) as session:
        session.root.put_text("and on")
        session.root.fork().put_text("on a fork")
        session.root.fork(last_n=2).put_text("on a window")
        return session.session_id


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    """Return such a file, in which one page has all headers."""
    path = tmp_path_factory.mktemp("sound") / "sound.db"
    session = written(path)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'headers'").get
        size = connection.execute("PRAGMA page_size").get
    assert isinstance(root, int)
    assert isinstance(size, int)
    content = path.read_bytes()
    page = (root - 1) * size
    assert content[page] == 10, "a leaf of a table without row ids"
    count, _ = _CELLS.unpack_from(content, page)
    rows = [page + at for (at,) in struct.iter_unpack(">H", content[page + 8 : page + 8 + 2 * count])]
    return Sound(content, session, rows, page + size)


def uses(store: Store, session_id: str) -> Iterator[Callable[[], object]]:
    """Yield what a program does with a session."""
    session = Session.open(store, session_id)
    nodes = store.nodes(session.session_id)
    yield from uses_of_dialog(session.dialog(nodes[0].dialog_id))
    yield from uses_of_dialog(session.dialog(nodes[-1].dialog_id))
    yield lambda: session.recall(Handle(nodes[0].dialog_id, 1))
    yield lambda: list(islice(verify_store(store, session.session_id), 1_000))
    yield lambda: examine(store, session.session_id)


def uses_of_dialog(dialog: Dialog) -> Iterator[Callable[[], object]]:
    """Yield what a program does with a dialog."""
    yield lambda: list(dialog.messages)
    yield lambda: dialog.view().messages
    yield lambda: dialog.request("anthropic", "claude-sonnet-4-5")
    yield lambda: dialog.compaction.preview("fold", 200, model="gpt-4o")
    yield lambda: dialog.fork(last_n=2, first_k=1)
    yield lambda: dialog.put_text("next")
    yield lambda: list(islice(dialog.store.headers(dialog.dialog_id, reverse=True), 1_000))


def used(path: Path, session_id: str) -> None:
    """Do all of it; an error of palaver's own ends one use, and opening ends all."""
    with suppress(PalaverError), closing(SqliteStore(path)) as store:
        for use in uses(store, session_id):
            with suppress(PalaverError):
                use()


@pytest.mark.parametrize("number", [40, pytest.param(3_000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_flipped_header_raises_no_foreign_error(sound: Sound, quick_path: Path, number: int) -> None:
    """D20: any bit of a header, and of what says of which kind its columns are, also of the newest: an error that says the store is damaged, or none."""
    random = Random(25)  # noqa: S311 - the same bits every time
    anywhere = [(random.randrange(min(sound.rows), sound.page), random.randrange(8)) for _ in range(number)]
    kinds = [[(row + 2 + at, bit) for at in range(_COLUMNS) for bit in range(8)] for row in sound.rows]
    sampled = random.sample([each for row in kinds for each in row], number // 2)
    for place, bit in (*anywhere, *sampled, *kinds[-1][8:40]):  # of the newest, the numbers of dialog and entry, too
        changed = sound.content[:place] + bytes([sound.content[place] ^ (1 << bit)]) + sound.content[place + 1 :]
        (path := quick_path / "damaged.db").write_bytes(changed)
        try:
            used(path, sound.session)
        except Exception as error:
            raise AssertionError(f"bit {bit} of byte {place}") from error
        for file in quick_path.iterdir():
            file.unlink()
