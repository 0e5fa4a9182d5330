"""Jinja templates in a sandbox. Needs the extra `jinja`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaver.errors import InvalidInput, MissingExtra

__all__ = ["JinjaRenderer"]

_ASKS = frozenset({"defined", "undefined"})
_DEFAULTS = frozenset({"default", "d"})


@dataclass(frozen=True, slots=True)
class JinjaRenderer:
    """Renders Jinja templates (jinja.palletsprojects.com): `{{ name }}`, `{% if %}`, `{% for %}`, filters.

    Jinja's sandbox hides Python's internals and protects the arguments from changes. Nothing is escaped, since nothing is
    HTML, and there are no other templates to include. A variable is required unless the template sets it, tests it with
    `is defined` or gives it a `default`.
    """

    def variables(self, template: str) -> frozenset[str]:
        """Return the variables that the template requires.

        Raises:
            InvalidInput: The template is malformed, or refers to another one.
            MissingExtra: Jinja is not installed.
        """
        jinja2 = _jinja()
        environment = _environment(jinja2)
        try:
            parsed = environment.parse(template)
            needed = jinja2.meta.find_undeclared_variables(parsed)
        except jinja2.TemplateSyntaxError as error:
            raise InvalidInput(
                f"The template {template[:60]!r} is malformed in line {error.lineno}: {error.message}"
            ) from error
        if any(True for _ in jinja2.meta.find_referenced_templates(parsed)):
            raise InvalidInput(f"The template {template[:60]!r} includes another one, and there are no others.")
        return frozenset(needed - set(environment.globals) - _optional(jinja2, parsed))

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Return the text.

        Raises:
            InvalidInput: An argument does not fit, or the sandbox refuses something.
            MissingExtra: Jinja is not installed.
        """
        jinja2 = _jinja()
        try:
            text: str = _environment(jinja2).from_string(template).render(dict(args))
        except (jinja2.TemplateError, LookupError, AttributeError, TypeError, ValueError, ArithmeticError) as error:
            raise InvalidInput(f"The arguments do not fit the template: {error}.") from error
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
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True
    )


def _optional(jinja2: Any, parsed: Any) -> set[str]:  # noqa: ANN401 - Jinja's
    """Return the names that a template tests for or gives a default."""
    asked = [test.node for test in parsed.find_all(jinja2.nodes.Test) if test.name in _ASKS]
    asked += [each.node for each in parsed.find_all(jinja2.nodes.Filter) if each.name in _DEFAULTS]
    return {node.name for node in asked if isinstance(node, jinja2.nodes.Name)}
