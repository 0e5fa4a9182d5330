"""What the tools of servers are called here, where two may have the same name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from palaver.tools.function import Function

__all__ = ["local_names", "without_clashes"]

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")  # MCP allows more than a tool here may be called


def local_names(names: Iterable[str], prefix: str) -> Iterator[str]:
    """Give each of a server's tools a name that a tool may have, no two the same."""
    taken: set[str] = set()
    for name in names:
        plain = prefix + (_FOREIGN.sub("_", name) or "tool")
        number = 2
        unique = plain
        while unique in taken:
            unique = f"{plain}_{number}"
            number += 1
        taken.add(unique)
        yield unique


def without_clashes(functions: Sequence[Function]) -> list[Function]:
    """Give functions with the server's label before the name of those of a server whose name another has too.

    A program's own functions keep their names. Two of them with one name are left as they are.
    """
    times = Counter(each.name for each in functions)
    return [_prefixed(each) if times[each.name] > 1 else each for each in functions]


def _prefixed(function: Function) -> Function:
    server = function.metadata.get("mcp")
    return function.extend(name=f"{server['server']}_{function.name}") if server else function
