"""Tools that the provider runs itself: web search, code execution and their like, in each provider's words.

The caller names them alike for every provider. A value of true stands for the provider's defaults; a mapping has options in the provider's own
words, and may name a version with `type`. A tool that a provider lacks is left out and reported.

Sources: developers.openai.com/api/docs/guides/tools and the types of the ``openai`` package 2.54; platform.claude.com/docs/en/agents-and-tools
and the types of the ``anthropic`` package 2.12 (the oldest version of a tool, which all models have); ai.google.dev/api/caching#Tool and the
types of the ``google-genai`` package 3.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.wire.report import How, Notes
from palaver.wire.request import Call
from palaver.wire.table import Profile

__all__ = ["PROVIDED", "Provided", "provided"]

_NAMES: Mapping[str, str] = MappingProxyType({"code_interpreter": "code_execution", "url_context": "web_fetch"})
"""Other words for the same."""

_NO_SERVER_TOOLS = re.compile("claude-(?:2|instant|3-(?:haiku|sonnet|opus))")  # agents-and-tools, «supported models»
_SEARCH_MODELS = re.compile("search")  # only these take web_search_options (guides/tools-web-search)

_TABLE: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "openai-chat": {"web_search": {}},  # a field of the body: web_search_options
        "openai-responses": {
            "web_search": {"type": "web_search"},
            "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
            "computer_use": {"type": "computer"},
        },
        "anthropic": {
            "web_search": {"type": "web_search_20250305", "name": "web_search"},
            "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
            "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
            "computer_use": {"type": "computer_toolset_20260801"},
        },
        "gemini": {
            "web_search": {"googleSearch": {}},
            "web_fetch": {"urlContext": {}},
            "code_execution": {"codeExecution": {}},
            "computer_use": {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
        },
    }
)
"""How each provider declares each tool, before its options."""

PROVIDED: Mapping[str, tuple[str, ...]] = MappingProxyType({name: tuple(tools) for name, tools in _TABLE.items()})
"""The names that each profile knows."""


@dataclass(frozen=True, slots=True)
class Provided:
    """The provider's tools as they are sent.

    Attributes:
        tools: Elements of the body's list of tools.
        fields: Further fields of the body.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def provided(call: Call, profile: Profile, declared: frozenset[str], notes: Notes) -> Provided:
    """Return the provider's own tools that a call asks for, as they are sent.

    Args:
        call: The call.
        profile: The provider's rules.
        declared: The names of the declared tools.
        notes: The changes so far.

    Raises:
        InvalidInput: A value is neither true, false, None nor a mapping of options.
    """
    tools: list[Mapping[str, Any]] = []
    fields: dict[str, Any] = {}
    for name, value in call.provider_tools.items():
        if value is None or value is False:
            continue
        if value is not True and not isinstance(value, Mapping):
            raise InvalidInput(f"The provider's tool {name!r} is {value!r}.", hint="Give true or a mapping of options.")
        options = {} if value is True else dict(value)
        known = _TABLE[profile.name].get(_NAMES.get(name, name))
        why = _refused(known, name, profile, call, declared)
        if known is None or why:
            notes.add(None, "provider tool", How.DROPPED, f"{name}: {why}")
        elif profile.name == "openai-chat":
            fields["web_search_options"] = options
        elif profile.name == "gemini":
            ((key, defaults),) = known.items()
            tools.append({key: {**defaults, **options}})
        else:
            screen = {"type": "computer_use_preview"} if "display_width" in options else {}  # only this type has one
            tools.append({**known, **options, **(screen if known["type"] == "computer" else {})})
    return Provided(tuple(tools), fields)


def _refused(known: Mapping[str, Any] | None, name: str, profile: Profile, call: Call, declared: frozenset[str]) -> str:
    """Return why a tool cannot be sent, or an empty text."""
    if known is None:
        names = PROVIDED[profile.name]
        close = get_close_matches(name, {*names, *_NAMES}, 1)
        return f"{profile.name} has no such tool; it has {', '.join(close or names)}"
    lacking = profile.name == "anthropic" and _NO_SERVER_TOOLS.search(call.model)
    if lacking or (profile.name == "openai-chat" and not _SEARCH_MODELS.search(call.model)):
        return "this model has no such tool"
    if declared and not profile.tools.mixed:
        return "this model takes it only without tools of your own"
    return "a tool of your own has its name" if known.get("name") in declared else ""
