"""The first reading of a Codex rollout: which item ends each response, what it used, and what later records refer to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256

from palaver.formats import fields
from palaver.formats.codex.names import ENVELOPES, HARNESS_SAID, OUTPUTS, SPOKEN
from palaver.formats.events import Loss
from palaver.formats.records import Record, readable
from palaver.formats.stubs import Stubs


class Responses:
    """Tells where one response of the model ends and the next begins: rollouts do not say.

    What the model makes is one response until something else stands between: an output, words of the user, a count of tokens.
    """

    def __init__(self) -> None:
        self.first = -1
        self._open = False

    def take(self, kind: str, payload: Mapping[str, object], ordinal: int) -> bool:
        """Take the next record; True when it is part of a response, whose first item `first` then is."""
        if not is_spoken(kind, payload):
            self._open = self._open and kind == "event_msg" and payload.get("type") != "token_count"
            return False
        if not self._open:
            self._open, self.first = True, ordinal
        return True


class Survey:
    """What the first reading found.

    Attributes:
        usage: What a response used, by the record number of its last item.
        stubs: The calls seen, and the tools that were declared in between.
        wanted: The digests of the items that replaced the history in compactions.
        main: The key of the dialog that the conversation ends in.
        losses: What was wrong with the file.
        session: The payload of the first `session_meta`.
        models: The first model named, and nothing else.
        started_at: When the first record was written.
    """

    def __init__(self) -> None:
        self.usage: dict[int, Mapping[str, object]] = {}
        self.stubs = Stubs()
        self.wanted: set[bytes] = set()
        self.main = "main"
        self.losses: list[Loss] = []
        self.session: Mapping[str, object] = fields.NOTHING
        self.model = ""
        self.started_at = 0.0
        self.unused = 0
        self._responses = Responses()
        self._last_item = -1
        self._total: object = None

    def read(self, found: Iterator[Record | Loss]) -> None:
        """Read the whole file."""
        for record in readable(found, self.losses):
            self._take(record)

    def _take(self, record: Record) -> None:
        kind, payload = envelope(record.value)
        self.started_at = self.started_at or fields.moment(record.value.get("timestamp"))
        if self._responses.take(kind, payload, record.ordinal):
            self._last_item = record.ordinal
        if kind == "response_item":
            self._item(payload)
        elif kind == "event_msg":
            self._event(payload, record.ordinal)
        elif kind == "compacted":
            self.wanted.update(digest(item) for item in fields.objects(payload, "replacement_history"))
        elif kind == "turn_context":
            self.model = self.model or fields.text(payload, "model")
        elif kind == "session_meta" and not self.session:
            self.session = {name: value for name, value in payload.items() if name != "base_instructions"}

    def _item(self, payload: Mapping[str, object]) -> None:
        if is_call(payload):
            name, arguments = call_of(payload)
            self.stubs.see(name, fields.arguments(arguments))
        for tool in declared(payload):
            self.stubs.declare(tool)

    def _event(self, payload: Mapping[str, object], ordinal: int) -> None:
        if payload.get("type") == "thread_rolled_back":
            self.main = f"rollback:{ordinal}"
        if payload.get("type") != "token_count":
            return
        info = fields.mapping(payload, "info")
        total = info.get("total_token_usage")
        if not info or total == self._total:  # rate limits alone, or the same figures again
            return
        self._total = total
        if self._last_item < 0 or self._last_item in self.usage:
            self.unused += 1
            return
        self.usage[self._last_item] = fields.mapping(info, "last_token_usage")


def envelope(value: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Give a record's type and payload; rollouts of 2025 before September have bare items, and a first record of its own."""
    kind = fields.text(value, "type")
    if kind in ENVELOPES:
        return kind, fields.mapping(value, "payload")
    if kind:
        return "response_item", value
    if "id" in value and "timestamp" in value:
        told = fields.text(value, "instructions")
        return "session_meta", {**value, "base_instructions": {"text": told}}
    return "", value


def is_spoken(kind: str, payload: Mapping[str, object]) -> bool:
    """Tell whether an item is part of a response of the model."""
    inner = fields.text(payload, "type")
    return kind == "response_item" and (inner in SPOKEN or (inner == "message" and payload.get("role") == "assistant"))


def is_call(payload: Mapping[str, object]) -> bool:
    """Tell whether an item calls a tool whose output is an item of its own."""
    return fields.text(payload, "type") in {"function_call", "custom_tool_call", "tool_search_call", "local_shell_call"}


def call_of(payload: Mapping[str, object]) -> tuple[str, object]:
    """Give a call's tool and arguments: JSON text, or an object."""
    kind = payload.get("type")
    if kind == "custom_tool_call":
        return fields.text(payload, "name"), {"input": payload.get("input")}
    if kind == "local_shell_call":
        return "local_shell", payload.get("action")
    return fields.text(payload, "name") or str(kind).removesuffix("_call"), payload.get("arguments")


def declared(payload: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Give the tools that a tool search found: declarations as the provider reads them."""
    if fields.text(payload, "type") in OUTPUTS:
        for tool in fields.objects(payload, "tools"):
            yield from fields.objects(tool, "tools") if tool.get("type") == "namespace" else (tool,)


def digest(item: Mapping[str, object]) -> bytes:
    """Give what identifies an item of the history, however its keys are ordered."""
    return sha256(json.dumps(item, sort_keys=True).encode()).digest()[:16]


def said_by_harness(payload: Mapping[str, object]) -> bool:
    """Tell whether the harness wrote an item of the role `user`."""
    first = next(iter(fields.objects(payload, "content")), fields.NOTHING)
    return fields.text(first, "text").startswith(HARNESS_SAID)
