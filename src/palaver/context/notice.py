"""What stands for exchanges that were left out, when nothing more is said of them: a notice."""

from __future__ import annotations

from collections import Counter

from palaver.context.ground import Ground, Layout
from palaver.context.texts import notice
from palaver.log import Span
from palaver.view import Insert, Omission, Reason

__all__ = ["NOTICE", "Notice"]

_FAR = 999_999
"""An entry's number that is as long as any."""

_APART = 4
"""So far apart two such numbers are of two parts of a dialog."""


class Notice:
    """One line: how much is missing, and where it is."""

    reason = Reason.OVER_BUDGET

    def room(self, ground: Ground, upto: int) -> int:
        """Give the size of the longest notice that could be needed so far: no later exchange changes it."""
        parts = [
            Span(dialog, end - 1, end + 1)
            for dialog, count in Counter(ground.dialogs(upto)).items()
            for end in range(_FAR, _FAR - _APART * count, -_APART)
        ]
        gone = [Omission(reason=self.reason, span=part) for part in parts]
        return ground.inserted(notice([Omission(reason=self.reason, messages=_FAR), *gone], parts), "notice")

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make the notice."""
        return (
            Insert(before=ground.gap(layout), text=notice(ground.dropped(layout), ground.view.shared), label="notice"),
        )


NOTICE = Notice()
