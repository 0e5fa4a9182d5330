"""Parse the definitions and uses in a source file. Only this module imports tree-sitter."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from palaver.errors import MissingExtra
from palaver.repomap.languages import LANGUAGES, Language

WIDTH = 100
"""The maximum characters of a shown line, as in Aider: a minified file is one line."""

CUT = "[...]"
"""Marks a shortened line."""

_HEAD_LINES = 6
"""The maximum lines of a definition's head that are shown."""

_DEFINITIONS, _NAME_BYTES = 5_000, 200
"""The maximum definitions of a file, and the longest name. Generated files exceed them."""

_STEPS, _STEPS_PER_KB = 200, 16
"""Progress calls after which parsing stops. tree-sitter makes one per 100 operations (lib/src/parser.c,
OP_COUNT_PER_PARSER_CALLBACK_CHECK), about 7 per 1,000 bytes of ordinary source. Counting calls produces the same map on a slow machine; a clock would not."""

_DEPTH, _MATCHES = 200, 4_096
"""Deepest level of the tree that is searched, and patterns in progress: the search is quadratic in both."""

_ERROR_COST, _ERRORS = 100_000_000, 5_000
"""Bounds for a broken file: children of error nodes, squared, because the search is quadratic in them (0.2 s); and error nodes."""

_CHUNK = 65_536

_HIDDEN = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls (CVE-2021-42574)
    r"\U000e0000-\U000e0fff]"  # tags: invisible to people, read by models
)


class SourceLine(NamedTuple):
    """A line of a file: its number from 1, and its text, at most `WIDTH` characters and a mark."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A name that a file defines.

    Attributes:
        name: The name.
        head: The lines before its body.
        within: The first lines of the definitions that contain it, outermost first.
        member: Whether it belongs to a type.
    """

    name: str
    head: tuple[SourceLine, ...]
    within: tuple[SourceLine, ...] = ()
    member: bool = False


class Use(NamedTuple):
    """A name that a file uses: how often, and whether it cannot be the name of a member."""

    name: str
    times: int = 1
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Tags:
    """The definitions of a source file in order, and its uses, sorted."""

    definitions: tuple[Definition, ...] = ()
    uses: tuple[Use, ...] = ()


class _Capture(NamedTuple):
    kind: str
    name: bytes
    at: int  # first byte of the name
    start: int
    stop: int
    first: int  # first line, counted from 0
    last: int  # last line of the head


def parse(language: Language, source: bytes) -> Tags | None:
    """Return the definitions and uses in a source file, which may be broken; None if parsing exceeds its bounds.

    Raises:
        MissingExtra: tree-sitter or the grammar is not installed.
    """
    grammar, query, library = _tools(language)
    parser = library.Parser(grammar)  # not shared: parsing calls back into Python, where another thread may run
    steps = iter(range(_STEPS + _STEPS_PER_KB * len(source) // 1_000))
    try:
        tree = parser.parse(
            lambda offset, _point: source[offset : offset + _CHUNK],
            progress_callback=lambda _offset, _error: next(steps, None) is None,
        )
    except ValueError:  # the callback stopped it
        return None
    if _too_broken(tree.root_node):
        return None
    cursor = library.QueryCursor(query, match_limit=_MATCHES)
    cursor.set_max_start_depth(_DEPTH)
    captures = [capture for _, match in cursor.matches(tree.root_node) for capture in _captures(match, source)]
    captures.sort(key=lambda capture: _ORDER.index(capture.kind))
    by_place = {capture.at: capture for capture in captures if len(capture.name) <= _NAME_BYTES}.values()
    times = Counter((capture.name, capture.kind == "plain") for capture in by_place if capture.kind in _USES)
    return Tags(
        tuple(_definitions([capture for capture in by_place if capture.kind not in _USES], source.split(b"\n"))),
        tuple(Use(name.decode(errors="replace"), count, plain) for (name, plain), count in sorted(times.items())),
    )


_USES = ("reference", "plain")
_ORDER = (*_USES, "constant", "scope", "members", "type", "function")
"""Of two captures of one name the later counts: the name in a definition is not a use, and a constant may be a function."""


def _too_broken(root: Any) -> bool:  # noqa: ANN401 - tree-sitter is untyped here
    waiting, seen, cost = [root], 0, 0
    while waiting and seen <= _ERRORS and cost <= _ERROR_COST:
        node = waiting.pop()
        seen += 1
        if node.is_error:
            cost += node.child_count**2
        if node.has_error and cost <= _ERROR_COST:
            waiting += [child for child in node.children if child.has_error]
    return bool(waiting) or cost > _ERROR_COST


def _captures(match: dict[str, list[Any]], source: bytes) -> Iterator[_Capture]:
    for kind, nodes in match.items():
        if kind in {"name", "body"}:
            continue
        for node in nodes:
            names, last = ([node], 0) if kind in _USES else (match["name"], _head_end(node, match.get("body")))
            for name in names:
                text = source[name.start_byte : name.end_byte]
                yield _Capture(kind, text, name.start_byte, node.start_byte, node.end_byte, node.start_point[0], last)


def _head_end(node: Any, body: list[Any] | None) -> int:  # noqa: ANN401 - the same
    """Return the last line before the body: the line it begins in, or the one before if it begins its line."""
    if not body:
        return int(node.end_point[0])
    before = body[0].prev_sibling
    while before is not None and before.is_extra:  # a comment
        before = before.prev_sibling
    opens = body[0].start_point[0]
    return int(opens if before is None else min(opens, before.end_point[0]))


def _definitions(captures: Sequence[_Capture], lines: Sequence[bytes]) -> Iterator[Definition]:
    """Yield the definitions with their containers. Definitions inside functions are local and skipped."""
    around: list[tuple[_Capture, tuple[SourceLine, ...]]] = []
    count = 0
    for capture in sorted(captures, key=lambda capture: (capture.start, -capture.stop, capture.at)):
        while around and around[-1][0].stop <= capture.start:
            around.pop()
        if count == _DEFINITIONS or any(outer.kind == "function" for outer, _ in around):
            continue
        within = around[-1][1] if around else ()
        if capture.kind not in {"scope", "members"}:
            count += 1
            last = capture.first if capture.kind == "constant" else min(capture.last, capture.first + _HEAD_LINES - 1)
            head = tuple(_line(lines, row) for row in range(capture.first, last + 1))
            member = any(outer.kind in {"type", "members"} for outer, _ in around)
            yield Definition(capture.name.decode(errors="replace"), head, within, member)
        if capture.kind != "constant":
            around.append((capture, (*within, _line(lines, capture.first))))


def _line(lines: Sequence[bytes], row: int) -> SourceLine:
    text = visible(lines[row][: WIDTH * 8].decode("utf-8", errors="replace").rstrip())
    return SourceLine(row + 1, text if len(text) <= WIDTH else text[:WIDTH] + CUT)


def visible(text: str) -> str:
    """Replace control characters, bidirectional marks and invisible characters by U+FFFD."""
    return _HIDDEN.sub("\ufffd", text)


@lru_cache(maxsize=len(LANGUAGES))
def _tools(language: Language) -> tuple[Any, Any, Any]:
    """Return the grammar, the query and the library."""
    try:
        library = importlib.import_module("tree_sitter")
        grammar = library.Language(getattr(importlib.import_module(language.package), language.grammar)())
    except ImportError as error:
        package = (error.name or "tree_sitter").replace("_", "-")
        raise MissingExtra("A repo map", "repomap", package=package) from error
    return grammar, library.Query(grammar, language.query()), library
