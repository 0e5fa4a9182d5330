"""A tool as it is declared to a model, and the Python function behind it."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar, overload

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.messages import FunctionCall, ToolCallContent, thaw
from palaver.messages.frozen import EMPTY, FrozenDict
from palaver.tools.binding import Binding, Implementation, bind, check_importable
from palaver.tools.context import CallContext
from palaver.tools.docstrings import documented
from palaver.tools.schemas import strict_obstacle

__all__ = ["Availability", "Function", "Processor", "ToolFunction", "labelled", "tool"]

MAX_BYTES = 10_000_000
"""What one call may bring in, in bytes of UTF-8 and of media together; more is cut and said."""

_FORBIDDEN = re.compile(r"[\s/:\\;%\x00-\x1f\x7f]")

Processor: TypeAlias = Callable[[Any, FunctionCall], Any]
"""Makes of what a function returned, and its call, what the model is told."""

Availability: TypeAlias = bool | str | Callable[..., bool | str]
"""True, False, a reason why not; or a function that says one of these, of nothing or of the `CallContext`."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Function:
    r"""A tool: what a model is told of it, and how it is run. A value; `extend` derives another one.

    Attributes:
        name: What the model calls it by: no white space and none of `/ : \ ; %`.
        description: What it does, for the model.
        properties: The JSON schema of each argument, by name.
        required: The names of the arguments that must be given.
        parameters: The whole JSON schema of the arguments, in place of `properties` and `required`; it is made of them otherwise.
        function: What runs, or None for a tool that is only declared: see `linked`.
        additional_properties: Whether arguments beyond `properties` are taken.
        strict: Whether to ask the provider that arguments hold to the schema, where the schema lets it.
        processor: Makes of the result what the model is told; None for the result itself.
        allow_repeat: Whether the same call may run again in one agent call, as polling needs.
        idempotent: Whether running it twice does no more than running it once: after a crash it may run again, and it does not
            change what another tool would say.
        timeout: Seconds after which a call is given up; None for no limit.
        needs_approval: Whether somebody must agree before it runs; or a function of the arguments that says so.
        available: Whether it may be used now; it stays declared either way.
        exclusive: Whether nothing else of the same batch may run beside it.
        isolated: Whether it runs in a process of its own, which can be killed and may die.
        max_bytes: What one call may bring in; more is cut and said.
        metadata: For the program: JSON values, a copy, read-only.
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
    isolated: bool = False
    max_bytes: int = MAX_BYTES
    metadata: Mapping[str, Any] = EMPTY
    binding: Binding | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the declaration, and copy what could be changed from outside.

        Raises:
            InvalidInput: The name, the schema or a limit is none; or the function does not take the arguments declared.
        """
        if not self.name or _FORBIDDEN.search(self.name):
            raise InvalidInput(
                f"A tool cannot be called {self.name!r}.",
                hint="Use letters, digits, _ and -; providers take 64 of them.",
            )
        if self.timeout is not None and not self.timeout > 0:
            raise InvalidInput(f"The timeout of {self.name!r} is {self.timeout!r}, not a number of seconds.")
        settle = functools.partial(object.__setattr__, self)
        schema = _schema(self)
        settle("parameters", schema)
        settle("properties", schema["properties"])
        settle("required", tuple(schema.get("required", ())))
        settle("metadata", FrozenDict(self.metadata))
        if self.function is None:
            settle("binding", None)
        elif self.binding is None or self.binding.function is not self.function:
            settle("binding", _bound(self, self.function))
        if self.isolated and self.function is not None:
            check_importable(self.function)

    @classmethod
    def from_callable(
        cls,
        function: Callable[P, R],
        *,
        prop_desc: Mapping[str, str] = EMPTY,
        **overrides: Any,  # noqa: ANN401 - fields of a function
    ) -> ToolFunction[P, R]:
        """Make a tool of a Python callable: its name, docstring, parameters and their types say what it is.

        Args:
            function: A function, a method, a partial or an object with `__call__`, plain or async.
            prop_desc: Descriptions of parameters, by name; they win over annotations and docstring.
            **overrides: Fields of the tool that differ, such as `name` or `timeout`.

        Raises:
            InvalidInput: No JSON object can fill its parameters (`*args`, `**kwargs`, a type without a JSON schema), or a field is
                not one.
        """
        if isinstance(function, ToolFunction):
            return function.extend(**overrides) if overrides else function
        _known(cls, overrides)
        binding = bind(function)
        described = documented(inspect.getdoc(function)).description if _has_own_docstring(function) else ""
        stated = {
            "name": _called(function),
            "description": described,
            "parameters": binding.schema(prop_desc),
            **overrides,
        }
        return ToolFunction(**stated, function=function, binding=binding)

    def extend(self, **overrides: Any) -> Self:  # noqa: ANN401 - fields of a tool
        """Derive a tool that differs in the fields given.

        Raises:
            InvalidInput: One is no field of a tool.
        """
        _known(type(self), overrides)
        if {"properties", "required", "additional_properties"} & overrides.keys():
            overrides = {"parameters": EMPTY, **overrides}
        return replace(self, **overrides)

    def link_function(self, function: Implementation) -> Function:
        """Give the implementation to this very tool, and give the tool back; `extend(function=…)` leaves this one as it is.

        Raises:
            TypeError: It cannot be called.
            InvalidInput: It does not take the arguments that are declared.
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
        """What the log records of it, and what a request declares."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)

    @property
    def strict_obstacle(self) -> str:
        """Why no provider can hold arguments to the schema; empty where one can."""
        return strict_obstacle(self.parameters)

    def to_tool(self) -> dict[str, Any]:
        """Give the declaration in the form of chat completions; a copy. It claims to be strict only where that can hold."""
        declaration = {
            "name": self.name,
            "description": self.description,
            "parameters": thaw(self.parameters),
            "strict": self.strict and not self.strict_obstacle,
        }
        return {"type": "function", "function": declaration}

    def unavailable(self, context: CallContext | None = None) -> str:
        """Say why the tool may not be used now; empty when it may. Never raises: a check that fails is a reason."""
        state: bool | str | Callable[..., bool | str] = self.available
        try:
            if callable(state):
                wants = bool(inspect.signature(state).parameters)
                state = state(context or CallContext()) if wants else state()
        except Exception as error:  # noqa: BLE001 - the program's own check; a tool is not run on a doubt
            return f"whether it may be used could not be found out ({type(error).__name__})"
        return state if isinstance(state, str) else "" if state else "it is switched off for now"

    def approval_needed(self, call: ToolCallContent) -> bool:
        """Say whether somebody must agree before this call runs. Never raises: a check that fails means yes."""
        if not callable(self.needs_approval):
            return bool(self.needs_approval)
        try:
            return bool(self.needs_approval(call.args))
        except Exception:  # noqa: BLE001 - the program's own check; on a doubt somebody is asked
            return True


