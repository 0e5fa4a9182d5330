"""A Python callable as a tool sees it: its parameters with their types, the schema they make, and a call made of JSON arguments.

Types are read with Pydantic's public interface only. The parameters become a `TypedDict`, not a model: a parameter may have any name
(`schema`, `json`, `_private`), and one that was not given is not passed, so that defaults stay the function's own.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import (
    Annotated,
    Any,
    NotRequired,
    Optional,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python
from typing_extensions import TypedDict  # Pydantic takes that of `typing` from Python 3.12 on only

from palaver.errors import InvalidInput
from palaver.messages import canonical_json
from palaver.tools.context import CallContext
from palaver.tools.docstrings import documented
from palaver.tools.judging import Fault
from palaver.tools.schemas import declared

__all__ = ["Binding", "Implementation", "UnfitArgumentsError", "bind", "check_importable", "is_async"]

Implementation: TypeAlias = Callable[..., Any]

_EMPTY = inspect.Parameter.empty
_PLAIN = (str, bool, int, float)


class UnfitArgumentsError(Exception):
    """Arguments that the types of a function refuse; becomes a result for the model."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True)
class Parameter:
    """One parameter that a model fills.

    Attributes:
        name: Its name.
        annotation: Its type, metadata included.
        default: What the function takes when it is not given; `inspect.Parameter.empty` where it must be.
        by_position: Whether Python takes it by position only.
    """

    name: str
    annotation: Any
    default: Any
    by_position: bool

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is _EMPTY


@dataclass(frozen=True)
class Binding:
    """How a callable is called with JSON arguments.

    Attributes:
        function: The callable.
        parameters: What a model fills, in order.
        contexts: The parameters that get the `CallContext`.
        is_method: True for a function that still waits for its instance.
        takes_more: True for one that takes any named argument.
    """

    function: Implementation
    parameters: tuple[Parameter, ...]
    contexts: tuple[str, ...] = ()
    is_method: bool = False
    takes_more: bool = False

    @cached_property
    def _types(self) -> TypeAdapter[Any]:
        make: Any = TypedDict  # the names come from a signature, so that a checker has nothing to say
        fields = {each.name: (Required if each.required else NotRequired)[each.annotation] for each in self.parameters}
        arguments = make("Arguments", fields)
        arguments.__pydantic_config__ = ConfigDict(extra="allow" if self.takes_more else "forbid")
        try:
            return TypeAdapter(arguments)
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise InvalidInput(
                f"The types of {_name(self.function)}() cannot be read from JSON: {_first_line(error)}",
                hint="Annotate its parameters with JSON types, Pydantic models, dataclasses, enums or typing_extensions.TypedDict.",
            ) from error

    def schema(self, told: Mapping[str, str]) -> dict[str, Any]:
        """Give the JSON schema of the arguments.

        Args:
            told: Descriptions of parameters by name; they win over those of annotations and of the docstring.

        Raises:
            InvalidInput: A type has no JSON schema, or a description is of no parameter.
        """
        unknown = sorted(told.keys() - {each.name for each in self.parameters})
        if unknown:
            raise InvalidInput(f"{_name(self.function)}() has no parameter {unknown[0]!r} to describe.")
        try:
            schema = declared(self._types.json_schema(mode="validation"))
        except PydanticInvalidForJsonSchema as error:
            raise InvalidInput(
                f"The types of {_name(self.function)}() have no JSON schema: {_first_line(error)}",
                hint="A model cannot fill such a parameter; annotate one that the program fills with CallContext.",
            ) from error
        properties = schema.setdefault("properties", {})
        documents = dict(documented(inspect.getdoc(self.function)).parameters)
        for each in self.parameters:
            properties[each.name] = _described(
                properties[each.name], each, told.get(each.name), documents.get(each.name)
            )
        schema.pop("description", None)
        return schema

    def call(self, arguments: Mapping[str, Any], context: CallContext) -> Callable[[], Any]:
        """Give the call that these arguments make, ready to be run.

        Raises:
            UnfitArgumentsError: The types refuse them.
        """
        values = self._values(arguments)
        positional = [
            values.pop(each.name, each.default)
            for each in self.parameters
            if each.by_position and (each.name in values or not each.required)
        ]
        return partial(self.function, *positional, **values, **dict.fromkeys(self.contexts, context))

    def _values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        text = canonical_json(arguments)
        try:
            try:
                values: dict[str, Any] = self._types.validate_json(text, strict=True)
            except (
                ValidationError
            ):  # such as 5.0 for an integer: the schema takes it, and so does Pydantic when it need not be strict
                values = self._types.validate_json(text)
        except ValidationError as error:
            raise UnfitArgumentsError(_faults(error)) from error
        for each in self.parameters:
            if each.name not in values and isinstance(each.default, _Filled):
                values[each.name] = each.default.make()
        return values


