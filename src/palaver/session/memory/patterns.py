"""Regular expressions that cost what the text costs: a pattern becomes a machine that reads each character once.

A model chooses the pattern, and what it searches may have been chosen by somebody else; with an engine that goes back, `(a+)+$` on forty letters
takes minutes. (K. Thompson, "Regular expression search algorithm", CACM 11(6), 1968; the states that were met are kept, as in R. Cox, "Regular
Expression Matching Can Be Simple And Fast", 2007.) What needs going back (references, looking ahead) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from palaver.errors import InvalidInput

__all__ = ["Pattern"]

_LONGEST = 500
"""Characters of a pattern."""

_MOST_STATES = 4_000
"""States of its machine: repeats of repeats multiply."""

_DEEPEST = 40
"""Groups in groups."""

_MOST_KEPT = 2_000
"""Sets of states that are kept; behind that they are forgotten, and found again."""

Test: TypeAlias = Callable[[str], bool]

_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "w": lambda c: c.isalnum() or c == "_",
    "s": str.isspace,
    "D": lambda c: not c.isdecimal(),
    "W": lambda c: not (c.isalnum() or c == "_"),
    "S": lambda c: not c.isspace(),
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_EDGES = {"b": "b", "B": "B", "A": "^", "Z": "$"}
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{0,3}))?\}")


@dataclass(slots=True)
class _State:
    """A state: where it goes with a character that passes the test, or freely (then only if the place is right)."""

    test: Test | None = None
    out: list[int] = field(default_factory=list)
    place: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of a machine: where it begins, and the states whose way out is still open."""

    start: int
    ends: tuple[int, ...]


