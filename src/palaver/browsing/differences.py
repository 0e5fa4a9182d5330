"""Differences: what two calls saw differently, and what two dialogs hold differently."""

from __future__ import annotations

from typing import TypedDict

from palaver.browsing.calls import Answer, call_at
from palaver.ids import BlobId
from palaver.messages import Content, words_of
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.session.differences import BranchDifference, Difference, Side, compare
from palaver.view import fold
from palaver.wire import Call, Request, compile, profile  # noqa: A004 - the word for it

__all__ = ["BlockRow", "CallsRow", "DialogsRow", "PrefixRow", "SideRow", "calls_row", "dialogs_row"]


class BlockRow(TypedDict):
    """A block that differs: its words in the first call and in the second, and why."""

    place: str | None
    before: str | None
    after: str | None
    why: str


class PrefixRow(TypedDict):
    """How many units of the first request the second begins with; the first unit that it does not repeat, and what it has instead."""

    kept: int
    broken: str | None
    instead: str | None


class CallsRow(TypedDict):
    """What the second of two calls sees that the first did not, the reverse, and what both see in different forms.

    `tools` are names, each after a sign: `+` came, `-` went, `~` changed. `recorded` says whether the calls were recorded, not reconstructed.
    """

    entered: list[BlockRow]
    left: list[BlockRow]
    changed: list[BlockRow]
    tools: list[str]
    prefix: PrefixRow
    recorded: bool


def calls_row(dialog: Dialog, first: int, second: int) -> CallsRow:
    """Compare what two calls saw, given by their numbers, and their requests.

    Raises:
        NotFound: There is no call of this number.
        NotReproducible: What one of them saw cannot be given back.
    """
    one, other = call_at(dialog, first), call_at(dialog, second)
    difference = compare(_comparable(dialog, one), _comparable(dialog, other))
    return {
        "entered": [_block(each) for each in difference.entered],
        "left": [_block(each) for each in difference.left],
        "changed": [_block(each) for each in difference.changed],
        "tools": list(difference.tools),
        "prefix": {
            "kept": difference.kept,
            "broken": None if difference.broken is None else difference.broken.decode(),
            "instead": difference.unit.decode() or None,
        },
        "recorded": isinstance(one, ModelCall),
    }


def _comparable(dialog: Dialog, call: ModelCall | Answer) -> ModelCall | Request:
    """Return a recorded call, or the request that shows what was said before a response."""
    if isinstance(call, ModelCall):
        return call
    store, place = dialog.store, call.handle
    view = fold(store, place.dialog, place.seq - 1)
    return compile(view, profile("openai-chat"), Call(model=call.model), lambda digest: store.blob(BlobId(digest)))


def _block(one: Difference) -> BlockRow:
    return {
        "place": one.place and str(one.place),
        "before": _words(one.before),
        "after": _words(one.after),
        "why": one.why,
    }


def _words(content: Content | None) -> str | None:
    return None if content is None else words_of(content) or f"[{content.type}]"


# --- dialogs --------------------------------------------------------------------------------------------------------------------------


class SideRow(TypedDict):
    """What one of two dialogs holds alone: how many entries, and the entries that begin its messages."""

    dialog: str
    entries: int
    messages: list[str]


class DialogsRow(TypedDict):
    """How two dialogs differ: the last entry and the number of messages that both begin with, and what each holds alone."""

    ancestor: str | None
    common: int
    one: SideRow
    other: SideRow


def dialogs_row(difference: BranchDifference) -> DialogsRow:
    """Return how two dialogs differ (`Session.diff`)."""
    return {
        "ancestor": difference.ancestor and str(difference.ancestor),
        "common": difference.common,
        "one": _side(difference.one),
        "other": _side(difference.other),
    }


def _side(side: Side) -> SideRow:
    places = [str(side.messages.handle(index)) for index in range(len(side.messages))]
    return {"dialog": side.dialog_id, "entries": side.entries, "messages": places}
