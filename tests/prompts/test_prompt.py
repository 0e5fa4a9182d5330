"""Prompts: rendering, variables, parsing, handlers, isolation, derivation."""

import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput, ParseError
from palaver.prompts import (
    DefaultHandler,
    DefaultTagParser,
    Prompt,
    Runtime,
    temporary_prompt,
)
from palaver.tools import MCP

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


# --- rendering ---------------------------------------------------------------------------------------------------------


def test_doubled_braces_are_literal() -> None:
    """A21, R50, R106, R108: doubled braces are literal and not variables, with variables or without; what is missing is known before."""
    prompt = Prompt(path="p", prompt="{{x}} {y}")
    assert prompt.template_vars == {"y"}
    assert prompt.validate_args({}) == ["y"]
    assert prompt.validate_args({"y": 1, "z": 2}) == []
    assert prompt(y="Y") == "{x} Y"
    assert Prompt(path="p", prompt='{{"a": 1}}')() == '{"a": 1}'


def test_missing_variables_are_named() -> None:
    """R104: rendering with variables missing is a ValueError that names all of them; further arguments do no harm."""
    prompt = Prompt(path="p", prompt="{b} {a}")
    with pytest.raises(InvalidInput, match="needs a, b") as caught:
        prompt(c=3)
    assert isinstance(caught.value, ValueError)
    assert prompt(a=1, b=2, c=3) == "2 1"


def test_variables_of_a_template_are_named() -> None:
    """R107: attributes, items, conversions and nested specifications count; doubled braces do not. What is malformed is refused when made."""
    cases: dict[str, set[str]] = {
        "{a.b} {c[0]} {d!r} {e:>{width}}": {"a", "c", "d", "e", "width"},
        "{a:{b}{c}}": {"a", "b", "c"},
        "plain {{a}}{{": set(),
        "{self}": {"self"},
    }
    for template, names in cases.items():
        assert Prompt(path="p", prompt=template).template_vars == names
    for malformed in ("{}", "{0}", "{:>{}}", "{a:{}}", "{", "}", "{a", "{a:{b:{c}}}", "{a!}"):
        with pytest.raises(InvalidInput):
            Prompt(path="p", prompt=malformed)


def test_rendering_is_str_format() -> None:
    """R105: conversions and specifications hold; an argument that does not fit is the caller's error."""
    assert Prompt(path="p", prompt="{x!r:>6}|{y:.2f}|{z[0].real}")(x="a", y=1.234, z=[3]) == "   'a'|1.23|3"
    assert Prompt(path="p", prompt="[{x:>{w}}]")(x="a", w=3) == "[  a]"
    for template in ("{a.b}", "{a[k]}", "{a:d}", "{a:%}"):
        with pytest.raises(InvalidInput, match="do not fit"):
            Prompt(path="p", prompt=template)(a="text")


def test_widths_are_bounded() -> None:
    """A width or precision that an argument asks for, or the template, has at most 10,000 characters; none of them is made before that is known."""
    wide = Prompt(path="p", prompt="{name!r:>{width}}")
    assert wide(name="a", width=10_000).endswith("'a'")
    for prompt, args in (
        (wide, {"name": "a", "width": 10**9}),
        (wide, {"name": "a", "width": "9" * 5_000}),
        (Prompt(path="p", prompt="{x:.{digits}f}"), {"x": 1.0, "digits": 10_001}),
        (Prompt(path="p", prompt="{x:>20000}"), {"x": 1}),
    ):
        with pytest.raises(InvalidInput, match="do not fit"):
            prompt.render(args)


@given(value=st.text(), name=NAMES)
def test_law_12_arguments_are_never_templates(value: str, name: str) -> None:
    """What an argument holds is put in as it is, whatever braces it has."""
    prompt = Prompt(path="p", prompt="<{" + name + "}>")
    assert prompt.render(dict.fromkeys(prompt.template_vars, value)) == f"<{value}>"


@given(text=st.text())
def test_temporary_prompts_say_the_text(text: str) -> None:
    """The prompt that stands for plain text has no variables and renders to the very text; so does a text with braces doubled."""
    prompt = temporary_prompt(text)
    assert prompt() == text
    assert prompt.template_vars == frozenset()
    assert prompt.is_temporary
    assert not prompt.function_list
    assert Prompt(path="p", prompt=text.replace("{", "{{").replace("}", "}}"))() == text


