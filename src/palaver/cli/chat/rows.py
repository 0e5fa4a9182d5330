"""The events of a turn as a program sees them: the fields of one JSON object each, beside its `type`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from palaver.agent import AgentCallSession, AgentEvent, CallEnded, Compacted
from palaver.cli.bill import bill_of
from palaver.messages import ToolCallContent, thaw

__all__ = ["event_row"]

_TEXT = 100_000
"""Characters of a tool's result in a row; the log has all of it."""

Fields = dict[str, Any]


def event_row(event: AgentEvent) -> Fields:
    """Give the fields of an event."""
    return _FIELDS[event.type](event)


def _call(call: ToolCallContent) -> Fields:
    return {"id": call.id, "name": call.name, "arguments": thaw(call.args)}


def _ended(event: CallEnded) -> Fields:
    text = event.result.text()
    cut = {"characters": len(text)} if len(text) > _TEXT else {}
    return {
        "id": event.call.id,
        "name": event.call.name,
        "ending": event.ending,
        "seconds": round(event.seconds, 3),
        "is_error": event.result.is_error,
        "text": text[:_TEXT],
        **cut,
    }


def _compacted(event: Compacted) -> Fields:
    said = ("tokens_before", "tokens_after", "policy", "trigger", "why", "summarizer", "refused")
    bill = bill_of(event.usages, event.summarizer)
    cost = {"read": bill.read, "written": bill.written, "dollars": bill.dollars}
    return {**{name: getattr(event, name) for name in said}, "cost": cost}


def _finished(session: AgentCallSession) -> Fields:
    cost = session.cost
    return {
        "state": session.state,
        "text": None if session.delivery is None else session.delivery.text_content(),
        "cost": {"read": cost.prompt_tokens, "written": cost.completion_tokens, "dollars": cost.cost},
        "waiting": [call.id for call in session.waiting],
    }


_FIELDS: Mapping[str, Callable[[Any], Fields]] = MappingProxyType(
    {
        "text": lambda event: {"text": event.text},
        "thinking": lambda event: {"text": event.text},
        "tool_call": lambda event: {name: getattr(event, name) for name in ("index", "id", "name", "arguments")},
        "block": lambda event: {"block": event.block.type},
        "usage": lambda event: {"usage": thaw(event.usage)},
        "end": lambda event: {
            "text": event.message.text_content(),
            "stop_reason": str(event.message.stop_reason or ""),
        },
        "asking": lambda event: {"model": event.request.model},
        "delivered": lambda event: {"text": event.message.text_content()},
        "call_starting": lambda event: _call(event.call),
        "call_progress": lambda event: {
            "id": event.call_id,
            "text": event.message,
            "done": event.done,
            "total": event.total,
        },
        "call_ended": _ended,
        "answer_refused": lambda event: {"error": {"message": event.error}},
        "retrying": lambda event: {
            "error": {"kind": type(event.error).__name__, "message": event.error.message},
            "wait": event.wait,
        },
        "compacted": _compacted,
        "quarantined": lambda event: {"handle": event.handle, "reason": event.reason},
        "decision_awaited": lambda event: {"calls": [_call(call) for call in event.calls]},
        "turn_finished": lambda event: _finished(event.session),
    }
)
"""What an object says beside its type; a test holds the table to the union of events."""
