"""The retention gate: which distinctive values of what leaves a summary lost, a block that says them again, and when that is no summary.

What summaries lose is known: of 43 real compactions decisions survive in 77 %, file paths in 9.8 %, measured numbers in 1.9 %, commands in 0.2 %
(deja-vu#543). A deterministic gate over distinctive values is in maf-compaction 0.9 (0.8 of the values with a digit) and in
dsh-compaction-fidelity (0.75 of them; else a block of compensation is appended). The bar here is the higher one, and its two ends are both there:
what is lost is said again, as far as there is room; and a summary below the bar even then, which itself kept less than half of what the real ones
keep of their paths, is refused: it costs its place and says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from palaver.context.record.facts import Facts
from palaver.context.summary.inventions import distinctive

__all__ = ["ENOUGH", "Left", "Retention", "compensation", "retention", "values"]

ENOUGH = 0.8
"""Which share of the values must be kept (maf-compaction 0.9)."""

NEXT_TO_NOTHING = 0.05
"""A summary that says a smaller share of the values itself kept next to nothing: half of the 9.8 % of paths that survive in real ones."""

_ENOUGH_TO_TELL = 8
"""Fewer values tell nothing of a summary."""

_NUMBER = re.compile(
    r"(?<![\w.])(?:\d{3,}|\d[\d,._]*[,._]\d+)(?:\s?%|ms|s|MB|KB|GB)?(?!\w)|(?<![\w.])\d+(?:\s?%|ms\b|MB\b|KB\b|GB\b)"
)
"""Numbers of three digits or more, with a point in them, or with a unit: shorter ones count things, and are everywhere."""

_ID = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])[A-Za-z0-9_-]{6,}\b|#\d+\b")

_OF_WORDS, _OF_OUTPUT = 8, 4
"""Values of one text that count: of what somebody said, and of what a tool put out, so that no listing outweighs all else."""

_OF_TEXTS, _OF_FILES, _OF_TROUBLES = 48, 16, 8
"""Values that count in all: of texts, of files and as many commands, of open errors; the newest."""

_SAID_AGAIN = 24
"""Values that are said again at most: beyond that it is a list and no summary."""

_LONGEST = 240
"""Characters of a value that is said again; longer ones are the record's, with a handle."""


@dataclass(frozen=True, slots=True)
class Left:
    """A text that leaves.

    Attributes:
        text: What it says.
        output: Whether a tool put it out, rather than somebody said it.
    """

    text: str
    output: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """What was kept of the values of the sources.

    Attributes:
        kept: The values that are said.
        lost: Those that are not, in the order in which they matter.
        own: How many values the summary itself says, of these or of others that were said.
    """

    kept: tuple[str, ...]
    lost: tuple[str, ...]
    own: int = 0

    @property
    def share(self) -> float:
        """Which share was kept; 1.0 where there was nothing to keep."""
        total = len(self.kept) + len(self.lost)
        return len(self.kept) / total if total else 1.0

    @property
    def empty(self) -> bool:
        """Whether it was no summary: too little is kept, whatever stands beside it, and of that next to nothing by itself."""
        total = len(self.kept) + len(self.lost)
        return total >= _ENOUGH_TO_TELL and self.share < ENOUGH and self.own < NEXT_TO_NOTHING * total


def values(facts: Facts, texts: Iterable[Left] = ()) -> tuple[str, ...]:
    """Give the distinctive values of what is summarised, those that matter most first.

    What the user said must be, files that were changed, open errors, commands; then numbers, identifiers, paths and addresses in the texts that
    leave, each newest first, and files that were read.

    Args:
        facts: What code gathered of what leaves.
        texts: The texts themselves, the newest first: facts are bounded, and say nothing of what came between first and last.
    """
    found: dict[str, None] = {}
    found.update(dict.fromkeys(said.text for said in facts.rules))
    changed = [file.path for file in reversed(facts.files) if file.wrote]
    troubles = [trouble.what for trouble in reversed(facts.troubles) if not trouble.closed]
    found.update(dict.fromkeys((*changed[:_OF_FILES], *troubles[:_OF_TROUBLES])))
    found.update(dict.fromkeys(command.run for command in facts.commands[-_OF_FILES:][::-1]))
    words = [Left(said.text) for said in (facts.last, *reversed(facts.asks), facts.goal) if said is not None]
    found.update(dict.fromkeys(_newest((*texts, *words))))
    seen = [file.path for file in reversed(facts.files) if not file.wrote]
    found.update(dict.fromkeys(seen[:_OF_FILES]))
    return tuple(value for value in found if value)


def _newest(texts: Iterable[Left]) -> list[str]:
    """Give the values of texts, as many as count."""
    found: dict[str, None] = {}
    for left in texts:
        found.update(dict.fromkeys(_in(left)))
        if len(found) >= _OF_TEXTS:
            break
    return list(found)[:_OF_TEXTS]


def _in(left: Left) -> tuple[str, ...]:
    """Give the values of one text. A bare number that a tool put out may be of anything; one that somebody repeated is not."""
    if left.output:
        return distinctive(left.text)[:_OF_OUTPUT]
    return _all(left.text)[:_OF_WORDS]


def _all(text: str) -> tuple[str, ...]:
    found = dict.fromkeys(distinctive(text))
    for pattern in (_NUMBER, _ID):
        found.update(dict.fromkeys(match[0].strip() for match in pattern.finditer(text)))
    return tuple(found)


def retention(text: str, wanted: tuple[str, ...], beside: str = "") -> Retention:
    """Tell which values a text says, or what stands beside it; white space between words does not matter.

    Args:
        text: The summary.
        wanted: The values.
        beside: What stands beside it.
    """
    said = " ".join(f"{text}\n{beside}".split())
    kept = tuple(value for value in wanted if _says(said, value))
    there = frozenset(kept)
    own = sum(_says(" ".join(text.split()), value) for value in kept)
    return Retention(kept, tuple(value for value in wanted if value not in there), own)


def own_values(text: str, sources: Iterable[str]) -> int:
    """Count the distinctive values that a text says and that were said: whatever it is about, it is about something."""
    mine = frozenset(_all(text))
    said = " ".join("\n".join(sources).split()) if mine else ""
    return sum(_says(said, value) for value in mine)


def _says(text: str, value: str) -> bool:
    """Tell whether a text says a value; a number inside a longer one is another number."""
    if value.isdecimal():
        return re.search(rf"(?<!\d){value}(?!\d)", text) is not None
    return " ".join(value.split()) in text


def compensation(lost: tuple[str, ...], room: int, count: Callable[[str], int]) -> str:
    """Give a block that says lost values again, as many as there is room for and never more than a few; an empty text for none.

    Args:
        lost: The values, those that matter most first.
        room: Tokens that it may have.
        count: Counts tokens.
    """
    head = "Also, word for word:"
    lines = list(_fitting(lost, room - count(head) - 1, count))
    return "\n".join([head, *lines]) if lines else ""


def _fitting(lost: Iterable[str], room: int, count: Callable[[str], int]) -> Iterator[str]:
    taken = 0
    for value in lost:
        line = f"- {' '.join(value.split())}"
        size = count(line) + 1
        if taken < _SAID_AGAIN and size <= room and len(line) <= _LONGEST:
            taken, room = taken + 1, room - size
            yield line
