"""Blocks that only their provider reads: those of tools that it runs itself, of its compactions, and of kinds that nobody knows yet.

They go back to their maker as they came, while what they need is there: the other half of a pair, the tool, what the provider's page asks for. What
cannot go back is noted, and where it has words for a reader (a summary, titles and addresses of a search), these take its place.

A call that the provider runs itself may wait for its result over several answers: a turn that it paused, or one with calls of the caller's tools. Then
nothing but their results may come between, so the user's words follow the answer that has the result
(platform.claude.com/docs/en/build-with-claude/handling-stop-reasons).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from palaver.ids import derive_id
from palaver.messages.frozen import EMPTY
from palaver.view import Exchange
from palaver.wire.binding import COMPACTION
from palaver.wire.reasoning import maker_of
from palaver.wire.request import Compiled
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    How,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    Taken,
    TextPart,
    ThinkingPart,
    from_harness,
)
from palaver.wire.table import OwnBlocks, Profile

FALLBACK = "fallback"
"""The block after which another model of Anthropic's goes on, because the first one refused (…/build-with-claude/refusals-and-fallback)."""

_ID_DIGITS = 24
_OTHER_HALF = "its other half is not there"
_WAITS = "a tool of the provider's own has not answered yet: it is sent after the next answer"


def readable(fields: Mapping[str, Any]) -> str:
    """Return what a reader can make of a block: its texts, and titles and addresses of what was found, one a line."""
    return "\n".join(dict.fromkeys(filter(None, map(str.strip, _words(fields)))))


