"""A tool: its declaration for the model, and the Python function that runs."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from palaver.errors import InvalidInput, warn
from palaver.log import ToolSpec
from palaver.log.values import BY_CODE, BY_MODEL
from palaver.messages import FunctionCall, ToolCallContent, thaw
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.tools.outcomes import CallContext
from palaver.tools.schemas import is_strict, unchecked
from palaver.tools.signature import Binding, Implementation, bind, read_signature

MAX_BYTES = 10_000_000
"""The maximum bytes of a result, UTF-8 text and media together. Ten million is far more than any context window."""

_FORBIDDEN = re.compile(r"[\s/:\\;%\x00-\x1f\x7f]")

Processor: TypeAlias = Callable[[Any, FunctionCall], Any]
"""Turns a function's return value and its call into the text for the model."""

Availability: TypeAlias = bool | str | Callable[..., bool | str]
"""True, False or a reason; or a function that returns one of these, without arguments or with the `CallContext`."""


class SchemaWarning(UserWarning):
    """A part of a tool's schema is not checked."""


P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Function:
    r"""A tool: its declaration and its function. It is immutable; `extend` returns a modified copy.

    Attributes:
        name: Its name for the model, without white space and `/ : \ ; %`.
        description: Its purpose, for the model.
        properties: The JSON schema of each argument, by name.
        required: The names of the required arguments.
        parameters: The whole JSON schema of the arguments. Default: built from `properties` and `required`.
        function: The implementation, or None for a tool that is only declared.
        additional_properties: Whether arguments beyond `properties` are accepted.
        strict: Whether to ask the provider to enforce the schema, where the schema allows it.
        processor: Turns the result into the text for the model; None for the result itself.
        allow_repeat: Whether the same call may run again in one turn, as polling needs.
        idempotent: Whether running it twice has the effect of running it once. After a crash it may run again, and it does
            not change what another tool would return.
        timeout: Seconds after which a call is abandoned; None for no limit.
        needs_approval: Whether a person must approve a call; or a function of the arguments that decides.
        available: Whether it may be used now. It stays declared in any case.
        exclusive: Whether no other call of the same response may run at the same time.
        max_bytes: The maximum bytes of a result; a longer one is cut, with a note.
        reads: The arguments that name a file the call reads.
        writes: The arguments that name a file the call writes.
        deferred: Whether the model searches for the tool before it reads the declaration. Elsewhere it is declared like any other.
        callers: Who may call it: `model`, and `code` that the provider runs.
        format: The form of its one argument where that is free text: `text`, or a grammar: `{"syntax": "lark", "definition": ...}`.
        native: The provider's own tools whose calls it runs: a name such as `bash` or `shell`, or options by name. A provider that has none of
            them gets the declaration as a function.
        group: The tools that it belongs with: a name, or the name with a description: `{"crm": "Customers and their tickets."}`. The model reads
            of such a group before it reads of its tools.
        metadata: For the program: JSON values, copied and read-only.
    """

    name: str
    description: str = ""
    properties: Mapping[str, Any] = EMPTY
    required: Sequence[str] = ()
    _: KW_ONLY
    parameters: Mapping[str, Any] = EMPTY
    function: Implementation | None = None
    additional_properties: bool = False
    strict: bool = True
    processor: Processor | None = None
    allow_repeat: bool = False
    idempotent: bool = False
    timeout: float | None = None
    needs_approval: bool | Callable[[Mapping[str, Any]], bool] = False
    available: Availability = True
    exclusive: bool = False
    max_bytes: int = MAX_BYTES
    reads: str | Sequence[str] = ()
    writes: str | Sequence[str] = ()
    deferred: bool = False
    callers: str | Sequence[str] = (BY_MODEL,)
    format: str | Mapping[str, Any] | None = None
    native: str | Mapping[str, Mapping[str, Any]] = EMPTY
    group: str | Mapping[str, str] = EMPTY
    metadata: Mapping[str, Any] = EMPTY
    binding: Binding | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the declaration, and copy mutable values.

        Raises:
            InvalidInput: A field has a value of the wrong type, or the function does not accept the declared arguments.
        """
        _check_types(self)
        settle = functools.partial(object.__setattr__, self)
        schema = _schema(self)
        if self.binding is None:  # a schema that was read from the function's types is checked by these types
            _warn_of_unchecked(self.name, schema)
        settle("parameters", schema)
        settle("properties", schema["properties"])
        settle("required", tuple(schema.get("required", ())))
        settle("metadata", FrozenDict(self.metadata))
        settle("reads", _argument_names(self, "reads"))
        settle("writes", _argument_names(self, "writes"))
        settle("callers", _callers(self))
        settle("format", _text_format(self))
        settle("native", FrozenDict({self.native: {}}) if isinstance(self.native, str) else FrozenDict(self.native))
        settle("group", _group(self))
        if self.function is None:
            settle("binding", None)
        elif self.binding is None or self.binding.function is not self.function:
            settle("binding", _bound(self, self.function))

    @classmethod
    def from_callable(
        cls,
        function: Callable[P, R],
        *,
        prop_desc: Mapping[str, str] = EMPTY,
        **overrides: Any,  # noqa: ANN401 - fields of a function
    ) -> ToolFunction[P, R]:
        """Build a tool from a Python callable, its types and its docstring.

        Args:
            function: A function, a method, a partial or an object with `__call__`, plain or async.
            prop_desc: Descriptions by parameter, which override those of the annotations.
            **overrides: Fields of the tool, such as `name` or `timeout`.

        Raises:
            InvalidInput: No JSON object can fill its parameters, or a field does not exist or has the wrong type.
        """
        described: object = prop_desc
        if not isinstance(described, Mapping) or not all(isinstance(text, str) for text in described.values()):
            raise InvalidInput(f"prop_desc is {prop_desc!r}.", hint="Pass descriptions by parameter: {'city': '...'}.")
        if isinstance(function, ToolFunction):
            return function.extend(**overrides) if overrides else function
        _known(cls, overrides)
        binding = read_signature(function)
        doc = None if isinstance(function, functools.partial) else function.__doc__  # not an inherited one
        stated = {
            "name": _called(function),
            "description": inspect.cleandoc(doc or ""),
            "parameters": binding.schema(prop_desc),
        }
        return ToolFunction(**{**stated, **overrides}, function=function, binding=binding)

    def extend(self, **overrides: Any) -> Self:  # noqa: ANN401 - fields of a tool
        """Return a copy of the tool with some fields changed.

        Raises:
            InvalidInput: A field does not exist or has the wrong type.
        """
        _known(type(self), overrides)
        if {"properties", "required", "additional_properties"} & overrides.keys():
            overrides = {"parameters": EMPTY, **overrides}
        return replace(self, **overrides)

    def link_function(self, function: Implementation) -> Function:
        """Attach the implementation to this tool and return it. `extend(function=...)` returns a copy instead.

        Raises:
            TypeError: It cannot be called.
            InvalidInput: It does not accept the declared arguments.
        """
        if not callable(function):
            raise TypeError(f"The implementation of {self.name!r} cannot be called: {function!r}.")
        object.__setattr__(self, "binding", _bound(self, function))
        object.__setattr__(self, "function", function)
        return self

    @property
    def linked(self) -> bool:
        """Whether there is an implementation."""
        return self.function is not None

    @property
    def spec(self) -> ToolSpec:
        """The declaration that the log and requests contain."""
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            reads=tuple(self.reads) or None,
            writes=tuple(self.writes) or None,
            deferred=self.deferred or None,
            callers=None if self.callers == (BY_MODEL,) else tuple(self.callers),
            format=self.format,
            native=self.native if isinstance(self.native, Mapping) and self.native else None,
            group=self.group if isinstance(self.group, Mapping) and self.group else None,
        )

    def to_tool(self) -> dict[str, Any]:
        """Return the declaration in the format of chat completions, as a copy. It sets `strict` only if the schema allows it."""
        declaration = {
            "name": self.name,
            "description": self.description,
            "parameters": thaw(self.parameters),
            "strict": self.strict and is_strict(self.parameters),
        }
        return {"type": "function", "function": declaration}

    def unavailable(self, context: CallContext | None = None) -> str:
        """Return why the tool cannot be used now, or an empty text. A check that raises is a reason."""
        state: bool | str | Callable[..., bool | str] = self.available
        try:
            if callable(state):
                wants = bool(inspect.signature(state).parameters)
                state = state(context or CallContext()) if wants else state()
        except Exception as error:  # noqa: BLE001 - the program's own check
            return f"its availability check raised {type(error).__name__}"
        return state if isinstance(state, str) else "" if state else "it is switched off for now"

    def approval_needed(self, call: ToolCallContent) -> bool:
        """Return whether a person must approve this call, such as one that the provider warns of. A check that raises means yes."""
        if call.warned:
            return True
        if not callable(self.needs_approval):
            return self.needs_approval
        try:
            return bool(self.needs_approval(call.args))
        except Exception:  # noqa: BLE001 - the program's own check
            return True


@dataclass(frozen=True, repr=False)
class ToolFunction(Function, Generic[P, R]):
    """A Python function that is a tool and can still be called as a function."""

    def __post_init__(self) -> None:
        """Check the declaration, and copy the function's attributes."""
        super().__post_init__()
        if self.function is not None:
            for name in functools.WRAPPER_ASSIGNMENTS:
                if hasattr(self.function, name):
                    object.__setattr__(self, name, getattr(self.function, name))
            object.__setattr__(self, "__wrapped__", self.function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly, without checks."""
        if self.function is None:
            raise TypeError(f"The tool {self.name!r} has no implementation.")
        result: R = self.function(*args, **kwargs)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> ToolFunction[..., R]:
        """Bind to an instance, as a method does."""
        if instance is None or self.binding is None or not self.binding.is_method or self.function is None:
            return self
        method = self.function.__get__(instance, owner)
        return replace(self, function=method, binding=replace(self.binding, function=method, is_method=False))

    def __repr__(self) -> str:
        """Show the declaration."""
        return f"<tool {self.name}({', '.join(self.properties)})>"


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...
@overload
def tool(
    description: str = ...,
    prop_desc: Mapping[str, str] = ...,
    **overrides: Any,  # noqa: ANN401 - fields of a function
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...


def tool(
    description: Callable[..., Any] | str | None = None,
    prop_desc: Mapping[str, str] = EMPTY,
    **overrides: Any,
) -> Any:
    """Turn the function below into a tool: `@tool`, or `@tool(description=..., prop_desc={...}, timeout=...)`.

    The result is a `Function` and can still be called as the function it was.

    Raises:
        InvalidInput: As for `Function.from_callable`.
    """
    if callable(description):
        return Function.from_callable(description)
    stated = {**overrides, **({} if description is None else {"description": description})}
    return functools.partial(Function.from_callable, prop_desc=prop_desc, **stated)


def labelled(result: Any, call: FunctionCall) -> str:  # noqa: ANN401 - any return value
    """Return a result that names its call, for models that confuse parallel results. Use it as a processor."""
    return f"Return of calling function {call.name} with arguments {thaw(call.arguments)}:\n---\n{result}\n---\n"


# --- checking the declaration ----------------------------------------------------------------------------------------------

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "description": str,
    **dict.fromkeys(("properties", "parameters", "metadata"), Mapping),
    **dict.fromkeys(("additional_properties", "strict", "allow_repeat", "idempotent", "exclusive", "deferred"), bool),
    "native": (str, Mapping),
    "group": (str, Mapping),
    "max_bytes": int,
    "available": (bool, str, Callable),  # type: ignore[dict-item] # a type for isinstance
    "needs_approval": (bool, Callable),  # type: ignore[dict-item] # the same
}


def _check_types(function: Function) -> None:
    for name, kind in _TYPES.items():
        if not isinstance(getattr(function, name), kind):
            raise InvalidInput(
                f"{name} of the tool {function.name!r} is {getattr(function, name)!r}, which has the wrong type."
            )
    if not function.name or _FORBIDDEN.search(function.name):
        raise InvalidInput(
            f"The name {function.name!r} is not allowed for a tool.",
            hint="Use letters, digits, _ and -, at most 64 of them.",
        )
    seconds: object = function.timeout
    if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
        raise InvalidInput(f"The timeout of {function.name!r} is {seconds!r}.", hint="Pass seconds above 0, or None.")


def _warn_of_unchecked(name: str, schema: Mapping[str, Any]) -> None:
    if parts := ", ".join(dict.fromkeys(unchecked(schema))):
        warn(f"The arguments of {name!r} are not checked for {parts}. Check them in the function.", SchemaWarning)


def _schema(function: Function) -> FrozenDict:
    schema = dict(function.parameters)
    if not schema:
        schema = {"type": "object", "properties": dict(function.properties), "required": list(function.required)}
        if not function.additional_properties:
            schema["additionalProperties"] = False
    if schema.get("type", "object") != "object":
        raise InvalidInput(f"The parameters of {function.name!r} have the type {schema['type']!r}, not 'object'.")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(
        isinstance(schema, Mapping | bool) for schema in properties.values()
    ):
        raise InvalidInput(f"The properties of {function.name!r} are not JSON schemas by name.")
    missing = [name for name in schema.get("required", ()) if name not in properties]
    if missing and schema.get("additionalProperties") is False:
        raise InvalidInput(f"{function.name!r} requires {missing[0]!r}, which is not among its properties.")
    return FrozenDict({**schema, "type": "object", "properties": properties})


def _argument_names(function: Function, which: str) -> tuple[str, ...]:
    given = getattr(function, which)
    names = (given,) if isinstance(given, str) else tuple(given)
    unknown = [name for name in names if name not in function.properties]
    if unknown:
        raise InvalidInput(f"{which} of the tool {function.name!r} names {unknown[0]!r}, which is not an argument.")
    return names


def _callers(function: Function) -> tuple[str, ...]:
    callers = (function.callers,) if isinstance(function.callers, str) else tuple(function.callers)
    if not callers or set(callers) - {BY_MODEL, BY_CODE}:
        raise InvalidInput(
            f"callers of the tool {function.name!r} are {callers!r}.", hint=f"Name {BY_MODEL!r}, {BY_CODE!r} or both."
        )
    return callers


def _text_format(function: Function) -> str | FrozenDict | None:
    """Return the form of a tool's one argument where that is free text."""
    form = function.format
    if form is None:
        return None
    if form != "text" and not (isinstance(form, Mapping) and {"syntax", "definition"} <= form.keys()):
        raise InvalidInput(
            f"format of the tool {function.name!r} is {form!r}.", hint="Pass 'text', or a syntax and its definition."
        )
    (*more, schema) = function.properties.values() if function.properties else (None,)
    if more or not isinstance(schema, Mapping) or schema.get("type") != "string":
        raise InvalidInput(f"The tool {function.name!r} has a format, so it has one argument, of type string.")
    return form if isinstance(form, str) else FrozenDict(form)


def _group(function: Function) -> FrozenDict:
    """Return the name of the tool's group with its description; empty for none."""
    group = function.group
    group = {group: group} if isinstance(group, str) and group else group or {}
    if len(group) > 1 or not all(isinstance(said, str) for pair in group.items() for said in pair):
        raise InvalidInput(
            f"group of the tool {function.name!r} is {group!r}.", hint="Pass a name, or {name: description}."
        )
    return FrozenDict(group)


def _bound(declared: Function, function: Implementation) -> Binding:
    """Return the binding of an implementation that accepts the declared arguments.

    Raises:
        InvalidInput: It lacks a declared argument, or requires one that is not declared.
    """
    binding = bind(function)
    extra = sorted(binding.required - declared.properties.keys())
    if extra:
        raise InvalidInput(f"The implementation of {declared.name!r} requires {extra[0]!r}, which is not declared.")
    lacking = sorted(declared.properties.keys() - {parameter.name for parameter in binding.parameters})
    if lacking and not binding.open_ended:
        raise InvalidInput(
            f"The implementation of {declared.name!r} does not accept {lacking[0]!r}, which is declared."
        )
    return binding


def _known(kind: type[Function], overrides: Iterable[str]) -> None:
    names = {field.name for field in fields(kind) if field.init} - {"binding"}
    unknown = sorted(set(overrides) - names)
    if unknown:
        raise InvalidInput(f"A tool has no field {unknown[0]!r}.", hint=f"Fields: {', '.join(sorted(names))}.")


def _called(function: Any) -> str:  # noqa: ANN401 - any callable
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
