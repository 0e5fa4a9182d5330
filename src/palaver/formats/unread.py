"""Report what a reader does not read: law 16 for files.

A format declares the keys that it knows, by the path of their object. A key that it does not declare, with text in it, is a loss. A record that repeats
others or is no part of the conversation is skipped: a note. Both are counted, and reported once a conversation. Objects without a declaration are kept whole
by the reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from palaver.formats.events import Loss
from palaver.messages import clean_text
from palaver.plurals import counted

_LONGEST = 200  # characters of a key in a report


class Unread:
    """Counts the keys with text that a format does not declare, and the records that it skips."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Read nothing yet.

        Args:
            keys: The known keys of each object, separated by spaces, by the object's path, such as `message.usage`. A list adds nothing to a path. `*`: the reader
                keeps all keys of the object, and only objects in it are looked at.
        """
        self._keys = {path: frozenset(names.split()) for path, names in keys.items()}
        self._count: Counter[tuple[str, str, str]] = Counter()
        self._skipped: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, ...], str] = {}

    def see(self, value: object, place: str, path: str = "") -> None:
        """Count the unknown keys of a record, or of the objects at a path of it."""
        if isinstance(value, list):
            for part in value:
                self.see(part, place, path)
        elif isinstance(value, dict) and (known := self._keys.get(path)) is not None:
            for key, inner in value.items():
                below = f"{path}.{key}" if path else key
                if key in known or "*" in known:
                    self.see(inner, place, below)
                elif has_text(inner):
                    self.count(below, place)

    def count(self, name: str, place: str, owner: str = "source", severity: str = "loss") -> None:
        """Count a key that is not read.

        Args:
            name: The key.
            place: The place of its record.
            owner: What has it nevertheless: the `source` alone, or the `metadata`, too.
            severity: A `loss`, or a `note` if there is no text in it that may belong to the conversation.
        """
        row = (clean_text(name, "", [])[:_LONGEST], owner, severity)
        self._count[row] += 1
        self._first.setdefault(row, place)

    def skip(self, kind: str, why: str, place: str) -> None:
        """Count a record that is skipped; `why` completes "3 records: "."""
        self._skipped[kind, why] += 1
        self._first.setdefault((kind, why), place)

    def losses(self) -> Iterator[Loss]:
        """Report each key, and each kind of skipped records, once, at the place of its first record."""
        for row, count in self._count.items():
            name, owner, severity = row
            reason = f"The key {name!r} of {counted(count, 'record')} is not read; only the {owner} has it."
            code = "unread" if severity == "loss" else "skipped"
            yield Loss(place=self._first[row], reason=reason, code=code, severity=severity)
        for (kind, why), count in self._skipped.items():
            reason = f"{counted(count, f'{kind} record')}: {why}."
            yield Loss(place=self._first[kind, why], reason=reason, code="skipped", severity="note")


def has_text(value: object) -> bool:
    """Return whether there is text in a JSON value. The type of an object is no content."""
    if isinstance(value, dict):
        return any(has_text(part) for key, part in value.items() if key != "type")
    if isinstance(value, list):
        return any(map(has_text, value))
    return isinstance(value, str) and bool(value.strip())
