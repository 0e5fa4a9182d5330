"""Calls and results: ids, and every call answered exactly once where its provider looks for the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from palaver.wire.check.shape import show
from palaver.wire.profiles import Calls
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "Round", "identified", "objects", "paired", "strings"]

RULES = frozenset(
    {
        Rule.CALL_ID,
        Rule.CALL_DUPLICATE,
        Rule.CALL_UNANSWERED,
        Rule.CALL_ARGUMENTS,
        Rule.CALL_COUNT,
        Rule.RESULT_ORPHAN,
        Rule.RESULT_DUPLICATE,
        Rule.RESULT_PLACE,
    }
)


@dataclass(frozen=True, slots=True)
class Round:
    """The calls of one assistant turn and the results standing where they are looked for, each by the place of its id.

    Results that stand anywhere else make a round of their own, without calls.
    """

    calls: tuple[Place, ...] = ()
    results: tuple[Place, ...] = ()


def identified(rounds: Iterable[Round], rules: Calls) -> Iterator[Violation]:
    """Check the form of every call's id, that it is its call's alone, and how many calls one turn holds."""
    seen: set[str] = set()
    for each in rounds:
        if rules.unique == "turn":
            seen = set()
        if rules.most is not None and len(each.calls) > rules.most:
            message = f"{len(each.calls)} calls in one turn, {rules.most} are taken"
            yield each.calls[rules.most].breaks(Rule.CALL_COUNT, message)
        for call in _spelt(each.calls):
            if not rules.id.fullmatch(call.text):
                yield call.breaks(Rule.CALL_ID, f"{show(call.text)} does not match {rules.id.pattern}")
            if call.text in seen:
                yield call.breaks(Rule.CALL_DUPLICATE, f"{show(call.text)} is the id of an earlier call")
            seen.add(call.text)


def paired(rounds: Sequence[Round]) -> Iterator[Violation]:
    """Check that every call has exactly one result in its round and every result a call there.

    A result that is only in the wrong place is reported once, as that, and its call not as unanswered.
    """
    open_calls: list[Place] = []
    strays: list[Place] = []
    for each in rounds:
        calls, results = _spelt(each.calls), _spelt(each.results)
        called = {call.text for call in calls}
        answered = {result.text for result in results}
        open_calls += [call for call in calls if call.text not in answered]
        strays += [result for result in results if result.text not in called]
        counts = Counter[str]()
        for result in results:
            counts[result.text] += 1
            if counts[result.text] > 1 and result.text in called:
                yield result.breaks(Rule.RESULT_DUPLICATE, f"{show(result.text)} has a result already")
    misplaced = {call.text for call in open_calls} & {stray.text for stray in strays}
    for call in open_calls:
        if call.text not in misplaced:
            yield call.breaks(Rule.CALL_UNANSWERED, f"no result for {show(call.text)} where it is looked for")
    for stray in strays:
        if stray.text in misplaced:
            yield stray.breaks(Rule.RESULT_PLACE, f"the result of {show(stray.text)} is not where it is looked for")
        else:
            yield stray.breaks(Rule.RESULT_ORPHAN, f"no call {show(stray.text)} that this could be the result of")


def _spelt(ids: Iterable[Place]) -> list[Place]:
    """Give the ids that are strings; missing and mistyped ones are the shape's business."""
    return [each for each in ids if isinstance(each.value, str)]


def strings(arguments: Iterable[Place]) -> Iterator[Violation]:
    """Check that calls have their arguments as JSON text.

    What the text says is the model's: providers send what is no JSON and take it back («the model does not always generate
    valid JSON», API reference), so it goes back as it came.
    """
    for each in arguments:
        if each and not isinstance(each.value, str):
            yield each.breaks(Rule.CALL_ARGUMENTS, f"expected JSON in a string, got {show(each.value)}")


def objects(arguments: Iterable[Place]) -> Iterator[Violation]:
    """Check that calls have their arguments as an object."""
    for each in arguments:
        if each and not isinstance(each.value, Mapping):
            yield each.breaks(Rule.CALL_ARGUMENTS, f"expected an object, got {show(each.value)}")
