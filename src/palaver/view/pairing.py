"""From messages to exchanges: fragments become one turn, results stand with their calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from palaver.log import Handle, Run, Span
from palaver.messages import (
    Content,
    ImageContent,
    Message,
    Role,
    Speaker,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    Trust,
)
from palaver.view.edits import Edits
from palaver.view.lines import Line
from palaver.view.reasons import Reason
from palaver.view.texts import NO_RESULT, unpaired
from palaver.view.view import Block, Exchange, Omission, Turn

_FAILED = frozenset({StopReason.ERROR, StopReason.ABORT})


@dataclass(slots=True)
class Response:
    """A model's response while its fragments and results may still come.

    Attributes:
        message: The message it began with.
        inherited: True when an ancestor owns its first entry.
        stale: True when what stands before it was edited after it was said.
        blocks: What it says so far.
        results: The results so far, by the index in `blocks` of the call that each answers.
        waiting: For each call id, the indexes of its calls that have no result yet.
        runs: The entries so far.
        messages: How many messages it was made of.
        size: The size of its entries in bytes.
    """

    message: Message
    inherited: bool
    stale: bool
    blocks: list[Block] = field(default_factory=list)
    results: dict[int, Block] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    runs: list[Span] = field(default_factory=list)
    messages: int = 0
    size: int = 0

    @property
    def first(self) -> Handle:
        """The handle of its first entry."""
        return Handle(self.runs[0].dialog, self.runs[0].start)

    def count(self, line: Line, messages: int) -> None:
        """Count an entry as part of the exchange, once."""
        dialog, seq, _ = line.handle
        newest = self.runs[-1] if self.runs else None
        if newest is None or newest.dialog != dialog or not newest.start <= seq <= newest.stop:
            self.runs.append(Span(dialog, seq, seq + 1))
        elif newest.stop == seq:
            self.runs[-1] = Span(dialog, newest.start, seq + 1)
        else:
            return
        self.messages += messages
        self.size += line.size

    def speak(self, blocks: Sequence[Block]) -> None:
        """Add blocks to what it says; their calls wait for results."""
        for block in blocks:
            if isinstance(block.content, ToolCallContent):
                self.waiting.setdefault(block.content.id, []).append(len(self.blocks))
            self.blocks.append(block)


Standing: TypeAlias = Exchange | Response
"""What was read so far, unedited: a response may still grow, everything else is whole at once."""


@dataclass(slots=True)
class Pairing:
    """The exchanges so far, and the response whose calls can still be answered: always the newest one.

    A result that comes after a newer response began is not put back into the past: a request had been sent without it. It is shown
    where it came.

    Attributes:
        apart: The results that are shown where they stand, whatever call waits for them.
        edited: True while what is read was said before what stands before it was edited.
        standing: The exchanges so far, as they were said.
        response: The newest response.
        omissions: The entries that are left out.
        doubled: The results that are left out because their call has one.
    """

    apart: AbstractSet[Handle] = frozenset()
    edited: bool = False
    standing: list[Standing] = field(default_factory=list)
    response: Response | None = None
    omissions: list[Omission] = field(default_factory=list)
    doubled: list[Omission] = field(default_factory=list)
    _newest: int = -1
    _shown: list[Exchange | None] = field(default_factory=list)

    def derived(self, block: Block, line: Line | None = None) -> None:
        """Put in a text that no one said; `line` is the entry it stands for, where there is one."""
        turn = Turn(role=Role.USER, blocks=(block,))
        runs, size = ((_one(line),), line.size) if line is not None else ((), 0)
        self.standing.append(Exchange(turns=(turn,), runs=runs, derived=True, size=size, stale=self.edited))

    def respond(self, line: Line, message: Message) -> None:
        """Take a model's response, or its next fragment."""
        said = blocks(line, message)
        if not said:
            failed = bool(message.error) or message.stop_reason in _FAILED
            self.leave_out(line, Reason.FAILED_RESPONSE if failed else Reason.EMPTY)
            return
        response = self.response
        fragment = response is not None and _continues(response, line, message)
        if response is None or not fragment:
            response = self.response = Response(message, line.inherited, self.edited)
            self._newest = len(self.standing)
            self.standing.append(response)
        response.count(line, 0 if fragment else 1)
        response.speak(said)

    def say(self, line: Line, message: Message, role: Role, *, speaker: Speaker | None = None) -> None:
        """Take a user's, a tool's or a late system message: results go to their calls, the rest is an exchange of its own.

        Args:
            line: Where it stands.
            message: The message.
            role: Whose turn it is.
            speaker: Who said it, where the conversation tells that it was somebody else than the message says.
        """
        rest: list[Block] = []
        placed = False
        for block in blocks(line, message, speaker):
            if not isinstance(block.content, ToolResultContent):
                rest.append(block)
            elif block.origin not in self.apart and self._answered(line, block, block.content):
                placed = True
            else:
                rest.extend(_as_text(block, block.content))
        if rest:
            turn = _turn(role, message, tuple(rest))
            self.standing.append(
                Exchange(
                    turns=(turn,),
                    runs=(_one(line),),
                    messages=0 if placed else 1,
                    size=line.size,
                    stale=self.edited,
                )
            )
        elif not placed:
            self.leave_out(line, Reason.EMPTY)

    def _answered(self, line: Line, block: Block, content: ToolResultContent) -> bool:
        """Put a result with its call; a second result of the newest response's call is left out. False when the call is not there."""
        waiting = None if self.response is None else self.response.waiting.get(content.id)
        if self.response is None or waiting is None:
            return False
        if waiting:
            self.response.results[waiting.pop(0)] = block
            self.response.count(line, 1)
        else:
            self.doubled.append(Omission(reason=Reason.DUPLICATE_RESULT, handle=block.origin, size=len(content.text())))
        return True

    def leave_out(self, line: Line, reason: Reason) -> None:
        """Leave a whole message out."""
        self.omissions.append(Omission(reason=reason, span=_one(line), messages=1, size=line.size))

    def outdate(self, targets: Collection[Handle]) -> None:
        """Take down that what was said so far was edited, from the first of these places on.

        A result that is edited outdates what was said after it, not the words that called for it.
        """
        self.unsettle()
        for index, one in enumerate(self.standing):
            if any(target in run for run in one.runs for target in targets):
                for later in range(index if _says(one, targets) else index + 1, len(self.standing)):
                    self.standing[later] = _outdated(self.standing[later])
                return

    def unsettle(self) -> None:
        """Take down that exchanges are to be shown in another way than before."""
        self._shown.clear()

    def finish(self, edits: Edits, pins: Collection[Handle]) -> tuple[Exchange, ...]:
        """Give the exchanges as they are to be shown: what stands before the newest response is settled, and made once."""
        shown = self._shown
        shown += [self._as_shown(one, edits, pins) for one in self.standing[len(shown) :]]
        made = tuple([exchange for exchange in shown if exchange is not None])
        if self.response is not None:
            del shown[self._newest :]
        return made

    def _as_shown(self, one: Standing, edits: Edits, pins: Collection[Handle]) -> Exchange | None:
        if isinstance(one, Response):
            return _responded(one, edits, pins, live=one is self.response and not one.inherited)
        first = one.turns[0]
        said = edits.all_shown(first.blocks)
        if not said:
            return None
        turns = one.turns if said is first.blocks else (replace(first, blocks=said),)
        pinned = bool(pins) and _holds(one.runs, pins)
        return one if turns is one.turns and not pinned else replace(one, turns=turns, pinned=pinned)


