"""OpenAI's Responses API (platform.openai.com/docs/api-reference/responses).

The conversation is ours to keep, so the provider stores nothing: `store` is false, and thinking goes back encrypted. Items go without the ids
that OpenAI gave them, except reasoning: an id is looked up, and an unknown one refuses the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.providers.openai_chat.write import CHOICES, image_url, joined, noted_failure, response_format
from palaver.providers.openai_responses.items import COMPUTER, called, output, own_item
from palaver.wire.head import Outline, sampled, with_parameters
from palaver.wire.reasoning import reasoning_item
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    Declared,
    How,
    MediaPart,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    TextPart,
    ThinkingPart,
    ToolChangePart,
    from_harness,
)
from palaver.wire.table import Body, Profile, Provided

OWNED = frozenset({"model", "input", "instructions", "tools", "previous_response_id", "conversation"})
"""The fields that are compiled from the view and the call; no parameter may replace them."""

LEAST_TOKENS = 16
"""The least that `max_output_tokens` may be (API reference)."""

_PHASES = frozenset({"commentary", "final_answer"})


def head(outline: Outline) -> Body:
    """Write the body of a response's creation without its input."""
    call = outline.call
    out: Body = {"model": call.model}
    if outline.system and outline.profile.turns.system == "field":
        out["instructions"] = joined(outline.system)
    if outline.tools or outline.provided.tools:
        out["tools"] = [*_listed(outline.tools), *outline.provided.tools]
    if outline.choice or outline.withdrawn:
        out["tool_choice"] = _choice(outline)
    if outline.structure is not None:
        out["text"] = {"format": {"type": "json_schema", **response_format(outline.structure)}}
    if call.max_tokens is not None:
        out["max_output_tokens"] = _limit(call.max_tokens, outline.notes)
    if call.temperature is not None:
        out["temperature"] = call.temperature
    if call.stream:
        out["stream"] = True
    body = with_parameters(out | _compacting(outline.compact_at) | {"store": False}, call)
    effort = (body.get("reasoning") or {}).get("effort")
    return sampled(body, ("temperature", "top_p", "top_logprobs"), outline.profile, outline.notes, effort)


_OF_SERVERS: Mapping[str, str] = {
    "url": "server_url", "token": "authorization", "tools": "allowed_tools", "approval": "require_approval",
}  # fmt: skip
"""What is said of an MCP server, in the words of the API."""


def _compacting(at: int) -> Body:
    """Return the field that asks for a compaction from so many tokens on (guides/compaction)."""
    return {"context_management": [{"type": "compaction", "compact_threshold": at}]} if at else {}


def provided(known: Mapping[str, Any], options: Body) -> Provided:
    """Declare one of the provider's own tools. Only an older type of the computer has the size of a screen."""
    if known["type"] == "mcp":
        servers = ({_OF_SERVERS.get(key, key): said for key, said in server.items()} for server in options.values())
        return Provided(
            tuple({**known, "server_label": name, **said} for name, said in zip(options, servers, strict=True))
        )
    return Provided((_own({**known, **options}),))


def _own(tool: Body) -> Body:
    return {**tool, "type": "computer_use_preview"} if tool["type"] == "computer" and "display_width" in tool else tool


def _limit(wanted: int, notes: ChangeNotes) -> int:
    if wanted < LEAST_TOKENS:
        notes.add(None, "parameter", How.CHANGED, f"max_tokens: the provider takes no less than {LEAST_TOKENS}")
    return max(wanted, LEAST_TOKENS)


def _choice(outline: Outline) -> str | Body:
    """Return the choice of tools. It leaves out those that are declared and no longer offered, so that the list of tools stays as it is."""
    choice, listed = outline.choice or "auto", (*outline.tools, *outline.more)
    if choice not in CHOICES:
        return next(_named(tool) for tool in listed if tool.name == choice)
    if not outline.withdrawn or choice == "none":
        return choice
    own = ({name: tool[name] for name in ("type", "server_label") if name in tool} for tool in outline.provided.tools)
    allowed = [*(_named(tool) for tool in listed if tool.name not in outline.withdrawn), *own]
    return {"type": "allowed_tools", "mode": choice, "tools": allowed}


