"""Write a session that Codex can resume: a rollout for ~/.codex/sessions, as version 0.169 reads it.

Codex sends the content of its rollout to OpenAI's Responses API, so content goes through the wire's passes for that API. There is no
`turn_context`: without one, Codex states its permissions and the folder again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from palaver.formats.codex.messages import SUMMARY_PREFIX
from palaver.formats.writing import Continuing, Heading, TranscriptLine, spelled, stamp, text_of
from palaver.messages import Role, Speaker, ToolCallContent
from palaver.providers import profile
from palaver.providers.openai_responses.write import written as items_of
from palaver.view import Exchange, View
from palaver.wire import How
from palaver.wire.gather import instructions
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes, TextPart

_Item: TypeAlias = dict[str, Any]

_RESPONSES = profile("openai-responses")


def continuing(heading: Heading) -> Continuing:
    """Return where to put the file and what to type."""
    time = stamp(heading.created)[:19]
    name = f"rollout-{time.replace(':', '-')}-{heading.session}.jsonl"
    place = f"~/.codex/sessions/{time[:10].replace('-', '/')}/{name}"
    return Continuing("Codex", place, heading.folder, f"codex resume {heading.session}")


def written(view: View, heading: Heading, load: Load, notes: ChangeNotes) -> Iterator[TranscriptLine]:
    """Write a view as a rollout. Everything up to the newest record or summary becomes a history that Codex compacted."""
    if view.tools:
        notes.add(None, "tools", How.DROPPED, "Codex declares its own")
    base: list[str] = []
    notices: list[str] = []
    for part in instructions(view, _RESPONSES, notes):
        (base if _is_base(view, part) else notices).append(part.text)
    yield TranscriptLine(_line(heading.created, "session_meta", _meta(heading, "\n\n".join(base))))
    history = [_message("developer", *notices)] if notices else []
    yield from (TranscriptLine(_line(heading.created, "response_item", item)) for item in history)
    newest = max((index for index, exchange in enumerate(view.exchanges) if exchange.derived), default=-1)
    for index, (exchange, at, script) in enumerate(spelled(view, _RESPONSES, heading, load, notes)):
        if exchange.derived:
            history.append(_message("user", _summary(exchange)))
        else:
            customs = _customs(exchange)
            for item in [item for speech in script for item in items_of(speech, _RESPONSES, notes)]:
                history.append(stored := _stored(item, customs))
                yield TranscriptLine(_line(at, "response_item", stored), exchange)
                yield from (TranscriptLine(line, exchange) for line in _screen(exchange, stored, at))
            if exchange.role is Role.ASSISTANT:  # Codex counts after each response; nothing else records where one ends
                counted = {"type": "token_count", "info": None, "rate_limits": None}
                yield TranscriptLine(_line(at, "event_msg", counted), exchange)
        if index == newest:
            replaced = {"message": _summary(exchange), "replacement_history": list(history)}
            yield TranscriptLine(_line(at, "compacted", replaced), exchange)


def _line(at: float, kind: str, payload: Mapping[str, object]) -> Mapping[str, object]:
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def _meta(heading: Heading, base: str) -> _Item:
    about = {"id": heading.session, "timestamp": stamp(heading.created), "cwd": heading.folder}
    given = {"base_instructions": {"text": base}} if base else {}
    return {**about, "originator": "palaver", "cli_version": "0.0.0", "source": "cli", **given}


def _is_base(view: View, part: TextPart) -> bool:
    """Return whether a text is part of the instructions in force, which Codex keeps separately, rather than of a system message."""
    at = part.origin
    return view.reader is not None and at is not None and view.reader.header(at.dialog, at.seq).kind == "instructions"


def _message(role: str, *texts: str) -> _Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text} for text in texts]}


def _summary(exchange: Exchange) -> str:
    """Return the text that replaces exchanges, with the prefix by which Codex recognises a summary."""
    return f"{SUMMARY_PREFIX}\n{text_of(exchange.blocks())}"


# --- items ----------------------------------------------------------------------------------------------------------------


def _customs(exchange: Exchange) -> frozenset[str]:
    """Return the ids of the calls whose input is not JSON, such as Codex's `apply_patch`."""
    calls = [block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent)]
    return frozenset(
        call.id
        for call in calls
        if (call.model_extra or {}).get("call_type") == "custom_tool_call" and isinstance(call.args.get("input"), str)
    )


def _stored(item: Mapping[str, Any], customs: frozenset[str]) -> _Item:
    """Return an item of a request as Codex stores it."""
    role, content, call_id = item.get("role"), item.get("content"), item.get("call_id")
    if role == "system":  # Codex leaves such an item out of its requests
        return {**item, "role": "developer"}
    if role == "assistant":
        return {**item, "content": [{"type": "output_text", "text": content}]}
    if call_id not in customs:
        return dict(item)
    if item["type"] == "function_call":
        words = json.loads(item["arguments"])["input"]
        return {"type": "custom_tool_call", "call_id": call_id, "name": item["name"], "input": words}
    return {**item, "type": "custom_tool_call_output"}


def _screen(exchange: Exchange, item: _Item, at: float) -> Iterator[Mapping[str, object]]:
    """Yield the event with which Codex shows an item on its screen."""
    texts = [part["text"] for part in item["content"] if "text" in part] if item["type"] == "message" else []
    if texts and (item["role"] == "assistant" or exchange.speaker is Speaker.HUMAN):
        said = "agent_message" if item["role"] == "assistant" else "user_message"
        yield _line(at, "event_msg", {"type": said, "message": "\n".join(texts)})