def _continues(response: Response, line: Line, message: Message) -> bool:
    """Tell whether a message goes on with a response.

    It does when it has the same id; or, where ids are not recorded, when it makes further calls directly after calls that nothing has
    answered yet: no provider answers unanswered calls with a new response, so that was one, recorded call by call.
    """
    if message.response_id:
        return response.message.response_id == message.response_id
    dialog, seq, _ = line.handle
    neighbours = bool(response.runs) and (response.runs[-1].dialog, response.runs[-1].stop) == (dialog, seq)
    return neighbours and bool(response.waiting) and not response.results and bool(message.tool_calls())


def _one(line: Line) -> Span:
    dialog, seq, _ = line.handle
    return Span(dialog, seq, seq + 1)


def _says(one: Standing, targets: Collection[Handle]) -> bool:
    """Tell whether one of these places, a block or a whole entry, is in its first turn."""
    blocks = one.blocks if isinstance(one, Response) else one.turns[0].blocks
    said = {block.origin for block in blocks if block.origin is not None}
    return any(target in said or any((dialog, seq, None) == target for dialog, seq, _ in said) for target in targets)


def _outdated(one: Standing) -> Standing:
    if isinstance(one, Exchange):
        return one if one.stale else replace(one, stale=True)
    one.stale = True
    return one


