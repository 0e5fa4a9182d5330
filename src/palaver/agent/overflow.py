"""A request that was too long: the view is made smaller once, as an entry of the log, and the request that goes out again has no more than fits.

How much fits is measured by what was sent, whoever shaped it, and by the provider's own figures. The log's view may be many times as large as
the request that was refused, or smaller: a context manager shapes what is sent, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from palaver.agent.auto_compact import AutoCompact
from palaver.agent.compacting import NOT_THE_POLICYS, committed, policy_failed, previewed
from palaver.agent.run import Run
from palaver.agent.seeing import seen
from palaver.agent.working import LAST, uncut
from palaver.context import Meter
from palaver.context.floor import floor
from palaver.context.triggers import Fired, Overflow
from palaver.errors import Conflict, ContextOverflow, InfeasibleBudget, ModelCallFailed
from palaver.tokens import Budget, counter
from palaver.tools.aside import aside

__all__ = ["make_room"]

_ROOM = 0.8
"""The share of what fits that the smaller view may take: the answers and results to come need the rest. Where what must be sent needs it, all of it."""

_HALF = 0.5
"""The share of it where the provider does not say what it counted: a count of ours may be too small by half. Where it says nothing, that of what was
refused."""

_LESS = 0.95
"""The share of what was refused that is tried last when the provider does not say what it reads."""


async def make_room(run: Run, overflow: ContextOverflow, closing: str) -> int:
    """Make what the model is to see smaller than what was refused, by the agent's own policy or else by the default one.

    It is committed where it can be, so that the turns to come begin there. Whatever stands in the way of that, and whatever a context manager
    puts in, the request that goes out again is held to what fits.

    Args:
        run: The run.
        overflow: What the provider said.
        closing: What asks for the answer when no more tools are allowed; empty for nothing.

    Returns:
        The most tokens that the next request may have, as they are counted here.

    Raises:
        ModelCallFailed: What must be sent is more than that.
    """
    model = run.settings.model
    meter = Meter(counter(model))
    view = await aside(run.dialog.view) if run.answering is None else run.answering.view
    refused = await aside(lambda: meter.view(view).total)
    fits = _fitting(overflow, refused)
    room = _ROOM if overflow.asked else _HALF
    shares = (_HALF, _LESS) if fits is None else (room * fits, fits)
    for most in (max(1, int(refused * share)) for share in shares):
        await _commit(run, overflow, most, closing, meter)
        try:
            await seen(run, closing, most)
        except InfeasibleBudget as error:
            fault = error
        else:
            return most
    whole = uncut(await aside(run.dialog.view), run.turn.attempts, closing, model)
    hint = await aside(lambda: _in_the_way(fault, floor(whole, meter), refused, most, told=fits is not None))
    raise ModelCallFailed(overflow, session=run.session, hint=hint) from overflow


def _fitting(overflow: ContextOverflow, refused: int) -> float | None:
    """Give the share of what was refused that the provider reads; None where it does not say.

    Its own count, where it tells it, stands against its limit; the limit alone stands against ours, of `refused` tokens, where that is larger.
    """
    asked = overflow.asked or refused
    return overflow.limit / asked if overflow.limit and asked > overflow.limit else None


async def _commit(run: Run, overflow: ContextOverflow, most: int, closing: str, meter: Meter) -> None:
    """Commit a view of which a request has no more than so many tokens, if there is one and the log's is larger."""
    plain = await aside(run.dialog.view)
    whole = uncut(plain, run.turn.attempts, closing, run.settings.model)
    size, log = await aside(lambda: (meter.view(whole).total, meter.view(plain).total))
    if size <= most:
        return
    target = Budget.of_input(max(1, most - (size - log)))  # what comes with it cannot be committed
    cause = Fired(Overflow.name, overflow.message)
    for how in _ways(run):
        try:
            preview = await previewed(run, replace(how, budget=target), cause)
        except InfeasibleBudget:
            continue  # what must be sent does not fit by this policy: by the next one it may
        except NOT_THE_POLICYS:
            raise
        except Exception as error:  # noqa: BLE001 - a policy of the caller's may raise anything: the next one decides
            await policy_failed(run, cause, error)
            continue
        fault = await committed(run, preview)
        if fault is None or (isinstance(fault, Conflict) and await _fits(run, target, meter)):
            return  # by us, or by somebody else meanwhile


async def _fits(run: Run, target: Budget, meter: Meter) -> bool:
    """Tell whether the view as it stands is as small as it has to be."""
    return await aside(lambda: meter.view(run.dialog.view()).total) <= target.for_input


def _ways(run: Run) -> list[AutoCompact]:
    """Give the ways in which room can be made, the agent's own first."""
    how, own = run.settings.compact, run.settings.context_manager
    found = [] if how is None else [how]
    found += [] if own is None else [AutoCompact(policy=own)]
    return [*found, AutoCompact(policy=LAST)]


def _in_the_way(fault: InfeasibleBudget, needed: Mapping[str, int], refused: int, most: int, *, told: bool) -> str:
    """Say why nothing smaller can be sent, of which so much must be, by what it is for."""
    if sum(needed.values()) <= most:
        return f"{fault} {fault.hint}"
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in needed.items())
    fits = f"at most {most:,} of them fit" if told else "the provider does not say how many it reads"
    return (
        f"Of the {refused:,} tokens that were sent, as they are counted here, {fits}; {sum(needed.values()):,} must be sent ({parts}). "
        "Shorten what is named, or take a model that reads more."
    )
