"""Prompts: rendering, variables, isolation, derivation."""

import pickle
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidPrompt
from palaver.prompts import DefaultHandler, Prompt, Runtime, StringFormatterRenderer, temporary_prompt
from palaver.tools import MCP

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


def test_a20_construct_and_call() -> None:
    """A20: the seed's snippet: a rendered prompt holds both arguments, and the metadata is kept."""
    prompt = Prompt(
        path="research/summarize", prompt="Summarize {topic} for {audience}.", metadata={"revision": "current"}
    )
    text = prompt(topic="native runtime", audience="maintainers")
    assert text == "Summarize native runtime for maintainers."
    assert prompt.metadata == {"revision": "current"}


def test_a21_braces_variables_and_missing() -> None:
    """A21: doubled braces are literal and no variables; what is missing is known before rendering."""
    prompt = Prompt(path="p", prompt="{{x}} {y}")
    assert prompt.template_vars == {"y"}
    assert prompt.validate_args({}) == ["y"]
    assert prompt.validate_args({"y": 1, "z": 2}) == []
    assert prompt(y="Y") == "{x} Y"


def test_r106_doubled_braces_without_variables() -> None:
    """Doubled braces become single ones in a template without variables too."""
    assert Prompt(path="p", prompt='{{"a": 1}}')() == '{"a": 1}'


def test_r104_missing_variables_are_named_and_extra_ones_ignored() -> None:
    """Rendering with a variable missing is a ValueError that names all of them; more arguments do no harm."""
    prompt = Prompt(path="p", prompt="{b} {a}")
    with pytest.raises(InvalidPrompt, match="a, b") as caught:
        prompt(c=3)
    assert caught.value.missing == ("a", "b")
    assert isinstance(caught.value, ValueError)
    assert prompt(a=1, b=2, c=3) == "2 1"


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("{a.b} {c[0]} {d!r} {e:>{width}}", {"a", "c", "d", "e", "width"}),
        ("{a:{b}{c}}", {"a", "b", "c"}),
        ("plain", set()),
        ("{{a}}{{", set()),
        ("{self}", {"self"}),
    ],
)
def test_r107_variables(template: str, names: set[str]) -> None:
    """Attributes, items, conversions and nested specifications are seen through; doubled braces are not."""
    assert Prompt(path="p", prompt=template).template_vars == names


def test_r107_nested_specification_renders() -> None:
    """A variable of a specification is used as one, and an argument may have any name."""
    assert Prompt(path="p", prompt="[{x:>{w}}]")(x="a", w=3) == "[  a]"
    assert Prompt(path="p", prompt="{self}")(self="me") == "me"


@pytest.mark.parametrize("template", ["{}", "{0}", "{:>{}}", "{a:{}}", "{", "}", "{a", "{a:{b:{c}}}", "{a!}"])
def test_r107_malformed_templates_are_refused(template: str) -> None:
    """Positional fields, single braces and over-deep specifications are refused when the prompt is made."""
    with pytest.raises(InvalidPrompt):
        Prompt(path="p", prompt=template)


def test_arguments_that_do_not_fit() -> None:
    """An argument without the attribute, item or format asked for is the caller's error, not a bare one of Python's."""
    for template in ("{a.b}", "{a[k]}", "{a:d}", "{a:%}"):
        with pytest.raises(InvalidPrompt):
            Prompt(path="p", prompt=template)(a="text")


@given(value=st.text(), name=NAMES)
def test_law_12_arguments_are_never_templates(value: str, name: str) -> None:
    """What an argument holds is put in as it is, whatever braces it has."""
    assert Prompt(path="p", prompt="<{" + name + "}>").render({name: value}) == f"<{value}>"


@given(text=st.text())
def test_temporary_prompts_say_the_text(text: str) -> None:
    """The prompt that stands for plain text has no variables and renders to the very text."""
    prompt = temporary_prompt(text)
    assert prompt() == text
    assert prompt.template_vars == frozenset()
    assert prompt.is_temporary
    assert not prompt.function_list
    assert prompt.parser is None


@given(text=st.text())
def test_doubling_braces_quotes_any_text(text: str) -> None:
    """Any text with its braces doubled is a template of itself."""
    assert Prompt(path="p", prompt=text.replace("{", "{{").replace("}", "}}"))() == text


class Percent:
    """A renderer with another notion of variables: `%name%`."""

    def variables(self, template: str) -> frozenset[str]:
        """Every second part between percent signs."""
        return frozenset(template.split("%")[1::2])

    def render(self, template: str, args: Mapping[str, object]) -> str:
        """Put the arguments in."""
        return "".join(str(args[part]) if i % 2 else part for i, part in enumerate(template.split("%")))


