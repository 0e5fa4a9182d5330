"""Handlers write the next prompt after a refused answer, after tool results, and when no more tools are allowed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from palaver.errors import InvalidInput
from palaver.plurals import a_type
from palaver.prompts.render import Renderer, StringFormatterRenderer

_FORMATTER = StringFormatterRenderer()
_MARKS = ("exception", "interrupt", "interrupt_final")


class Handler(Protocol):
    """Writes the next prompt. Each method receives the governing prompt and the call's session, or only the session.

    Texts of the model and of tools are arguments of these prompts, never part of their templates.
    """

    @property
    def on_exception(self) -> Callable[..., Any]:
        """Returns the prompt that asks the model to repair its answer, with the argument `error_message`."""
        ...

    @property
    def on_interrupt(self) -> Callable[..., Any]:
        """Returns the prompt around the results of tools, with the argument `call_results`."""
        ...

    @property
    def on_interrupt_final(self) -> Callable[..., Any]:
        """Returns the prompt that asks for the final answer without more tools."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultHandler:
    """Writes prompts from fixed templates. They keep the parser, format and tools of the prompt they follow.

    Attributes:
        exception: The template that asks for a repair, with `{error_message}`; or a whole prompt.
        interrupt: The template around tool results, with `{call_results}`; or a whole prompt.
        interrupt_final: The template that asks for the final answer; or a whole prompt.
        renderer: Renders the three templates.
    """

    exception: Any = "Error: {error_message} Please fix."
    interrupt: Any = "{call_results}"
    interrupt_final: Any = "You are reaching the limit of tool calls. Provide the final response."
    renderer: Renderer = _FORMATTER

    def on_exception(self, prompt: Any, session: object) -> Any:  # noqa: ANN401, ARG002 - a prompt; the protocol's
        """Return the prompt that asks for a repair."""
        return self._derived(self.exception, prompt, "exception")

    def on_interrupt(self, prompt: Any, session: object) -> Any:  # noqa: ANN401, ARG002 - the same
        """Return the prompt around tool results."""
        return self._derived(self.interrupt, prompt, "interrupt")

    def on_interrupt_final(self, prompt: Any, session: object) -> Any:  # noqa: ANN401, ARG002 - the same
        """Return the prompt that asks for the final answer; it offers no tools."""
        without: dict[str, Any] = {"function_list": (), "mcp_servers_list": (), "addon_args": {}}
        return self._derived(self.interrupt_final, prompt, "interrupt_final", **without)

    def _derived(self, template: Any, prompt: Any, mark: str, **without: Any) -> Any:  # noqa: ANN401 - the same
        if not isinstance(template, str):
            return template
        base, sharp, last = prompt.path.rpartition("#")  # a mark replaces an earlier one, so that paths do not grow
        path = f"{base if sharp and last in _MARKS else prompt.path}#{mark}"
        return prompt.extend(path=path, prompt=template, renderer=self.renderer, **without)


_Prompt = TypeVar("_Prompt")


def handled(handler: object, method: str, prompt: _Prompt, session: object) -> _Prompt:
    """Return the prompt that a handler writes.

    Raises:
        InvalidInput: It returned another type.
    """
    write = getattr(handler, method)
    try:
        inspect.signature(write).bind(prompt, session)
    except TypeError:
        made = write(session)
    else:
        made = write(prompt, session)
    if not isinstance(made, type(prompt)):
        raise InvalidInput(f"{type(handler).__name__}.{method} returned {a_type(made)}, not a prompt.")
    return made
