"""Which entry each record of a foreign conversation became: what makes a second import add only what is new."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import (
    BlockEdit,
    BranchSummary,
    Compaction,
    ContextEdit,
    Derived,
    Entry,
    Label,
    Omitted,
    Pin,
    Place,
    Quarantine,
    Run,
)
from palaver.messages import canonical_json

_VERSION = 1


class Landed(NamedTuple):
    """Where one put of a reader landed.

    Attributes:
        record: The record it was made from.
        digest: The digest of the record's bytes; of what was put, where it was made from the file as a whole.
        dialog: The dialog that owns the entry.
        seq: The entry's number there.
    """

    record: str
    digest: bytes
    dialog: DialogId
    seq: int


@dataclass(slots=True)
class Places:
    """The map of one conversation: for each dialog of the reader, the dialog it became and where each of its puts landed.

    Attributes:
        dialogs: The dialog of each key.
        landed: Where each put of a dialog landed, whole, over all imports.
        read: The same for the puts of the present reading alone, where that one lacks the beginning; it is not kept.
    """

    dialogs: dict[str, DialogId] = field(default_factory=dict)
    landed: dict[str, list[Landed]] = field(default_factory=dict)
    read: dict[str, list[Landed]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Give the map as bytes: one line for the dialogs, then one for each dialog's puts."""
        out = bytearray(canonical_json({"version": _VERSION, "dialogs": self.dialogs}))
        for key, puts in self.landed.items():
            out += b'\n{"dialog":%s,"puts":[' % canonical_json(key)
            for number, one in enumerate(puts):  # put by put: nothing but the bytes is held twice
                out += b"," if number else b""
                out += canonical_json([one.record, one.digest.hex(), one.dialog, one.seq])
            out += b"]}"
        return bytes(out)

    @classmethod
    def decode(cls, data: bytes) -> Places:
        """Read a map.

        Raises:
            StoreDamaged: The bytes are no map of this version.
        """
        try:
            head, *rows = (json.loads(line) for line in data.split(b"\n"))
            if head["version"] != _VERSION:
                raise StoreDamaged("import map", f"it has version {head['version']}, and this palaver reads {_VERSION}")
            return cls(
                dialogs={key: DialogId(value) for key, value in head["dialogs"].items()},
                landed={row["dialog"]: [_landed(put) for put in row["puts"]] for row in rows},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreDamaged("import map", f"it cannot be read: {error}") from error

    def here(self, entry: Entry, key: str) -> Entry:
        """Give an entry that a reader put into dialog `key` with its places turned into those of the log.

        Raises:
            InvalidInput: The reader named a put it has not made.
        """
        match entry:
            case Compaction():
                pieces = tuple(self._pieces(entry.pieces))
                omitted = tuple(self._omitted(entry.omitted))
                changes = {"pieces": pieces, "omitted": omitted, "edits": self._edits(entry.edits)}
                return entry.model_copy(update=changes | {"base": self._base(entry.base, key)})
            case ContextEdit():
                edits, omitted = self._edits(entry.edits), tuple(self._omitted(entry.omitted))
                return entry.model_copy(
                    update={"edits": edits, "omitted": omitted, "base": self._base(entry.base, key)}
                )
            case Label() | Pin() | Quarantine():
                return entry.model_copy(update={"target": self._place(entry.target)})
            case BranchSummary(left=Place() as left):
                return entry.model_copy(update={"left": self._place(left)})
            case _:
                return entry

    def _base(self, put: int, key: str) -> int:
        """Give the number of an own entry; what the dialog shares with the one it was parted from is before its own."""
        puts = self.puts(key)
        return puts[put].seq if 0 <= put < len(puts) and puts[put].dialog == self.dialogs[key] else -1

    def _edits(self, edits: Iterable[BlockEdit]) -> tuple[BlockEdit, ...]:
        return tuple(map(self._edit, edits))

    def _edit(self, edit: BlockEdit) -> BlockEdit:
        sources = None if edit.sources is None else tuple(run for source in edit.sources for run in self._runs(source))
        return edit.model_copy(update={"target": self._place(edit.target), "sources": sources})

    def _pieces(self, pieces: Iterable[Run | Derived]) -> Iterator[Run | Derived]:
        for piece in pieces:
            if isinstance(piece, Run):
                yield from self._runs(piece)
            else:
                sources = tuple(run for source in piece.sources for run in self._runs(source))
                yield piece.model_copy(update={"sources": sources})

    def _omitted(self, omitted: Iterable[Omitted]) -> Iterator[Omitted]:
        for gone in omitted:
            if gone.target is not None:
                yield gone.model_copy(update={"target": self._place(gone.target)})
            elif gone.run is not None:
                first, *rest = self._runs(gone.run)
                yield gone.model_copy(update={"run": first})
                yield from (gone.model_copy(update={"run": run, "messages": 0, "size": 0}) for run in rest)

    def _runs(self, run: Run) -> Iterator[Run]:
        """Give the entries that a run of puts became: one run, unless they lie apart in the log."""
        puts = self.puts(run.dialog)[run.start : run.stop]
        if len(puts) != run.stop - run.start:
            raise InvalidInput(f"the reader names puts {run.start} to {run.stop} of {run.dialog!r}, and has made fewer")
        start = 0
        for index in range(1, len(puts) + 1):
            last = puts[index - 1]
            if index == len(puts) or puts[index][2:] != (last.dialog, last.seq + 1):
                yield Run(dialog=last.dialog, start=puts[start].seq, stop=last.seq + 1)
                start = index

    def _place(self, place: Place) -> Place:
        puts = self.puts(place.dialog)
        if not 0 <= place.seq < len(puts):
            raise InvalidInput(f"the reader names put {place.seq} of {place.dialog!r}, and has made {len(puts)}")
        return place.model_copy(update={"dialog": puts[place.seq].dialog, "seq": puts[place.seq].seq})

    def puts(self, key: str) -> list[Landed]:
        """Give where the puts of a dialog landed, as the present reading counts them."""
        return self.read.get(key, self.landed.get(key, []))

    def land(self, key: str, put: Landed) -> None:
        """Take notice of where the next put of a dialog landed."""
        self.landed[key].append(put)
        if key in self.read:
            self.read[key].append(put)


def _landed(row: Any) -> Landed:  # noqa: ANN401 - decoded JSON, checked by what is done with it
    record, digest, dialog, seq = row
    return Landed(str(record), bytes.fromhex(digest), DialogId(dialog), int(seq))
