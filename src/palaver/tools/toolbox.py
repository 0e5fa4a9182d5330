"""The tools of an agent, in order, each name once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.tools.function import Function


class Toolbox:
    """Functions by name, in the order of their declaration to a model. Immutable; `|` joins two."""

    __slots__ = ("_functions",)

    def __init__(self, functions: Iterable[Function | Callable[..., Any]] = ()) -> None:
        """Collect functions. A plain callable becomes a tool as with `@tool`.

        If another tool has the same name, a tool of an MCP server gets its server's label as a prefix.

        Raises:
            InvalidInput: Two tools have the same name, or a callable cannot be a tool.
        """
        named: dict[str, Function] = {}
        made = [tool if isinstance(tool, Function) else Function.from_callable(tool) for tool in functions]
        for function in without_clashes(made):
            if function.name in named:
                raise InvalidInput(f"Two tools are called {function.name!r}.", hint="Rename one with extend(name=...).")
            named[function.name] = function
        self._functions: Mapping[str, Function] = MappingProxyType(named)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._functions)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The declarations, in order. An unavailable tool stays declared."""
        return tuple(function.spec for function in self)

    def get(self, name: str) -> Function | None:
        """Return the tool of this name, or None."""
        return self._functions.get(name)

    def close(self, name: str) -> tuple[str, ...]:
        """Return similar names, the closest first; case does not matter."""
        by_folded = {known.casefold(): known for known in self._functions}
        return tuple(by_folded[close] for close in get_close_matches(name.casefold(), by_folded))

    def __or__(self, other: Iterable[Function | Callable[..., Any]]) -> Toolbox:
        return Toolbox((*self, *other))

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(self.names)})"


def without_clashes(functions: Iterable[Function]) -> list[Function]:
    """Return functions; an MCP tool whose name occurs twice gets its server's label as a prefix."""
    given = list(functions)
    times = Counter(function.name for function in given)
    return [_prefixed(function) if times[function.name] > 1 else function for function in given]


def _prefixed(function: Function) -> Function:
    server = function.metadata.get("mcp")
    return function.extend(name=f"{server['server']}_{function.name}") if server else function
