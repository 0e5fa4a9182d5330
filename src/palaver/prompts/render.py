"""Renderers: what turns a template and its arguments into text, each with its own notion of a variable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Protocol, runtime_checkable

from palaver.errors import InvalidPrompt

__all__ = ["Renderer", "StringFormatterRenderer", "VerbatimRenderer"]

_DEEPEST = 2  # str.format itself refuses a replacement field in the specification of a specification
_NAME_ENDS = re.compile(r"[.\[]")


@runtime_checkable
class Renderer(Protocol):
    """Anything that renders templates; what counts as a variable is its own affair."""

    def variables(self, template: str) -> frozenset[str]:
        """Name the variables that the template needs.

        Raises:
            InvalidPrompt: The template is malformed.
        """
        ...

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Give the text; `args` holds all the variables, and perhaps more.

        Raises:
            InvalidPrompt: The arguments cannot be rendered.
        """
        ...


@dataclass(frozen=True, slots=True)
class StringFormatterRenderer:
    """Renders as `str.format` does: `{name}` is a variable, `{{` and `}}` are braces, whether there are variables or not."""

    def variables(self, template: str) -> frozenset[str]:
        """Name the variables, those inside format specifications (`{price:{width}}`) included.

        Raises:
            InvalidPrompt: A brace stands alone, or a field is positional (`{}`, `{0}`).
        """
        return frozenset(_fields(template, template, 1))

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Give the text. Arguments are put in as they are: a brace in one of them means nothing.

        Raises:
            InvalidPrompt: An argument lacks an attribute or item that the template asks for, or refuses its format.
        """
        try:
            return template.format(**args)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise InvalidPrompt(f"The arguments do not fit the template: {error}.") from error


def _fields(text: str, template: str, level: int) -> Iterator[str]:
    """Give the variable names in a template, or in the specification of one of its fields."""
    if level > _DEEPEST:
        raise InvalidPrompt(f"The format specifications in {template[:60]!r} are nested too deep.")
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise InvalidPrompt(
            f"The template {template[:60]!r} is malformed: {error}.", hint="Write {{ and }} for literal braces."
        ) from error
    for _, field, specification, _ in parts:
        if field is None:
            continue
        name = _NAME_ENDS.split(field, maxsplit=1)[0]
        if not name or name.isdigit():
            raise InvalidPrompt(
                f"The template {template[:60]!r} has the positional field {{{field}}}.",
                hint="Give every field a name; write {{ and }} for literal braces.",
            )
        yield name
        if specification:
            yield from _fields(specification, template, level + 1)


@dataclass(frozen=True, slots=True)
class VerbatimRenderer:
    """Renders nothing: the text stands as it is, whatever it holds."""

    def variables(self, template: str) -> frozenset[str]:  # noqa: ARG002 - the protocol's
        """Name no variables: there are none in a text."""
        return frozenset()

    def render(self, template: str, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - the protocol's
        """Give the text as it is."""
        return template
