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
