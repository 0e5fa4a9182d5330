"""The prompt: a template with the contract for the model's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

from palaver.errors import InvalidInput
from palaver.messages import Message
from palaver.messages.frozen import EMPTY, FrozenDict, Replaced, freeze
from palaver.plurals import a_type
from palaver.prompts.formats import Format
from palaver.prompts.handlers import DefaultHandler, Handler, handled
from palaver.prompts.parsing import ParseFunction, Parser, parse_with
from palaver.prompts.render import Renderer, StringFormatterRenderer, VerbatimRenderer
from palaver.tools import Function

_HASH_DIGITS = 12
_FORMATTER = StringFormatterRenderer()
_VERBATIM = VerbatimRenderer()
_HANDLER = DefaultHandler()
_TEMPORARY = "__temp_prompt_"


class FunctionFinder(Protocol):
    """Resolves the tool references of a prompt, as a runtime does."""

    def functions_of(self, prompt: Prompt) -> tuple[Function, ...]:
        """Return the functions of a prompt, each with its implementation if known."""
        ...


class PromptRef(NamedTuple):
    """A reference to a registered prompt.

    Attributes:
        path: The prompt's path in the runtime.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template and the contract for its answer.

    It is immutable; `extend` returns a modified copy. Calling it renders it.

    Attributes:
        path: The stable name, and the key in a registry.
        prompt: The template.
        metadata: Version, provenance, labels: JSON values, copied and read-only.
        parser: Reads the answer: a callable, or an object with `parse(content, **runtime_args)`.
        format: The structure of the answer: a Pydantic model, another type that Pydantic validates, a JSON schema, or a
            `Format`. The schema is sent to the provider, and the answer is checked. An additional parser gets the text of
            an answer that fits.
        function_list: The tools: functions, callables, tactics, or references to registered ones; a tuple.
        mcp_servers_list: The MCP servers whose tools are offered; a tuple.
        addon_args: The provider's own tools, such as `web_search`, by name: true, or options as JSON values; read-only.
        handler: Writes the prompts for repairs and tool results: an object, or a class without arguments.
        renderer: Renders the template.
        template_vars: The variables that the template requires; computed.
        answer: The validated format, or None; computed.
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
        """Check the fields, copy mutable values, and read the template.

        Raises:
            InvalidInput: The path is empty, the template malformed, or a field has the wrong type.
        """
        for name in ("path", "prompt"):
            value: object = getattr(self, name)
            if not isinstance(value, str):
                raise InvalidInput(f"{name} of a prompt is {a_type(value)}, not a text.")
        if not self.path:
            raise InvalidInput("A prompt needs a path.")
        parser: object = self.parser
        if parser is not None and not callable(getattr(parser, "parse", parser)):
            raise InvalidInput(
                f"The parser of the prompt {self.path!r} is {parser!r}.",
                hint="Pass a function, or an object with a method parse(content, **runtime_args).",
            )
        settle = object.__setattr__
        settle(self, "metadata", _frozen(self, "metadata"))
        settle(self, "addon_args", _frozen(self, "addon_args"))
        settle(self, "function_list", _listed(self, "function_list"))
        settle(self, "mcp_servers_list", _listed(self, "mcp_servers_list"))
        settle(self, "handler", _handler(self))
        settle(self, "template_vars", frozenset(self.renderer.variables(self.prompt)))
        given = self.format
        settle(self, "answer", given if given is None or isinstance(given, Format) else Format(given))

    @staticmethod
    def ref(path: str) -> PromptRef:
        """Return a reference to the registered prompt with this path, for arguments that accept a prompt or a string."""
        return PromptRef(path)

    def __call__(self, /, **args: Any) -> str:  # noqa: ANN401 - the template's variables
        """Render the template; unused arguments are ignored.

        Raises:
            InvalidInput: A variable is missing, or an argument does not fit.
        """
        return self.render(args)

    def render(self, args: Mapping[str, Any]) -> str:
        """Render the template with a mapping of arguments.

        Raises:
            InvalidInput: A variable is missing, or an argument does not fit.
        """
        missing = self.validate_args(args)
        if missing:
            raise InvalidInput(
                f"The prompt {self.path!r} needs {', '.join(missing)}.", hint="Pass them in prompt_args."
            )
        return self.renderer.render(self.prompt, args)

    def validate_args(self, args: Mapping[str, Any] | None = None) -> list[str]:
        """Return the names of the variables that `args` lacks, sorted."""
        return sorted(self.template_vars.difference(args or ()))

    # --- the answer ---------------------------------------------------------------------------------------------------------

    def parse(self, content: str, **runtime_args: Any) -> dict[str, Any]:  # noqa: ANN401 - the parser's own arguments
        """Return the value for `message.parsed`.

        With a parser, this is the parser's result, and the text as `raw`. With only a format, it is the JSON object of the
        answer, including defaults. With neither, it is empty.

        Raises:
            ParseError: The answer does not fit the format, or lacks a part that the parser requires.
        """
        if self.parser is None:
            return {} if self.answer is None else self.answer.parse(content)
        if self.answer is not None:
            self.answer.read(content)
        return parse_with(self.parser, content, runtime_args)

    def read(self, content: str | Message, **runtime_args: Any) -> Any:  # noqa: ANN401 - the format's type, the parser's arguments
        """Return the value of an answer: an instance of the format's type, the parser's result, or the text.

        Args:
            content: The answer, or the message that contains it.
            runtime_args: Further arguments of the parser.

        Raises:
            ParseError: As for `parse`.
        """
        text = content.text_content() if isinstance(content, Message) else content
        if self.parser is not None:
            return self.parse(text, **runtime_args)
        return text if self.answer is None else self.answer.read(text)

    def on_exception(self, session: object) -> Prompt:
        """Return the prompt that asks the model to repair its answer, with the argument `error_message`."""
        return handled(self.handler, "on_exception", self, session)

    def on_interrupt(self, session: object) -> Prompt:
        """Return the prompt around tool results, with the argument `call_results`."""
        return handled(self.handler, "on_interrupt", self, session)

    def on_interrupt_final(self, session: object) -> Prompt:
        """Return the prompt that asks for the final answer without more tools."""
        return handled(self.handler, "on_interrupt_final", self, session)

    # --- derived prompts ----------------------------------------------------------------------------------------------------

    def resolve(self, runtime: FunctionFinder) -> Prompt:
        """Return a copy of the prompt with references, callables and tactics replaced by functions.

        Raises:
            NotFound: A reference matches nothing; the error has close matches.
            Ambiguous: A bare name fits functions of several namespaces.
            InvalidInput: Two functions have the same name, or a declaration differs from the registered function of its name.
        """
        functions = runtime.functions_of(self)
        if functions == self.function_list:
            return self
        resolved = copy(self)
        object.__setattr__(resolved, "function_list", functions)
        return resolved

    def extend(self, *, path: str = "", **overrides: Any) -> Prompt:  # noqa: ANN401 - fields of a prompt
        """Return a copy of the prompt with some fields changed.

        Raises:
            InvalidInput: `path` is empty, or a field has the wrong type.
        """
        if not path:
            raise InvalidInput(f"A prompt derived from {self.path!r} needs a new path.")
        return replace(self, path=path, **overrides)

    @property
    def is_temporary(self) -> bool:
        """Whether it represents plain text, without parser, tools or handler."""
        return isinstance(self.renderer, VerbatimRenderer) and self.path.startswith(_TEMPORARY)

    def info_dict(self) -> dict[str, Any]:
        """Return the identity of the prompt, as JSON values for logs and comparisons."""
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


