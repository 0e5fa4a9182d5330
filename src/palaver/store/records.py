"""What every store checks and freezes in the same way, so that all accept and refuse the same records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from palaver.errors import Conflict, InvalidInput, NotFound, StoreDamaged, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header, Node, Span, require_storable
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.store.protocol import TAIL_BYTES, TAIL_ENTRIES, SessionRecord, SourceRecord, Store

SHORT_DIGITS = 12
"""Digits of a dialog's id that a printed handle shows; no two dialogs of a session share them (`palaver.log.handles`)."""

MIN_PREFIX_DIGITS = 6
"""The fewest digits that name a dialog or session."""

CHANGEABLE = frozenset({"name", "subject", "workdir", "metadata", "root", "trashed_at"})
"""What `update_session` may change."""

UNLISTED = frozenset({"message", "call_started"})
"""Kinds that `latest_of_kind` does not list. The partial indexes of the stores leave them out."""

_DIALOG_ID = re.compile(r"[0-9a-f]{32}\Z")
_DIGITS = re.compile(r"[0-9a-f]+\Z")
_SESSION_DIGITS = 4

Record = TypeVar("Record", SessionRecord, SourceRecord, Node)
Json = TypeVar("Json", dict[str, object], list[Any])


# --- JSON columns ---------------------------------------------------------------------------------------------------------------


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def metadata_text(metadata: Mapping[str, object]) -> str:
    """Return metadata as JSON text, ASCII only, so that every string survives.

    Raises:
        InvalidInput: It contains something that is not JSON.
    """
    try:
        return json.dumps(dict(metadata), default=_plain, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The metadata is not a JSON object: {error}.") from error


def frozen_metadata(text: str) -> Mapping[str, object]:
    """Read metadata from its JSON text, read-only all the way down."""
    return EMPTY if text == "{}" else FrozenDict(stored_json(text, dict, "metadata"))


def stored_json(text: str, kind: type[Json], what: str) -> Json:
    """Read a JSON column.

    Raises:
        StoreDamaged: It is not JSON of its kind.
    """
    try:
        stored = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(what, f"it cannot be read ({error})") from error
    if not isinstance(stored, kind):
        raise StoreDamaged(what, f"it holds {type(stored).__name__} instead of {kind.__name__}")
    return stored


# --- checks of what is written ----------------------------------------------------------------------------------------------------


def checked(record: Record) -> Record:
    """Return a record whose texts every store can keep and whose metadata is frozen and shared with nobody.

    Raises:
        InvalidInput: A text has a lone surrogate, a time is not a number, or the metadata is not a JSON object.
    """
    for field in fields(record):
        require_storable(field.name, getattr(record, field.name))
    if isinstance(record, SourceRecord):
        return record
    return replace(record, metadata=frozen_metadata(metadata_text(record.metadata)))


def check_changes(changes: Mapping[str, object]) -> None:
    """Refuse changes of a session's fields that may not change."""
    wrong = sorted(changes.keys() - CHANGEABLE)
    if wrong:
        raise InvalidInput(f"A session's {', '.join(wrong)} cannot change; these can: {', '.join(sorted(CHANGEABLE))}.")


def within_tail(rows: Sequence[tuple[Header, bytes]]) -> Sequence[tuple[Header, bytes]]:
    """Return those of the newest entries that a tail has (`Store.tail`)."""
    first, last = max(0, len(rows) - TAIL_ENTRIES), len(rows) - 1
    while first < last and rows[first][0].total - rows[first][0].size < rows[last][0].total - TAIL_BYTES:
        first += 1
    return rows[first:] if first else rows


def moved_on(dialog_id: DialogId, known: Header, newest: Header) -> Conflict:
    """Return the error for a header that is not the newest of its dialog any more."""
    why = f"Entry {known.seq} is not the newest of dialog {dialog_id}, as it was. Nothing was written."
    return Conflict(dialog_id, known.seq, newest.seq, why=why)


def check_kinds(kinds: str | Collection[str]) -> frozenset[str]:
    """Return kinds that `latest_of_kind` can list.

    Raises:
        InvalidInput: One of them is not listed.
    """
    named = frozenset([kinds] if isinstance(kinds, str) else kinds)
    if wrong := named & UNLISTED:
        raise InvalidInput(f"Entries of kind {', '.join(sorted(wrong))} are not listed by kind: read the headers.")
    return named


def check_prefix(prefix: str) -> str:
    """Return the first digits of an id.

    Raises:
        InvalidInput: They are fewer than six, or not lower-case hexadecimal.
    """
    if len(prefix) < MIN_PREFIX_DIGITS or _DIGITS.match(prefix) is None:
        raise InvalidInput(
            f"{prefix!r} does not begin an id: give at least {MIN_PREFIX_DIGITS} of the digits 0 to 9 and a to f."
        )
    return prefix


def check_dialog_prefix(prefix: str) -> str:
    """Return the first digits of a dialog's id.

    Raises:
        InvalidInput: They are fewer than six.
        NotFound: They are not lower-case hexadecimal: no dialog has such an id.
    """
    if len(prefix) < MIN_PREFIX_DIGITS:
        raise InvalidInput(f"{prefix!r} is too short to name a dialog: give at least {MIN_PREFIX_DIGITS} digits.")
    if _DIGITS.match(prefix) is None:
        raise unknown("dialog", prefix)
    return prefix


# --- the tree ---------------------------------------------------------------------------------------------------------------------


def check_node(
    node: Node, parent: Sequence[Span] | None, length: Callable[[DialogId], int | None], *, taken: bool
) -> int:
    """Refuse a node that does not fit into its session's tree, and return how many of its first ranges are those of its parent.

    Those need no check and are stored once, with the parent: so a chain of forks costs each fork only what is new in it.

    Args:
        node: The node.
        parent: The ranges of its parent; None without a parent.
        length: Returns how many own entries a dialog of the same session has, None when the session has no such dialog.
        taken: Whether the session has a dialog with this id, or with its first digits.

    Raises:
        NotFound: An ancestor named in the ranges is not in this session.
        InvalidInput: The id is malformed or in use, or a range is outside its ancestor's entries.
    """
    if _DIALOG_ID.match(node.dialog_id) is None or node.dialog_id[-_SESSION_DIGITS:] != node.session_id[-4:]:
        raise InvalidInput(
            f"{node.dialog_id!r} cannot be a dialog of session {node.session_id}.",
            hint="An id has 32 lower-case hexadecimal digits and ends in the last four of its session's: new_dialog_id(session_id).",
        )
    if taken:
        raise InvalidInput(f"A dialog with the id {node.dialog_id}, or its first {SHORT_DIGITS} digits, exists.")
    shared = 0
    for ours, theirs in zip(node.ranges, parent or (), strict=False):
        if ours != theirs:
            break
        shared += 1
    for span in node.ranges[shared:]:
        held = length(span.dialog)
        if held is None:
            raise unknown("dialog", span.dialog)
        if not 0 <= span.start <= span.stop <= held:
            raise InvalidInput(f"Dialog {span.dialog} holds {held} entries: {span.start} to {span.stop} is outside.")
    return shared


# --- errors -----------------------------------------------------------------------------------------------------------------------


def unknown(what: str, name: str) -> NotFound:
    """Return the error for a session, dialog, handle or blob that is not there."""
    return NotFound(name, what=what)


def closed(place: str) -> StoreError:
    """Return the error for a store that was closed."""
    return StoreError(f"The store {place} was closed.", reason="closed", hint="Open it again.")


def payloads_of(store: Store, session_id: SessionId) -> Callable[[str], bytes]:
    """Return what loads the payloads of a session by their ids."""
    return lambda digest: store.blob(session_id, BlobId(digest))
