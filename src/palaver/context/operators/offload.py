"""Set aside: large tool outputs outside the hot tail are shown as a short reference. Reversible: the handle brings back every byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from palaver.context.ground import Form, Ground, Layout
from palaver.context.operators.drop_oldest import settled
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.shorten import text_of
from palaver.context.texts import reference
from palaver.messages import ToolResultContent
from palaver.view import Exchange, Reason, Rewrite

__all__ = ["KEEP_LAST", "OFFLOAD", "THRESHOLD", "offload", "set_aside"]

THRESHOLD = 500
"""Tokens of output beyond which it is set aside (compaction_token_threshold of dynamiq)."""

KEEP_LAST = 2
"""Messages at the end whose outputs stay as they are, where the budget does not say (preserve_last_messages of dynamiq)."""

_LINES = 2


def set_aside(ground: Ground, upto: int, layout: Layout, *, threshold: int = THRESHOLD) -> Layout:
    """Show the outputs of more than `threshold` tokens, outside the hot tail, as references. What is pinned stays as it is.

    All of them at once: each change of what was sent before costs the provider's cache from there on.
    """
    forms = dict(layout.forms)
    for index in _cold(ground, upto, layout):
        exchange = ground.view.exchanges[index]
        if index in forms or exchange.pinned or exchange.open:
            continue
        rewrites = tuple(_references(ground, exchange, threshold))
        if rewrites:
            saved = sum(_saving(ground, exchange, rewrite) for rewrite in rewrites)
            forms[index] = Form(rewrites=rewrites, tokens=ground.whole(index) - saved)
    return settled(ground, upto, replace(layout, forms=MappingProxyType(forms)))


def _cold(ground: Ground, upto: int, layout: Layout) -> Iterator[int]:
    """Give the exchanges that are shown and lie before the hot tail; the newest exchange is hot, whatever its size."""
    tokens = messages = 0
    keep_last = ground.budget.keep_last or KEEP_LAST
    hot = upto
    for index in range(upto, layout.cut - 1, -1):
        if messages >= keep_last and tokens >= ground.budget.keep_recent:
            break
        messages += ground.view.exchanges[index].messages
        tokens += ground.size(index, layout)
        hot = index
    return (index for index in layout.shown(hot - 1))


def _references(ground: Ground, exchange: Exchange, threshold: int) -> Iterator[Rewrite]:
    for block in exchange.blocks():
        text = text_of(block)
        if text is None or block.origin is None or not isinstance(block.content, ToolResultContent):
            continue
        whole = ground.meter.block(block.content)
        if whole > threshold:
            short = reference(block.origin, text, lines=_LINES)
            if ground.meter.text(short) + ground.meter.counter.family.per_result < whole:
                yield Rewrite(target=block.origin, text=short, reason=Reason.OFFLOADED)


def _saving(ground: Ground, exchange: Exchange, rewrite: Rewrite) -> int:
    whole = next(block for block in exchange.blocks() if block.origin == rewrite.target)
    return ground.meter.block(whole.content) - ground.meter.counter.family.per_result - ground.meter.text(rewrite.text)


def offload(threshold: int) -> Operator:
    """Give the operator that sets aside what has more than `threshold` tokens."""
    return Operator("offload", Loss.REVERSIBLE, partial(set_aside, threshold=threshold))


OFFLOAD = offload(THRESHOLD)
