"""Formats: what is sent, what is read, and what a refusal tells."""

import json
import pickle
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # Pydantic takes typing's own from Python 3.12 on

from palaver.errors import InvalidInput, ParseError
from palaver.prompts import Format, Prompt, Runtime
from palaver.tools.schemas import violations


class Colour(Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    """Somebody."""

    name: Annotated[str, Field(description="the full name")]
    age: int = Field(ge=0)
    colour: Colour | None = None
    kind: Literal["friend", "foe"] = "friend"


class Strict(BaseModel):
    """Takes nothing else."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    id_: int = Field(alias="id")


class Node(BaseModel):
    """Holds itself."""

    name: str
    parts: list["Node"] = []


@dataclass
class Point:
    """A point."""

    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=list)


class Row(TypedDict):
    """A row."""

    id: int


SCHEMA = {
    "title": "City",
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
    "required": ["name"],
    "additionalProperties": False,
}


READ: list[tuple[object, str, object, dict[str, Any] | None]] = [
    (Person, '{"name": "Ann", "age": 3, "colour": "red"}', Person(name="Ann", age=3, colour=Colour.RED), None),
    (Strict, '{"id": 3}', Strict(id_=3), {"id": 3}),
    (Node, '{"name": "a", "parts": [{"name": "b"}]}', Node(name="a", parts=[Node(name="b")]), None),
    (Point, '{"x": 1}', Point(x=1.0), {"x": 1.0, "y": 0.0, "tags": []}),
    (Row, '{"id": 1}', {"id": 1}, {"id": 1}),
    (TypeAdapter(Row), '{"id": 1}', {"id": 1}, {"id": 1}),
    (list[int], '{"value": [1, 2]}', [1, 2], {"value": [1, 2]}),
    (Literal["yes", "no"], '{"value": "no"}', "no", {"value": "no"}),
    (Point | Row, '{"value": {"id": 7}}', {"id": 7}, {"value": {"id": 7}}),
    (dict[str, int], '{"a": 1}', {"a": 1}, {"a": 1}),
    (SCHEMA, '{"name": "Oslo"}', {"name": "Oslo"}, {"name": "Oslo"}),
    ({"type": "array", "items": {"type": "string"}}, '{"value": ["a"]}', ["a"], {"value": ["a"]}),
]


def test_result_is_read_as_the_type() -> None:
    """R111: models, dataclasses, typed dictionaries, plain types and schemas: `read` gives the value, `parse` its JSON object."""
    for source, text, read, parsed in READ:
        made = Format(source)
        assert made.read(text) == read
        whole = made.parse(text)
        assert json.loads(json.dumps(whole)) == whole
        assert whole == (read.model_dump(mode="json") if isinstance(read, BaseModel) and parsed is None else parsed)


def test_the_schema_is_one_of_an_object() -> None:
    """Whatever the type is, what is sent has an object at the top, and no reference in its place; OpenAI's envelopes are opened."""
    for source, *_ in READ:
        schema = Format(source).schema
        assert schema["type"] == "object"
        assert "$ref" not in schema
        json.dumps(schema, default=dict)
    responses = {"type": "json_schema", "name": "city", "schema": SCHEMA}
    chat = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    assert Format(chat).schema == Format(responses).schema == Format(SCHEMA).schema


def test_names() -> None:
    """The name is that of the type or the schema's title, spelt as every provider takes it; `answer` where there is none."""
    named = [Format(source).name for source in (Person, SCHEMA, {"type": "object"}, list[int])]
    assert named == ["Person", "City", "answer", "list"]
    assert [Format(SCHEMA, name).name for name in ("a b/c!", "x" * 99)] == ["a_b_c", "x" * 64]


REFUSED: list[tuple[object, str, list[str], tuple[str, ...]]] = [
        (Person, '{"age": -1}', ["name: Field required", "age: Input should be greater"], ("name",)),
        (Person, '{"name": "a", "age": "x", "kind": 3}', ["age: ", "kind: Input should be 'friend' or 'foe'"], ()),
        (Strict, '{"id": 1, "more": 2}', ["more: Extra inputs"], ()),
        (Node, '{"name": "a", "parts": [{"name": "b"}, {}]}', ["parts[1].name: Field required"], ("parts[1].name",)),
        (list[int], "[1, 2]", ["'value' is a required property"], ("value",)),
        (SCHEMA, '{"people": 0, "mayor": 1}', ["'name' is a required property", "people: 0 is less than the minimum of 1", "'mayor' is not an expected property"], ("name",)),
        (SCHEMA, "Oslo", ["not JSON"], ()),
        (SCHEMA, '{"name": "a"} {"name": "b"}', ["not JSON"], ()),
        (SCHEMA, '{"name": "a", "people": NaN}', ["NaN is not a JSON number"], ()),
        (SCHEMA, '{"name": "a", "name": "b"}', ["'name' occurs twice"], ()),
        (SCHEMA, "[" * 100_000, ["not JSON"], ()),
]  # fmt: skip


def test_refused_answer_has_the_reasons() -> None:
    """R111: the ParseError names every fault with its place, so that a model can mend it."""
    for source, text, told, missing in REFUSED:
        for read in (Format(source).read, Format(source).parse):
            with pytest.raises(ParseError) as caught:
                read(text)
            assert all(reason in caught.value.message for reason in told), caught.value.message
            assert caught.value.missing == missing
            assert caught.value.content == text


def test_one_fenced_block_is_the_answer() -> None:
    """A model that was asked in words, not held to a schema, may put its answer into a fenced block."""
    for fence in ("```json\n{}\n```", "Here it is:\n```\n{}\n```\nDone.", "```JSON\n{}```", "  {}  "):
        assert Format(SCHEMA).read(fence.replace("{}", '{"name": "Oslo"}')) == {"name": "Oslo"}
    with pytest.raises(ParseError):  # which of two would be meant cannot be known
        Format(SCHEMA).read('```\n{"name": "a"}\n```\n```\n{"name": "b"}\n```')
    text = json.dumps({"name": "```json\n{}\n```"})  # an answer that is JSON is read as it stands
    assert Format(SCHEMA).read(text) == json.loads(text)


class Holder(BaseModel):
    """Holds what JSON cannot say."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Runtime


def test_wrong_format_is_refused() -> None:
    """A value in the place of a type, and what JSON cannot say: the caller's mistake, told when the format is made."""
    wrong: list[Any] = [None, "json", 3, [Person], Person(name="a", age=1), Holder, {"type": "object", "x": object()}]
    for source in wrong:
        with pytest.raises(InvalidInput):
            Format(source)


def test_a_schema_may_refer_to_its_top() -> None:
    """A list of lists of itself: references lead to where the schema stands within the object around it."""
    made = Format({"type": "array", "items": {"$ref": "#"}})
    assert made.read('{"value": [[], [[]]]}') == [[], [[]]]
    with pytest.raises(ParseError, match=r"value\[0\]\[0\]"):
        made.read('{"value": [[1]]}')


def test_formats_are_values() -> None:
    """Equal ones are equal and hash alike; they survive pickles, and are stored as they are sent; the schema cannot be changed."""
    adapter = TypeAdapter(Format)
    for source in (Person, Node, list[int], SCHEMA):
        one = Format(source, description="why", strict=False)
        assert one == Format(source, description="why", strict=False) != Format(source)
        assert len({one, pickle.loads(pickle.dumps(one))}) == 1  # noqa: S301 - our own bytes
        assert adapter.validate_json(adapter.dump_json(one)) == one
    with pytest.raises(ValidationError):
        adapter.validate_python({"name": "x"})
    with pytest.raises(TypeError):
        Format(Person).schema["properties"]["name"] = {}


@given(
    st.builds(
        Person,
        name=st.text(max_size=5),
        age=st.integers(0, 200),
        colour=st.sampled_from([None, *Colour]),
        kind=st.sampled_from(["friend", "foe"]),
    )
)
def test_type_reads_its_own_json(person: Person) -> None:
    """Reading undoes writing, and what is read holds to the schema that was sent."""
    made = Format(Person)
    text = person.model_dump_json()
    assert made.read(text) == person
    assert made.parse(text) == person.model_dump(mode="json")
    assert not violations(made.schema, made.parse(text))


# --- of a prompt -----------------------------------------------------------------------------------------------------------


def test_format_and_parser_together() -> None:
    """The format says what the answer must be, the parser what is made of it: it is given the text, and only one that holds."""
    asked: list[str] = []

    def count(content: str, **_args: object) -> dict[str, int]:
        asked.append(content)
        return {"letters": len(json.loads(content)["name"])}

    prompt = Prompt(path="p", prompt="Who?", format=SCHEMA, parser=count)
    text = '{"name": "Oslo"}'
    assert prompt.parse(text) == prompt.read(text) == {"letters": 4, "raw": text}
    with pytest.raises(ParseError):
        prompt.parse("{}")
    assert asked == [text, text]


def test_a_deep_answer_is_refused_not_a_crash() -> None:
    """A schema that holds itself, and an answer a thousand levels deep: a refusal that names the reason."""
    schema = {"type": "object", "properties": {"in": {"$ref": "#"}}, "additionalProperties": False}
    deep = '{"in":' * 900 + "{}" + "}" * 900
    with pytest.raises(ParseError, match="nested too deep"):
        Format(schema).read(deep)
