"""The user's constraints in a dialog: found by code in his own words, and changed by hand through entries of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import overload

from palaver.context.record.constraints import constraints
from palaver.context.record.facts import Said
from palaver.errors import InvalidInput, NotFound
from palaver.log import Constraint, Entry, Handle
from palaver.messages import Content
from palaver.plurals import counted
from palaver.view import View

__all__ = ["LONGEST", "DialogConstraints"]

LONGEST = 2_000
"""Characters that a constraint put on the list may have: it is told in every request."""


class DialogConstraints(Sequence[Said]):
    """What the user said must or must not be, as it holds in a dialog now; each with the handle of where it was said.

    Code finds it in what he wrote himself, not in what he pasted. What it took for a constraint by mistake is taken off with `remove`, what it missed is
    put on with `add`: by entries, so that both hold in forks made later, after a compaction and in the next process. What was put on by
    hand has no handle (`at` is empty).
    """

    def __init__(
        self, view: View, sources: Callable[[Handle], Content | None], annotate: Callable[[Entry], Handle]
    ) -> None:
        """Read the list off a view; changes are written with `annotate`."""
        self._found = constraints(view, sources=sources)
        self._annotate = annotate

    @overload
    def __getitem__(self, index: int) -> Said: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Said, ...]: ...
    def __getitem__(self, index: int | slice) -> Said | tuple[Said, ...]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences."""
        return tuple(said.text for said in self._found)

    def add(self, text: str) -> Handle:
        """Put a sentence on the list, and give the entry that says so; one that was taken off is back.

        The model reads it from the next request on, behind the instructions, whatever a policy leaves out; and every record that stands for what
        left the view tells it. Instructions are the beginning of a request, so a provider's cache is written anew then, once.

        Raises:
            InvalidInput: It is empty, on the list already, or has more than 2,000 characters.
        """
        said = " ".join(text.split())
        if not said or len(said) > LONGEST:
            raise InvalidInput(f"A constraint has 1 to {LONGEST:,} characters, not {len(said):,}.")
        if said in self.texts:
            raise InvalidInput(f"{said!r} is on the list already.")
        return self._annotate(Constraint(text=said))

    def remove(self, text: str) -> Handle:
        """Take a sentence off the list, word for word as the list has it, and give the entry that says so. The user's words stay.

        Raises:
            NotFound: The list has no such sentence; the error has close matches.
        """
        if text not in self.texts:
            raise NotFound(text, what="constraint", close=get_close_matches(text, self.texts, cutoff=0.4))
        return self._annotate(Constraint(text=text, stands=False))

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'constraint')}>"
