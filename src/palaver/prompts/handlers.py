"""Handlers: what writes the next prompt when an answer failed, when tools gave their results, and when tools come to an end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from palaver.errors import InvalidPrompt
from palaver.prompts.render import Renderer, StringFormatterRenderer

__all__ = ["DefaultHandler", "Handler", "said_by"]

_FORMATTER = StringFormatterRenderer()
_MARKS = ("exception", "interrupt", "interrupt_final")


class Handler(Protocol):
    """What writes the next prompt. Each method takes the prompt that governs the call and the call's session, or the session alone.

    What the model said, and what tools gave, goes into the arguments of the prompts, never into their templates.
    """

    @property
    def on_exception(self) -> Callable[..., Any]:
        """Gives the prompt that asks the model to repair its answer; it takes `error_message`."""
        ...

    @property
    def on_interrupt(self) -> Callable[..., Any]:
        """Gives the prompt that brings the results of tools; it takes `call_results`."""
        ...

    @property
    def on_interrupt_final(self) -> Callable[..., Any]:
        """Gives the prompt that asks for the answer, no more tools being allowed."""
        ...


class _Prompted(Protocol):
    """The part of a prompt that handlers need."""

    path: str

    def extend(self, *, path: str = "", **overrides: Any) -> Any:  # noqa: ANN401 - a prompt
        """Derive a prompt."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultHandler:
    """Writes prompts of fixed templates: they parse, format and offer tools as the prompt does that they follow.

    Attributes:
        exception: The template that asks for a repair, with `{error_message}`; or a prompt of its own.
        interrupt: The template around the results of tools, with `{call_results}`; or a prompt of its own.
        interrupt_final: The template that ends the use of tools, without tools of its own; or a prompt of its own.
        renderer: What renders the three.
    """

    exception: Any = "Error: {error_message} Please fix."
    interrupt: Any = "{call_results}"
    interrupt_final: Any = "You are reaching the limit of tool calls. Provide the final response."
    renderer: Renderer = _FORMATTER

    def on_exception(self, prompt: _Prompted, session: object) -> Any:  # noqa: ANN401, ARG002 - a prompt; the protocol's
        """Give the prompt that asks for a repair."""
        return self._made(self.exception, prompt, "exception")

    def on_interrupt(self, prompt: _Prompted, session: object) -> Any:  # noqa: ANN401, ARG002 - a prompt; the protocol's
        """Give the prompt that brings results."""
        return self._made(self.interrupt, prompt, "interrupt")

    def on_interrupt_final(self, prompt: _Prompted, session: object) -> Any:  # noqa: ANN401, ARG002 - a prompt; the protocol's
        """Give the prompt that asks for the answer; it offers no tools."""
        without: dict[str, Any] = {"function_list": (), "mcp_servers_list": (), "addon_args": {}}
        return self._made(self.interrupt_final, prompt, "interrupt_final", **without)

    def _made(self, template: Any, prompt: _Prompted, mark: str, **without: Any) -> Any:  # noqa: ANN401 - see above
        if not isinstance(template, str):
            return template
        return prompt.extend(path=_marked(prompt.path, mark), prompt=template, renderer=self.renderer, **without)


def _marked(path: str, mark: str) -> str:
    """Mark a path with what the prompt is for. A mark replaces an earlier one, so that paths do not grow."""
    base, sharp, last = path.rpartition("#")
    return f"{base if sharp and last in _MARKS else path}#{mark}"


_Prompt = TypeVar("_Prompt")


def said_by(handler: object, method: str, prompt: _Prompt, session: object) -> _Prompt:
    """Have a handler write a prompt.

    Raises:
        InvalidPrompt: It lacks the method, or gave no prompt.
    """
    write = getattr(handler, method, None)
    if not callable(write):
        raise InvalidPrompt(f"The handler {type(handler).__name__} has no method {method}.")
    made = write(prompt, session) if _takes_two(write) else write(session)
    if not isinstance(made, type(prompt)):
        raise InvalidPrompt(f"{type(handler).__name__}.{method} gave a {type(made).__name__}, not a prompt.")
    return made


def _takes_two(write: Callable[..., Any]) -> bool:
    try:
        inspect.signature(write).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # a callable of another language has no signature: the full form is the usual one
        return True
    return True
