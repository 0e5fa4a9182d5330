"""Cleaning: an answer without what models put around it: scratch work, tags, a block of code."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from palaver.messages.normalize import cleaned

__all__ = ["FENCE", "behind", "clean"]

FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
"""The line that begins or ends a block of code."""

_THOUGHTS = r"(?:\w+:)?(?:analysis|reasoning|reflection|scratchpad|think|thinking|thoughts?)"
_TAG = re.compile(
    rf"(?P<opens><{_THOUGHTS}(?:\s[^<>\n]*)?>|\[think\]|◁think▷)|</{_THOUGHTS}\s*>|\[/think\]|◁/think▷", re.IGNORECASE
)
"""How models mark what they think before they answer: `<think>` (DeepSeek R1, Qwen 3), `<analysis>` and `<thinking>` (asked for by prompts of Claude
Code and others), `[THINK]` (Magistral), `◁think▷` (Kimi), `<seed:think>` (Seed-OSS). Where a template begins it, only its end is in the answer."""

_HEADING = re.compile(r"[ \t]*(?:\d+[.)][ \t]*)?(?:(#{1,6})(?!#)|\*\*|__|\|)(?P<head>[^\n]*[^\W_][^\n]*)")
_BESIDE = re.compile(r"[(:|\uff08\uff1a]|\s[\u2014\u2013-]\s|\*\*|__")
_WORD = re.compile(r"[^\W_]+")
_MARKED = 7
"""How deep a heading is that has no hashes: a bold line, or the first cell of a row."""

_ITEM = re.compile(r"[ \t]*(?:[-*+>|#\u2022]|\d+[.)])")
"""What begins a line that is one of a list, a quotation, a row or a heading: a tag at its end is what it speaks of."""

_TAGGED = re.compile(
    r"\A(?:[^\n<#]*\n\s*)?<(summary|answer|final_answer|output|response|result)>((?:(?!</\1>).)*)(?:</\1>\s*)?\Z",
    re.DOTALL | re.IGNORECASE,
)
_WRAPPED = re.compile(r"\A(```|~~~)(?:markdown|md|text)?[ \t]*\n([#*|<\[◁].*)\n\1\Z", re.DOTALL | re.IGNORECASE)
_LAYERS = 4
"""So many things may stand around an answer: each in the one before."""


def clean(text: str) -> str:
    """Give an answer as it can be stored and sent, without the scratch work that some models put before it, and what some put around it.

    Scratch work that never ends is no answer, and neither is anything behind it. Below a heading of the answer a tag is a word like others, but for scratch
    work without a heading whose two tags each stand alone on a line.
    """
    said = cleaned(text).strip()
    for _ in range(_LAYERS):
        before, said = said, _unwrapped(_Reader(said).spoken().strip())
        if said == before:
            break
    return said


def behind(text: str) -> str:
    """Give what stands behind the end of scratch work with which a line begins, where no tag is before it: its beginning is in no answer; else nothing."""
    tag = _TAG.search(text)
    if tag is None or tag["opens"] is not None:
        return ""
    before = text[text.rfind("\n", 0, tag.start()) + 1 : tag.start()]
    return "" if before.strip() else text[tag.end() :]


def _unwrapped(text: str) -> str:
    """Give what stands in a tag, or in the block of code, that an answer is nothing but."""
    if inside := _TAGGED.match(text):
        return inside[2].strip()
    inside = _WRAPPED.match(text)
    return inside[2].strip() if inside and len(FENCE.findall(inside[2])) % 2 == 0 else text


@dataclass(frozen=True, slots=True)
class _Tag:
    """A tag, from one place to another; `first` and `last` where nothing else stands before and behind it in its line."""

    start: int
    end: int
    opens: bool
    first: bool
    last: bool

    @property
    def alone(self) -> bool:
        return self.first and self.last


@dataclass(frozen=True, slots=True)
class _Line:
    """A line, with the heading that it is: how deep it is, 0 for none, and its name."""

    start: int
    end: int
    depth: int
    name: str
    tags: list[_Tag]


@dataclass
class _Said:
    """What was taken for the answer so far.

    Attributes:
        kept: Its pieces.
        empty: Whether they are blank.
        depth: How deep its highest headings are; 0 where it has none.
        again: Up to where each of those stands again.
    """

    kept: list[str] = field(default_factory=list)
    empty: bool = True
    depth: int = 0
    again: float = math.inf

    def take(self, piece: str, line: _Line, last: Mapping[str, int], *, code: bool) -> None:
        """Take a line, or the rest of one."""
        self.kept.append(piece)
        self.empty = self.empty and not piece.strip()
        if code or not line.depth or (self.depth and line.depth > self.depth):
            return
        self.again = last[line.name] if line.depth != self.depth else min(self.again, last[line.name])
        self.depth = line.depth


class _Reader:
    """Reads an answer once from beginning to end, and leaves out the scratch work. What stands in a block of code only speaks of it."""

    def __init__(self, text: str) -> None:
        """Find the lines, headings and tags of a text."""
        self._text = text
        self._lines = _lines(text)
        self._last = {line.name: line.start for line in self._lines if line.depth}
        self._headings = [line.start for line in self._lines if line.depth]
        tags = [(tag, line) for line in self._lines for tag in line.tags if not tag.opens]
        self._ends = [tag for tag, _ in tags]
        self._starts = [tag.start for tag in self._ends]
        self._below = self._headings[-1] if self._headings else -1
        outer = (tag.start for tag, line in tags if tag.first or (tag.last and not _ITEM.match(text, line.start)))
        self._outer = max(outer, default=-1)
        self._above = max((tag.start for tag in self._ends if tag.first and tag.start < self._below), default=-1)

    def spoken(self) -> str:
        """Give the text without the scratch work."""
        said, code, at = _Said(), False, 0
        for line in self._lines:
            at = max(at, line.start)
            number = 0
            while at <= line.end and not code:
                while number < len(line.tags) and line.tags[number].start < at:
                    number += 1
                rest = line.tags[number : number + 1] + line.tags[max(number + 1, len(line.tags) - 1) :]
                tag = next((tag for tag in rest if self._counts(tag, line, at, said)), None)
                if tag is None:
                    break
                if tag.opens:
                    said.take(self._text[at : tag.start], line, self._last, code=True)
                    at = self._behind(tag)
                else:
                    said, at = _Said(), tag.end  # it began before the answer
            if at <= line.end:
                code ^= FENCE.match(self._text[at : line.end]) is not None
                said.take(self._text[at : line.end], line, self._last, code=code)
                at = line.end + 1
        return "\n".join(said.kept)

    def _behind(self, tag: _Tag) -> int:
        """Give where the scratch work ends that a tag begins."""
        number = bisect_left(self._starts, tag.end)
        return self._ends[number].end if number < len(self._ends) else len(self._text) + 1

    def _counts(self, tag: _Tag, line: _Line, at: int, said: _Said) -> bool:
        """Tell whether a tag begins or ends scratch work, or is a word of the answer.

        An end that was never begun counts where nothing of the answer is lost by it: every highest heading before it stands again behind it.
        """
        first = tag.first or not self._text[at : tag.start].strip()
        if not tag.opens:
            if not (first or (tag.last and tag.end < self._below)):
                return False
            return tag.end < said.again or (first and tag.end == len(self._text))
        if said.empty and first:
            return True
        if said.depth:
            return tag.alone and self._is_aside(tag)
        if first:
            return tag.last or self._outer > tag.start
        return tag.last and self._above > tag.start and _ITEM.match(self._text, line.start) is None

    def _is_aside(self, tag: _Tag) -> bool:
        """Tell whether a tag alone on its line is ended by another one, with no heading between them."""
        number = bisect_left(self._starts, tag.end)
        if number == len(self._ends) or not self._ends[number].alone:
            return False
        heading = bisect_left(self._headings, tag.end)
        return heading == len(self._headings) or self._headings[heading] > self._ends[number].start


def _lines(text: str) -> Sequence[_Line]:
    found: list[_Line] = []
    start = 0
    for said in text.split("\n"):
        stripped = len(said) - len(said.lstrip()), len(said.rstrip())
        tags = [
            _Tag(
                start=start + tag.start(),
                end=start + tag.end(),
                opens=tag["opens"] is not None,
                first=tag.start() <= stripped[0],
                last=tag.end() >= stripped[1],
            )
            for tag in _TAG.finditer(said)
        ]
        depth, name = _heading(said)
        found.append(_Line(start=start, end=start + len(said), depth=depth, name=name, tags=tags))
        start += len(said) + 1
    return found


def _heading(line: str) -> tuple[int, str]:
    """Give how deep a heading is and its name, without what stands beside it; 0 where a line is none."""
    marked = _HEADING.match(line)
    if marked is None:
        return 0, ""
    head = marked["head"].strip()
    name = " ".join(_WORD.findall(_BESIDE.split(head, maxsplit=1)[0])) or head
    return len(marked[1]) if marked[1] else _MARKED, name.casefold()
