"""Scope: a part of a store to be read, the sessions of a subject or a folder, without secrets. Whatever else is in the store is as if it were not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, cast

from palaver.errors import Ambiguous, NotFound, StoreError
from palaver.ids import DialogId, SessionId
from palaver.log import Header, Node
from palaver.log.redaction import Redactor, redact_body, redact_json
from palaver.session import searchable
from palaver.store import SessionRecord, Store
from palaver.store.protocol import Hit
from palaver.store.text import fold, words

_OF_A_DIALOG = frozenset({"last", "header", "headers", "latest_of_kind", "verify"})
_OF_A_SESSION = frozenset({"blob", "has_blob", "sources"})
_OF_NONE = frozenset(
    {"durability", "capabilities", "url", "remote", "transaction", "in_transaction", "index_lag", "close"}
)
_MOST = 10_000
"""Ids that begin alike, among which those of the scope are looked for."""
_SNIPPET = 160


class ScopedStore:
    """Passes reads to another store: of the sessions in scope, with their texts as a redactor leaves them. It writes nothing.

    Media are passed as they are: a redactor reads texts.

    Attributes:
        inner: The store.
        folders: Spellings of the folder in, or below, which the sessions worked; empty for any.
        subject: Whose data they are; None for anybody's.
        redactor: What finds secrets; None to pass texts as they were recorded.
    """

    def __init__(
        self, inner: Store, *, folder: Path | None = None, subject: str | None = None, redactor: Redactor | None = None
    ) -> None:
        self.inner = inner
        self.folders = () if folder is None else (folder.expanduser().absolute(), folder.expanduser().resolve())
        self.subject = subject
        self.redactor = redactor

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a store has
        """Pass what reads to the store, where what it names is in scope.

        Raises:
            StoreError: It does not read.
        """
        if name in _OF_NONE:
            return getattr(self.inner, name)
        check: Callable[[Any], object] | None = (
            self.node if name in _OF_A_DIALOG else self.session if name in _OF_A_SESSION else None
        )
        if check is None:
            raise StoreError(f"`{name}`: this part of a store may only be read.", reason="read_only")

        def passed(place: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - the store's own arguments
            check(place)
            return getattr(self.inner, name)(place, *args, **options)

        return passed

    # --- sessions ---------------------------------------------------------------------------------------------------------------------

    def session(self, session_id: SessionId) -> SessionRecord:
        """Return a session."""
        record = self.inner.session(session_id)
        if not self._within(record):
            raise NotFound(session_id, what="session")
        return self._clean(record)

    def sessions(
        self,
        *,
        limit: int | None = None,
        subject: str | None = None,
        **options: Any,  # noqa: ANN401 - the store's
    ) -> Iterator[SessionRecord]:
        """Return sessions, newest activity first."""
        every = self.inner.sessions(subject=self.subject if subject is None else subject, **options)
        return islice((self._clean(record) for record in every if self._within(record)), limit)

    def sessions_beginning(self, prefix: str, limit: int = 2) -> tuple[SessionId, ...]:
        """Return ids that begin with some digits."""
        every = self.inner.sessions_beginning(prefix, _MOST)
        return tuple(islice((name for name in every if self._shows(name)), limit))

    def _within(self, record: SessionRecord) -> bool:
        there = PurePath(record.workdir)
        return (self.subject is None or record.subject == self.subject) and (
            not self.folders or any(there.is_relative_to(folder) for folder in self.folders)
        )

    def _shows(self, session_id: SessionId) -> bool:
        return self._within(self.inner.session(session_id))

    def _clean(self, record: SessionRecord) -> SessionRecord:
        if self.redactor is None:
            return record
        name, workdir = (self.redactor.redact(text).text for text in (record.name, record.workdir))
        return replace(record, name=name, workdir=workdir, metadata=self._data(record.metadata))

    def _data(self, metadata: Mapping[str, object]) -> Mapping[str, object]:
        return metadata if self.redactor is None else cast("Mapping[str, object]", redact_json(metadata, self.redactor))

    # --- the tree ---------------------------------------------------------------------------------------------------------------------

    def node(self, dialog_id: DialogId) -> Node:
        """Return a dialog's node."""
        node = self.inner.node(dialog_id)
        if not self._shows(node.session_id):
            raise NotFound(dialog_id, what="dialog")
        return self._node(node)

    def nodes(self, session_id: SessionId, after: int = -1) -> tuple[Node, ...]:
        """Return the dialogs of a session."""
        self.session(session_id)
        return tuple(map(self._node, self.inner.nodes(session_id, after)))

    def root(self, session_id: SessionId) -> tuple[Node, tuple[tuple[Header, bytes], ...]] | None:
        """Return the dialog to continue with, and its tail."""
        self.session(session_id)
        if (root := self.inner.root(session_id)) is None:
            return None
        node, tail = root
        return self._node(node), tuple((header, self._body(body)) for header, body in tail)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Return the one dialog whose id begins with some digits."""
        try:
            named = [self.inner.resolve(prefix, session_id)]
        except Ambiguous as error:
            named = [DialogId(name) for name in error.candidates]
        within = [name for name in named if self._shows(self.inner.node(name).session_id)]
        if len(within) > 1:
            raise Ambiguous(prefix, within)
        if not within:
            raise NotFound(prefix, what="dialog")
        return within[0]

    def _node(self, node: Node) -> Node:
        return replace(node, metadata=self._data(node.metadata))

    # --- entries ----------------------------------------------------------------------------------------------------------------------

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Return one body."""
        self.node(dialog_id)
        return self._body(self.inner.body(dialog_id, seq))

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies of own entries."""
        self.node(dialog_id)
        return ((seq, self._body(body)) for seq, body in self.inner.bodies(dialog_id, start, stop))

    def tail(self, dialog_id: DialogId, start: int = 0) -> tuple[tuple[Header, bytes], ...]:
        """Return the newest own entries."""
        self.node(dialog_id)
        return tuple((header, self._body(body)) for header, body in self.inner.tail(dialog_id, start))

    def _body(self, body: bytes) -> bytes:
        return body if self.redactor is None else redact_body(body, self.redactor)

    # --- search -----------------------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        limit: int = 20,
        which: Callable[[Hit], bool] | None = None,
        **options: Any,  # noqa: ANN401 - the store's
    ) -> tuple[Hit, ...]:
        """Return the hits in scope. The words of a secret find nothing."""
        shows = cache(self._shows)

        def chooses(hit: Hit) -> bool:
            return shows(hit.session_id) and (which is None or which(hit))

        hits = self.inner.search(query, limit=limit, which=chooses, **options)
        return tuple(clean for hit in hits if (clean := self._hit(hit, query)))

    def _hit(self, hit: Hit, query: str) -> Hit | None:
        """Return a hit whose snippet is taken after its entry was redacted: half of a secret is not recognized as one."""
        body = self.inner.body(hit.handle.dialog, hit.handle.seq)
        clean = self._body(body)
        if clean == body:
            return hit
        text = searchable(hit.kind, clean)
        folded = fold(text)
        places = [folded.find(word) for word in words(query.replace('"', " ")) if word in folded]
        start = max(min(places, default=0) - _SNIPPET // 4, 0)
        return replace(hit, snippet=text[start : start + _SNIPPET]) if places else None


def scoped(
    store: Store, *, folder: Path | None = None, subject: str | None = None, redactor: Redactor | None = None
) -> Store:
    """Return a part of a store, which may only be read."""
    return cast("Store", ScopedStore(store, folder=folder, subject=subject, redactor=redactor))
