"""A store that redacts what is written before it is durable: every writer goes through this one gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Entry, Header, Inbox, LateResult, MessageEntry, Node, decode_entry, draft
from palaver.log.redaction import PatternRedactor, Redactor, redact_body, redact_json
from palaver.messages import hydrate
from palaver.store.protocol import SessionRecord, Store

_Entry = TypeVar("_Entry", bound=Entry)


RedactLike: TypeAlias = Redactor | bool
"""A redactor, True for one that knows the usual keys and tokens, False for none."""


class RedactingStore:
    """Passes everything to another store; entries, names and metadata without the secrets that a redactor finds in them.

    Reading returns what was written. Entries copied from another store (`take_entries`) stay as they are.

    Attributes:
        inner: The store.
        redactor: The redactor.
    """

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self.inner = store
        self.redactor = redactor

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.inner, name)

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append entries without their secrets."""
        return self.inner.append(dialog_id, [self._clean(one) for one in drafts], turn_head, last)

    def annotate(self, dialog_id: DialogId, draft: Draft, last: Header | None = None) -> Header:
        """Append an entry without its secrets outside the turn."""
        return self.inner.annotate(dialog_id, self._clean(draft), last)

    def create_session(self, record: SessionRecord, root: Node | None = None) -> None:
        """Write a session without the secrets in its name, working folder and metadata."""
        clean = self._fields({"name": record.name, "workdir": record.workdir, "metadata": record.metadata})
        self.inner.create_session(replace(record, **clean), None if root is None else self._node(root))

    def update_session(self, session_id: SessionId, **changes: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
        """Change a session without writing secrets."""
        return self.inner.update_session(session_id, **changes | self._fields(changes))

    def create_dialog(self, node: Node) -> Node:
        """Write a node without the secrets in its metadata."""
        return self.inner.create_dialog(self._node(node))

    def stored(self, entry: _Entry) -> _Entry:
        """Return an entry as it will be written."""
        return redacted_entry(entry, self.redactor)

    def _clean(self, one: Draft) -> Draft:
        return one._replace(body=redact_body(bytes(one.body), self.redactor))

    def _node(self, node: Node) -> Node:
        return replace(node, **self._fields({"metadata": node.metadata}))

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a session that may have secrets, without them. The store refuses values of other types."""
        texts = {name: fields[name] for name in ("name", "workdir") if isinstance(fields.get(name), str)}
        clean = {name: self.redactor.redact(text).text for name, text in texts.items()}
        if isinstance(fields.get("metadata"), Mapping):
            clean["metadata"] = redact_json(fields["metadata"], self.redactor)
        return clean


def redactor_of(redact: RedactLike) -> Redactor | None:
    """Return the redactor that was asked for, or None."""
    if isinstance(redact, bool):
        return PatternRedactor() if redact else None
    return redact


def redacting(store: Store, redact: RedactLike) -> Store:
    """Return a store that redacts what is written through it; the same one without a redactor, and where it has this one already."""
    redactor = redactor_of(redact)
    if redactor is None or (isinstance(store, RedactingStore) and store.redactor is redactor):
        return store
    return cast("Store", RedactingStore(store, redactor))


def redacted_entry(entry: _Entry, redactor: Redactor) -> _Entry:
    """Return an entry without its secrets and with its media in memory; the same object if there are no secrets."""
    ready, blobs = draft(entry)
    body = redact_body(ready.body, redactor)
    if body == ready.body:
        return entry
    made = decode_entry(body)
    if isinstance(made, MessageEntry | Inbox | LateResult):
        message = hydrate(made.message, lambda digest: blobs[BlobId(digest)]) if blobs else made.message
        made = made.model_copy(update={"message": message})
    return cast("_Entry", made)