def temporary_prompt(text: str) -> Prompt:
    """Return the prompt for plain text: it has no variables, tools or parser."""
    digits = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return verbatim_prompt(f"{_TEMPORARY}{digits}", text)


def verbatim_prompt(path: str, text: str) -> Prompt:
    """Return a prompt with a verbatim text, in which braces have no meaning."""
    return Prompt(path=path, prompt=text, renderer=_VERBATIM)


def _frozen(prompt: Prompt, name: str) -> FrozenDict:
    given: object = getattr(prompt, name)
    if given is None:
        return EMPTY
    if not isinstance(given, Mapping):
        raise InvalidInput(f"{name} of the prompt {prompt.path!r} is {a_type(given)}, not a mapping.")
    changes: list[Replaced] = []
    frozen = freeze(dict(given), name, changes)
    if changes:
        raise InvalidInput(f"{changes[0].place} of the prompt {prompt.path!r} is not a JSON value.")
    return FrozenDict(frozen)


def _listed(prompt: Prompt, name: str) -> tuple[Any, ...]:
    given: object = getattr(prompt, name)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InvalidInput(f"{name} of the prompt {prompt.path!r} is {a_type(given)}, not a list.")
    return tuple(given)


def _handler(prompt: Prompt) -> Handler:
    given = prompt.handler
    made: Handler = _HANDLER if given is None else given() if isinstance(given, type) else given
    for method in ("on_exception", "on_interrupt", "on_interrupt_final"):
        if not callable(getattr(made, method, None)):
            raise InvalidInput(f"The handler of the prompt {prompt.path!r} has no method {method}.")
    return made


def _name(thing: object, attribute: str) -> str:
    """Return the name of a function, a server, or a reference to one."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, Mapping):
        return str(thing.get(attribute, ""))
    return str(getattr(thing, attribute, None) or getattr(thing, "__name__", thing))
