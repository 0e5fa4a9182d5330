"""Placing: something stands for whatever leaves a view, whichever policy takes it out and however little room there is.

What is known of the conversation goes with the text that stands for it. A policy of somebody's may drop without a text, and near a limit a record may have
no room: then there is no text for the facts to go with, and whoever writes such a view down loses them. So behind every plan it is looked at what left
untold, and one text is put there for all of it: where it is to be recalled, the user's goal, and what he said must or must not be, in his own words.
What a view knows of and says nowhere before any plan is said first, so that whoever plans sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from palaver.context.record.running import carrying, is_line, standing, text_of
from palaver.context.record.telling import counts_rules, tells, told
from palaver.context.texts import notice
from palaver.log import Run, Span
from palaver.messages import Speaker, TextContent
from palaver.tokens import Budget
from palaver.view import CARRIED, Applied, Block, Drop, Exchange, Insert, Plan, View, apply, inserted

__all__ = ["NO_SMALLER", "carrying_on", "placed", "said_again", "shaped", "silenced", "stands_in", "unstated", "untold"]

_SHARE = 4
"""At most a quarter of the room is for it, as for every text that stands for what left; but for a few constraints there is always room. It is a quarter
of what was allowed, and not of what the view has: the line stands in front, and the view grows with every turn."""

_FEW = 300
"""Tokens of constraints that have a place whatever the room."""

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
    unseen = inserted(_insert(left, facts, "", CARRIED))
    return replace(after, carried=() if _is_named(unseen, after) else (unseen,))


def _is_named(unseen: Exchange, view: View) -> bool:
    """Tell whether nothing is known of what a view carries unseen, and a text of the view names it already: then there is nothing more to say."""
    known = any(block.facts not in {"", NOTHING} for block in unseen.blocks())
    return not known and within(unseen, tuple(united(run for block in _texts(view) for run in block.sources)))


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


def shaped(view: View, plans: Iterable[Plan], applied: Applied | None = None) -> View:
    """Give a view with plans applied, one after the other: what their texts tell of is carried unseen no longer."""
    for plan in plans:
        view = apply(view, plan, applied)
    told_ = _carried(view) if view.carried else ()
    return replace(view, carried=tuple(each for each in view.carried if not within(each, told_))) if told_ else view


class _Asked(Protocol):
    """What is needed of a policy; `palaver.context.Planner` is one."""

    @property
    def name(self) -> str: ...
    @property
    def complete(self) -> bool: ...


def said_again(view: View, ledger: Ledger, budget: Budget, policy: _Asked) -> Iterator[tuple[View, Plan]]:
    """Have a view say what it knows of and says nowhere, before a policy is asked: so it makes room for that as for all that must be in the view.

    What the line says, and where, follows from what was written down and from the budget, and from nothing that is said later: requests go on from each other.

    Args:
        view: The view.
        ledger: The books.
        budget: What one request is allowed, whatever the provider said of the last one.
        policy: Who is asked next.

    Yields:
        The view with a line that says all of it, or how much it has no room for, and the plan that put it there; first with the goal, then without. Of one
        that makes no room the constraints alone: else they would change their words where the view outgrows the goal.
    """
    settled = replace(view, exchanges=view.exchanges[: view.settled])
    rules = {said.text for said in unstated(settled)}
    unseen = tuple(each for each in view.carried if not _is_named(each, view))
    silent = [each for each in _silent(settled, rules, None) if each not in view.carried]
    if not unseen and not silent:
        return
    head = notice([one for one in view.omissions if one.reason in GONE], view.shared)
    pattern = _pattern(ledger.reading(view), head, (*silent, *unseen), None)
    lines = tuple(_worded(pattern, budget.for_input // _SHARE, ledger))
    for insert in lines[-1:] if policy.complete else lines:
        plan = Plan(policy=policy.name, inserts=(insert,))
        yield replace(shaped(view, [plan], ledger.applied), settled=view.settled + 1), plan


def stands_in(after: View, before: View, line: Insert) -> bool:
    """Tell whether a line stands in a view, or with all that it says another text that stands for more than what had left before."""
    own = inserted(line)
    if any(each.turns == own.turns for each in after.exchanges):
        return True
    return within(own, _carried(after)) and after.omissions != before.omissions


def silenced(before: View, after: View, ledger: Ledger) -> bool:
    """Tell whether a view says nowhere what the user said must or must not be, in what it shows or knows or in what left with nothing to stand for it."""
    return bool(unstated(carrying_on(before, after, ledger)))


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


def placed(
    made: _Made, view: View, ledger: Ledger, room: Budget | None, allowed: Budget | None = None
) -> tuple[View, Plan, Size] | None:
    """Have something stand for what a composed view leaves out untold.

    Args:
        made: The composed view.
        view: The view that was composed.
        ledger: The books.
        room: What the request may occupy; None for as much as it needs.
        allowed: What it was allowed, where the provider's word makes less of that; `room` when not given.

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
    base = shaped(view, (*made.limits, made.plan) if made.fallback else made.limits, books.applied)
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
    drops = (*last.drops, *(Drop(index=index) for index in _told_anew(base, silent, view, head)))
    most = allowed or room
    share = (books.meter.view(made.view).total if most is None else most.for_input) // _SHARE
    alone = all(each in view.carried for each in left)
    saying = bool(rules or facts.rules)
    for insert in (*_worded(pattern, share, books), *([] if alone else [pattern])):
        plan = replace(last, drops=drops, inserts=(*others, replace(insert, before=before, standing=same)))
        final = apply(base, plan, books.applied)
        size = books.meter.view(final)
        if not _in_room(final, size, room, books):
            continue
        if base is view and final == view:  # all that the plan takes out is the line itself
            return view, Plan(policy=last.policy, notes=(*last.notes, f"not taken: {NO_SMALLER}")), size
        if same or size.total < made.before.total:
            return final, plan, size
        if saying and insert is not pattern and not (made.fallback or made.limits):
            # what the user said stands there for its own sake: while there is room it need not be less than what left
            return final, replace(plan, inserts=(*others, replace(insert, before=before, standing=True))), size
    return None


