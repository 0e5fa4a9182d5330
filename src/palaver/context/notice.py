"""What stands for exchanges that were left out, when nothing more is said of them: a notice."""

from __future__ import annotations

from palaver.context.ground import Ground, Layout
from palaver.context.texts import notice
from palaver.log import Span
from palaver.view import Insert, Omission, Reason

__all__ = ["NOTICE", "Notice"]

_FAR = 999_999
"""An entry's number that is as long as any."""


class Notice:
    """One line: how much is missing, and where it is."""

    reason = Reason.OVER_BUDGET

    def room(self, ground: Ground, upto: int) -> int:
        """Give the size of the longest notice that could be needed so far: no later exchange changes it."""
        ranges = [
            Omission(reason=self.reason, span=Span(dialog, _FAR - 1, _FAR + 1)) for dialog in ground.dialogs(upto)
        ]
        return ground.inserted(notice([Omission(reason=self.reason, messages=_FAR), *ranges]), "notice")

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make the notice."""
        return (Insert(before=ground.gap(layout), text=notice(ground.dropped(layout)), label="notice"),)


NOTICE = Notice()
