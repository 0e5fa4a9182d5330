"""/compact and /undo: a smaller view, previewed, committed as one entry of the log, and taken back by another."""

from __future__ import annotations

from collections.abc import Callable

from palaver.cli.chat.screen import Screen
from palaver.cli.chat.talk import Talk
from palaver.cli.compacting import lines_of
from palaver.errors import InvalidInput
from palaver.session.calls.composing import tokens_of

__all__ = ["POLICY", "compact", "undo"]

POLICY = "palaver"
"""What compacts where the chat has no policy: it keeps the conversation's facts, and needs no model."""

_LINES = 16
"""Lines of a preview: the rest is for `palaver compact --preview`."""


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
    how = talk.agent.compact
    policy = talk.agent.context_manager or (POLICY if how is None else how.policy)
    summarizer = None if how is None else how.summarizer
    made = talk.dialog.reload().compact(focus=focus, policy=policy, model=talk.agent.model, summarizer=summarizer)
    if not made.worthwhile:
        raise InvalidInput(
            "There is nothing to gain: the newest message and what belongs to it stay in every view.",
            hint="Compact when the conversation has grown.",
        )
    lines = lines_of(made)
    for line in lines[:_LINES]:
        screen.note(line)
    if len(lines) > _LINES:
        screen.note(f"  … {len(lines) - _LINES} more lines")
    if agreed("Compact?"):
        made.approve()
        screen.note("Compacted. /undo takes it back.")
    else:
        made.reject("the user said no")


def undo(talk: Talk, screen: Screen) -> None:
    """Take the newest compaction back.

    Raises:
        InvalidInput: There is none.
    """
    dialog = talk.dialog.reload()
    before = tokens_of(dialog.view(), talk.agent.model)
    dialog.undo()
    screen.note(f"Taken back: {before:,} tokens -> {tokens_of(dialog.view(), talk.agent.model):,}.")
