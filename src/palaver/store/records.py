"""What every store checks and freezes in the same way, so that all accept and refuse the same records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite, isnan
from typing import Any, TypeVar

from palaver.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    StoreDamaged,
    StoreError,
)
from palaver.ids import BlobId, DialogId
from palaver.log import (
    KINDS,
    Draft,
    Handle,
    Header,
    Inbox,
    LateResult,
    MessageEntry,
    Node,
    Span,
    body_digest,
    decode_entry,
    draft_of,
    next_header,
    rule,
)
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.messages.message import media_of
from palaver.store.protocol import SessionRecord, SourceRecord

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
_INT64 = 1 << 63

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
        _check_value(field.name, getattr(record, field.name))
    if isinstance(record, SourceRecord):
        return record
    return replace(record, metadata=frozen_metadata(metadata_text(record.metadata)))


def _check_value(name: str, value: object) -> None:
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{name} {value!r} holds a lone surrogate, which UTF-8 cannot encode.") from error
    elif isinstance(value, float) and isnan(value):
        raise InvalidInput(f"{name} is not a number.")
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidInput(f"{name} {value} does not fit into 64 bits.")


def check_drafts(drafts: Sequence[Draft]) -> None:
    """Refuse drafts that a store cannot keep.

    Raises:
        InvalidInput: A text has a lone surrogate, or a time is not a number.
    """
    for draft in drafts:
        plain = draft.kind.isascii() and draft.role.isascii() and draft.response.isascii()
        if not plain or not isfinite(draft.at):  # rare: an append pays for one glance
            for name in ("kind", "role", "response", "at"):
                _check_value(name, getattr(draft, name))


def appended(dialog_id: DialogId, last: Header, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
    """Return the headers of entries that follow the newest one: the compare-and-swap of every store.

    Raises:
        Conflict: The turn head is another one.
        InvalidInput: An entry may not come there.
    """
    if last.turn_head != turn_head:
        raise Conflict(dialog_id, turn_head, last.turn_head)
    made = []
    for draft in drafts:
        last = next_header(draft, last)
        made.append(last)
    return tuple(made)


def check_taken(last: Header, entries: Sequence[tuple[Header, bytes]]) -> tuple[Header, ...]:
    """Return the headers of entries of another store; refuse what does not follow what is here, and bodies that do not match their headers.

    Raises:
        InvalidInput: There is such an entry.
    """
    for header, body in entries:
        if (header.seq, header.total, header.size) != (last.seq + 1, last.total + len(body), len(body)):
            raise InvalidInput(f"Entry {header.seq} does not follow entry {last.seq}.")
        if body_digest(body) != header.digest:
            raise InvalidInput(f"The body of entry {header.seq} does not match its digest.")
        last = header
    return tuple(header for header, _body in entries)


def check_changes(changes: Mapping[str, object]) -> None:
    """Refuse changes of a session's fields that may not change."""
    wrong = sorted(changes.keys() - CHANGEABLE)
    if wrong:
        raise InvalidInput(f"A session's {', '.join(wrong)} cannot change; these can: {', '.join(sorted(CHANGEABLE))}.")


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


# --- headers ----------------------------------------------------------------------------------------------------------------------


def require_written(place: Handle, body: object, digest: object, is_whole: Callable[[bytes], bool]) -> bytes:
    """Return a body that is what was written.

    Args:
        place: Its entry.
        body: What the store returns; None when it is lost.
        digest: The digest in its header.
        is_whole: Returns whether the header with another digest is what was written. Asked only where the digest differs: the header's checksum says
            which of both is damaged.

    Raises:
        StoreDamaged: The body is lost, or other bytes than were written.
    """
    if not isinstance(body, bytes):
        raise StoreDamaged(str(place), "its header is there, its body is not")
    if (made := body_digest(body)) != digest and not is_whole(made):
        raise StoreDamaged(str(place), "its body does not match the digest in its header")
    return body


def derived_header(header: Header, body: bytes, last: Header) -> Header:
    """Return the header that follows from a body and the header before it. Of an unknown kind, only what every kind has.

    Raises:
        InvalidInput: The body is not an entry.
    """
    entry = decode_entry(body)
    general: dict[str, Any] = {
        "size": len(body),
        "total": last.total + len(body),
        "digest": body_digest(body),
        "seq": last.seq + 1,
    }
    if entry.kind not in KINDS or entry.kind == "tombstone":
        return header._replace(**general)
    law = rule(entry.kind)
    turn = header.turn_head == header.seq if law.turn and law.beside else law.turn
    made = next_header(draft_of(entry, body), last, turn=turn, judged=False)
    return made if entry.erased is None else made._replace(**_shape(header))


def _shape(header: Header) -> dict[str, Any]:
    """Return the fields after the digest: an erasure keeps them."""
    return dict(zip(Header._fields[14:], header[14:], strict=True))


# --- what entries name ------------------------------------------------------------------------------------------------------------

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def references(body: bytes) -> frozenset[BlobId]:
    """Return the payloads that an entry names: what is spelt like an id, where media or the maker of a custom entry may have put one."""
    if b'"digest"' not in body and b'"custom_type"' not in body:
        return frozenset()
    return frozenset(BlobId(found.decode()) for found in _DIGEST.findall(body))


def media_in(body: bytes) -> Iterator[BlobId]:
    """Yield the payloads of the media in an entry.

    Raises:
        InvalidInput: The body is not an entry.
    """
    if b'"digest"' not in body:  # most entries name no payload, and need not be decoded
        return
    entry = decode_entry(body)
    for media in media_of(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else ():
        if media.url is None:
            yield BlobId(media.digest)


def listed(listing: bytes) -> frozenset[BlobId]:
    """Return the payloads that the list of a kept file's pieces names."""
    return frozenset(BlobId(found.decode()) for found in _DIGEST.findall(listing))


# --- errors -----------------------------------------------------------------------------------------------------------------------


def unknown(what: str, name: str) -> NotFound:
    """Return the error for a session, dialog, handle or blob that is not there."""
    return NotFound(name, what=what)


def closed(place: str) -> StoreError:
    """Return the error for a store that was closed."""
    return StoreError(f"The store {place} was closed.", reason="closed", hint="Open it again.")
