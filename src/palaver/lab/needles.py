"""Needle chains: facts planted in a made-up session, and which of them survive one compaction after the other.

Source: maf-cachebench and dsh-compaction-fidelity plant facts and ask a model for them after compaction; RULER (arXiv 2404.06654) plants random keys
and values. Here the facts are looked for in the view, so no model is asked: a needle is *in view* while its value stands in it, and *in reach* while a
text of the view names the entry that holds it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from palaver.context import Meter
from palaver.ids import DialogId, derive_id, new_session_id
from palaver.lab.entrants import Entrant
from palaver.lab.looks import Looks
from palaver.lab.metrics import occurs
from palaver.lab.recorded import trace
from palaver.lab.replay import Replay
from palaver.lab.things import things, words
from palaver.log import Handle, MessageEntry, Node, draft
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.store import MemoryStore, SessionRecord
from palaver.tokens import ModelCounter
from palaver.view import View

__all__ = ["Depth", "Needle", "needles"]

_EVERY = 3
"""Rounds between two needles."""

_PLACES = ("user", "result", "words")
"""Where a needle stands, in turn: the user's words, a tool's result, the model's own words."""


@dataclass(frozen=True, slots=True)
class Needle:
    """A planted fact.

    Attributes:
        key: What it is about.
        value: What is to be remembered.
        place: Who said it: `user`, `result` or `words` (the model's).
        entry: Where.
    """

    key: str
    value: str
    place: str
    entry: Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What is left after so many compactions.

    Attributes:
        cuts: How many compactions there were since the needles were said.
        all: How many needles went through that many.
        in_view: How many of them the view still holds.
        in_reach: How many it holds or names the place of.
        places: By who said them: (all, in view).
    """

    cuts: int
    all: int
    in_view: int
    in_reach: int
    places: Mapping[str, tuple[int, int]]


def needles(
    entrant: Entrant, counting: ModelCounter, *, rounds: int = 120, size: int = 1_200, seed: int = 0
) -> tuple[Depth, ...]:
    """Plant needles in a session that grows, and count what is left after each compaction that they went through.

    Args:
        entrant: The policy, with the budget that makes it compact.
        counting: What counts tokens.
        rounds: Rounds of a call and its result.
        size: Characters of a result.
        seed: What the needles are made from.

    Returns:
        For each number of compactions, beginning with none, what is left; up to the most that any needle went through.
    """
    store, dialog, planted = _grown(rounds, size, seed)
    calls = trace(store, dialog)
    known = things(calls)
    looks = Looks(known, Meter(counting))
    cuts, said = 0, dict[Handle, int]()
    found: dict[int, list[tuple[Needle, bool, bool]]] = {}
    for step in Replay(calls, known, entrant, stand_in="fold", meter=looks.meter, rates=None).steps():
        cuts += step.cut
        for each in planted:
            if each.entry.seq <= step.call.seq:
                since = said.setdefault(each.entry, cuts)
                if step.cut or since == cuts:
                    found.setdefault(cuts - since, []).append((each, *_left(each, step.view, looks)))
    return tuple(_depth(number, found[number]) for number in sorted(found))


def _left(needle: Needle, view: View, looks: Looks) -> tuple[bool, bool]:
    held = any(occurs(needle.value, words(block.content)) for each in view.exchanges for block in each.blocks())
    if held:
        return True, True
    place = (str(needle.entry.dialog)[:12], needle.entry.seq)
    named = any(place in looks.of(each).places for each in view.exchanges)
    rewritten = any(
        block.reason is not None and block.origin is not None and block.origin.seq == needle.entry.seq
        for each in view.exchanges
        for block in each.blocks()
    )
    return False, named or rewritten


def _depth(cuts: int, found: list[tuple[Needle, bool, bool]]) -> Depth:
    by_place = {
        place: (
            sum(each.place == place for each, _, _ in found),
            sum(each.place == place and held for each, held, _ in found),
        )
        for place in _PLACES
    }
    return Depth(
        cuts=cuts,
        all=len(found),
        in_view=sum(held for _, held, _ in found),
        in_reach=sum(reach for _, _, reach in found),
        places=by_place,
    )


def _grown(rounds: int, size: int, seed: int) -> tuple[MemoryStore, DialogId, tuple[Needle, ...]]:
    """Write the session down."""
    store, session, dialog = MemoryStore(), new_session_id(), DialogId(derive_id("needles", str(seed)))
    store.create_session(SessionRecord(session_id=session, name="needles"))
    store.create_dialog(Node(dialog_id=dialog, session_id=session))
    chance = random.Random(seed)  # noqa: S311 - needles, no secret
    planted: list[Needle] = []

    def put(message: Message) -> Handle:
        last = store.last(dialog)
        ready, _ = draft(MessageEntry(message=message), continues=last.response)
        return Handle(dialog, store.append(dialog, [ready], last.turn_head)[0].seq)

    put(UserMessage.text("Work through the parts, one after the other."))
    for number in range(rounds):
        place = _PLACES[number // _EVERY % len(_PLACES)] if number % _EVERY == 0 else ""
        key, value = f"key_{number}", f"{chance.randrange(16**8):08x}-{number}"
        fact = f"The {key} is {value}."
        if place == "user":
            planted.append(Needle(key, value, place, put(UserMessage.text(fact))))
        call = ToolCallContent(id=f"c{number}", name="read", args={"path": f"part/{number}.txt"})
        text = (TextContent(content=fact if place == "words" else f"Part {number}."), call)
        spoke = put(AssistantMessage(contents=text, response_id=f"r{number}"))
        filling = f"line of part {number}, of no account\n" * (size // 35)
        result = f"{fact}\n{filling}" if place == "result" else filling
        came = put(ToolMessage.from_result(ToolResultContent(id=call.id, content=result, name="read")))
        if place in {"words", "result"}:
            planted.append(Needle(key, value, place, spoke if place == "words" else came))
    put(AssistantMessage(contents=(TextContent(content="Done."),), response_id="end"))
    return store, dialog, tuple(planted)
