"""Calls: the model calls of a dialog, as they were recorded, or reconstructed from the responses of an imported session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypeAlias, TypedDict, TypeGuard

from palaver.errors import NotFound
from palaver.log import Handle, MessageEntry, entry_at, every_header
from palaver.messages import Message, Role, Usage
from palaver.plurals import counted
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.store import Store
from palaver.tokens.pricing import cost_of
from palaver.view import View, fold, held


@dataclass(frozen=True, kw_only=True)
class ImportedCall:
    """A response of a session that was imported, as a call: its file says what was said, not what the model saw.

    Attributes:
        store: Where it is recorded.
        number: Its number, starting at 1.
        at: When it began.
        entries: Its entries, in order.
    """

    store: Store = field(repr=False)
    number: int
    at: float
    entries: list[Handle]

    @property
    def handle(self) -> Handle:
        """The entry that begins it."""
        return self.entries[0]

    def told(self) -> tuple[str, Usage | None]:
        """Return the model, and what the provider reported, from the entries that can be read; only as many are read as say it."""
        model = next((message.model or "" for message in self._messages(self.entries)), "")
        return model, next((message.usage for message in self._messages(reversed(self.entries)) if message.usage), None)

    def _messages(self, entries: Iterable[Handle]) -> Iterator[Message]:
        found = (entry_at(self.store, place) for place in entries)
        return (entry.message for entry in found if isinstance(entry, MessageEntry))

    @property
    def model(self) -> str:
        """The model."""
        return self.told()[0]


class ModelCallRow(TypedDict):
    """A call: its number, the entry that records it or begins the response, and what it used.

    `recorded` says whether palaver made the call. Such a call says which request was sent: the profile, the SHA-256 and number of its bytes, the
    version of the compiler; whether what it saw can be reproduced; and, if it failed, by which error.
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
    failed: NotRequired[str]


Calls: TypeAlias = Sequence[ModelCall] | list[ImportedCall]
"""The calls of a dialog: recorded, or reconstructed."""


def calls(dialog: Dialog) -> Calls:
    """Return the calls of a dialog in order: the recorded ones, or where there is none one for each response.

    Reads headers; each call reads its own entries when it is asked.
    """
    return dialog.calls if len(dialog.calls) else _answers(dialog)


def _answers(dialog: Dialog) -> list[ImportedCall]:
    """Return the responses that begin in a dialog or its ancestors; a later entry of a response joins the newest of its id.

    A message that reports no usage, and that another one follows at once, is the beginning of the same response.
    """
    store, known = dialog.store, list[ImportedCall]()
    response, growing = "", list[Handle]()
    for span in held(store, dialog.dialog_id, None):
        begun = -1  # the number of the newest response
        for header in every_header(store, span):
            if header.role == Role.ASSISTANT:
                place = Handle(span.dialog, header.seq)
                if not header.begins:
                    if header.response == response:
                        growing.append(place)
                else:
                    if begun + 1 == header.number and not known[-1].told()[1]:
                        known[-1].entries.append(place)
                    else:
                        known.append(ImportedCall(store=store, number=len(known) + 1, at=header.at, entries=[place]))
                    begun = header.number
                    if header.response != response:
                        response, growing = header.response, known[-1].entries
    return known


def call_at(known: Calls, number: int) -> ModelCall | ImportedCall:
    """Return one of the calls of a dialog by its number, starting at 1.

    Raises:
        NotFound: There is none.
    """
    if not 0 < number <= len(known):
        hint = f"The dialog has {counted(len(known), 'call')}; `palaver calls` lists them."
        raise NotFound(str(number), what="call", hint=hint)
    return known[number - 1]


def is_recorded(call: ModelCall | ImportedCall) -> TypeGuard[ModelCall]:
    """Return whether what the call saw was recorded and can be reproduced byte for byte."""
    return isinstance(call, ModelCall) and call.reproducible


def before(dialog: Dialog, call: ModelCall | ImportedCall) -> View:
    """Return the view of what was said before a call."""
    return fold(dialog.store, call.handle.dialog, call.handle.seq - 1)


def saw(dialog: Dialog, call: ModelCall | ImportedCall) -> View:
    """Return what a call saw: as it was recorded, or else what was said before it.

    Raises:
        NotReproducible: It was erased.
    """
    return call.view() if is_recorded(call) else before(dialog, call)


def call_row(call: ModelCall | ImportedCall, *, priced: bool = True) -> ModelCallRow:
    """Return a call as it is listed; without `priced`, in dollars only what the provider reported: loading the price list is most of the time."""
    model, told = (call.model, call.usage()) if isinstance(call, ModelCall) else call.told()
    usage = told or Usage()
    cost = cost_of(usage, model, call.at) if priced else usage.invoke_cost
    row: ModelCallRow = {
        "call": call.number,
        "at": call.at,
        "model": model,
        "entry": str(call.handle),
        "recorded": is_recorded(call),
        "read": cost.prompt_tokens,
        "cached": cost.cached_prompt_tokens,
        "written": cost.completion_tokens,
        "dollars": cost.cost or None,
        "estimated": cost.estimated > 0,
    }
    if isinstance(call, ModelCall):
        row |= {"reproducible": call.reproducible, "failed": call.failure()}
        if sent := call.sent:
            row |= {"profile": sent["profile"], "digest": sent["digest"]}
            row |= {"bytes": sent["bytes"], "compiler": sent["compiler"]}
    return row