NO_SMALLER = "it makes the view no smaller"
"""Why a plan is not taken."""


def _in_room(view: View, size: Size, room: Budget | None, books: Ledger) -> bool:
    return room is None or (size.total <= room.for_input and bytes_over(view, room, books) <= 0)


def _is_line(insert: Insert, head: str) -> bool:
    """Tell whether a plan puts nothing but the line that something left: then what is to be said is said behind it."""
    return insert.label == "notice" and _is_bare(insert.text, head)


def _is_bare(text: str, head: str) -> bool:
    return text.partition(":")[0] == head.partition(":")[0] and "\n" not in text


def _told_anew(base: View, silent: Sequence[Exchange], view: View, head: str) -> Iterator[int]:
    """Give the bare lines that an earlier plan put, as for want of bytes: the one that says more stands for the same."""
    for index, exchange in enumerate(base.exchanges):
        if exchange in silent and exchange not in view.exchanges and _is_bare(text_of(exchange), head):
            yield index


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


def _worded(pattern: Insert, share: int, books: Ledger) -> Iterator[Insert]:
    """Give the lines that say all constraints, or how many they have no room for: the one that says most first."""
    facts, count = Facts.from_json(pattern.facts), books.meter.text
    most = count(pattern.text) + max(share, _FEW)
    only = Facts(rules=facts.rules, more={name: n for name, n in facts.more.items() if name == "rules"})
    for shown in (only,) if facts.goal is None else (replace(only, goal=facts.goal), only):
        text = told(shown, pattern.text, most, count)
        if not facts.rules or counts_rules(text) or all(tells(text, one) for one in facts.rules):
            yield replace(pattern, text=text)


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
