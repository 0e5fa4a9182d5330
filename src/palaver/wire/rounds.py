"""Rounds: an assistant's words with what is said until the next ones, each compiled once for a provider.

A round is the same in every request that shows the same exchanges, but for what it asks of the request before it: which ids are taken, and what
tools are called. So it is kept with its questions, and taken again where they have the same answers; else it is compiled anew. Nothing here can
change a request: what is kept is what compiling gives.

(To keep with a result what it was computed from, and to compute anew what has another answer, is how incremental compilers work; see the
red-green algorithm of salsa, docs.rs/crate/salsa, reference/algorithm.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from palaver.messages import FrozenDict, Role, canonical_json, freeze
from palaver.messages.normalize import Change as Cleaned
from palaver.view import Exchange, View
from palaver.wire.arrange import joined
from palaver.wire.draft import Body
from palaver.wire.gather import gather
from palaver.wire.pairing import Names, Taken, paired
from palaver.wire.parts import CallPart, ResultPart, ServedPart, Speech, TextPart, ThinkingPart, media_parts
from palaver.wire.profiles import Profile
from palaver.wire.reasoning import with_reasoning
from palaver.wire.request import Change, Notes
from palaver.wire.served import with_served

__all__ = ["PASSES", "Round", "Rounds", "Weight", "Words", "Write", "words"]

Write: TypeAlias = Callable[[Speech, Profile, Notes], Iterator[Body]]
"""Writes a speech in the words of a provider."""

PASSES = 4
"""Gathering, pairing, what the provider's own tools left, thinking: each takes down its changes for the whole request before the next does."""


class Words(NamedTuple):
    """A speech as it is written.

    Attributes:
        speech: The speech.
        items: The messages, items or contents that it is, read-only.
        data: Their canonical bytes.
        changes: What writing it changed.
        cleaned: Whether something had to be made fit to be sent.
    """

    speech: Speech
    items: tuple[Mapping[str, Any], ...]
    data: tuple[bytes, ...]
    changes: tuple[Change, ...]
    cleaned: bool


def words(speech: Speech, profile: Profile, write: Write) -> Words:
    """Write a speech."""
    notes = Notes()
    found: list[Cleaned] = []
    # as deep in a list of an object as they lie in a body: what is nested too deeply there is so here
    body: FrozenDict = freeze({"": list(write(speech, profile, notes))}, "body", found)
    items = tuple(body[""])
    return Words(speech, items, tuple(map(canonical_json, items)), notes.changes, bool(found))


class Weight(NamedTuple):
    """What the parts of a script weigh as canonical JSON: how many there are, their texts and all else that is written, with their number each."""

    parts: int
    texts: int
    text_bytes: int
    others: int
    other_bytes: int

    @classmethod
    def of(cls, parts: Sequence[object]) -> Weight:
        """Weigh parts; media weigh nothing."""
        inner = [piece for part in parts if isinstance(part, ResultPart) for piece in part.body]
        texts = [piece.text for piece in (*parts, *inner) if isinstance(piece, TextPart)]
        others: list[object] = [
            part.content if isinstance(part, ThinkingPart) else (part.raw, part.artefact)
            for part in parts
            if isinstance(part, ThinkingPart | CallPart)
        ]
        others += [(part.kind, part.fields) for part in parts if isinstance(part, ServedPart)]
        sizes = [sum(len(canonical_json(each)) for each in listed) for listed in (texts, others)]
        return cls(len(parts) + len(inner), len(texts), sizes[0], len(others), sizes[1])


class Asked(NamedTuple):
    """What a round asked of the ids that were taken before it, and what it took itself."""

    free: frozenset[object]
    met: frozenset[object]
    added: frozenset[object]

    @classmethod
    def of(cls, taken: Taken) -> Asked:
        """Read it off."""
        return cls(frozenset(taken.free), frozenset(taken.met), frozenset(taken.added))

    def alike(self, before: AbstractSet[object]) -> bool:
        """Tell whether it would get the same answers."""
        return before.isdisjoint(self.free) and before >= self.met


