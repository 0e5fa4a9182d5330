"""What every backend checks and freezes in the same way, so that all of them accept and refuse the same records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite, isnan
from typing import Any, TypeVar

from palaver.errors import Conflict, InvalidInput, StoreDamaged, UnknownDialog
from palaver.ids import DialogId
from palaver.log import SOUGHT, Draft, Header, Node, Span, body_digest, next_header
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.store.protocol import SessionRecord, SourceRecord

SHORT_DIGITS = 12
"""Digits of a dialog's id that a printed handle shows; no two dialogs of a session share them (`palaver.log.handles`)."""

MIN_PREFIX_DIGITS = 6
"""The fewest digits by which a dialog may be named."""

CHANGEABLE = frozenset({"name", "subject", "workdir", "metadata", "root", "trashed_at"})
"""What `update_session` may change."""

_DIALOG_ID = re.compile(r"[0-9a-f]{32}\Z")
_DIGITS = re.compile(r"[0-9a-f]+\Z")
_INT64 = 1 << 63

Record = TypeVar("Record", SessionRecord, SourceRecord, Node)
Kept = TypeVar("Kept", dict[str, object], list[Any])


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def metadata_text(metadata: Mapping[str, object]) -> str:
    """Give metadata as JSON text, ASCII only, so that any string a program can hold survives.

    Raises:
        InvalidInput: It holds something that JSON cannot.
    """
    try:
        return json.dumps(dict(metadata), default=_plain, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"The metadata is no JSON object: {error}.") from error


def frozen_metadata(text: str) -> Mapping[str, object]:
    """Read metadata from its JSON text, read-only all the way down.

    Raises:
        StoreDamaged: It is no JSON object.
    """
    return EMPTY if text == "{}" else FrozenDict(_kept(text, dict, "metadata"))


def ids_in(text: str | None) -> tuple[str, ...]:
    """Read the list of ids in a header's column; None is an empty one.

    Raises:
        StoreDamaged: It is no JSON list.
    """
    return () if text is None else tuple(_kept(text, list, "a header's list of call ids"))


def spans_in(text: str) -> tuple[Span, ...]:
    """Read the ranges of a node.

    Raises:
        StoreDamaged: They are no list of ranges.
    """
    try:
        return tuple(Span(*span) for span in _kept(text, list, "the ranges of a dialog"))
    except TypeError as error:
        raise StoreDamaged("the ranges of a dialog", str(error)) from error


def _kept(text: str, kind: type[Kept], what: str) -> Kept:
    """Read JSON that this store wrote."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(what, f"it cannot be read ({error})") from error
    if not isinstance(found, kind):
        raise StoreDamaged(what, f"it holds {type(found).__name__} in place of {kind.__name__}")
    return found


def checked(record: Record) -> Record:
    """Give a record whose texts every backend can hold and whose metadata is frozen and shared with nobody.

    Raises:
        InvalidInput: A text holds a lone surrogate, a time is no number, or the metadata is no JSON object.
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
            raise InvalidInput(f"{name} {value!r} holds a lone surrogate, which no UTF-8 text can.") from error
    elif isinstance(value, float) and isnan(value):
        raise InvalidInput(f"{name} is no number.")
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidInput(f"{name} {value} is beyond 64 bits.")


def check_drafts(drafts: Sequence[Draft]) -> None:
    """Refuse drafts that no backend can hold.

    Raises:
        InvalidInput: A text holds a lone surrogate, or a time is no number.
    """
    for draft in drafts:
        plain = draft.kind.isascii() and draft.role.isascii() and draft.response.isascii()
        if not plain or not isfinite(draft.at):  # nearly never: an append pays for one glance
            for name in ("kind", "role", "response", "at"):
                _check_value(name, getattr(draft, name))


