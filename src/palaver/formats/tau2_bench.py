"""τ²-bench results: simulations in which an agent and a simulated customer both call tools.

The customer's calls and their results are a separate dialog, which the agent never saw. Based on the results that the benchmark's
repository publishes (sierra-research/tau2-bench) and its data model (`src/tau2/data_model`: Message, MultiToolMessage, SimulationRun).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import CallLog, DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Branch, Conversation, Event, Loss
from palaver.formats.lists import (
    Item,
    clean,
    declare,
    digest_of,
    document_parts,
    instruct,
    numbered,
    priced,
    torn,
    word,
)
from palaver.formats.sources import Member, SourceFile
from palaver.formats.tau_bench import run_name, run_title
from palaver.formats.unread import Unread
from palaver.messages import (
    Message,
    Role,
    ToolMessage,
    ToolResultContent,
    Usage,
    from_chat_dict,
    stop_reason_of,
)
from palaver.messages.forms import calls_of, extra_fields, result_of

NAME = "tau2-bench"
AGENT, USER = "main", "user"
_OWNERS = {AGENT: "agent", USER: "user"}
_LISTS = ("simulations", "tasks")
_READ = frozenset(
    {
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "reasoning",
        "timestamp",
        "cost",
        "usage",
        "raw_data",
        "id",
        "error",
    }
)
"""Fields of a message that are read, or that repeat others (`raw_data`: the message in the client's own format)."""
_KEYS = {
    "": "info simulations tasks timestamp",
    "info": "agent_info environment_info git_commit max_errors max_steps num_trials seed user_info",
    "info.agent_info": "implementation llm llm_args",
    "info.environment_info": "domain_name policy tool_defs",
    "info.user_info": "global_simulation_guidelines implementation llm llm_args",
    "results": "role timestamp tool_messages turn_idx",
}
"""The keys of objects that are not kept whole."""


class Tau2Bench:
    """τ²-bench results: one conversation per simulation."""

    name = NAME
    title = "τ²-bench results"
    signs = "a JSON object with info, tasks and simulations, each with messages"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it contains τ²-bench simulations, from 0.0 to 1.0."""
        opening = source.opening.fields
        info = fields.mapping(opening, "info")
        runs = fields.objects(opening, "simulations")
        known = any("task_id" in run and isinstance(run.get("messages"), list) for run in runs)
        return 1.0 if known or ("environment_info" in info and "agent_info" in info) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every simulation as a conversation, one in memory at a time."""
        ordinal, member, seen, unread = 0, source.member, Counter[str](), Unread(_KEYS)
        info = _info(member)
        unread.see({"info": info}, member.place("info"))
        for element in member.elements(_LISTS):
            if isinstance(element, Loss):
                yield element
            elif element.key == "simulations":
                place = member.place(element.path)
                run = element.value if isinstance(element.value, dict) else NOTHING
                read = run is element.value and (element.whole or bool(fields.items(run, "messages")))
                if read:
                    yield from _Simulation(info, run, place, seen, unread).events(ordinal)
                    ordinal += 1
                elif element.whole:
                    yield bad_record(place, "it is not a simulation")
                yield from torn(element, place, read=read)
            elif element.key == "tasks":
                unread.skip("task", "the customer's instructions, and the checks", member.place(element.path))
            else:
                unread.see({element.key: element.value}, member.place(element.path))
        yield from unread.losses()


def _info(member: Member) -> Mapping[str, object]:
    """Return the data that applies to all simulations of a file."""
    for part in document_parts(member, _LISTS):
        if isinstance(part, Item) and part.key == "info":
            return part.fields
    return NOTHING


class _Simulation:
    """One simulation as two dialogs: first the agent's, then the customer's."""

    def __init__(
        self,
        info: Mapping[str, object],
        run: Mapping[str, object],
        place: str,
        seen: Counter[str],
        unread: Unread,
    ) -> None:
        self._info = info
        self._unread = unread
        self._run = run
        own = [run.get(name) for name in ("task_id", "trial", "seed", "start_time")]
        self._key = run_name(fields.text(run, "id"), run, own, seen)
        self._place = place
        self._at = fields.moment(run.get("start_time"))
        calls = CallLog()
        self._writers = {side: DialogWriter(side, NAME, calls) for side in (AGENT, USER)}
        self._side_of: dict[str, str] = {}
        self._later: list[Event] = []

    def events(self, ordinal: int) -> Iterator[Event]:
        """Return the events of the simulation."""
        run, environment = self._run, fields.mapping(self._info, "environment_info")
        about = {word(name): clean(item) for name, item in run.items() if name != "messages"}
        yield Conversation(
            key=self._key,
            ordinal=ordinal,
            title=run_title(run),
            model=fields.text(fields.mapping(self._info, "agent_info"), "llm"),
            started_at=self._at or fields.moment(run.get("timestamp")),
            main=AGENT,
            metadata={**about, "domain": fields.text(environment, "domain_name")},
        )
        if not isinstance(run.get("messages"), list):
            yield bad_record(f"{self._place}.messages", "it is not a list of messages")
        items = list(numbered(run.get("messages"), f"{self._place}.messages"))
        for item in items:
            side = USER if item.fields.get("role") == "user" else AGENT
            for call in fields.objects(item.fields, "tool_calls"):
                self._side_of.setdefault(fields.text(call, "id"), side)
        yield self._writers[AGENT].branch(_OWNERS[AGENT])
        yield from self._preamble(AGENT, "policy", environment, "policy")
        yield from guarded(self._place, self._tools(environment))
        for item in items:
            yield from guarded(item.place, self._message(item))
        if self._later:
            yield Branch(dialog=USER, parent=AGENT, owner=_OWNERS[USER], relation="subagent")
            yield from self._later

    def _preamble(self, side: str, name: str, about: Mapping[str, object], field: str) -> Iterator[Event]:
        """Put the initial instructions and model."""
        writer, place = self._writers[side], f"{self._place} ({side})"
        text = fields.text(about, field)
        yield from instruct(writer, text, self._at, Origin(name, 0, digest_of(text), place), name=name)
        if not text:
            yield no_instructions(place)
        model = fields.text(fields.mapping(self._info, "agent_info" if side == AGENT else "user_info"), "llm")
        yield from writer.use_model(model, "", self._at, Origin("model", 0, digest_of(model), place))

    def _tools(self, environment: Mapping[str, object]) -> Iterator[Event]:
        """Put the agent's tools, if the results declare them as a list, or as an object by name."""
        tools = environment.get("tool_defs")
        if isinstance(tools, dict):
            tools = [{"name": name, **tool} for name, tool in tools.items() if isinstance(tool, dict)]
        origin = Origin("tools", 0, digest_of(tools), f"{self._place} ({AGENT})")
        yield from declare(self._writers[AGENT], tools, self._at, origin)

    # --- messages -------------------------------------------------------------------------------------------------------

    def _message(self, item: Item) -> Iterator[Event]:
        value = item.expect()
        nested = value.get("tool_messages")
        if isinstance(nested, list):
            self._unread.see(value, item.place, "results")
            outer = {"timestamp": value.get("timestamp")}
            for number, inner in enumerate(nested):
                yield from self._result({**outer, **inner} if isinstance(inner, dict) else {}, item, number)
        elif value.get("role") == "tool":
            yield from self._result(value, item)
        else:
            yield from self._said(value, item)

    def _result(self, value: Mapping[str, Any], item: Item, nth: int = 0) -> Iterator[Event]:
        call = fields.text(value, "id") or fields.text(value, "tool_call_id")
        side = {"user": USER, "assistant": AGENT}.get(str(value.get("requestor")), self._side_of.get(call, AGENT))
        result = ToolResultContent(
            id=call, content=result_of(value.get("content")), is_error=value.get("error") is True
        )
        about = {**_extra(value), "id": self._id(item, nth), "timestamp": self._when(value)}
        yield from self._say(side, ToolMessage.from_dict({"contents": (result,), **about}), item, nth)

    def _said(self, value: Mapping[str, Any], item: Item) -> Iterator[Event]:
        """Read the text and calls of a side. The agent sees the customer's text, but not its calls."""
        mine = value.get("role") != "user"
        calls = calls_of(value.get("tool_calls"))
        words = {name: value.get(name) for name in ("role", "content")}
        thought = fields.text(value, "reasoning")
        if thought and mine:
            words["reasoning_content"] = thought
        reason = fields.text(fields.mapping(value, "raw_data"), "finish_reason")
        about: dict[str, Any] = {
            **_extra(value),
            **({"reasoning": thought} if thought and not mine else {}),
            **({"source_id": value["id"]} if value.get("id") is not None else {}),
            "timestamp": self._when(value),
            "usage": priced(fields.mapping(value, "usage"), value.get("cost")),
            "stop_reason": stop_reason_of(reason or None),
        }
        message = from_chat_dict(words, id=self._id(item), **about)
        if mine:
            whole = message.model_copy(update={"contents": (*message.contents, *calls)})
            yield from self._say(AGENT, whole, item)
            return
        spoken = bool(message.contents) or not calls
        if spoken:
            yield from self._say(AGENT, message, item)
        if calls:
            usage = Usage() if spoken else about["usage"]
            acted = {**about, "usage": usage, "source_role": "user", "id": self._id(item, int(spoken))}
            act = Message.from_dict({"role": Role.ASSISTANT, "contents": calls, **acted})
            yield from self._say(USER, act, item, int(spoken))

    def _say(self, side: str, message: Message, item: Item, nth: int = 0) -> Iterator[Event]:
        """Put a message; the first one of a record counts."""
        events = self._writers[side].say(message, item.origin(), counted=int(not nth))
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
    return extra_fields(Message, {name: item for name, item in value.items() if name not in _READ and item is not None})