@dataclass(frozen=True, repr=False)
class ToolFunction(Function, Generic[P, R]):
    """A Python function that is a tool, and can still be called as what it is."""

    def __post_init__(self) -> None:
        """Look like the function to whoever inspects it."""
        super().__post_init__()
        if self.function is not None:
            for name in ("__name__", "__qualname__", "__doc__", "__module__"):
                if hasattr(self.function, name):
                    object.__setattr__(self, name, getattr(self.function, name))
            object.__setattr__(self, "__wrapped__", self.function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself: nothing is validated, nothing is turned into a result."""
        if self.function is None:
            raise TypeError(f"The tool {self.name!r} has no implementation.")
        result: R = self.function(*args, **kwargs)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401 - itself, with its instance
        """Bind to an instance, as a method does."""
        if instance is None or self.binding is None or not self.binding.is_method or self.function is None:
            return self
        method = self.function.__get__(instance, owner)
        return replace(self, function=method, binding=replace(self.binding, function=method, is_method=False))

    def __repr__(self) -> str:
        """Show what is declared."""
        return f"<tool {self.name}({', '.join(self.properties)})>"


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...
@overload
def tool(
    *,
    prop_desc: Mapping[str, str] = ...,
    **overrides: Any,  # noqa: ANN401 - fields of a function
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    prop_desc: Mapping[str, str] = EMPTY,
    **overrides: Any,
) -> Any:
    """Make a tool of the function below: `@tool`, or `@tool(description=…, prop_desc={…}, timeout=…)`.

    The result is a `Function`, and can be called like the function it was made of.

    Raises:
        InvalidInput: As for `Function.from_callable`.
    """
    if function is not None:
        return Function.from_callable(function)
    return functools.partial(Function.from_callable, prop_desc=prop_desc, **overrides)


def labelled(result: Any, call: FunctionCall) -> str:  # noqa: ANN401 - whatever was returned
    """Name the call in its result, for models that lose track of which result is whose: a processor."""
    return f"Return of calling function {call.name} with arguments {thaw(call.arguments)}:\n---\n{result}\n---\n"


# --- the declaration ---------------------------------------------------------------------------------------------------


def _schema(function: Function) -> FrozenDict:
    schema = dict(function.parameters)
    if not schema:
        schema = {"type": "object", "properties": dict(function.properties), "required": list(function.required)}
        if not function.additional_properties:
            schema["additionalProperties"] = False
    if schema.get("type", "object") != "object":
        raise InvalidInput(f"The parameters of {function.name!r} are of type {schema['type']!r}, not of an object.")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping) or not all(isinstance(each, Mapping | bool) for each in properties.values()):
        raise InvalidInput(f"The properties of {function.name!r} are not JSON schemas by name.")
    missing = [name for name in schema.get("required", ()) if name not in properties]
    if missing and schema.get("additionalProperties") is False:
        raise InvalidInput(f"{function.name!r} requires {missing[0]!r}, which is none of its properties.")
    return FrozenDict({**schema, "type": "object", "properties": properties})


def _bound(declared: Function, function: Implementation) -> Binding:
    """Read an implementation, and hold it to what is declared.

    Raises:
        InvalidInput: It misses an argument that is declared, or needs one that is not.
    """
    binding = bind(function, open_ended=True)
    taken = {each.name for each in binding.parameters}
    needed = {each.name for each in binding.parameters if each.required}
    extra = sorted(needed - declared.properties.keys())
    if extra:
        raise InvalidInput(f"The implementation of {declared.name!r} needs {extra[0]!r}, which is not declared.")
    untaken = sorted(declared.properties.keys() - taken)
    if untaken and not binding.takes_more:
        raise InvalidInput(f"The implementation of {declared.name!r} does not take {untaken[0]!r}, which is declared.")
    return binding


def _known(kind: type[Function], overrides: Mapping[str, Any]) -> None:
    names = {each.name for each in fields(kind) if each.init} - {"binding"}
    unknown = sorted(overrides.keys() - names)
    if unknown:
        raise InvalidInput(f"A tool has no {unknown[0]!r}.", hint=f"It has: {', '.join(sorted(names))}.")


def _called(function: Any) -> str:  # noqa: ANN401 - any callable
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__name__", type(inner).__name__))


def _has_own_docstring(function: object) -> bool:
    """Leave out what Python says of a partial, or an instance's class says of the class."""
    return not isinstance(function, functools.partial)
