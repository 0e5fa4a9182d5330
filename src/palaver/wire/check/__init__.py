"""Strict local validators: what a provider would refuse in a request, found before anything is sent.

``validate(request, profile)`` holds the plain body of a request, as it is sent to the provider's HTTP API, to everything that
provider is known to refuse. Each validator is a row of small checks over tables: :mod:`~palaver.wire.check.shapes` has the
fields, :mod:`palaver.wire.profiles` the figures, the modules beside this one the rules that several providers share.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from palaver.wire.check import anthropic, gemini, openai_chat, openai_responses
from palaver.wire.profiles import Profile
from palaver.wire.violations import Rule, Violation

__all__ = ["RULES", "validate"]

_VALIDATORS = MappingProxyType(
    {
        "openai-chat": openai_chat.validate,
        "openai-responses": openai_responses.validate,
        "anthropic": anthropic.validate,
        "gemini": gemini.validate,
    }
)

#: The rules that each profile's validator knows.
RULES: Mapping[str, frozenset[Rule]] = MappingProxyType(
    {
        "openai-chat": openai_chat.RULES,
        "openai-responses": openai_responses.RULES,
        "anthropic": anthropic.RULES,
        "gemini": gemini.RULES,
    }
)


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Give everything in a request that its provider would refuse; nothing when it would take it.

    Args:
        request: The body as it is sent: JSON's types, or mappings and tuples in the place of objects and lists.
        profile: What the provider accepts.
        as_history: Whether to take the body as the record of a conversation: one that ends on the assistant's words is then
            complete, also where the provider refuses it as the next request.
    """
    return _VALIDATORS[profile.name](request, profile, as_history=as_history)
