"""Parsing: the only place that knows tree-sitter, whose grammars come in wheels. Nothing is downloaded. Needs the extra `repomap`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from palaver.errors import MissingExtra
from palaver.repomap.languages import LANGUAGES, Language

__all__ = ["Catch", "caught", "grammars_version"]

_STEPS, _STEPS_PER_KB = 200, 16
"""How often the parser may ask whether to go on: it does so every hundred operations or so (tree-sitter, lib/src/parser.c,
OP_COUNT_PER_PARSER_CALLBACK_CHECK), in source code about seven times for a thousand bytes. What is noise, or made to be slow, costs more and
more. A count, where a clock would give another map on a busy machine."""

_DEEP = 200
"""How deep in the tree of a file a name may stand: to look further down takes time by the square of the depth."""

_WIDE, _FAULTS = 100_000_000, 5_000
"""How many things may stand in faults of a file, each by its square, and how many faults with what is around them there may be: to look
for names in a fault takes time by the square of what stands in it. A fifth of a second for the first, where it was measured."""

_MATCHES = 4_096
"""How many half-found patterns are kept at once."""


class Catch(NamedTuple):
    """What a pattern found.

    Attributes:
        kind: As the pattern calls it.
        name: The bytes of the name.
        at: Where the name begins.
        start: The first byte of the definition.
        stop: The byte behind its last.
        first: Its first line, counted from 0.
        last: The last line of its head: what stands before its body, or all of it where it has none.
        module: Of an import, the bytes of what it is from.
    """

    kind: str
    name: bytes
    at: int
    start: int
    stop: int
    first: int
    last: int
    module: bytes = b""

    @property
    def defines(self) -> bool:
        """Whether it is no name in use."""
        return self.kind not in _USES


def caught(language: Language, source: bytes) -> list[Catch] | None:
    """Give what is found in a source file; None where it would take more than is sensible.

    Args:
        language: The language.
        source: The file.

    Raises:
        MissingExtra: tree-sitter, or the grammar, is not installed.
    """
    grammar, query, library = _tools(language)
    parser = library.Parser(grammar)  # not shared: another thread may come in while it asks for more of the file
    steps = iter(range(_STEPS + _STEPS_PER_KB * len(source) // 1_000))
    try:
        tree = parser.parse(
            lambda offset, _point: source[offset : offset + _PIECE],
            progress_callback=lambda _offset, _error: next(steps, None) is None,
        )
    except ValueError:  # it was told not to go on
        return None
    if _spoilt(tree.root_node):
        return None
    cursor = library.QueryCursor(query, match_limit=_MATCHES)
    cursor.set_max_start_depth(_DEEP)
    return [catch for _, captures in cursor.matches(tree.root_node) for catch in _catches(captures, source)]


def _spoilt(root: Any) -> bool:  # noqa: ANN401 - a node of tree-sitter's, which has no types here
    """Tell whether a file has so many faults that nothing is to be made out."""
    waiting, seen, cost = [root], 0, 0
    while waiting and seen <= _FAULTS and cost <= _WIDE:
        node = waiting.pop()
        seen += 1
        if node.is_error:
            cost += node.child_count**2
        if node.has_error and cost <= _WIDE:
            waiting += [child for child in node.children if child.has_error]
    return bool(waiting) or cost > _WIDE


_PIECE = 65_536
"""Bytes that are handed to the parser at once."""


_USES = ("reference", "plain", "import")
_DEFINES = ("type", "function", "constant", "scope", "members")


def _catches(captures: dict[str, list[Any]], source: bytes) -> Iterator[Catch]:
    module = b"".join(source[node.start_byte : node.end_byte] for node in captures.get("module", ()))
    for kind in _USES:
        for node in captures.get(kind, ()):
            yield _catch(kind, node, node, int(node.start_point[0]), source)._replace(module=module)
    for kind in _DEFINES:
        for node in captures.get(kind, ()):
            for name in captures["name"]:
                yield _catch(kind, node, name, _head(node, captures.get("body")), source)


def _catch(kind: str, node: Any, name: Any, last: int, source: bytes) -> Catch:  # noqa: ANN401 - the same
    return Catch(
        kind=kind,
        name=source[name.start_byte : name.end_byte],
        at=name.start_byte,
        start=node.start_byte,
        stop=node.end_byte,
        first=node.start_point[0],
        last=last,
    )


def _head(node: Any, body: list[Any] | None) -> int:  # noqa: ANN401 - the same
    """Give the last line of what stands before a body: the one the body begins in, or the one before it where it begins a line."""
    if not body:
        return int(node.end_point[0])
    before = body[0].prev_sibling
    while before is not None and before.is_extra:  # a comment
        before = before.prev_sibling
    opens = body[0].start_point[0]
    return int(opens if before is None or before.end_point[0] >= opens else before.end_point[0])


@lru_cache(maxsize=len(LANGUAGES))
def _tools(language: Language) -> tuple[Any, Any, Any]:
    """Give a grammar, what is looked for with it, and the library."""
    try:
        library = importlib.import_module("tree_sitter")
        grammar = library.Language(getattr(importlib.import_module(language.package), language.grammar)())
    except ImportError as error:
        package = error.name or "tree_sitter"
        raise MissingExtra("A repo map", "repomap", package=package.replace("_", "-")) from error
    return grammar, library.Query(grammar, language.query), library


@lru_cache(maxsize=1)
def grammars_version() -> str:
    """Give the versions of what parses, by which results that were kept are known to be out of date."""
    names = ("tree-sitter", *dict.fromkeys(each.package.replace("_", "-") for each in LANGUAGES))
    return " ".join(f"{name}={_version(name)}" for name in names)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
