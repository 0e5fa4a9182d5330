"""A Python callable as a tool: its parameters, their schema, and calls with JSON arguments.

The parameters of a typed function become a Pydantic `TypedDict`, not a model, so that they may have any name. A function with a
declared schema receives the JSON values unchanged.
"""

from __future__ import annotations

import inspect
import json
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, NotRequired, Required, TypeAlias, Union, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict  # Pydantic accepts typing's own from Python 3.12 on

from palaver.errors import InvalidInput
from palaver.messages import thaw
from palaver.tools.outcomes import CallContext
from palaver.tools.schemas import SchemaViolation, close_objects

Implementation: TypeAlias = Callable[..., Any]

_EMPTY = inspect.Parameter.empty
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class InvalidArgumentsError(Exception):
    """Arguments that the types of a function refuse; becomes a result for the model."""

    def __init__(self, faults: list[SchemaViolation]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True)
class Binding:
    """How a callable is called with JSON arguments.

    Attributes:
        function: The callable.
        signature: Its signature, annotations evaluated, without `self`.
        contexts: The parameters that receive the `CallContext`.
        is_method: Whether the function is not yet bound to its instance.
        typed: Whether the arguments are converted to the annotated types.
    """

    function: Implementation
    signature: inspect.Signature
    contexts: tuple[str, ...] = ()
    is_method: bool = False
    typed: bool = False

    @property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The parameters that a model fills."""
        parameters = self.signature.parameters.values()
        return tuple(
            parameter for parameter in parameters if parameter.name not in self.contexts and parameter.kind not in _MANY
        )

    @property
    def required(self) -> frozenset[str]:
        """The names of those that have no default."""
        return frozenset(parameter.name for parameter in self.parameters if parameter.default is _EMPTY)

    @property
    def open_ended(self) -> bool:
        """Whether it accepts any named argument."""
        return any(parameter.kind is parameter.VAR_KEYWORD for parameter in self.signature.parameters.values())

    @cached_property
    def _types(self) -> TypeAdapter[Any]:
        make: Any = TypedDict
        fields = {
            parameter.name: (Required if parameter.default is _EMPTY else NotRequired)[parameter.annotation]
            for parameter in self.parameters
        }
        arguments = make("Arguments", fields)
        arguments.__pydantic_config__ = ConfigDict(extra="forbid")
        try:
            return TypeAdapter(arguments)
        except (PydanticUserError, TypeError) as error:
            raise InvalidInput(
                f"The types of {_name(self.function)}() cannot be read from JSON: {str(error).splitlines()[0]}",
                hint="Annotate its parameters with JSON types, Pydantic models, dataclasses, enums or TypedDicts.",
            ) from error

    def schema(self, prop_desc: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON schema of the arguments.

        Args:
            prop_desc: Descriptions by parameter, which override those of the annotations.

        Raises:
            InvalidInput: A type has no JSON schema, or a description names no parameter.
        """
        unknown = sorted(prop_desc.keys() - {parameter.name for parameter in self.parameters})
        if unknown:
            raise InvalidInput(f"{_name(self.function)}() has no parameter {unknown[0]!r} to describe.")
        try:
            schema = close_objects(self._types.json_schema())
        except PydanticUserError as error:
            raise InvalidInput(
                f"The types of {_name(self.function)}() have no JSON schema: {str(error).splitlines()[0]}",
                hint="A model cannot fill such a parameter. Annotate one that the program fills with CallContext.",
            ) from error
        properties = schema.setdefault("properties", {})
        for parameter in self.parameters:
            properties[parameter.name] = _described(
                properties[parameter.name], parameter, prop_desc.get(parameter.name)
            )
        schema.pop("description", None)
        return schema

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> Callable[[], Any]:
        """Return a function that makes the call with these arguments.

        Raises:
            InvalidArgumentsError: The types refuse them.
        """
        values: dict[str, Any] = thaw(dict(arguments))
        if self.typed:
            try:
                values = self._types.validate_python(values)
            except ValidationError as error:
                raise InvalidArgumentsError(_violations(error)) from error
        known = {parameter.name for parameter in self.parameters}
        bound = inspect.BoundArguments(self.signature, OrderedDict(dict.fromkeys(self.contexts, context)))
        bound.arguments.update({name: values[name] for name in known & values.keys()})
        rest = {name: value for name, value in values.items() if name not in known}
        return partial(self.function, *bound.args, **bound.kwargs, **rest)


