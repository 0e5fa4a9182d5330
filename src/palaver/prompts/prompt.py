"""The prompt: a template together with everything that governs the model's answer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol

from palaver.errors import InvalidPrompt
from palaver.messages import Message
from palaver.messages.frozen import EMPTY, FrozenDict, freeze
from palaver.messages.normalize import Change
from palaver.prompts.formats import Format
from palaver.prompts.handlers import DefaultHandler, Handler, said_by
from palaver.prompts.parsing import ParseFunction, Parser, parse_with
from palaver.prompts.render import Renderer, StringFormatterRenderer, VerbatimRenderer
from palaver.tools import Function

__all__ = ["FunctionFinder", "Prompt", "temporary_prompt"]

_HASH_DIGITS = 12
_FORMATTER = StringFormatterRenderer()
_VERBATIM = VerbatimRenderer()
_HANDLER = DefaultHandler()


class FunctionFinder(Protocol):
    """What knows which functions the references in a prompt mean: a runtime."""

    def functions_of(self, prompt: Prompt) -> tuple[Function, ...]:
        """Give the functions of a prompt, each with its implementation where one is known."""
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
        format: What structure the answer must have: a Pydantic model, anything else that Pydantic validates, a JSON schema, or a `Format`.
            The schema is sent to the provider, and the answer is held to it. With a parser besides, the parser gets the text of an answer
            that holds to the format.
        function_list: The tools: functions, callables, tactics, or references to registered ones; kept as a tuple.
        mcp_servers_list: The MCP servers whose tools are offered; kept as a tuple.
        addon_args: Tools of the provider's own, such as `web_search`, by name: true, or their options as JSON values; a copy, read-only.
        handler: What writes the prompts for repairs, tool results and the end of tools: an object, or a class that makes one without
            arguments; `DefaultHandler` unless given.
        renderer: What renders the template, and says what a variable is.
        template_vars: The variables that the template needs; computed.
        answer: The format, read; None without one; computed.
    """

    path: str
    prompt: str
    metadata: Mapping[str, Any] = EMPTY
    parser: Parser | ParseFunction | None = field(default=None, hash=False)
    format: Any = field(default=None, hash=False)
    function_list: Sequence[Any] = field(default=(), hash=False)
    mcp_servers_list: Sequence[Any] = field(default=(), hash=False)
    addon_args: Mapping[str, Any] = EMPTY
    handler: Handler | type[Handler] | None = field(default=None, hash=False)
    renderer: Renderer = field(default=_FORMATTER, hash=False)
    template_vars: frozenset[str] = field(init=False, compare=False, repr=False)
    answer: Format | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Copy what could be changed from outside, and let the renderer read the template.

        Raises:
            InvalidPrompt: The path is empty, the template malformed, the format none, or metadata or options are no JSON values.
        """
        if not self.path:
            raise InvalidPrompt("A prompt needs a path.")
        _text(self.path, "path")
        _text(self.prompt, "template")
        settle = object.__setattr__
        settle(self, "metadata", _frozen(self.metadata, self.path, "metadata"))
        settle(self, "addon_args", _frozen(self.addon_args, self.path, "addon_args"))
        settle(self, "function_list", _listed(self.function_list, self.path, "function_list"))
        settle(self, "mcp_servers_list", _listed(self.mcp_servers_list, self.path, "mcp_servers_list"))
        settle(self, "handler", _handler(self.handler))
        settle(self, "template_vars", frozenset(self.renderer.variables(self.prompt)))
        settle(self, "answer", _format(self.format))

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

    # --- the answer ---------------------------------------------------------------------------------------------------------

    def parse(self, content: str, **runtime_args: Any) -> dict[str, Any]:  # noqa: ANN401 - the parser's own arguments
        """Read an answer into what stands in `message.parsed`.

        With a parser, what it found and the text as `raw`. With a format alone, the JSON object of the answer, defaults included (`value`
        holds what is no object). With neither, nothing.

        Raises:
            ParseError: The answer does not hold to the format, or lacks what the parser must find.
        """
        if self.parser is None:
            return {} if self.answer is None else self.answer.parse(content)
        if self.answer is not None:
            self.answer.read(content)
        return parse_with(self.parser, content, runtime_args)

    def read(self, content: str | Message, **runtime_args: Any) -> Any:  # noqa: ANN401 - the format's type, the parser's arguments
        """Read an answer for a program: an instance of the format's type, or what the parser found, or the text when there is neither.

        Args:
            content: The answer, or the message that holds it.
            runtime_args: What the parser takes besides.

        Raises:
            ParseError: As for `parse`.
        """
        text = content.text_content() if isinstance(content, Message) else content
        if self.parser is not None:
            return self.parse(text, **runtime_args)
        return text if self.answer is None else self.answer.read(text)

    def on_exception(self, session: object) -> Prompt:
        """Give the prompt that asks the model to repair its answer; it takes `error_message`.

        Raises:
            InvalidPrompt: The handler gave no prompt.
        """
        return said_by(self.handler, "on_exception", self, session)

    def on_interrupt(self, session: object) -> Prompt:
        """Give the prompt that brings the results of tools; it takes `call_results`.

        Raises:
            InvalidPrompt: The handler gave no prompt.
        """
        return said_by(self.handler, "on_interrupt", self, session)

    def on_interrupt_final(self, session: object) -> Prompt:
        """Give the prompt that asks for the answer, no more tools being allowed.

        Raises:
            InvalidPrompt: The handler gave no prompt.
        """
        return said_by(self.handler, "on_interrupt_final", self, session)

    # --- others made of it --------------------------------------------------------------------------------------------------

    def resolve(self, runtime: FunctionFinder) -> Prompt:
        """Give the prompt with functions in the place of references, callables and tactics; this one stays as it is.

        Args:
            runtime: What the references are looked up in.

        Raises:
            UnknownTool: A reference leads nowhere; the error has close matches.
            Ambiguous: A bare name fits functions of several namespaces.
            InvalidInput: Two functions have the same name, or a declaration differs from the registered function it names.
        """
        functions = runtime.functions_of(self)
        if functions == self.function_list:
            return self
        found = copy(self)
        object.__setattr__(found, "function_list", functions)
        return found

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
        return isinstance(self.renderer, VerbatimRenderer) and self.path.startswith(_TEMPORARY)

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


def _listed(value: object, path: str, what: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        raise InvalidPrompt(f"{what} of the prompt {path!r} is a {type(value).__name__}, not a list.")
    return tuple(value)


def _handler(given: Handler | type[Handler] | None) -> Handler:
    if given is None:
        return _HANDLER
    return given() if isinstance(given, type) else given


def _format(given: object) -> Format | None:
    return given if given is None or isinstance(given, Format) else Format(given)


def _name(thing: object, attribute: str) -> str:
    """Name a function, a server or a reference to one."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Mapping):
        return str(thing.get(attribute, ""))
    return str(getattr(thing, attribute, None) or getattr(thing, "__name__", thing))
