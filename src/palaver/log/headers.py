"""Headers: what a store keeps beside each body, so that most questions are answered without reading one."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

DIGEST_BYTES = 16
"""Bytes of SHA-256 kept for each body: 128 bits find damage; they are no defence against an attacker."""

SILENT = frozenset({"", "!"})
"""Shapes of messages that have nothing to show (`palaver.log.codec.shape`)."""


class Draft(NamedTuple):
    """An entry ready to be stored, with what its header will say.

    Attributes:
        kind: The entry's kind.
        role: The role of its message, or empty.
        counts: 1 for a message, 0 for any other kind. A fragment that continues a response does not count again (`next_header`).
        opens: Ids of the tool calls that the entry makes.
        answers: Ids of the tool calls that the entry answers.
        response: The provider's response id of an assistant message that says something, or empty.
        at: When it happened, in seconds since 1970-01-01 UTC.
        body: The entry's canonical bytes.
        speaker: Who speaks in its message, where that is not who speaks in the role by default; else empty.
        blocks: The shape of its message (`palaver.log.codec.shape`), or empty.
    """

    kind: str
    role: str
    counts: int
    opens: tuple[str, ...]
    answers: tuple[str, ...]
    response: str
    at: float
    body: bytes
    speaker: str = ""
    blocks: str = ""


class Header(NamedTuple):
    """What is known of an entry without its body, and what is in force after it.

    The newest header alone tells a writer all it needs: neither append nor open reads back through the log.

    Attributes:
        seq: The entry's number in its dialog, starting at 0.
        turn_head: The number of the newest turn-owned entry up to this one, or -1.
        view_base: The number of the newest compaction up to this one, or -1.
        open_turn: The number of the `turn_started` of the turn that is open after this entry, or -1.
        kind: The entry's kind.
        role: The role of its message, or empty.
        number: How many messages the dialog's own entries hold up to and including this one.
        calls: Ids of the calls that this entry makes or answers.
        open_calls: Ids of the newest response's calls that have no result yet after this entry.
        response: The id of the response that the next entry may continue, or empty. For an entry of a response it is that response's id.
        at: When it happened, in seconds since 1970-01-01 UTC.
        size: The body's length in bytes.
        total: The length of all own bodies up to and including this one, in bytes.
        digest: The first 16 bytes of the body's SHA-256.
        speaker: Who speaks in its message, where that is not who speaks in the role by default; else empty.
        blocks: The shape of its message (`palaver.log.codec.shape`), or empty.
    """

    seq: int
    turn_head: int
    view_base: int
    open_turn: int
    kind: str
    role: str
    number: int
    calls: tuple[str, ...]
    open_calls: tuple[str, ...]
    response: str
    at: float
    size: int
    total: int
    digest: bytes
    speaker: str = ""
    blocks: str = ""


NOTHING = Header(-1, -1, -1, -1, "", "", 0, (), (), "", 0.0, 0, 0, b"")
"""The header before the first: that of an empty dialog."""


def body_digest(body: bytes) -> bytes:
    """Return the digest that a header keeps of a body."""
    return sha256(body).digest()[:DIGEST_BYTES]
