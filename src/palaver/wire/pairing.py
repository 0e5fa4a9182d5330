"""The second pass: every call answered exactly once, with ids and names that the provider accepts.

A view made by the fold is paired already. A view that a program made may not be, and one provider's ids may not suit another. Ids and names depend only on
what comes before them, so that a longer conversation keeps those of a shorter one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice, pairwise
from typing import Literal

from palaver.ids import derive_id
from palaver.log import ToolSpec
from palaver.view.exchange import NO_RESULT, unpaired
from palaver.wire.script import (
    BEGINS_WITH_ASSISTANT,
    NOT_ANSWERED,
    CallPart,
    ChangeNotes,
    How,
    MediaPart,
    Part,
    ResultPart,
    Speech,
    Taken,
    TextPart,
    from_harness,
)
from palaver.wire.table import Profile, Tools

_NAME_DIGITS = 8
"""Hexadecimal digits that distinguish two tools whose names are equal after the provider's pattern is applied."""
_NAME_CHARACTERS = 48
"""Characters of a tool's own name before those digits; every profile accepts 64 in all."""


def native(tool: ToolSpec, rules: Tools) -> str:
    """Return the provider's own tool whose calls a tool runs, or an empty text."""
    return next((name for name in tool.native or () if name in rules.native), "")


class Names:
    """The names of tools on the wire, in both directions."""

    def __init__(self, tools: Sequence[ToolSpec], profile: Profile, notes: ChangeNotes) -> None:
        self._pattern = profile.tools.name
        self._declared = {
            tool.name: profile.tools.native[known] for tool in tools if (known := native(tool, profile.tools))
        }
        names = [name for name in dict.fromkeys(tool.name for tool in tools) if name not in self._declared]
        taken = frozenset(self._declared.values())
        for name in (*filter(self._pattern.fullmatch, names), *names):  # a name that needs no change keeps it
            if name not in self._declared:
                self._declared[name] = self._derived(name) if name in taken else self.wire(name)
                if self._declared[name] != name:
                    notes.add(None, "tool name", How.RENAMED, _renaming(name, self._declared[name]))
        self.ours = {spelled: name for name, spelled in self._declared.items()}

    def wire(self, name: str) -> str:
        """Return a tool's name on the wire: its own where the provider accepts it. It depends on the declared tools only."""
        if name in self._declared:
            return self._declared[name]
        return name if self._pattern.fullmatch(name) else self._derived(name)

    def _derived(self, name: str) -> str:
        stem = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:_NAME_CHARACTERS].strip("_-") or "tool"
        stem = stem if stem[0].isalpha() else f"tool_{stem}"
        tries = (f"{stem}_{derive_id(name, str(attempt))[:_NAME_DIGITS]}" for attempt in count())
        return next(one for one in tries if one not in self._declared.values())


def _renaming(name: str, spelled: str) -> str:
    return f"{name!r} is called {spelled!r}: the provider does not take the name"


def paired(
    script: Sequence[Speech], profile: Profile, names: Names, notes: ChangeNotes, taken: Taken
) -> Iterator[Speech]:
    """Answer every call of an exchange right after the words that make it, with ids and names of the wire.

    Args:
        script: The speeches of the exchange.
        profile: The provider's rules.
        names: The names of tools.
        notes: The changes so far.
        taken: The ids so far; those of the exchange are added. No two calls of a turn share one, nor of a request where the API says so.
    """
    pairing = _CallPairs(profile, names, notes, taken)
    for speech, replies in _rounds(script):
        others, last = replies, ""
        if speech is not None:
            answers, others = _matched([part.id for part in speech.parts if isinstance(part, CallPart)], replies)
            left = iter(answers)
            for sent in pairing.turns(pairing.sent(speech)):
                yield sent
                calls = [part for part in sent.parts if isinstance(part, CallPart)]
                if calls:
                    yield Speech("tool", tuple(map(pairing.answer, calls, left)))
                    last = "tool"
        for reply in map(pairing.without_results, filter(lambda reply: reply.parts, others)):
            yield from answered(last, reply.role, profile, notes)
            yield reply
            last = reply.role