@dataclass(frozen=True)
class _Filled:
    """A default that stands in a Pydantic field, which the function itself would take as it is."""

    field: FieldInfo

    def make(self) -> Any:  # noqa: ANN401 - whatever the field's default is
        return self.field.get_default(call_default_factory=True)


def bind(function: object, *, open_ended: bool = False) -> Binding:
    """Read a callable: a function, a method, a partial, a class's instance with `__call__`, plain or async.

    Args:
        function: The callable.
        open_ended: Whether a schema declares the arguments: then `**kwargs` may stand in the signature, and what has no annotation
            takes any value.

    Raises:
        InvalidInput: It is none, or has a signature that no JSON object can fill.
    """
    if not callable(function):
        raise InvalidInput(f"{function!r} cannot be called.", hint="Pass a function; put @tool under @staticmethod.")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{_name(function)}() does not tell its parameters.", hint="Wrap it in a Python function with annotations."
        ) from error
    _refuse_generators(function)
    parameters: list[Parameter] = []
    contexts: list[str] = []
    given = list(signature.parameters.values())
    is_method = _waits_for_self(function, given)
    for each in given[is_method:]:
        if each.kind in {each.VAR_POSITIONAL, each.VAR_KEYWORD}:
            _refuse_variadic(function, each, open_ended=open_ended)
            continue
        annotation = _annotation(function, each)
        if _is_context(annotation):
            contexts.append(each.name)
        else:
            parameters.append(_parameter(each, annotation, Any if open_ended else str))
    takes_more = open_ended and any(each.kind is each.VAR_KEYWORD for each in given)
    return Binding(function, tuple(parameters), tuple(contexts), is_method=is_method, takes_more=takes_more)


def check_importable(function: object) -> None:
    """Refuse a function that another process could not import.

    Raises:
        InvalidInput: It is a lambda, or was defined inside another function.
    """
    qualname = getattr(function, "__qualname__", "")
    if "<" in qualname:
        raise InvalidInput(
            f"{qualname} cannot run in a process of its own: another process cannot import it.",
            hint="Define it at the top of a module.",
        )


def is_async(function: object) -> bool:
    """Tell whether calling it gives something to await: a coroutine function, a partial of one, an object whose `__call__` is one."""
    while isinstance(function, partial):
        function = function.func
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is asked for, not whether there is one
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _name(function: object) -> str:
    found = getattr(function, "__qualname__", None) or getattr(getattr(function, "func", None), "__qualname__", None)
    return str(found or type(function).__name__)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _refuse_generators(function: Implementation) -> None:
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise InvalidInput(
            f"{_name(function)}() yields, and a model gets one result a call.",
            hint="Return the whole, and tell of what is under way with CallContext.emit_progress().",
        )


def _waits_for_self(function: Implementation, given: list[inspect.Parameter]) -> bool:
    """Tell whether this is a method as it stands in the body of its class."""
    return (
        inspect.isfunction(function)
        and bool(given)
        and given[0].name in {"self", "cls"}
        and given[0].annotation is _EMPTY
        and "." in function.__qualname__.rpartition("<locals>.")[2]
    )


