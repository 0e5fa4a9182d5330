"""What a model is told of a Python function, and what cannot be told."""

import datetime as dt
import enum
import functools
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import anyio
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.messages import ToolCallContent
from palaver.tools import CallContext, Function, Toolbox, execute, tool
from palaver.tools.docstrings import documented


@tool(prop_desc={"city": "The city's name."})
def weather(city: str, days: int = 3) -> str:
    """Tell the weather."""
    return f"{city}: sun for {days} days"


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class Street(BaseModel):
    """A street."""

    name: str = Field(description="As on the sign.")
    number: int


@dataclass
class Point:
    """A place."""

    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    """Some options."""

    deep: bool


def answer(function: Function | Callable[..., Any], **arguments: Any) -> str:  # noqa: ANN401
    """Call a tool as a model does."""
    box = Toolbox([function])
    return anyio.run(execute, box, ToolCallContent("c", box.names[0], args=arguments)).result.text()


def test_a_function_is_declared_by_its_signature() -> None:
    """Name, docstring, types and defaults are what the model reads."""
    assert weather.to_tool() == {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city's name."},
                    "days": {"type": "integer", "default": 3, "description": "(default: 3)"},
                },
                "required": ["city"],
                "additionalProperties": False,
            },
            "strict": False,
        },
    }
    assert weather.spec == ToolSpec(name="weather", description="Tell the weather.", parameters=weather.parameters)


def test_a_tool_is_still_the_function() -> None:
    """Calling it runs it, it is a Function, and it looks like what it was made of."""
    assert weather("Oslo", days=1) == "Oslo: sun for 1 days"
    assert isinstance(weather, Function)
    assert (getattr(weather, "__name__", ""), weather.__doc__) == ("weather", "Tell the weather.")
    assert list(inspect.signature(weather).parameters) == ["city", "days"]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (list, {"type": "array", "items": {}}),
        (dict, {"type": "object", "additionalProperties": True}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"], "description": "A colour."}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - the older way is taken too
        (Annotated[int, "how many"], {"type": "integer"}),
        (
            Annotated[int, Field(ge=1, description="How many.")],
            {"type": "integer", "minimum": 1, "description": "How many."},
        ),
        (dt.date, {"type": "string", "format": "date"}),
        (
            Street,
            {
                "type": "object",
                "description": "A street.",
                "properties": {
                    "name": {"type": "string", "description": "As on the sign."},
                    "number": {"type": "integer"},
                },
                "required": ["name", "number"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "description": "Some options.",
                "properties": {"deep": {"type": "boolean"}},
                "additionalProperties": False,
            },
        ),
    ],
)
def test_types_have_schemas(kind: Any, schema: dict[str, Any]) -> None:  # noqa: ANN401 - a type form
    """Each type is said as JSON Schema says it, classes in full and closed."""

    def take(value: kind) -> None:
        """Take it."""

    found = dict(Function.from_callable(take).properties["value"])
    if kind is Point or kind is list:
        found.setdefault("items", {})
    assert found == schema


def test_values_arrive_as_what_they_are_declared() -> None:
    """Enums, models, dataclasses, dates and tuples are what the function gets, not their JSON."""

    @tool
    def take(
        colour: Colour, street: Street, point: Point, day: dt.date, pair: tuple[int, str], options: Options
    ) -> str:
        """Take them."""
        return f"{colour!r} {street!r} {point!r} {day!r} {pair!r} {options!r}"

    said = answer(
        take,
        colour="red",
        street={"name": "High", "number": 3},
        point={"x": 1},
        day="2020-02-01",
        pair=[1, "a"],
        options={"deep": True},
    )
    assert said == (
        "<Colour.RED: 'red'> Street(name='High', number=3) Point(x=1.0, y=0.0) datetime.date(2020, 2, 1) (1, 'a') {'deep': True}"
    )


def test_an_unannotated_parameter_is_text_or_what_its_default_is() -> None:
    """Without an annotation a string; with a plain default, its type."""

    def take(a, b=2, c=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - that is the point
        return f"{a!r} {b!r} {c!r}"

    function: Function = Function.from_callable(take)
    assert [each.get("type") for each in function.properties.values()] == ["string", "integer", None]
    assert function.required == ("a",)
    assert answer(function, a="x", c="y") == "'x' 2 'y'"


def test_parameters_may_have_any_name_and_stand_by_position() -> None:
    """Names that a Pydantic model would not allow are fine, and so are positional-only parameters and their defaults."""

    def take(_a: int, schema: str = "s", /, json: int = 1, *, model_config: str = "m") -> str:
        return f"{_a} {schema} {json} {model_config}"

    assert answer(take, _a=1) == "1 s 1 m"
    assert answer(take, _a=1, json=2, model_config="x") == "1 s 2 x"


def test_a_default_in_a_field_counts() -> None:
    """`x: int = Field(3, description=…)` means what it does elsewhere."""

    def take(x: int = Field(3, ge=1, description="How many."), tags: list[str] = Field(default_factory=list)) -> str:  # noqa: B008 - that is the point
        return f"{x} {tags}"

    function = Function.from_callable(take)
    assert dict(function.properties["x"]) == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How many. (default: 3)",
    }
    assert answer(function) == "3 []"
    assert "at least 1" in answer(function, x=0)


