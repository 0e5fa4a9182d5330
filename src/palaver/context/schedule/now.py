"""What is known of the provider's cache before each call: whether it is cold, and from where on it is lost."""

from __future__ import annotations

from palaver.context.account import same_form
from palaver.context.ledger import Ledger
from palaver.context.schedule.calls import Called, Calls
from palaver.context.schedule.edits import Why
from palaver.context.schedule.prices import PriceSheet
from palaver.log import Handle
from palaver.messages import Role
from palaver.view import Exchange, View

__all__ = ["Before"]


class Before:
    """Tells, for each exchange of a view, how the cache stands before the call that comes after it.

    What is kept is when the prefix was last sent, not whether the last call hit the cache: a call that missed it has just written it.
    """

    def __init__(self, view: View, books: Ledger) -> None:
        """Read the times and models of past calls from the books."""
        self._view = view
        self._calls = books.calls or Calls()
        self._sent = self._calls.sent
        self._called = [
            self._calls.of(exchange) if exchange.role is Role.ASSISTANT else None for exchange in view.exchanges
        ]
        self._newest = list[int]()
        newest = -1
        for index, exchange in enumerate(view.exchanges):
            newest = index if exchange.role is Role.ASSISTANT else newest
            self._newest.append(newest)

    def free(self, index: int, prices: PriceSheet) -> tuple[int | None, Why]:
        """Give the exchange from which on the call after `index` writes everything anew anyway, and why; None where the cache holds."""
        last = index == len(self._view.exchanges) - 1
        before, following = self._around(index)
        model = following.model if following is not None else self._calls.model if last else ""
        if before is not None and model and before.model and model != before.model:
            return 0, Why.LOST
        pause = self.pause(index)
        if pause is not None and prices.cold(pause):
            return 0, Why.COLD
        return (self._broken(), Why.LOST) if last else (None, Why.LOST)

    def pause(self, index: int) -> float | None:
        """Give the seconds that pass between the last call before the one that comes after `index`, and that one; None where nobody knows."""
        last = index == len(self._view.exchanges) - 1
        before, following = self._around(index)
        then = following.at if following is not None else self._calls.now if last else None
        used = before.at if before is not None else self._calls.answered if last else None
        return None if then is None or used is None else then - used

    def _around(self, index: int) -> tuple[Called | None, Called | None]:
        """Give the last call before the one that comes after `index`, and that one, as far as they are recorded."""
        if index == len(self._view.exchanges) - 1:
            return self._last(), None
        return self._at(self._newest[index]), self._at(index + 1)

    def _at(self, index: int) -> Called | None:
        return self._called[index] if index >= 0 else None

    def _last(self) -> Called | None:
        return self._calls.last or self._at(self._newest[-1])

    def sent(self, index: int) -> frozenset[Handle]:
        """Give the blocks that the last call was sent in another form, where the next call is the one after `index`."""
        if self._sent is None or index < len(self._view.exchanges) - 1:
            return frozenset()
        return frozenset(
            block.origin
            for exchange in self._sent.exchanges
            for block in exchange.blocks()
            if block.reason is not None and block.origin is not None
        )

    def _broken(self) -> int | None:
        """Give the first exchange that is not as the last call was sent it; None where all are, or where nobody can tell.

        A block that the last call was sent in a shorter form is as it was sent: that form is kept. Where the last call was sent less than
        the view has, a policy had left something out, and how the next request begins is that policy's to say.
        """
        sent = self._sent
        if sent is None:
            return None
        if sent.system != self._view.system or sent.tools != self._view.tools:
            return 0
        if len(sent.omissions) > len(self._view.omissions):
            return None
        for index, (one, other) in enumerate(zip(sent.exchanges, self._view.exchanges, strict=False)):
            if not _as_sent(one, other):
                return index
        return None


def _as_sent(sent: Exchange, now: Exchange) -> bool:
    """Tell whether an exchange stands as it was sent, or would but for forms that are kept."""
    if same_form(sent, now):
        return True
    return sent.runs == now.runs and all(
        one.reason is not None or one.content == other.content
        for one, other in zip(sent.blocks(), now.blocks(), strict=False)
    )
