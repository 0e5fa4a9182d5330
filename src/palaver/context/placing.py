"""Placing: something stands for whatever leaves a view, whichever policy takes it out and however little room there is.

What is known of the conversation goes with the text that stands for it. A policy of somebody's may drop without a text, and near a limit a record may have
no room: then there is no text for the facts to go with, and whoever writes such a view down loses them. So behind every plan it is looked at what left
untold, and one text is put there for all of it: where it is to be recalled, the user's goal, and what he said must or must not be, in his own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from palaver.context.ground import GONE
from palaver.context.ledger import Ledger
from palaver.context.limits import bytes_over
from palaver.context.measure import Size
from palaver.context.record.carried import begun, sources_of, united, within
from palaver.context.record.constraints import Constraints
from palaver.context.record.facts import NOTHING, Facts, Said
from palaver.context.record.recorder import Recorder
from palaver.context.record.running import carrying, is_line, standing
from palaver.context.record.telling import counts_rules, tells, told
from palaver.context.texts import notice
from palaver.log import Run, Span
from palaver.messages import Speaker, TextContent
from palaver.tokens import Budget
from palaver.view import CARRIED, Block, Exchange, Insert, Plan, View, apply, inserted

__all__ = ["carrying_on", "placed", "unstated", "untold"]

_SHARE = 4
"""At most a quarter of what the view has is for it, as for every text that stands for what left; but for a few constraints there is always room."""

_FEW = 300
"""Tokens of constraints that have a place whatever the view has."""

_TOLD_BY_OTHERS = frozenset({"file", "plan", "repo map", "pending", "interrupted", ""})
"""Derived texts that stand for nothing that left."""


def untold(before: View, after: View) -> tuple[int, ...]:
    """Give the exchanges of a view that another one made from it leaves out, with no text in it that carries what is known of them.

    Args:
        before: The view.
        after: The one made from it.

    Returns:
        Their indexes in `before`.
    """
    if after is before:
        return ()
    shown = {exchange.first for exchange in after.exchanges}
    texts = [exchange.turns for exchange in after.exchanges if exchange.first is None]
    kept = standing(after) is not None or carrying(after) is not None

    def left(exchange: Exchange) -> bool:
        if exchange.first is not None:
            return exchange.first not in shown
        return _stands(exchange, summarised=kept) and exchange.turns not in texts

    gone = [index for index, exchange in enumerate(before.exchanges) if left(exchange)]
    carried = _carried(after) if gone else ()
    return tuple(index for index in gone if not within(before.exchanges[index], carried))


def carrying_on(before: View, after: View, ledger: Ledger) -> View:
    """Give a view that carries what is known of all that it leaves out: where no text in it does, without showing it.

    Args:
        before: The view that it was made from.
        after: The view.
        ledger: The books.
    """
    left, begins = _left(before, after)
    if not left:
        return replace(after, carried=()) if after.carried else after
    facts = _known(left, ledger.reading(before), begins=begins)
    return replace(after, carried=(inserted(_insert(left, facts, "", CARRIED)),))


def unstated(view: View) -> tuple[Said, ...]:
    """Give the constraints, found in the user's own words, that a view knows of and says nowhere, not even how many there are."""
    carried = (block.facts for exchange in view.known() if exchange.derived for block in exchange.blocks())
    rules = {said.text: said for facts in carried if facts for said in _rules(facts)}
    if not rules:
        return ()
    texts = [block.content.content for block in _texts(view) if isinstance(block.content, TextContent)]
    if any(map(counts_rules, texts)):
        return ()
    off, said = Constraints.of(view).removed, list(_said(view))
    return tuple(
        rule
        for rule in rules.values()
        if rule.text not in off
        and not any(tells(text, rule) for text in texts)
        and not any(rule.text in each for each in said)
    )


@lru_cache(maxsize=64)
def _rules(facts: str) -> tuple[Said, ...]:
    """Give the constraints among facts that were found in the user's words; every request asks for those that its view carries."""
    return tuple(said for said in Facts.from_json(facts).rules if said.at)


