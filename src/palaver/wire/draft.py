"""What the provider modules write a body from: everything decided, besides the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.wire.answers import Structure
from palaver.wire.parts import TextPart
from palaver.wire.provided import Provided
from palaver.wire.report import Notes
from palaver.wire.request import Call
from palaver.wire.table import Profile

__all__ = ["Body", "Declared", "Draft", "together", "with_parameters"]

Body = dict[str, Any]
"""A JSON object while it is written."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A tool as it is declared: its name on the wire, and its schema in the provider's dialect."""

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A request before it is written, without its conversation.

    Attributes:
        profile: The provider's rules.
        call: What is asked.
        system: The instructions.
        tools: The declared tools.
        provided: The provider's own tools.
        structure: The structure of the answer, or None.
        choice: `auto`, `none`, `required`, the name on the wire of the tool that must be called, or empty.
        prefill: Whether the model goes on from the assistant's words.
        notes: The changes so far.
    """

    profile: Profile
    call: Call
    system: Sequence[TextPart]
    tools: Sequence[Declared]
    provided: Provided
    structure: Structure | None
    choice: str
    prefill: bool
    notes: Notes


def with_parameters(body: Body, call: Call) -> Body:
    """Add the call's own parameters. They win over what the call says in our words; objects are merged."""
    out = dict(body)
    for name, value in call.parameters.items():
        known = out.get(name)
        out[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, Mapping) else value
    return out


def together(before: Mapping[str, Any], item: Mapping[str, Any], field: str) -> Body:
    """Put two neighbours of one role together: their role, and the lists of both."""
    return {**before, field: [*before[field], *item[field]]}