def _holds(runs: Sequence[Span], places: Collection[Handle]) -> bool:
    return any(place in run for run in runs for place in places)


def _responded(response: Response, edits: Edits, pins: Collection[Handle], *, live: bool) -> Exchange | None:
    """Give a response with a result for each of its calls, as it is to be shown."""
    said = edits.all_shown(tuple(response.blocks))
    if not said:
        return None
    spoken = _turn(Role.ASSISTANT, response.message, said)
    results = tuple(_results(response, edits, live=live)) if response.waiting else ()
    return Exchange(
        turns=(spoken, Turn(role=Role.TOOL, blocks=results)) if results else (spoken,),
        runs=tuple(response.runs),
        pinned=bool(pins) and _holds(response.runs, pins),
        open=any(block.derived == "pending" for block in results),
        messages=response.messages,
        size=response.size,
        stale=response.stale,
    )


def _results(response: Response, edits: Edits, *, live: bool) -> Iterator[Block]:
    """Give one result for each call, in the order of the calls."""
    for index, block in enumerate(response.blocks):
        if isinstance(block.content, ToolCallContent):
            answer = response.results.get(index)
            shown = None if answer is None else edits.shown(answer)
            yield _missing(block, block.content, live=live) if shown is None else shown


def _missing(block: Block, call: ToolCallContent, *, live: bool) -> Block:
    origin = block.origin
    return Block(
        content=ToolResultContent(id=call.id, content=NO_RESULT, is_error=True, name=call.name),
        derived="pending" if live else "interrupted",
        sources=() if origin is None else (Run(dialog=origin.dialog, start=origin.seq, stop=origin.seq + 1),),
        speaker=Speaker.HARNESS,
        trust=Trust.HARNESS,
    )


def _turn(role: Role, message: Message, said: tuple[Block, ...]) -> Turn:
    return Turn(
        role=role,
        blocks=said,
        name="" if message.name in (role, message.role) else message.name,
        model=message.model or "",
        provider=message.provider or "",
    )


def blocks(line: Line, message: Message, speaker: Speaker | None = None) -> tuple[Block, ...]:
    """Give the blocks of a message that say something, each with its handle and who said it."""
    dialog, seq, _ = line.handle
    speaker = speaker or message.speaker
    trust = speaker.trust
    return tuple(
        [
            Block(content=content, origin=Handle(dialog, seq, index), speaker=speaker, trust=trust)
            for index, content in enumerate(message.contents)
            if _says_something(content)
        ]
    )


def _says_something(content: Content) -> bool:
    if isinstance(content, TextContent):
        return bool(content.content) and not content.content.isspace()
    if isinstance(content, ThinkingContent):
        return bool(content.content or content.signature or content.redacted or content.artefact)
    return True


def _as_text(block: Block, content: ToolResultContent) -> Iterator[Block]:
    """Show a result that has no call as text, its images after it."""
    yield replace(block, content=TextContent(content=unpaired(content.id, content.text())), reason=Reason.UNPAIRED)
    if not isinstance(content.content, str):
        for part in content.content:
            if isinstance(part, ImageContent):
                yield replace(block, content=part, reason=Reason.UNPAIRED)
