"""The compatibility report: everything that compiling dropped or changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from palaver.log import Handle

__all__ = ["Change", "How", "Notes", "Report"]


class How(StrEnum):
    """What happened to something on its way to the wire."""

    DROPPED = "dropped"
    """It is not in the request."""
    REPLACED = "replaced"
    """A text replaces it."""
    RENAMED = "renamed"
    """It has another id or name."""
    CHANGED = "changed"
    """It has another form."""
    ADDED = "added"
    """It is in the request and not in the view."""
    KEPT = "kept"
    """It is unchanged, although palaver does not know whether the provider accepts it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the view and the request.

    Attributes:
        handle: The block it is about; None for what no entry holds (a derived text, a tool's schema, a parameter).
        what: What it is about: `text`, `image`, `audio`, `thinking`, `call id`, `tool name`, `tool schema`, `parameter` and so on.
        how: What happened to it.
        why: The reason, a clause that starts with a small letter.
    """

    handle: Handle | None
    what: str
    how: How
    why: str

    def __str__(self) -> str:
        """Return the difference as one line."""
        place = "" if self.handle is None else f" ({self.handle})"
        return f"{self.what}{place} {self.how.value}: {self.why}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was dropped or changed in a request, in the order of the request.

    Attributes:
        changes: The differences. When there are none, the provider gets what the view shows.
    """

    changes: tuple[Change, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        """Iterate over the changes in order."""
        return iter(self.changes)

    def __len__(self) -> int:
        """Count the changes."""
        return len(self.changes)

    def lost(self) -> tuple[Change, ...]:
        """Return the changes by which the model sees less than the view shows: what was dropped or replaced."""
        return tuple(change for change in self.changes if change.how in {How.DROPPED, How.REPLACED})

    def about(self, handle: Handle) -> tuple[Change, ...]:
        """Return the changes of one block."""
        return tuple(change for change in self.changes if change.handle == handle)


class Notes(list[Change]):
    """The changes so far, while a request is compiled."""

    def add(self, handle: Handle | None, what: str, how: How, why: str) -> None:
        """Append a change."""
        self.append(Change(handle, what, how, why))
