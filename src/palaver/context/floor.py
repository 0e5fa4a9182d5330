"""The floor: what every view must hold, and how many tokens of it there are at least."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from palaver.context.measure import Measure
from palaver.context.operators.shorten import least
from palaver.view import View

__all__ = ["floor"]


def floor(view: View, meter: Measure) -> Mapping[str, int]:
    """Give the tokens that must be sent, by what they are for.

    Instructions, tool schemas, the newest user message and what is pinned are sent as they are. Of an exchange that is open, the calls
    are; its texts and the results that have come may be shortened, each to a line with its handle.

    Returns:
        Tokens by name, none of them 0. They add up to the least that any view of the log can have.
    """
    size = meter.view(view)
    newest = view.newest_user()
    needed = {"request": size.request, "instructions": size.instructions, "tools": size.tools}
    names = ("newest user message", "pinned", "open calls")
    needed |= dict.fromkeys(names, 0)
    output = view.unanswered()
    for index, exchange in enumerate(view.exchanges):
        if index == newest:
            needed["newest user message"] += meter.exchange(exchange)
        elif exchange.pinned:
            needed["pinned"] += meter.exchange(exchange)
        elif exchange.open or index == output:
            needed["open calls"] += least(exchange, meter)
    return MappingProxyType({name: tokens for name, tokens in needed.items() if tokens})
