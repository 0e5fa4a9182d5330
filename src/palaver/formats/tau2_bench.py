"""τ²-bench results: simulations in which an agent and a simulated customer both call tools.

The customer's calls and their results are a dialog of their own: the agent never saw them. Read from the results that the benchmark's
repository publishes (sierra-research/tau2-bench) and its data model (`src/tau2/data_model`: Message, MultiToolMessage, SimulationRun).
"""

from __future__ import annotations

from collections import Counter
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
    declare,
    digest_of,
    guarded,
    see_calls,
    specs,
    toolset,
    unfold,
    word,
)
from palaver.formats.sources import Member, Source
from palaver.formats.splitting import Part
from palaver.formats.stubs import Stubs, no_instructions
from palaver.log import Instructions, ModelChange, Section, ToolSpec
from palaver.messages import (
    Message,
    Role,
    ToolMessage,
    ToolResultContent,
    Usage,
    from_chat_dict,
    stop_reason_of,
)
from palaver.messages.parts import calls_of, result_of

NAME = "tau2-bench"
AGENT, USER = "main", "user"
_OWNERS = {AGENT: "agent", USER: "user"}
_LISTS = ("simulations", "tasks")
_HASH = 12  # hexadecimal digits, for a simulation without an id
_BESIDE = frozenset(
    {"role", "content", "tool_calls", "reasoning", "timestamp", "cost", "usage", "raw_data", "id", "error"}
)
"""Fields of a message that are read, or that repeat others (`raw_data`: the message in the words of the client that sent it)."""

_READ_OF_INFO = frozenset({"agent_info", "user_info", "environment_info"})

_TAKEN = frozenset(Message.model_fields) | {"content", "tool_calls", "tool_call_id", "function_calls"}
"""Words that mean something else to a message of ours."""


