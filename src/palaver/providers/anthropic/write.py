"""Anthropic's Messages API (platform.claude.com/docs/en/api/messages)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from palaver.log import Handle
from palaver.wire.head import Outline, sampled, together, with_parameters
from palaver.wire.request import Call
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    Declared,
    How,
    MediaPart,
    Part,
    ResultPart,
    Speech,
    TextPart,
    ThinkingPart,
    ToolChangePart,
)
from palaver.wire.table import Body, Profile, Provided

OWNED = frozenset({"model", "messages", "system", "tools"})
"""The fields that are compiled from the view and the call; no parameter may replace them."""

MAX_TOKENS = 4096
"""Tokens of the answer when the call does not say: the API requires a figure, and every model accepts this one (Claude 3 Haiku and Opus,
docs/en/about-claude/models/overview). A thinking budget is added to it."""

_CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any"}
FORCED = frozenset({"any", "tool"})
"""The choices of tools that force a call."""

_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_OF_CALLS = frozenset({"caller", "toolset_name"})
COMPACT = "compact_20260112"
"""The edit that asks for a compaction at a threshold (build-with-claude/compaction-threshold)."""

_MARKED_MESSAGES = 2
"""The user's newest messages that end in a cache mark: the last is written, and the one before it was written by the last request."""


def head(outline: Outline) -> Body:
    """Write the body of a message's creation without its messages."""
    call = outline.call
    out: Body = {"model": call.model, "max_tokens": _max_tokens(call)}
    system: list[Body] = [{"type": "text", "text": part.text} for part in outline.system]
    kinds = (str(tool.get("type")) for tool in outline.provided.tools)
    code = next((kind for kind in kinds if kind.startswith("code_execution")), "")
    tools = [*(_tool(tool, code) for tool in outline.tools), *outline.provided.tools]
    for field, blocks in (("system", system), ("tools", tools)):
        if blocks:
            last = {**blocks[-1], **(_mark(outline, field) if call.cache else {})}
            out[field] = [*blocks[:-1], last]
    if outline.choice:
        choice = _CHOICES.get(outline.choice)
        out["tool_choice"] = {"type": "tool", "name": outline.choice} if choice is None else {"type": choice}
    if outline.structure is not None:
        out["output_config"] = {"format": {"type": "json_schema", "schema": outline.structure.schema}}
    if call.stream:
        out["stream"] = True
    out |= outline.provided.fields
    if token := (call.fallback or {}).get("fallback_credit_token"):
        # a `strict` one refuses a body that is not the same
        out["fallback_credit_token"] = {"token": token, "mode": "best_effort"}
    body = with_parameters(out | _container(outline) | _sampling(outline), call)
    return _accepted(_summary(body, outline) if call.compact else _compacted(body, outline.compact_at), outline)


def _summary(body: Body, outline: Outline) -> Body:
    """Return a body that asks for a compaction now, without what goes with no such request (build-with-claude/compaction-on-demand)."""
    out: Body = {"compaction": {"type": "summarize"}}
    for name, value in body.items():
        config = {key: said for key, said in value.items() if key != "format"} if name == "output_config" else value
        if name in {"context_management", "stop_sequences"} or (name == "tool_choice" and value["type"] in FORCED):
            outline.notes.add(None, "parameter", How.DROPPED, f"{name}: not with a compaction")
        elif config or name != "output_config":
            out[name] = config
    return out


def _compacted(body: Body, at: int) -> Body:
    """Return a body that asks for a compaction from so many tokens on, next to the caller's own edits."""
    managed = body.get("context_management") or {}
    edits = managed.get("edits") or ()
    if not at or any(edit.get("type") == COMPACT for edit in edits):
        return body
    edit = {"type": COMPACT, "trigger": {"type": "input_tokens", "value": at}}
    return {**body, "context_management": {**managed, "edits": [*edits, edit]}}


def _container(outline: Outline) -> Body:
    """Return the container in which the code of earlier answers ran, for more code in it; calls that code made need it to go on."""
    name, tools = outline.carried.get("container"), outline.provided.tools
    runs = any(str(tool.get("type")).startswith("code_execution") for tool in tools)
    return {"container": name} if name and runs else {}


