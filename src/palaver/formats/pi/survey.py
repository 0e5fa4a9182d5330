"""The first reading of a pi session: the tree of its entries, and what is said of the whole."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from palaver.formats import fields
from palaver.formats.events import Loss
from palaver.formats.pi.names import SPOKEN_TYPES
from palaver.formats.records import Record, readable
from palaver.formats.stubs import Stubs

NONE = -1


class Branching(NamedTuple):
    """A dialog: the key, the dialog it leaves (-1: none), and the entry after which it does (-1: the very beginning)."""

    key: str
    parent: int = NONE
    leaves: int = NONE


class Survey:
    """What the first reading found.

    Entries are numbered in the order of the file, the header not among them. The one that follows its parent first goes on with the
    parent's dialog; every later one is a fork.

    Attributes:
        dialogs: The dialogs, the first one first.
        of_entry: The number of the dialog of each entry.
        index: The entry of each id.
        positions: For each place in the file's list of entries, header included, the entry that stands there.
        stubs: The calls seen.
        losses: What was wrong with the file.
        header: The session's header.
        title: The newest name the user gave it.
        started_at: When the first record was written.
    """

    def __init__(self) -> None:
        self.dialogs = [Branching("main")]
        self.of_entry = array("q")
        self.index: dict[str, int] = {}
        self.positions = array("q")
        self.stubs = Stubs()
        self.losses: list[Loss] = []
        self.header: Mapping[str, object] = fields.NOTHING
        self.title = ""
        self.started_at = 0.0
        self.model = ""
        self._followed: set[int] = set()

    @property
    def main(self) -> str:
        """The key of the dialog that holds the newest entry."""
        return self.dialogs[self.of_entry[-1] if self.of_entry else 0].key

    def read(self, found: Iterator[Record | Loss]) -> None:
        """Read the whole file."""
        for record in readable(found, self.losses):
            self._take(record)

    def _take(self, record: Record) -> None:
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
        if fields.text(value, "type") in SPOKEN_TYPES and said.get("role") == "assistant":
            self.model = self.model or fields.text(said, "model")
            for block in fields.objects(said, "content"):
                if block.get("type") == "toolCall":
                    self.stubs.see(fields.text(block, "name"), block.get("arguments"))

    def _place(self, record: Record, entry: int) -> None:
        parent = self._parent(record, entry)
        key = fields.text(record.value, "id")
        if key in self.index:
            reason = f"The id {key[:40]} was used before; both entries are kept, and what refers to it means the first."
            self.losses.append(Loss(place=record.place, reason=reason, code="duplicate_id"))
        elif key:
            self.index[key] = entry
        here = self.of_entry[parent] if parent != NONE else 0
        if parent in self._followed:
            name = f"{key}#{record.ordinal}" if self.index.get(key) != entry else key
            self.dialogs.append(Branching(f"fork:{name}", here, parent))
            here = len(self.dialogs) - 1
        self._followed.add(parent)
        self.of_entry.append(here)

    def _parent(self, record: Record, entry: int) -> int:
        """Find the parent; an entry of version 1, and one whose parent is missing, follows the entry before it."""
        if "parentId" not in record.value:
            return entry - 1
        named = record.value["parentId"]
        if named is None:
            return NONE
        found = self.index.get(str(named), NONE)
        if found == NONE:
            reason = f"Its parent {str(named)[:40]} does not stand before it; it was put after the entry before it."
            self.losses.append(Loss(place=record.place, reason=reason, code="dangling_parent"))
            return entry - 1
        return found
