"""What a model sees: at a recorded call, before a response, or now; with the origin of each block, and a reason for everything left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NotRequired, TypedDict

from palaver.browsing.calls import ImportedCall
from palaver.context import DEFAULT_POLICY, Composed, Meter
from palaver.errors import NotFound
from palaver.providers import profile
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.store.records import payloads_of
from palaver.tokens import counter
from palaver.view import Block, View, fold
from palaver.wire import Call, Request, compile  # noqa: A004 - the word for it


class OmissionRow(TypedDict):
    """Something that a view leaves out, or a block that it shows in another form; `place` is an argument for `palaver show` and `recall`."""

    place: str
    reason: str
    by: str
    messages: NotRequired[int]
    bytes: NotRequired[int]
    reversible: NotRequired[bool]
    shown: NotRequired[str]


class TurnRow(TypedDict):
    """A turn of a view: its blocks with their content, each with its handle, and what it is where nobody said it."""

    role: str
    blocks: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a model sees.

    Attributes:
        view: The view.
        model: The model whose tokens are counted.
        made: What a policy made of a view, where one was asked for.
        whole: That view.
        request: The request, where one was sent or asked for.
    """

    view: View
    model: str
    made: Composed | None = None
    whole: View | None = None
    request: Request | None = None

    def sizes(self) -> tuple[int, int]:
        """Return the size of the view, and of everything that was there to choose from, in tokens."""
        meter = Meter(counter(self.model))
        tokens = meter.view(self.view if self.whole is None else self.whole).total
        return tokens if self.made is None else self.made.after.total, tokens

    def notes(self) -> tuple[str, ...]:
        """Return what the policy says about its plan."""
        return () if self.made is None else self.made.plan.notes

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: the turns of the view, or the request; its size, what is left out, and what was changed for the provider."""
        tokens, before = self.sizes()
        row = {"tokens": tokens, "tokens_before": before, "model": self.model, "omitted": list(omissions(self.view))}
        if self.request is None:
            return {"view": turns(self.view), **row, "report": list(self.notes())}
        report = [
            {
                "what": change.what,
                "how": change.how.value,
                "why": change.why,
                "handle": change.handle and str(change.handle),
            }
            for change in self.request.report
        ]
        return {"request": self.request.body, "history": self.request.history, **row, "report": report}


def sent(call: ModelCall) -> Seen:
    """Return what a recorded call saw, and its request, to the byte.

    Raises:
        NotReproducible: Another program recorded the call, or it was erased.
    """
    return Seen(view=call.view(), model=call.model, request=call.request())


def seen(  # noqa: PLR0913 - all but the first by keyword
    dialog: Dialog,
    *,
    before: ImportedCall | None = None,
    at: int | None = None,
    whole: bool = False,
    policy: str | None = None,
    budget: int | None = None,
    model: str = "",
    wire: str | None = None,
    then: str | None = None,
) -> Seen:
    """Return what a model sees of a dialog now, after an entry, or before a response.

    Args:
        dialog: The dialog.
        before: A response of an imported session (`calls`).
        at: The number of the last own entry that counts; None for the newest.
        whole: Whether to ignore compactions and edits, so that everything is there; else what the recorded agent saw is.
        policy: The name of a policy, which may leave more out; None for none.
        budget: What one request may occupy, in tokens; with it the default policy where `policy` is None.
        model: The model that counts tokens; the one in force where it is empty.
        wire: The provider whose request is compiled; None for no request.
        then: The user's next message in the request.

    Raises:
        NotFound: There is no such entry, policy or provider.
        InfeasibleBudget: What must be sent is larger than the budget.
    """
    view = _past(dialog, before, at, whole=whole)
    model = model or ("" if view.model or wire is None else profile(wire).model)
    shown = Seen(view=view, model=model or view.model)
    if policy is not None or budget is not None:
        made = dialog.compaction.compose(policy or DEFAULT_POLICY, budget, model=model, view=view)
        shown = replace(shown, view=made.view, made=made, whole=view)
    return shown if wire is None else _compiled(dialog, shown, wire, then)


def _past(dialog: Dialog, before: ImportedCall | None, at: int | None, *, whole: bool) -> View:
    if before is not None:
        return fold(dialog.store, before.handle.dialog, before.handle.seq - 1, whole=whole)
    newest = dialog.store.last(dialog.dialog_id).seq
    if at is not None and at > newest:
        hint = f"The newest entry of this dialog is {newest}."
        raise NotFound(f"{dialog.dialog_id[:12]}:{at}", what="entry", hint=hint)
    return fold(dialog.store, dialog.dialog_id, at, whole=whole)


def _compiled(dialog: Dialog, found: Seen, wire: str, then: str | None) -> Seen:
    call = Call(model=found.model, then=then)
    request = compile(found.view, profile(wire, found.model), call, payloads_of(dialog.store, dialog.session_id))
    request.check(as_history=True)
    return replace(found, request=request)


# --- as data --------------------------------------------------------------------------------------------------------------------------


def omissions(view: View) -> Iterator[OmissionRow]:
    """Yield what a view leaves out, and what it shows in another form."""
    for gone in view.omissions:
        yield {
            "place": gone.place,
            "reason": gone.reason.value,
            "by": gone.by,
            "messages": gone.messages,
            "bytes": gone.size,
        }
    by = ", ".join(view.policies) or "palaver"
    for block in (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())):
        if block.reason is not None:
            yield {
                "place": str(block.origin),
                "reason": block.reason.value,
                "by": by,
                "reversible": block.reversible,
                "shown": "in another form",
            }


def instructions(view: View) -> list[dict[str, Any]]:
    """Return the blocks of the instructions of a view."""
    return [_block(one) for one in view.system]


def turns(view: View) -> list[list[TurnRow]]:
    """Return the turns of each exchange of a view. Reads all bodies."""
    view.load()
    return [
        [{"role": turn.role.value, "blocks": [_block(block) for block in turn.blocks]} for turn in exchange.turns]
        for exchange in view.exchanges
    ]


def _block(block: Block) -> dict[str, Any]:
    content = block.content.model_dump(mode="json")
    return {"handle": block.origin and str(block.origin), "derived": block.derived, **content}
