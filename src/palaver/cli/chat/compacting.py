"""/compact and /undo: a smaller view, previewed, committed as one entry of the log, and taken back by another."""

from __future__ import annotations

from collections.abc import Callable

from palaver.agent import Agent, AutoCompact
from palaver.cli.chat.screen import Screen, one_line
from palaver.cli.chat.talk import Talk
from palaver.cli.compacting import HOLDS, lines_of
from palaver.errors import InvalidInput, PalaverError
from palaver.plurals import counted
from palaver.session import CompactionPreview
from palaver.session.calls.composing import tokens_of

__all__ = ["POLICY", "compact", "undo", "way_of"]

POLICY = "palaver"
"""What compacts where the chat has no policy: it keeps the conversation's facts, and needs no model."""

_LINES = 16
"""Lines of a preview: the rest is for `palaver compact --preview`."""

_WIDTH = 120
"""Characters of a reason."""


def compact(talk: Talk, screen: Screen, focus: str, agreed: Callable[[str], bool]) -> None:
    """Make the view smaller as the agent does it by itself, if the user agrees.

    Args:
        talk: The chat.
        screen: Where sizes are shown.
        focus: Words to dwell on: what holds one of them stays as it is, and a summariser is told; the agent's own focus when there are none.
        agreed: Asks the user.

    Raises:
        InvalidInput: Nothing can be left out, or the agent's own policy fails.
        InfeasibleBudget: What every view must hold is larger than the budget that the agent compacts to.
    """
    made = _previewed(talk, focus)
    if not made.worthwhile:
        if made.paid:
            made.reject("it would not be smaller")
        raise InvalidInput(
            f"There is nothing to gain: {_sizes(made)}; the newest message and what belongs to it stay in every view.",
            hint="Compact when the conversation has grown.",
        )
    lines = lines_of(made)
    for line in lines[:_LINES]:
        screen.note(line)
    if len(lines) > _LINES:
        screen.note(f"  … {counted(len(lines) - _LINES, 'more line')}")
    if agreed("Compact?"):
        made.approve()
        screen.note(f"Compacted: {_done(made)}. /undo takes it back.")
    else:
        made.reject("the user said no")


def _previewed(talk: Talk, focus: str) -> CompactionPreview:
    how = way_of(talk.agent)
    try:
        return how.preview(talk.dialog.reload(), talk.agent.model, focus=focus)
    except PalaverError:
        raise
    except Exception as error:  # a policy of the caller's may raise anything, and is no reason to end a chat
        name = how.policy if isinstance(how.policy, str) else type(how.policy).__name__
        raise InvalidInput(
            f"The policy {name} raised {type(error).__name__}: {one_line(str(error), _WIDTH)}.",
            hint="Nothing was changed. --policy names another one.",
        ) from error


def way_of(agent: Agent) -> AutoCompact:
    """Give how an agent makes its view smaller: as it does by itself, else as its requests are shaped, else by `palaver`."""
    return agent.compact or AutoCompact(policy=agent.context_manager or POLICY)


def _sizes(made: CompactionPreview) -> str:
    return f"{made.tokens_before:,} tokens -> {made.tokens_after:,} by the policy {made.policy}"


def _done(made: CompactionPreview) -> str:
    """Say in one line what was done: sizes, policy, and whether a model's summary is in it, else why not."""
    if made.summarized is None:
        return f"{_sizes(made)}, without a summary, for no summarizer is set"
    if made.refused:
        return f"{_sizes(made)}, without a summary: {one_line(made.refused, _WIDTH)}"
    return f"{_sizes(made)}, with a summary by {made.summarized.model or 'a model'}"


def undo(talk: Talk, screen: Screen) -> None:
    """Take the newest compaction back.

    Raises:
        InvalidInput: There is none.
    """
    dialog = talk.dialog.reload()
    before = tokens_of(dialog.view(), talk.agent.model)
    dialog.undo()
    screen.note(f"Taken back: {before:,} tokens -> {tokens_of(dialog.view(), talk.agent.model):,}. {HOLDS}")