class Pattern:
    """A regular expression over lines: literals, `.`, classes, groups, `|`, `*`, `+`, `?`, `{m,n}`, `^`, `$` and edges of words."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        """Compile a pattern.

        Raises:
            InvalidInput: It is none, is too long, or needs an engine that goes back.
        """
        if len(pattern) > _LONGEST:
            raise InvalidInput(f"The pattern has {len(pattern):,} characters, and may have {_LONGEST}.")
        self._fold = ignore_case
        self._states: list[_State] = []
        self._text, self._at, self._depth = pattern, 0, 0
        part = self._either()
        if self._at < len(pattern):
            raise self._wrong("a ) that nothing opened")
        self._goal = self._state()
        self._join(part, self._goal)
        self._start = part.start
        self._kept: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def found(self, line: str) -> bool:
        """Tell whether a line holds it; reads each character once."""
        text = line.casefold() if self._fold else line
        alive: frozenset[int] = frozenset()
        before = ""
        for character in (*text, ""):
            alive = self._reach(alive | {self._start}, before, character)
            if self._goal in alive:
                return True
            alive = self._step(alive, character)
            before = character
        return False

    def _step(self, alive: frozenset[int], character: str) -> frozenset[int]:
        if not character:
            return frozenset()
        key = (alive, "", character)
        if key not in self._kept:
            if len(self._kept) > _MOST_KEPT:
                self._kept.clear()
            states = (self._states[each] for each in alive)
            self._kept[key] = frozenset(
                out for state in states if state.test is not None and state.test(character) for out in state.out
            )
        return self._kept[key]

    def _reach(self, states: frozenset[int], before: str, after: str) -> frozenset[int]:
        """Give all states that can be reached without a character, at a place between two."""
        key = (states, _sort(before) or "^", _sort(after) or "$")
        if key not in self._kept:
            todo, seen = list(states), set(states)
            while todo:
                state = self._states[todo.pop()]
                if state.test is None and _fits(state.place, before, after):
                    new = [each for each in state.out if each not in seen]
                    seen.update(new)
                    todo += new
            self._kept[key] = frozenset(seen)
        return self._kept[key]

    # --- building ---------------------------------------------------------------------------------------------------------------

    def _state(self, test: Test | None = None, *out: int, place: str = "") -> int:
        if len(self._states) >= _MOST_STATES:
            raise InvalidInput("The pattern is too large.", hint="Repeat less.")
        self._states.append(_State(test, list(out), place))
        return len(self._states) - 1

    def _join(self, part: _Part, to: int) -> None:
        for end in part.ends:
            self._states[end].out.append(to)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _wrong(self, what: str) -> InvalidInput:
        return InvalidInput(
            f"{self._text!r} is no pattern: {what}, at character {min(self._at, len(self._text))}.",
            hint="Write \\ before a character that is meant as it stands.",
        )

    def _either(self) -> _Part:
        parts = [self._row()]
        while self._peek() == "|":
            self._take()
            parts.append(self._row())
        if len(parts) == 1:
            return parts[0]
        fork = self._state(None, *(part.start for part in parts))
        return _Part(fork, tuple(end for part in parts for end in part.ends))

    def _row(self) -> _Part:
        empty = self._state()
        row = _Part(empty, (empty,))
        while self._peek() not in {"", "|", ")"}:
            part = self._repeated()
            self._join(row, part.start)
            row = _Part(row.start, part.ends)
        return row

    def _repeated(self) -> _Part:
        begin = self._at
        part = self._one()
        end = self._at
        while True:
            counted = _COUNT.match(self._text, self._at)
            if counted:
                self._at = counted.end()
                part = self._times(begin, end, counted)
            elif self._peek() and self._peek() in "*+?":
                part = self._with(part, self._take())
            else:
                return part
            if self._peek() == "?":
                self._take()  # fewest first: for finding whether a line holds it, the same
            end = self._at

    def _with(self, part: _Part, how: str) -> _Part:
        fork = self._state(None, part.start)
        if how == "?":
            return _Part(fork, (*part.ends, fork))
        self._join(part, fork)
        return _Part(fork if how == "*" else part.start, (fork,))

    def _times(self, begin: int, end: int, counted: re.Match[str]) -> _Part:
        """Write a piece out as often as it is counted."""
        least = int(counted[1])
        most = least if not counted[2] else int(counted[3]) if counted[3] else None
        if most is not None and most < least:
            raise self._wrong("a count that ends before it begins")
        empty = self._state()
        row = _Part(empty, (empty,))
        for number in range(max(least, most or 0) + (most is None)):
            part = self._again(begin, end)
            if number >= least:
                part = self._with(part, "?" if most is not None else "*")
            self._join(row, part.start)
            row = _Part(row.start, part.ends)
        return row

    def _again(self, begin: int, end: int) -> _Part:
        after, text = self._at, self._text
        self._at, self._text = begin, text[:end]
        try:
            return self._repeated()
        finally:
            self._at, self._text = after, text

    def _one(self) -> _Part:
        character = self._take()
        if character == "(":
            return self._group()
        if character in {"^", "$"}:
            return self._free(character)
        if character in {"*", "+", "?"}:
            raise self._wrong(f"a {character} with nothing before it")
        if character == "\\" and self._peek() in _EDGES:
            return self._free(_EDGES[self._take()])
        test = self._set() if character == "[" else self._test(character)
        state = self._state(test)
        return _Part(state, (state,))

    def _free(self, place: str) -> _Part:
        state = self._state(place=place)
        return _Part(state, (state,))

    def _group(self) -> _Part:
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            raise self._wrong("a group that looks around, or has a name or flags")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong("groups in groups in groups")
        part = self._either()
        if self._take() != ")":
            raise self._wrong("a ( that nothing closes")
        self._depth -= 1
        return part

    def _test(self, character: str) -> Test:
        if character == ".":
            return lambda c: c != "\n"
        if character != "\\":
            return self._same(character)
        escaped = self._take()
        if not escaped:
            raise self._wrong("a \\ with nothing behind it")
        if escaped in _CLASSES:
            return _CLASSES[escaped]
        if escaped.isdecimal() and escaped != "0":
            raise self._wrong("a reference to a group")
        return self._same(_ESCAPES.get(escaped, escaped))

    def _same(self, character: str) -> Test:
        wanted = character.casefold() if self._fold else character
        return lambda c: c == wanted

    def _set(self) -> Test:
        not_in = self._peek() == "^"
        self._at += not_in
        tests = list(self._members())
        return lambda c: any(test(c) for test in tests) is not not_in

    def _members(self) -> Iterator[Test]:
        first = True
        while first or self._peek() != "]":
            first = False
            character = self._take()
            if not character:
                raise self._wrong("a [ that nothing closes")
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in {"]", ""} and character != "\\":
                self._take()
                yield self._range(character, self._take())
            elif character == ".":
                yield self._same(".")
            else:
                yield self._test(character)
        self._take()

    def _range(self, low: str, high: str) -> Test:
        if high < low:
            raise self._wrong(f"a range from {low!r} to {high!r}")
        if self._fold:
            return lambda c: low <= c <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high


def _sort(character: str) -> str:
    """Tell what kind of character stands there, as far as a place depends on it."""
    return "" if not character else "w" if character.isalnum() or character == "_" else "n"


def _fits(place: str, before: str, after: str) -> bool:
    """Tell whether a place between two characters is what a state wants."""
    if not place:
        return True
    if place == "^":
        return not before
    if place == "$":
        return not after
    edge = (_sort(before) == "w") is not (_sort(after) == "w")
    return edge if place == "b" else not edge