class Percent:
    """A renderer with another syntax for variables: `%name%`."""

    def variables(self, template: str) -> frozenset[str]:
        """Every second part between percent signs."""
        return frozenset(template.split("%")[1::2])

    def render(self, template: str, args: Mapping[str, object]) -> str:
        """Put the arguments in."""
        return "".join(str(args[part]) if i % 2 else part for i, part in enumerate(template.split("%")))


def test_another_renderer_has_its_own_variables() -> None:
    """R116: a template in another language is never parsed as a format string."""
    assert Prompt(path="p", prompt="{% if %who% %}{", renderer=Percent()).template_vars == {" if ", " "}
    assert Prompt(path="q", prompt="{hi} %who%", renderer=Percent())(who="you") == "{hi} you"


# --- fields ------------------------------------------------------------------------------------------------------------


def test_fields_and_their_defaults() -> None:
    """R102, R109: everything but path and template has a default; lists are kept as tuples, mappings as copies."""
    prompt = Prompt(path="p", prompt="x")
    assert (prompt.metadata, prompt.parser, prompt.format, prompt.addon_args) == ({}, None, None, {})
    assert (prompt.function_list, prompt.mcp_servers_list) == ((), ())
    assert isinstance(prompt.handler, DefaultHandler)
    servers, labels = [MCP("docs", "https://example.org/mcp")], {"labels": ["a"]}
    full = Prompt(path="p", prompt="x", mcp_servers_list=servers, metadata=labels, addon_args={"web_search": True})
    servers.clear()
    labels["labels"].append("b")
    assert full.mcp_servers_list == (MCP("docs", "https://example.org/mcp"),)
    assert full.metadata == {"labels": ["a"]}
    with pytest.raises(TypeError):
        full.metadata["labels"].append("c")
    with pytest.raises(AttributeError):
        full.path = "q"  # type: ignore[misc]


def test_wrong_fields_are_refused_when_made() -> None:
    """Not when an answer comes: the error names the field."""
    cases: list[Any] = [
        ({"metadata": {"when": object()}}, r"metadata\.when"),
        ({"metadata": [1]}, "not a mapping"),
        ({"path": ""}, "needs a path"),
        ({"prompt": b"x"}, "prompt of a prompt is a bytes"),
        ({"parser": 5}, "parser of the prompt 'p' is 5"),
        ({"handler": object()}, "no method on_exception"),
        ({"function_list": "fetch"}, "not a list"),
        ({"format": "json"}, "neither a type nor a JSON schema"),
    ]
    for wrong, why in cases:
        with pytest.raises(InvalidInput, match=why):
            Prompt(**{"path": "p", "prompt": "x", **wrong})


def test_extending_makes_another_prompt() -> None:
    """R117: a derived prompt differs in what was given and needs its own path; the original stays."""
    base = Prompt(path="a", prompt="{x}", function_list=["tool"])
    derived = base.extend(path="b", prompt="{y}")
    assert (derived.path, tuple(derived.function_list), derived.template_vars) == ("b", ("tool",), frozenset({"y"}))
    assert base.template_vars == {"x"}
    with pytest.raises(InvalidInput):
        base.extend(prompt="z")


def test_info_dict_is_plain_json() -> None:
    """R118: what identifies a prompt is plain JSON, and the hash follows the template."""

    def plain() -> None: ...

    prompt = Prompt(path="a", prompt="x", function_list=["ref", plain], mcp_servers_list=[{"server_label": "docs"}])
    info = prompt.info_dict()
    assert (info["functions"], info["mcp_servers"]) == (["ref", "plain"], ["docs"])
    assert (info["path"], info["has_parser"], info["has_format"]) == ("a", False, False)
    assert len(info["prompt_hash"]) == 12
    assert prompt.extend(path="b", prompt="y").info_dict()["prompt_hash"] != info["prompt_hash"]