def test_defaults_that_json_cannot_say_stay_the_functions_own() -> None:
    """They are not declared, and the function gets them."""
    marker = object()

    def take(x: int = marker) -> str:  # type: ignore[assignment]
        return str(x is marker)

    assert "default" not in Function.from_callable(take).properties["x"]
    assert answer(take) == "True"


GOOGLE = """Look things up.

    Slowly.

    Args:
        query: What to look for,
            in any language.
        limit (int): How many.
        *rest: More.

    Returns:
        Text.

    Note:
        Costs money.
    """
NUMPY = """Look things up.

    Slowly.

    Parameters
    ----------
    query : str
        What to look for,
        in any language.
    limit
        How many.

    Returns
    -------
    str
        Text.
    """
SPHINX = """Look things up.

    Slowly.

    :param query: What to look for,
        in any language.
    :param int limit: How many.
    :returns: Text.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX])
def test_docstrings_tell_of_parameters(docstring: str) -> None:
    """Three ways of writing them are read; the description is what is not about parameters and results."""
    read = documented(docstring)
    assert dict(read.parameters) | {"rest": "More."} == {
        "query": "What to look for, in any language.",
        "limit": "How many.",
        "rest": "More.",
    }
    assert read.description.startswith("Look things up.\n\nSlowly.")
    assert "Text." not in read.description


def test_a_note_is_for_the_model_too() -> None:
    """What warns a caller stays in the description."""
    assert documented(GOOGLE).description.endswith("Note:\n    Costs money.")


@pytest.mark.parametrize(
    "docstring", ["", None, "One line.", "Args:", "Args:\n    no colon here", ":param", "---\n---"]
)
def test_any_docstring_can_be_read(docstring: str | None) -> None:
    """Nothing in one is an error."""
    documented(docstring)


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
        """Tell the price."""
        return len(thing)

    async def __call__(self, n: int) -> int:
        """Count."""
        return n + 1


def test_methods_partials_and_objects_are_tools() -> None:
    """Whatever can be called with arguments that have names."""
    shop = Shop("Ann")
    assert answer(shop.sell, thing="tea") == "Ann sells tea"
    assert answer(shop.buy, thing="tea") == "Ann buys tea"
    assert answer(Shop.price, thing="tea") == "3"
    assert answer(shop, n=1) == "2"
    assert answer(functools.partial(shop.buy, "tea")) == "Ann buys tea"
    assert Function.from_callable(functools.partial(weather.function or print, days=5)).name == "weather"
    assert list(shop.sell.properties) == ["thing"]
    assert "no implementation" in answer(Shop.sell, thing="tea")


def _generator(n: int) -> Any:  # noqa: ANN401 - it yields
    yield n


def _late(x: "NowhereDefined") -> None:  # type: ignore[name-defined] # noqa: F821 - that is the point
    """Do nothing."""


class Opaque:
    """A class of which Pydantic knows nothing."""


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda *args: args, "takes *args"),
        (lambda **kwargs: kwargs, "takes **kwargs"),
        (_generator, "yields"),
        (_late, "The type of 'x' of _late() cannot be found"),
        (dict, "does not tell its parameters"),
        (3, "cannot be called"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_a_way_out(function: Any, why: str) -> None:  # noqa: ANN401 - anything
    """The reason names the function and the parameter, and the hint what to do."""
    with pytest.raises(InvalidInput) as caught:
        Function.from_callable(function, name="t")
    assert why in str(caught.value)
    assert caught.value.hint


def test_a_type_that_json_cannot_fill_is_refused() -> None:
    """The hint names what can be."""

    def take(x: Opaque) -> None:
        """Take it."""

    def call(x: Callable[[], int]) -> None:
        """Call it."""

    for function in (take, call):
        with pytest.raises(InvalidInput, match=r"cannot be read from JSON|have no JSON schema"):
            Function.from_callable(function)


@pytest.mark.parametrize("name", ["", "two words", "a/b", "a:b", "a%b", "a;b", "a\\b", "a\nb"])
def test_names_that_cannot_be_called_are_refused(name: str) -> None:
    """White space and the marks of references have no place in a name."""
    with pytest.raises(InvalidInput, match="cannot be called"):
        Function(name)


@pytest.mark.parametrize(
    "declared",
    [
        {"required": ["x"]},
        {"properties": {"x": 3}},
        {"parameters": {"type": "array"}},
        {"timeout": 0},
        {"timeout": -1.0},
        {"properties": {"x": {}}, "function": lambda y: y},
        {"properties": {"x": {}}, "function": lambda: None},
    ],
)
def test_a_declaration_that_cannot_hold_is_refused(declared: dict[str, Any]) -> None:
    """Schema, limits and implementation are checked when they are declared, not when they are called."""
    with pytest.raises(InvalidInput):
        Function("t", **declared)


def test_a_field_that_is_none_is_refused_with_those_there_are() -> None:
    """A typing mistake in an option does not go unseen."""
    with pytest.raises(InvalidInput, match="A tool has no 'timeot'"):
        tool(timeot=3)(lambda: None)
    with pytest.raises(InvalidInput, match="has no parameter 'town' to describe"):
        tool(prop_desc={"town": "x"})(weather.function or print)


def test_an_implementation_is_linked_later() -> None:
    """By `link_function` on the tool itself, by `extend` on a copy; one that does not take what is declared is refused."""
    declared = Function("add", "Add.", {"a": {"type": "integer"}, "b": {"type": "integer"}}, ["a", "b"])
    copy = declared.extend(function=lambda a, b: a + b)
    assert (copy.linked, declared.linked) == (True, False)
    assert answer(copy, a=1, b=2) == "3"
    assert declared.link_function(lambda a, b: a * b) is declared
    assert answer(declared, a=3, b="2") == "6"
    with pytest.raises(TypeError, match="cannot be called"):
        declared.link_function(3)  # type: ignore[arg-type] # that is the point
    with pytest.raises(InvalidInput, match="needs 'c'"):
        declared.link_function(lambda a, b, c: a + b + c)


def test_an_implementation_may_take_whatever_is_declared() -> None:
    """`**kwargs` is fine where a schema says what comes."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}
    function = Function("any", parameters=schema, function=lambda **given: sorted(given.items()))
    assert answer(function, a=1, b="x") == '[["a",1],["b","x"]]'


