"""Secrets: what a redactor removes from a session, to be reviewed before anything is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import TypedDict

from palaver.ids import SessionId
from palaver.log import Handle
from palaver.log.redaction import Redacted, Redactor, redact_body, redact_json
from palaver.store import Store


class SecretRow(TypedDict):
    """A secret: the entry where it is, or for names and metadata the session; its kind, how it begins, and how often it is there."""

    place: str
    kind: str
    beginning: str
    count: int


def secrets(store: Store, session_id: SessionId, redactor: Redactor) -> Iterator[SecretRow]:
    """Yield what a redactor removes from a session."""
    noting, record, nodes = _Noting(redactor), store.session(session_id), store.nodes(session_id)
    paths = [source.path for source in store.sources(session_id)]
    redact_json([record.name, record.workdir, record.metadata, *paths, *(node.metadata for node in nodes)], noting)
    yield from noting.rows(session_id)
    for node in nodes:
        for seq, body in store.bodies(node.dialog_id, 0, store.last(node.dialog_id).seq + 1):
            redact_body(body, noting)
            yield from noting.rows(str(Handle(node.dialog_id, seq)))


class _Noting:
    """A redactor that keeps a note of what another one found."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._noted: Counter[tuple[str, str]] = Counter()

    def redact(self, text: str, name: str = "") -> Redacted:
        done = self._redactor.redact(text, name)
        self._noted.update(zip_longest(done.found, done.beginnings[: len(done.found)], fillvalue=""))
        return done

    def rows(self, place: str) -> Iterator[SecretRow]:
        """Yield what was noted since the last time, as found at a place."""
        for (kind, beginning), count in self._noted.items():
            yield {"place": place, "kind": kind, "beginning": beginning, "count": count}
        self._noted.clear()
