"""mini-SWE-agent trajectories: one JSON object with chat completions, and the harness's data in each message.

Based on trajectories of format `mini-swe-agent-1.1` (SWE-agent/mini-swe-agent, docs/usage/output_files.md). Where the model writes its
commands as text, the output comes back in the role `user`: a message of that role right after an answer without calls is the tool's.
The last message has the role `exit` and records how the run ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, guarded
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, answer_fields, clean, listed, run_key, word
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, ErrorEntry
from palaver.messages import Message, Role, Speaker, from_chat_dict

NAME = "mini-swe-agent"
_MARK = "trajectory_format"
_LISTS = ("messages",)
_KEPT = ("exit_status", "mini_version", "model_stats")
_READ = frozenset({"response", "cost", "timestamp", "actions", "raw_output"})
"""Fields of `extra` that the message already has, or that are read into it."""
_KEYS = {
    "": "info instance_id trajectory_format",
    "info": "config exception_str exit_status mini_version model_stats submission traceback",
    "exit": "content extra role",
    "response": "choices created id model object service_tier system_fingerprint usage",
    "response.choices": "finish_reason index message provider_specific_fields",
    "response.choices.message": "annotations content function_call provider_specific_fields reasoning_content role tool_calls",
}
"""The keys of objects that are not kept whole. An answer repeats its message, and the last message repeats how the run ended."""


class MiniSweAgent:
    """mini-SWE-agent trajectories."""

    name = NAME
    title = "mini-SWE-agent"
    signs = "a JSON object with trajectory_format mini-swe-agent-1.x, or info.mini_version and messages"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a mini-SWE-agent trajectory, from 0.0 to 1.0."""
        opening = source.opening.fields
        if fields.text(opening, _MARK).startswith(NAME) or fields.mapping(opening, "info").get("mini_version"):
            return 1.0
        messages = fields.objects(opening, "messages")
        return 0.9 if any("role" in said and "actions" in fields.mapping(said, "extra") for said in messages) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a run."""
        return _run(source.member)


def _run(member: Member) -> Iterator[Event]:
    about: dict[str, object] = {}
    losses: list[Loss] = []
    started_at, response, key = 0.0, NOTHING, ""
    for item in listed(member, _LISTS, about, losses):
        extra = fields.mapping(item.fields, "extra")
        started_at = started_at or fields.moment(extra.get("timestamp"))
        if not response and (response := fields.mapping(extra, "response")):
            key = run_key(fields.text(response, "id"), fields.moment(extra.get("timestamp")))
    info = fields.mapping(about, "info")
    yield Conversation(
        key=key,
        title=fields.text(about, "instance_id"),
        workdir=fields.text(fields.mapping(fields.mapping(info, "config"), "environment"), "cwd"),
        model=fields.text(response, "model"),
        started_at=started_at,
        metadata={name: clean(info[name]) for name in _KEPT if info.get(name) is not None},
    )
    reading = _MessageReader(key or NAME, started_at)
    yield reading.writer.branch(NAME)
    yield from losses
    for item in listed(member, _LISTS):
        yield from guarded(item.place, reading.read(item))
    reading.unread.see(about, member.place("whole file"))
    yield from reading.unread.losses()


class _MessageReader:
    """Turns messages into entries.

    Attributes:
        writer: The dialog.
        unread: What is not read.
    """

    def __init__(self, key: str, at: float) -> None:
        self.writer = DialogWriter("main", NAME)
        self.unread = Unread(_KEYS)
        self._key = key
        self._at = at
        self._answered = False

    def read(self, item: Item) -> Iterator[Event]:
        """Read a message."""
        value = item.expect()
        extra = fields.mapping(value, "extra")
        self._at = at = fields.moment(extra.get("timestamp")) or self._at
        self.unread.see(extra.get("response"), item.place, "response")
        if value.get("role") == "exit":
            self.unread.see(value, item.place, "exit")
            yield self.writer.put(_ending(value, extra, at), item.origin(), counted=1)
            return
        fields_of_chat = {name: field for name, field in value.items() if name != "extra" and field is not None}
        about: dict[str, Any] = {
            "id": f"{self._key}:{item.ordinal}",
            "timestamp": at,
            "metadata": {name: clean(field) for name, field in extra.items() if name not in _READ},
        }
        if response := fields.mapping(extra, "response"):
            about |= answer_fields(response, extra.get("cost"))
        if value.get("role") == "user" and self._answered:
            about["speaker"] = Speaker.TOOL
        message = from_chat_dict(fields_of_chat, **about)
        self._answered = message.role is Role.ASSISTANT and not message.is_function_call
        yield from self.writer.say(_failed(message, extra), item.origin(), counted=1)


def _failed(message: Message, extra: Mapping[str, object]) -> Message:
    """Mark the result of a command that the harness could not run. A command that ended with an error did run."""
    if message.role is not Role.TOOL or not extra.get("exception_info"):
        return message
    results = tuple(result.model_copy(update={"is_error": True}) for result in message.tool_results())
    return message.model_copy(update={"contents": results})


def _ending(value: Mapping[str, object], extra: Mapping[str, object], at: float) -> Custom | ErrorEntry:
    """Read how the run ended: an error if the harness failed, or else a custom entry."""
    text = fields.text(value, "content")
    if extra.get("exception_str"):
        return ErrorEntry(error=text or word(extra.get("exit_status")), data=extra, at=at)
    return Custom(custom_type=f"{NAME}/exit", data={"content": text, **extra}, at=at)
