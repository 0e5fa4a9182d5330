"""mini-SWE-agent trajectories: one JSON object with chat completions, and beside each message what the harness knows of it.

Read from trajectories of format `mini-swe-agent-1.1` (SWE-agent/mini-swe-agent, docs/usage/output_files.md). The last message has the
role `exit`: it is no words of anyone, but says how the run ended; the call that submitted the work has no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin
from palaver.formats.events import Branch, Conversation, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.lists import (
    TOOLS_RECORD,
    Item,
    Lane,
    ListCalls,
    bad_record,
    clean,
    guarded,
    run_key,
    see_calls,
    toolset,
    value_of,
    word,
)
from palaver.formats.sources import Member, Source
from palaver.formats.stubs import Stubs
from palaver.log import Custom, ErrorEntry
from palaver.messages import Message, Role, Usage, from_chat_dict, stop_reason_of

NAME = "mini-swe-agent"
_MARK = "trajectory_format"
_KEPT = ("exit_status", "mini_version", "model_stats")
_READ = frozenset({"response", "cost", "timestamp", "actions", "raw_output"})
"""Fields of `extra` that the message holds already, or that are read into it."""


class MiniSweAgent:
    """mini-SWE-agent trajectories."""

    name = NAME
    title = "mini-SWE-agent"
    signs = "a JSON object with trajectory_format mini-swe-agent-1.x, or info.mini_version and messages"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it is a mini-SWE-agent trajectory."""
        opening = source.opening
        if fields.text(opening.fields, _MARK).startswith(NAME) or fields.mapping(opening.fields, "info").get(
            "mini_version"
        ):
            return 1.0
        said = fields.objects(opening.fields, "messages")
        return 0.9 if any("actions" in fields.mapping(one, "extra") and "role" in one for one in said) else 0.0

    def read(self, source: Source) -> Iterator[Event]:
        """Read every file of the source as a run of its own."""
        for ordinal, member in enumerate(source.members):
            yield from _Run(member, ordinal).events()


class _Run:
    """One trajectory."""

    def __init__(self, member: Member, ordinal: int) -> None:
        self._member = member
        self._ordinal = ordinal
        self._about: dict[str, object] = {}
        self._stubs = Stubs()
        self._first: Mapping[str, object] = fields.NOTHING  # what stands beside the first answer
        self._started_at = 0.0
        self._losses: list[Loss] = []
        self._leftovers = Leftovers()

    def events(self) -> Iterator[Event]:
        """Give the run."""
        self._survey()
        info = fields.mapping(self._about, "info")
        instance = fields.text(self._about, "instance_id")
        key = run_key(fields.text(fields.mapping(self._first, "response"), "id"), _moment(self._first))
        yield Conversation(
            key=key,
            ordinal=self._ordinal,
            title=instance,
            workdir=fields.text(fields.mapping(fields.mapping(info, "config"), "environment"), "cwd"),
            model=fields.text(fields.mapping(self._first, "response"), "model"),
            started_at=self._started_at,
            main="main",
            metadata={name: clean(info[name]) for name in _KEPT if info.get(name) is not None},
        )
        yield Branch(dialog="main", owner=NAME)
        place = self._member.place("whole file")
        yield from self._losses
        lane = Lane(DialogWriter("main", NAME), ListCalls())
        yield from lane.declare(toolset((), self._stubs, self._started_at), Origin(TOOLS_RECORD, 0, b"", place))
        yield from self._stubs.losses(place)
        at = self._started_at
        for item in self._items():
            at = _when(item.value) or at
            yield from guarded(item.place, self._message(item, lane, key or NAME, at))
        self._leftovers.fields(f"info.{word(name)}" for name in info if name not in _KEPT)
        self._leftovers.fields(word(name) for name in self._about if name not in {"info", "instance_id", _MARK})
        yield from self._leftovers.losses(place)

    def _survey(self) -> None:
        """Read the file once for what is known of the whole only."""
        for part in self._member.parts(("messages",)):
            if isinstance(part, Loss):
                self._losses.append(part)
                continue
            place = self._member.place(part.path)
            value, losses = value_of(part, place)
            self._losses.extend(losses)
            if part.key != "messages":
                self._about[part.key] = value
            elif part.nth < 0:
                self._losses.append(bad_record(place, "no list of messages"))
            else:
                see_calls(self._stubs, value)
                self._started_at = self._started_at or _when(value)
                self._first = self._first or _answered(value)

    def _items(self) -> Iterator[Item]:
        ordinal = 0
        for part in self._member.parts(("messages",)):
            if isinstance(part, Loss) or part.key != "messages" or part.nth < 0:
                continue
            place = self._member.place(part.path)
            value, losses = value_of(part, place)
            if part.whole and not (value is None and losses):
                yield Item(ordinal, place, value)
            ordinal += 1

    def _message(self, item: Item, lane: Lane, key: str, at: float) -> Iterator[Event]:
        value = item.value
        if not isinstance(value, dict):
            yield bad_record(item.place, "no message")
            return
        extra = fields.mapping(value, "extra")
        if value.get("role") == "exit":
            yield lane.put(_ending(value, extra, at), item.origin(), counted=1)
            return
        response = fields.mapping(extra, "response")
        told = {name: one for name, one in value.items() if name != "extra" and one is not None}
        self._leftovers.fields(f"extra.{name}" for name in ("raw_output", "actions") if extra.get(name))
        if response:
            self._leftovers.fields(["extra.response"])
        about: dict[str, Any] = {
            "id": f"{key}:{item.ordinal}",
            "timestamp": at,
            "metadata": {name: clean(one) for name, one in extra.items() if name not in _READ},
            **_answer(response, extra),
        }
        message = from_chat_dict(told, **about)
        yield from lane.say(_failed(message, extra), item.origin())


