"""Cap outputs as they come: one larger than a limit is never shown whole, so that no later edit is needed for it. Reversible.

To cap when something is appended costs nothing; to clear it later costs the provider's cache of all that stands behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited, touched
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.operators.shorten import shown_as, text_of
from palaver.context.work import Act
from palaver.log import Handle
from palaver.view import Reason, Rewrite

__all__ = ["Cap", "cap"]

_Words: TypeAlias = "Callable[[Handle, str, int], str]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """Caps the outputs of the exchange that has just come; meant to be done at every exchange.

    Attributes:
        characters: Outputs of more characters are capped.
        shown: Characters of them that are shown.
        words: What is shown: from the handle, the text and how many characters of it.
        exempt: Tools whose outputs are shown whole.
        whole: Tells of a call of another tool whether its output is; None for none.
    """

    characters: int
    shown: int
    words: _Words
    exempt: frozenset[str] = frozenset()
    whole: Callable[[Act], bool] | None = None

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        if upto < 0 or ground.view.exchanges[upto].pinned:
            return layout
        lines = [line for act in ground.acts.at(upto) if (line := self._line(layout, act)) is not None]
        return edited(ground, layout, {upto: lines}, "cap") if lines else layout

    def _line(self, layout: Layout, act: Act) -> Rewrite | None:
        text, handle = text_of(act.answer), act.answer.origin
        if text is None or handle is None or touched(layout, act.index, act.answer):
            return None
        if len(text) <= self.characters or act.tool.casefold() in self.exempt:
            return None
        if self.whole is not None and self.whole(act):
            return None
        return shown_as(act.answer, self.words(handle, text, self.shown), Reason.SHORTENED)


def cap(how: Cap) -> Operator:
    """Give the operator that caps in some way."""
    return Operator("cap", Loss.REVERSIBLE, how, frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT}))
