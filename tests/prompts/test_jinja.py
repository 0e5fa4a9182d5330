"""Jinja templates: their own notion of variables, in a sandbox."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidPrompt
from palaver.prompts import JinjaRenderer, Prompt


def made(template: str) -> Prompt:
    """Make a prompt of a Jinja template."""
    return Prompt(path="p", prompt=template, renderer=JinjaRenderer())


def test_r116_a_jinja_prompt() -> None:
    """Blocks, loops and filters; braces of Python's kind are text; a trailing line end stays."""
    prompt = made("{% for each in items %}{{ loop.index }}. {{ each|upper }}\n{% endfor %}{left}\n")
    assert prompt.template_vars == {"items"}
    assert prompt(items=["a", "b"]) == "1. A\n2. B\n{left}\n"


@pytest.mark.parametrize(
    ("template", "needed"),
    [
        ("{{ a.b[c] }}", {"a", "c"}),
        ("{% set a = 1 %}{{ a }}{{ range(3) }}", set()),
        ("{{ a | default('x') }}{{ b|d(c) }}", {"c"}),
        ("{% if a is defined %}{{ a }}{% endif %}{% if b is not undefined %}{% endif %}", set()),
        ("{% macro m(x) %}{{ x }}{{ y }}{% endmacro %}{{ m(z) }}", {"y", "z"}),
        ("{# {{ a }} #}{% raw %}{{ b }}{% endraw %}", set()),
    ],
)
def test_variables_are_what_the_template_cannot_do_without(template: str, needed: set[str]) -> None:
    """What it sets itself, loops over, asks for or has a default for is not needed."""
    assert made(template).template_vars == needed


def test_missing_variables_are_named_before_rendering() -> None:
    """As with any renderer, validate_args tells, and rendering refuses."""
    prompt = made("{{ b }}{{ a }}")
    assert prompt.validate_args({"a": 1}) == ["b"]
    with pytest.raises(InvalidPrompt, match="needs b"):
        prompt(a=1)


@pytest.mark.parametrize(
    "template", ["{% if %}", "{{ a", "{% for x in %}{% endfor %}", "{{ a|nofilter }}", "{% include 'other' %}", "{% extends a %}"]
)  # fmt: skip
def test_malformed_templates_are_refused(template: str) -> None:
    """When the prompt is made, not when a user waits for the answer; there are no other templates to include."""
    with pytest.raises(InvalidPrompt):
        made(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ a.__class__.__mro__ }}",
        "{{ a.append(1) }}",
        "{{ a.pop() }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ '{0.__class__.__init__.__globals__}'.format(a) }}",
        "{{ a.nothing.at_all }}",
        "{{ 1 / 0 }}",
        "{{ range(10 ** 9) | list }}",
    ],
)
def test_the_sandbox_holds(template: str) -> None:
    """No way from a template to Python's insides, no change to what was handed in, and every failure is a typed one."""
    given_list = [1]
    with pytest.raises(InvalidPrompt):
        made(template)(a=given_list)
    assert given_list == [1]


@given(st.text())
def test_law_12_arguments_are_never_templates(value: str) -> None:
    """What an argument holds is put in as it is, whatever it looks like."""
    assert made("<{{ a }}>")(a=value) == f"<{value}>"


def test_renderers_are_values() -> None:
    """Two prompts with the same Jinja template are equal."""
    assert made("{{ a }}") == made("{{ a }}")
    assert hash(JinjaRenderer()) == hash(JinjaRenderer())
