"""Regular expressions of a model's, over lines: what a line costs is bounded by pattern and line, multiplied.

A model chooses the pattern, and what it searches may have been chosen by somebody else; with an engine that goes back, `(a+)+$` on forty letters
takes minutes. The engine here is the `regex` crate of Rust, which reads each character once, and which every install has: it is what checks `pattern`
in pydantic-core (`regex_engine="rust-regex"`, https://docs.pydantic.dev/latest/api/config/). Here stand what that engine leaves to its callers: a limit
for counted repeats, which multiply the states that each character is held against, and the spellings that models know from Python and grep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType

from pydantic_core import SchemaError, SchemaValidator, core_schema

from palaver.errors import InvalidInput

__all__ = ["Pattern", "as_text"]

_LONGEST = 500
"""Characters of a pattern."""

_TOLD = 100
"""Characters of a pattern that is spelt anew in an error."""

_HEAVIEST = 2_000
"""What a pattern may weigh: its pieces, each as often as it is counted."""

_PIECE = re.compile(
    r"\\[pPxuUbB]\{[^{}]*\}"  # braces that count nothing
    r"|\\."
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"  # a set
    r"|\(\?[A-Za-z-]*[:)]|\(\?P?<\w*>|[()]"
    r"|\{(?:\d+,?\d*|,\d+)\}"
    r"|.",
    re.DOTALL,
)
_IN_SET = re.compile(r"\\.|\[:\^?\w+:\]|[\[&~]", re.DOTALL)
_META = re.compile(r"[\\.+*?()|\[\]{}^$]")
_SPELT = MappingProxyType({"{": r"\{", r"\Z": r"\z", r"\0": r"\x00"})
_WORDS = MappingProxyType(
    {
        "unclosed group": "a ( that nothing closes",
        "unopened group": "a ) that nothing opened",
        "unclosed character class": "a [ that nothing closes",
        "repetition operator missing expression": "a repeat with nothing before it",
        "invalid repetition count range, the start must be <= the end": "a count that ends before it begins",
        "invalid character class range, the start must be <= the end": "a range that ends before it begins",
        "backreferences are not supported": "a reference to a group",
        "look-around, including look-ahead and look-behind, is not supported": "a group that looks around",
        "incomplete escape sequence, reached end of pattern prematurely": "a \\ with nothing behind it",
    }
)
"""What the engine says of a pattern, in our words; what is not here is said in its own."""


class Pattern:
    """A regular expression over lines, as in Python, without references and looking around."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        """Compile a pattern.

        Raises:
            InvalidInput: It is none, is too long or too large, or needs an engine that goes back.
        """
        if len(pattern) > _LONGEST:
            raise InvalidInput(f"The pattern has {len(pattern):,} characters, and may have {_LONGEST}.")
        self.weight = _weight(pattern)
        if self.weight > _HEAVIEST:
            raise _too_large()
        flags = "(?i)" if ignore_case else ""
        spelt = flags + "".join(map(_spelt, _pieces(pattern)))
        try:
            self._held = SchemaValidator(core_schema.str_schema(pattern=spelt, regex_engine="rust-regex"))
        except SchemaError as error:
            raise _wrong(pattern, flags, str(error)) from error

    def found(self, line: str) -> bool:
        """Tell whether a line holds it."""
        return self._held.isinstance_python(line)


def _spelt(piece: str) -> str:
    """Spell a piece of a pattern as the engine does: a `{` that counts nothing is a `{`, and so is a `[` in a set."""
    if piece in _SPELT:
        return _SPELT[piece]
    if piece.startswith("{,"):
        return f"{{0{piece[1:]}"
    if piece.startswith("[") and len(piece) > 1:
        return piece[0] + _IN_SET.sub(lambda found: found[0] if len(found[0]) > 1 else f"\\{found[0]}", piece[1:])
    return piece


def _weight(pattern: str) -> int:
    """Count the pieces of a pattern, each as often as the counts around it repeat it.

    Raises:
        InvalidInput: It has the flag `x`, with which a count and what it counts may stand apart.
    """
    sums, last = [0], 0
    for piece in _pieces(pattern):
        if piece.startswith("(?") and "x" in re.split(r"[-:<]", piece)[0]:
            raise InvalidInput(f"{pattern!r} has the flag x.", hint="Write it without spaces and comments.")
        if piece.startswith("(") and not piece.endswith(")"):
            sums.append(0)
            last = 0
        elif piece == ")" and len(sums) > 1:
            last = sums.pop()
            sums[-1] += last
        elif piece.startswith("{") and len(piece) > 1:
            times = max(int(number) for number in re.findall(r"\d+", piece))
            sums[-1] += last * (max(times, 1) - 1)
            last *= max(times, 1)
        elif piece not in {"*", "+", "?", "|"}:
            last = 1
            sums[-1] += 1
    return sum(sums)


def _pieces(pattern: str) -> Iterator[str]:
    return (found[0] for found in _PIECE.finditer(pattern))


def _too_large() -> InvalidInput:
    return InvalidInput("The pattern is too large.", hint="Repeat less.")


def _wrong(pattern: str, flags: str, said: str) -> InvalidInput:
    """Say what the engine has against a pattern, and where."""
    what = said.rpartition("error: ")[2].strip()
    if "size limit" in what:
        return _too_large()
    caret = re.search(r"parse error:\n    [^\n]*\n    ( *)\^", said)  # of a pattern of one line
    place = f", at character {_place(pattern, len(caret[1]) - len(flags))}" if caret else ""
    return InvalidInput(
        f"{pattern!r} is no pattern: {_WORDS.get(what, what)}{place}.",
        hint="Write \\ before a character that is meant as it stands"
        + (f"; as a text it is `{as_text(pattern)}`." if len(pattern) <= _TOLD else "."),
    )


def as_text(text: str) -> str:
    """Give the expression that finds a text as it stands."""
    return _META.sub(lambda found: f"\\{found[0]}", text)


def _place(pattern: str, spelt: int) -> int:
    """Give the number of a character, from 1, of its place in the pattern as the engine got it."""
    added = 0
    for found in _PIECE.finditer(pattern):
        if found.start() + added + len(_spelt(found[0])) > spelt:
            break
        added += len(_spelt(found[0])) - len(found[0])
    return max(spelt - added, 0) + 1