def _left(before: View, after: View) -> tuple[tuple[Exchange, ...], bool]:
    """Give what a view leaves out that no text in it tells, what the one before carried unseen first; and whether there was something before it."""
    gone = untold(before, after)
    told_ = _carried(after) if before.carried else ()
    unseen = (exchange for exchange in before.carried if not within(exchange, told_))
    left = (*unseen, *(before.exchanges[index] for index in gone))
    return left, begun(before, gone)


def _known(left: Sequence[Exchange], books: Ledger, *, begins: bool, before: Facts | None = None) -> Facts:
    """Give what is known of exchanges, and was before them."""
    return Recorder(before, sources=books.sources, begun=begins).take(left).facts()


def _insert(left: Sequence[Exchange], facts: Facts, text: str, label: str) -> Insert:
    trust = min((block.trust for exchange in left for block in exchange.blocks()), default=Speaker.SUMMARY.trust)
    return Insert(before=0, text=text, label=label, sources=sources_of(left), facts=facts.to_json(), trust=trust)


class _Made(Protocol):
    """What is needed of a composed view; `palaver.context.Composed` is one."""

    @property
    def view(self) -> View: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def fallback(self) -> Plan: ...
    @property
    def limits(self) -> tuple[Plan, ...]: ...
    @property
    def before(self) -> Size: ...


def placed(made: _Made, view: View, ledger: Ledger, room: Budget | None) -> tuple[View, Plan, Size] | None:
    """Have something stand for what a composed view leaves out untold.

    Args:
        made: The composed view.
        view: The view that was composed.
        ledger: The books.
        room: What the request may occupy; None for as much as it needs.

    Returns:
        The view, the last of its plans (the fallback, where there is one) with the text in it, and the view's size; None where nothing is untold, or
        there is no room for a line.
    """
    books = ledger.reading(view)
    left, begins = _left(view, made.view)
    facts = _known(left, books, begins=begins)
    rules = {said.text for said in unstated(made.view)}.difference(said.text for said in facts.rules)
    if not left and not rules:
        return None
    base = view
    for plan in (*made.limits, made.plan) if made.fallback else made.limits:
        base = apply(base, plan, books.applied)
    last, same = made.fallback or made.plan, made.view is view
    head = notice([one for one in made.view.omissions if one.reason in GONE], view.shared)
    bare = next((one for one in last.inserts if _is_line(one, head)), None)
    others = tuple(one for one in last.inserts if one is not bare)
    silent = _silent(made.view, rules, bare)
    if silent or bare is not None:
        pattern = _pattern(books, head, (*silent, *left), bare)
    else:
        pattern = _insert(left, books.constraints.applied(facts), head, "notice")
    before = max(_place(base, view, left, last), 0 if bare is None else bare.before)
    for insert in _worded(pattern, made.view, books, needed=bool(left)):
        plan = replace(last, inserts=(*others, replace(insert, before=before, standing=same)))
        final = apply(base, plan, books.applied)
        size = books.meter.view(final)
        if room is not None and (size.total > room.for_input or bytes_over(final, room, books) > 0):
            continue
        if base is view and final == view:  # all that the plan takes out is the line itself
            return view, Plan(policy=last.policy, notes=(*last.notes, "not taken: it makes the view no smaller")), size
        if same or size.total < made.before.total:
            return final, plan, size
    return None


def _is_line(insert: Insert, head: str) -> bool:
    """Tell whether a plan puts nothing but the line that something left: then what is to be said is said behind it."""
    return (
        insert.label == "notice" and insert.text.partition(":")[0] == head.partition(":")[0] and "\n" not in insert.text
    )