def test_prompts_are_values() -> None:
    """R103: equal prompts are equal, hash alike and survive pickling; the path is the key in a runtime."""
    one, two = (Prompt(path="a", prompt="{x}", metadata={"a": [1, {"b": 2}]}) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    again = pickle.loads(pickle.dumps(one.extend(path="b")))  # noqa: S301 - our own bytes
    assert again.template_vars == {"x"}
    assert Runtime().register_prompt(one) == "a"
    assert Prompt.ref("a").path == "a"


# --- parsers -----------------------------------------------------------------------------------------------------------


def test_parsers_are_callables_or_objects() -> None:
    """R6, R110: a callable and an object with parse() both serve; a value that is not a mapping stands under `value`; `raw` is the text."""

    class Upper:
        def parse(self, content: str, **runtime_args: object) -> str:
            return content.upper() + str(runtime_args.get("end", ""))

    assert Prompt(path="p", prompt="", parser=Upper()).parse("a", end="!") == {"value": "A!", "raw": "a"}
    assert Prompt(path="p", prompt="", parser=len).parse("abc") == {"value": 3, "raw": "abc"}
    own = Prompt(path="p", prompt="", parser=lambda text: {"raw": "mine", "x": text})
    assert own.parse("a") == {"raw": "mine", "x": "a"}
    assert Prompt(path="p", prompt="").parse("text") == {}

    async def late(content: str) -> str:
        return content

    with pytest.raises(InvalidInput, match="returned a coroutine"):
        Prompt(path="p", prompt="", parser=late).parse("a")


def test_tags_are_read_in_order() -> None:
    """R119: elements, fenced blocks and signals are read, each under its name, in order; required ones that are missing are named."""
    parser = DefaultTagParser(xml_tags=["a", "ab", "a.c"], md_tags=["python"], signal_tags=["DONE", "MORE"])
    text = '<a n="1"> 1 </a>x<a\n>2\n3</a><ab>y</ab><abc>no</abc><a>cut\n```python\nprint()\n```\n<DONE>'
    assert parser.parse(text) == {
        "raw": text,
        "xml_tags": {"a": ["1", "2\n3"], "ab": ["y"], "a.c": []},
        "md_tags": {"python": ["print()"]},
        "signal_tags": {"DONE": True, "MORE": False},
    }
    parser = DefaultTagParser(required_xml_tags=["answer"], required_md_tags=["json"])
    assert parser.parse("<answer>1</answer>\n```json\n{}\n```")["xml_tags"] == {"answer": ["1"]}
    with pytest.raises(ParseError, match="<answer>, ```json") as caught:
        parser.parse("nothing")
    assert (caught.value.missing, caught.value.content) == (("<answer>", "```json"), "nothing")


def test_fences_as_models_write_them() -> None:
    """More ticks, tildes, words after the language; a block of another language that holds one is not opened. Read once."""
    parser = DefaultTagParser(xml_tags=["a"], md_tags=["json"])
    text = '````md\n```json\nnot mine\n```\n````\n```json title="x"\r\n{}\r\n```\r\n~~~json\n[]\n~~~\n```json\ncut'
    assert parser.parse(text)["md_tags"] == {"json": ["{}", "[]"]}
    assert parser.parse("<a>" * 400_000 + "```b\n" * 200_000)["xml_tags"] == {"a": []}


# --- handlers ----------------------------------------------------------------------------------------------------------

TASK = Prompt(path="task", prompt="Do {what}.", parser=len, function_list=[print], addon_args={"web_search": True})


def test_the_default_handler_repairs_and_ends() -> None:
    """R115: repairs and results are parsed as the answer, with the same tools; at the end there are none; paths do not grow."""
    repair, results, final = TASK.on_exception(None), TASK.on_interrupt(None), TASK.on_interrupt_final(None)
    assert repair(error_message="Not a number.") == "Error: Not a number. Please fix."
    assert results(call_results="{42}") == "{42}"
    assert "final response" in final()
    assert [each.parser for each in (repair, results, final)] == [len, len, len]
    assert repair.function_list == results.function_list == (print,)
    assert (final.function_list, final.addon_args) == ((), {})
    prompt = TASK
    for _ in range(100):
        prompt = prompt.on_interrupt(None).on_exception(None)
    assert prompt.path == "task#exception"


class Recording:
    """A handler that knows the prompt it works for."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def on_exception(self, prompt: Prompt, session: object) -> Prompt:
        """Take both."""
        self.seen.append((prompt.path, session))
        return prompt.extend(path="again", prompt="{error_message}")

    def on_interrupt(self, session: object) -> Prompt:
        """Take the session alone."""
        self.seen.append(("", session))
        return Prompt(path="results", prompt="{call_results}")

    def on_interrupt_final(self, session: object) -> Any:  # noqa: ANN401, ARG002 - what it must not return
        """Return something else."""
        return "stop"


def test_a_handler_of_ones_own() -> None:
    """R115: it takes the prompt and the session or the session alone, and is an object or a class; it must return a prompt."""
    for handler in (Recording(), Recording):
        task, session = Prompt(path="t", prompt="", handler=handler), object()
        assert task.on_exception(session).path == "again"
        assert task.on_interrupt(session).path == "results"
        assert task.handler.seen == [("t", session), ("", session)]  # type: ignore[union-attr]
        with pytest.raises(InvalidInput, match="returned a str"):
            task.on_interrupt_final(session)
