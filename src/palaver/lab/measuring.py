"""Measure a replay: one row for each call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from palaver.errors import PalaverError
from palaver.lab.conformance import describe
from palaver.lab.entrants import Entrant
from palaver.lab.finder import Index
from palaver.lab.looks import Looks, ShownParts
from palaver.lab.prices import SEARCH_TOKENS, Sheet, recall_charge
from palaver.lab.recorded import RecordedDialog
from palaver.lab.replay import Replay, ReplayStep
from palaver.lab.results import PARTS, CallRow
from palaver.lab.things import Need, Things, words
from palaver.log import Handle
from palaver.messages import ToolCallContent
from palaver.testing.policy_checks import check_policy
from palaver.tokens import Counter as TokenCounter
from palaver.view import DECIDED, Exchange


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A dialog prepared for replays: the data that is the same for every policy.

    Attributes:
        trace: Its calls.
        things: The references of its calls.
        looks: The measurements of its exchanges.
        humans: The human's messages: the index of each in the whole log, and its handle.
        index: The search index of its exchanges: all from the start, so that results do not depend on earlier searches.
        outputs: The tokens of each response.
        media: Returns the bytes of an image or sound by its digest.
    """

    trace: RecordedDialog
    things: Things
    looks: Looks
    humans: tuple[tuple[int, Handle], ...]
    index: Index
    outputs: tuple[int, ...]
    media: Callable[[str], bytes]


class _Lookups(NamedTuple):
    """The lookups needed for content that a view lacks.

    Attributes:
        steps: The number of model calls.
        tokens: The tokens that they add to later requests.
        back: The identifiers that a lookup brought back.
        again: The identifiers that no lookup finds, so that their original step must be repeated.
    """

    steps: int = 0
    tokens: int = 0
    back: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()


class _Brought:
    """Content that was brought back or fetched again, and is still in requests, because no cut followed."""

    def __init__(self, holds: Callable[[str], bool]) -> None:
        """Start empty. `holds` returns whether the view contains an identifier, as a word or as content."""
        self.holds = holds
        self.tokens = 0
        self.back: set[str] = set()
        self.again: set[str] = set()

    def take(self, found: _Lookups) -> None:
        self.tokens += found.tokens
        self.back |= found.back
        self.again |= found.again

    def clear(self) -> None:
        self.tokens = 0
        self.back.clear()
        self.again.clear()


class _KeptReferences(NamedTuple):
    """The kept references of a call.

    Attributes:
        gone: The identifiers that the view lacks.
        found: The lookups needed for them now.
        reached: The number of references that the view has or that were brought back.
        cost: The cost of the lookups, including content that earlier lookups left in the request.
    """

    gone: frozenset[str]
    found: _Lookups
    reached: int
    cost: float


