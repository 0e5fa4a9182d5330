"""Headers: what a store keeps with each body, so that most questions are answered without reading one; and what may follow what.

Every store calls `appended` or `next_header` inside its write transaction, so that all stores accept and refuse the same entries.

The log accepts whatever was said: a result without a call, or a second result, was recorded, and the view shows or omits it with a reason. It refuses
what claims to be done and cannot be: the start of a call that nobody made, the end of a turn that is not open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import isfinite, isnan
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from palaver.errors import Conflict, InvalidInput, StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log.entries import CallStarted, Entry, Inbox, LateResult, MessageEntry
from palaver.log.handles import Handle
from palaver.messages import (
    Content,
    CustomMessage,
    Message,
    Role,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    payloads,
)
from palaver.messages.family import SummaryMessage
from palaver.messages.roles import DISCARDED, SPEAKER_OF_ROLE

_INT64 = 1 << 63

DIGEST_BYTES = 16
"""Bytes of SHA-256 kept for each body: 128 bits find damage; they are no defence against an attacker."""

SILENT = frozenset({"", "!"})
"""Shapes of messages that have nothing to show (`shape`)."""

SAID = frozenset({Role.ASSISTANT.value, Role.TOOL_CALL.value})
"""The roles in which a model speaks and makes calls."""

_FAILED = frozenset({StopReason.ERROR, StopReason.ABORT, StopReason.CONTENT_FILTER})


class Draft(NamedTuple):
    """An entry ready to be stored, with what its header will say.

    Attributes:
        kind: The entry's kind.
        role: The role of its message, or empty.
        counts: 1 for a message, 0 for any other kind. A fragment does not count again (`Header.continues`).
        opens: Ids of the tool calls that the entry makes.
        answers: Ids of the tool calls that the entry answers or starts; a call of the harness's own is none of them.
        response: The provider's response id of an assistant message that says something, or empty.
        at: When it happened, in seconds since 1970-01-01 UTC.
        body: The entry's canonical bytes.
        speaker: Who speaks in its message, where that is not who speaks in the role by default; else empty.
        blocks: The shape of its message (`shape`), or empty.
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

    The newest header alone is all that a writer needs: neither append nor open reads back through the log.

    Attributes:
        seq: The entry's number in its dialog, starting at 0.
        turn_head: The number of the newest turn-owned entry up to this one, or -1.
        view_base: The number of the newest compaction up to this one, or -1.
        open_turn: The number of the `turn_started` of the turn that is open after this entry, or -1.
        kind: The entry's kind.
        role: The role of its message, or empty.
        number: How many messages the dialog's own entries have up to and including this one.
        calls: Ids of the calls that this entry makes or answers.
        open_calls: Ids of the newest response's calls that have no result yet after this entry.
        response: The id of the response that the next entry may continue, or empty. For an entry of a response it is that response's id.
        at: When it happened, in seconds since 1970-01-01 UTC.
        size: The body's length in bytes.
        total: The length of all own bodies up to and including this one, in bytes.
        digest: The first 16 bytes of the body's SHA-256.
        speaker: Who speaks in its message, where that is not who speaks in the role by default; else empty.
        blocks: The shape of its message (`shape`), or empty.
        continues: How its message goes on with an earlier one: `message` for a fragment of it; `calls` for a message of its own with further calls
            of one response, recorded call by call; else empty.
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
    continues: str = ""

    @property
    def begins(self) -> bool:
        """Whether the entry begins a message."""
        return self.kind == "message" and self.continues != "message"


NOTHING = Header(-1, -1, -1, -1, "", "", 0, (), (), "", 0.0, 0, 0, b"")
"""The header before the first: that of an empty dialog."""


def body_digest(body: bytes) -> bytes:
    """Return the digest that a header keeps of a body."""
    return sha256(body).digest()[:DIGEST_BYTES]


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


_BLOB_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def references(body: bytes) -> frozenset[BlobId]:
    """Return the payloads that an entry names: what is spelt like an id, where media or the maker of a custom entry may have put one."""
    if b'"digest"' not in body and b'"custom_type"' not in body:
        return frozenset()
    return digests_in(body)


def digests_in(data: bytes) -> frozenset[BlobId]:
    """Return everything that is spelt like the id of a payload."""
    return frozenset(BlobId(digest.decode()) for digest in _BLOB_ID.findall(data))


# --- from an entry to its draft -----------------------------------------------------------------------------------------------------


