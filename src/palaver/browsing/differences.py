"""Differences: what two calls saw differently, and where two dialogs differ."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from palaver.browsing.calls import ImportedCall, before, is_recorded
from palaver.context import Composed
from palaver.errors import NotReproducible
from palaver.messages import Content, words_of
from palaver.providers import profile
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.session.differences import BranchDifference, CallDifference, Difference, Side, compare
from palaver.store.records import payloads_of
from palaver.view import View, fold
from palaver.wire import Call, Request, compile  # noqa: A004 - the word for it


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

    `tools` are names, each after a sign: `+` came, `-` went, `~` changed. `recorded` says whether both requests are proved to be what was sent.
    """

    entered: list[BlockRow]
    left: list[BlockRow]
    changed: list[BlockRow]
    tools: list[str]
    prefix: PrefixRow
    recorded: bool


def calls_row(dialog: Dialog, first: ModelCall | ImportedCall, second: ModelCall | ImportedCall) -> CallsRow:
    """Compare what two calls saw, and their requests.

    Raises:
        NotReproducible: What one of them saw cannot be reproduced.
    """
    before, after = rebuilt(dialog, first), rebuilt(dialog, second)
    return _row(compare(before.request, after.request), recorded=before.proved and after.proved)


def proposed_row(
    dialog: Dialog, call: ModelCall | ImportedCall | None, policy: str, budget: int | None
) -> tuple[Composed, CallsRow]:
    """Compare what was seen at a call, or is seen now, with what a policy makes of what was said before; return that, too.

    Raises:
        NotFound: There is no policy of this name.
        InfeasibleBudget: What must be sent is larger than the budget.
    """
    view = fold(dialog.store, dialog.dialog_id) if call is None else before(dialog, call)
    request = compiled(dialog, view, view.model) if call is None else requested(dialog, call)
    made = dialog.compaction.compose(policy, budget, model=request.model, view=view)
    after = compile(made.view, request.profile, Call(model=request.model), payloads_of(dialog.store, dialog.session_id))
    return made, _row(compare(request, after), recorded=call is not None and is_recorded(call))


def _row(difference: CallDifference, *, recorded: bool) -> CallsRow:
    return {
        "entered": [_block(block) for block in difference.entered],
        "left": [_block(block) for block in difference.left],
        "changed": [_block(block) for block in difference.changed],
        "tools": list(difference.tools),
        "prefix": {
            "kept": difference.kept,
            "broken": None if difference.broken is None else difference.broken.decode(),
            "instead": difference.unit.decode() or None,
        },
        "recorded": recorded,
    }


def requested(dialog: Dialog, call: ModelCall | ImportedCall) -> Request:
    """Return the request of a call, to the byte; where it was not recorded, one for OpenAI Chat of what was said before.

    Raises:
        NotReproducible: It was erased, or compiling produces other bytes today.
    """
    if is_recorded(call):
        return call.request()
    return compiled(dialog, before(dialog, call), call.model)


class Rebuilt(NamedTuple):
    """The request of a call, and whether it is proved to be what was sent."""

    request: Request
    proved: bool


def rebuilt(dialog: Dialog, call: ModelCall | ImportedCall) -> Rebuilt:
    """Return the request of a call; where compiling what was recorded produces other bytes today, those.

    Raises:
        NotReproducible: It was erased.
    """
    try:
        return Rebuilt(requested(dialog, call), is_recorded(call))
    except NotReproducible as error:
        if not isinstance(error.request, Request):
            raise
        return Rebuilt(error.request, proved=False)


def compiled(dialog: Dialog, view: View, model: str) -> Request:
    """Return the request of a view for OpenAI Chat."""
    return compile(view, profile("openai-chat"), Call(model=model), payloads_of(dialog.store, dialog.session_id))


def _block(difference: Difference) -> BlockRow:
    return {
        "place": difference.place and str(difference.place),
        "before": _words(difference.before),
        "after": _words(difference.after),
        "why": difference.why,
    }


def _words(content: Content | None) -> str | None:
    return None if content is None else words_of(content) or f"[{content.type}]"


# --- dialogs --------------------------------------------------------------------------------------------------------------------------


class SideRow(TypedDict):
    """What only one of two dialogs has: how many entries, and the entries that begin its messages."""

    dialog: str
    entries: int
    messages: list[str]


class DialogsRow(TypedDict):
    """How two dialogs differ: the last entry and the number of messages that both begin with, and what only one has."""

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
