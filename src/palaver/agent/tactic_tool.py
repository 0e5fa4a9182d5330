"""Tactics as tools: the function under which a model calls one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any, get_type_hints

from palaver.errors import InvalidInput, UnknownTool
from palaver.tools import Function

__all__ = ["ToolOfTactic"]

_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_MANY = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


class ToolOfTactic:
    """Makes functions of a tactic: of an object, or of a class, which is made into an object when the function is first called."""

    def __get__(self, instance: Any, owner: Any) -> Callable[..., Function]:  # noqa: ANN401 - a tactic and its class
        """Give what makes the function."""
        return partial(_function, owner, instance)


def _function(owner: Any, instance: Any, tool: str = "", *, runtime: Any = None) -> Function:  # noqa: ANN401 - a tactic and its class
    """Make the function for a tactic, or for one of its methods.

    Args:
        owner: The tactic's class.
        instance: The tactic, or None.
        tool: The method's name; empty for the tactic as a whole.
        runtime: Where a class finds its configuration.

    Raises:
        UnknownTool: The tactic has no such method.
    """

    def tactic() -> Any:  # noqa: ANN401 - a tactic
        return instance if instance is not None else owner(runtime=runtime)

    if tool:
        return _method(owner, tactic, tool)
    run = _called(tactic)
    signature = _signature(owner.call)
    run.__signature__ = signature  # type: ignore[attr-defined] # what inspect reads first
    run.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}
    run.__name__ = _NAME.sub("_", owner.title())
    run.__doc__ = (
        inspect.getdoc(owner.call) if owner.call.__doc__ and owner.call.__doc__ != _INHERITED else inspect.getdoc(owner)
    )
    return Function.from_callable(run)


_INHERITED = "Solve a task with `self.agents`; may be written with `async def`."


def _called(tactic: Callable[[], Any]) -> Callable[..., Any]:
    async def run(**arguments: Any) -> Any:  # noqa: ANN401 - a tactic's own
        task, *rest = arguments.items()
        return await tactic().acall(task[1], **dict(rest))

    return run


def _signature(call: Callable[..., Any]) -> inspect.Signature:
    """Give the parameters of `call` that a model fills: those with a name of their own, texts where no type is said."""
    hints = get_type_hints(call, include_extras=True)
    found = [
        each.replace(annotation=hints.get(each.name, str), kind=inspect.Parameter.KEYWORD_ONLY)
        for each in list(inspect.signature(call).parameters.values())[1:]
        if each.kind not in _MANY
    ]
    if not found:
        raise InvalidInput(f"{call.__qualname__} takes no task, so no model can call it.")
    return inspect.Signature(found)


def _method(owner: Any, tactic: Callable[[], Any], tool: str) -> Function:  # noqa: ANN401 - a tactic's class
    """Make the function for a method: one that is a tool already keeps its declaration."""
    found = getattr(owner, tool, None)
    if tool.startswith("_") or not callable(found):
        near = get_close_matches(tool, [name for name in vars(owner) if not name.startswith("_")])
        raise UnknownTool(f"{owner.title()}#{tool}", close=[f"{owner.title()}#{name}" for name in near])
    declared = found if isinstance(found, Function) else None
    bound = getattr(tactic(), tool)
    if declared is not None and isinstance(bound, Function):
        return bound
    return Function.from_callable(bound)
