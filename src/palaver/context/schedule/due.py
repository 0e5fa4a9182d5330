"""What may be set aside without haste: each edit with the exchange from which on it may be made. All of them are reversible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from palaver.context.ground import Ground
from palaver.context.operators.clear import Words
from palaver.context.operators.shorten import shown_as
from palaver.context.operators.stale import OF_NO_MORE_USE
from palaver.context.texts import cleared
from palaver.context.work import Act, error_line
from palaver.view import Reason, Rewrite

__all__ = ["Due", "Schedule", "Waiting"]


@dataclass(frozen=True, slots=True)
class Due:
    """An edit.

    Attributes:
        index: The exchange that it changes.
        at: The exchange from which on it may be made.
        change: What it shows instead.
        operator: The operator that would do it.
        spent: Whether what it sets aside is of no more use, so that nobody will ask for it again.
    """

    index: int
    at: int
    change: Rewrite
    operator: str
    spent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Says which edits may wait: results behind the newest, and those that a later result made pointless.

    Attributes:
        newest: How many of the newest results are left alone (JetBrains' observation masking was measured with 10: arXiv 2508.21433);
            None where a result that is only old does not wait at all: what may be asked for again stays until there is no more room.
        words: What stands for a result that was only old; where it is that of a failure, behind the line that names the error.
    """

    newest: int | None = 10
    words: Words = cleared

    def __call__(self, ground: Ground) -> Iterator[Due]:
        """Give the edits of a whole view, each block's first one. When it is due depends on nothing that came later."""
        acts = ground.acts.all
        pointless = [(rule, rule.places(ground.acts)) for rule in OF_NO_MORE_USE]
        for place, act in enumerate(acts):
            found = [] if self.newest is None else self._old(acts, place, self.newest)
            found += [
                Due(act.index, places[place], rule.line(act), rule.name, spent=True)
                for rule, places in pointless
                if place in places
            ]
            if found:
                yield min(found, key=lambda due: due.at)

    def _old(self, acts: Sequence[Act], place: int, newest: int) -> list[Due]:
        """Give the edit of a result that is due once so many came after it, if so many came."""
        act, behind = acts[place], place + newest
        return [Due(act.index, acts[behind].index, self._line(act), "clear", spent=False)] if behind < len(acts) else []

    def _line(self, act: Act) -> Rewrite:
        """Show the result of an act as a line; of a failure the error stays, else the model runs into it again."""
        handle = act.answer.origin
        assert handle is not None  # noqa: S101 - an act's result is recorded
        text = self.words(handle, act.said)
        if act.failed:
            text = f"{error_line(act.result)}\n{text}"
        return shown_as(act.answer, text, Reason.OFFLOADED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a policy's edits are made.

    Attributes:
        waiting: What may wait to be set aside.
        fold: Whether exchanges are folded by rent or buy before the room is full.
        keep: Tokens that such a fold leaves; None for what the policy's own cuts leave.
        seed: Draws the thresholds of folds at random; None for the rule without chance.
    """

    waiting: Waiting = Waiting()
    fold: bool = True
    keep: int | None = None
    seed: str | None = None
