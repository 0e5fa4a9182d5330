"""What blocks and messages share: frozen, unknown fields kept, everything inside read-only and normalised where it enters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.messages.frozen import EMPTY, FrozenDict, thaw
from palaver.messages.normalize import Change, clean_text, freeze, is_clean

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

__all__ = ["JsonObject", "Value", "ValueMeta", "invalid_message"]


class _Frozen:
    """The schema of a mapping that :func:`freeze` made; None stands for an empty one."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _frozen_dict,
            json_schema_input_schema=core_schema.dict_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(thaw),
        )


def _frozen_dict(value: object) -> FrozenDict:
    if isinstance(value, FrozenDict):
        return value
    if value is None:
        return EMPTY
    raise ValueError("must be a mapping")


JsonObject = Annotated[Mapping[str, Any], _Frozen]
"""A field that holds any JSON object; what it hands out is read-only all the way down."""


class ValueMeta(ModelMetaclass):
    """Constructors that take fields by position and raise palaver's own error."""

    def __call__(cls, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any value
        """Construct a value."""
        if args:
            values |= zip(cls._positions(len(args)), args, strict=True)
        try:
            return super().__call__(**cls.from_python(values))
        except ValidationError as error:
            raise invalid_message(cls.__name__, error) from error

    def _positions(cls, count: int) -> list[str]:
        """Name the first fields in the order they are declared; the type is no position."""
        names = [name for name in cls.__pydantic_fields__ if name not in {"type", "changes"}]
        if count > len(names):
            raise TypeError(f"{cls.__name__} takes at most {len(names)} positional arguments, {count} were given.")
        return names[:count]

    def from_python(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Resolve what only a program may pass, such as a path; a class with such fields overrides it."""
        return values


def invalid_message(what: str, error: ValidationError) -> InvalidMessage:
    """Turn pydantic's error into palaver's, with one (place, fault) a finding."""
    faults = tuple(
        (".".join(map(str, found["loc"])), found["msg"]) for found in error.errors(include_url=False, include_input=False)
    )
    shown = "; ".join(f"{place}: {fault}" if place else fault for place, fault in faults)
    return InvalidMessage(f"This is no {what}: {shown}.", faults=faults)


class Value(BaseModel, metaclass=ValueMeta):
    """A frozen value that keeps fields it does not know and is fit to be stored and sent from the start.

    ``changes`` records what had to be replaced in the strings of this value; see :mod:`palaver.messages.normalize`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, arbitrary_types_allowed=True)

    free: ClassVar[frozenset[str]] = frozenset()
    """The declared fields that hold any JSON."""

    changes: tuple[Change, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _enter(cls, data: Any) -> Any:  # noqa: ANN401 - whatever is validated
        """Prepare, freeze and normalise what comes in as fields; a value passes as it is."""
        if type(data) is dict or isinstance(data, Mapping):
            return cls.normalised(cls.prepare(dict(data)))
        return data

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in and convert fields before they are normalised; ``values`` may be changed and returned."""
        return values

    @classmethod
    def normalised(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Replace what cannot be stored or sent in strings and free fields, recording it in ``changes``."""
        found: list[Change] = []
        known = cls.__pydantic_fields__
        for key, value in values.items():
            if type(value) is str:
                if not is_clean(value):
                    values[key] = clean_text(value, key, found)
            elif (key in cls.free or key not in known) and type(value) is not FrozenDict:
                values[key] = freeze(value, key, found)
        if found:
            values["changes"] = (*values.get("changes", ()), *found)
        return values

    @property
    def model_extra(self) -> dict[str, Any]:
        """The fields this version does not know, read-only."""
        return FrozenDict(self.__pydantic_extra__ or {})
