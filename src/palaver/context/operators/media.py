"""Hide media: show old images and sounds as a line each, with their handles."""

from __future__ import annotations

from palaver.context.layout import Form, Layout
from palaver.context.meter import media_in
from palaver.context.notes import without_media
from palaver.context.operators.forms import apply_to_old, changed, text_of
from palaver.view import Reason, Rewrite

__all__ = ["hide_media"]


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
