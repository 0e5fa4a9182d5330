"""What blocks and messages share: frozen, unknown fields kept, everything inside read-only and normalised where it enters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from palaver.errors import InvalidMessage, PalaverError
from palaver.messages.frozen import EMPTY, FrozenDict, freeze
from palaver.messages.normalize import Change, clean_text, is_clean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from pydantic._internal._model_construction import ModelMetaclass
    from pydantic.fields import FieldInfo
else:
    ModelMetaclass = type(BaseModel)

__all__ = ["JsonObject", "Value", "ValueMeta", "own_error"]


JsonObject = Annotated[Mapping[str, Any], FrozenDict]
"""A field that holds any JSON object; what it hands out is read-only all the way down."""


def own_error(what: str, error: ValidationError) -> PalaverError:
    """Turn pydantic's error into palaver's: the one a check of ours raised, else an InvalidMessage with every finding."""
    findings = error.errors(include_url=False, include_input=False)
    cause = findings[0].get("ctx", {}).get("error")
    if isinstance(cause, PalaverError):
        return cause
    faults = tuple((".".join(map(str, found["loc"])), found["msg"]) for found in findings)
    shown = "; ".join(f"{place}: {fault}" if place else fault for place, fault in faults)
    return InvalidMessage(f"This is no {what}: {shown}.", faults=faults)


class ValueMeta(ModelMetaclass):
    """Constructors that take fields by position and raise palaver's own errors."""

    __pydantic_fields__: dict[str, FieldInfo]

    def __call__(self, /, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any value
        """Construct a value."""
        if args:
            values = self._by_position(args, values)
        try:
            return super().__call__(**self._from_python(values))
        except ValidationError as error:
            raise own_error(self.__name__, error) from error

    def _by_position(self, args: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        """Name arguments in the order in which the fields are declared; the type is no position."""
        names = [name for name in self.__pydantic_fields__ if name not in {"type", "changes"}][: len(args)]
        if len(args) > len(names):
            raise TypeError(f"{self.__name__} takes at most {len(names)} positional arguments, {len(args)} were given.")
        if not values.keys().isdisjoint(names):
            raise TypeError(f"{self.__name__} got {', '.join(values.keys() & names)} by position and by name.")
        return dict(zip(names, args, strict=True)) | values

    def _from_python(self, values: dict[str, Any]) -> dict[str, Any]:
        """Resolve what only a program may pass, such as a path; metaclasses of classes with such fields override it."""
        return values


class Value(BaseModel, metaclass=ValueMeta):
    """A frozen value that keeps fields it does not know and is fit to be stored and sent from the start.

    ``changes`` records what had to be replaced in it; see :mod:`palaver.messages.normalize`.
    """

    # defer_build: validators are built when they are first used, not at import; pydantic does that under a lock
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False, defer_build=True)

    _free: ClassVar[frozenset[str]] = frozenset()
    """The declared fields that hold any JSON."""

    _always_stored: ClassVar[frozenset[str]] = frozenset({"type"})
    """The fields that are stored though they have their default: those that tell what the value is."""

    _never_stored: ClassVar[frozenset[str]] = frozenset()

    changes: tuple[Change, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _enter(cls, data: Any) -> Any:  # noqa: ANN401 - whatever is validated
        """Prepare, freeze and normalise what comes in as fields; a value passes as it is."""
        if type(data) is dict or isinstance(data, Mapping):
            return cls._normalise(cls._prepare(dict(data)))
        return data

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in and convert fields before they are normalised; ``values`` may be changed and given back."""
        return values

    @classmethod
    def _normalise(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Replace what cannot be stored or sent in strings, free fields and unknown ones, recording it in ``changes``."""
        found: list[Change] = []
        rest: list[str] = []
        known = cls.__pydantic_fields__
        for key, value in values.items():
            if value is None or key not in known:
                rest.append(key)
            elif type(value) is str:
                if not is_clean(value):
                    values[key] = clean_text(value, key, found)
            elif key in cls._free:
                values[key] = freeze(value, key, found)
        if rest:
            later = {key: value for key in rest if (value := values.pop(key)) is not None or key not in known}
            values |= freeze(later, "", found)  # None in a known field stands for a field that is not given
        return _with_changes(values, found) if found else values

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read the fields of a value, such as JSON gives them; unlike a constructor this never reads a file.

        Raises:
            InvalidMessage: They are no value of this class.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise own_error(cls.__name__, error) from error

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the value, with some fields replaced and validated.

        Raises:
            InvalidMessage: The result would be no value of this class.
        """
        if not update:
            return super().model_copy(deep=deep)
        kept = tuple(change for change in self.changes if change.root not in update)
        return type(self)(**({**self.__dict__, **(self.__pydantic_extra__ or {}), "changes": kept} | dict(update)))

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Give the fields that differ from their default, and those of later versions, sorted by name."""
        fields = self.__dict__
        stored = [
            (name, fields[name])
            for name, default in _plan(type(self))
            if fields[name] is not default and fields[name] != default
        ]
        if self.__pydantic_extra__:
            stored = sorted([*stored, *self.__pydantic_extra__.items()], key=_name)
        return stored

    @property
    def model_extra(self) -> dict[str, Any]:
        """The fields this version does not know, read-only."""
        return FrozenDict(self.__pydantic_extra__) if self.__pydantic_extra__ else EMPTY

    @property
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given; a copy."""
        return set(self.__pydantic_fields_set__)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show what is stored."""
        return [(name, field) for name, field in self.stored_fields() if name != "type"]


def _with_changes(values: dict[str, Any], found: list[Change]) -> dict[str, Any]:
    """Add to the record of changes; one that is no list is left to be refused by validation."""
    earlier = values.get("changes", ())
    return values | {"changes": (*earlier, *found)} if isinstance(earlier, list | tuple) else values


def _name(item: tuple[str, Any]) -> str:
    return item[0]


@cache
def _plan(kind: type[Value]) -> tuple[tuple[str, Any], ...]:
    """Lay down once in which order the fields of a class are stored, each with the default it is left out for."""
    return tuple(
        (name, object() if name in kind._always_stored or field.default_factory else field.default)  # noqa: SLF001
        for name, field in sorted(kind.model_fields.items())
        if name not in kind._never_stored  # noqa: SLF001
    )
