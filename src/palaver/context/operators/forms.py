"""Forms of exchanges: what an operator changes in one exchange, and how large it is then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from palaver.context.layout import Form, Layout
from palaver.context.meter import media_in
from palaver.context.notes import kinds, without_media
from palaver.messages import Content, Speaker, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange, Remove, Rewrite

__all__ = ["apply_to_old", "changed", "is_output", "outputs", "text_of", "tool_names"]

Change: TypeAlias = Rewrite | Remove


def text_of(content: Content) -> str:
    """Return the text of a text block or tool result; empty for anything else."""
    if isinstance(content, ToolResultContent):
        return content.text()
    return content.content if isinstance(content, TextContent) else ""


def is_output(block: Block) -> bool:
    """Return whether a tool said a block: a tool result, or in a text protocol a text whose speaker is a tool."""
    return isinstance(block.content, ToolResultContent) or (
        isinstance(block.content, TextContent) and block.speaker is Speaker.TOOL
    )


def outputs(exchange: Exchange) -> Iterator[tuple[Block, str]]:
    """Iterate over the outputs of an exchange that are shown as recorded, each with its text."""
    for block in exchange.blocks():
        if is_output(block) and block.origin is not None and block.reason is None:
            yield block, text_of(block.content)


def tool_names(exchange: Exchange) -> Mapping[str, str]:
    """Return the names of the tools that an exchange calls, by call id."""
    calls = (block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent))
    return {call.id: call.name for call in calls}


def changed(layout: Layout, index: int, changes: Iterable[Change]) -> Form | None:
    """Return an exchange's form with more changes; a change wins over an earlier one of the same block.

    Changes that do not make their block smaller are left out.

    Returns:
        The form; the present one, which may be None, when nothing else remains.
    """
    blocks = {block.origin: block for block in layout.view.exchanges[index].blocks() if block.origin is not None}
    present = layout.form(index)
    size = layout.size(index)
    before: tuple[Change, ...] = () if present is None else (*present.rewrites, *present.removes)
    kept = {change.target: change for change in before}
    for change in changes:
        block, was = blocks[change.target], kept.get(change.target)
        change = _naming_media(change, block)  # noqa: PLW2901 - the same change
        saved = _size(layout, block, was) - _size(layout, block, change)
        if saved > 0:
            kept[change.target], size = change, size - saved
    return present if tuple(kept.values()) == before else Form.of(size, kept.values())


def _naming_media(change: Change, block: Block) -> Change:
    """Return a change whose text names the images and sounds of the block that go with it."""
    media = tuple(media_in(block.content))
    if not media or isinstance(change, Remove) or kinds(media) in change.text:
        return change
    return replace(change, text=without_media(change.target, change.text, media))


def apply_to_old(
    layout: Layout,
    start: int,
    cut: int,
    make: Callable[[Layout, int], Form | None],
    *,
    keep: frozenset[int] | None = None,
) -> Layout:
    """Show the exchanges from `start` to before `cut` in new forms, except derived ones and those to keep (by default, the protected)."""
    forms = {}
    stays = layout.protected if keep is None else keep
    for index in layout.shown(start, cut):
        if index in stays or layout.view.exchanges[index].derived:
            continue
        form = make(layout, index)
        if form is not None and form is not layout.form(index):
            forms[index] = form
    return layout.with_forms(forms) if forms else layout


def _size(layout: Layout, block: Block, change: Change | None) -> int:
    meter = layout.meter
    if change is None:
        return meter.block(block.content)
    if isinstance(change, Remove):
        return 0
    return meter.result(change.text) if isinstance(block.content, ToolResultContent) else meter.text(change.text)
