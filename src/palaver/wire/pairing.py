"""The second pass: every call answered exactly once, with ids and names that the provider takes.

A view made by the fold is paired already; one that a program put together need not be, and an id that one provider made need not
please another. Ids and names are chosen from what came before them alone, so that a longer conversation keeps those of a shorter one.

What came before is asked through `Taken`, which remembers what was asked: a part of a script whose questions have the same answers as before
is paired as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import count
from typing import Literal

from palaver.ids import derive_id
from palaver.log import ToolSpec
from palaver.view.texts import NO_RESULT, unpaired
from palaver.wire.parts import CallPart, MediaPart, Part, ResultPart, Speech, TextPart
from palaver.wire.profiles import Profile
from palaver.wire.request import How, Notes
from palaver.wire.words import MALFORMED, from_harness

__all__ = ["Names", "Taken", "paired"]

_ID_DIGITS = 24
"""Hexadecimal digits of a derived call id: 96 bits, and with `call_` before them 29 characters, which every profile takes."""
_DEPTH = 64
"""Levels that arguments may have inside a body, which itself has some."""
_NAME_DIGITS = 8
"""Hexadecimal digits that tell two tools apart whose names are spelt alike after the provider's pattern was kept."""
_NAME_CHARACTERS = 48
"""Characters of a tool's own name that are kept in front of those digits; every profile takes 64 in all."""


class Names:
    """The names of tools on the wire, both ways."""

    def __init__(self, tools: Sequence[ToolSpec], profile: Profile, notes: Notes) -> None:
        self._pattern = profile.tools.name
        self._notes = notes
        self._wire: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        for tool in tools:
            self.wire(tool.name)

    def known(self, name: str) -> str | None:
        """Give the name that a tool has on the wire; None for one that was not asked for yet."""
        return self._wire.get(name)

    def wire(self, name: str, notes: Notes | None = None) -> str:
        """Give the name that a tool has on the wire: its own where the provider takes it and it is free.

        Args:
            name: The name we know it by.
            notes: Where it is taken down that it is called otherwise; with the declared tools when not given.
        """
        if name not in self._wire:
            spelt = name if self._free(name) else self._spelt(name)
            if spelt != name:
                (notes or self._notes).add(
                    None, "tool name", How.RENAMED, f"{name!r} is called {spelt!r}: the provider does not take the name"
                )
            self._wire[name] = spelt
            self._ours[spelt] = name
        return self._wire[name]

    def both(self) -> Mapping[str, str]:
        """Give the names on the wire, to ours."""
        return dict(self._ours)

    def _free(self, name: str) -> bool:
        return self._pattern.fullmatch(name) is not None and name not in self._ours

    def _spelt(self, name: str) -> str:
        """Spell a name so that it is taken: letters, digits and lines of it, then digits derived from the whole."""
        stem = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:_NAME_CHARACTERS].strip("_-") or "tool"
        stem = stem if stem[0].isalpha() else f"tool_{stem}"
        tries = (f"{stem}_{derive_id(name, str(attempt))[:_NAME_DIGITS]}" for attempt in count())
        return next(filter(self._free, tries))


class Taken:
    """Ids that are taken: those of a request so far, and those of a part of it; it remembers which ones were asked for.

    Attributes:
        free: What was asked for and had not been taken before this part.
        met: What was asked for and had been.
        added: What this part took.
    """

    __slots__ = ("_before", "added", "free", "met")

    def __init__(self, before: AbstractSet[object]) -> None:
        """Begin a part.

        Args:
            before: What was taken before it.
        """
        self._before = before
        self.free: set[object] = set()
        self.met: set[object] = set()
        self.added: set[object] = set()

    def __contains__(self, one: object) -> bool:
        """Tell whether an id is taken."""
        before = one in self._before
        (self.met if before else self.free).add(one)
        return before or one in self.added

    def add(self, one: object) -> None:
        """Take an id."""
        self.added.add(one)


def paired(
    script: Sequence[Speech], profile: Profile, names: Names, notes: Notes, given: Taken | None = None
) -> tuple[Speech, ...]:
    """Give the script with every call answered right after the words that make it, and with ids and names of the wire.

    Args:
        script: The script, or a part of one that begins with an assistant's words and ends before the next ones.
        profile: The provider's rules.
        names: The names of tools.
        notes: Where changes are taken down.
        given: The ids that calls have; none when not given.
    """
    return tuple(_Pairing(profile, names, notes, given or Taken(frozenset())).speeches(script))


