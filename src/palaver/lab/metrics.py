"""The metrics, each a small pure function with its definition and its source.

Future-reference recall (FRR): of what the agent was to refer to next, how much the view still held.

Source: reference definition of this project ("future-reference recall": identifiers in the arguments of a tool call that had occurred before
it; the share of them that is in the view before that call). Its nearest relatives are the coverage of distinctive values that
maf-compaction demands before it drops a group, and the fingerprints of dsh-compaction-fidelity. A recorded agent refers to what *its*
context let it refer to, so FRR is an upper bound of what is needed.

Evidence retention: of what a call refers to, how much the view before it still holds as content, and not as a word.

Future-reference recall (`references`) counts a name wherever it stands: a bare list of all names that were ever said has nearly all of it. Evidence
retention asks for the *evidence*: the words among which the log said the name. A reference counts as kept if the view holds

- a block that says it, as the log has it; or
- in any other text (a shortened output, a file that was brought back, a record, a summary) a *passage* of the log that says it: the name with
  what follows it or what precedes it, up to the eighth plain word, word for word and in order. White space does not count; a plain word is one that is
  no identifier.

Any place at which the log said it will do, as one of several turns that hold an answer does for `recall_any`.

Laws, each a property test (`tests/lab/test_evidence_of_calls.py`):

1. The view that leaves nothing out holds all of it.
2. A view of which nothing is left holds none of it.
3. A text of nothing but identifiers adds nothing, whatever stands between them: it has no plain word, and so no passage.
4. It is monotone: a view that shows more blocks, or more of the log's text, holds no less.
5. It is never more than future-reference recall: what counts here is in view.
6. A handle is no content. What a lookup brings back is counted beside it (`evidence_recall`), and is charged.

Source: evidence retention is what LoCoMo (task_eval/evaluation.py: the share of a question's `evidence` turns that are in the context) and LongMemEval
(arXiv 2410.10813: turns marked `has_answer`) measure for one question at the end; here a recorded call is the question, and what it refers to marks the turns.
That quoting, and not mentioning, is what shows that a text was kept: the retention gates of maf-compaction and dsh-compaction-fidelity demand distinctive
values word for word. The eight words are ours: about a line.

The front: which of several policies no other one beats, by their bills and what they keep.

Source: Pareto dominance (Börzsönyi, Kossmann, Stocker, "The Skyline Operator", ICDE 2001): a point is dominated by one that is at least as good in
every coordinate, and better in one.

Intervals: how sure a figure over sessions is, by resampling the sessions.

Source: Efron, "Bootstrap Methods: Another Look at the Jackknife" (1979), percentile intervals; paired, because every policy is replayed on the same
sessions, and a session that is dear under one is dear under all. Calls of one session are not independent, so sessions are resampled.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = [
    "Interval",
    "Worth",
    "beats",
    "front",
    "identifiers",
    "in_arguments",
    "paired_interval",
    "paired_share",
    "passages",
    "ratio_interval",
]

_WORD = re.compile(r"[A-Za-z0-9_@](?:[\w@./:#+-]*\w)?")
_NUMBER = re.compile(r"\d[\d.,]*\Z")
_CODE = re.compile(r"[A-Z]{3,}\Z")
_TELLING = re.compile(r"[\d_./@]")
_LEAST = 3
_LONGEST = 200


def identifiers(text: str) -> frozenset[str]:
    """Return the identifiers in a text: words of at least three characters that name something exactly.

    Those are paths, mail addresses, names with a digit, `_`, `.`, `/` or `@` in them, numbers of at least three digits, and codes in capitals.
    Words of prose are none. A word goes on over `@ . / : # + -` between letters and digits.
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
"""Plain words of a passage."""

_PIECES = 120
"""Pieces of a passage at most: where they hold fewer plain words there is none."""

_BEHIND = 600
"""Characters in front of a name in which its passage begins."""

_PIECE = re.compile(r"\w+(?:[@./:#+-]+\w+)*|[^\w\s]")