def _silent(view: View, rules: AbstractSet[str], bare: Insert | None) -> tuple[Exchange, ...]:
    """Give the texts of a view that know of constraints and do not say them, but for a bare line: all that they know goes with what says them."""
    found = []
    for exchange in view.known() if rules else ():
        block = exchange.turns[0].blocks[0]
        itself = bare is not None and isinstance(block.content, TextContent) and block.content.content == bare.text
        if exchange.derived and not itself and block.facts and any(said.text in rules for said in _rules(block.facts)):
            found.append(exchange)
    return tuple(found)


def _pattern(books: Ledger, head: str, told_of: Sequence[Exchange], bare: Insert | None) -> Insert:
    """Give the line alone, with all that is known of what it tells of, and whence, where other texts know of something; that of a plan goes on."""
    known = Facts() if bare is None or bare.facts in {"", NOTHING} else Facts.from_json(bare.facts)
    facts = _known(told_of, books, begins=True, before=known)
    made = _insert(told_of, books.constraints.applied(facts), head, "notice")
    if bare is None:
        return made
    return replace(made, sources=tuple(united((*bare.sources, *made.sources))), trust=min(bare.trust, made.trust))


def _worded(pattern: Insert, after: View, books: Ledger, *, needed: bool) -> Iterator[Insert]:
    """Give the texts that could stand there, the one that says most first; the line alone only where it is needed."""
    facts, count = Facts.from_json(pattern.facts), books.meter.text
    share = books.meter.view(after).total // _SHARE
    step = 1 << max(share.bit_length() - 1, 0)  # it stands in front, and the view grows with every turn
    most = count(pattern.text) + max(step, _FEW)
    only = Facts(rules=facts.rules, more={name: n for name, n in facts.more.items() if name == "rules"})
    for shown in (replace(only, goal=facts.goal), only):
        text = told(shown, pattern.text, most, count)
        if not facts.rules or counts_rules(text) or all(tells(text, one) for one in facts.rules):
            yield replace(pattern, text=text)
    if needed:
        yield pattern


def _place(base: View, view: View, left: Sequence[Exchange], last: Plan) -> int:
    """Give the exchange before which the text is put: the first one behind all that it stands for."""
    ranks = {run: index for index, exchange in enumerate(view.exchanges) for run in _runs(exchange)}
    upto = max((ranks.get(run, -1) for exchange in left for run in _runs(exchange)), default=-1)
    behind = (index for index, x in enumerate(base.exchanges) if any(ranks.get(run, -1) <= upto for run in _runs(x)))
    found = max(behind, default=-1) + 1
    return found if left else max((found, *(insert.before for insert in last.inserts)))


def _runs(exchange: Exchange) -> tuple[Span | Run, ...]:
    """Give the entries of an exchange, of a derived one those that it was made from."""
    sources = (run for block in exchange.blocks() for run in block.sources) if exchange.derived else ()
    return (*exchange.runs, *sources)


def _texts(view: View) -> Iterator[Block]:
    return (block for exchange in view.exchanges if exchange.derived for block in exchange.blocks())


def _said(view: View) -> Iterator[str]:
    """Give what the user says in a view."""
    for exchange in view.exchanges:
        for block in exchange.blocks():
            if block.speaker is Speaker.HUMAN and not exchange.derived and isinstance(block.content, TextContent):
                yield " ".join(block.content.content.split())


def _carries(block: Block) -> bool:
    """Tell whether the facts of what a text was made from go with it; a line for a summary has those of the summary alone."""
    line = isinstance(block.content, TextContent) and is_line(block.content.content)
    return block.facts not in {"", NOTHING} and not line


def _stands(exchange: Exchange, *, summarised: bool) -> bool:
    """Tell whether something is lost with a derived text: not where it stood for nothing, or was a summary that has its place or is carried."""
    for block in exchange.blocks():
        if block.derived in _TOLD_BY_OTHERS:
            continue
        if _carries(block) or not summarised or block.facts == "":
            return True
    return False


def _carried(view: View) -> tuple[Run, ...]:
    """Give the entries of which the facts go with a text of a view."""
    return tuple(united(run for block in _texts(view) if _carries(block) for run in block.sources))
