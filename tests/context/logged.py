"""Dialogs in a store in memory, for what needs a log: checkpoints, handles, and how much is read."""

from __future__ import annotations

from palaver.context import Composed, ContextManager, compose, policy
from palaver.context.meter import Meter
from palaver.messages import words_of
from palaver.testing.logs import Log
from palaver.tokens import Budget
from palaver.view import View, fold
from tests.context.pencil import Characters


def view_of(log: Log) -> View:
    """Return the view of a dialog as it stands."""
    return fold(log.store, log.dialog)


def composed_from(log: Log, by: str | ContextManager, limit: int) -> Composed:
    """Compose the dialog as it stands; a token is a character."""
    manager = policy(by)
    assert manager is not None
    return compose(view_of(log), manager, Budget.of_input(limit), Meter(Characters()))


def text_of(view: View, label: str = "record") -> str:
    """Return the derived text with a label; empty where there is none."""
    blocks = [block for each in view.exchanges if each.derived == label for block in each.blocks()]
    assert len(blocks) <= 1
    return "".join(words_of(block.content) for block in blocks)