def _words(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield " ".join(said for name in ("title", "filename", "url") if isinstance(said := value.get(name), str))
        for name in ("text", "stdout", "output"):
            if isinstance(said := value.get(name), str):
                yield said
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _words(inner)


def in_words(part: ProviderPart) -> TextPart | None:
    """Return the text that takes the place of a block which does not go back, or None where it has none."""
    said = readable(part.fields)
    return TextPart(from_harness("found", said), part.origin) if said else None


# --- one exchange --------------------------------------------------------------------------------------------------------


def with_own_blocks(
    script: Sequence[Speech], profile: Profile, notes: ChangeNotes, taken: Taken, tools: frozenset[str] | None = None
) -> Iterator[Speech]:
    """Return the script without the blocks whose needs the request does not meet, and without those that it has already.

    Args:
        script: The speeches of an exchange.
        profile: The provider's rules.
        notes: The changes so far.
        taken: The ids so far; those of the blocks are added.
        tools: The names of the tools in the request; None for any.
    """
    blocks = profile.api.blocks
    refused: set[str] = set()

    def why(part: ProviderPart) -> str:
        kind, name = link(part, blocks)
        reason = blocks.missing(part.kind, part.fields, tools) if tools is not None else ""
        reason = reason or ("its call is left out" if kind == "result" and name in refused else "")
        item = f"item {part.fields['id']}" if part.fields.get("id") else ""
        reason = reason or ("its item stands in the request already" if item and item in taken else "")
        taken.added.update(() if reason or not item else (item,))
        refused.update({name} if reason and kind == "call" else ())
        return reason

    return _Less(why, profile, notes).script(script)


@dataclass(slots=True)
class _Less:
    """Leaves out the blocks that a function has a reason for, and what they lead to.

    What Anthropic's models thought after such a block goes, too, and with it all thinking of the turn: «blocks in the latest assistant message cannot be
    modified». A call that came from code which is left out becomes a plain one, with an id of its own.
    """

    why: Callable[[ProviderPart], str]
    profile: Profile
    notes: ChangeNotes
    names: frozenset[str] = frozenset()  # calls that are known to be left out
    calls: dict[str, CallPart] = field(default_factory=dict)

    def script(self, script: Sequence[Speech]) -> Iterator[Speech]:
        for speech in script:
            if speech.role == "assistant":
                yield self._speech(speech)
            else:
                yield replace(speech, parts=tuple(map(self._result, speech.parts))) if self.calls else speech

    def _result(self, part: Part) -> Part:
        call = self.calls.get(part.id) if isinstance(part, ResultPart) else None
        return replace(part, id=call.id, call=call) if isinstance(part, ResultPart) and call is not None else part

    def _speech(self, speech: Speech) -> Speech:
        parts: list[Part] = []
        cut: set[str] = set(self.names)
        dropped = unbound = False
        for part in speech.parts:
            reason = self.why(part) if isinstance(part, ProviderPart) else ""
            if reason and isinstance(part, ProviderPart):
                self.notes.add(part.origin, "block", How.DROPPED, f"{part.kind}: {reason}")
                cut.add(link(part, self.profile.api.blocks)[1])
                dropped = True
                if self.profile.reasoning.form == "items" and parts and isinstance(parts[-1], ThinkingPart):
                    self.notes.add(parts.pop().origin, "thinking", How.DROPPED, "what it led to is left out")
                words = in_words(part)
                parts += [words] if words else []
            else:
                signed = self.profile.reasoning.form == "blocks" and isinstance(part, ThinkingPart)
                unbound = unbound or (dropped and signed)
                parts.append(self._plain(part, cut) if cut else part)
        if parts == list(speech.parts):
            return speech
        if unbound or (parts and isinstance(parts[-1], ThinkingPart)):
            for part in parts:
                if isinstance(part, ThinkingPart):
                    self.notes.add(part.origin, "thinking", How.DROPPED, "a block of its turn is left out")
            parts = [part for part in parts if not isinstance(part, ThinkingPart)]
        return replace(speech, parts=tuple(parts))

    def _plain(self, part: Part, cut: AbstractSet[str]) -> Part:
        """Return a text without citations of what is left out, and a call without the code that made it."""
        if isinstance(part, TextPart) and "citations" in part.carried:
            return replace(part, carried={name: said for name, said in part.carried.items() if name != "citations"})
        if isinstance(part, CallPart) and _caller(part) in cut:
            self.notes.add(part.origin, "caller", How.DROPPED, "the code that made the call is left out")
            own = {name: said for name, said in part.carried.items() if name != "caller"}
            plain = replace(part, id=f"call_{derive_id('plain', part.id)[:_ID_DIGITS]}", carried=own)
            self.calls[part.id] = plain
            return plain
        return part


def after_fallback(parts: Sequence[Part], blocks: OwnBlocks, notes: ChangeNotes) -> tuple[Part, ...]:
    """Return an answer without what the model before its last fallback thought and called: the next model may not see it.

    Texts, calls with results and the block itself stay (…/refusals-and-fallback, «continuing the conversation»).
    """
    last = max((at for at, part in enumerate(parts) if _is(part, FALLBACK)), default=0)
    answered = {
        link(part, blocks)[1] for part in parts[:last] if isinstance(part, ProviderPart) and _result(part, blocks)
    }
    kept: list[Part] = []
    for at, part in enumerate(parts):
        waits = (
            isinstance(part, ProviderPart) and link(part, blocks)[0] == "call" and link(part, blocks)[1] not in answered
        )
        if at < last and (waits or isinstance(part, ThinkingPart | CallPart) or _is(part, "tool_use")):
            what = "thinking" if isinstance(part, ThinkingPart) else "call"
            notes.add(part.origin, what, How.DROPPED, "another model went on after it")
        else:
            kept.append(part)
    return tuple(kept)


def _is(part: Part, kind: str) -> bool:
    return isinstance(part, ProviderPart) and part.kind == kind


def _result(part: ProviderPart, blocks: OwnBlocks) -> bool:
    return link(part, blocks)[0] == "result"


def link(part: ProviderPart, blocks: OwnBlocks) -> tuple[str, str]:
    """Return whether a block is a `call` of the provider's own tools, the `result` of one or `code` that calls tools, and its id.

    Empty texts for other blocks.
    """
    for kind, fields in (("call", blocks.calls), ("code", blocks.code)):
        if part.kind in fields:
            return kind, str(part.fields.get(fields[part.kind]) or "")
    if blocks.results is not None and blocks.results.fullmatch(part.kind):
        return "result", str(part.fields.get(blocks.answers) or "")
    return "", ""


def links(script: Sequence[Speech], profile: Profile) -> tuple[tuple[str, str], ...]:
    """Return the calls that the provider runs, their results, and the calls whose code called a tool (`caller`), in order."""
    parts = (part for speech in script for part in speech.parts)
    found = (
        link(part, profile.api.blocks) if isinstance(part, ProviderPart) else ("caller", _caller(part))
        for part in parts
    )
    return tuple(known for known in found if known[0] and known[1])


def _caller(part: Part) -> str:
    """Return the id of the call whose code called a tool, or an empty text."""
    caller = part.carried.get("caller") if isinstance(part, CallPart) else None
    return str(caller.get("tool_id") or caller.get("caller_id") or "") if isinstance(caller, Mapping) else ""


def has_compaction(exchange: Exchange, profile: Profile) -> bool:
    """Return whether an answer has a compaction with which requests of a profile begin."""
    field, turn = profile.api.blocks.compaction, exchange.turns[0]
    ours = maker_of(turn.provider, turn.model) in {"", profile.reasoning.maker}
    extras = (block.content.model_extra or {} for block in turn.blocks if block.content.type == COMPACTION)
    return ours and any(extra.get(field) for extra in extras)


# --- the conversation ----------------------------------------------------------------------------------------------------


def since_compaction(compiled: Sequence[Compiled], blocks: OwnBlocks, notes: ChangeNotes) -> list[Compiled]:
    """Return the exchanges from the provider's newest compaction on: it reads no further back, and its block stands for what precedes it."""
    first = max((at for at, piece in enumerate(compiled) if piece.restarts), default=0)
    if blocks.window and compiled and sum(len(speech.parts) for speech in compiled[first].script) == 1:
        first = 0  # it may be the end of a window whose messages go with it
    if first:
        place = compiled[first].exchange.first
        why = f"{first} exchanges: the provider reads no further back than its own compaction, which stands for them"
        notes.add(place, "conversation", How.REPLACED, why)
    return list(compiled[first:])


class Waiting:
    """The order of a conversation in which calls that the provider runs itself wait for their results."""

    def __init__(self, compiled: Sequence[Compiled], *, then: bool) -> None:
        """Read a conversation.

        Args:
            compiled: Its exchanges.
            then: Whether nothing after it can answer: the user speaks, or the caller would have to answer.
        """
        self._compiled = compiled
        self._then = then
        self._open: dict[str, int] = {}  # the calls that wait, each with its exchange
        self._callers: list[tuple[str, int]] = []
        self._held: list[int] = []
        self._order: list[int] = []
        self._answered = {
            name: at for at, piece in enumerate(compiled) for kind, name in piece.links if kind == "result"
        }
        says = (at for at in range(len(compiled) - 1, -1, -1) if self._speaks(at))
        self._last = next(says, -1)
        self.gone: dict[int, set[str]] = {}
        """By exchange the ids of calls and results that cannot go."""

    def ordered(self) -> tuple[list[int], list[int]]:
        """Return the exchanges in the order in which they are sent, and those that must wait for the next answer."""
        for at, piece in enumerate(self._compiled):
            if self._speaks(at):
                self._order.append(at)
                self._read(at)
                if self._held and not self._waits(at):
                    self._order += self._held
                    self._held = []
            else:
                (self._held if piece.script and self._waits(at) else self._order).append(at)
        if self._then:
            self._give_up()
        made = {name: at for at in self._order for kind, name in self._compiled[at].links if kind in {"call", "code"}}
        for name, at in self._callers:
            if name not in made or name in self.gone.get(made[name], ()):
                self.gone.setdefault(at, set()).add(name)
        return self._order, self._held

    def _read(self, at: int) -> None:
        """Follow the calls and results of an answer."""
        for kind, name in self._compiled[at].links:
            if kind == "call":
                self._open[name] = at
            elif kind == "code":
                continue
            elif kind == "caller":
                self._callers.append((name, at))
            elif self._open.pop(name, None) is None:
                self.gone.setdefault(at, set()).add(name)

    def _speaks(self, at: int) -> bool:
        script = self._compiled[at].script
        return bool(script) and script[0].role == "assistant"

    def _waits(self, at: int) -> bool:
        """Return whether words after an exchange must wait. Where no answer has what they would wait for, the calls are given up."""
        if not self._open or any(self._answered.get(name, -1) > at for name in self._open):
            return bool(self._open)
        newest = self._last <= at and not self._then
        if newest and self._compiled[self._last].calls:
            return True
        self._give_up()
        return False

    def _give_up(self) -> None:
        for name, place in self._open.items():
            self.gone.setdefault(place, set()).add(name)
        self._open.clear()


def settled(
    compiled: Sequence[Compiled],
    blocks: OwnBlocks,
    notes: ChangeNotes,
    less: Callable[[Compiled, frozenset[str]], Compiled],
    *,
    then: bool,
) -> list[Compiled]:
    """Return the exchanges of a conversation as the provider's own tools and compactions let them be sent.

    Args:
        compiled: The exchanges in the order of the view.
        blocks: What goes back of the provider's own.
        notes: The changes so far.
        less: Returns an exchange without the calls and results of these ids.
        then: Whether the user speaks after them.
    """
    compiled = since_compaction(compiled, blocks, notes)
    if not any(piece.links for piece in compiled):
        return compiled
    waiting = Waiting(compiled, then=then or blocks.ours)
    order, held = waiting.ordered()
    for at in held:
        notes.add(compiled[at].exchange.first, "message", How.DROPPED, _WAITS)
    if order != sorted(order):
        notes.add(
            None, "message", How.CHANGED, "words follow the answer that a tool of the provider's own had to give first"
        )
    gone = {at: frozenset(names) for at, names in waiting.gone.items()}
    return [less(compiled[at], gone[at]) if at in gone else compiled[at] for at in order]


def without(script: Sequence[Speech], names: frozenset[str], profile: Profile, notes: ChangeNotes) -> Iterator[Speech]:
    """Return a script without the calls and results of these ids, and without speeches of which nothing is left."""
    blocks = profile.api.blocks
    less = _Less(lambda part: _OTHER_HALF if link(part, blocks)[1] in names else "", profile, notes, names)
    return (speech for speech in less.script(script) if speech.parts)


def repeated(
    compiled: Sequence[Compiled], profile: Profile, notes: ChangeNotes
) -> tuple[list[Compiled], Mapping[str, Any]]:
    """Return the exchanges to send, and the fields of answers that the request repeats.

    An answer that was cut and goes on with a token is left out: the request is the one that it answered, with the token.
    """
    token, sent = profile.api.blocks.resumes, list(compiled)
    newest = sent[-1].carried if sent else EMPTY
    if token and token in newest:
        while sent and token in sent[-1].carried:
            why = "a token stands for the answer so far, which goes on"
            notes.add(sent.pop().exchange.first, "message", How.CHANGED, why)
        return sent, newest
    return sent, next(
        (piece.carried for piece in reversed(sent) if piece.carried and token not in piece.carried), EMPTY
    )


def carried(exchange: Exchange, profile: Profile) -> Mapping[str, Any]:
    """Return the fields of an answer that its provider wants repeated in the next request."""
    turn = exchange.turns[0]
    ours = turn.carried and maker_of(turn.provider, turn.model) == profile.reasoning.maker
    return turn.carried if ours else EMPTY