def _refuse_variadic(function: Implementation, parameter: inspect.Parameter, *, open_ended: bool) -> None:
    if open_ended:
        return
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
    raise InvalidInput(
        f"{_name(function)}() takes {star}{parameter.name}, and a model has to be told each argument by name.",
        hint=f"Declare a parameter such as {parameter.name}: "
        + ("list[str]." if star == "*" else "dict[str, str], or give the schema with Function(..., parameters=...)."),
    )


def _annotation(function: Implementation, parameter: inspect.Parameter) -> Any:  # noqa: ANN401 - a type form
    """Evaluate one annotation where the function was written; those of the others, and of its result, do not matter."""
    if parameter.annotation is _EMPTY:
        return _EMPTY
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return get_type_hints(holder, globalns=_globals(function), include_extras=True)[parameter.name]
    except NameError as error:
        raise InvalidInput(
            f"The type of {parameter.name!r} of {_name(function)}() cannot be found: {error}.",
            hint="Import or define it before the function, at the top of the module and not only for type checkers.",
        ) from error
    except TypeError as error:
        raise InvalidInput(
            f"The annotation of {parameter.name!r} of {_name(function)}() is no type: {_first_line(error)}"
        ) from error


def _globals(function: Any) -> dict[str, Any]:  # noqa: ANN401 - any callable
    inner = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inspect.unwrap(inner.func)
    inner = getattr(inner, "__func__", inner)
    if not hasattr(inner, "__globals__"):
        inner = inspect.unwrap(getattr(type(inner).__call__, "__func__", type(inner).__call__))
    found: dict[str, Any] = getattr(inner, "__globals__", {})
    return found


def _is_context(annotation: Any) -> bool:  # noqa: ANN401 - a type form
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return any(_is_context(each) for each in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, CallContext)


def _parameter(given: inspect.Parameter, annotation: Any, otherwise: Any) -> Parameter:  # noqa: ANN401 - type forms
    """Read a parameter; one without annotation has the type of a plain default, else the one given."""
    default = given.default
    if isinstance(default, FieldInfo):
        told = FieldInfo(description=default.description, annotation=None)
        told.metadata = default.metadata
        annotation = Annotated[otherwise if annotation is _EMPTY else annotation, told]
        default = _EMPTY if default.is_required() else _Filled(default)
    elif annotation is _EMPTY:
        annotation = type(default) if type(default) in _PLAIN and otherwise is str else otherwise
    if given.default is None:
        annotation = Optional[annotation]  # noqa: UP045 - a type form, which may be a string or Annotated
    return Parameter(given.name, annotation, default, by_position=given.kind is given.POSITIONAL_ONLY)


def _described(schema: Any, parameter: Parameter, told: str | None, documented_as: str | None) -> Any:  # noqa: ANN401 - a schema
    """Give a property's schema with its description and its default."""
    out: dict[str, Any] = dict(schema) if isinstance(schema, Mapping) else {}
    out.pop("default", None)
    said = told or out.get("description") or documented_as or ""
    default = parameter.default.make() if isinstance(parameter.default, _Filled) else parameter.default
    if default is not _EMPTY and default is not PydanticUndefined:
        try:
            plain = json.loads(json.dumps(to_jsonable_python(default), allow_nan=False))
        except (PydanticSerializationError, ValueError, TypeError, RecursionError):
            pass  # a default that JSON cannot say stays the function's own business
        else:
            out["default"] = plain
            if plain is not None:
                said = f"{said} (default: {json.dumps(plain, ensure_ascii=False)})".lstrip()
    if said:
        out["description"] = said
    return out


def _faults(error: ValidationError) -> list[Fault]:
    """Give Pydantic's findings as faults, each once, and places without the names of Pydantic's own branches."""
    found: dict[str, Fault] = {}
    for each in error.errors(include_url=False, include_input=False):
        place = ""
        for step in each["loc"]:
            place += f"[{step}]" if isinstance(step, int) else f".{step}" if str(step).isidentifier() else ""
        message = each["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
        fault = Fault(place.removeprefix("."), message[:1].lower() + message[1:])
        found.setdefault(str(fault), fault)
    return list(found.values())
