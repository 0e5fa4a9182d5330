"""Tools that the provider runs itself: web search, code execution and their like, in each provider's words.

They are asked for by name, the same for every provider. A value of true takes the provider's defaults; a mapping gives options in the
provider's own words, and may name the very version with `type`. What a provider does not have is left out and reported. What such a tool
gives back stands in the answer, as the provider wrote it.

Sources: developers.openai.com/api/docs/guides/tools and the types of the ``openai`` package 2.54; platform.claude.com/docs/en/agents-and-tools
and the types of the ``anthropic`` package 2.12 (of several versions the oldest is taken, which all models have);
ai.google.dev/api/caching#Tool and the types of the ``google-genai`` package 3.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages.frozen import EMPTY
from palaver.wire.profiles import Profile
from palaver.wire.request import Call, How, Notes

__all__ = ["PROVIDED", "Provided", "provided"]

_NAMES: Mapping[str, str] = MappingProxyType({"code_interpreter": "code_execution", "url_context": "web_fetch"})
"""Other words for the same."""


@dataclass(frozen=True, slots=True)
class Provided:
    """What is sent of them.

    Attributes:
        tools: Elements of the body's list of tools.
        fields: Further fields of the body.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    fields: Mapping[str, Any] = field(default=EMPTY)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one provider has one of these tools.

    Attributes:
        wire: What it is declared as, before its options: an element of the list, or for `key` what stands under that key.
        key: The field that holds the options, where the element has nothing else.
        in_body: Whether `key` is a field of the body itself, not of an element.
        needs: Options without which the provider refuses it.
        models: What the model's name must hold for it; None for any.
    """

    wire: Mapping[str, Any] = EMPTY
    key: str = ""
    in_body: bool = False
    needs: tuple[str, ...] = ()
    models: re.Pattern[str] | None = None


def _typed(kind: str, *needs: str, **fixed: Any) -> _Kind:  # noqa: ANN401 - JSON values
    return _Kind(MappingProxyType({"type": kind, **fixed}), needs=needs)


def _of_claude(kind: str, **fixed: Any) -> _Kind:  # noqa: ANN401 - JSON values
    """Describe a tool that models before Claude 3.5 do not have (agents-and-tools, «supported models»)."""
    return replace(_typed(kind, **fixed), models=_SINCE_35)


_SINCE_35 = re.compile(r"^(?!.*claude-(?:2|instant|3-(?:haiku|sonnet|opus)))")


_TABLE: Mapping[str, Mapping[str, _Kind]] = MappingProxyType(
    {
        # «web_search_options»: only the search models take it, the others answer 400 (guides/tools-web-search).
        "openai-chat": {"web_search": _Kind(key="web_search_options", in_body=True, models=re.compile("search"))},
        "openai-responses": {
            "web_search": _typed("web_search"),
            "code_execution": _typed("code_interpreter", container={"type": "auto"}),
            "computer_use": _typed("computer"),
            "file_search": _typed("file_search", "vector_store_ids"),
            "image_generation": _typed("image_generation"),
            "mcp": _typed("mcp", "server_label"),
        },
        "anthropic": {
            "web_search": _of_claude("web_search_20250305", name="web_search"),
            "web_fetch": _of_claude("web_fetch_20250910", name="web_fetch"),
            "code_execution": _of_claude("code_execution_20250825", name="code_execution"),
            "computer_use": _of_claude("computer_toolset_20260801"),
        },
        "gemini": {
            "web_search": _Kind(key="googleSearch"),
            "web_fetch": _Kind(key="urlContext"),
            "code_execution": _Kind(key="codeExecution"),
            "computer_use": _Kind(MappingProxyType({"environment": "ENVIRONMENT_BROWSER"}), key="computerUse"),
            "file_search": _Kind(key="fileSearch", needs=("fileSearchStoreNames",)),
            "google_maps": _Kind(key="googleMaps"),
        },
    }
)

PROVIDED: Mapping[str, tuple[str, ...]] = MappingProxyType({name: tuple(kinds) for name, kinds in _TABLE.items()})
"""The names that each profile knows."""


def provided(call: Call, profile: Profile, taken: frozenset[str], notes: Notes) -> Provided:
    """Give what is sent of the provider's own tools that a call asks for; what cannot be sent is taken down.

    Args:
        call: The call.
        profile: The provider's rules.
        taken: The names of the tools that are declared.
        notes: Where changes are taken down.

    Raises:
        InvalidInput: The value of one is neither true, false, None nor a mapping of options.
    """
    tools: list[Mapping[str, Any]] = []
    fields: dict[str, Any] = {}
    for name, options in _wanted(call):
        kind = _TABLE[profile.name].get(_NAMES.get(name, name))
        why = _refused(kind, name, options, profile, call, taken)
        if kind is None or why:
            notes.add(None, "provider tool", How.DROPPED, f"{name}: {why}")
        elif kind.in_body:
            fields[kind.key] = {**kind.wire, **options}
        else:
            written = {**kind.wire, **options}
            tools.append({kind.key: written} if kind.key else _renamed(written))
    return Provided(tuple(tools), fields)


def _wanted(call: Call) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, value in call.provider_tools.items():
        if isinstance(value, Mapping):
            yield name, value
        elif value is True:
            yield name, EMPTY
        elif value is not None and value is not False:
            raise InvalidInput(
                f"The provider's tool {name!r} is {value!r}.", hint="Give true, or its options as a mapping."
            )


def _refused(
    kind: _Kind | None,
    name: str,
    options: Mapping[str, Any],
    profile: Profile,
    call: Call,
    taken: frozenset[str],
) -> str:
    """Give the reason why a tool cannot be sent, or an empty text."""
    if kind is None:
        known = PROVIDED[profile.name]
        close = get_close_matches(name, {*known, *_NAMES}, 1)
        return f"{profile.name} has no such tool; it has {', '.join(close or known)}"
    if kind.models is not None and not kind.models.search(call.model):
        return "this model has no such tool"
    missing = [option for option in kind.needs if option not in options]
    if missing:
        return f"it needs the option {missing[0]}"
    if taken and not profile.tools.mixed:
        return "this model takes it only without tools of your own"
    return "a tool of your own has its name" if kind.wire.get("name") in taken else ""


def _renamed(tool: dict[str, Any]) -> dict[str, Any]:
    """Give a computer its older type where the options describe a screen, which only that type has."""
    if tool.get("type") == "computer" and "display_width" in tool:
        return {**tool, "type": "computer_use_preview"}
    return tool
