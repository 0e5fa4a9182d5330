"""What a model is told of a Python function, and what cannot be told."""

import datetime as dt
import enum
import functools
import pickle
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.messages import FunctionCall, thaw
from palaver.tools import CallContext, Function, labelled, tool
from tests.tools.calling import answer, run
from tests.tools.test_schemas import taking


@tool(prop_desc={"city": "The city's name."})
def weather(city: str, days: int = 3) -> str:
    """Report the weather."""
    return f"{city}: sun for {days} days"


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Street(BaseModel):
    """A street."""

    name: str = Field(description="As on the sign.")
    number: int


class Options(TypedDict, total=False):
    """Some options."""

    deep: bool


def test_declared_by_signature() -> None:
    """R125, R126: name, docstring, types and defaults are what the model reads; what is required is what has no default."""
    city = {"type": "string", "description": "The city's name."}
    days = {"type": "integer", "default": 3, "description": "(default: 3)"}
    declared = weather.to_tool()["function"]
    assert declared["parameters"]["properties"] == {"city": city, "days": days}
    assert declared["parameters"]["required"] == ["city"]
    assert declared["parameters"]["additionalProperties"] is False
    assert (declared["name"], declared["description"], declared["strict"]) == ("weather", "Report the weather.", False)
    assert weather.spec == ToolSpec(name="weather", description="Report the weather.", parameters=weather.parameters)
    assert weather("Oslo", days=1) == "Oslo: sun for 1 days", "it is still the function"


STREET = {
    "type": "object",
    "description": "A street.",
    "properties": {"name": {"type": "string", "description": "As on the sign."}, "number": {"type": "integer"}},
    "required": ["name", "number"],
    "additionalProperties": False,
}


def test_types_have_schemas() -> None:
    """R125: each type is declared as JSON Schema has it; classes stand closed among the definitions."""
    where = Annotated[Street, Field(description="Where.")]
    cases: list[Any] = [
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Annotated[int, Field(ge=1, description="Some.")], {"type": "integer", "minimum": 1, "description": "Some."}),
        (dt.date, {"type": "string", "format": "date"}),
        (Colour, {"$ref": "#/$defs/Colour"}),
        (where, {"anyOf": [{"$ref": "#/$defs/Street"}], "description": "Where."}),
    ]
    for kind, schema in cases:
        assert dict(taking(kind).properties["value"]) == schema
    assert thaw(taking(where).parameters["$defs"]) == {"Street": STREET}


def test_optional_is_its_type() -> None:
    """R125: `Optional[X]` is declared as X; the default is shown, and a call may leave it out or pass null."""

    def take(
        a: Optional[int] = None,  # noqa: UP045 - the older way too
        b: int | None = None,
        c: Annotated[int | None, Field(description="x")] = None,
    ) -> str:
        return repr((a, b, c))

    function: Function = Function.from_callable(take)
    for declared in function.properties.values():
        assert declared["type"] == "integer"
        assert "(default: null)" in declared["description"]
    assert function.required == ()
    assert [answer(function), answer(function, a=None, b=3)] == ["(None, None, None)", "(None, 3, None)"]


def test_values_arrive_as_their_types() -> None:
    """Enums, models, dates and tuples are what the function gets; a number in quotes is a number."""

    @tool
    def take(colour: Colour, street: Street, day: dt.date, pair: tuple[int, str], options: Options) -> str:
        """Take them."""
        return f"{colour!r} {street!r} {day!r} {pair!r} {options!r}"

    street = {"name": "High", "number": "3"}
    said = answer(take, colour="red", street=street, day="2020-02-01", pair=[1, "a"], options={"deep": True})
    assert said == (
        "<Colour.RED: 'red'> Street(name='High', number=3) datetime.date(2020, 2, 1) (1, 'a') {'deep': True}"
    )