class Tau2Bench:
    """τ²-bench results: one conversation a simulation."""

    name = NAME
    title = "τ²-bench results"
    signs = "a JSON object with info, tasks and simulations, each with messages"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it holds τ²-bench simulations."""
        opening = source.opening
        info = fields.mapping(opening.fields, "info")
        if "environment_info" in info and "agent_info" in info:
            return 1.0
        runs = fields.objects(opening.fields, "simulations")
        return 1.0 if any("task_id" in run and isinstance(run.get("messages"), list) for run in runs) else 0.0

    def read(self, source: Source) -> Iterator[Event]:
        """Read every simulation as a conversation, one in memory at a time."""
        ordinal = 0
        for member in source.members:
            bench = _Bench(member)
            for part in member.parts(_LISTS):
                for event in (part,) if isinstance(part, Loss) else bench.part(part, ordinal):
                    ordinal += isinstance(event, Conversation)
                    yield event
            yield from bench.leftovers.losses(member.place("whole file"))


class _Bench:
    """One file of results: what holds for all its simulations."""

    def __init__(self, member: Member) -> None:
        self.leftovers = Leftovers()
        self._member = member
        self._seen: Counter[str] = Counter()
        info = next(
            (part for part in member.parts(_LISTS) if isinstance(part, Part) and part.key == "info" and part.whole),
            None,
        )
        self.info = unfold(info, (), "info").value if info is not None else fields.NOTHING
        self.leftovers.fields(f"info.{word(name)}" for name in self.info if name not in _READ_OF_INFO)

    def part(self, part: Part, ordinal: int) -> Iterator[Event]:
        """Read a part of the file: a simulation, or what stands beside them."""
        if part.key == "simulations" and part.nth >= 0:
            yield from self._simulation(part, ordinal)
        elif part.key == "simulations":
            yield bad_record(self._member.place(part.path), "no list of simulations")
        elif part.key == "tasks":
            self.leftovers.record("task", "what the customer was told to do, and what was checked")
        elif part.key != "info":
            self.leftovers.fields([word(part.key)])

    def _simulation(self, part: Part, ordinal: int) -> Iterator[Event]:
        place = self._member.place(part.path)
        found = unfold(part, ("messages",), place)
        if found.value and (not found.torn or fields.items(found.value, "messages")):
            yield from self._conversation(found.value, place, ordinal)
        yield from found.losses

    def _conversation(self, run: Mapping[str, object], place: str, ordinal: int) -> Iterator[Event]:
        key = fields.text(run, "id") or self._made_up(run)
        self._seen[key] += 1
        key = f"{key}:{self._seen[key]}" if self._seen[key] > 1 else key
        about = {word(name): clean(item) for name, item in run.items() if name != "messages"}
        environment = fields.mapping(self.info, "environment_info")
        model = fields.text(fields.mapping(self.info, "agent_info"), "llm")
        trial = run.get("trial")
        yield Conversation(
            key=key,
            ordinal=ordinal,
            title=f"task {word(run.get('task_id'))}" + ("" if trial is None else f", trial {word(trial)}"),
            model=model,
            started_at=fields.moment(run.get("start_time")) or fields.moment(run.get("timestamp")),
            main=AGENT,
            metadata={**about, "domain": fields.text(environment, "domain_name")},
        )
        yield from _Simulation(self.info, run, key, place, self.leftovers).events()

    @staticmethod
    def _made_up(run: Mapping[str, object]) -> str:
        own = [run.get("task_id"), run.get("trial"), run.get("seed"), run.get("start_time")]
        return f"{word(run.get('task_id'))}:{digest_of(own).hex()[:_HASH]}"


class _Simulation:
    """One simulation on its way into two dialogs: the agent's at once, the customer's after it."""

    def __init__(
        self, info: Mapping[str, object], run: Mapping[str, object], key: str, place: str, leftovers: Leftovers
    ) -> None:
        self._info = info
        self._run = run
        self._key = key
        self._place = place
        self._leftovers = leftovers
        self._at = fields.moment(run.get("start_time"))
        calls = ListCalls()
        self._lanes = {side: Lane(DialogWriter(side, NAME), calls) for side in (AGENT, USER)}
        self._stubs = {AGENT: Stubs(), USER: Stubs()}
        self._owner_of: dict[str, str] = {}
        self._later: list[Event] = []

    def events(self) -> Iterator[Event]:
        """Give the simulation."""
        said = self._run.get("messages")
        messages: list[Any] = said if isinstance(said, list) else []
        if said is None or isinstance(said, list):
            for message in messages:
                self._survey(message)
        else:
            yield bad_record(f"{self._place}.messages", "no list of messages")
        yield Branch(dialog=AGENT, owner=_OWNERS[AGENT])
        yield from self._preamble(AGENT, "policy", fields.mapping(self._info, "environment_info"), "policy")
        for number, value in enumerate(messages):
            item = Item(number, f"{self._place}.messages[{number}]", value)
            yield from guarded(item.place, self._message(item))
        if self._later:
            yield Branch(dialog=USER, parent=AGENT, owner=_OWNERS[USER], relation="subagent")
            yield from self._later

    def _survey(self, message: object) -> None:
        if not isinstance(message, dict):
            return
        side = USER if message.get("role") == "user" else AGENT
        see_calls(self._stubs[side], message)
        for call in fields.objects(message, "tool_calls"):
            self._owner_of.setdefault(fields.text(call, "id"), side)

    def _preamble(self, side: str, name: str, about: Mapping[str, object], field: str) -> Iterator[Event]:
        """Put what holds from the beginning: instructions, tools, the model."""
        lane, place = self._lanes[side], f"{self._place} ({side})"
        text = fields.text(about, field)
        if text:
            told = Instructions(sections=(Section(name=name, text=text),), at=self._at)
            yield lane.put(told, Origin(name, 0, digest_of(text), place))
        else:
            yield no_instructions(place)
        declared = self._declared(side)
        declare(self._stubs[side], declared)
        tools = toolset(declared, self._stubs[side], self._at)
        yield from lane.declare(tools, Origin(TOOLS_RECORD, 0, b"", place), known=bool(declared))
        yield from self._stubs[side].losses(place)
        model = fields.text(fields.mapping(self._info, "agent_info" if side == AGENT else "user_info"), "llm")
        if model:
            yield lane.put(ModelChange(model=model, at=self._at), Origin("model", 0, digest_of(model), place))

    def _declared(self, side: str) -> tuple[ToolSpec, ...]:
        """Give the declarations of the agent's tools, where the results hold them: a list, or an object by name."""
        found = fields.mapping(self._info, "environment_info").get("tool_defs")
        if isinstance(found, dict):
            found = [
                {"name": name, **tool} if "function" not in tool else tool
                for name, tool in found.items()
                if isinstance(tool, dict)
            ]
        return specs(found) if side == AGENT else ()

    # --- messages -------------------------------------------------------------------------------------------------------

    def _message(self, item: Item) -> Iterator[Event]:
        value = item.value
        if not isinstance(value, dict):
            yield bad_record(item.place, "no message")
            return
        nested = value.get("tool_messages")
        if isinstance(nested, list):
            outer = {"timestamp": value.get("timestamp")}
            for number, inner in enumerate(nested):
                yield from self._result({**outer, **inner} if isinstance(inner, dict) else inner, item, number)
        elif value.get("role") == "tool":
            yield from self._result(value, item)
        else:
            yield from self._said(value, item)

    def _result(self, value: object, item: Item, nth: int = 0) -> Iterator[Event]:
        if not isinstance(value, dict):
            yield bad_record(item.place, "no result of a tool")
            return
        call = fields.text(value, "id") or fields.text(value, "tool_call_id")
        side = {"user": USER, "assistant": AGENT}.get(str(value.get("requestor")), self._owner_of.get(call, AGENT))
        result = ToolResultContent(
            id=call, content=result_of(value.get("content")), is_error=value.get("error") is True
        )
        about: dict[str, Any] = {**_extra(value), "id": self._id(item, nth), "timestamp": self._when(value)}
        yield from self._say(side, ToolMessage.from_dict({"contents": (result,), **about}), item, nth)

    def _said(self, value: Mapping[str, Any], item: Item) -> Iterator[Event]:
        """Read what a side said and called; the customer's words are the agent's to hear, its calls are its own."""
        mine = value.get("role") != "user"
        calls = calls_of(value.get("tool_calls"))
        words = {name: value.get(name) for name in ("role", "content")}
        thought = fields.text(value, "reasoning")
        if mine and thought:
            words["reasoning_content"] = thought
        raw = fields.mapping(value, "raw_data")
        if raw:
            self._leftovers.fields(["raw_data"])
        told: dict[str, Any] = {
            **_extra(value),
            "timestamp": self._when(value),
            "usage": _usage(value),
            "stop_reason": stop_reason_of(fields.text(raw, "finish_reason") or None),
        }
        if thought and not mine:
            told["reasoning"] = thought
        if value.get("id") is not None:
            told["source_id"] = value["id"]
        message = from_chat_dict(words, id=self._id(item), **told)
        if mine:
            message = message.model_copy(update={"contents": (*message.contents, *calls)})
            yield from self._say(AGENT, message, item)
            return
        heard = bool(message.contents) or not calls
        if heard:
            yield from self._say(AGENT, message, item)
        if calls:
            acted = {**told, "source_role": "user", "id": self._id(item, int(heard))}
            acted["usage"] = Usage() if heard else told["usage"]
            yield from self._say(
                USER, Message.from_dict({"role": Role.ASSISTANT, "contents": calls, **acted}), item, int(heard)
            )

    def _say(self, side: str, message: Message, item: Item, nth: int = 0) -> Iterator[Event]:
        """Put a message; the first one of a record counts."""
        events = self._lanes[side].say(message, item.origin(), counted=int(not nth))
        if side == AGENT:
            yield from events
            return
        if not self._later:
            about = fields.mapping(self._info, "user_info")
            self._later.extend(self._preamble(USER, "guidelines", about, "global_simulation_guidelines"))
        self._later.extend(events)

    def _id(self, item: Item, nth: int = 0) -> str:
        return f"{self._key}:{item.ordinal}" + (f".{nth}" if nth else "")

    def _when(self, value: Mapping[str, Any]) -> float:
        return fields.moment(value.get("timestamp")) or self._at


def _extra(value: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: item for name, item in value.items() if name not in _BESIDE and item is not None}
    return {f"source_{name}" if name in _TAKEN else name: item for name, item in kept.items()}


def _usage(value: Mapping[str, Any]) -> Usage:
    """Give what a call used, with its dollars; a message that no model wrote used nothing."""
    cost = value.get("cost")
    dollars = {"cost": cost} if isinstance(cost, int | float) and cost else {}
    return Usage({**fields.mapping(value, "usage"), **dollars})
