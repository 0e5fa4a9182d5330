"""mini-SWE-agent trajectories: one JSON object with chat completions, and the harness's data in each message.

Based on trajectories of format `mini-swe-agent-1.1` (SWE-agent/mini-swe-agent, docs/usage/output_files.md). Where the model writes its
commands as text, the output comes back in the role `user`: a message of that role right after an answer without calls is the tool's.
The last message has the role `exit` and records how the run ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded
from palaver.formats.documents import Element
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, answer_fields, clean, run_key, torn, word
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, ErrorEntry
from palaver.messages import Message, Role, Speaker, from_chat_dict

NAME = "mini-swe-agent"
_MARK = "trajectory_format"
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
        """Read each file of the source as a separate run."""
        for ordinal, member in enumerate(source.members):
            yield from _TrajectoryReader(member, ordinal).events()


class _TrajectoryReader:
    """Turns one trajectory into events."""

    def __init__(self, member: Member, ordinal: int) -> None:
        self._member = member
        self._ordinal = ordinal
        self._about: dict[str, object] = {}
        self._first: Mapping[str, object] = NOTHING  # the harness's data of the first answer
        self._started_at = 0.0
        self._answered = False
        self._losses: list[Loss] = []
        self._unread = Unread(_KEYS)

    def events(self) -> Iterator[Event]:
        """Return the events of the run."""
        for element in without_losses(self._member.elements(("messages",)), self._losses):
            self._survey(element)
        info = fields.mapping(self._about, "info")
        response = fields.mapping(self._first, "response")
        key = run_key(fields.text(response, "id"), _moment(self._first))
        yield Conversation(
            key=key,
            ordinal=self._ordinal,
            title=fields.text(self._about, "instance_id"),
            workdir=fields.text(fields.mapping(fields.mapping(info, "config"), "environment"), "cwd"),
            model=fields.text(response, "model"),
            started_at=self._started_at,
            metadata={name: clean(info[name]) for name in _KEPT if info.get(name) is not None},
        )
        writer = DialogWriter("main", NAME)
        yield writer.branch(NAME)
        yield from self._losses
        at = self._started_at
        for element in without_losses(self._member.elements(("messages",)), []):
            if element.key == "messages" and element.nth >= 0 and element.whole:
                item = Item(element.nth, self._member.place(element.path), element.value)
                at = _when(item.value) or at
                yield from guarded(item.place, self._message(item, writer, key or NAME, at))
        self._unread.see(self._about, self._member.place("whole file"))
        yield from self._unread.losses()

    def _survey(self, element: Element) -> None:
        """Collect the facts about the whole run."""
        place = self._member.place(element.path)
        if element.key != "messages":
            self._about[element.key] = element.value
        elif element.nth < 0:
            self._losses.append(bad_record(place, "it is not a list of messages"))
        else:
            self._losses.extend(torn(element, place) if element.repairs else ())
            extra = _extra(element.value)
            self._started_at = self._started_at or _moment(extra)
            self._first = self._first or (extra if fields.mapping(extra, "response") else NOTHING)

    def _message(self, item: Item, writer: DialogWriter, key: str, at: float) -> Iterator[Event]:
        value = item.value
        if not isinstance(value, dict):
            yield bad_record(item.place, "it is not a message")
            return
        extra = _extra(value)
        self._unread.see(extra.get("response"), item.place, "response")
        if value.get("role") == "exit":
            self._unread.see(value, item.place, "exit")
            yield writer.put(_ending(value, extra, at), item.origin(), counted=1)
            return
        fields_of_chat = {name: field for name, field in value.items() if name != "extra" and field is not None}
        about: dict[str, Any] = {
            "id": f"{key}:{item.ordinal}",
            "timestamp": at,
            "metadata": {name: clean(field) for name, field in extra.items() if name not in _READ},
        }
        if response := fields.mapping(extra, "response"):
            about |= answer_fields(response, extra.get("cost"))
        if value.get("role") == "user" and self._answered:
            about["speaker"] = Speaker.TOOL
        message = from_chat_dict(fields_of_chat, **about)
        self._answered = message.role is Role.ASSISTANT and not message.is_function_call
        yield from writer.say(_failed(message, extra), item.origin(), counted=1)


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


def _extra(value: object) -> Mapping[str, object]:
    return fields.mapping(value, "extra") if isinstance(value, dict) else NOTHING


def _when(value: object) -> float:
    return _moment(_extra(value))


def _moment(extra: Mapping[str, object]) -> float:
    return fields.moment(extra.get("timestamp"))
