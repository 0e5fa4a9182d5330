"""Jinja templates, in a sandbox. The one place that knows Jinja; needs the extra `jinja`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.errors import InvalidPrompt, MissingExtra

__all__ = ["JinjaRenderer"]

_ASKS = frozenset({"defined", "undefined"})
_FALLS_BACK = frozenset({"default", "d"})


@dataclass(frozen=True, slots=True)
class JinjaRenderer:
    """Renders Jinja templates (jinja.palletsprojects.com): `{{ name }}`, `{% if %}`, `{% for %}`, filters.

    Templates are the program's; their arguments may come from anywhere, and are put in as they are. Both are kept in Jinja's sandbox: no
    attribute of Python's inner workings can be reached and nothing that is handed in can be changed. Nothing is escaped, since nothing is
    HTML, and there are no other templates to include. A variable is what a template needs and does not set itself; one that it asks for
    with `is defined`, or gives a `default`, it does not need.
    """

    def variables(self, template: str) -> frozenset[str]:
        """Name the variables that the template needs.

        Raises:
            InvalidPrompt: The template is malformed, or refers to another one.
            MissingExtra: Jinja is not installed.
        """
        jinja2 = _jinja()
        environment = _environment(jinja2)
        try:
            parsed = environment.parse(template)
            needed = jinja2.meta.find_undeclared_variables(parsed)
        except jinja2.TemplateSyntaxError as error:
            raise InvalidPrompt(
                f"The template {template[:60]!r} is malformed in line {error.lineno}: {error.message}"
            ) from error
        if any(True for _ in jinja2.meta.find_referenced_templates(parsed)):
            raise InvalidPrompt(f"The template {template[:60]!r} refers to another one: there are none to include.")
        return frozenset(needed - set(environment.globals) - _optional(jinja2, parsed))

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Give the text.

        Raises:
            InvalidPrompt: An argument lacks what the template asks of it, does something that the sandbox refuses, or fails.
            MissingExtra: Jinja is not installed.
        """
        jinja2 = _jinja()
        try:
            text: str = _environment(jinja2).from_string(template).render(dict(args))
        except (jinja2.TemplateError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
            raise InvalidPrompt(f"The arguments do not fit the template: {error}.") from error
        return text


def _jinja() -> Any:  # noqa: ANN401 - a module
    try:
        import jinja2  # noqa: PLC0415 - only who uses it needs it
        import jinja2.meta  # noqa: PLC0415 - the same
        import jinja2.sandbox  # noqa: PLC0415 - the same
    except ImportError as error:
        raise MissingExtra("A Jinja template", "jinja", package="jinja2") from error
    return jinja2


def _environment(jinja2: Any) -> Any:  # noqa: ANN401 - Jinja's
    return jinja2.sandbox.ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )


def _optional(jinja2: Any, parsed: Any) -> set[str]:  # noqa: ANN401 - Jinja's
    """Give the names that a template can do without: it asks whether they are there, or says what stands for them."""
    asked = [test.node for test in parsed.find_all(jinja2.nodes.Test) if test.name in _ASKS]
    asked += [each.node for each in parsed.find_all(jinja2.nodes.Filter) if each.name in _FALLS_BACK]
    return {node.name for node in asked if isinstance(node, jinja2.nodes.Name)}