class _CallPairs:
    """The passage of one exchange."""

    def __init__(self, profile: Profile, names: Names, notes: ChangeNotes, taken: Taken) -> None:
        self._rules = profile.calls
        self._names = names
        self._notes = notes
        self._taken = taken

    def turns(self, speech: Speech) -> Iterator[Speech]:
        """Split an assistant's words into as many turns as its calls need, where the provider limits the calls of one turn."""
        most = self._rules.most
        calls = [index for index, part in enumerate(speech.parts) if isinstance(part, CallPart)]
        if most is None or len(calls) <= most:
            yield speech
            return
        cuts = [0, *islice(calls, most, None, most), len(speech.parts)]
        for start, stop in pairwise(cuts):
            if start:
                why = f"it stands in another turn: one takes {most} calls"
                self._notes.add(getattr(speech.parts[start], "origin", None), "call", How.CHANGED, why)
            yield replace(speech, parts=speech.parts[start:stop])

    def sent(self, speech: Speech) -> Speech:
        """Return an assistant's words with the ids and names of the wire."""
        parts = tuple(self._renamed(part) if isinstance(part, CallPart) else part for part in speech.parts)
        return self.without_results(speech if parts == speech.parts else replace(speech, parts=parts))

    def _renamed(self, call: CallPart) -> CallPart:
        sent = call.id
        if not self._free(sent):
            form = self._rules.id.fullmatch(sent)
            why = "used by an earlier call" if form else "not of the form that the provider takes"
            sent = self._derived(call)
            self._notes.add(call.origin, "call id", How.RENAMED, f"{call.id!r} is {sent!r}: {why}")
        self._taken.added.add(sent)
        name = self._names.wire(call.name)
        if name != call.name and call.name not in self._names.ours.values():
            self._notes.add(call.origin, "tool name", How.RENAMED, _renaming(call.name, name))
        return call if (sent, name) == (call.id, call.name) else replace(call, id=sent, name=name)

    def _free(self, call_id: str) -> bool:
        taken = self._taken.added if self._rules.unique == "turn" else self._taken
        return self._rules.id.fullmatch(call_id) is not None and call_id not in taken

    def _derived(self, call: CallPart) -> str:
        """Derive an id from the call's place in the log, so that it is the same in every request that shows the call."""
        place = ("", "") if call.origin is None else (call.origin.dialog, f"{call.origin.seq}:{call.origin.block}")
        prefix, digits = self._rules.prefix, self._rules.digits
        tries = (f"{prefix}{derive_id(*place, call.id, str(attempt))[:digits]}" for attempt in count())
        return next(filter(self._free, tries))

    def answer(self, call: CallPart, answer: ResultPart | None) -> Part:
        """Return the result of a call with the ids of the wire; a call without a result gets a text that says so."""
        if answer is None:
            self._notes.add(call.origin, "result", How.ADDED, "the call has no result in the view")
            return ResultPart(call.id, call.name, (TextPart(NO_RESULT),), error=True, call=call)
        return replace(answer, id=call.id, name=call.name, call=call)

    def without_results(self, speech: Speech) -> Speech:
        """Show results without a call as text; the harness speaks what is left of a tool's turn."""
        role: Literal["system", "user", "assistant"] = "user" if speech.role == "tool" else speech.role
        parts: list[Part] = []
        for part in speech.parts:
            if isinstance(part, ResultPart):
                self._notes.add(part.origin, "result", How.REPLACED, "its call is not before it: shown as text")
                text = unpaired(part.id, part.text)
                parts.append(TextPart(from_harness("result", text) if role == "user" else text, part.origin))
                parts += [inner for inner in part.body if isinstance(inner, MediaPart) and role == "user"]
            else:
                parts.append(part)
        shown = tuple(parts)
        return speech if (role, shown) == (speech.role, speech.parts) else replace(speech, role=role, parts=shown)


def opened(opening: str, profile: Profile, notes: ChangeNotes) -> Iterator[Speech]:
    """Return what must come before words of the role `opening` where the user must speak first: a notice, or nothing."""
    if profile.turns.first and opening == "assistant":
        notes.add(None, "text", How.ADDED, f"the first words must be the {profile.turns.first}'s")
        yield Speech("user", (TextPart(from_harness("notice", BEGINS_WITH_ASSISTANT)),))


def answered(last: str, role: str, profile: Profile, notes: ChangeNotes) -> Iterator[Speech]:
    """Return what must come between results and words of `role` where the assistant must speak after results: a notice, or nothing."""
    if profile.turns.answered and last == "tool" and role != "assistant":
        notes.add(None, "text", How.ADDED, "the assistant must speak after results")
        yield Speech("assistant", (TextPart(from_harness("notice", NOT_ANSWERED)),))


def _rounds(script: Iterable[Speech]) -> Iterator[tuple[Speech | None, list[Speech]]]:
    """Return each assistant's words with the replies before the next ones. What comes before the first has the key None."""
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
    """Return the result of each call, None where there is none, and the replies without those results.

    Calls that share an id are answered in their order.
    """
    answers: list[ResultPart | None] = [None] * len(asked)
    rest: list[Speech] = []
    for reply in replies:
        kept: list[Part] = []
        for part in reply.parts:
            index = None
            if isinstance(part, ResultPart):
                index = next((i for i, one in enumerate(asked) if one == part.id and answers[i] is None), None)
            if index is None or not isinstance(part, ResultPart):
                kept.append(part)
            else:
                answers[index] = part
        if kept:
            rest.append(replace(reply, parts=tuple(kept)))
    return answers, rest
