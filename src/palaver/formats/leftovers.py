"""What is not carried over, counted by kind: a session has thousands of such records, and a report of one screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from palaver.formats.events import Loss
from palaver.plurals import counted

_SHOWN = 12  # names in one sentence


class Leftovers:
    """Counts what stays in the source only."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, str]] = Counter()
        self._fields: Counter[str] = Counter()

    def record(self, kind: str, why: str) -> None:
        """Count a record that becomes no entry; `why` completes "… records: "."""
        self._records[kind, why] += 1

    def fields(self, names: Iterable[str]) -> None:
        """Count fields of a record that its entry does not hold."""
        self._fields.update(names)

    def losses(self, place: str) -> Iterator[Loss]:
        """Report them: one note for each kind of record, one for all fields together."""
        for (kind, why), count in self._records.items():
            yield Loss(
                place=place, reason=f"{counted(count, f'{kind} record')}: {why}.", code="skipped", severity="note"
            )
        if self._fields:
            common = self._fields.most_common(_SHOWN)
            more = len(self._fields) - len(common)
            named = ", ".join(f"{name} ({count})" for name, count in common) + (f" and {more} more" if more else "")
            reason = f"Fields that stay in the source only: {named}."
            yield Loss(place=place, reason=reason, code="skipped", severity="note")
