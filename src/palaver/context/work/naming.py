"""The names of tools and arguments, taken apart: harnesses spell one thing as `readFile`, `read_file` and `mcp__disk__read-file`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from palaver.messages import ToolCallContent

__all__ = ["arguments", "folded", "own_name", "verb_of", "words_in", "words_of"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SPACES = re.compile(r"__|[.:/]")
_BETWEEN = re.compile(r"[\W_]+")
_REMEMBERED = 4_096


def words_of(words: str) -> frozenset[str]:
    """Give the words of a list."""
    return frozenset(words.split())


@lru_cache(_REMEMBERED)
def words_in(name: str) -> frozenset[str]:
    """Give the words of a tool's own name: `str_replace_editor`, `NotebookEdit`, `list-dir`."""
    return frozenset(word.lower() for word in _WORDS.findall(own_name(name)))


def own_name(name: str) -> str:
    """Give a tool's own name, without that of its server."""
    return _SPACES.split(name)[-1]


def folded(name: str) -> str:
    """Give a name without case and without what stands between its words."""
    return _BETWEEN.sub("", name).lower()


def arguments(call: ToolCallContent) -> Iterator[tuple[str, Any]]:
    """Give the arguments of a call that say something, by their folded names.

    Null, false and empty ones do not: some harnesses send them for what was not asked.
    """
    return _said(call.args)


def verb_of(call: ToolCallContent) -> str | None:
    """Give what a tool that does one of several things is asked to do, in its `command`; None where it takes none."""
    verb = call.args.get("command")
    return verb if verb is None or isinstance(verb, str) else ""


def _said(args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in args.items():
        if value or (isinstance(value, int | float) and value is not False):
            yield folded(name), value