class Measured:
    """The measurement of a dialog under one policy.

    Attributes:
        replay: The replay.
        violations: The broken laws, as text.
    """

    def __init__(self, recording: Recording, entrant: Entrant, *, stand_in: str, sheet: Sheet, first: int = 1) -> None:
        """Prepare the measurement.

        Args:
            recording: The dialog.
            entrant: The policy.
            stand_in: The replacement for a model's summaries.
            sheet: The prices.
            first: The number of its first call in the session.
        """
        self.replay = Replay(
            recording.trace,
            recording.things,
            entrant,
            stand_in=stand_in,
            meter=recording.looks.meter,
        )
        self.violations: list[str] = []
        self._recording = recording
        self._entrant = entrant
        self._first = first
        self._stand_in = stand_in
        self._sheet = sheet
        self._shown = ShownParts(recording.looks)
        self._words = _Brought(self._shown.holds)
        self._evidence = _Brought(self._shown.quotes)
        self._marks = 0
        self._last: float | None = None

    def each(self, session: str) -> Iterator[tuple[ReplayStep, CallRow]]:
        """Yield each call and its row.

        Args:
            session: The session's key.
        """
        for step in self.replay.steps():
            exchanges = self._shown.take(step.view)
            request = self._of_request(step)
            values = (
                request | self._of_references(step, exchanges, warm=request["warm"]) | self._of_humans(step, exchanges)
            )
            row = CallRow(
                session=session,
                policy=self._entrant.name,
                stand_in=self._stand_in,
                call=self._first + step.call.number - 1,
                dialog=self._recording.trace.dialog,
                seq=step.call.seq,
                at=step.call.at,
                left_out=sum(gone.messages for gone in step.view.omissions if gone.reason in DECIDED),
                planning=step.planning,
                infeasible=self._shown.tokens if step.composed is None else 0,
                digest=self._shown.digest(),
                **values,
                **self._of_laws(step, values["mark"]),
            )
            yield step, row

    def _of_request(self, step: ReplayStep) -> dict[str, Any]:
        """Measure the request and its cost."""
        shown, sheet = self._shown, self._sheet
        at, last = step.call.at, self._last
        gap = None if at is None or last is None else max(at - last, 0.0)
        self._last = last if at is None else at
        warm = step.call.number > 1 and sheet.warm(gap)
        read = sheet.found(shown.stable, warm=warm)
        output = self._recording.outputs[step.call.number - 1]
        changed = step.composed is not None and step.view is not step.given and not shown.goes_on
        return {
            "gap": gap,
            "warm": warm,
            "tokens": shown.tokens,
            **dict(zip(PARTS, shown.parts, strict=True)),
            "mark": "cut" if step.cut else "edit" if changed else "",
            "stable": shown.stable,
            "read": read,
            "written": shown.tokens - read,
            "output": output,
            "cost": sheet.call(read=read, written=shown.tokens - read, output=output),
            "summary_cost": sheet.call(read=shown.before, written=0, output=step.summary) if step.summary else 0.0,
        }

    # --- references --------------------------------------------------------------------------------------------------------

    def _of_references(self, step: ReplayStep, exchanges: Sequence[Exchange], *, warm: bool) -> dict[str, Any]:
        """Measure the references of the next response, in view and to be brought back: once as words, once as content."""
        needs = self._recording.things.needs[step.call.number - 1]
        known: dict[frozenset[str], _Lookups] = {}

        def look(away: Sequence[Need]) -> _Lookups:
            names = frozenset(need.name for need in away)
            if names not in known:
                known[names] = self._looked_up(step, exchanges, away) if away else _Lookups()
            return known[names]

        words = self._kept(step, needs, self._words, look, warm=warm)
        evidence = self._kept(step, needs, self._evidence, look, warm=warm)
        return {
            "references": len(needs),
            "in_view": sum(need.name not in words.gone for need in needs),
            "reached": words.reached,
            "evidence": sum(need.name not in evidence.gone for need in needs),
            "evidence_reached": evidence.reached,
            "evidence_cost": evidence.cost,
            "recalls": words.found.steps,
            "recall_tokens": words.found.tokens,
            "recall_cost": words.cost,
        }

    def _kept(
        self,
        step: ReplayStep,
        needs: Sequence[Need],
        brought: _Brought,
        look: Callable[[Sequence[Need]], _Lookups],
        *,
        warm: bool,
    ) -> _KeptReferences:
        """Return the kept references, and look up the rest. Content that was brought back is read with each request, from the cache if it is warm."""
        if step.cut:
            brought.clear()
        sheet = self._sheet
        rent = brought.tokens * (sheet.cache_read if warm else sheet.cache_write)
        gone = frozenset(need.name for need in needs if not brought.holds(need.name))
        found = look([need for need in needs if need.name in gone and need.name not in brought.back | brought.again])
        brought.take(found)
        return _KeptReferences(
            gone=gone,
            found=found,
            reached=len(needs) - len(gone - brought.back),
            cost=rent + recall_charge(found.steps, found.tokens, self._shown.tokens, sheet),
        )

    def _looked_up(self, step: ReplayStep, exchanges: Sequence[Exchange], away: Sequence[Need]) -> _Lookups:
        """Look up missing content: by its handle, by a search, or else by repeating its original step (see `palaver.lab.prices`)."""
        log, looks = step.log, self._recording.looks
        shown = frozenset(each.first for each in exchanges)
        places = frozenset(place for each in exchanges for place in looks.of(each).places)
        wanted: dict[int, list[str]] = {}
        for need in away:
            wanted.setdefault(need.index, []).append(need.name)
        hits = self._found(step, {need.name for need in away if not self._shown.holds(need.name)}, shown)
        steps = tokens = 0
        back, again = set[str](), set[str]()
        for index, names in wanted.items():
            blocks = log.system if index < 0 else tuple(log.exchanges[index].blocks())
            size, held = looks.holding(blocks, names)
            named = index >= 0 and (
                log.exchanges[index].first in shown or not places.isdisjoint(_printed(log.exchanges[index]))
            )
            steps += 1 if named else 2
            tokens += size if named else SEARCH_TOKENS + size
            (back if named or index in hits else again).update(held)
        names_away = {need.name for need in away}
        return _Lookups(steps, tokens, frozenset(back & names_away), frozenset(again & names_away - back))

    def _found(self, step: ReplayStep, missing: set[str], shown: Collection[Handle | None]) -> frozenset[int]:
        """Search the omitted exchanges for those words of the next step that the model knows."""
        log, index = step.log.exchanges, self._recording.index
        response = self._recording.trace.responses[step.call.first]
        asked = "\n".join(words(block.content) for block in response.turns[0].blocks if _spoken(block.content))
        for name in sorted(missing, key=len, reverse=True):
            asked = asked.replace(name, " ")
        among = frozenset(number for number in range(len(log)) if log[number].first not in shown)
        return frozenset(index.search(asked, among=among))

    def _of_humans(self, step: ReplayStep, exchanges: Sequence[Exchange]) -> dict[str, Any]:
        """Count the human's messages, and those in the view, quoted in a record, or listed there by handle (law 10)."""
        humans = self._recording.humans
        said = humans[: bisect_left(humans, len(step.log.exchanges), key=itemgetter(0))]
        missing = {first for _, first in said} - {each.first for each in exchanges}
        if missing:
            named = {place for each in exchanges for place in self._recording.looks.of(each).places}
            missing = {first for first in missing if (first.dialog[:_SHORT], first.seq) not in named}
        return {"humans": len(said), "humans_kept": len(said) - len(missing)}

    # --- laws --------------------------------------------------------------------------------------------------------------

    def _of_laws(self, step: ReplayStep, mark: str) -> dict[str, Any]:
        """Check the laws: the cheap ones at every call, and all of them after changes, with increasing distance."""
        broken = list(_cheap(step, self._entrant, self._shown.tokens))
        self._marks += bool(mark)
        whole = bool(mark) and self._marks.bit_count() == 1  # the first, second, fourth, eighth … change
        if whole and not broken:
            broken = list(_held(step, self._entrant, self._recording))
        self.violations += [f"call {step.call.number}: {said}" for said in broken]
        return {"checked": whole, "broken": len(broken)}


