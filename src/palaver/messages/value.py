"""What blocks and messages share: frozen values, and their one JSON text, the bytes that are stored, compared and hashed.

A value keeps unknown fields; everything inside is read-only and clean. Its text is UTF-8; keys sorted by code point; no spaces; only the escapes
that JSON requires; floats in the shortest form that reads back the same, as Python writes them; no NaN and no infinity. This is not RFC 8785,
which sorts by UTF-16 units and writes floats as ECMAScript does. pydantic-core writes it where that is the same text: it is several times faster
than :mod:`json`.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from enum import Enum
from functools import cache
from inspect import Parameter, Signature, get_annotations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, cast, runtime_checkable

from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, ValidationInfo, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_json

from palaver.errors import InvalidMessage, PalaverError
from palaver.messages.frozen import EMPTY, STORED, FrozenDict, Replaced, clean_text, freeze, freeze_json, is_clean
from palaver.plurals import a_type, with_article

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


JsonObject = Annotated[Mapping[str, Any], FrozenDict]
"""A field for any JSON object; its value is read-only all the way down."""


def own_error(what: str, error: ValidationError) -> PalaverError:
    """Convert a pydantic error: to the PalaverError that one of our checks raised, else to an InvalidMessage."""
    findings = error.errors(include_url=False, include_input=False)
    cause = findings[0].get("ctx", {}).get("error")
    if isinstance(cause, PalaverError):
        return cause
    faults = tuple(
        (".".join(map(str, found["loc"])), found["msg"])
        for found in findings
        if found["type"] != "default_factory_not_called"  # it only follows from another finding
    )
    shown = "; ".join(f"{place}: {fault}" if place else fault for place, fault in faults)
    return InvalidMessage(f"This is not {with_article(what)}: {shown}.", faults=faults)


class ValueMeta(ModelMetaclass):
    """Constructors that accept fields by position, refuse misspelt ones and raise palaver's own errors."""

    __pydantic_fields__: dict[str, FieldInfo]

    if not TYPE_CHECKING:  # checkers read the constructors of the classes

        @property
        def __signature__(self) -> Signature:
            """What the constructor accepts, for `inspect.signature`: first what it accepts by position, all else by name."""
            fields, first = self.__pydantic_fields__, self._positions()
            names = dict.fromkeys((*first, *fields, *sorted(self._convenient)))
            kinds = dict.fromkeys(first, Parameter.POSITIONAL_OR_KEYWORD)
            types = {name: kind for base in reversed(self.__mro__) for name, kind in get_annotations(base).items()}
            return Signature(
                Parameter(
                    name,
                    kinds.get(name, Parameter.KEYWORD_ONLY),
                    default=_default(fields[name]) if name in fields else None,
                    annotation=types.get(name, Parameter.empty),
                )
                for name in names
                if name not in {"type", "changes"}
            )

        @__signature__.setter
        def __signature__(self, value: object) -> None:
            """Leave pydantic's own, which knows neither positions nor convenient forms."""

        def __call__(self, /, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any value
            """Construct a value."""
            kind = cast("type[Value]", self)
            if args:
                values |= kind._by_position(args, values)  # noqa: SLF001
            kind = kind._class_for(values)  # noqa: SLF001
            return kind.from_dict(kind._from_python(values))  # noqa: SLF001


def _default(field: FieldInfo) -> object:
    """Return the default of a field; `...` where it is made anew each time, or follows from other fields."""
    return ... if field.is_required() or field.default_factory else field.default


def listed(given: object, what: str) -> tuple[Any, ...]:
    """Return a list as a tuple; None is an empty one.

    Raises:
        InvalidMessage: It is not a list; a text would iterate as characters, and bytes as numbers.
    """
    if type(given) is tuple:
        return given
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidMessage(f"{what} come as a list, not as {type(given).__name__}.")
    return tuple(given)


class Stored(BaseModel):
    """A frozen value that keeps unknown fields and has a stored form, so that a record of a newer version survives an older reader.

    Every string in it can be stored and sent.
    """

    # defer_build: validators are built when they are first used, not at import; pydantic does that under a lock
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    # read in the module of each subclass where it is a string, before pydantic 2.13: so this file has no postponed annotations
    __pydantic_extra__: dict[str, Annotated[Any, PlainValidator(freeze_json)]]

    _free: ClassVar[frozenset[str]] = frozenset()
    """The declared fields for any JSON."""

    _sparse: ClassVar[bool] = True
    """Whether None means a field's default and the stored form leaves defaults out; else it has every field but None."""

    _always_stored: ClassVar[frozenset[str]] = frozenset({"type"})
    """The fields that are stored even with their default: those that say what the value is."""

    _never_stored: ClassVar[frozenset[str]] = frozenset()

    _reread: ClassVar[str | None] = None
    """The field from which others are read again, because the stored form leaves them out."""

    @model_validator(mode="before")
    @classmethod
    def _enter(cls, data: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - whatever is validated
        if type(data) is not dict and not isinstance(data, Mapping):
            return data
        if info.context is STORED and cls._reread not in data:
            return data
        return cls._normalise(cls._prepare(dict(data)))

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in and convert fields before they are normalised."""
        return values

    @classmethod
    def _normalise(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Replace what cannot be stored or sent; drop None in known fields."""
        found: list[Replaced] = []
        rest: list[str] = []
        known = cls.__pydantic_fields__
        for key, value in values.items():
            if key not in known or (value is None and cls._sparse):
                rest.append(key)
            elif isinstance(value, str) and not is_clean(value):
                values[key] = clean_text(value, key, found)
            elif key in cls._free:
                values[key] = freeze(value, key, found)
        if rest:
            unknown = {key: value for key in rest if (value := values.pop(key)) is not None or key not in known}
            if unknown:
                values |= freeze(unknown, "", found)
        if found:
            cls._record(values, found)
        return values

    @classmethod
    def _record(cls, values: dict[str, Any], found: list[Replaced]) -> None:
        """Keep what was replaced, in a value that says so."""

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Return the fields of the stored form, and unknown ones, sorted by name."""
        fields, given = self.__dict__, self.__pydantic_fields_set__
        stored = []
        for name, always, default, derive in _plan(type(self)):
            if always or name in given:  # a field that was not given has its default
                value = fields[name]
                if value is not default and (always or value != (derive(fields) if derive else default)):
                    stored.append((name, value))
        if self.__pydantic_extra__:
            stored = sorted([*stored, *self.__pydantic_extra__.items()], key=lambda item: item[0])
        return stored


@cache
def _plan(kind: type[Stored]) -> tuple[tuple[str, bool, Any, Callable[[dict[str, Any]], Any] | None], ...]:
    """Return the fields of a class in the order they are stored.

    With each: whether it is always stored, the default that it is left out for, and what derives that from other fields.
    """
    plan = []
    for name, field in sorted(kind.model_fields.items()):
        derived = field.default_factory_takes_validated_data
        always = not kind._sparse or name in kind._always_stored or bool(field.default_factory and not derived)  # noqa: SLF001
        default = None if not kind._sparse else _NO_VALUE if always else field.default  # noqa: SLF001
        if name not in kind._never_stored:  # noqa: SLF001
            plan.append((name, always, default, cast("Any", field.default_factory) if derived else None))
    return tuple(plan)


_NO_VALUE = object()


class Value(Stored, metaclass=ValueMeta):
    """A value that can always be stored and sent.

    ``changes`` records what was replaced in it; see :mod:`palaver.messages.frozen`.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    _convenient: ClassVar[frozenset[str]] = frozenset()
    """The keywords of the constructor that are not fields."""

    changes: tuple[Replaced, ...] = ()

    @classmethod
    def _positions(cls) -> list[str]:
        """Return the fields that the constructor accepts by position, in order."""
        return [name for name in cls.__pydantic_fields__ if name not in {"type", "changes"}]

    @classmethod
    def _by_position(cls, args: tuple[Any, ...], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords for arguments by position.

        Raises:
            TypeError: There are too many, or one is also given by name.
        """
        names = cls._positions()[: len(args)]
        if len(args) > len(names):
            raise TypeError(f"{cls.__name__} takes at most {len(names)} positional arguments, {len(args)} were given.")
        if not values.keys().isdisjoint(names):
            raise TypeError(f"{cls.__name__} got {', '.join(values.keys() & names)} by position and by name.")
        return dict(zip(names, args, strict=True))

    @classmethod
    def _class_for(cls, values: Mapping[str, Any]) -> "type[Value]":
        """Return the class that the constructor makes of keywords.

        Raises:
            InvalidMessage: A name is not a keyword of it.
        """
        for name in values:
            if name not in cls.__pydantic_fields__ and name not in cls._convenient:
                close = get_close_matches(name, {*cls.__pydantic_fields__, *cls._convenient}, 1)
                meant = f" Did you mean {close[0]!r}?" if close else ""
                raise InvalidMessage(
                    f"{cls.__name__} has no field {name!r}.{meant}", hint="from_dict() keeps fields it does not know."
                )
        return cls

    @classmethod
    def _record(cls, values: dict[str, Any], found: list[Replaced]) -> None:
        earlier = values.get("changes", ())
        if isinstance(earlier, list | tuple):  # anything else is refused by validation
            values["changes"] = (*earlier, *found)

    @classmethod
    def _from_python(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Resolve what only a program may pass, such as a path; validation never does."""
        return values

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read the fields of a value, such as decoded JSON, keeping unknown ones. Never read a file.

        Raises:
            InvalidMessage: They are not a value of this class.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise own_error(cls.__name__, error) from error

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the value, with some fields replaced and validated. What was derived from other fields is derived again.

        Raises:
            InvalidMessage: The result would not be a value of this class.
        """
        if not update:
            return super().model_copy(deep=deep)
        kept = tuple(change for change in self.changes if change.root not in update)
        fields = self.__dict__
        derived = {name: None for name, _, _, derive in _plan(type(self)) if derive and fields[name] == derive(fields)}
        return self.from_dict({**dict(self), **derived, "changes": kept, **update})

    @property
    def model_extra(self) -> dict[str, Any]:
        """The unknown fields, read-only."""
        return FrozenDict(self.__pydantic_extra__) if self.__pydantic_extra__ else EMPTY

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, Shown(field)) for name, field in self.stored_fields() if name != "type"]


class Shown:
    """A value whose repr fits on a line or two."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        text = repr(self._value)
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 11]}…{text[-10:]}"


_SHOWN = 120
"""Characters of a field that a repr has."""


# --- canonical JSON ----------------------------------------------------------------------------------------------------


@runtime_checkable
class Storable(Protocol):
    """A value that is written as an object of some of its fields."""

    def stored_fields(self) -> Iterable[tuple[str, Any]]:
        """Return names and values, sorted by name."""


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Return a value as canonical bytes; messages, blocks and media in it are written in their stored form.

    Raises:
        InvalidMessage: Something in it is not JSON, or is nested deeper than Python recurses.
    """
    rare: list[object] = []
    try:
        plain = _plain(value, rare)
        if not rare:
            with suppress(PydanticSerializationError):  # it goes less deep
                return to_json(plain)
        return _ENCODER.encode(plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"This cannot be written as JSON: {error}.") from error


def in_order(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy in plain dicts and lists, with the keys in the order of the canonical bytes.

    Raises:
        TypeError: Something in it is not JSON.
    """
    return _plain(value, [])


def read_object(text: str) -> dict[str, Any]:
    """Read a JSON object as a model writes it, such as a tool's arguments; an empty text is an empty object.

    Raises:
        ValueError: It is not JSON, is JSON of another type, or is nested too deeply.
    """
    try:
        value = _DECODER.decode(text) if text.strip() else {}
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None
    if not isinstance(value, dict):
        raise ValueError(f"The JSON is {a_type(value)}, not an object.")  # noqa: TRY004 - documented
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _plain(value: Any, rare: list[object]) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as plain dicts, lists, strings and numbers; numbers that only Python writes in their one form are added to `rare`."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    return (_PLAIN.get(kind) or _maker(kind))(value, rare)


def _maker(kind: type) -> Callable[[Any, list[object]], Any]:
    """Find what makes a value of a type plain by its bases, and remember it."""
    for base, make in _BASES:
        if issubclass(kind, base):
            return _PLAIN.setdefault(kind, make)
    raise TypeError(f"{with_article(kind.__name__)} is not JSON")


def _object(value: Mapping[str, Any], rare: list[object]) -> dict[str, Any]:
    made = {}
    for name in sorted(value):
        if not isinstance(name, str):
            raise TypeError(f"a key is a string, not {a_type(name)}")
        item = value[name]
        made[str(name)] = item if type(item) is str else _plain(item, rare)
    return made


def _list(value: Iterable[Any], rare: list[object]) -> list[Any]:
    return [item if type(item) is str else _plain(item, rare) for item in value]


def _number(value: float, rare: list[object]) -> float:
    """Return a number; pydantic-core writes small fractions and large numbers in other forms, depending on its version."""
    if not _LEAST <= abs(value) < _MOST and value != 0:
        rare.append(value)
    return value


_LEAST, _MOST = 1e-4, 1e16

_PLAIN: dict[type, Callable[[Any, list[object]], Any]] = {
    int: _number,
    float: _number,
    dict: _object,
    list: _list,
    tuple: _list,
}
_BASES: tuple[tuple[type, Callable[[Any, list[object]], Any]], ...] = (
    (Storable, lambda value, rare: {name: _plain(item, rare) for name, item in value.stored_fields()}),
    (dict, _object),
    (list, _list),
    (tuple, _list),
    (Enum, lambda value, rare: _plain(value.value, rare)),
    (str, lambda value, _rare: str(value)),
    (int, lambda value, rare: _number(int(value), rare)),
    (float, lambda value, rare: _number(float(value), rare)),
)
