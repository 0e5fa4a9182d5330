"""The fifth pass: who speaks when. What says nothing is gone by now; neighbours are joined and the first words put right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from palaver.wire.parts import Speech, TextPart
from palaver.wire.profiles import Profile
from palaver.wire.request import Call, How, Notes
from palaver.wire.words import BEGINS_WITH_ASSISTANT, NOT_BEGUN, from_harness

__all__ = ["added", "are_one", "joined", "together"]


def joined(script: Iterable[Speech], profile: Profile) -> Iterator[Speech]:
    """Give what is said, neighbours joined that are one speech to the provider."""
    last: Speech | None = None
    for speech in script:
        if not speech.parts:
            continue
        if last is not None and are_one(last, speech, profile):
            last = together(last, speech)
            continue
        if last is not None:
            yield last
        last = speech
    if last is not None:
        yield last


def are_one(before: Speech, speech: Speech, profile: Profile) -> bool:
    """Tell whether two neighbours are one speech to the provider, where it does not take neighbours of the same role.

    (Gemini takes neighbours of one role, but no call right after the model's words; so the model's neighbours are joined there too, and
    results keep a turn of their own.) Where the provider asks for alternating roles, it is the role on the wire that counts.
    """
    if profile.calls.results != "turn":
        return False
    roles = profile.turns.roles
    return speech.role == before.role or (profile.turns.alternate and roles[speech.role] == roles[before.role])


def together(before: Speech, speech: Speech) -> Speech:
    """Give two neighbours as one speech."""
    return replace(before, parts=(*before.parts, *speech.parts))


def added(
    said: Sequence[Speech], profile: Profile, call: Call, notes: Notes
) -> tuple[tuple[Speech, ...], tuple[Speech, ...]]:
    """Give what must stand before and behind what is said: words that it can begin with, and the user's next words.

    The first words are never the assistant's where the provider forbids it, and there is always somebody who speaks.
    """
    then = () if call.then is None or not call.then.strip() else (Speech("user", (TextPart(call.then),)),)
    opening = (*said[:1], *then)[:1]
    first = profile.turns.first
    if not opening:
        notes.add(None, "text", How.ADDED, "the view shows nothing, and a request needs words")
        return (_notice(NOT_BEGUN),), ()
    if first and profile.turns.roles[opening[0].role] != profile.turns.roles["user"]:
        notes.add(None, "text", How.ADDED, f"the first words must be the {first}'s")
        return (_notice(BEGINS_WITH_ASSISTANT),), then
    return (), then


def _notice(text: str) -> Speech:
    return Speech("user", (TextPart(from_harness("notice", text)),))