def appended(dialog_id: DialogId, last: Header, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
    """Give the headers of entries that belong to the turn, behind the newest one: the compare-and-swap of every store.

    Raises:
        Conflict: The turn head is another one.
        IllegalEntry: An entry may not stand there.
    """
    if last.turn_head != turn_head:
        raise Conflict(dialog_id, turn_head, last.turn_head)
    made = []
    for draft in drafts:
        last = next_header(draft, last)
        made.append(last)
    return tuple(made)


def check_taken(last: Header, entries: Sequence[tuple[Header, bytes]]) -> None:
    """Refuse entries of another store that do not follow what is here, or whose bodies are not those that their headers tell of.

    Raises:
        InvalidInput: There is such an entry.
    """
    for header, body in entries:
        if (header.seq, header.total, header.size) != (last.seq + 1, last.total + len(body), len(body)):
            raise InvalidInput(f"Entry {header.seq} does not follow entry {last.seq}.")
        if body_digest(body) != header.digest:
            raise InvalidInput(f"The body of entry {header.seq} is not the one that was written.")
        last = header


def check_changes(changes: Mapping[str, object]) -> None:
    """Refuse changes of a session's fields that may not change.

    Raises:
        InvalidInput: There is such a field.
    """
    wrong = sorted(changes.keys() - CHANGEABLE)
    if wrong:
        raise InvalidInput(
            f"A session's {', '.join(wrong)} may not change; these may: {', '.join(sorted(CHANGEABLE))}."
        )


def check_node(node: Node, length: Callable[[DialogId], int | None]) -> None:
    """Refuse a node that does not fit into its session's tree.

    Args:
        node: The node.
        length: Gives how many own entries a dialog of the same session holds, None when the session has no such dialog.

    Raises:
        UnknownDialog: The parent, or an ancestor named in the ranges, is not in this session.
        InvalidInput: The id is malformed, or a range is no range of what its ancestor holds.
    """
    if _DIALOG_ID.match(node.dialog_id) is None:
        raise InvalidInput(f"{node.dialog_id!r} is no dialog id: one has 32 hexadecimal digits, lower case.")
    if node.parent_id is not None and length(node.parent_id) is None:
        raise UnknownDialog(node.parent_id)
    for span in node.ranges:
        held = length(span.dialog)
        if held is None:
            raise UnknownDialog(span.dialog)
        if not 0 <= span.start <= span.stop <= held:
            raise InvalidInput(
                f"Dialog {span.dialog} holds {held} entries: {span.start} to {span.stop} is no range of them."
            )


def checked_prefix(prefix: str) -> str:
    """Give the first digits of a session's id, or refuse what are none.

    Raises:
        InvalidInput: They are fewer than six, or something else than hexadecimal digits in lower case.
    """
    if len(prefix) < MIN_PREFIX_DIGITS or _DIGITS.match(prefix) is None:
        raise InvalidInput(
            f"{prefix!r} are no first digits of a session: give at least {MIN_PREFIX_DIGITS}, 0 to 9 and a to f."
        )
    return prefix


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that names no dialog, whatever the store holds.

    Raises:
        InvalidInput: It has fewer than six digits.
        UnknownDialog: It holds something else than hexadecimal digits in lower case.
    """
    if len(prefix) < MIN_PREFIX_DIGITS:
        raise InvalidInput(f"{prefix!r} is too short to name a dialog: give at least {MIN_PREFIX_DIGITS} digits.")
    if _DIGITS.match(prefix) is None:
        raise UnknownDialog(prefix)


def check_sought(kind: str) -> None:
    """Refuse a kind of entry that is not looked for: no index finds it.

    Raises:
        InvalidInput: It is no such kind.
    """
    if kind not in SOUGHT:
        raise InvalidInput(
            f"Entries of the kind {kind!r} are not found by kind; those of {', '.join(sorted(SOUGHT))} are."
        )


def taken(node: Node) -> InvalidInput:
    """Give the error for a dialog id, or its printed digits, that the session already has."""
    return InvalidInput(
        f"Dialog {node.dialog_id}, or another with the digits {node.dialog_id[:SHORT_DIGITS]}, exists already."
    )
