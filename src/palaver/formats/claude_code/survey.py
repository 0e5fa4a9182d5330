"""The first reading of a Claude Code session: what must be known of the whole file before its first record can be placed.

A few hundred bytes for each record of the chain are kept, and nothing of what was said.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from hashlib import sha256

from palaver.formats import fields
from palaver.formats.claude_code.names import CHAIN, HARNESS_SAID, MESSAGES, SYNTHETIC
from palaver.formats.events import Loss
from palaver.formats.records import Record, readable
from palaver.formats.stubs import Stubs

ROOT = -1
"""The parent of a record that has none."""

MAIN = "main"
"""The lane of the conversation itself; a sub-agent's lane is named after the agent."""


class Survey:
    """What the first reading found.

    Records of the chain are nodes, numbered in the order of the file; a node's parent always has a smaller number.

    Attributes:
        nodes: The node of each record id.
        ordinals: The record number of each node.
        parents: The parent of each node, or `ROOT`.
        lanes: The number of the lane that each node belongs to.
        prompts: 1 for each node at which the user spoke.
        lane_names: The names of the lanes; the first is `MAIN`.
        lane_numbers: The number of each lane.
        last_fragment: The record number of the last fragment of each response.
        started_by: For each sub-agent's lane, the id of the call that started it, where it is known.
        prompted: For each lane of a sub-agent, SHA-256 of the words it began with.
        callers: The node of the record that holds each call that may start a sub-agent.
        agents: The kind of sub-agent that such a call asked for.
        stubs: For each lane, the calls seen.
        losses: What was wrong with the file.
        doubled: Ids that several records have.
        about: What the file says of the whole session.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, int] = {}
        self.ordinals = array("q")
        self.parents = array("q")
        self.lanes = array("q")
        self.prompts = bytearray()
        self.lane_names: list[str] = [MAIN]
        self.last_fragment: dict[str, int] = {}
        self.started_by: dict[str, str] = {}
        self.prompted: dict[str, str] = {}
        self.callers: dict[str, int] = {}
        self.agents: dict[str, str] = {}
        self.stubs: dict[int, Stubs] = {}
        self.losses: list[Loss] = []
        self.doubled: set[str] = set()
        self.about = About()
        self._newest = [ROOT]
        self.lane_numbers: dict[str, int] = {MAIN: 0}
        self._asked: dict[bytes, str] = {}

    def read(self, found: Iterator[Record | Loss]) -> None:
        """Read the whole file."""
        for record in readable(found, self.losses):
            self._take(record)

    def _take(self, record: Record) -> None:
        value = record.value
        self.about.take(value)
        kind = fields.text(value, "type")
        if kind not in CHAIN:
            return
        key = record_id(record)
        if key in self.nodes:
            self.doubled.add(key)
            return
        lane = self._lane(value, key)
        self._add(record, key, lane)
        if kind in MESSAGES:
            self._message(value, record.ordinal, lane)
        elif kind == "progress":
            self._progress(value, record.ordinal)

    def _add(self, record: Record, key: str, lane: int) -> None:
        node = len(self.ordinals)
        parent = self._parent(record, lane)
        self.nodes[key] = node
        self.ordinals.append(record.ordinal)
        self.parents.append(parent)
        self.lanes.append(lane)
        self.prompts.append(is_prompt(record.value))
        self._newest[lane] = node

    def _lane(self, value: Mapping[str, object], key: str) -> int:
        """Find the lane: a sidechain record belongs to its agent, or to its parent's lane, or begins a lane of its own."""
        if not value.get("isSidechain"):
            return 0
        agent = fields.text(value, "agentId")
        parent = self.nodes.get(fields.text(value, "parentUuid"), ROOT)
        if not agent and parent != ROOT and self.lanes[parent]:
            return self.lanes[parent]
        return self._open(f"agent:{agent}" if agent else f"side:{key}", fields.mapping(value, "message").get("content"))

    def _open(self, name: str, prompt: object) -> int:
        """Give the lane of this name; a new one was started by the newest call that asked for just that."""
        if name not in self.lane_numbers:
            self.lane_numbers[name] = len(self.lane_names)
            self.lane_names.append(name)
            self._newest.append(ROOT)
            if words := plain(prompt):
                self.prompted[name] = sha256(words.encode(errors="replace")).hexdigest()
            if call := self._asked.pop(_digest(plain(prompt)), ""):
                self.started_by[name] = call
        return self.lane_numbers[name]

    def _parent(self, record: Record, lane: int) -> int:
        """Find the parent; where the file does not hold it, the record follows what came before it in its lane."""
        named = fields.text(record.value, "parentUuid")
        if not named:
            logical = fields.text(record.value, "logicalParentUuid")
            return self._known(logical, lane, self._newest[lane]) if logical else ROOT
        if named not in self.nodes:
            reason = (
                f"Its parent {named[:40]} does not stand before it in the file; it was put after the record before it."
            )
            self.losses.append(Loss(place=record.place, reason=reason, code="dangling_parent"))
        return self._known(named, lane, self._newest[lane])

    def _known(self, key: str, lane: int, otherwise: int) -> int:
        """Give the node of this id if it is in the lane: no conversation goes on from within another one."""
        found = self.nodes.get(key, ROOT)
        return found if found != ROOT and self.lanes[found] == lane else otherwise

    def _message(self, value: Mapping[str, object], ordinal: int, lane: int) -> None:
        message = fields.mapping(value, "message")
        response = fields.text(message, "id")
        if response and value.get("type") == "assistant":
            self.last_fragment[response] = ordinal
        for block in fields.objects(message, "content"):
            if block.get("type") == "tool_use":
                self._call(block, lane)

    def _call(self, block: Mapping[str, object], lane: int) -> None:
        arguments = fields.mapping(block, "input")
        self.stubs.setdefault(lane, Stubs()).see(fields.text(block, "name"), arguments)
        prompt, call = fields.text(arguments, "prompt"), fields.text(block, "id")
        if prompt and call:
            self.callers[call] = len(self.ordinals) - 1
            self.agents[call] = fields.text(arguments, "subagent_type")
            self._asked[_digest(prompt)] = call

    def _progress(self, value: Mapping[str, object], ordinal: int) -> None:
        """Take notice of what a sub-agent said, which newer versions record within the progress of the call."""
        inner = agent_message(value)
        if inner is None:
            return
        name = agent_lane(value)
        lane = self._open(name, None)
        if call := fields.text(value, "parentToolUseID"):
            self.started_by.setdefault(name, call)
        self._message(inner, ordinal, lane)


