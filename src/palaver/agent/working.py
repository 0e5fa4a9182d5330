"""The working copy: what one model call sees. A value, made anew for each call and never written back.

It is the dialog's view, then the answers that were refused since the newest message together with what the model was told about them,
then, at the last round, the request for the answer. The context manager sees all of that, so that a repair cannot overflow either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from palaver.agent.turn import REFUSED, Attempt
from palaver.context import DEFAULT_POLICY, Composed
from palaver.errors import Conflict, InvalidInput
from palaver.ids import now
from palaver.messages import Message, Role, Speaker, TextContent
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.session.calls.composing import BudgetLike, PolicyLike, tokens_of
from palaver.view import Block, Exchange, Turn, View

__all__ = ["LAST", "Working", "uncut", "working_copy"]

LAST = "default"
"""The policy that decides when no other one can: it is ours, and never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """What one model call sees.

    Attributes:
        dialog: The copy that the invoker gets.
        view: What it shows.
        at: The number of the log's last entry that was taken into account.
        composed: What the context manager made of it; None where there is none, or nothing was to be done.
        unwritten: Why what a schedule decided is sent and was not committed; empty where it was, or nothing was to be.
    """

    dialog: Dialog
    view: View
    at: int
    composed: Composed | None = None
    unwritten: str = ""


_PLANS = 3
"""So often what a schedule decides is planned, if somebody compacts, or erases something, each time before it is committed; then it is sent as it is."""

_OVERTAKEN = f"somebody else was faster {_PLANS} times"


def working_copy(  # noqa: PLR0913 - what is seen, and who shapes it
    dialog: Dialog,
    attempts: list[Attempt],
    closing: str,
    *,
    prompt: Prompt,
    manager: PolicyLike | None,
    budget: BudgetLike | None,
    model: str,
    most: int | None = None,
) -> Working:
    """Make the working copy for the next call; anew where somebody compacted, or erased something, before what was decided could be committed.

    Args:
        dialog: The dialog.
        attempts: The answers since the newest message that never became messages.
        closing: What asks for the answer when no more tools are allowed; empty for nothing.
        prompt: What governs the call: the copy's `top_prompt`.
        manager: The context manager, or None.
        budget: What one request may occupy; with a budget alone, the policy is `palaver`.
        model: The model that counts.
        most: So many tokens, as they are counted here, are the most that this call may be sent; what the budget allows when not given.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget, or than `most`.
    """
    shaped = partial(
        _shaped, attempts=attempts, closing=closing, manager=manager, budget=budget, model=model, most=most
    )
    for _ in range(_PLANS):
        try:
            working = shaped(dialog)
            break
        except Conflict:
            dialog.reload()
    else:
        working = shaped(dialog, committing=False)
    working.dialog.top_prompt = prompt
    return working


def _shaped(  # noqa: PLR0913 - as its caller
    dialog: Dialog,
    *,
    attempts: list[Attempt],
    closing: str,
    manager: PolicyLike | None,
    budget: BudgetLike | None,
    model: str,
    most: int | None,
    committing: bool = True,
) -> Working:
    """Have the context manager shape what is seen, and commit what it decided.

    Raises:
        Conflict: Somebody compacted, or erased something, meanwhile.
    """
    plain = dialog.view()
    view = whole = uncut(plain, attempts, closing, model)
    composed, unwritten = None, ""
    if manager is None and budget is None and most is not None and tokens_of(whole, model) > most:
        manager = LAST
    if manager is not None or budget is not None:
        policy = DEFAULT_POLICY if manager is None else manager
        composed = dialog.compose(policy, budget, model=model, view=whole, when=now(), most=most)
        view = composed.view
        if view is not whole and whole is plain:
            view, unwritten = _settled(dialog, composed) if committing else (view, _OVERTAKEN)
    return Working(dialog=dialog.derive(view), view=view, at=view.at, composed=composed, unwritten=unwritten)


def uncut(view: View, attempts: list[Attempt], closing: str, model: str) -> View:
    """Give what a model call would see of a dialog's view if nothing were left out; the very same where nothing comes with it."""
    extra = (*_repairs(attempts, model), *([_told(closing)] if closing else []))
    return replace(view, exchanges=(*view.exchanges, *extra)) if extra else view


def _settled(dialog: Dialog, composed: Composed) -> tuple[View, str]:
    """Give a composed view, and why it could not be committed. What a schedule decided is, so that it holds from here on and later views start there.

    Behind an undo nothing is: the log's view is as large as somebody wants it to be. Nor is what makes the view no smaller.

    Raises:
        Conflict: Somebody compacted, or erased something, meanwhile.
    """
    smaller = composed.tokens_after < composed.tokens_before
    if composed.plan.details is None or composed.held or not smaller:
        return composed.view, ""
    try:
        dialog.commit(composed, margin=0.0)
    except InvalidInput as error:
        return composed.view, error.message
    shown = replace(dialog.view(), system=composed.view.system)  # the log's own tells constraints as if there were room
    return shown, ""


def _repairs(attempts: list[Attempt], model: str) -> Iterator[Exchange]:
    for attempt in attempts:
        if attempt.why == REFUSED and attempt.told:
            text = attempt.message.text_content()
            if text.strip():
                yield _answered(attempt.message, text, model)
            yield _told(attempt.told)


def _answered(message: Message, text: str, model: str) -> Exchange:
    """Show a refused answer: its words only, for its thinking was signed for a conversation that is not this one."""
    block = Block(content=TextContent(content=text), speaker=Speaker.MODEL, trust=Speaker.MODEL.trust)
    turn = Turn(role=Role.ASSISTANT, blocks=(block,), model=message.model or model)
    return Exchange(turns=(turn,), pinned=True, derived=True)


def _told(text: str) -> Exchange:
    """Say something to the model that the user did not say: the wire marks it as such."""
    speaker = Speaker.HARNESS
    block = Block(content=TextContent(content=text), derived="notice", speaker=speaker, trust=speaker.trust)
    return Exchange(turns=(Turn(role=Role.USER, blocks=(block,)),), pinned=True, derived=True)
