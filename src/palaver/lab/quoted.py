"""What a text quotes of a log: the names that it holds among the words among which the log said them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from palaver.lab.finder import Finder
from palaver.lab.metrics import passages

__all__ = ["Quoted"]


class Quoted:
    """The passages of a log in which some names stand (`palaver.lab.metrics.passages`)."""

    def __init__(self, names: Finder, said: Iterable[str]) -> None:
        """Take the names, and all that the log says; it is gone through when it is asked for first.

        Args:
            names: The names.
            said: The texts of the log, which can be gone through later.
        """
        self._names = names
        self._said = said

    def names(self, text: str) -> frozenset[str]:
        """Return the names that a text holds in a passage of the log."""
        return frozenset(name for name, passage in self._of(text) if hash(passage) in self._known)

    def _of(self, text: str) -> Iterator[tuple[str, str]]:
        return (
            (name, passage)
            for name, start in self._names.places(text)
            for passage in passages(text, start, start + len(name))
        )

    @cached_property
    def _known(self) -> frozenset[int]:
        """The hashes of all passages: the passages would be many times as large, and two with the same hash are as good as never met."""
        return frozenset(hash(passage) for text in self._said for _, passage in self._of(text))
