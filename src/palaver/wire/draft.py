"""What the provider files write a body from: the view, spelt out, with everything decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.wire.answers import Asked
from palaver.wire.parts import Speech, TextPart
from palaver.wire.profiles import Profile
from palaver.wire.provided import Provided
from palaver.wire.request import Call, Notes

__all__ = ["Body", "Declared", "Draft", "with_parameters"]

Body = dict[str, Any]
"""A JSON object while it is written."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as it is declared: the name of the wire, and the schema in the provider's dialect."""

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A request before it is written.

    Attributes:
        profile: The provider's rules.
        call: What is asked.
        system: The instructions.
        tools: The declared tools.
        provided: What the provider is to run itself, in its own words.
        asked: The structure that the answer must have, or None.
        choice: `auto`, `none`, `required`, the name on the wire of the tool that must be called, or empty.
        script: The speeches, arranged.
        said: The messages, items or contents that they are written as.
        notes: Where changes are taken down.
    """

    profile: Profile
    call: Call
    system: tuple[TextPart, ...]
    tools: tuple[Declared, ...]
    provided: Provided
    asked: Asked | None
    choice: str
    script: Sequence[Speech]
    said: Sequence[Mapping[str, Any]]
    notes: Notes


def with_parameters(body: Body, call: Call, *, without: frozenset[str] = frozenset()) -> Body:
    """Give a body with the call's own parameters. They win over what the call says in our words, and objects are put together.

    Args:
        body: The body so far.
        call: The call.
        without: Parameters that cannot be sent with this conversation.
    """
    out = dict(body)
    for name, value in call.parameters.items():
        if name not in without:
            known = out.get(name)
            out[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
    return out