def _answer(response: Mapping[str, object], extra: Mapping[str, object]) -> dict[str, Any]:
    """Give what the provider's response says of the message that was read from it."""
    if not response:
        return {}
    choice = next(iter(fields.objects(response, "choices")), fields.NOTHING)
    cost = extra.get("cost")
    dollars = {"cost": cost} if isinstance(cost, int | float) and cost else {}
    return {
        "model": fields.text(response, "model") or None,
        "response_id": fields.text(response, "id") or None,
        "usage": Usage({**fields.mapping(response, "usage"), **dollars}),
        "stop_reason": stop_reason_of(fields.text(choice, "finish_reason") or None),
    }


def _failed(message: Message, extra: Mapping[str, object]) -> Message:
    """Mark the result of a command that the harness could not run; a command that ended with an error did run."""
    if message.role is not Role.TOOL or not extra.get("exception_info"):
        return message
    return message.model_copy(
        update={"contents": tuple(one.model_copy(update={"is_error": True}) for one in message.tool_results())}
    )


def _ending(value: Mapping[str, object], extra: Mapping[str, object], at: float) -> Custom | ErrorEntry:
    """Read how the run ended: an error where the harness failed, else a record of its own."""
    said = fields.text(value, "content")
    if extra.get("exception_str"):
        return ErrorEntry(error=said or word(extra.get("exit_status")), data=extra, at=at)
    return Custom(custom_type=f"{NAME}/exit", data={"content": said, **extra}, at=at)


def _answered(value: object) -> Mapping[str, object]:
    """Give what stands beside an answer of the model; empty for another message."""
    extra = fields.mapping(value, "extra") if isinstance(value, dict) else fields.NOTHING
    return extra if fields.mapping(extra, "response") else fields.NOTHING


def _when(value: object) -> float:
    return _moment(fields.mapping(value, "extra")) if isinstance(value, dict) else 0.0


def _moment(extra: Mapping[str, object]) -> float:
    return fields.moment(extra.get("timestamp"))
