"""The structure that is asked of an answer: in the provider's own field where that can be, otherwise in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import canonical_json, thaw
from palaver.prompts import Format
from palaver.wire.narrowing import Narrowed, narrowed
from palaver.wire.parts import TextPart
from palaver.wire.profiles import Profile
from palaver.wire.request import Call, How, Notes
from palaver.wire.words import answer_as

__all__ = ["Asked", "asked"]

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
"""Where each provider's own parameters say the same thing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is sent of a format.

    Attributes:
        name: The name, as the provider takes it.
        description: What it is for; may be empty.
        schema: The schema, in the provider's dialect.
        strict: Whether the provider is to hold the model to it.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    strict: bool


def asked(call: Call, profile: Profile, *, tools: bool, notes: Notes) -> tuple[Asked | None, tuple[TextPart, ...]]:
    """Give what the provider is asked in its own field, and what is asked in words: one of the two at most.

    Args:
        call: The call.
        profile: The provider's rules.
        tools: Whether any tools are declared.
        notes: Where changes are taken down.

    Raises:
        InvalidInput: A parameter of the call says the same in the provider's words.
    """
    if call.format is None:
        return None, ()
    _refuse_said_twice(call, profile)
    rules, found = profile.answers, narrowed(call.format.schema, profile.answers.dialect)
    why = (
        "this model takes no schema"
        if not rules.native
        else "this model takes none while tools are declared"
        if tools and not rules.beside_tools
        else found.obstacle
        if not rules.loose
        else ""
    )
    if why:
        notes.add(None, "answer schema", How.CHANGED, f"the instructions ask for it in words: {why}")
        return None, (TextPart(answer_as(canonical_json(call.format.schema).decode())),)
    return _in_the_field(call.format, found, notes, loose=rules.loose), ()


def _in_the_field(wanted: Format, found: Narrowed, notes: Notes, *, loose: bool) -> Asked:
    if loose and (found.obstacle or not wanted.strict):
        if wanted.strict:
            notes.add(None, "answer schema", How.CHANGED, f"answers are not held to it, because {found.obstacle}")
        return Asked(wanted.name, wanted.description, thaw(wanted.schema), strict=False)
    for place in found.told:
        notes.add(None, "answer schema", How.CHANGED, f"without {place}: the description says it")
    for place in found.required:
        notes.add(None, "answer schema", How.CHANGED, f"{place} is asked for, and could be left out")
    return Asked(wanted.name, wanted.description, found.schema, strict=True)


def _refuse_said_twice(call: Call, profile: Profile) -> None:
    for path in _SAID[profile.name]:
        value: Any = call.parameters
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            raise InvalidInput(
                f"The call has a format, and its parameter {'.'.join(path)} asks for another.", hint="Give one of them."
            )
