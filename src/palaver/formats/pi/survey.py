"""The first pass over a pi session: the tree of its entries, and the data of the whole session."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from palaver.formats import fields
from palaver.formats.events import NOTHING, Loss, without_losses
from palaver.formats.records import Record

NONE = -1

TYPES = frozenset(
    {"session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary"}
    | {"custom", "custom_message", "label", "session_info"}
)
"""Types of entries."""


class PiBranch(NamedTuple):
    """A dialog: its key, the dialog it forks from (-1: none), and the entry after which it forks (-1: the very beginning)."""

    key: str
    parent: int = NONE
    leaves: int = NONE


class PiSurvey:
    """The results of the first pass over the file.

    Entries are numbered in the order of the file, without the header. The first child of an entry stays in the
    entry's dialog; every later child begins a fork.

    Attributes:
        dialogs: The dialogs, the first one first.
        of_entry: The number of the dialog of each entry.
        index: The entry of each id.
        positions: The entry at each place in the file's list of entries, header included.
        losses: The faults of the file.
        header: The session's header.
        title: The newest name that the user chose.
        model: The first model that answered.
        instructed: Whether it has system messages.
        started_at: When the first record was written.
    """

    def __init__(self, records: Iterator[Record | Loss]) -> None:
        self.dialogs = [PiBranch("main")]
        self.of_entry = array("q")
        self.index: dict[str, int] = {}
        self.positions = array("q")
        self.losses: list[Loss] = []
        self.header: Mapping[str, object] = NOTHING
        self.title = ""
        self.model = ""
        self.instructed = False
        self.started_at = 0.0
        self._followed: set[int] = set()
        for record in without_losses(records, self.losses):
            self._note(record)

    @property
    def main(self) -> str:
        """The key of the dialog with the newest entry."""
        return self.dialogs[self.of_entry[-1] if self.of_entry else 0].key

    def _note(self, record: Record) -> None:
        value = record.value
        self.started_at = self.started_at or fields.moment(value.get("timestamp"))
        if value.get("type") == "session":
            self.positions.append(NONE)
            self.header = self.header or value
            return
        entry = len(self.of_entry)
        self.positions.append(entry)
        self._place(record, entry)
        if value.get("type") == "session_info":
            self.title = fields.text(value, "name") or self.title
        said = fields.mapping(value, "message")
        self.instructed = self.instructed or said.get("role") == "system"
        if said.get("role") == "assistant":
            self.model = self.model or fields.text(said, "model")

    def _place(self, record: Record, entry: int) -> None:
        parent = self._parent(record, entry)
        key = fields.text(record.value, "id")
        if key in self.index:
            reason = f"The id {key[:40]} was used before; both entries are kept, and references mean the first."
            self.losses.append(Loss(place=record.place, reason=reason, code="duplicate_id"))
        elif key:
            self.index[key] = entry
        here = self.of_entry[parent] if parent != NONE else 0
        if parent in self._followed:
            name = f"{key}#{record.ordinal}" if self.index.get(key) != entry else key
            self.dialogs.append(PiBranch(f"fork:{name}", here, parent))
            here = len(self.dialogs) - 1
        self._followed.add(parent)
        self.of_entry.append(here)

    def _parent(self, record: Record, entry: int) -> int:
        """Return the parent. An entry of version 1, or with a missing parent, follows the entry before it."""
        if "parentId" not in record.value:
            return entry - 1
        named = record.value["parentId"]
        if named is None:
            return NONE
        parent = self.index.get(str(named), NONE)
        if parent == NONE:
            reason = f"Its parent {str(named)[:40]} is not before it in the file; it follows the entry before it."
            self.losses.append(Loss(place=record.place, reason=reason, code="dangling_parent"))
            return entry - 1
        return parent