def passages(text: str, start: int, end: int) -> Iterator[str]:
    """Return the passages of a text around a name: with what follows, and with what precedes, where there are plain words enough.

    Args:
        text: The text.
        start: Where the name begins.
        end: Where it ends.
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
    """Return pieces up to the last plain word that is needed; None where there are too few of them."""
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
    """What a policy costs, and what it keeps.

    Attributes:
        bill: The bill, recalls charged; the lower the better.
        recall: What later calls refer to and the view holds, as a share or a count; the higher the better.
    """

    bill: float
    recall: float


def beats(one: Worth, other: Worth) -> bool:
    """Return whether one is at least as good as another in both, and better in one: for the same recall, the cheaper one wins."""
    return one.bill <= other.bill and one.recall >= other.recall and one != other


def front(points: Mapping[_Name, Worth]) -> frozenset[_Name]:
    """Return the names of the points that no other one beats; of points that are equal in both, all or none."""
    return frozenset(name for name, point in points.items() if not any(beats(one, point) for one in points.values()))


_Row: TypeAlias = tuple[float, ...]

_TAIL = 0.025


class Interval(NamedTuple):
    """A figure and the interval that holds 95 of 100 resampled ones.

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
        pairs: For each session, what goes above and what goes below.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with: the same seed gives the same interval.

    Returns:
        None where there is nothing below.
    """
    value = _ratio(_sums(pairs))
    return None if value is None else _interval(value, map(_ratio, _resampled(pairs, resamples, seed)))


def paired_interval(
    ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], *, resamples: int = 1_000, seed: int = 0
) -> Interval | None:
    """Return the difference of two ratios over the same sessions, the first less the second, and its interval.

    Args:
        ours: For each session, what goes above and what goes below.
        theirs: The same for what is compared with, session for session.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with.

    Returns:
        None where one of them has nothing below.
    """
    value = _less(_ratio(_sums(ours)), _ratio(_sums(theirs)))
    if value is None:
        return None
    both = zip(_resampled(ours, resamples, seed), _resampled(theirs, resamples, seed), strict=True)
    return _interval(value, (_less(_ratio(one), _ratio(other)) for one, other in both))


def paired_share(
    ours: Sequence[_Row],
    theirs: Sequence[_Row],
    wins: Callable[[tuple[float, ...], tuple[float, ...]], bool],
    *,
    resamples: int = 1_000,
    seed: int = 0,
) -> float | None:
    """Return in what share of resamplings of the sessions one wins over another by its sums.

    Args:
        ours: For each session, what is added up.
        theirs: The same for what is compared with, session for session.
        wins: Tells whether the sums of the first win over those of the second.
        resamples: How often the sessions are resampled.
        seed: What the resampling begins with.

    Returns:
        None where nothing is resampled.
    """
    drawn = list(zip(_resampled(ours, resamples, seed), _resampled(theirs, resamples, seed), strict=True))
    return sum(wins(one, other) for one, other in drawn) / len(drawn) if drawn and ours else None


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _ratio(sums: tuple[float, ...]) -> float | None:
    above, below = sums
    return above / below if below else None


def _sums(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


def _resampled(rows: Sequence[_Row], resamples: int, seed: int) -> Iterator[tuple[float, ...]]:
    """Return the sums over each resampling; for the same number of sessions and the same seed, the same sessions are drawn."""
    columns = tuple(zip(*rows, strict=True)) or ((), ())
    for drawn in _draws(len(rows), resamples, seed):
        yield tuple(sum(drawn(column)) for column in columns)


_DRAWN = 1_000_000
"""Sessions that are drawn in all, so that the time and the memory that intervals take do not grow with the sessions: of more than a thousand
sessions there are fewer than a thousand resamplings."""

_FEWEST = 100
"""Resamplings that there are of any number of sessions, if so many are asked for: an end of the interval is the third of a hundred."""


@lru_cache(maxsize=4)  # every figure of every policy is resampled with the same draws
def _draws(count: int, resamples: int, seed: int) -> tuple[Callable[[Sequence[float]], tuple[float, ...]], ...]:
    chance, places = random.Random(seed), list(range(count))  # noqa: S311 - resampling, no secret
    often = min(resamples, max(_DRAWN // count, _FEWEST)) if count else 0
    return tuple(_drawn(chance.choices(places, k=count)) for _ in range(often))


def _drawn(places: list[int]) -> Callable[[Sequence[float]], tuple[float, ...]]:
    """Return what takes the values at some places, which may be one place only."""
    taken = itemgetter(*places, places[0])
    return lambda values: taken(values)[:-1]


def _interval(value: float, drawn: Iterable[float | None]) -> Interval:
    """Return the interval that holds 95 of 100; resamplings in which there is nothing below are left out."""
    values = sorted(one for one in drawn if one is not None)
    if not values:
        return Interval(value, value, value)
    return Interval(value, values[int(_TAIL * (len(values) - 1))], values[round((1 - _TAIL) * (len(values) - 1))])
