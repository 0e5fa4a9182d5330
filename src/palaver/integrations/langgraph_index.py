"""A thread of LangGraph, read from its dialogs: checkpoints, pending writes, and the places of their values."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from palaver.ids import DialogId, SessionId, derive_dialog_id, now
from palaver.integrations.keyed import append, create
from palaver.log import Custom, Node
from palaver.store import Store

FRAMEWORK = "langgraph"
"""The metadata key of sessions and dialogs of this adapter."""

_CHECKPOINT, _WRITES, _REMOVED, _VALUE = (
    f"{FRAMEWORK}/{word}" for word in ("checkpoint", "writes", "removed", "value")
)

Typed: TypeAlias = tuple[str, bytes]
"""A value from LangGraph's serializer: the name of a format, and bytes."""

Version: TypeAlias = str | int | float

Shown: TypeAlias = tuple[str, int]
"""The dialog with the conversation of a checkpoint, and the number of its messages."""


class Write(NamedTuple):
    """A pending write, and the place of its value.

    Attributes:
        path: The path of the task, by which writes are ordered first.
        task: The task.
        number: Its number among the task's writes; negative for the special ones.
        channel: The channel.
        seq: The entry with the value.
        at: The index of the value in the entry.
    """

    path: str
    task: str
    number: int
    channel: str
    seq: int
    at: int


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A checkpoint without its values.

    Attributes:
        checkpoint_id: Its id.
        parent: The id of the checkpoint that it follows, or None.
        checkpoint: The rest of it, serialized.
        metadata: Its metadata, serialized.
        values: The entry with the value of each channel and version; -1 for an empty channel.
        shown: The place of its conversation, or None.
    """

    checkpoint_id: str
    parent: str | None
    checkpoint: Typed
    metadata: Typed
    values: Mapping[tuple[str, Version], int]
    shown: Shown | None


def _stored(value: Typed) -> list[str]:
    return [value[0], b64encode(value[1]).decode("ascii")]


def _typed(stored: Sequence[str]) -> Typed:
    return stored[0], b64decode(stored[1])


@dataclass(slots=True)
class Namespace:
    """One namespace of a thread.

    Checkpoints and writes are in one dialog, the values of channels in another, so that finding a checkpoint reads no values.

    Attributes:
        store: Its store.
        session_id: The thread's session.
        name: The namespace, empty for the graph itself.
        checkpoints: Its checkpoints by id.
        writes: The pending writes of each checkpoint, by task and number.
    """

    store: Store
    session_id: SessionId
    name: str
    checkpoints: dict[str, Checkpointed] = field(default_factory=dict)
    writes: dict[str, dict[tuple[str, int], Write]] = field(default_factory=dict)
    _read: int = 0

    def dialog(self, part: str) -> DialogId:
        """Return the id of the dialog for `checkpoints` or `values`. It is derived, so only one of two writers creates it."""
        return derive_dialog_id(self.session_id, FRAMEWORK, part, self.name)

    def make(self) -> None:
        """Create its dialogs."""
        for part in ("checkpoints", "values"):
            about = {FRAMEWORK: {"namespace": self.name, "holds": part}}
            node = Node(
                dialog_id=self.dialog(part),
                session_id=self.session_id,
                owner=f"{FRAMEWORK} {part}",
                created_at=now(),
                relation="subagent",  # not a conversation: resuming the session skips it
                metadata=about,
            )
            create(self.store, node)

    def catch_up(self) -> None:
        """Read what was written since the last call."""
        for seq, body in self.store.bodies(self.dialog("checkpoints"), self._read):
            fields = json.loads(body)
            readers = {_CHECKPOINT: self._checkpoint, _WRITES: self._writes, _REMOVED: self._removed}
            known = readers.get(fields.get("custom_type"))
            if known is not None:
                known(seq, fields["data"])
            self._read = seq + 1

    def _checkpoint(self, _seq: int, data: Mapping[str, Any]) -> None:
        values = {(channel, version): seq for channel, version, seq in data["values"]}
        shown = data.get("shown")
        self.checkpoints[data["id"]] = Checkpointed(
            data["id"],
            data.get("parent"),
            _typed(data["checkpoint"]),
            _typed(data["metadata"]),
            values,
            None if shown is None else (shown[0], shown[1]),
        )

    def _writes(self, seq: int, data: Mapping[str, Any]) -> None:
        known = self.writes.setdefault(data["checkpoint"], {})
        for at, (channel, index, _value) in enumerate(data["writes"]):
            known[data["task"], index] = Write(data["path"], data["task"], index, channel, seq, at)

    def _removed(self, _seq: int, data: Mapping[str, Any]) -> None:
        for checkpoint_id in data["checkpoints"]:
            self.checkpoints.pop(checkpoint_id, None)
            self.writes.pop(checkpoint_id, None)

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def _write(self, kind: str, data: Mapping[str, object]) -> None:
        append(self.store, self.dialog("checkpoints"), Custom(custom_type=kind, data=data))
        self.catch_up()

    def put_values(self, values: Mapping[tuple[str, Version], Typed | None]) -> dict[tuple[str, Version], int]:
        """Write the values of channels at their versions (None if empty), and return the entry of each (-1 if empty)."""
        full = {key: value for key, value in values.items() if value is not None}
        entries = [
            Custom(custom_type=_VALUE, data={"channel": channel, "version": version, "value": _stored(value)})
            for (channel, version), value in full.items()
        ]
        places = append(self.store, self.dialog("values"), *entries) if entries else ()
        return dict.fromkeys(values, -1) | {key: place.seq for key, place in zip(full, places, strict=True)}

    def put_checkpoint(
        self,
        checkpoint_id: str,
        parent: str | None,
        parts: tuple[Typed, Typed],
        values: Mapping[tuple[str, Version], int],
        shown: Shown | None,
    ) -> None:
        """Write a checkpoint whose values were written before."""
        entries = [(*key, seq) for key, seq in values.items()]
        data = {
            "id": checkpoint_id,
            "parent": parent,
            "checkpoint": _stored(parts[0]),
            "metadata": _stored(parts[1]),
            "values": entries,
            "shown": shown,
        }
        self._write(_CHECKPOINT, data)

    def put_writes(self, checkpoint_id: str, task: str, path: str, writes: Sequence[tuple[str, int, Typed]]) -> None:
        """Write pending writes. An existing ordinary write stays; a special one is replaced."""
        known = self.writes.get(checkpoint_id, {})
        fresh = [
            (channel, index, _stored(value))
            for channel, index, value in writes
            if index < 0 or (task, index) not in known
        ]
        if fresh:
            self._write(_WRITES, {"checkpoint": checkpoint_id, "task": task, "path": path, "writes": fresh})

    def remove(self, checkpoint_ids: Sequence[str]) -> None:
        """Hide checkpoints and their writes. The log keeps them."""
        if checkpoint_ids:
            self._write(_REMOVED, {"checkpoints": list(checkpoint_ids)})

    # --- reading ----------------------------------------------------------------------------------------------------------------

    def value(self, seq: int) -> Typed:
        """Return the value of a channel."""
        return _typed(json.loads(self.store.body(self.dialog("values"), seq))["data"]["value"])

    def pending(self, checkpoint_id: str) -> Iterator[tuple[Write, Typed]]:
        """Yield the writes of a checkpoint in the order in which they are applied, each with its value."""
        for write in sorted(self.writes.get(checkpoint_id, {}).values()):
            body = self.store.body(self.dialog("checkpoints"), write.seq)
            yield write, _typed(json.loads(body)["data"]["writes"][write.at][2])


def namespaces(store: Store, session_id: SessionId) -> Iterator[str]:
    """Yield the namespaces of a thread, in the order in which they were first written."""
    for node in store.nodes(session_id):
        about = node.metadata.get(FRAMEWORK)
        if isinstance(about, Mapping) and about.get("holds") == "checkpoints":
            yield str(about.get("namespace", ""))