def _max_tokens(call: Call) -> int:
    if call.max_tokens is not None:
        return call.max_tokens
    config = call.parameters.get("thinking")
    budget = config.get("budget_tokens", 0) if isinstance(config, Mapping) else 0
    return MAX_TOKENS + (budget if isinstance(budget, int) else 0)


def _tool(tool: Declared, code: str) -> Body:
    """Write a tool; `code` is the type of the tool whose code may call it. Such tools are not strict (…/tool-use/programmatic-tool-calling)."""
    words = {"model": "direct", "code": code}
    more: Body = {"allowed_callers": [words[caller] for caller in tool.callers]} if tool.callers else {}
    more |= {"defer_loading": True} if tool.deferred else {}
    if tool.native is not None:
        return {**tool.native, **more}
    described = {"description": tool.description} if tool.description.strip() else {}
    more |= {"strict": True} if tool.strict and not tool.callers else {}
    return {"name": tool.name, **described, "input_schema": tool.schema, **more}


def provided(known: Mapping[str, Any], options: Body) -> Provided:
    """Declare one of the provider's own tools."""
    return _servers(known, options) if known["type"] == "mcp_toolset" else Provided(({**known, **options},))


def _servers(known: Mapping[str, Any], options: Body) -> Provided:
    """Declare MCP servers that the provider connects to. It asks nobody before it calls their tools."""
    asking = [name for name, server in options.items() if server.get("approval") not in {None, "never"}]
    servers: list[Body] = []
    toolsets: list[Body] = []
    for name, server in options.items():
        if name not in asking:
            token = {"authorization_token": server["token"]} if server.get("token") else {}
            servers.append({"type": "url", "name": name, "url": server["url"], **token})
            only = {tool: {"enabled": True} for tool in server.get("tools") or ()}
            config = {"default_config": {"enabled": False}, "configs": only} if only else {}
            toolsets.append({**known, "mcp_server_name": name, **config})
    why = f"{', '.join(asking)}: the provider asks nobody before it calls a tool" if asking else ""
    return Provided(tuple(toolsets), {"mcp_servers": servers} if servers else {}, lost=why)


def _sampling(outline: Outline) -> Body:
    """Return the temperature, where the model accepts one."""
    temperature = outline.call.temperature
    if temperature is None:
        return {}
    if outline.profile.reasoning.sampling and outline.call.thinks and temperature != 1:
        outline.notes.add(None, "parameter", How.DROPPED, "temperature: it is 1 while the model thinks")
        return {}
    return {"temperature": temperature}


def _accepted(body: Body, outline: Outline) -> Body:
    """Return a body with what the model takes instead of what it refuses, where the meaning is the same; the rest is for the checks to refuse."""
    out = sampled(body, ("temperature", "top_p", "top_k"), outline.profile, outline.notes)
    return _chosen(_thinking(out, outline), outline)


def _thinking(body: Body, outline: Outline) -> Body:
    """Return a body whose thinking has no budget where the model decides by itself how much it thinks."""
    config, known = body.get("thinking"), outline.profile.reasoning.thinking
    if (
        not isinstance(config, Mapping)
        or config.get("type") != "enabled"
        or "enabled" in known
        or "adaptive" not in known
    ):
        return body
    outline.notes.add(
        None, "parameter", How.CHANGED, "thinking: this model decides how much it thinks, without a budget"
    )
    kept = {name: value for name, value in config.items() if name != "budget_tokens"}
    return {**body, "thinking": {**kept, "type": "adaptive"}}


def _chosen(body: Body, outline: Outline) -> Body:
    """Return a body that forces no tool where the caller permits that and the model would refuse."""
    choice, config = body.get("tool_choice"), body.get("thinking")
    budget = isinstance(config, Mapping) and config.get("type") == "enabled"
    refused = budget or not outline.profile.tools.forced
    if not (outline.call.auto_choice and refused and isinstance(choice, Mapping) and choice.get("type") in FORCED):
        return body
    outline.notes.add(
        None, "parameter", How.CHANGED, "tool_choice: this model may not be forced, and chooses by itself"
    )
    return {**body, "tool_choice": {name: choice[name] for name in choice if name != "name"} | {"type": "auto"}}