def test_a_tool_cannot_be_changed_through_what_it_hands_out() -> None:
    """Schemas are read-only, copies are copies, and what was given can change later without effect."""
    properties = {"a": {"type": "integer"}}
    function = Function("f", properties=properties, metadata={"k": [1]})
    properties["a"]["type"] = "string"
    assert function.properties["a"]["type"] == "integer"
    with pytest.raises(TypeError):
        function.properties["a"]["type"] = "string"
    with pytest.raises(TypeError):
        function.metadata["k"].append(2)
    function.to_tool()["function"]["parameters"]["properties"]["a"]["type"] = "string"
    assert function.properties["a"]["type"] == "integer"
    assert function == Function("f", properties={"a": {"type": "integer"}}, metadata={"k": [1]})


def test_a_derived_tool_differs_in_what_is_given() -> None:
    """`extend` keeps the rest, the class and the implementation."""
    other = weather.extend(name="forecast", timeout=3)
    assert (other.name, other.timeout, other.description) == ("forecast", 3, "Tell the weather.")
    assert other("Oslo") == weather("Oslo")
    narrowed = Function("f", properties={"a": {}, "b": {}}, required=["a"]).extend(properties={"a": {}})
    assert (list(narrowed.properties), narrowed.required) == (["a"], ("a",))


def test_a_context_is_no_parameter() -> None:
    """However it is annotated, and wherever it stands."""

    def take(context: Annotated[CallContext | None, "mine"], a: int, other: CallContext | None = None) -> str:
        return f"{a} {context is other} {context is not None and context.tool}"

    assert answer(take, a=1) == "1 True take"


def test_a_declaration_can_be_pickled() -> None:
    """A tool of a module goes to another process and is the same there."""
    declared = Function("f", properties={"a": {"type": "integer"}}, metadata={"k": 1})
    assert pickle.loads(pickle.dumps(declared)) == declared  # noqa: S301 - our own bytes


class Cat(BaseModel):
    """One of two."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """The other."""

    kind: Literal["dog"]
    bark: str


@tool
def feed(
    pet: Annotated[Cat | Dog, Field(discriminator="kind")], often: Annotated[int | None, Field(ge=0, le=5)] = None
) -> str:
    """Feed."""
    return f"{pet!r} {often}"


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"pet": {"kind": "dog", "bark": 3}}, "- pet.bark: expected a string, got 3"),
        ({"pet": {"kind": "cow"}}, "- pet.kind: expected 'cat' or 'dog', got 'cow'"),
        ({"pet": {"lives": 9}}, "- pet.kind: missing; expected 'cat' or 'dog'"),
        ({"pet": 3}, "- pet: expected an object with kind, lives or an object with kind, bark, got 3"),
        ({"pet": {"kind": "cat", "lives": 9}, "often": 7}, "- often: must be at most 5, got 7"),
        ({"pet": '{"kind": "cat", "lives": "9"}', "often": "7"}, "- often: expected an integer or null, got '7'"),
    ],
)
def test_what_is_wrong_with_an_alternative_is_said_of_the_one_meant(arguments: dict[str, Any], fault: str) -> None:
    """Among the members of a union the tag and the type tell which was meant; what else can be mended is not complained of."""
    assert answer(feed, **arguments).splitlines()[1:-1] == [fault]
