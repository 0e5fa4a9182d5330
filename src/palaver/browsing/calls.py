"""Calls: the model calls of a dialog, as they were recorded, or reconstructed from the responses of an imported session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NotRequired, TypedDict

from palaver.errors import NotFound
from palaver.log import Handle
from palaver.messages import Role, Usage
from palaver.plurals import counted
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.tokens import cost_of
from palaver.view import View, fold

__all__ = ["Answer", "CallRow", "before", "call_at", "call_row", "calls", "is_recorded", "saw"]


class Answer(NamedTuple):
    """A response of a session that was imported, as a call: its file says what was said, not what the call was given.

    Attributes:
        number: Its number, starting at 1.
        handle: The entry that begins the response.
        model: The model.
        at: When it came, or None.
        usage: What the provider reported, or None.
    """

    number: int
    handle: Handle
    model: str
    at: float | None
    usage: Usage | None


class CallRow(TypedDict):
    """A call: its number, the entry that records it or begins the response, and what it used.

    `recorded` says whether palaver made the call. Such a call says which request was sent: the profile, the SHA-256 and number of its bytes, the
    version of the compiler; and whether what it saw can be reproduced.
    """

    call: int
    at: float | None
    model: str
    entry: str
    recorded: bool
    read: int
    cached: int
    written: int
    dollars: float | None
    estimated: bool
    profile: NotRequired[str]
    digest: NotRequired[str]
    bytes: NotRequired[int]
    compiler: NotRequired[str]
    reproducible: NotRequired[bool]


def calls(dialog: Dialog) -> Sequence[ModelCall] | Sequence[Answer]:
    """Return the calls of a dialog in order: the recorded ones, or where there is none one for each response. No view is composed."""
    if len(dialog.calls):
        return dialog.calls
    return _answers(dialog)


def _answers(dialog: Dialog) -> list[Answer]:
    """Return the responses; a message that reports no usage, and that another one follows at once, is the beginning of the same response."""
    found: list[Answer] = []
    last: Handle | None = None
    for place, each in dialog.messages.placed(Role.ASSISTANT):
        goes_on = last is not None and not found[-1].usage and _follows(dialog, last, place)
        start = found.pop().handle if goes_on else place
        found.append(Answer(len(found) + 1, start, each.model or "", each.timestamp, each.usage))
        last = place
    return found


def _follows(dialog: Dialog, one: Handle, other: Handle) -> bool:
    """Return whether no message begins between two."""
    numbers = [dialog.store.header(place.dialog, place.seq).number for place in (one, other)]
    return one.dialog == other.dialog and numbers[0] + 1 == numbers[1]


def call_at(dialog: Dialog, number: int) -> ModelCall | Answer:
    """Return a call by its number, starting at 1.

    Raises:
        NotFound: There is none.
    """
    known = calls(dialog)
    if number > len(known):
        hint = f"The dialog has {counted(len(known), 'call')}; `palaver calls` lists them."
        raise NotFound(str(number), what="call", hint=hint)
    return known[number - 1]


def is_recorded(call: ModelCall | Answer) -> bool:
    """Return whether what the call saw was recorded, and can be given back to the byte."""
    return isinstance(call, ModelCall) and call.reproducible


def before(dialog: Dialog, call: ModelCall | Answer) -> View:
    """Return the view of what was said before a call."""
    return fold(dialog.store, call.handle.dialog, call.handle.seq - 1)


def saw(dialog: Dialog, call: ModelCall | Answer) -> View:
    """Return what a call saw: as it was recorded, or else what was said before it.

    Raises:
        NotReproducible: It was erased.
    """
    return call.view() if isinstance(call, ModelCall) and call.reproducible else before(dialog, call)


def call_row(call: ModelCall | Answer) -> CallRow:
    """Return a call as it is listed."""
    usage = (call.usage() if isinstance(call, ModelCall) else call.usage) or Usage()
    cost = cost_of(usage, call.model, call.at)
    row: CallRow = {
        "call": call.number,
        "at": call.at,
        "model": call.model,
        "entry": str(call.handle),
        "recorded": isinstance(call, ModelCall),
        "read": cost.prompt_tokens,
        "cached": cost.cached_prompt_tokens,
        "written": cost.completion_tokens,
        "dollars": cost.cost or None,
        "estimated": cost.estimated > 0,
    }
    if isinstance(call, ModelCall):
        row["reproducible"] = call.reproducible
        if sent := call.sent:
            row |= {"profile": sent["profile"], "digest": sent["digest"]}
            row |= {"bytes": sent["bytes"], "compiler": sent["compiler"]}
    return row
