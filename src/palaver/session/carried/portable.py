"""Dialogs as JSON: the one form in which `to_dict` and replay logs carry them, and the way back into a store.

A dialog is carried as its node and its entries; an entry is carried whole, with the two things that its bytes do not say: whether it
belonged to a turn, and whether it began a message. Payloads of media go beside the entries that name them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Inbox, LateResult, MessageEntry, Node, Reader, Span, decode_entry, draft
from palaver.messages import canonical_json, media_of, thaw
from palaver.store.protocol import SessionRecord

__all__ = [
    "Carried",
    "Line",
    "blobs_of",
    "drafted",
    "line_from_dict",
    "lines",
    "node_from_dict",
    "node_to_dict",
    "payload_from_text",
    "payload_to_text",
    "session_from_dict",
    "session_to_dict",
]

_STORE_DECIDES = frozenset({"order"})
_SESSION_FIELDS = ("session_id", "name", "subject", "workdir", "created_at", "root", "metadata")


class Line(NamedTuple):
    """An entry as it is carried.

    Attributes:
        seq: Its number in its dialog.
        turn: Whether it belonged to a turn.
        counts: 1 when it began a message, else 0.
        body: Its canonical bytes.
        number: How many messages its dialog's own entries hold up to and including it, or -1 where that is not told.
    """

    seq: int
    turn: bool
    counts: int
    body: bytes
    number: int = -1

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values."""
        return {"seq": self.seq, "turn": self.turn, "counts": self.counts, "entry": json.loads(self.body)}


@dataclass(slots=True)
class Carried:
    """A dialog on its way from one place to another.

    Attributes:
        node: Its node.
        lines: Its own entries, in order.
        payloads: The bytes of the media that they name.
        gaps: Whether some of its entries only stand for what was lost: what follows them was judged where it was first written.
    """

    node: Node
    lines: list[Line] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    gaps: bool = False


def line_from_dict(carried: Mapping[str, Any]) -> Line:
    """Read what `Line.to_dict` gave.

    Raises:
        InvalidInput: It is no carried entry.
    """
    try:
        seq, turn, counts = int(carried["seq"]), bool(carried["turn"]), int(carried["counts"])
        return Line(seq, turn, counts, canonical_json(carried["entry"]), int(carried.get("number", -1)))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"This is no carried entry: {error!r}.") from error


def drafted(line: Line) -> Draft:
    """Make a carried entry ready to be stored, byte for byte."""
    ready, _ = draft(decode_entry(line.body))
    return ready._replace(counts=line.counts, body=line.body)


def lines(reader: Reader, dialog: DialogId, start: int, stop: int) -> Iterator[Line]:
    """Give a dialog's own entries from `start` (inclusive) to `stop` (exclusive)."""
    number = reader.header(dialog, start - 1).number if start else 0
    for header, (seq, body) in zip(
        reader.headers(dialog, start, stop), reader.bodies(dialog, start, stop), strict=True
    ):
        yield Line(seq, header.turn_head == seq, header.number - number, body, header.number)
        number = header.number


def blobs_of(body: bytes) -> Iterator[BlobId]:
    """Give the payloads that an entry names."""
    entry = decode_entry(body)
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        for media in media_of(entry.message):
            if media.digest:
                yield BlobId(media.digest)


def payload_to_text(payload: bytes) -> str:
    """Give bytes as base64."""
    return base64.b64encode(payload).decode()


def payload_from_text(text: str) -> bytes:
    """Read bytes from base64."""
    return base64.b64decode(text, validate=True)


def node_to_dict(node: Node) -> dict[str, Any]:
    """Give a node as JSON values; its number among the session's dialogs is left to the store that takes it."""
    carried = {one.name: getattr(node, one.name) for one in fields(node) if one.name not in _STORE_DECIDES}
    ranges = [[span.dialog, span.start, span.stop] for span in node.ranges]
    return carried | {"ranges": ranges, "metadata": thaw(dict(node.metadata))}


def node_from_dict(carried: Mapping[str, Any]) -> Node:
    """Read what `node_to_dict` gave.

    Raises:
        InvalidInput: It is no carried node.
    """
    known = {one.name for one in fields(Node)} - _STORE_DECIDES
    try:
        ranges = tuple(Span(DialogId(dialog), int(start), int(stop)) for dialog, start, stop in carried["ranges"])
        return Node(**{name: value for name, value in carried.items() if name in known} | {"ranges": ranges})
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"This is no carried dialog: {error!r}.") from error


def session_to_dict(record: SessionRecord) -> dict[str, Any]:
    """Give what is carried of a session as JSON values; what its entries say again is left out."""
    carried = {name: getattr(record, name) for name in _SESSION_FIELDS}
    return carried | {"metadata": thaw(dict(record.metadata))}


def session_from_dict(carried: Mapping[str, Any]) -> SessionRecord:
    """Read what `session_to_dict` gave.

    Raises:
        InvalidInput: It is no carried session.
    """
    try:
        known = {name: carried[name] for name in _SESSION_FIELDS}
        return SessionRecord(**known | {"session_id": SessionId(known["session_id"])})
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"This is no carried session: {error!r}.") from error