def _without_thinking(body: Body, messages: Sequence[Mapping[str, Any]], notes: ChangeNotes) -> Body:
    """Drop the thinking parameter while results go back in a turn that did not begin with thinking of this model's.

    «When `thinking` is enabled, a final `assistant` message must start with a thinking block» (anomalyco/opencode#3077). Such a turn comes
    from another model, or its thinking was signed for words that have been edited; the next turn thinks again.
    """
    config = body.get("thinking")
    if not isinstance(config, Mapping) or config.get("type") != "enabled" or not _has_result(messages[-1]):
        return body
    opening = None
    for each in reversed(messages):
        if each["role"] == "assistant":
            opening = each
        elif not _has_result(each):
            break
    if opening is None or opening["content"][0]["type"] in _THOUGHTS:
        return body
    why = "thinking: the turn that uses tools did not begin with thinking of this model"
    notes.add(None, "parameter", How.DROPPED, why)
    return {name: value for name, value in body.items() if name != "thinking"}


def _with_safety_net(body: Body, profile: Profile) -> Body:
    """Ask that thinking which is bound to other words after all is left out, rather than that the request is refused.

    The answer names what was left out (`input_transformations`). Thinking between tools does not permit the field. Requests without thinking have
    it too, so that all of a conversation are alike. A model that thinks unasked is asked for just that: the field has no other place.
    """
    unasked: Body = {"type": "adaptive"} if profile.reasoning.thinks in {"always", "on"} else {}
    config = body.get("thinking", unasked)
    thinks = isinstance(config, Mapping) and config.get("type") in {"adaptive", "enabled"}
    if not (profile.reasoning.bound and thinks) or "block_binding" in config:
        return body
    return {**body, "thinking": {**config, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}


def _has_result(message: Mapping[str, Any]) -> bool:
    return any(block["type"] == "tool_result" for block in message["content"])


# --- messages ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, profile: Profile, notes: ChangeNotes) -> Iterator[Body]:
    """Write a speech as one message."""
    role = speech.role if speech.role in {"assistant", "system"} else "user"
    parts = speech.parts
    if role == "assistant" and profile.turns.assistant_last:
        parts = (*parts[:-1], _ended(parts[-1], notes))
    yield {"role": role, "content": [_block(part) for part in parts]}


def _ended(part: Part, notes: ChangeNotes) -> Part:
    """Return the assistant's last part without white space at its end, in every message: a request may end on it, and the next begins alike."""
    if not isinstance(part, TextPart) or part.text == part.text.rstrip():
        return part
    notes.add(part.origin, "text", How.CHANGED, "white space at the end of words that the model may go on from")
    return replace(part, text=part.text.rstrip())


def neighbours(before: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
    """Return two messages as one where they have the same role: roles alternate."""
    return together(before, item, "content") if before["role"] == item["role"] else None


def _block(part: Part) -> Body:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} | _cited(part)
    if isinstance(part, MediaPart):
        bytes_ = {"type": "base64", "media_type": part.media_type, "data": part.data}
        return {"type": "image", "source": {"type": "url", "url": part.media.url} if part.media.url else bytes_}
    if isinstance(part, ThinkingPart):
        said = part.content
        whole = {"type": "thinking", "thinking": said.content, "signature": said.signature}
        return {"type": "redacted_thinking", "data": said.redacted} if said.redacted else whole
    if isinstance(part, ToolChangePart):
        return _changed_tool(part)
    if isinstance(part, CallPart):
        own = {name: value for name, value in part.carried.items() if name in _OF_CALLS and value is not None}
        name, args = part.name, part.args
        if own.get("toolset_name") == name and "action" in args:  # a tool runs all members of the toolset
            name, args = str(args["action"]), {key: said for key, said in args.items() if key != "action"}
        return {"type": "tool_use", "id": part.id, "name": name, "input": args, **own}
    return _result(part) if isinstance(part, ResultPart) else {"type": part.kind, **part.fields}


def _changed_tool(part: ToolChangePart) -> Body:
    if part.declared is None:
        return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": part.name}}
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": _tool(part.declared, "")}}


def _cited(part: TextPart) -> Body:
    """Return the citations of what a tool of the provider's own found: they go back with it, and no others, whose documents may be gone."""
    cited = part.carried.get("citations")
    listed = cited if isinstance(cited, list) else []
    found = [each for each in listed if isinstance(each, Mapping) and each.get("type") == "web_search_result_location"]
    return {"citations": found} if found and len(found) == len(listed) else {}


def _result(part: ResultPart) -> Body:
    """Write a result. That of a failed call must say something («content cannot be empty if `is_error` is true»)."""
    texts = all(isinstance(inner, TextPart) for inner in part.body)
    content = part.text if texts else [_block(inner) for inner in part.body]
    out: Body = {"type": "tool_result", "tool_use_id": part.id, "content": content}
    if part.call is not None and part.call.carried.get("toolset_name"):
        out["toolset_name"] = part.call.carried["toolset_name"]
    return out | {"is_error": True} if part.error else out


# --- cache marks ---------------------------------------------------------------------------------------------------------


def _mark(outline: Outline, place: str) -> Body:
    ttl = outline.call.cached_for(place)
    return {outline.profile.cache.field: {"type": "ephemeral", **({} if ttl == "5m" else {"ttl": ttl})}}


def finished(
    messages: Sequence[Mapping[str, Any]], body: Body, outline: Outline, origins: Sequence[Sequence[Handle | None]]
) -> tuple[Body, Mapping[int, Body]]:
    """Return the head, and by index the messages that get a cache mark.

    The provider reads tools, instructions and messages in this order, and finds what is cached up to a mark in a request that begins alike
    (docs/en/build-with-claude/prompt-caching). Of more marks than it accepts, the first ones of the messages are left out.
    """
    body = _with_safety_net(_without_thinking(body, messages, outline.notes), outline.profile)
    opening = messages[0]["content"][0]
    if outline.compact_at and opening["type"] == "compaction" and opening.get("signature"):
        body = _unasked(body, outline.notes)
    changed: dict[int, Body] = {}
    heads = sum(bool(body.get(field)) for field in ("system", "tools"))
    places = list(_wanted(messages, outline, origins) if outline.call.cache_at else _newest(messages))
    marked = places[heads - outline.profile.cache.marks :] if outline.call.cache else []
    if outline.call.cache and outline.call.cache_at:
        _unmarked(outline, origins, places, marked)
    for number, index in marked:
        message = changed.get(number, messages[number])
        blocks = list(message["content"])
        blocks[index] = {**blocks[index], **_mark(outline, "messages")}
        changed[number] = {**message, "content": blocks}
    return body, changed


def _unasked(body: Body, notes: ChangeNotes) -> Body:
    """Return a body without the threshold: a request that begins with a compaction on demand can have none."""
    edits = [edit for edit in body["context_management"]["edits"] if edit["type"] != COMPACT]
    notes.add(
        None, "compaction", How.DROPPED, "no threshold goes with a compaction on demand; ask for the next one, too"
    )
    rest = {name: value for name, value in body.items() if name != "context_management"}
    return rest | ({"context_management": {**body["context_management"], "edits": edits}} if edits else {})


def _wanted(
    messages: Sequence[Mapping[str, Any]], outline: Outline, origins: Sequence[Sequence[Handle | None]]
) -> Iterator[tuple[int, int]]:
    """Return message and block of each place where the call wants a mark and the provider accepts one."""
    for number, (message, said) in enumerate(zip(messages, origins, strict=True)):
        for index, (block, origin) in enumerate(zip(message["content"], said, strict=True)):
            if origin is not None and origin in outline.call.cache_at and block["type"] in outline.profile.cache.places:
                yield number, index


def _unmarked(
    outline: Outline,
    origins: Sequence[Sequence[Handle | None]],
    places: Sequence[tuple[int, int]],
    marked: Sequence[tuple[int, int]],
) -> None:
    """Note where the call wants a mark and there is none."""
    here, fits = ({origins[at][index] for at, index in found} for found in (marked, places))
    for place in (place for place in outline.call.cache_at if place not in here):
        most = f"a request takes {outline.profile.cache.marks} marks, and later ones are wanted"
        why = most if place in fits else "it is not sent, or takes no mark"
        outline.notes.add(place, "cache", How.DROPPED, f"no prefix is cached after it: {why}")


def _newest(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
    """Return message and block of the ends of the user's newest messages, the older one first."""
    numbers = (number for number in range(len(messages) - 1, -1, -1) if messages[number]["role"] == "user")
    for number in sorted(islice(numbers, _MARKED_MESSAGES)):
        yield number, len(messages[number]["content"]) - 1
