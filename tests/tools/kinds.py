"""Parameter types by chance, and JSON values that nearly fit them."""

import dataclasses
import enum
import itertools
from typing import Annotated, Any, Literal, NotRequired, Optional, Required, Union

from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model
from typing_extensions import TypedDict

_numbers = itertools.count()
_NAMES = st.sampled_from(["a", "b", "schema", "json", "_hidden", "model_config", "copy"])


def _enum(values: list[str]) -> Any:  # noqa: ANN401 - a type form
    make: Any = enum.Enum
    return make(f"Choice{next(_numbers)}", {f"M{index}": value for index, value in enumerate(values)})


def _model(fields: dict[str, tuple[Any, bool]]) -> type[BaseModel]:
    given: dict[str, Any] = {
        f"f_{name.strip('_')}": (kind, ... if required else None) for name, (kind, required) in fields.items()
    }
    return create_model(f"Model{next(_numbers)}", **given)


def _typed_dict(fields: dict[str, tuple[Any, bool]]) -> Any:  # noqa: ANN401 - a type form
    make: Any = TypedDict
    return make(
        f"Typed{next(_numbers)}",
        {name: (Required if needed else NotRequired)[kind] for name, (kind, needed) in fields.items()},
    )


def _dataclass(fields: dict[str, tuple[Any, bool]]) -> Any:  # noqa: ANN401 - a type form
    given = [(f"f_{name.strip('_')}", kind) for name, (kind, _) in fields.items()]
    return dataclasses.make_dataclass(f"Data{next(_numbers)}", given)


_PLAIN: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([str, int, float, bool, Any, list, dict]),
    st.lists(st.sampled_from(["x", "y", "zz", 1, 2]), min_size=1, max_size=3, unique=True).map(
        lambda each: Literal[tuple(each)]
    ),
    st.lists(st.sampled_from(["x", "y", "zz"]), min_size=1, max_size=3, unique=True).map(_enum),
    st.integers(-3, 3).map(lambda bound: Annotated[int, Field(ge=bound)]),
    st.integers(-3, 3).map(lambda bound: Annotated[float, Field(lt=bound)]),
    st.integers(0, 3).map(lambda bound: Annotated[str, Field(max_length=bound)]),
    st.just(Annotated[str, Field(pattern="^[ax]+$")]),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.dictionaries(_NAMES, st.tuples(inner, st.booleans()), max_size=3)
    return st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: Optional[kind]),  # noqa: UP045 - a type form
        st.tuples(inner, inner).map(lambda kinds: Union[kinds]),  # noqa: UP007 - a type form
        st.tuples(inner, inner).map(lambda kinds: tuple[kinds]),  # type: ignore[valid-type]
        inner.map(lambda kind: Annotated[list[kind], Field(min_length=1, max_length=2)]),  # type: ignore[valid-type]
        fields.map(_model),
        fields.map(_typed_dict),
        fields.map(_dataclass),
    )


TYPES: st.SearchStrategy[Any] = st.recursive(_PLAIN, _nested, max_leaves=5)
"""A type that a parameter may have, and all of whose rules JSON Schema can say."""

_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([0.5, -2.5, 2.0]),
    st.sampled_from(["", "x", "y", "zz", "aaax", "1", "true", "[1]", '{"a": 1}', "null", "2.5"]),
)
JSON: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "f_a", "f_b", "schema", "f_json", "zz"]), inner, max_size=3),
    ),
    max_leaves=6,
)
"""Any small JSON value."""


_OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "x", "a", "aaax", "zz"]),
    "integer": st.integers(-5, 5),
    "number": st.sampled_from([0, 1, -4, 0.5, -2.5, 2.0]),
    "boolean": st.booleans(),
    "null": st.none(),
}


def near(schema: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a schema
    """Return values that mostly fit a schema, and some that nearly do."""
    return st.one_of(_fitting(schema), _fitting(schema), JSON)


def _fitting(schema: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401, PLR0911 - one branch a keyword
    match schema:
        case {"const": value}:
            return st.just(value)
        case {"enum": values}:
            return st.sampled_from(values)
        case {"anyOf": kinds}:
            return st.one_of([near(each) for each in kinds])
        case {"type": "object"}:
            return _objects(schema)
        case {"type": "array", "prefixItems": kinds}:
            return st.tuples(*[near(each) for each in kinds]).map(list)
        case {"type": "array"}:
            return st.lists(near(schema.get("items")), max_size=3)
        case {"type": kind}:
            return _OF_TYPE[kind]
    return JSON


def _objects(schema: Any) -> st.SearchStrategy[Any]:  # noqa: ANN401 - a schema
    properties = {name: near(each) for name, each in schema.get("properties", {}).items()}
    needed = {name: each for name, each in properties.items() if name in schema.get("required", ())}
    optional = {name: each for name, each in properties.items() if name not in needed}
    if isinstance(schema.get("additionalProperties"), dict):
        return st.dictionaries(st.sampled_from(["p", "q"]), near(schema["additionalProperties"]), max_size=2)
    return st.fixed_dictionaries(needed, optional=optional)
