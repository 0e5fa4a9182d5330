"""Constraints: what the user said must or must not be, found by code, listed, and his to change. They stand outside every summary."""

from __future__ import annotations

from dataclasses import dataclass, replace

from palaver.context.record.facts import Facts, Said
from palaver.context.record.recorder import Recorder, Sources
from palaver.view import View

__all__ = ["Constraints", "constraints"]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What was changed by hand in the list that code found: a sentence that is none was taken off, one that it missed was put on.

    Attributes:
        added: Sentences put on the list, the oldest first.
        removed: Sentences taken off it, word for word.
    """

    added: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()

    def add(self, text: str) -> Constraints:
        """Give the changes with a sentence put on the list; one that was taken off is back."""
        added = self.added if text in self.added else (*self.added, text)
        return Constraints(added, self.removed - {text})

    def remove(self, text: str) -> Constraints:
        """Give the changes with a sentence taken off the list."""
        return Constraints(tuple(one for one in self.added if one != text), self.removed | {text})

    def applied(self, facts: Facts) -> Facts:
        """Give facts with the list as it was changed."""
        if not self.added and not self.removed:
            return facts
        found = tuple(said for said in facts.rules if said.text not in self.removed)
        known = {said.text for said in found}
        return replace(facts, rules=(*found, *(Said("", text) for text in self.added if text not in known)))

    @classmethod
    def of(cls, view: View) -> Constraints:
        """Give the changes that were written down in the log of a view."""
        changes = cls()
        for stated in view.constraints:
            changes = changes.add(stated.text) if stated.stands else changes.remove(stated.text)
        return changes

    def over(self, view: View) -> Constraints:
        """Give these changes on top of those in the log of a view: where both name a sentence, these count."""
        if not view.constraints:
            return self
        changes = Constraints.of(view)
        for text in self.removed:
            changes = changes.remove(text)
        for text in self.added:
            changes = changes.add(text)
        return changes


def constraints(view: View, changes: Constraints | None = None, sources: Sources | None = None) -> tuple[Said, ...]:
    """List the constraints that hold in a view, each with the handle of where it was said, those put on by hand without.

    What the user said is read where it is shown; of what was left out, the facts are read that stand in its place, or are carried where nothing does. Nothing that a tool, a file
    or a model said is ever taken for a wish of the user.

    Args:
        view: The view.
        changes: What was changed by hand, besides what the log says.
        sources: Gives blocks as they were recorded, where they are shown in another form.
    """
    facts = Recorder(sources=sources).take(view.known()).known()
    return (changes or Constraints()).over(view).applied(facts).rules
