"""Clear: show old tool outputs as a line each, with size and handle."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from palaver.context.layout import Form, Layout
from palaver.context.notes import first_line
from palaver.context.operators.forms import apply_to_old, changed, outputs, tool_names
from palaver.log import Handle
from palaver.messages import ToolResultContent
from palaver.view import Reason, Rewrite

__all__ = ["LEAST", "Words", "clear", "cleared_form"]

Words: TypeAlias = Callable[[Handle, str], str]
"""Makes a placeholder from an output's handle and text."""

LEAST = 100
"""Outputs of at most this many tokens stay: a placeholder takes 30 to 60."""


def clear(
    layout: Layout,
    cut: int,
    *,
    start: int = 0,
    least: int = LEAST,
    exclude: Collection[str] = (),
    words: Words = first_line,
) -> Layout:
    """Clear the outputs of the exchanges from `start` to before `cut`.

    Args:
        layout: The layout.
        cut: The first new exchange.
        start: The first exchange to look at.
        least: Outputs of at most this size stay.
        exclude: Names of tools whose outputs stay.
        words: Makes the placeholder; by default size, handle and first line.
    """
    return apply_to_old(
        layout,
        start,
        cut,
        lambda each, index: cleared_form(each, index, least=least, exclude=exclude, words=words),
    )


def cleared_form(
    layout: Layout, index: int, *, least: int = LEAST, exclude: Collection[str] = (), words: Words = first_line
) -> Form | None:
    """Return an exchange with its outputs cleared; its present form where there is nothing to clear."""
    if index in layout.forms:
        return _cleared(layout, index, least, exclude, words)
    key = ("clear", least, frozenset(exclude), words, layout.rules)
    exchange = layout.view.exchanges[index]
    return layout.meter.remember(exchange, key, lambda: _cleared(layout, index, least, exclude, words))


def _cleared(layout: Layout, index: int, least: int, exclude: Collection[str], words: Words) -> Form | None:
    layout.recorded(index)
    exchange = layout.view.exchanges[index]
    names = tool_names(exchange) if exclude else {}
    changes = [
        Rewrite(target=block.origin, text=words(block.origin, text), reason=Reason.OFFLOADED)
        for block, text in outputs(exchange)
        if block.origin is not None
        and layout.meter.block(block.content) > least
        and not (isinstance(block.content, ToolResultContent) and names.get(block.content.id) in exclude)
    ]
    return changed(layout, index, changes)
