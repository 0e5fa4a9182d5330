"""Blocks and turns: the pieces of a view, each with its origin. Changes: blocks shown in another form or left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, cast

from palaver.log import BlockEdit, BoundTo, Handle, Place, Run
from palaver.messages import Content, Role, Speaker, TextContent, ToolCallContent, ToolResultContent, Trust
from palaver.messages.frozen import EMPTY


class Reason(StrEnum):
    """Why a view leaves something out or shows it in another form. The words are stored."""

    OVER_BUDGET = "over_budget"
    """A policy dropped it because the view had to become smaller."""
    OFFLOADED = "offloaded"
    """A policy replaced it by a short reference; the handle returns all of it."""
    SHORTENED = "shortened"
    """A policy kept a part of it; the handle returns all of it."""
    FOLDED = "folded"
    """A policy replaced it by a record or summary."""
    COMPACTED = "compacted"
    """The recorded compaction of another agent left it out."""
    DUPLICATE_RESULT = "duplicate_result"
    """Its call has a result already; the first one counts."""
    UNPAIRED = "unpaired"
    """A tool result whose call is not in the view, or was closed before the result came; it is shown as text at its own place."""
    PARTED = "parted"
    """A tool call and its result of which this branch shares only one; the handle names that one."""
    EMPTY = "empty"
    """It says nothing, and providers refuse empty messages."""
    FAILED_RESPONSE = "failed_response"
    """The response failed before it said anything, or what it said is discarded because the model refused or wrote what cannot be read."""
    QUARANTINED = "quarantined"
    """A provider refused the block."""
    SUPERSEDED = "superseded"
    """A newer entry of the same kind replaced it."""
    NOT_SHOWN = "not_shown"
    """Its kind is never shown to a model."""
    MANAGER = "manager"
    """A plain context manager left it out."""
    UNBOUND = "unbound"
    """The provider signed it for other words than those that are before it now, and would refuse it."""
    PROVIDER = "provider"
    """The provider left it out of a request by itself."""
    ERASED = "erased"
    """It was erased from the log; nothing returns it."""


REASONS: Mapping[str, str] = MappingProxyType(
    {reason.value: reason.value.replace("_", " ") for reason in Reason}
    | {
        Reason.OVER_BUDGET: "left out, because the view had to become smaller",
        Reason.OFFLOADED: "replaced by a short reference",
        Reason.FOLDED: "left out; a short record or a summary is shown instead",
        Reason.COMPACTED: "left out by a compaction of the agent that recorded it",
        Reason.DUPLICATE_RESULT: "a second result of a call; the first one counts",
        Reason.EMPTY: "empty, which providers refuse",
        Reason.UNPAIRED: "a result without its call, shown as text",
        Reason.PARTED: "a tool call or its result, of which this branch has only one",
        Reason.QUARANTINED: "in quarantine",
        Reason.SUPERSEDED: "replaced by something newer",
        Reason.MANAGER: "left out by the context manager",
        Reason.UNBOUND: "signed for other words before it, which the provider would refuse",
        Reason.PROVIDER: "left out by the provider itself",
        Reason.ERASED: "erased for good",
    }
)
"""The reasons of omissions in words."""

DECIDED = frozenset({Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER})
"""Why a plan, a manager or another agent leaves whole exchanges out. Entries with another reason were never shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block as the model sees it.

    Attributes:
        content: The content.
        origin: The block of the log that it shows or replaces; None for a derived text or result.
        reason: Why it is not shown as it was recorded; None when it is.
        reversible: Whether the handle returns all that was taken out; True when `reason` is None.
        derived: The kind of a derived block: `record`, `summary`, `notice`, `waiting`, `interrupted`; else empty.
        sources: The entries that a derived text was made from; for a block in another form, those other than the block itself.
        speaker: Who said it, in a message of any role.
        trust: How far it may be believed; a derived text has the lowest trust of its sources.
    """

    content: Content
    origin: Handle | None = None
    reason: Reason | None = None
    reversible: bool = True
    derived: str = ""
    sources: tuple[Run, ...] = ()
    speaker: Speaker = Speaker.HARNESS
    trust: Trust = Trust.OUTSIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one role says in an exchange: the merged fragments of a response, or its results in the order of the calls.

    Attributes:
        role: `user`, `assistant`, `tool` or `system`.
        blocks: What it says, at least one.
        name: The sender's name where it is not the role's default, else empty.
        model: The model that said it, or empty.
        provider: The provider that said it, or empty.
        bound: What the request of an answer had before it; None where that is not known.
        carried: Fields of the answer that the next request repeats, such as the container in which code waits.
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str = ""
    model: str = ""
    provider: str = ""
    bound: BoundTo | None = None
    carried: Mapping[str, Any] = EMPTY


CARRIED = "next_request"
"""The key in the metadata of an answer under which it has fields that the next request repeats."""

QUARANTINED_ARGUMENT = "quarantined"
"""The one argument that a view shows of a call whose arguments a provider refused."""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """How a view shows one block.

    Attributes:
        reason: Why.
        text: What the model sees instead; None when the block is left out.
        reversible: Whether the handle in the text returns all that was taken out.
        sources: The entries that the text was made from besides the block.
        trust: The lowest trust among them; None for that of the block.
    """

    reason: Reason
    text: str | None = None
    reversible: bool = True
    sources: tuple[Run, ...] = ()
    trust: Trust | None = None

    def after(self, before: BlockChange | None) -> BlockChange:
        """Return this change as it applies to a block that was changed before: sources add up, trust never rises."""
        if before is None or before.text is None or self.text is None:
            return self
        known = [trust for trust in (before.trust, self.trust) if trust is not None]
        sources = tuple(dict.fromkeys((*before.sources, *self.sources)))
        return replace(self, sources=sources, trust=min(known, default=None))


NO_CHANGES = cast("Mapping[Handle, BlockChange]", EMPTY)

QUARANTINE = BlockChange(Reason.QUARANTINED, "[A block the provider refused was set aside; recall {}]")
"""The change of a block, or of all blocks of an entry, that a provider refused; the text names the block."""


def from_edit(edit: BlockEdit) -> BlockChange:
    """Read a change from its recorded form."""
    trust = None if edit.trust is None else Trust.__members__.get(edit.trust.upper(), Trust.OUTSIDE)
    return BlockChange(Reason(edit.reason), edit.text, edit.reversible, edit.sources or (), trust)


def to_edit(target: Handle, change: BlockChange) -> BlockEdit:
    """Return the recorded form of a change that shows a text."""
    return BlockEdit(
        target=Place.of(target),
        text=change.text or "",
        reason=change.reason.value,
        reversible=change.reversible,
        sources=change.sources or None,
        trust=None if change.trust is None else change.trust.name.lower(),
    )


def change_of(changes: Mapping[Handle, BlockChange], block: Handle) -> BlockChange | None:
    """Return the change of a block; a quarantine of the whole entry comes before a change of the block itself."""
    entry = changes.get(Handle(block.dialog, block.seq))
    return entry if entry is not None and entry.reason is Reason.QUARANTINED else changes.get(block)


def shown_turns(turns: tuple[Turn, ...], changes: Mapping[Handle, BlockChange]) -> tuple[Turn, ...]:
    """Return turns with their blocks as the changes show them, without turns that say nothing more."""
    if not changes:
        return turns
    made = (replace(turn, blocks=shown_blocks(turn.blocks, changes)) for turn in turns)
    return tuple(turn for turn in made if turn.blocks)


def shown_blocks(blocks: tuple[Block, ...], changes: Mapping[Handle, BlockChange]) -> tuple[Block, ...]:
    """Return blocks as the changes show them."""
    return tuple(made for block in blocks if (made := _shown(block, changes)) is not None)


def _shown(block: Block, changes: Mapping[Handle, BlockChange]) -> Block | None:
    change = None if block.origin is None else change_of(changes, block.origin)
    if change is None:
        return block
    if change.text is not None:
        return _in_form(block, change, change.text)
    pairs = isinstance(block.content, ToolCallContent | ToolResultContent)
    return block if pairs else None  # a call and its result stay together


def _in_form(block: Block, change: BlockChange, text: str) -> Block:
    """Return a block that shows a text in its place. A result keeps its call id; a call keeps its name and id, because its result needs it."""
    content = block.content
    if change.reason is Reason.QUARANTINED:
        text = text.format(block.origin)
    if isinstance(content, ToolCallContent):
        if change.reason is not Reason.QUARANTINED:
            return block
        emptied = {"args": {QUARANTINED_ARGUMENT: text}, "raw_args": None, "error": None, "artefact": {}, "changes": ()}
        return replace(block, content=content.model_copy(update=emptied), reason=change.reason)
    result = isinstance(content, ToolResultContent)
    return replace(
        block,
        content=content.model_copy(update={"content": text}) if result else TextContent(content=text),
        reason=change.reason,
        reversible=change.reversible,
        sources=tuple(dict.fromkeys((*block.sources, *change.sources))),
        trust=block.trust if change.trust is None else min(block.trust, change.trust),
    )
