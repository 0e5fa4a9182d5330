"""A request that is refused for good because of one block: where the agent's maker asked for it, the block is set aside and the turn goes on."""

from __future__ import annotations

from functools import partial

from palaver.agent.events import Quarantined
from palaver.agent.run import Run
from palaver.errors import ModelCallFailed, ProviderError, RequestRefused
from palaver.log import Handle
from palaver.messages import Role, Speaker, TextContent
from palaver.plurals import counted
from palaver.session.calls.quarantining import suspects
from palaver.tools.aside import aside
from palaver.view import Block, View
from palaver.wire import Request

__all__ = ["MOST_SET_ASIDE", "set_aside", "unanswered"]

MOST_SET_ASIDE = 8
"""Blocks that one turn may set aside: a conversation of which a provider refuses more has another fault than a poisoned block."""


async def unanswered(run: Run, error: ProviderError, innocent: tuple[Handle, ...] = ()) -> ModelCallFailed:
    """Give the failure; of a refusal with the block that it is about, which would be refused with every request to come.

    Args:
        run: The run.
        error: What the provider said.
        innocent: What was refused in vain, and is shown again.
    """
    asked = _asked(run)
    place = None
    if asked is not None and isinstance(error, RequestRefused) and not innocent:
        place = await aside(partial(run.dialog.blamed, asked, error.message))
    hint = await aside(partial(_left_aside, run, innocent)) if run.turn.aside else ""
    return ModelCallFailed(error, session=run.session, place=str(place or ""), hint=hint)


def _left_aside(run: Run, innocent: tuple[Handle, ...]) -> str:
    """Say what became of the blocks that this turn has set aside: a failed turn hides nothing without a word."""
    standing = run.dialog.quarantined
    left = [str(place) for place in run.turn.aside if place in standing]
    told = []
    if innocent:
        told.append(
            f"It was refused without {', '.join(map(str, innocent))}, too, which is shown again: the request has another fault."
        )
    if left:
        told.append(
            "Set aside in this turn, each where a refusal had named it and the next one named another place: "
            f"{counted(len(left), 'block, which stays', 'blocks, which stay')} so (session.set_aside, dialog.quarantined). "
            f"`palaver quarantine {left[0]} --undo` shows one again; respond() goes on without them."
        )
    return " ".join(told)


async def set_aside(run: Run, refused: RequestRefused) -> None:
    """Set aside what a refusal is about, by entries that can be taken back, if the agent is to do so.

    Where the provider names no place and its words are about media, that is all media that the model has not answered yet: what it has
    answered, it took. Is the same said when they are gone, they are shown again; so is a block that was set aside where the same place is refused
    again. Each block is set aside once in a turn. What the user just asked in words, instructions, and what is pinned never is: the model would
    answer something else than it was asked.

    Raises:
        ModelCallFailed: It is not to be, or there is nothing that may be.
    """
    request = _asked(run)
    if run.settings.on_refused != "quarantine" or request is None:
        raise await unanswered(run, refused) from refused
    found, named = await aside(partial(_found, run, request, refused))
    places = [place for place in found if place not in run.turn.aside]
    if not places or len(places) > MOST_SET_ASIDE - len(run.turn.aside):
        innocent = await aside(partial(_take_back, run, refused, found if named else None))
        raise await unanswered(run, refused, innocent) from refused
    for place in places:
        run.dialog.quarantine(place, refused.message)
    run.look()
    for place in places:
        run.session.set_aside.append(str(place))
        await run.sink.emit(Quarantined(str(place), refused.message))


def _take_back(run: Run, refused: RequestRefused, named: list[Handle] | None) -> tuple[Handle, ...]:
    """Show again what was set aside in vain, and give it: what was refused was about something else.

    That is the block of which only the placeholder stands at the place that is refused again; and, where no place is named, every block that was
    set aside for the same words.
    """
    vain = []
    for place, reason in run.dialog.quarantined.items():
        if place in run.turn.aside and (reason == refused.message if named is None else place in named):
            vain.append(place)
    for place in vain:
        run.dialog.lift_quarantine(place, "it was refused without it, too")
        run.session.set_aside = [one for one in run.session.set_aside if one != str(place)]
    run.look()
    return tuple(vain)


def _asked(run: Run) -> Request | None:
    return None if run.answering is None else run.answering.request


def _found(run: Run, request: Request, refused: RequestRefused) -> tuple[list[Handle], bool]:
    """Give the blocks that a refusal is about and that may be set aside, and whether it names its place."""
    blamed = run.dialog.blamed(request, refused.message)
    found = suspects(request, refused.message) if blamed is None else (blamed,)
    kept = _kept(run.dialog.view(), found)
    return [place for place in found if place not in kept], blamed is not None


def _kept(view: View, places: tuple[Handle, ...]) -> set[Handle]:
    """Give those of some blocks that are not to be set aside without a human."""
    asked = next(
        (
            turn.blocks
            for exchange in reversed(view.exchanges)
            for turn in exchange.turns
            if _asks(turn.role, turn.blocks)
        ),
        (),
    )
    pinned = [block for exchange in view.exchanges if exchange.pinned for block in exchange.blocks()]
    words = [block for block in asked if isinstance(block.content, TextContent)]
    return {place for place in places if any(block.origin == place for block in (*view.system, *words, *pinned))}


def _asks(role: Role, blocks: tuple[Block, ...]) -> bool:
    return role is Role.USER and any(block.speaker is Speaker.HUMAN for block in blocks)
