"""What a docstring says: what the function does, and what each parameter is.

Three ways of writing are read: Google's (`Args:`), NumPy's (`Parameters` underlined) and Sphinx's (`:param name:`). What is in none of
them is description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Documented", "documented"]

_ARGUMENTS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
)
_SECTIONS = _ARGUMENTS | frozenset({
    "returns", "return", "yields", "yield", "raises", "raise", "warns", "examples", "example", "attributes", "note", "notes",
    "references", "see also", "todo", "warning", "warnings", "usage",
})  # fmt: skip
_TOLD = frozenset({"note", "notes", "warning", "warnings", "usage", "example", "examples"})
"""Sections that a model should read too: they stay in the description."""

_GOOGLE_ITEM = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_ITEM = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?(\*{0,2}\w+)\s*:\s*(.*)$")
_SPHINX_FIELD = re.compile(r"^:\w+[^:]*:")


@dataclass(frozen=True, slots=True)
class Documented:
    """A docstring, read: the description, and the text on each parameter by its name."""

    description: str = ""
    parameters: tuple[tuple[str, str], ...] = ()


def documented(docstring: str | None) -> Documented:
    """Read a docstring."""
    description: list[str] = []
    found: list[tuple[str, str]] = []
    for title, body in _sections(inspect.cleandoc(docstring or "").splitlines()):
        if title in _ARGUMENTS:
            found.extend(_items(body))
        elif title == ":":
            found.extend(_fields(body))
        elif not title or title in _TOLD:
            heading = [f"{title.capitalize()}:"] if title else []
            description.extend([*heading, *body])
    return Documented("\n".join(description).strip(), tuple(found))


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Give each section's title in lower case and its lines; the text before has no title, Sphinx's fields have `:`."""
    title, body, skip = "", list[str](), False
    for index, line in enumerate(lines):
        if skip:  # the underline of a title
            skip = False
            continue
        plain = line.strip()
        underlined = index + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[index + 1]) is not None
        word = plain.removesuffix(":").lower() if plain.endswith(":") or underlined else ""
        if word in _SECTIONS and not line.startswith((" ", "\t")):
            yield title, body
            title, body, skip = word, [], underlined
        elif _SPHINX_FIELD.match(line) and title != ":":
            yield title, body
            title, body = ":", [line]
        else:
            body.append(line)
    yield title, body


def _items(body: list[str]) -> Iterator[tuple[str, str]]:
    """Read `name (type): text` of Google's way, or `name : type` with an indented text of NumPy's."""
    plain = [line for line in body if line.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in plain), default=0)
    names: list[str] = []
    text: list[str] = []
    for line in plain:
        at_margin = len(line) - len(line.lstrip()) == margin
        google = _GOOGLE_ITEM.match(line.strip()) if at_margin and margin else None
        numpy = _NUMPY_ITEM.match(line.strip()) if at_margin and not margin else None
        if google or numpy:
            yield from _named(names, text)
            names = [google[1]] if google else re.split(r"\s*,\s*", numpy[1] if numpy else "")
            text = [google[2]] if google else []
        else:
            text.append(line.strip())
    yield from _named(names, text)


def _fields(body: list[str]) -> Iterator[tuple[str, str]]:
    """Read `:param name: text`, with what is indented under it."""
    names: list[str] = []
    text: list[str] = []
    for line in body:
        item = _SPHINX_ITEM.match(line)
        if item or _SPHINX_FIELD.match(line):
            yield from _named(names, text)
            names, text = ([item[1]], [item[2]]) if item else ([], [])
        else:
            text.append(line.strip())
    yield from _named(names, text)


def _named(names: Iterable[str], text: list[str]) -> Iterator[tuple[str, str]]:
    said = " ".join(part for part in text if part)
    for name in names:
        if said:
            yield name.lstrip("*"), said
