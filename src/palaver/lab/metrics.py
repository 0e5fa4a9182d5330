"""The metrics, each a small pure function with its definition and its source.

Future-reference recall (FRR): the share of the agent's next references that the view still contains.

Source: reference definition of this project ("future-reference recall": identifiers in the arguments of a tool call that had occurred before
it; the share of them that is in the view before that call). Its nearest relatives are the coverage of distinctive values that
maf-compaction demands before it drops a group, and the fingerprints of dsh-compaction-fidelity. A recorded agent refers to what *its*
context let it refer to, so FRR is an upper bound of what is needed.

Evidence retention: the share of a call's references that the view before it still shows as content, and not only as a word.

Future-reference recall (`references`) counts a name anywhere: a bare list of all names reaches nearly 100 %. Evidence retention requires the
*evidence*: the words around the name in the log. A reference counts as kept if the view contains

- a block with the name, as recorded; or
- in any other text (a shortened output, a file that was brought back, a record, a summary) a *passage* of the log with the name: the name with
  the words that follow or precede it, up to the eighth plain word, word for word and in order. White space does not count; a plain word is a word
  that is not an identifier.

Any occurrence in the log counts, as any of several turns with the answer does for `recall_any`.

Laws, each a property test (`tests/lab/test_evidence_of_calls.py`):

1. It is 1 for the view that leaves nothing out.
2. It is 0 for an empty view.
3. A text that consists only of identifiers adds nothing: it has no plain word, and so no passage.
4. It is monotone: a view that shows more blocks, or more of the log's text, has no less.
5. It is never more than future-reference recall.
6. A handle is not content. Content that a lookup brings back is counted separately (`evidence_recall`), and is charged.

Source: evidence retention is what LoCoMo (task_eval/evaluation.py: the share of a question's `evidence` turns that are in the context) and LongMemEval
(arXiv 2410.10813: turns marked `has_answer`) measure for one question at the end; here a recorded call is the question, and its references mark the turns.
The retention gates of maf-compaction and dsh-compaction-fidelity require distinctive values
word for word, because only a quotation shows that a text was kept. The eight words are our choice: about a line.

The front: the policies that no other one beats in both bill and retention.

Source: Pareto dominance (Börzsönyi, Kossmann, Stocker, "The Skyline Operator", ICDE 2001): a point is dominated by one that is at least as good in
every coordinate, and better in one.

Intervals: the uncertainty of a figure over sessions, by resampling the sessions.

Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979), percentile intervals; paired, because every policy is replayed on the same
sessions, and a session that is expensive under one is expensive under all. Calls of one session are not independent, so sessions are resampled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

_WORD = re.compile(r"[A-Za-z0-9_@](?:[\w@./:#+-]*\w)?")
_NUMBER = re.compile(r"\d[\d.,]*\Z")
_CODE = re.compile(r"[A-Z]{3,}\Z")
_TELLING = re.compile(r"[\d_./@]")
_LEAST = 3
_LONGEST = 200


def identifiers(text: str) -> frozenset[str]:
    """Return the identifiers in a text: words of at least three characters that name something exactly.

    These are paths, mail addresses, names that contain a digit, `_`, `.`, `/` or `@`, numbers of at least three digits, and codes in capitals.
    Words of prose are not identifiers. A word continues over `@ . / : # + -` between letters and digits.
    """
    return frozenset(word for word in _WORD.findall(text) if _names(word))


def _names(word: str) -> bool:
    if not _LEAST <= len(word) <= _LONGEST:
        return False
    if _NUMBER.match(word):
        return sum(letter.isdigit() for letter in word) >= _LEAST
    return bool(_TELLING.search(word) or _CODE.match(word))


def in_arguments(arguments: Mapping[str, Any]) -> frozenset[str]:
    """Return the identifiers in the values of a call's arguments; the names of arguments are the tool's, not the agent's."""
    return frozenset(name for text in _texts(arguments) for name in identifiers(text))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


_PLAIN = 8
"""The number of plain words of a passage."""

_PIECES = 120
"""The maximum number of pieces in a passage. If they contain too few plain words, there is no passage."""

_BEHIND = 600
"""The number of characters before a name in which its passage can begin."""

_PIECE = re.compile(r"\w+(?:[@./:#+-]+\w+)*|[^\w\s]")


