"""The prompt: a template together with everything that governs the model's answer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable

from palaver.errors import InvalidPrompt
from palaver.messages.frozen import EMPTY, FrozenDict, freeze
from palaver.messages.normalize import Change
from palaver.prompts.parsing import ParseFunction, Parser, parse_with
from palaver.prompts.render import Renderer, StringFormatterRenderer, VerbatimRenderer

__all__ = ["Handler", "Prompt", "temporary_prompt"]

_HASH_DIGITS = 12
_FORMATTER = StringFormatterRenderer()
_VERBATIM = VerbatimRenderer()


@runtime_checkable
class Handler(Protocol):
    """What writes the next prompt when an answer failed, or asked for tools."""

    def on_exception(self, session: object) -> Prompt:
        """Give the prompt that asks the model to repair its answer."""
        ...

    def on_interrupt(self, session: object) -> Prompt:
        """Give the prompt that brings the results of tools."""
        ...

    def on_interrupt_final(self, session: object) -> Prompt:
        """Give the prompt that asks for the answer, no more tools being allowed."""
        ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """One behaviour contract: what is said, and how the answer is to be taken.

    Immutable; `extend` derives another one. Calling it renders it.

    Attributes:
        path: The stable name, and the key in a registry.
        prompt: The template.
        metadata: Version, provenance, labels: JSON values; a copy of what was given, read-only.
        parser: What reads the answer: a callable, or an object with `parse(content, **runtime_args)`.
        format: What structure the answer is to have: a Pydantic model or a JSON schema, for providers that support it.
        function_list: The tools: functions, or references to registered ones; kept as a tuple.
        mcp_servers_list: The MCP servers whose tools are offered; kept as a tuple.
        addon_args: Options of providers, such as web search: JSON values; a copy, read-only.
        handler: What writes prompts for repairs and tool results; None leaves that to the agent's own.
        renderer: What renders the template, and says what a variable is.
        template_vars: The variables that the template needs; computed.
    """

    path: str
    prompt: str
    metadata: Mapping[str, Any] = EMPTY
    parser: Parser | ParseFunction | None = field(default=None, hash=False)
    format: Any = field(default=None, hash=False)
    function_list: Sequence[Any] = field(default=(), hash=False)
    mcp_servers_list: Sequence[Any] = field(default=(), hash=False)
    addon_args: Mapping[str, Any] = EMPTY
    handler: Handler | None = field(default=None, hash=False)
    renderer: Renderer = field(default=_FORMATTER, hash=False)
    template_vars: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Copy what could be changed from outside, and let the renderer read the template.

        Raises:
            InvalidPrompt: The path is empty, the template malformed, or metadata or options are no JSON values.
        """
        if not self.path:
            raise InvalidPrompt("A prompt needs a path.")
        _text(self.path, "path")
        _text(self.prompt, "template")
        settle = object.__setattr__
        settle(self, "metadata", _frozen(self.metadata, self.path, "metadata"))
        settle(self, "addon_args", _frozen(self.addon_args, self.path, "addon_args"))
        settle(self, "function_list", tuple(self.function_list))
        settle(self, "mcp_servers_list", tuple(self.mcp_servers_list))
        settle(self, "template_vars", frozenset(self.renderer.variables(self.prompt)))

    def __call__(self, /, **args: Any) -> str:  # noqa: ANN401 - whatever the template takes
        """Render the template; arguments it does not need are ignored.

        Raises:
            InvalidPrompt: A variable is missing (`missing` names them), or an argument does not fit.
        """
        return self.render(args)

    def render(self, args: Mapping[str, Any]) -> str:
        """Render the template with a mapping of arguments.

        Raises:
            InvalidPrompt: As for a call.
        """
        missing = self.validate_args(args)
        if missing:
            raise InvalidPrompt(
                f"The prompt {self.path!r} needs {', '.join(missing)}.",
                missing=missing,
                hint="Pass them in prompt_args.",
            )
        return self.renderer.render(self.prompt, args)

    def validate_args(self, args: Mapping[str, Any] | None = None) -> list[str]:
        """Give the names of the variables that `args` lacks, sorted; empty when it can be rendered."""
        return sorted(self.template_vars.difference(args or ()))

    def parse(self, content: str, **runtime_args: Any) -> dict[str, Any]:  # noqa: ANN401 - the parser's own arguments
        """Read an answer: what the parser found and the text as `raw`; an empty mapping without a parser.

        Raises:
            ParseError: The answer lacks what it must hold.
        """
        return parse_with(self.parser, content, runtime_args)

    def extend(self, *, path: str = "", **overrides: Any) -> Prompt:  # noqa: ANN401 - fields of a prompt
        """Derive a prompt that differs in the fields given.

        Raises:
            InvalidPrompt: No path of its own is given.
        """
        if not path:
            raise InvalidPrompt(f"A prompt derived from {self.path!r} needs a path of its own.")
        return replace(self, path=path, **overrides)

    @property
    def is_temporary(self) -> bool:
        """Whether it stands for plain text that was said, and carries no contract."""
        return self.renderer is _VERBATIM and self.path.startswith(_TEMPORARY)

    def info_dict(self) -> dict[str, Any]:
        """Give what identifies the prompt, as JSON values: for logs and comparisons, not for rebuilding it."""
        return {
            "path": self.path,
            "prompt_hash": sha256(self.prompt.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS],
            "metadata": dict(self.metadata),
            "functions": [_name(function, "name") for function in self.function_list],
            "mcp_servers": [_name(server, "server_label") for server in self.mcp_servers_list],
            "addon_args": dict(self.addon_args),
            "has_parser": self.parser is not None,
            "has_format": self.format is not None,
        }


_TEMPORARY = "__temp_prompt_"


def temporary_prompt(text: str) -> Prompt:
    """Make the prompt that stands for plain text: nothing in it is a variable, and it has no tools and no parser."""
    digits = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return Prompt(path=f"{_TEMPORARY}{digits}", prompt=text, renderer=_VERBATIM)


def _text(value: object, what: str) -> None:
    if not isinstance(value, str):
        raise InvalidPrompt(f"The {what} of a prompt is text, not a {type(value).__name__}.")


def _frozen(value: Mapping[str, Any] | None, path: str, what: str) -> FrozenDict:
    if value is None:
        return EMPTY
    if not isinstance(value, Mapping):
        raise InvalidPrompt(f"{what} of the prompt {path!r} is a {type(value).__name__}, not a mapping.")
    changes: list[Change] = []
    found = freeze(dict(value), what, changes)
    if changes:
        raise InvalidPrompt(f"{changes[0].place} of the prompt {path!r} is no JSON value.")
    return FrozenDict(found)


def _name(thing: object, attribute: str) -> str:
    """Name a function, a server or a reference to one."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Mapping):
        return str(thing.get(attribute, ""))
    return str(getattr(thing, attribute, None) or getattr(thing, "__name__", thing))
