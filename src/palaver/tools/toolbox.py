"""The tools of an agent, in order, each name once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.log.entries import Toolset
from palaver.tools.function import Function
from palaver.tools.names import without_clashes

__all__ = ["Toolbox"]


class Toolbox:
    """Functions by name, in the order in which they are declared to a model. Cannot change; `|` joins two."""

    __slots__ = ("_functions",)

    def __init__(self, functions: Iterable[Function | Callable[..., Any]] = ()) -> None:
        """Take functions; plain callables become tools as with `@tool`.

        Tools of MCP servers whose name another tool has too get their server's label before it.

        Raises:
            InvalidInput: Two have the same name, or a callable cannot be a tool.
        """
        found: dict[str, Function] = {}
        made = [each if isinstance(each, Function) else Function.from_callable(each) for each in functions]
        for each in without_clashes(made):
            if each.name in found:
                raise InvalidInput(
                    f"Two tools are called {each.name!r}.", hint="Give one another name: extend(name=…)."
                )
            found[each.name] = each
        self._functions: Mapping[str, Function] = MappingProxyType(found)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._functions)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the log records of each, in order; tools that are unavailable now are declared all the same."""
        return tuple(each.spec for each in self)

    @property
    def toolset(self) -> Toolset:
        """The entry that declares the tools from here on."""
        return Toolset(tools=self.specs)

    def get(self, name: str) -> Function | None:
        """Give the tool of this name, or None."""
        return self._functions.get(name)

    def close(self, name: str) -> tuple[str, ...]:
        """Give the names that look like this one, the closest first, capitals aside."""
        by_folded = {each.casefold(): each for each in self._functions}
        return tuple(by_folded[each] for each in get_close_matches(name.casefold(), by_folded))

    def __or__(self, other: Iterable[Function | Callable[..., Any]]) -> Toolbox:
        return Toolbox((*self, *other))

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Toolbox) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(self.names)})"
