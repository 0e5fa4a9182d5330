"""/compact and /undo: a smaller view, previewed, committed as one entry of the log, and taken back by another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from palaver.cli.chat.screen import Screen
from palaver.cli.chat.talk import Talk
from palaver.context import Composed
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.log import Handle
from palaver.messages import TextContent, ToolCallContent, ToolResultContent
from palaver.session import Dialog
from palaver.session.composing import tokens_of
from palaver.tokens import Budget
from palaver.view import Block, Exchange

__all__ = ["compact", "undo"]

_SHARE = 0.5
"""The share of its size that a view is to keep."""

_POLICY = "fold"
"""What compacts where the chat has no policy: it keeps the conversation's facts, and needs no model."""

_MARGIN = 0.95
"""A view that keeps more than this share of its size is not worth it: the session refuses to commit it."""


def compact(talk: Talk, screen: Screen, focus: str, agreed: Callable[[str], bool]) -> None:
    """Make the view smaller, if the user agrees.

    Args:
        talk: The chat.
        screen: Where sizes are shown.
        focus: Words: what holds one of them stays as it is.
        agreed: Asks the user.

    Raises:
        InvalidInput: Nothing can be left out.
    """
    dialog = talk.dialog.reload()
    with _kept(dialog, focus) as kept:
        made = _composed(talk, dialog)
        if made is None or made.tokens_after > _MARGIN * made.tokens_before:
            raise InvalidInput(
                "There is nothing to gain: the newest message and what belongs to it stay in every view.",
                hint="Compact when the conversation has grown.",
            )
        by = made.view.policies[-1] if made.view.policies else made.plan.policy
        left_out = sum(gone.messages for gone in made.view.omissions)
        screen.note(
            f"{made.tokens_before:,} tokens -> {made.tokens_after:,} (policy {by}); {left_out} messages leave the view, none the log."
        )
        if focus:
            screen.note(f"  {kept} exchanges with {focus!r} stay as they are.")
        if agreed("Compact?"):
            dialog.commit(made)
            screen.note("Compacted. /undo takes it back.")


def undo(talk: Talk, screen: Screen) -> None:
    """Take the newest compaction back.

    Raises:
        InvalidInput: There is none.
    """
    dialog = talk.dialog.reload()
    before = tokens_of(dialog.view(), talk.agent.model)
    dialog.undo()
    screen.note(f"Taken back: {before:,} tokens -> {tokens_of(dialog.view(), talk.agent.model):,}.")


def _composed(talk: Talk, dialog: Dialog) -> Composed | None:
    """Preview a view of half the size, or the smallest that there can be; None where there is none."""
    policy = talk.agent.context_manager or _POLICY
    model = talk.agent.model
    size = tokens_of(dialog.view(), model)
    target = max(1, int(size * _SHARE))
    for _ in range(2):
        try:
            return dialog.compose(policy, Budget.of_input(target), model=model)
        except InfeasibleBudget as error:
            if error.needed >= size:
                return None
            target = error.needed
    return None


@contextmanager
def _kept(dialog: Dialog, focus: str) -> Iterator[int]:
    """Pin the exchanges that hold a word of the focus, for as long as a view is made; give how many there are."""
    words = [word.casefold() for word in focus.split()]
    pinned = set(dialog.pins)
    found: list[list[Handle]] = []
    for exchange in dialog.view().exchanges if words else ():
        if exchange.runs and any(word in _text(exchange) for word in words):
            entries = [Handle(run.dialog, seq) for run in exchange.runs for seq in range(run.start, run.stop)]
            found.append([entry for entry in entries if entry not in pinned])
    for handle in (one for entries in found for one in entries):
        dialog.pin(handle)
    try:
        yield len(found)
    finally:
        for handle in (one for entries in found for one in entries):
            dialog.pin(handle, pinned=False)


def _text(exchange: Exchange) -> str:
    return "\n".join(map(_said, exchange.blocks())).casefold()


def _said(block: Block) -> str:
    content = block.content
    if isinstance(content, TextContent):
        return content.content
    if isinstance(content, ToolCallContent):
        return f"{content.name} {content.arguments}"
    return content.text() if isinstance(content, ToolResultContent) else ""
