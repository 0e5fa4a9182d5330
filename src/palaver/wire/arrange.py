"""The fifth pass: who speaks when. What says nothing is gone by now; neighbours are joined and the first words put right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from palaver.wire.parts import Speech, TextPart
from palaver.wire.profiles import Profile
from palaver.wire.request import Call, How, Notes
from palaver.wire.words import BEGINS_WITH_ASSISTANT, NOT_BEGUN, from_harness

__all__ = ["arranged"]


def arranged(script: Sequence[Speech], profile: Profile, call: Call, notes: Notes) -> tuple[Speech, ...]:
    """Give the speeches in the order and number that the provider takes, the user's next words last.

    The first words are never the assistant's where the provider forbids it, there is always somebody who speaks, and where neighbours
    may not have the same role they are one speech. (Gemini takes neighbours of one role, but no call right after the model's words; so
    the model's neighbours are joined there too, and results keep a turn of their own.)
    """
    speeches = [speech for speech in script if speech.parts]
    if call.then is not None and call.then.strip():
        speeches.append(Speech("user", (TextPart(call.then),)))
    first = profile.turns.first
    if not speeches:
        notes.add(None, "text", How.ADDED, "the view shows nothing, and a request needs words")
        speeches = [_notice(NOT_BEGUN)]
    elif first and profile.turns.roles[speeches[0].role] != profile.turns.roles["user"]:
        notes.add(None, "text", How.ADDED, f"the first words must be the {first}'s")
        speeches.insert(0, _notice(BEGINS_WITH_ASSISTANT))
    return tuple(_joined(speeches, profile)) if profile.calls.results == "turn" else tuple(speeches)


def _notice(text: str) -> Speech:
    return Speech("user", (TextPart(from_harness("notice", text)),))


def _joined(speeches: Sequence[Speech], profile: Profile) -> Iterator[Speech]:
    """Join neighbours of one role; where the provider asks for alternating roles, it is the role on the wire that counts."""
    roles = profile.turns.roles
    last = speeches[0]
    for speech in speeches[1:]:
        if speech.role == last.role or (profile.turns.alternate and roles[speech.role] == roles[last.role]):
            last = replace(last, parts=(*last.parts, *speech.parts))
        else:
            yield last
            last = speech
    yield last
