"""Calling one tool as a model does."""

import functools
from collections.abc import Callable
from typing import Any

import anyio

from palaver.messages import ToolCallContent
from palaver.tools import Function, Toolbox, ToolOutcome, execute


def run(function: Function | Callable[..., Any], call: ToolCallContent | None = None, **arguments: Any) -> ToolOutcome:  # noqa: ANN401
    """Answer one call of one tool."""
    box = Toolbox([function])
    made = call or ToolCallContent("c1", box.names[0], args=arguments)
    return anyio.run(functools.partial(execute, box, made))


def answer(function: Function | Callable[..., Any], **arguments: Any) -> str:  # noqa: ANN401
    """Return the text of the answer."""
    return run(function, **arguments).result.text()
