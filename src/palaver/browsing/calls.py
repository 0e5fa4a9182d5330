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
    told = enumerate(dialog.messages.placed(Role.ASSISTANT), 1)
    return [Answer(number, place, each.model or "", each.timestamp, each.usage) for number, (place, each) in told]


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