def test_without_annotation_a_text() -> None:
    """R125: without an annotation a string; with a plain default, its type."""

    def take(a, b=2, c=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - that is the point
        return f"{a!r} {b!r} {c!r}"

    function: Function = Function.from_callable(take)
    assert [each["type"] for each in function.properties.values()] == ["string", "integer", "string"]
    assert function.required == ("a",)
    assert answer(function, a="x", c="y") == "'x' 2 'y'"


class Shop:
    """Has methods that are tools."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def sell(self, thing: str) -> str:
        """Sell."""
        return f"{self.name} sells {thing}"

    def buy(self, thing: str) -> str:
        """Buy."""
        return f"{self.name} buys {thing}"

    @staticmethod
    @tool
    def price(thing: str) -> int:
        """Report the price."""
        return len(thing)

    async def __call__(self, n: int) -> int:
        """Count."""
        return n + 1


def test_methods_partials_and_objects_are_tools() -> None:
    """Whatever can be called with named arguments."""
    shop = Shop("Ann")
    assert answer(shop.sell, thing="tea") == "Ann sells tea"
    assert answer(shop.buy, thing="tea") == "Ann buys tea"
    assert answer(Shop.price, thing="tea") == "3"
    assert answer(shop, n=1) == "2"
    assert answer(functools.partial(shop.buy, "tea")) == "Ann buys tea"
    assert list(shop.sell.properties) == ["thing"]
    assert "no implementation" in answer(Shop.sell, thing="tea")


def _generator(n: int) -> Any:  # noqa: ANN401 - it yields
    yield n


def _opaque(x: object, y: Callable[[], int]) -> None:
    """Do nothing."""


def test_unusable_callable_is_refused() -> None:
    """The error names the reason, and the hint what to do."""
    cases: list[Any] = [
        (lambda *args: args, "has *args"),
        (lambda **kwargs: kwargs, "has **kwargs"),
        (_generator, "yields"),
        (_opaque, "have no JSON schema"),
        (dict, "hides its parameters"),
        (3, "cannot be called"),
    ]
    for function, why in cases:
        with pytest.raises(InvalidInput) as caught:
            Function.from_callable(function, name="t")
        assert why in str(caught.value)
        assert caught.value.hint


def test_names_without_white_space_and_marks() -> None:
    """R123: white space and the marks of references have no place in a name."""
    cases: list[Any] = ["", "two words", "a/b", "a:b", "a%b", "a;b", "a\\b", "a\nb"]
    for name in cases:
        with pytest.raises(InvalidInput, match="is not allowed"):
            Function(name)


def test_a_wrong_declaration_is_refused() -> None:
    """Types, schema, limits and implementation are checked when they are declared, not when they are called."""
    cases: list[Any] = [
        {"required": ["x"]},
        {"properties": {"x": 3}},
        {"timeout": 0},
        {"properties": {"x": {}}, "function": lambda y: y},
        {"properties": {"x": {}}, "function": lambda: None},
        {"strict": "false"},
        {"description": b"x"},
        {"reads": "path"},
        {"writes": ["path"]},
    ]
    for declared in cases:
        with pytest.raises(InvalidInput):
            Function("t", **declared)
    for wrong, why in (({"town": "x"}, "has no parameter 'town' to describe"), ("bad", "prop_desc is 'bad'")):
        with pytest.raises(InvalidInput, match=why):
            tool(prop_desc=wrong)(Shop.buy)  # type: ignore[arg-type] # that is the point


def test_an_implementation_is_linked_later() -> None:
    """R120: by `link_function` on the tool itself, by `extend` on a copy; one that does not accept what is declared is refused."""
    declared = Function("add", "Add.", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"])
    copy = declared.extend(function=lambda a, b: a + b)
    assert (copy.linked, declared.linked) == (True, False)
    assert answer(copy, a=1, b=2) == "3"
    assert declared.link_function(lambda a, b: a * b) is declared
    assert answer(declared, a=3, b=2) == "6"
    with pytest.raises(TypeError, match="cannot be called"):
        declared.link_function(3)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidInput, match="requires 'c'"):
        declared.link_function(lambda a, b, c: a + b + c)


def test_a_tool_cannot_be_changed_from_outside() -> None:
    """Schemas are read-only, and what was given may change later without effect."""
    properties = {"a": {"type": "integer"}}
    function = Function("f", properties=properties, metadata={"k": [1]})
    properties["a"]["type"] = "string"
    with pytest.raises(TypeError):
        function.properties["a"]["type"] = "string"
    with pytest.raises(TypeError):
        function.metadata["k"].append(2)
    assert function == Function("f", properties={"a": {"type": "integer"}}, metadata={"k": [1]})
    assert pickle.loads(pickle.dumps(function)) == function  # noqa: S301 - our own bytes


def test_a_context_is_not_a_parameter() -> None:
    """However it is annotated, and wherever it stands."""

    def take(context: Annotated[CallContext | None, "mine"], a: int, other: CallContext | None = None) -> str:
        return f"{a} {context is other} {context is not None and context.tool}"

    assert answer(take, a=1) == "1 True take"
    assert list(Function.from_callable(take).properties) == ["a"]


def test_strict_is_claimed_where_it_can_hold() -> None:
    """Every object closed, every property required, no keyword outside the subset; and never against the declaration."""
    strict: list[Any] = [str, Literal["a", "b"], list[Street], int | Street]
    for kind in [*strict, Options, dict[str, int], Any, tuple[int, str], set[int]]:
        assert taking(kind).to_tool()["function"]["strict"] is (kind in strict)
        assert taking(kind).extend(strict=False).to_tool()["function"]["strict"] is False


def test_a_processor_makes_the_text() -> None:
    """R122: it gets what was returned and the call; `labelled` writes what LLLM writes by default."""
    outcome = run(Function("say", function=lambda: 3, processor=labelled))
    assert outcome.result.text() == "Return of calling function say with arguments {}:\n---\n3\n---\n"
    assert outcome.function_call.result == 3
    assert labelled("x", FunctionCall("c", "f", {"a": 1})).startswith(
        "Return of calling function f with arguments {'a': 1}"
    )
    broken = run(Function("say", function=lambda: 3, processor=lambda _value, _call: 1 / 0))
    assert broken.error == "ZeroDivisionError: division by zero"
