"""Parsers: what an answer is read into."""

import pytest

from palaver.errors import ParseError
from palaver.prompts import DefaultTagParser, Prompt


def test_r110_parsers() -> None:
    """A callable and an object with parse() both serve; what is no mapping stands under `value`; `raw` is the text."""

    class Upper:
        def parse(self, content: str, **runtime_args: object) -> str:
            return content.upper() + str(runtime_args.get("end", ""))

    assert Prompt(path="p", prompt="", parser=Upper()).parse("a", end="!") == {"value": "A!", "raw": "a"}
    assert Prompt(path="p", prompt="", parser=len).parse("abc") == {"value": 3, "raw": "abc"}
    assert Prompt(path="p", prompt="", parser=lambda text: {"raw": "mine", "x": text}).parse("a") == {
        "raw": "mine",
        "x": "a",
    }


def test_r6_without_a_parser_nothing_was_parsed() -> None:
    """The one answer for a prompt without parser is the empty mapping."""
    assert Prompt(path="p", prompt="").parse("text") == {}


def test_r119_tags() -> None:
    """Elements, fenced blocks and signals are read, each under its name, several of one name in order."""
    parser = DefaultTagParser(xml_tags=["a"], md_tags=["python"], signal_tags=["DONE", "MORE"])
    text = "<a> 1 </a>x<a>2\n3</a>\n```python\nprint()\n```\n<DONE>"
    assert parser.parse(text) == {
        "raw": text,
        "xml_tags": {"a": ["1", "2\n3"]},
        "md_tags": {"python": ["print()"]},
        "signal_tags": {"DONE": True, "MORE": False},
    }


def test_r119_required_tags() -> None:
    """Required tags count whether they are listed as well or not; what is missing is named, with the answer."""
    parser = DefaultTagParser(required_xml_tags=["answer"], required_md_tags=["json"])
    found = parser.parse("<answer>1</answer>\n```json\n{}\n```")
    assert found["xml_tags"] == {"answer": ["1"]}
    with pytest.raises(ParseError, match="<answer>, ```json") as caught:
        parser.parse("nothing")
    assert caught.value.missing == ("<answer>", "```json")
    assert caught.value.content == "nothing"


def test_tag_names_are_no_patterns() -> None:
    """A tag's name is looked for as it stands."""
    assert DefaultTagParser(xml_tags=["a.c"]).parse("<abc>x</abc><a.c>y</a.c>")["xml_tags"] == {"a.c": ["y"]}


def test_elements_may_have_attributes_and_must_be_closed() -> None:
    """What a model adds to a tag is passed over; an element cut off by the end of the answer is none."""
    parser = DefaultTagParser(xml_tags=["a", "ab"])
    found = parser.parse('<a n="1">x</a><ab>y</ab><a\n>z</a><a>cut')["xml_tags"]
    assert found == {"a": ["x", "z"], "ab": ["y"]}


def test_fences_as_models_write_them() -> None:
    """More ticks, tildes, words after the language, carriage returns; a block of another language that holds one is not opened."""
    parser = DefaultTagParser(md_tags=["json"])
    text = '````md\n```json\nnot mine\n```\n````\n```json title="x"\r\n{}\r\n```\r\n~~~json\n[]\n~~~\n```json\ncut'
    assert parser.parse(text)["md_tags"] == {"json": ["{}", "[]"]}


def test_a_long_answer_is_read_once() -> None:
    """A megabyte of elements that are never closed is read in one pass, not once for each (within the time-out of a test)."""
    parser = DefaultTagParser(xml_tags=["a"], md_tags=["b"], signal_tags=["c"])
    found = parser.parse("<a>" * 400_000 + "```b\n" * 200_000)
    assert found["xml_tags"] == {"a": []}


def test_a_parser_of_ones_own_extends_the_default_one() -> None:
    """A subclass adds what it makes of the tags."""

    class Numbers(DefaultTagParser):
        def parse(self, content: str, **runtime_args: object) -> dict[str, object]:
            found = super().parse(content, **runtime_args)
            return {**found, "sum": sum(int(each) for each in found["xml_tags"]["n"])}

    assert Prompt(path="p", prompt="", parser=Numbers(["n"])).parse("<n>1</n><n>2</n>")["sum"] == 3
