"""The first pass over a Claude Code session: collect the facts needed to place its first record.

It keeps a few hundred bytes for each record of the chain, and no content.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.claude_code.messages import CHAIN, MESSAGES, SNAPSHOT, SYNTHETIC, agent_message, is_prompt
from palaver.formats.events import Loss, without_losses
from palaver.formats.records import Record

ROOT = -1
"""The parent of a record without a parent."""

MAIN = "main"
"""The lane of the conversation itself; a sub-agent's lane is named after the agent."""


class ClaudeCodeSurvey:
    """The results of the first pass over the file.

    Records of the chain are nodes, numbered in the order of the file; a node's parent always has a smaller number.

    Attributes:
        nodes: The node of each record id.
        ordinals: The record number of each node.
        parents: The parent of each node, or `ROOT`.
        lane_of: The number of the lane of each node.
        prompts: 1 for each node that is a prompt of the user.
        lanes: The names of the lanes; the first is `MAIN`.
        last_fragment: The record number of the last fragment of each response.
        started_by: The id of the call that started each sub-agent's lane, if known.
        doubled: Ids that several records have.
        losses: The faults of the file.
        about: The facts about the whole session.
    """

    def __init__(self, records: Iterator[Record | Loss]) -> None:
        self.nodes: dict[str, int] = {}
        self.ordinals = array("q")
        self.parents = array("q")
        self.lane_of = array("q")
        self.prompts = bytearray()
        self.lanes: list[str] = [MAIN]
        self.last_fragment: dict[str, int] = {}
        self.started_by: dict[str, str] = {}
        self.doubled: set[str] = set()
        self.losses: list[Loss] = []
        self.about = About()
        self._newest = [ROOT]
        self._numbers: dict[str, int] = {MAIN: 0}
        for record in without_losses(records, self.losses):
            self._note(record)

    def lane(self, name: str) -> int:
        """Return the number of the lane of this name, opening a new one if necessary."""
        if name not in self._numbers:
            self._numbers[name] = len(self.lanes)
            self.lanes.append(name)
            self._newest.append(ROOT)
        return self._numbers[name]

    def _note(self, record: Record) -> None:
        value = record.value
        self.about.read(value)
        kind = fields.text(value, "type")
        if kind not in CHAIN:
            return
        key = record_id(record)
        if key in self.nodes:
            self.doubled.add(key)
            return
        lane = self._lane_of(value, key)
        self.parents.append(self._parent(record, lane))
        node = self.nodes[key] = len(self.ordinals)
        self.ordinals.append(record.ordinal)
        self.lane_of.append(lane)
        self.prompts.append(is_prompt(value))
        self._newest[lane] = node
        inner = agent_message(value) if kind == "progress" else None
        if inner is not None:
            self.lane(inner[0])
            if call := fields.text(value, "parentToolUseID"):
                self.started_by.setdefault(inner[0], call)
        self._link(value)
        message = value if kind in MESSAGES else inner[1] if inner is not None else {}
        response = fields.text(fields.mapping(message, "message"), "id")
        if response and message.get("type") == "assistant":
            self.last_fragment[response] = record.ordinal

    def _link(self, value: Mapping[str, object]) -> None:
        """Note the call that started a sub-agent; its result names the agent."""
        agent = fields.text(fields.mapping(value, "toolUseResult"), "agentId")
        blocks = fields.objects(fields.mapping(value, "message"), "content") if agent else ()
        for call in filter(None, (fields.text(block, "tool_use_id") for block in blocks)):
            self.started_by.setdefault(f"agent:{agent}", call)

    def _lane_of(self, value: Mapping[str, object], key: str) -> int:
        """Find the lane. A sidechain record belongs to its agent's or its parent's lane, or begins a new one."""
        if not value.get("isSidechain"):
            return 0
        agent = fields.text(value, "agentId")
        parent = self.nodes.get(fields.text(value, "parentUuid"), ROOT)
        if not agent and parent != ROOT and self.lane_of[parent]:
            return self.lane_of[parent]
        return self.lane(f"agent:{agent}" if agent else f"side:{key}")

    def _parent(self, record: Record, lane: int) -> int:
        """Find the parent. If the file lacks it, the record follows the previous record of its lane."""
        named = fields.text(record.value, "parentUuid") or fields.text(record.value, "logicalParentUuid")
        if not named:
            return ROOT
        if record.value.get("parentUuid") and named not in self.nodes:
            reason = f"Its parent {named[:40]} is not before it in the file; it follows the record before it."
            self.losses.append(Loss(place=record.place, reason=reason, code="dangling_parent"))
        node = self.nodes.get(named, ROOT)
        return node if node != ROOT and self.lane_of[node] == lane else self._newest[lane]


class About:
    """Facts about the whole session. The first value counts, except for titles.

    Attributes:
        session: Its id.
        started_at: When its first record was written.
        instructed: Whether it has the instructions.
        first: The first values of other fields.
    """

    def __init__(self) -> None:
        self.session = ""
        self.started_at = 0.0
        self.instructed = False
        self.first: dict[str, str] = {}
        self._titles: dict[str, str] = {}

    def read(self, value: Mapping[str, object]) -> None:
        """Read a record."""
        self.session = self.session or fields.text(value, "sessionId")
        self.started_at = self.started_at or fields.moment(value.get("timestamp"))
        for name in _FIRST:
            if name not in self.first and (text := fields.text(value, name)):
                self.first[name] = text
        if value.get("type") == "assistant" and "model" not in self.first:
            model = fields.text(fields.mapping(value, "message"), "model")
            if model and model != SYNTHETIC:
                self.first["model"] = model
        self.instructed = self.instructed or fields.mapping(value, "attachment").get("type") == SNAPSHOT
        name = _TITLES.get(fields.text(value, "type"), "")
        if name and (text := fields.text(value, name)):
            self._titles[name] = text

    @property
    def title(self) -> str:
        """The newest title: the user's before the harness's, a summary last."""
        return next((self._titles[name] for name in _TITLES.values() if name in self._titles), "")


_FIRST = ("cwd", "gitBranch", "version")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}


def record_id(record: Record) -> str:
    """Return a record's own id, or its number in the file."""
    return fields.text(record.value, "uuid") or str(record.ordinal)
