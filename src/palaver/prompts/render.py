"""Renderers turn a template and its arguments into text, each with its own syntax for variables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Protocol, runtime_checkable

from palaver.errors import InvalidInput

_DEEPEST = 2  # str.format itself refuses a replacement field in the specification of a specification
_NUMBER = re.compile(r"\d+")
_WIDEST = 10_000
_NAME_ENDS = re.compile(r"[.\[]")


@runtime_checkable
class Renderer(Protocol):
    """An object that renders templates and lists the variables they require."""

    def variables(self, template: str) -> frozenset[str]:
        """Return the variables that the template requires.

        Raises:
            InvalidInput: The template is malformed.
        """
        ...

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Return the text. `args` has all the required variables, and may have more.

        Raises:
            InvalidInput: The arguments do not fit.
        """
        ...


class _Bounded(Formatter):
    """Formats as `str.format` does, but refuses widths and precisions that no text needs: a width may come from an argument."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - any argument
        if any(int(number) > _WIDEST for number in _NUMBER.findall(format_spec)):
            raise ValueError(f"the format {format_spec[:60]!r} has a width or precision over {_WIDEST:,}")
        return str(super().format_field(value, format_spec))


_FORMATTER = _Bounded()


@dataclass(frozen=True, slots=True)
class StringFormatterRenderer:
    """Renders as `str.format` does: `{name}` is a variable, `{{` and `}}` are braces, also in a template without variables."""

    def variables(self, template: str) -> frozenset[str]:
        """Return the variables, including those inside format specifications (`{price:{width}}`).

        Raises:
            InvalidInput: A brace is alone, or a field is positional (`{}`, `{0}`).
        """
        return frozenset(_fields(template, template, 1))

    def render(self, template: str, args: Mapping[str, Any]) -> str:
        """Return the text. Braces in arguments have no meaning.

        Raises:
            InvalidInput: An argument lacks an attribute or item, or refuses its format; or a width or precision is over 10,000.
        """
        try:
            return _FORMATTER.vformat(template, (), args)
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            raise InvalidInput(f"The arguments do not fit the template: {error}.") from error


def _fields(text: str, template: str, level: int) -> Iterator[str]:
    """Yield the variable names in a template, or in the specification of one of its fields."""
    if level > _DEEPEST:
        raise InvalidInput(f"The format specifications in {template[:60]!r} are nested too deep.")
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise InvalidInput(
            f"The template {template[:60]!r} is malformed: {error}.", hint="Write {{ and }} for literal braces."
        ) from error
    for _, field, specification, _ in parts:
        if field is None:
            continue
        name = _NAME_ENDS.split(field, maxsplit=1)[0]
        if not name or name.isdigit():
            raise InvalidInput(
                f"The template {template[:60]!r} has the positional field {{{field}}}.",
                hint="Name every field; write {{ and }} for literal braces.",
            )
        yield name
        if specification:
            yield from _fields(specification, template, level + 1)


@dataclass(frozen=True, slots=True)
class VerbatimRenderer:
    """Returns any text unchanged."""

    def variables(self, template: str) -> frozenset[str]:  # noqa: ARG002 - the protocol's
        """Return no variables."""
        return frozenset()

    def render(self, template: str, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - the protocol's
        """Return the text unchanged."""
        return template