def passages(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the passages of a text around a name: with the words after it, and with the words before it, if there are enough plain words.

    Args:
        text: The text.
        start: The start of the name.
        end: The end of the name.
    """
    following = _upto(piece[0] for piece in _PIECE.finditer(text, start))
    if following is not None:
        yield f">{following}"
    begin = max(start - _BEHIND, 0)
    pieces = [piece[0] for piece in _PIECE.finditer(text, begin, end)]
    preceding = _upto(reversed(pieces[1:] if begin else pieces))  # the first may have been cut in two
    if preceding is not None:
        yield f"<{preceding}"


def _upto(pieces: Iterable[str]) -> str | None:
    """Return pieces up to the last plain word that is needed; None if there are too few."""
    taken, plain = [], 0
    for piece in pieces:
        taken.append(piece)
        plain += _is_plain(piece)
        if plain == _PLAIN:
            return " ".join(taken)
        if len(taken) == _PIECES:
            return None
    return None


@lru_cache(maxsize=1 << 16)
def _is_plain(piece: str) -> bool:
    return (piece[0].isalnum() or piece[0] == "_") and not identifiers(piece)


_Name = TypeVar("_Name", bound=Hashable)


class Worth(NamedTuple):
    """The cost and the retention of a policy.

    Attributes:
        bill: The bill, including recalls; lower is better.
        recall: The references of later calls that the view contains, as a share or a count; higher is better.
    """

    bill: float
    recall: float


def beats(one: Worth, other: Worth) -> bool:
    """Return whether one is at least as good as another in both, and better in one. With equal recall, the cheaper one wins."""
    return one.bill <= other.bill and one.recall >= other.recall and one != other


def front(points: Mapping[_Name, Worth]) -> frozenset[_Name]:
    """Return the names of the points that no other one beats; of points that are equal in both, all or none."""
    return frozenset(name for name, point in points.items() if not any(beats(one, point) for one in points.values()))


_Row: TypeAlias = tuple[float, ...]

_TAIL = 0.025


class Interval(NamedTuple):
    """A figure and its interval, which contains 95 of 100 resampled figures.

    Attributes:
        value: The figure over all sessions.
        low: The lower end.
        high: The upper end.
    """

    value: float
    low: float
    high: float


def ratio_interval(pairs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0) -> Interval | None:
    """Return the ratio of two sums over sessions, such as hits over references, and its interval.

    Args:
        pairs: The numerator and denominator of each session.
        resamples: The number of resamplings.
        seed: The seed of the resampling; equal seeds lead to equal intervals.

    Returns:
        None if the sum of denominators is 0.
    """
    value = _ratio(_sums(pairs))
    return None if value is None else _interval(value, map(_ratio, _resampled(pairs, resamples, seed)))


def paired_interval(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0
) -> Interval | None:
    """Return the difference of two ratios over the same sessions, the first minus the second, and its interval.

    Args:
        ours: The numerator and denominator of each session.
        theirs: The same for the other policy, session by session.
        resamples: The number of resamplings.
        seed: The seed of the resampling.

    Returns:
        None if a sum of denominators is 0.
    """
    value = _less(_ratio(_sums(ours)), _ratio(_sums(theirs)))
    if value is None:
        return None
    both = zip(_resampled(ours, resamples, seed), _resampled(theirs, resamples, seed), strict=True)
    return _interval(value, (_less(_ratio(one), _ratio(other)) for one, other in both))


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _ratio(sums: tuple[float, ...]) -> float | None:
    above, below = sums
    return above / below if below else None


def _sums(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _resampled(rows: Sequence[_Row], resamples: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield the sums over each resampling. For the same number of sessions and the same seed, the same sessions are drawn."""
    columns = tuple(zip(*rows, strict=True)) or ((), ())
    for drawn in _draws(len(rows), resamples, seed):
        yield tuple(sum(drawn(column)) for column in columns)


_DRAWN = 1_000_000
"""The total number of drawn sessions. It bounds time and memory: with more than a thousand sessions there are fewer than a thousand
resamplings."""

_FEWEST = 100
"""The minimum number of resamplings for any number of sessions, if as many are requested: an end of the interval is the third of a hundred."""


@lru_cache(maxsize=4)  # every figure of every policy is resampled with the same draws
def _draws(count: int, resamples: int, seed: int) -> tuple[Callable[[Sequence[float]], tuple[float, ...]], ...]:
    chance, places = random.Random(seed), list(range(count))  # noqa: S311 - resampling, not secrets
    often = min(resamples, max(_DRAWN // count, _FEWEST)) if count else 0
    return tuple(_drawn(chance.choices(places, k=count)) for _ in range(often))


def _drawn(places: list[int]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return a function that selects the values at some places, even at a single one."""
    taken = itemgetter(*places, places[0])
    return lambda values: taken(values)[:-1]


def _interval(value: float, drawn: Iterable[float | None]) -> Interval:
    """Return the interval that contains 95 of 100 resamplings, without those whose denominator is 0."""
    values = sorted(one for one in drawn if one is not None)
    if not values:
        return Interval(value, value, value)
    return Interval(value, values[int(_TAIL * (len(values) - 1))], values[round((1 - _TAIL) * (len(values) - 1))])
