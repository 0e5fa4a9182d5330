"""The structure that is asked of an answer: in the provider's own field where it has one, otherwise in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import canonical_json, thaw
from palaver.wire.parts import TextPart
from palaver.wire.report import How, Notes
from palaver.wire.request import Call
from palaver.wire.schemas import narrowed
from palaver.wire.table import Profile
from palaver.wire.words import answer_as

__all__ = ["Structure", "structure"]

_SAID: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {
        "openai-chat": (("response_format",),),
        "openai-responses": (("text", "format"),),
        "anthropic": (("output_config", "format"), ("output_format",)),
        "gemini": tuple(
            ("generationConfig", name)
            for name in ("responseMimeType", "responseSchema", "responseJsonSchema", "responseFormat")
        ),
    }
)
"""The provider's own parameters for the same."""


@dataclass(frozen=True, slots=True)
class Structure:
    """A format as it is sent.

    Attributes:
        name: The name, as the provider accepts it.
        description: What it is for; may be empty.
        schema: The schema, in the provider's dialect.
        strict: Whether the provider is to hold the model to it.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool


def structure(
    call: Call, profile: Profile, *, tools: bool, prefill: bool, notes: Notes
) -> tuple[Structure | None, tuple[TextPart, ...]]:
    """Return what goes into the provider's own field, and what the instructions ask: one of the two at most.

    Args:
        call: The call.
        profile: The provider's rules.
        tools: Whether any tools are declared.
        prefill: Whether the answer goes on from the assistant's words.
        notes: The changes so far.

    Raises:
        InvalidInput: A parameter of the call asks for another structure in the provider's words.
    """
    wanted = call.format
    if wanted is None:
        return None, ()
    _refuse_said_twice(call, profile)
    rules, found = profile.answers, narrowed(wanted.schema, profile.dialect)
    reasons = {
        "this model takes no schema": not rules.native,
        "this model takes none while tools are declared": tools and not rules.beside_tools,
        "an answer with a schema cannot go on from the assistant's words": prefill and profile.name == "anthropic",
        found.obstacle: not rules.loose,
    }
    why = next((reason for reason, holds in reasons.items() if holds), "")
    if why:
        notes.add(None, "answer schema", How.CHANGED, f"the instructions ask for it in words: {why}")
        return None, (TextPart(answer_as(canonical_json(wanted.schema).decode())),)
    if rules.loose and (found.obstacle or not wanted.strict):
        if wanted.strict:
            notes.add(None, "answer schema", How.CHANGED, f"answers are not held to it, because {found.obstacle}")
        return Structure(wanted.name, wanted.description, thaw(wanted.schema), strict=False), ()
    for place in found.told:
        notes.add(None, "answer schema", How.CHANGED, f"without {place}: the description says it")
    for place in found.required:
        notes.add(None, "answer schema", How.CHANGED, f"{place} is asked for, and could be left out")
    return Structure(wanted.name, wanted.description, found.schema, strict=True), ()


def _refuse_said_twice(call: Call, profile: Profile) -> None:
    for path in _SAID[profile.name]:
        value: Any = call.parameters
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            raise InvalidInput(
                f"The call has a format, and its parameter {'.'.join(path)} asks for another.", hint="Give one of them."
            )