def test_r116_another_renderer_brings_its_own_variables() -> None:
    """A template in another language is never parsed as a format string."""
    prompt = Prompt(path="p", prompt="{% if %who% %}{", renderer=Percent())
    assert prompt.template_vars == {" if ", " "}
    assert Prompt(path="q", prompt="{hi} %who%", renderer=Percent())(who="you") == "{hi} you"


def test_r109_metadata_is_isolated() -> None:
    """Neither the dict that was given nor what the prompt hands out can change it."""
    given_dict = {"labels": ["a"]}
    prompt = Prompt(path="p", prompt="", metadata=given_dict, addon_args={"web_search": True})
    given_dict["labels"].append("b")
    assert prompt.metadata == {"labels": ["a"]}
    with pytest.raises(TypeError):
        prompt.metadata["labels"].append("c")
    with pytest.raises(TypeError):
        prompt.addon_args["x"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        prompt.path = "q"  # type: ignore[misc]


def test_what_is_no_json_is_refused() -> None:
    """Metadata and options are JSON values: an object among them is refused with its place."""
    with pytest.raises(InvalidPrompt, match=r"metadata\.when"):
        Prompt(path="p", prompt="", metadata={"when": object()})
    with pytest.raises(InvalidPrompt, match="not a mapping"):
        Prompt(path="p", prompt="", metadata=[1])  # type: ignore[arg-type]
    with pytest.raises(InvalidPrompt, match="path"):
        Prompt(path="", prompt="x")
    with pytest.raises(InvalidPrompt, match="template"):
        Prompt(path="p", prompt=b"x")  # type: ignore[arg-type]


def test_r117_extend() -> None:
    """A derived prompt differs in what was given and needs its own path; the original stays."""
    base = Prompt(path="a", prompt="{x}", function_list=["tool"])
    derived = base.extend(path="b", prompt="{y}")
    assert (derived.path, derived.function_list) == ("b", ("tool",))
    assert derived.template_vars == {"y"}
    assert base.template_vars == {"x"}
    with pytest.raises(InvalidPrompt):
        base.extend(prompt="z")


def test_r118_info_dict() -> None:
    """What identifies a prompt is plain JSON, and the hash follows the template."""

    class Tool:
        name = "search"

    def plain() -> None: ...

    prompt = Prompt(
        path="a", prompt="x", function_list=[Tool(), "ref", plain], mcp_servers_list=[{"server_label": "docs"}]
    )
    info = prompt.info_dict()
    assert info["functions"] == ["search", "ref", "plain"]
    assert info["mcp_servers"] == ["docs"]
    assert (info["path"], info["has_parser"], info["has_format"]) == ("a", False, False)
    assert len(info["prompt_hash"]) == 12
    assert prompt.extend(path="b", prompt="y").info_dict()["prompt_hash"] != info["prompt_hash"]


def test_prompts_are_values() -> None:
    """Equal prompts are equal, hash alike and survive pickling."""
    one, two = (Prompt(path="a", prompt="{x}", metadata={"a": [1, {"b": 2}]}) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    again = pickle.loads(pickle.dumps(one.extend(path="b", renderer=StringFormatterRenderer())))  # noqa: S301 - our own bytes
    assert again.template_vars == {"x"}


def test_r102_fields_and_their_defaults() -> None:
    """Everything but path and template has a default; lists are kept as tuples, mappings as copies."""
    prompt = Prompt(path="p", prompt="x")
    assert (prompt.metadata, prompt.parser, prompt.format, prompt.addon_args) == ({}, None, None, {})
    assert (prompt.function_list, prompt.mcp_servers_list) == ((), ())
    assert isinstance(prompt.handler, DefaultHandler)
    assert prompt.renderer == StringFormatterRenderer()
    given = [MCP("docs", "https://example.org/mcp")]
    full = Prompt(path="p", prompt="x", mcp_servers_list=given, addon_args={"computer_use": {"display_width": 800}})
    given.clear()
    assert full.mcp_servers_list == (MCP("docs", "https://example.org/mcp"),)
    assert full.addon_args == {"computer_use": {"display_width": 800}}
    assert full.info_dict()["mcp_servers"] == ["docs"]


def test_r105_r103_formats_and_keys() -> None:
    """The default renderer is str.format, conversions and specifications included; the path is the key in a runtime."""
    prompt = Prompt(path="numbers/one", prompt="{x!r:>6}|{y:.2f}|{z[0].real}")
    assert prompt(x="a", y=1.234, z=[3]) == "   'a'|1.23|3"
    runtime = Runtime()
    assert runtime.register_prompt(prompt) == "numbers/one"