class _Pairing:
    """The calls of the newest assistant's words, and the ids given so far."""

    def __init__(self, profile: Profile, names: Names, notes: Notes, given: Taken) -> None:
        self._pattern = profile.calls.id
        self._most = profile.calls.most
        self._as_objects = profile.calls.arguments == "object"
        self._names = names
        self._notes = notes
        self._given = given

    def speeches(self, script: Sequence[Speech]) -> Iterator[Speech]:
        """Give the speeches: after an assistant's words with calls stands one with their results, and then what else was said."""
        for speech, replies in _rounds(script):
            others = replies
            if speech is not None:
                asked = [part.id for part in speech.parts if isinstance(part, CallPart)]
                answers, others = _matched(asked, replies)
                left = iter(answers)
                for sent in self._few(self._sent(speech)):
                    yield sent
                    calls = [part for part in sent.parts if isinstance(part, CallPart)]
                    if calls:
                        yield Speech("tool", tuple(map(self._answer, calls, left)))
            for reply in others:
                if reply.parts:
                    yield self._without_results(reply)

    def _few(self, speech: Speech) -> Iterator[Speech]:
        """Give an assistant's words in as many turns as its calls need, where the provider takes so many in one turn only."""
        if self._most is None or sum(isinstance(part, CallPart) for part in speech.parts) <= self._most:
            yield speech
            return
        parts: list[Part] = []
        count = 0
        for part in speech.parts:
            if isinstance(part, CallPart) and count == self._most:
                self._notes.add(part.origin, "call", How.CHANGED, f"it stands in another turn: one takes {count} calls")
                yield replace(speech, parts=tuple(parts))
                parts, count = [], 0
            parts.append(part)
            count += isinstance(part, CallPart)
        yield replace(speech, parts=tuple(parts))

    def _sent(self, speech: Speech) -> Speech:
        """Give an assistant's words with the ids and names of the wire."""
        parts = tuple(self._renamed(part) if isinstance(part, CallPart) else part for part in speech.parts)
        return self._without_results(speech if parts == speech.parts else replace(speech, parts=parts))

    def _renamed(self, call: CallPart) -> CallPart:
        sent = call.id if self._free(call.id) else self._derived(call)
        if sent != call.id:
            why = "used by an earlier call" if call.id in self._given else "not of the form that the provider takes"
            self._notes.add(call.origin, "call id", How.RENAMED, f"{call.id!r} is {sent!r}: {why}")
        self._given.add(sent)
        name, args = self._names.wire(call.name, self._notes), self._args(call)
        as_is = sent == call.id and name == call.name and args is call.args
        return call if as_is else replace(call, id=sent, name=name, args=args)

    def _args(self, call: CallPart) -> Mapping[str, object]:
        """Give a call's arguments; where they cannot stand as an object and the provider wants one, an object that holds the text."""
        why = call.error or ("nested too deeply" if _depth(call.args, _DEPTH) > _DEPTH else "")
        if why and self._as_objects:
            self._notes.add(call.origin, "arguments", How.CHANGED, f"they stand as text under {MALFORMED!r}: {why}")
            return {MALFORMED: call.raw}
        return call.args

    def _free(self, call_id: str) -> bool:
        return self._pattern.fullmatch(call_id) is not None and call_id not in self._given

    def _derived(self, call: CallPart) -> str:
        """Derive an id from where the call stands in the log, so that it is the same in every request that shows the call."""
        place = ("", "") if call.origin is None else (call.origin.dialog, f"{call.origin.seq}:{call.origin.block}")
        tries = (f"call_{derive_id(*place, call.id, str(attempt))[:_ID_DIGITS]}" for attempt in count())
        return next(filter(self._free, tries))

    def _answer(self, call: CallPart, answer: ResultPart | None) -> Part:
        """Give the result of a call with the ids of the wire; a call without one gets the words that say so."""
        if answer is None:
            self._notes.add(call.origin, "result", How.ADDED, "the call has no result in the view")
            return ResultPart(call.id, call.name, (TextPart(NO_RESULT),), error=True)
        as_is = answer.id == call.id and answer.name == call.name
        return answer if as_is else replace(answer, id=call.id, name=call.name)

    def _without_results(self, speech: Speech) -> Speech:
        """Give words in which results without a call are shown as text; what a tool speech holds then, the harness says."""
        role: Literal["system", "user", "assistant"] = "user" if speech.role == "tool" else speech.role
        if role == speech.role and not any(isinstance(part, ResultPart) for part in speech.parts):
            return speech
        parts: list[Part] = []
        for part in speech.parts:
            if isinstance(part, ResultPart):
                self._notes.add(part.origin, "result", How.REPLACED, "its call is not before it: shown as text")
                parts.append(TextPart(_outside(speech.role, part), part.origin))
                parts.extend(
                    inner for inner in part.body if isinstance(inner, MediaPart) and speech.role in {"user", "tool"}
                )
            else:
                parts.append(part)
        return replace(speech, role=role, parts=tuple(parts))


def _depth(value: object, most: int) -> int:
    """Give how many levels a value has, looking no deeper than one level more than `most`."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max((_depth(item, most - 1) for item in inside), default=0) if most >= 0 else 0


def _outside(role: str, part: ResultPart) -> str:
    text = unpaired(part.id, part.text)
    return from_harness("result", text) if role in {"user", "tool"} else text


def _rounds(script: Sequence[Speech]) -> Iterator[tuple[Speech | None, list[Speech]]]:
    """Give each assistant's words with all that is said before the next ones; first what stands before any, under None."""
    speaker: Speech | None = None
    replies: list[Speech] = []
    for speech in script:
        if speech.role == "assistant":
            yield speaker, replies
            speaker, replies = speech, []
        else:
            replies.append(speech)
    yield speaker, replies


def _matched(asked: Sequence[str], replies: Sequence[Speech]) -> tuple[list[ResultPart | None], list[Speech]]:
    """Give the result of each call, None where there is none, and the replies without those results.

    Calls that share an id are answered in their order. An assistant's own words hold no results.
    """
    answers: list[ResultPart | None] = [None] * len(asked)
    rest: list[Speech] = []
    for reply in replies:
        kept: list[Part] = []
        for part in reply.parts:
            index = _waiting(asked, answers, part) if isinstance(part, ResultPart) else None
            if index is None or not isinstance(part, ResultPart):
                kept.append(part)
            else:
                answers[index] = part
        rest.append(reply if len(kept) == len(reply.parts) else replace(reply, parts=tuple(kept)))
    return answers, rest


def _waiting(asked: Sequence[str], answers: Sequence[ResultPart | None], result: ResultPart) -> int | None:
    return next((i for i, call_id in enumerate(asked) if call_id == result.id and answers[i] is None), None)
