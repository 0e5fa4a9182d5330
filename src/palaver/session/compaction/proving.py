"""What a summariser wrote is held to the log before it is offered; and what became of an attempt is recorded without words that were erased since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from palaver.context import Composed, Summarized
from palaver.context.record.running import running
from palaver.context.summary import Breaker
from palaver.log import Custom, Handle
from palaver.log.erasure import unquoting
from palaver.session.compaction.committing import writable
from palaver.session.reading.erased import erased_since
from palaver.store.protocol import Store
from palaver.view import View

__all__ = ["noted", "or_plain"]

_UNWRITABLE = "the log would not give back what it wrote as it is"

_ERASED = "something that the dialog holds was erased meanwhile"
"""The reason that is recorded then: another one may quote what was erased."""


def or_plain(
    store: Store, view: View, made: Summarized, plain: Composed, before: str | None, breaker: Breaker
) -> Summarized:
    """Give what came of a summariser, if it can be written down; else the plan of code alone, and a failure more: it is not asked for ever.

    Where something was erased meanwhile nothing is judged: the commit refuses it.

    Args:
        store: Where the dialog lies.
        view: The view that is to become smaller.
        made: What came of the summariser.
        plain: The plan that code made.
        before: The running summary before; the one in the view where it is None.
        breaker: The breaker before.
    """
    same = made.composed is plain or writable(store, made.composed.view)
    if same or erased_since(store, view.dialog_id, view.at) is not None:
        return made
    return replace(
        made,
        composed=plain,
        summary=running(view) if before is None else before,
        retention=None,
        refused=_UNWRITABLE,
        invented=(),
        breaker=breaker.after(failed=True, tokens=plain.tokens_before),
    )


def noted(store: Store, annotate: Callable[[Custom], Handle], view: View, entry: Custom) -> Handle:
    """Record what became of an attempt at making a view smaller; without the words that may quote what was erased since it was made."""
    with store.together():
        if erased_since(store, view.dialog_id, view.at) is not None:
            told = unquoting(entry.data)
            entry = entry.model_copy(update={"data": {**told, "rejected": _ERASED}})
        return annotate(entry)
