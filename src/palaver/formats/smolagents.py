"""smolagents runs: JSON lines, each a run with its question, answer and steps. Each run is a conversation.

Based on runs of smolagents 1.20 (huggingface/smolagents, examples/smolagents_benchmark/run.py). A step of the role `tool-call` has the calls as
Python wrote their list, after a line of its own; the step after it, `tool-response`, has what they returned, together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded
from palaver.formats.events import Conversation, Event, Loss
from palaver.formats.lists import Item, kept, numbered, priced
from palaver.formats.records import Record
from palaver.formats.sources import SourceFile
from palaver.messages import Speaker, from_chat_dict

NAME = "smolagents"
_STEPS = "intermediate_steps"
_CALLS = "Calling tools:\n"  # smolagents/memory.py, ActionStep.to_messages
_LONGEST = 1 << 20  # characters of a list of calls
_ESCAPES = re.compile(r"\\[\\'\"abfnrtvxuUN0-7\n]")
_READ = frozenset({"role", "content", "tool_calls", "token_usage"})


class Smolagents:
    """smolagents runs: one conversation per line."""

    name = NAME
    title = "smolagents runs"
    signs = "JSON lines with model_id, question and intermediate_steps"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it contains such runs, from 0.0 to 1.0."""
        return 1.0 if any({_STEPS, "question"} <= record.keys() for record in source.opening.records) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every line as a conversation, one in memory at a time."""
        for record in source.member.records():
            yield from (record,) if isinstance(record, Loss) else _run(record)


def _run(record: Record) -> Iterator[Event]:
    value, at = record.value, fields.moment(record.value.get("start_time"))
    yield Conversation(
        key="",
        ordinal=record.ordinal,
        title=fields.text(value, "original_question") or fields.text(value, "question"),
        model=fields.text(value, "model_id"),
        started_at=at,
        metadata=kept(value, {_STEPS}),
    )
    writer, steps = DialogWriter("main", NAME), value.get(_STEPS)
    yield writer.branch(NAME)
    if not isinstance(steps, list):
        yield bad_record(f"{record.place}, {_STEPS}", "it is not a list of steps")
    waiting: Sequence[object] = ()
    for item in numbered(steps, f"{record.place}, {_STEPS}"):
        calls = _calls(item.fields) if item.fields.get("role") == "tool-call" else ()
        yield from guarded(item.place, _message(item, calls or waiting, writer, f"{NAME}:{record.ordinal}", at))
        waiting = calls


def _calls(step: Mapping[str, object]) -> Sequence[object]:
    """Return the calls of a step, in the form of chat completions; none if they cannot be read."""
    if calls := fields.items(step, "tool_calls"):
        return calls
    text = _text(step)
    if not text.startswith(_CALLS) or len(text) > _LONGEST or "\\" in _ESCAPES.sub("", text):
        return ()
    try:
        listed = ast.literal_eval(text.removeprefix(_CALLS))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    return listed if isinstance(listed, list) else ()


def _text(step: Mapping[str, object]) -> str:
    content = step.get("content")
    return (
        content
        if isinstance(content, str)
        else "".join(fields.text(part, "text") for part in fields.objects(step, "content"))
    )


def _message(item: Item, calls: Sequence[object], writer: DialogWriter, key: str, at: float) -> Iterator[Event]:
    step = item.fields
    role, content = step.get("role"), step.get("content")
    about: dict[str, Any] = {"id": f"{key}:{item.ordinal}", "timestamp": at, "metadata": kept(step, _READ)}
    if usage := fields.mapping(step, "token_usage"):
        about["usage"] = priced(usage, None)
    if role in {"assistant", "tool-call"}:
        called = bool(calls) and role == "tool-call"
        said = {"content": None, "tool_calls": calls} if called else {"content": content}
        message = from_chat_dict({"role": "assistant", **said}, **about)
        if role == "tool-call" and not called:
            reason = "Its calls cannot be read; their text is kept."
            yield Loss(place=item.place, reason=reason, code="bad_calls", severity="loss")
    elif role == "tool-response" and calls:
        first = fields.text(calls[0], "id") if isinstance(calls[0], dict) else ""
        message = from_chat_dict({"role": "tool", "tool_call_id": first, "content": content}, **about)
    elif role == "tool-response":
        message = from_chat_dict({"role": "user", "content": content}, **about, speaker=Speaker.TOOL)
    else:
        message = from_chat_dict({"role": role, "content": content}, **about)
    yield from writer.say(message, item.origin(), counted=1)
