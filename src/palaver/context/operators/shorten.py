"""Shorten: show the beginning and the end of large outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from palaver.context.layout import Form, Layout
from palaver.context.notes import head_and_tail
from palaver.context.operators.forms import changed, outputs
from palaver.log import Handle
from palaver.view import Reason, Rewrite

__all__ = ["Part", "Shortened", "shorten"]

Part: TypeAlias = Callable[[Handle, str, int], str]
"""Makes the text that stands for an output from its handle, its text and the characters to keep."""

_TOKENS_PER_BYTE = 2
"""No tokenizer makes more tokens of a byte: an exchange of fewer bytes is not read."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """The rule that shortens every output of more than `largest` tokens to about `shown`.

    Attributes:
        largest: Outputs of more tokens are shortened.
        shown: Tokens that stay.
        words: What the rest looks like.
    """

    largest: int
    shown: int
    words: Part = head_and_tail

    def __call__(self, layout: Layout, index: int) -> Form | None:
        """Return the form of an exchange; None where no output is too large."""
        exchange = layout.view.exchanges[index]
        if exchange.derived or exchange.size * _TOKENS_PER_BYTE <= self.largest:
            return None
        if layout.recorded(index) <= self.largest:
            return None
        return changed(layout, index, self._changes(layout, index))

    def _changes(self, layout: Layout, index: int) -> list[Rewrite]:
        found = []
        for block, text in outputs(layout.view.exchanges[index]):
            size = layout.meter.block(block.content)
            if size > self.largest and text and block.origin is not None:
                keep = len(text) * self.shown // size
                found.append(
                    Rewrite(target=block.origin, text=self.words(block.origin, text, keep), reason=Reason.SHORTENED)
                )
        return found


def shorten(layout: Layout, *, largest: int, shown: int, words: Part = head_and_tail) -> Layout:
    """Shorten every output of more than `largest` tokens, wherever it stands, the newest included.

    The form depends on the output alone, so nothing changes between calls.

    Args:
        layout: The layout.
        largest: Outputs of more tokens are shortened.
        shown: Tokens that stay: by default a third from the beginning and the rest from the end.
        words: Makes what stands there from handle, text and characters to keep.
    """
    return layout.with_rule(Shortened(largest, shown, words))
