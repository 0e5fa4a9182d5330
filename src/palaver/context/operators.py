"""Operators: small pure functions that make a layout smaller.

Each changes only exchanges before the cut that are not protected, and names the handle of everything it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from palaver.context.layout import STAND_INS, Form, Layout
from palaver.context.meter import media_in
from palaver.context.notes import first_line, head_and_tail, kinds, without_media
from palaver.context.record import note, record
from palaver.log import Handle
from palaver.messages import Content, Speaker, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange, Insert, Reason, Remove, Rewrite

Part: TypeAlias = Callable[[Handle, str, int], str]
"""Makes the text that replaces an output from its handle, its text and the characters to keep."""

_TOKENS_PER_BYTE = 2
"""No tokenizer makes more tokens of a byte: an exchange of fewer bytes is not read."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """The rule that shows only a part of large outputs, at any place.

    Attributes:
        largest: Outputs of more tokens, or characters, are shortened.
        shown: How much of them stays, in the same unit.
        words: What the rest looks like.
        characters: Whether the figures are characters, not tokens.
        exempt: Names of tools whose outputs are always whole, in lower case.
    """

    largest: int
    shown: int
    words: Part = head_and_tail
    characters: bool = False
    exempt: Collection[str] = ()

    def __call__(self, layout: Layout, index: int) -> Form | None:
        """Return the form of an exchange; None where no output is too large."""
        exchange = layout.view.exchanges[index]
        if exchange.derived or exchange.size * (1 if self.characters else _TOKENS_PER_BYTE) <= self.largest:
            return None
        layout.recorded(index)
        names = tool_names(exchange) if self.exempt else {}
        rewrites = []
        for block, text in outputs(exchange):
            size = len(text) if self.characters else layout.meter.block(block.content)
            exempt = names.get(getattr(block.content, "id", ""), "").casefold() in self.exempt
            if size > self.largest and text and block.origin is not None and not exempt:
                words = self.words(block.origin, text, len(text) * self.shown // size)
                rewrites.append(Rewrite(target=block.origin, text=words, reason=Reason.SHORTENED))
        return changed(layout, index, rewrites)


def shorten(layout: Layout, *, largest: int, shown: int, words: Part = head_and_tail) -> Layout:
    """Shorten every output of more than `largest` tokens, the newest included.

    The form depends on the output alone, so nothing changes between calls.

    Args:
        layout: The layout.
        largest: Outputs of more tokens are shortened.
        shown: Tokens that stay: by default a third from the beginning and the rest from the end.
        words: Makes the shorter text from handle, text and characters to keep.
    """
    return layout.with_rule(Shortened(largest, shown, words))


_SHOWN_SHARE = 20
"""Of a huge output a twentieth of the limit is shown. Source: docs/study.md; shares of 0.01 to 0.05 were tried."""


def shorten_huge(layout: Layout, share: float = 1) -> Layout:
    """Shorten every output that no view has room for, the newest included.

    Args:
        layout: The layout.
        share: The share of the limit that one output may have; never more than instructions and tools leave.
    """
    most = min(int(layout.limit * share), max(layout.limit - layout.fixed, 0))
    return shorten(layout, largest=most, shown=min(layout.limit // _SHOWN_SHARE, most // 4))


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
        lambda state, index: cleared_form(state, index, least=least, exclude=exclude, words=words),
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


def hide_media(layout: Layout, cut: int, *, start: int = 0, keep: frozenset[int] | None = None) -> Layout:
    """Show the images and sounds of the exchanges from `start` to before `cut`, except those to keep, as a line each."""
    return apply_to_old(layout, start, cut, _hidden, keep=keep)


def _hidden(layout: Layout, index: int) -> Form | None:
    layout.recorded(index)
    changes = []
    for block in layout.view.exchanges[index].blocks():
        media = tuple(media_in(block.content))
        if media and block.origin is not None and block.reason is None:
            text = without_media(block.origin, text_of(block.content), media)
            changes.append(Rewrite(target=block.origin, text=text, reason=Reason.OFFLOADED))
    return changed(layout, index, changes) if changes else layout.form(index)


def drop_reasoning(layout: Layout, cut: int, *, start: int = 0) -> Layout:
    """Leave out the thinking of the exchanges from `start` to before `cut` that are older than the newest user message."""
    newest = layout.view.newest_user()
    return layout if newest is None else apply_to_old(layout, start, min(cut, newest), _without_thinking)


def _without_thinking(layout: Layout, index: int) -> Form | None:
    """Return the form without thinking, except in turns that have nothing else."""
    layout.recorded(index)
    gone = []
    for turn in layout.view.exchanges[index].turns:
        thoughts = [block for block in turn.blocks if isinstance(block.content, ThinkingContent)]
        if len(thoughts) < len(turn.blocks):
            gone += [
                Remove(target=block.origin, reason=Reason.OVER_BUDGET) for block in thoughts if block.origin is not None
            ]
    return changed(layout, index, gone) if gone else layout.form(index)


StandIn: TypeAlias = Callable[[Layout], Insert]
"""Makes the text that replaces what is left out: `record.record` or `record.note`."""


def drop(
    layout: Layout,
    cut: int,
    *,
    first: int = 0,
    stand_in: StandIn = record,
    keep: frozenset[int] | None = None,
    room: int | None = None,
) -> Layout:
    """Leave out the exchanges before `cut`, except those to keep, with a record in their place.

    The record covers what was dropped before, too. Where nothing would leave but an earlier record, the layout stays as it is.

    Args:
        layout: The layout.
        cut: The first exchange that stays.
        first: How many exchanges at the beginning stay, too.
        stand_in: Makes the text in their place.
        keep: Indexes of exchanges that stay; by default the protected ones.
        room: The tokens of which a record has its shares; by default the target.
    """
    reason = Reason.OVER_BUDGET if stand_in is note else Reason.FOLDED
    gone = layout.without(first, cut, reason, keep=keep)
    if all(layout.view.exchanges[index].derived in STAND_INS for indexes, _ in gone.dropped for index in indexes):
        return layout
    return gone.without_stand_ins().with_insert(stand_in(gone if room is None else replace(gone, target=room)))


def drop_with_note(layout: Layout, cut: int) -> Layout:
    """Leave out the exchanges before `cut`, except protected ones, with one line in their place."""
    return drop(layout, cut, stand_in=note)


def clear_then_drop(layout: Layout, cut: int, *, share: float) -> Layout:
    """Clear old outputs, newest first, within a share of the target, and drop what is older. Nothing is dropped where all of it fits the share."""
    room = int((layout.target - layout.fixed) * share)
    forms, first = {}, cut
    while first > 0:
        index = first - 1
        if index not in layout.protected:
            form = cleared_form(layout, index)
            if form is not None:
                forms[index] = form
            room -= layout.size(index) if form is None else form.size
            if room < 0:
                forms.pop(index, None)
                break
        first = index
    return drop(layout.with_forms(forms), first)


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
    """Show the exchanges from `start` to before `cut` in new forms, except derived ones and those to keep (by default, the protected).

    Once the newest exchanges exceed the limit in their new forms, older ones are not read: no view within the limit shows them.
    """
    forms: dict[int, Form] = {}
    stays = layout.protected if keep is None else keep
    total = layout.fixed + layout.added
    for index in layout.shown():
        if index < start or total > layout.limit:
            break
        form = layout.form(index)
        if index < cut and index not in stays and not layout.view.exchanges[index].derived:
            made = make(layout, index)
            if made is not None and made is not form:
                forms[index] = form = made
        total += layout.recorded(index) if form is None else form.size
    return layout.with_forms(forms) if forms else layout


def _size(layout: Layout, block: Block, change: Change | None) -> int:
    meter = layout.meter
    if change is None:
        return meter.block(block.content)
    if isinstance(change, Remove):
        return 0
    return meter.result(change.text) if isinstance(block.content, ToolResultContent) else meter.text(change.text)