def _named(tool: Declared) -> Body:
    """Return a tool as a choice names it: by its name or, for one of the provider's own, by its type."""
    if tool.native is not None:
        return {"type": tool.native["type"]}
    return {"type": "function" if tool.format is None else "custom", "name": tool.name}


_CALLERS: Mapping[str, str] = {"model": "direct", "code": "programmatic"}


def _listed(tools: Sequence[Declared]) -> Iterator[Body]:
    """Write tools, those of one group together where its first one stands."""
    groups: dict[str, Body] = {}
    for tool in tools:
        if not tool.group:
            yield _tool(tool)
            continue
        name, about = tool.group
        if name not in groups:
            inside = [_tool(other) for other in tools if other.group[:1] == (name,)]
            groups[name] = {"type": "namespace", "name": name, "description": about, "tools": inside}
            yield groups[name]


def _tool(tool: Declared) -> Body:
    """Write a tool. `strict` is always said: a missing one counts as true."""
    more: Body = {"allowed_callers": [_CALLERS[caller] for caller in tool.callers]} if tool.callers else {}
    if tool.native is not None:
        return _own({**tool.native, **more})
    more |= {"defer_loading": True} if tool.deferred else {}
    named: Body = {"type": "function", "name": tool.name, "description": tool.description}
    if tool.format is None:
        return named | {"parameters": tool.schema, "strict": tool.strict} | more
    form = {"type": "text"} if isinstance(tool.format, str) else {"type": "grammar", **tool.format}
    return named | {"type": "custom", "format": form} | more


# --- items ---------------------------------------------------------------------------------------------------------------


def written(speech: Speech, profile: Profile, notes: ChangeNotes) -> Iterator[Body]:
    """Write a speech as items. An assistant's words are an item each, in their order: reasoning belongs to the item after it."""
    if speech.role in {"system", "user"}:
        yield from _said(speech, profile)
        return
    before: Part | None = None
    for part in speech.parts:
        if isinstance(part, TextPart):
            phase = {"phase": part.phase} if part.phase in _PHASES else {}
            yield {"type": "message", "role": "assistant", "content": part.text, **phase}
        elif isinstance(part, ThinkingPart):
            yield reasoning_item(part)
        elif isinstance(part, CallPart):
            yield called(part)
        elif isinstance(part, ProviderPart):
            yield own_item(part, after_reasoning=isinstance(before, ThinkingPart))
        elif isinstance(part, ResultPart):
            yield from _result(part, notes)
        before = part


def _result(part: ResultPart, notes: ChangeNotes) -> Iterator[Body]:
    """Write a result. A call of the computer is answered by a screenshot alone, so what else there is follows as a message."""
    noted_failure(part, notes)
    texts = all(isinstance(inner, TextPart) for inner in part.body)
    yield output(part, part.text if texts else _content(part.body))
    if part.call is not None and part.call.artefact.get("type") == COMPUTER and part.text:
        notes.add(
            part.origin, "result", How.CHANGED, "a screenshot alone answers the call: the words of the result follow it"
        )
        words = TextPart(from_harness("result", part.text), part.origin)
        yield {"type": "message", "role": "user", "content": _content((words,))}


def _said(speech: Speech, profile: Profile) -> Iterator[Body]:
    """Write words of the user or the system, and tools that are offered from there on."""
    more = [_tool(part.declared) for part in speech.parts if isinstance(part, ToolChangePart) and part.declared]
    if more:
        yield {"type": "additional_tools", "role": "developer", "tools": more}
    if not all(isinstance(part, ToolChangePart) for part in speech.parts):
        first = speech.role == "system" and profile.turns.system == "message"
        yield {"type": "message", "role": "developer" if first else speech.role, "content": _content(speech.parts)}


def _content(parts: Sequence[Part]) -> list[Body]:
    return [_part(part) for part in parts if isinstance(part, TextPart | MediaPart)]


def _part(part: TextPart | MediaPart) -> Body:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "detail": "auto", "image_url": image_url(part)}