class About:
    """What a session's records say of the whole session: the first word counts, except for titles."""

    def __init__(self) -> None:
        self.session = ""
        self.started_at = 0.0
        self.first: dict[str, str] = {}
        self._titles: dict[str, str] = {}

    def take(self, value: Mapping[str, object]) -> None:
        """Take notice of a record."""
        if not self.session or not self.started_at or len(self.first) < len(_FIRST):
            self.session = self.session or fields.text(value, "sessionId")
            self.started_at = self.started_at or fields.moment(value.get("timestamp"))
            for name in _FIRST:
                if name not in self.first and (said := fields.text(value, name)):
                    self.first[name] = said
        if value.get("type") == "assistant" and "model" not in self.first:
            model = fields.text(fields.mapping(value, "message"), "model")
            if model and model != SYNTHETIC:
                self.first["model"] = model
        for name in _TITLES.get(fields.text(value, "type"), ()):
            if said := fields.text(value, name):
                self._titles[name] = said

    @property
    def title(self) -> str:
        """The newest title: the user's before the harness's, a summary at last."""
        return next((self._titles[name] for name in ("customTitle", "aiTitle", "summary") if name in self._titles), "")


_FIRST = ("cwd", "gitBranch", "version")
_TITLES = {"custom-title": ("customTitle",), "ai-title": ("aiTitle",), "summary": ("summary",)}


def record_id(record: Record) -> str:
    """Give a record's identity: its own id, or its number in the file."""
    return fields.text(record.value, "uuid") or str(record.ordinal)


def agent_message(value: Mapping[str, object]) -> Mapping[str, object] | None:
    """Give the message of a sub-agent within a progress record, or None."""
    data = fields.mapping(value, "data")
    if data.get("type") != "agent_progress" or not fields.text(data, "agentId"):
        return None
    inner = fields.mapping(data, "message")
    return inner if fields.text(inner, "type") in MESSAGES else None


def agent_lane(value: Mapping[str, object]) -> str:
    """Name the lane of the sub-agent whose message a progress record holds."""
    return f"agent:{fields.text(fields.mapping(value, 'data'), 'agentId')}"


def plain(content: object) -> str:
    """Give a message's content when it is text alone, else an empty string."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        return fields.text(content[0], "text")
    return ""


def is_prompt(value: Mapping[str, object]) -> bool:
    """Tell whether the user spoke here; a record that answers a call does not count, even if the user added words to it."""
    if value.get("type") != "user" or value.get("isMeta") or value.get("isCompactSummary"):
        return False
    content = fields.mapping(value, "message").get("content")
    if isinstance(content, str):
        return bool(content)
    kinds = (
        {fields.text(block, "type") for block in content if isinstance(block, dict)}
        if isinstance(content, list)
        else set()
    )
    return bool(kinds) and "tool_result" not in kinds


def said_by_harness(value: Mapping[str, object]) -> bool:
    """Tell whether the harness wrote a user record."""
    content = fields.mapping(value, "message").get("content")
    first = content[0] if isinstance(content, list) and content else None
    words = content if isinstance(content, str) else fields.text(first, "text") if isinstance(first, dict) else ""
    return bool(value.get("isMeta")) or words.startswith(HARNESS_SAID)


def _digest(text: str) -> bytes:
    return sha256(text.encode(errors="replace")).digest()[:16]
