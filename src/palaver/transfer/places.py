"""Map each record of a foreign conversation to its entry, so that a second import adds only new records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import Compaction, ContextEdit, Entry, Omitted, Place, Run, rule
from palaver.log.values import LogValue
from palaver.messages import canonical_json

_VERSION = 1


class Landed(NamedTuple):
    """The entry of one put of a reader.

    Attributes:
        record: The record it was made from.
        digest: The digest of the record's bytes.
        dialog: The dialog that owns the entry.
        seq: The entry's number there.
    """

    record: str
    digest: bytes
    dialog: DialogId
    seq: int


@dataclass(slots=True)
class Places:
    """The map of one conversation.

    Attributes:
        dialogs: The dialog of each of the reader's keys.
        landed: The entries of the puts, for each of the reader's keys.
    """

    dialogs: dict[str, DialogId] = field(default_factory=dict)
    landed: dict[str, list[Landed]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the map as bytes: one line for the dialogs, then one for each dialog's puts."""
        out = bytearray(canonical_json({"version": _VERSION, "dialogs": self.dialogs}))
        for key, puts in self.landed.items():
            out += b'\n{"dialog":%s,"puts":[' % canonical_json(key)
            for number, put in enumerate(puts):  # put by put, to keep only the bytes in memory twice
                out += b"," if number else b""
                out += canonical_json([put.record, put.digest.hex(), put.dialog, put.seq])
            out += b"]}"
        return bytes(out)

    @classmethod
    def decode(cls, data: bytes) -> Places:
        """Read a map.

        Raises:
            StoreDamaged: The bytes are not a map of this version.
        """
        try:
            head, *rows = (json.loads(line) for line in data.split(b"\n"))
            if head["version"] != _VERSION:
                raise StoreDamaged("import map", f"it has version {head['version']}, this palaver reads {_VERSION}")
            return cls(
                dialogs={str(key): DialogId(str(value)) for key, value in head["dialogs"].items()},
                landed={str(row["dialog"]): [_landed(put) for put in row["puts"]] for row in rows},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreDamaged("import map", f"it cannot be read: {error}") from error

    def here(self, entry: Entry, key: str) -> Entry:
        """Return an entry that a reader put into dialog `key`, with its places replaced by those of the log.

        Raises:
            InvalidInput: The reader named a put that does not exist yet.
        """
        if not rule(entry.kind).places:
            return entry
        changes = {name: moved for name in type(entry).model_fields for moved in self._moved(getattr(entry, name))}
        if isinstance(entry, Compaction | ContextEdit):
            changes["base"] = self._base(entry.base, key)
        return entry.model_copy(update=changes)

    def _base(self, put: int, key: str) -> int:
        """Return the number of an own entry, or -1 for a shared one, which comes before the dialog's own entries."""
        puts = self.landed[key]
        return puts[put].seq if 0 <= put < len(puts) and puts[put].dialog == self.dialogs[key] else -1

    def _moved(self, value: object) -> Iterator[object]:
        """Yield a value with its places replaced; several for a run of puts that is split in the log."""
        match value:
            case Place():
                yield self._place(value)
            case Run():
                yield from self._runs(value)
            case Omitted(run=Run() as run):
                first, *rest = self._runs(run)
                yield value.model_copy(update={"run": first})
                yield from (value.model_copy(update={"run": run, "messages": 0, "size": 0}) for run in rest)
            case tuple():
                yield tuple(moved for part in value for moved in self._moved(part))
            case LogValue():
                fields = {name: part for name in type(value).model_fields for part in self._moved(getattr(value, name))}
                yield value.model_copy(update=fields)
            case _:
                yield value

    def _runs(self, run: Run) -> Iterator[Run]:
        """Yield the entries of a run of puts: one run, unless it is split in the log."""
        puts = self.landed.get(run.dialog, [])[run.start : run.stop]
        if len(puts) != run.stop - run.start:
            raise InvalidInput(f"The reader names puts {run.start} to {run.stop} of {run.dialog!r} and made fewer.")
        start = 0
        for index in range(1, len(puts) + 1):
            last = puts[index - 1]
            if index == len(puts) or puts[index][2:] not in {(last.dialog, last.seq), (last.dialog, last.seq + 1)}:
                yield Run(dialog=last.dialog, start=puts[start].seq, stop=last.seq + 1)
                start = index

    def _place(self, place: Place) -> Place:
        puts = self.landed.get(place.dialog, [])
        if not 0 <= place.seq < len(puts):
            raise InvalidInput(f"The reader names put {place.seq} of {place.dialog!r} and made {len(puts)}.")
        return place.model_copy(update={"dialog": puts[place.seq].dialog, "seq": puts[place.seq].seq})


def _landed(row: Any) -> Landed:  # noqa: ANN401 - decoded JSON
    record, digest, dialog, seq = row
    return Landed(str(record), bytes.fromhex(digest), DialogId(str(dialog)), int(seq))
