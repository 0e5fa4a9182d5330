"""A tool claims to be strict only where the provider can hold a model to its schema."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from palaver.tools import Function
from palaver.wire.schemas import in_dialect, not_strict
from tests.tools.kinds import TYPES
from tests.tools.test_schema_laws import taking


@given(st.data())
def test_a_claim_to_be_strict_holds_with_the_wire(data: st.DataObject) -> None:
    """A tool that claims to be strict is one whose schema the compiler declares as strict, unchanged and without loss."""
    function = taking(data.draw(TYPES))
    if function.to_tool()["function"]["strict"]:
        schema, lost = in_dialect(function.parameters, "subset")
        assert not lost
        assert not_strict(schema) == ""


@dataclass
class Point:
    """A class whose fields are all required."""

    x: float
    y: float


class Loose(BaseModel):
    """A class with a field that may be left out."""

    x: int = 3


class Tree(BaseModel):
    """A class that holds itself."""

    name: str
    parts: "list[Tree]"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (str, ""),
        (Literal["a", "b"], ""),
        (list[Point], ""),
        (Tree, ""),
        (int | None, ""),
        (Loose, "a property in it is optional"),
        (dict[str, int], "an object in it is open"),
        (Any, "a part of it allows everything"),
        (tuple[int, str], "it uses prefixItems"),
        (set[int], "it uses uniqueItems"),
    ],
)
def test_why_a_schema_cannot_be_held(kind: Any, why: str) -> None:  # noqa: ANN401 - a type form
    """The reason is said; where there is none the tool claims to be strict, unless it was told not to."""
    function = taking(kind)
    assert function.strict_obstacle == why
    assert function.to_tool()["function"]["strict"] is not bool(why)
    assert function.extend(strict=False).to_tool()["function"]["strict"] is False


def test_a_parameter_with_a_default_is_not_required_and_not_strict() -> None:
    """The model may leave it out, which no strict schema allows."""
    function = taking(int, required=False)
    assert function.required == ()
    assert function.strict_obstacle


def test_a_schema_that_is_given_is_judged_too() -> None:
    """What a program or a server declared is held to the same rules."""
    assert Function("f", properties={"a": {"type": "string"}}, required=["a"]).to_tool()["function"]["strict"] is True
    assert Function("f", properties={"a": {"type": "string"}}).to_tool()["function"]["strict"] is False
    assert Function("f", additional_properties=True).strict_obstacle == "an object in it is open"