def read_signature(function: object) -> Binding:
    """Return the binding of a typed function, method, partial or object with `__call__`, plain or async.

    Raises:
        InvalidInput: It cannot be called, or has parameters that no JSON object can fill.
    """
    binding = replace(bind(function), typed=True)
    given = binding.signature.parameters.values()
    many = next((parameter for parameter in given if parameter.kind in _MANY), None)
    if many is not None:
        raise InvalidInput(
            f"{_name(function)}() has {many}, but a model passes each argument by name.",
            hint="Declare list or dict parameters instead, or pass the schema with Function(..., parameters=...).",
        )
    typed = [_with_type(parameter) if parameter.name not in binding.contexts else parameter for parameter in given]
    return replace(binding, signature=binding.signature.replace(parameters=typed))


def bind(function: object) -> Binding:
    """Return the binding of a function whose arguments a schema declares.

    Raises:
        InvalidInput: It cannot be called, hides its parameters, or is a generator.
    """
    if not callable(function):
        raise InvalidInput(f"{function!r} cannot be called.", hint="Pass a function. Put @tool under @staticmethod.")
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as error:
        raise InvalidInput(
            f"The annotations of {_name(function)}() cannot be evaluated: {error}.",
            hint="Define the type at the top of the module, before the function and not only for type checkers.",
        ) from error
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{_name(function)}() hides its parameters.", hint="Wrap it in a Python function with annotations."
        ) from error
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidInput(
            f"{_name(function)}() yields, but a call has one result.",
            hint="Return the whole, and report progress with CallContext.emit_progress().",
        )
    is_method = _is_method(function, signature)
    parameters = list(signature.parameters.values())[is_method:]
    contexts = tuple(parameter.name for parameter in parameters if _is_context(parameter.annotation))
    return Binding(function, signature.replace(parameters=parameters), contexts, is_method=is_method)


def _name(function: object) -> str:
    name = getattr(function, "__qualname__", None) or getattr(getattr(function, "func", None), "__qualname__", None)
    return str(name or type(function).__name__)


def _is_method(function: Implementation, signature: inspect.Signature) -> bool:
    """Return whether this is a method in the body of its class."""
    first = next(iter(signature.parameters.values()), None)
    return (
        inspect.isfunction(function)
        and first is not None
        and first.name in {"self", "cls"}
        and first.annotation is _EMPTY
        and "." in function.__qualname__.rpartition("<locals>.")[2]
    )


def _is_context(annotation: Any) -> bool:  # noqa: ANN401 - a type form
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return any(map(_is_context, get_args(annotation)))
    return isinstance(annotation, type) and issubclass(annotation, CallContext)


def _with_type(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter with a type. Without an annotation, this is the type of a plain default, or else text."""
    default, annotation = parameter.default, parameter.annotation
    if isinstance(default, FieldInfo):
        raise InvalidInput(
            f"The default of {parameter.name!r} is a Field.", hint="Write Annotated[type, Field(...)] = default."
        )
    if annotation is _EMPTY:
        annotation = type(default) if isinstance(default, str | bool | int | float) else str
    if default is None:
        annotation = Union[annotation, None]  # noqa: UP007 - a type form
    return parameter.replace(annotation=annotation)


def _described(schema: Any, parameter: inspect.Parameter, description: str | None) -> dict[str, Any]:  # noqa: ANN401 - a schema
    """Return a property's schema with description and default; `Optional[X]` is declared as X."""
    out: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    while {"type": "null"} in out.get("anyOf", ()):
        rest = {word: value for word, value in out.items() if word != "anyOf"}
        cases = [case for case in out["anyOf"] if case != {"type": "null"}]
        out = {**cases[0], **rest} if len(cases) == 1 else {"anyOf": cases, **rest}
    out.pop("default", None)
    said = description or out.get("description") or ""
    if parameter.default is not _EMPTY:
        try:
            plain = json.dumps(to_jsonable_python(parameter.default), allow_nan=False, ensure_ascii=False)
        except (PydanticSerializationError, ValueError, TypeError, RecursionError):
            plain = ""  # a default that JSON cannot express is the function's own business
        if plain:
            said = f"{said} (default: {plain})".lstrip()
        if plain and plain != "null":
            out["default"] = json.loads(plain)
    return {**out, "description": said} if said else out


def _violations(error: ValidationError) -> list[SchemaViolation]:
    """Return Pydantic's violations, each once, without the names of Pydantic's own branches in their places."""
    violations: dict[str, SchemaViolation] = {}
    for fault in error.errors(include_url=False, include_input=False):
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in fault["loc"] if _is_step(step)]
        message = fault["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        violation = SchemaViolation("".join(steps).removeprefix("."), message[:1].lower() + message[1:])
        violations.setdefault(str(violation), violation)
    return list(violations.values())


def _is_step(step: object) -> bool:
    return isinstance(step, int) or str(step).isidentifier()
