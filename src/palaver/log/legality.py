"""What may follow what: one table, and the one function that turns a draft into the next header.

Every store calls `next_header` inside its write transaction, so that all of them accept and refuse the same entries.

The log is generous with what was said and strict with what claims to be done. A result without a call, or a second result, is accepted:
it was recorded, and the view shows or omits it with a reason. A start of a call that no one made, or the end of a turn that is not open, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from palaver.errors import IllegalEntry
from palaver.log.headers import NOTHING, Draft, Header, body_digest

Need: TypeAlias = Literal["open_call", "open_turn", "no_open_turn"]
Holds: TypeAlias = Literal["", "newest", "all"]


class Rule(NamedTuple):
    """What one kind of entry may do.

    Attributes:
        turn: True when the entry belongs to a turn and is appended by compare-and-swap on the turn head.
        beside: True when the entry may be annotated beside a turn without moving the turn head.
        shown: True when views may show it to a model.
        searched: True when its text is in the full-text index.
        holds: What of it holds from its place on: `newest` (only the newest entry of the kind), `all` (each by itself), or empty: nothing.
        sought: True when whoever goes on with a dialog looks back for the newest of the kind.
        places: True when it names other entries.
        needs: What must hold in the dialog before the entry.
    """

    turn: bool
    beside: bool
    shown: bool = False
    searched: bool = False
    holds: Holds = ""
    sought: bool = False
    places: bool = False
    needs: tuple[Need, ...] = ()


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "message": Rule(turn=True, beside=False, shown=True, searched=True),
        "instructions": Rule(turn=True, beside=False, shown=True, searched=True, holds="newest"),
        "toolset": Rule(turn=True, beside=False, shown=True, holds="newest"),
        "call_started": Rule(turn=True, beside=False, needs=("open_call",)),
        "turn_started": Rule(turn=True, beside=False, sought=True, needs=("no_open_turn",)),
        "turn_ended": Rule(turn=True, beside=False, needs=("open_turn",)),
        "inbox": Rule(turn=False, beside=True, searched=True, sought=True),
        "approval": Rule(turn=False, beside=True),
        "late_result": Rule(turn=False, beside=True, searched=True),
        "compaction": Rule(turn=False, beside=True, shown=True, searched=True, places=True),
        "context_edit": Rule(turn=False, beside=True, shown=True, places=True),
        "pin": Rule(turn=False, beside=True, holds="all", places=True),
        "constraint": Rule(turn=False, beside=True, searched=True, holds="all"),
        "branch_summary": Rule(turn=True, beside=True, shown=True, searched=True, places=True),
        "custom": Rule(turn=True, beside=True),
        "label": Rule(turn=False, beside=True, searched=True, places=True),
        "model_change": Rule(turn=True, beside=True, holds="newest"),
        "mode_change": Rule(turn=True, beside=True, holds="all"),
        "invocation": Rule(turn=False, beside=True, sought=True),
        "error": Rule(turn=True, beside=True, searched=True),
        "quarantine": Rule(turn=False, beside=True, holds="all", places=True),
        "tombstone": Rule(turn=True, beside=True),
    }
)
"""The legality table. A tombstone is made by erasure only, in place of what it stands for; it may stand anywhere, as that could."""

HOLDING = frozenset(kind for kind, law in RULES.items() if law.holds)
"""Kinds that say what holds from their place on: a branch that leaves such an entry out asks for it (`Store.holding`)."""

SOUGHT = frozenset(kind for kind, law in RULES.items() if law.sought)
"""Kinds that are looked for from the end of a log, however far back they stand (`Store.of_kind`): where a turn began, what waits, who was asked."""

UNKNOWN = Rule(turn=True, beside=True)
"""The rule of a kind from a newer version: kept, carried, never shown."""


def rule(kind: str) -> Rule:
    """Give the rule of a kind; a kind this version does not know may stand anywhere and is never shown."""
    return RULES.get(kind, UNKNOWN)


def _holds(need: Need, draft: Draft, last: Header) -> bool:
    if need == "open_call":
        return bool(draft.answers) and all(call in last.open_calls for call in draft.answers)
    if need == "open_turn":
        return last.open_turn >= 0
    return last.open_turn < 0


def check(draft: Draft, last: Header, *, turn: bool) -> None:
    """Refuse a draft that may not follow.

    Args:
        draft: The entry to be written.
        last: The dialog's newest header, or `NOTHING`.
        turn: True when it is appended as part of a turn, False when it is annotated beside one.

    Raises:
        IllegalEntry: The kind may not be written this way, or what it needs does not hold.
    """
    law = rule(draft.kind)
    if turn and not law.turn:
        message = f"a {draft.kind} entry stands beside turns: use annotate()"
        raise IllegalEntry(message, kind=draft.kind, rule="turn")
    if not turn and not law.beside:
        message = f"a {draft.kind} entry belongs to a turn: use append()"
        raise IllegalEntry(message, kind=draft.kind, rule="beside")
    for need in law.needs:
        if not _holds(need, draft, last):
            message = f"a {draft.kind} entry needs {need.replace('_', ' ')}, and entry {last.seq} leaves none"
            raise IllegalEntry(message, kind=draft.kind, rule=need)


def _open_after(draft: Draft, last: Header) -> tuple[str, ...]:
    if draft.kind != "message":
        return last.open_calls
    if draft.opens or draft.role in {"assistant", "tool_call"}:
        same = draft.response == last.response if draft.response else _goes_on(draft, last)
        return (*last.open_calls, *draft.opens) if same else draft.opens
    if draft.answers:
        return tuple(call for call in last.open_calls if call not in draft.answers)
    return last.open_calls


def _goes_on(draft: Draft, last: Header) -> bool:
    """Tell whether calls without a response id go on with the calls directly before them, which nothing has answered yet.

    No provider answers unanswered calls with a new response, so that was one response, recorded call by call.
    """
    return bool(draft.opens and last.open_calls) and last.kind == "message" and last.role in {"assistant", "tool_call"}


def next_header(draft: Draft, last: Header = NOTHING, *, turn: bool = True, judged: bool = True) -> Header:
    """Give the header of a draft that follows `last`, or refuse it.

    Pure: the same draft after the same header is the same header in every store.

    Args:
        draft: The entry to be written.
        last: The dialog's newest header, or `NOTHING`.
        turn: True when it is appended as part of a turn, False when it is annotated beside one.
        judged: False for what was judged where it was first written, and follows something that was lost since.

    Raises:
        IllegalEntry: As `check`.
    """
    if judged:
        check(draft, last, turn=turn)
    seq = last.seq + 1
    size = len(draft.body)
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
        number=last.number + draft.counts,
        calls=draft.opens or draft.answers,
        open_calls=_open_after(draft, last),
        response=draft.response or last.response,
        at=draft.at,
        size=size,
        total=last.total + size,
        digest=body_digest(draft.body),
    )
