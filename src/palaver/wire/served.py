"""What tools of the provider's own left in earlier answers goes back to that provider as it came, while such tools are asked for.

Anthropic takes a call of its tools only together with the result (build-with-claude, web search tool), Gemini circulates what its tools were
asked and gave back (docs/tool-combination), and OpenAI wants behind a reasoning item what it led to. Without such tools in the request the
blocks are left out: the words of the answer say what came of them. A part that only another program can answer (a computer's screen) is none
of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

from palaver.wire.parts import ServedPart, Speech, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.reasoning import maker_of
from palaver.wire.request import How, Notes

__all__ = ["is_served", "with_served"]

_CALL = "server_tool_use"
_KINDS: Mapping[str, tuple[str, frozenset[str]]] = MappingProxyType(
    {
        "openai-responses": (
            "openai",
            frozenset({"web_search_call", "file_search_call", "code_interpreter_call"}),
        ),
        "anthropic": (
            "anthropic",
            frozenset({
                _CALL, "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
                "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
            }),
        ),
        "gemini": ("google", frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})),
    }
)  # fmt: skip
"""The maker of each profile, and the blocks that tools of its own leave."""


def is_served(kind: str, profile: Profile, provider: str) -> bool:
    """Tell whether a block was left by a tool of the very provider that the request is for."""
    maker, kinds = _KINDS.get(profile.name, ("", frozenset()))
    return kind in kinds and maker_of(provider) == maker


def with_served(script: Sequence[Speech], profile: Profile, *, asked: bool, notes: Notes) -> tuple[Speech, ...]:
    """Give the script with those blocks that can go back, and without the others.

    Args:
        script: The script.
        profile: The provider's rules.
        asked: Whether the request asks for tools of the provider's own.
        notes: Where changes are taken down.
    """
    items = profile.reasoning.form == "items"
    return tuple(_speech(speech, items=items, asked=asked, notes=notes) for speech in script)


def _speech(speech: Speech, *, items: bool, asked: bool, notes: Notes) -> Speech:
    served = [part for part in speech.parts if isinstance(part, ServedPart)]
    if not served:
        return speech
    whole = _paired([part for part in served if _sound(part)])
    gone: set[int] = set()
    for part in served:
        why = "" if asked else "no tool of the provider's own is asked for"
        if not why and not _sound(part):
            why = "what its provider gives every such block is not there"
        if not why and _id(part) and _id(part) not in whole:
            why = "its other half is not there"
        if why:
            gone.add(id(part))
            notes.add(part.origin, "block", How.DROPPED, f"{part.kind}: {why}")
    for thought, after in pairwise(speech.parts):
        if items and isinstance(thought, ThinkingPart) and id(after) in gone:
            gone.add(id(thought))
            notes.add(thought.origin, "thinking", How.DROPPED, "what it led to is left out")
    return replace(speech, parts=tuple(part for part in speech.parts if id(part) not in gone))


def _sound(part: ServedPart) -> bool:
    """Tell whether a block has what the provider asks of its kind (the types of the `anthropic` package); a log may hold anything."""
    if part.kind == _CALL:
        name, given = part.fields.get("name"), part.fields.get("input")
        return bool(_id(part)) and isinstance(name, str) and isinstance(given, Mapping)
    return not _is_result(part) or (bool(_id(part)) and "content" in part.fields)


def _is_result(part: ServedPart) -> bool:
    return part.kind.endswith("_tool_result")


def _id(part: ServedPart) -> str:
    """Give the id that binds an Anthropic tool's call and result; empty for blocks that stand alone."""
    found = part.fields.get("id" if part.kind == _CALL else "tool_use_id")
    return found if isinstance(found, str) and (part.kind == _CALL or _is_result(part)) else ""


def _paired(served: Sequence[ServedPart]) -> frozenset[str]:
    """Give the ids of which there is a call and, behind it, one result."""
    called: set[str] = set()
    answered: set[str] = set()
    for part in served:
        found = _id(part)
        if part.kind == _CALL:
            called.add(found)
        elif found in called:
            answered.add(found)
    return frozenset(answered)