def draft(entry: Entry) -> tuple[Draft, Mapping[BlobId, bytes]]:
    """Return what a store writes for an entry, and the media payloads that must be durable before it, by blob id."""
    blobs = payloads(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else {}
    return draft_of(entry, canonical_json(entry)), blobs


def draft_of(entry: Entry, body: bytes) -> Draft:
    """Return what a store writes for an entry whose canonical bytes are known."""
    if isinstance(entry, MessageEntry):
        return message_draft(entry.message, entry.at, body)
    answers = (entry.call_id,) if isinstance(entry, CallStarted) and entry.repeats is None else ()
    return Draft(entry.kind, "", 0, (), answers, "", entry.at, body)


def message_draft(message: Message, at: float, body: bytes) -> Draft:
    """Return the draft of a message, except for media payloads.

    Args:
        message: The message.
        at: When it happened, in seconds since 1970-01-01 UTC.
        body: The entry's canonical bytes.
    """
    role = message.role.value
    said = role in SAID
    blocks = shape(message)
    calls = said and message.stop_reason not in DISCARDED
    opens = tuple([block.id for block in message.contents if isinstance(block, ToolCallContent)]) if calls else ()
    answers = tuple([block.id for block in message.contents if isinstance(block, ToolResultContent)])
    response = _response(message) if said and blocks not in SILENT else ""
    speaker = "" if message.speaker is SPEAKER_OF_ROLE[message.role] else message.speaker.value
    return Draft("message", role, 1, opens, answers, response, at, body, speaker, blocks)


def _response(message: Message) -> str:
    """Return the id by which fragments of a response are joined: only fragments share it, because some servers repeat their ids."""
    if not message.response_id:
        return ""
    return message.response_id if message.fragment else message.id


def shape(message: Message) -> str:
    """Return one letter for each block of a message, so that a view can be laid out without reading bodies.

    Letters:
        `t` text, `h` thinking, `c` a tool call, `r` a tool result, `m` media or a block of a kind unknown here, `.` a block that says nothing.

    Returns:
        The letters in order. Empty when the message has nothing to show: no block says anything, or it is a custom message kept out of the
        context. `!` when it has nothing to show because the response failed, or when what it says is discarded (`DISCARDED`).
    """
    if isinstance(message, CustomMessage) and not message.in_context:
        return ""
    if isinstance(message, SummaryMessage):
        return "t" if message.text_content().strip() else ""
    if message.stop_reason in DISCARDED and message.is_assistant_side:
        return "!"
    letters = "".join([letter(content) for content in message.contents])
    if letters.strip("."):
        return letters
    return "!" if message.error or message.stop_reason in _FAILED else ""


def letter(content: Content) -> str:
    """Return the letter of one block (`shape`)."""
    if isinstance(content, TextContent):
        return "t" if content.content and not content.content.isspace() else "."
    if isinstance(content, ThinkingContent):
        return "h" if content.content or content.signature or content.redacted or content.artefact else "."
    if isinstance(content, ToolCallContent):
        return "c"
    return "r" if isinstance(content, ToolResultContent) else "m"


# --- what may follow what --------------------------------------------------------------------------------------------------------


Need: TypeAlias = Literal["open_call", "open_turn", "no_open_turn"]
Holds: TypeAlias = Literal["", "newest", "all"]


class KindRule(NamedTuple):
    """What one kind of entry may do.

    Attributes:
        turn: Whether the entry belongs to a turn and is appended by compare-and-swap on the turn head.
        beside: Whether the entry may be added between the entries of a turn without moving the turn head.
        searched: Whether its text is in the full-text index.
        holds: What stays in force after the entry: `newest` (until the next one of the kind), `all` (each by itself), or empty (nothing).
        places: Whether it names other entries.
        needs: What the dialog must have before the entry.
    """

    turn: bool
    beside: bool
    searched: bool = False
    holds: Holds = ""
    places: bool = False
    needs: Need | None = None


RULES: Mapping[str, KindRule] = MappingProxyType(
    {
        "message": KindRule(turn=True, beside=False, searched=True),
        "instructions": KindRule(turn=True, beside=False, searched=True, holds="newest", places=True),
        "toolset": KindRule(turn=True, beside=False, holds="newest"),
        "call_started": KindRule(turn=True, beside=False, places=True, needs="open_call"),
        "turn_started": KindRule(turn=True, beside=False, needs="no_open_turn"),
        "turn_ended": KindRule(turn=True, beside=False, needs="open_turn"),
        "cancelled": KindRule(turn=False, beside=True),
        "inbox": KindRule(turn=False, beside=True, searched=True),
        "approval": KindRule(turn=False, beside=True),
        "late_result": KindRule(turn=False, beside=True, searched=True),
        "compaction": KindRule(turn=False, beside=True, searched=True, places=True),
        "context_edit": KindRule(turn=False, beside=True, places=True),
        "pin": KindRule(turn=False, beside=True, holds="all", places=True),
        "branch_summary": KindRule(turn=True, beside=True, searched=True, places=True),
        "custom": KindRule(turn=True, beside=True),
        "label": KindRule(turn=False, beside=True, searched=True, places=True),
        "model_change": KindRule(turn=True, beside=True, holds="newest"),
        "mode_change": KindRule(turn=True, beside=True, holds="all"),
        "invocation": KindRule(turn=False, beside=True),
        "error": KindRule(turn=True, beside=True, searched=True),
        "quarantine": KindRule(turn=False, beside=True, holds="all", places=True),
        "tombstone": KindRule(turn=True, beside=True),
    }
)
"""The legality table. Only erasure makes a tombstone, in place of an entry of any kind."""

HOLDING = frozenset(kind for kind, law in RULES.items() if law.holds)
"""Kinds that stay in force: a branch that leaves such an entry out looks for it (`Store.latest_of_kind`)."""

UNKNOWN = KindRule(turn=True, beside=True)
"""The rule of a kind from a newer version: kept, never shown."""


def rule(kind: str) -> KindRule:
    """Return the rule of a kind, `UNKNOWN` for a kind that this version does not know."""
    return RULES.get(kind, UNKNOWN)


def _lacks(need: Need | None, draft: Draft, last: Header) -> bool:
    if need == "open_call":
        return any(call not in last.open_calls for call in draft.answers)
    return (need == "open_turn" and last.open_turn < 0) or (need == "no_open_turn" and last.open_turn >= 0)


def require_storable(name: str, value: object) -> None:
    """Refuse a field that a store cannot keep.

    Raises:
        InvalidInput: A text has a lone surrogate, a time is not a number, or a number needs more than 64 bits.
    """
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{name} {value!r} holds a lone surrogate, which UTF-8 cannot encode.") from error
    elif isinstance(value, float) and isnan(value):
        raise InvalidInput(f"{name} is not a number.")
    elif isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise InvalidInput(f"{name} {value} does not fit into 64 bits.")


def check(draft: Draft, last: Header, *, turn: bool) -> None:
    """Refuse a draft that may not follow.

    Args:
        draft: The entry to be written.
        last: The dialog's newest header, or `NOTHING`.
        turn: Whether it is appended as part of a turn, not added between its entries.

    Raises:
        InvalidInput: The kind may not be written this way, the dialog lacks what it needs, or a store cannot keep one of its fields.
    """
    plain = draft.kind.isascii() and draft.role.isascii() and draft.response.isascii()
    if not plain or not isfinite(draft.at):  # rare: an append pays for one glance
        for name in ("kind", "role", "response", "at"):
            require_storable(name, getattr(draft, name))
    law = rule(draft.kind)
    if turn and not law.turn:
        raise InvalidInput(f"A {draft.kind} entry belongs to no turn: use annotate().")
    if not turn and not law.beside:
        raise InvalidInput(f"A {draft.kind} entry belongs to a turn: use append().")
    if law.needs and _lacks(law.needs, draft, last):
        need = law.needs.replace("_", " ")
        raise InvalidInput(f"A {draft.kind} entry needs {need}; after entry {last.seq} there is none.")


def _continues(draft: Draft, last: Header) -> str:
    """Return how a draft goes on with an earlier message (`Header.continues`).

    Calls without a response id go on with the calls directly before them, which nothing has answered: no provider answers unanswered calls with a new
    response, so that was one response recorded call by call.
    """
    if draft.response:
        return "message" if draft.response == last.response else ""
    # an answer between them is a request that was sent: what follows it is another response
    unanswered = last.open_calls and last.kind == "message" and last.role in SAID
    return "calls" if draft.opens and unanswered else ""


def _open_after(draft: Draft, last: Header, continues: str) -> tuple[str, ...]:
    if draft.kind != "message":
        return last.open_calls
    if draft.opens or draft.role in SAID:
        return (*last.open_calls, *draft.opens) if continues else draft.opens
    if draft.answers:
        return tuple(call for call in last.open_calls if call not in draft.answers)
    return last.open_calls


def _response_after(draft: Draft, last: Header) -> str:
    """Return the response that the next entry may continue. Any message that shows something and answers no call ends the one before."""
    if draft.response:
        return draft.response
    ends = draft.kind == "message" and draft.role != "tool" and draft.blocks not in SILENT and not draft.answers
    return "" if ends else last.response


def next_header(draft: Draft, last: Header = NOTHING, *, turn: bool = True, judged: bool = True) -> Header:
    """Return the header of a draft that follows `last`. The same draft after the same header has the same header in every store.

    Args:
        draft: The entry to be written.
        last: The dialog's newest header, or `NOTHING`.
        turn: Whether it is appended as part of a turn, not added between its entries.
        judged: Whether to `check` it; False for an entry that was checked where it was first written.

    Raises:
        InvalidInput: As `check`.
    """
    if judged:
        check(draft, last, turn=turn)
    seq = last.seq + 1
    size = len(draft.body)
    continues = _continues(draft, last)
    open_turn = last.open_turn
    if draft.kind == "turn_started":
        open_turn = seq
    elif draft.kind == "turn_ended":
        open_turn = -1
    return Header(
        seq=seq,
        turn_head=seq if turn else last.turn_head,
        view_base=seq if draft.kind == "compaction" else last.view_base,
        open_turn=open_turn,
        kind=draft.kind,
        role=draft.role,
        number=last.number + (0 if continues == "message" else draft.counts),
        calls=draft.opens or draft.answers,
        open_calls=_open_after(draft, last, continues),
        response=_response_after(draft, last),
        at=draft.at,
        size=size,
        total=last.total + size,
        digest=body_digest(draft.body),
        speaker=draft.speaker,
        blocks=draft.blocks,
        continues=continues,
    )


def appended(dialog_id: DialogId, last: Header, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
    """Return the headers of entries that follow the newest one: the compare-and-swap of every store.

    Raises:
        Conflict: The turn head is another one.
        InvalidInput: As `check`.
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