@dataclass(frozen=True)
class Round:
    """A round, compiled by itself.

    Attributes:
        exchanges: The exchanges; held, so that their ids stay their own.
        script: The speeches after the passes before media.
        changes: What each of these passes changed.
        calls: What was asked of the ids of the calls before it, and the ids of its own.
        thoughts: The same of reasoning items.
        names: The tools it calls, with their names on the wire.
        media: Whether it has any.
        said: What is said in it, joined and written; empty where it has media, which are chosen for a whole request.
        known: Whether all tools that it calls had a name before it.
    """

    exchanges: tuple[Exchange, ...]
    script: tuple[Speech, ...]
    changes: tuple[tuple[Change, ...], ...]
    calls: Asked
    thoughts: Asked
    names: tuple[tuple[str, str | None], ...]
    media: bool
    said: tuple[Words, ...]
    known: bool

    @cached_property
    def weight(self) -> Weight:
        """What its parts weigh."""
        return Weight.of([part for speech in self.script for part in speech.parts])


@dataclass(slots=True)
class Rounds:
    """Makes the rounds of one request, those that were made for an earlier one not again.

    Attributes:
        profile: The provider's rules.
        model: The model that the request is for.
        asked: Whether the request asks for tools of the provider's own.
        names: The names of tools.
        write: Writes a speech.
        kept: The rounds of earlier requests, by the ids of their exchanges.
        made: How many were made anew.
    """

    profile: Profile
    model: str
    asked: bool
    names: Names
    write: Write
    kept: Mapping[tuple[int, ...], Round] = field(default_factory=dict)
    made: int = 0
    _given: set[object] = field(default_factory=set)
    _thoughts: set[object] = field(default_factory=set)

    def of(self, view: View) -> dict[tuple[int, ...], Round]:
        """Give the rounds of a view in order, by the ids of their exchanges."""
        found: dict[tuple[int, ...], Round] = {}
        for exchanges in _parted(view.exchanges):
            key = tuple(map(id, exchanges))
            one = self.kept.get(key)
            if one is None or not self._holds(one):
                one = self._made(tuple(exchanges), view.model)
            self._given |= one.calls.added
            self._thoughts |= one.thoughts.added
            # an exchange that a program shows twice stands in two rounds, and the second one has another id for its call
            found[key if key not in found else (*key, len(found))] = one
        return found

    def _holds(self, one: Round) -> bool:
        """Tell whether a round would be made the same here."""
        known = self.names.known
        return (
            one.known
            and one.calls.alike(self._given)
            and one.thoughts.alike(self._thoughts)
            and all(known(name) == spelt for name, spelt in one.names)
        )

    def _made(self, exchanges: tuple[Exchange, ...], in_force: str) -> Round:
        self.made += 1
        notes = [Notes() for _ in range(PASSES)]
        given, thoughts = Taken(self._given), Taken(self._thoughts)
        script = gather(exchanges, in_force, self.profile, notes[0])
        called = {part.name for speech in script for part in speech.parts if isinstance(part, CallPart)}
        before = all(self.names.known(name) is not None for name in called)
        script = paired(script, self.profile, self.names, notes[1], given)
        script = with_served(script, self.profile, asked=self.asked, notes=notes[2])
        script = with_reasoning(script, self.profile, self.model, notes[3], thoughts)
        media = any(True for _ in media_parts(script))
        return Round(
            exchanges=exchanges,
            script=script,
            changes=tuple(each.changes for each in notes),
            calls=Asked.of(given),
            thoughts=Asked.of(thoughts),
            names=tuple((name, self.names.known(name)) for name in sorted(called)),
            media=media,
            said=() if media else self.written(script),
            known=before,
        )

    def written(self, script: Iterable[Speech]) -> tuple[Words, ...]:
        """Write what is said in a part of a script."""
        return tuple(words(speech, self.profile, self.write) for speech in joined(script, self.profile))


_ASSISTANT = frozenset({Role.ASSISTANT, Role.TOOL_CALL})


def _parted(exchanges: Sequence[Exchange]) -> Iterator[list[Exchange]]:
    """Part the exchanges of a view into rounds: what stands before the first assistant's words is one, too."""
    found: list[Exchange] = []
    for exchange in exchanges:
        if found and exchange.turns and exchange.turns[0].role in _ASSISTANT:
            yield found
            found = []
        found.append(exchange)
    if found:
        yield found