_SHORT = 12
"""The number of digits of a dialog's id in a printed handle."""


def _printed(exchange: Exchange) -> Iterator[tuple[str, int]]:
    """Yield the handles of an exchange as they are printed."""
    return ((place.dialog[:_SHORT], place.seq) for place in exchange.entries())


def _spoken(content: object) -> bool:
    return isinstance(content, ToolCallContent) or bool(getattr(content, "content", ""))


def _cheap(step: ReplayStep, entrant: Entrant, tokens: int) -> Iterator[str]:
    """Yield the broken laws among those that need no compiling."""
    if step.composed is None:
        return
    if tokens > entrant.budget.limit:
        yield f"{tokens:,} tokens where the budget allows {entrant.budget.limit:,}"
    there = {each.first for each in step.view.exchanges}
    for index in sorted(step.given.protected()):
        if step.given.exchanges[index].first not in there:
            yield f"exchange {index} is missing, which every view must contain"


def _held(step: ReplayStep, entrant: Entrant, recording: Recording) -> Iterator[str]:
    """Check a policy against all laws about a view; yield the first that it breaks."""
    counter: TokenCounter = recording.looks.meter.counter
    try:
        check_policy(step.given, entrant.manager, entrant.budget, counter, media=recording.media)
    except AssertionError as broken:
        yield describe(broken)
    except PalaverError as error:
        yield str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code of a user's policy
        yield f"{type(error).__name__}: {error}"
