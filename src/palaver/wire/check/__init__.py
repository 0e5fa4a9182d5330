"""Strict local validators: what a provider would refuse in a request, found before anything is sent.

``validate(request, profile)`` checks the plain body of a request, as it is sent to the provider's HTTP API, for everything that the provider is
known to refuse. A validator is a shape (the fields) and a row of checks; :mod:`palaver.wire.profiles` has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from palaver.wire.check import anthropic, gemini, openai_chat, openai_responses
from palaver.wire.check.encoding import encoded
from palaver.wire.check.place import Place, Rule, Violation
from palaver.wire.check.rules import Subject
from palaver.wire.check.shape import Shape, shaped
from palaver.wire.table import Profile

__all__ = ["CONVERSATION", "Rule", "Violation", "validate"]

_Check: TypeAlias = Callable[[Subject], Iterator[Violation]]

_VALIDATORS: Mapping[str, tuple[Shape, tuple[_Check, ...]]] = MappingProxyType(
    {
        "openai-chat": (openai_chat.REQUEST, openai_chat.CHECKS),
        "openai-responses": (openai_responses.REQUEST, openai_responses.CHECKS),
        "anthropic": (anthropic.REQUEST, anthropic.CHECKS),
        "gemini": (gemini.REQUEST, gemini.CHECKS),
    }
)

CONVERSATION: Mapping[str, str] = MappingProxyType(
    {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}
)
"""The field of the body that holds the conversation, by profile."""


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Return everything in a request that its provider would refuse, in the order found.

    The conversation and the tools are checked whole. Of the body's other fields, those are checked that palaver writes or that a rule concerns;
    the others pass, and so do tools that the provider runs itself.

    Args:
        request: The body as it is sent: JSON's types, or mappings and tuples instead of objects and lists.
        profile: What the provider accepts.
        as_history: Whether the body is the record of a conversation: one that ends on the assistant's words is then complete, also where the
            provider refuses it as the next request.
    """
    subject = Subject(Place(request), profile, as_history)
    shape, checks = _VALIDATORS[profile.name]
    found = [*encoded(subject.body, profile.request_bytes), *shaped(subject.body, shape)]
    for check in checks:
        found.extend(check(subject))
    return tuple(found)
