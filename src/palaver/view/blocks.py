"""Blocks and turns: the pieces of a view, each with its origin and the reason why it is not shown as it was recorded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from palaver.log import Handle, Run
from palaver.messages import Content, Role, Speaker, Trust


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
    """A tool call of an inherited response whose result this branch does not share; the handle names the call."""
    EMPTY = "empty"
    """It says nothing, and providers refuse empty messages."""
    FAILED_RESPONSE = "failed_response"
    """The response failed before it said anything."""
    QUARANTINED = "quarantined"
    """A provider refused the block."""
    SUPERSEDED = "superseded"
    """A newer entry of the same kind replaced it."""
    NOT_SHOWN = "not_shown"
    """Its kind is never shown to a model."""
    MANAGER = "manager"
    """A plain context manager left it out."""
    ERASED = "erased"
    """It was erased from the log; nothing returns it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block as the model sees it.

    Attributes:
        content: The content.
        origin: The block of the log that it shows or replaces; None for a derived text or result.
        reason: Why it is not shown as it was recorded; None when it is.
        reversible: Whether the handle returns all that was taken out; True when `reason` is None.
        derived: What it is when nobody said it: `record`, `summary`, `notice`, `pending`, `interrupted`; else empty.
        sources: The entries that a derived text was made from; for a block in another form, those besides the block itself.
        speaker: Who said it, whatever role carries it.
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
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str = ""
    model: str = ""
    provider: str = ""
