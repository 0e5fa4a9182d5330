"""Write a session that pi can resume: a file for ~/.pi/agent/sessions, version 3. Each entry is the child of the one before it.

pi adapts its file's content to the model, so thinking of any model is written. pi shows the summary of its newest compaction first, then the
entries that the compaction kept, and ignores usage from before it. So the compaction is the last entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from palaver.formats.writing import Continuing, Heading, TranscriptLine, dated, stamp, text_of
from palaver.messages import Speaker, thaw
from palaver.providers import profile
from palaver.view import Exchange, View
from palaver.wire import How
from palaver.wire.gather import gather
from palaver.wire.media import Load, with_media
from palaver.wire.pairing import Names, paired
from palaver.wire.reasoning import reasoning_item, signature
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    MediaPart,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    Taken,
    TextPart,
    ThinkingPart,
)

_Body: TypeAlias = dict[str, Any]

_OPENAI = profile("openai-responses")
_RULES = replace(_OPENAI, media=replace(_OPENAI.media, schemes=frozenset()))
"""The content that pi can store: the same as OpenAI, but no image that is only a URL."""

_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses", "google": "google-generative-ai"}
"""pi's names of the APIs that sign or encrypt thinking. It sends such data back only to the same provider, API and model."""

_COUNTS = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
_USAGE = {**_COUNTS, "totalTokens": 0, "cost": {**_COUNTS, "total": 0}}
"""pi adds up the usage of every answer, so usage from elsewhere is written as zero."""


def continuing(heading: Heading) -> Continuing:
    """Return where to put the file and what to type."""
    folder = heading.folder or "/folder"
    name = f"{re.sub('[:.]', '-', stamp(heading.created))}_{heading.session}.jsonl"
    place = f"~/.pi/agent/sessions/--{re.sub('[/:]', '-', folder.removeprefix('/'))}--/{name}"
    return Continuing("pi", place, heading.folder, f"pi --session {heading.session}")


def written(view: View, heading: Heading, load: Load, notes: ChangeNotes) -> Iterator[TranscriptLine]:
    """Write a view as a session file. A record or summary that begins the view is written as pi writes its own."""
    if view.system:
        notes.add(None, "instructions", How.DROPPED, "pi sends its own")
    if view.tools:
        notes.add(None, "tools", How.DROPPED, "pi declares its own")
    about = {"id": heading.session, "timestamp": stamp(heading.created), "cwd": heading.folder}
    yield TranscriptLine({"type": "session", "version": 3, **about})
    for number, (at, body, exchange) in enumerate(_entries(view, heading, load, notes), 1):
        parent = _id(number - 1) if number > 1 else None
        yield TranscriptLine({"id": _id(number), "parentId": parent, "timestamp": stamp(at), **body}, exchange)


def _id(number: int) -> str:
    return f"{number:08x}"


def _entries(
    view: View, heading: Heading, load: Load, notes: ChangeNotes
) -> Iterator[tuple[float, _Body, Exchange | None]]:
    """Yield the content of each entry, with its time and the exchange that it shows."""
    names, taken = Names((), _RULES, notes), Taken(set())
    scripts = [
        tuple(paired(gather(exchange, _RULES, notes), _RULES, names, notes, taken)) for exchange in view.exchanges
    ]
    spoken = with_media(scripts, _RULES, load, _RULES.request_bytes, notes)
    at, kept, summary = heading.created, False, ""
    for index, ((exchange, at), script) in enumerate(zip(dated(view, heading), spoken, strict=True)):
        if exchange.derived and not index:
            summary = text_of(exchange.blocks())
            continue
        for speech in script:
            for body in _bodies(exchange, speech, at, notes):
                kept = True
                yield at, body, exchange
    if heading.title:
        yield at, {"type": "session_info", "name": heading.title}, None
    if kept and summary:
        yield at, {"type": "compaction", "summary": summary, "firstKeptEntryId": _id(1), "tokensBefore": 0}, None
    elif summary:
        yield at, _message(at, "compactionSummary", summary=summary, tokensBefore=0), None


def _bodies(exchange: Exchange, speech: Speech, at: float, notes: ChangeNotes) -> Iterator[_Body]:
    """Yield the entries of a speech; each result is a separate entry."""
    content = [body for part in speech.parts for body in _part(part, notes)]
    if speech.role == "tool":
        for part in speech.parts:
            if isinstance(part, ResultPart):
                body = [inner for inside in part.body for inner in _part(inside, notes)]
                yield _message(
                    at, "toolResult", toolCallId=part.id, toolName=part.name, content=body, isError=part.error
                )
    elif speech.role == "assistant":
        called = any(isinstance(part, CallPart) for part in speech.parts)
        about = {
            "api": _APIS.get(speech.provider, "openai-completions"),
            "provider": speech.provider,
            "model": speech.model,
        }
        stop = "toolUse" if called else "stop"
        yield _message(at, "assistant", content=content, **about, usage=_USAGE, stopReason=stop)
    elif exchange.derived:
        yield _message(at, "compactionSummary", summary=text_of(exchange.blocks()), tokensBefore=0)
    elif speech.role == "user" and exchange.speaker is Speaker.HUMAN:
        yield _message(at, "user", content=content)
    else:
        if speech.role == "system":
            notes.add(exchange.first, "instructions", How.CHANGED, "no place inside a conversation: a custom message")
        yield {"type": "custom_message", "customType": exchange.speaker.value, "content": content, "display": True}


def _message(at: float, role: str, **fields: object) -> _Body:
    return {"type": "message", "message": {"role": role, **fields, "timestamp": round(at * 1000)}}


def _part(part: Part, notes: ChangeNotes) -> Iterator[_Body]:
    match part:
        case TextPart():
            yield {"type": "text", "text": part.text}
        case MediaPart():
            yield {"type": "image", "data": part.data, "mimeType": part.media_type}
        case CallPart():
            sealed = signature(part.artefact)
            call = {"type": "toolCall", "id": part.id, "name": part.name, "arguments": thaw(part.args)}
            yield {**call, "thoughtSignature": sealed} if sealed else call
        case ThinkingPart():
            yield from _thinking(part, notes)
        case ProviderPart():
            notes.add(part.origin, "block", How.DROPPED, f"{part.kind}: pi has no place for it")


def _thinking(part: ThinkingPart, notes: ChangeNotes) -> Iterator[_Body]:
    """Yield thinking with the data its provider needs: the whole item as JSON text, or the signature (or redacted thinking)."""
    item, said = reasoning_item(part), part.content
    sealed = json.dumps(item) if item else said.redacted or said.signature
    if sealed or said.content:
        thought = {"type": "thinking", "thinking": said.content, "thinkingSignature": sealed}
        yield {**thought, "redacted": True} if sealed and said.redacted else thought
    else:
        notes.add(part.origin, "thinking", How.DROPPED, "it says nothing that pi could send back")
