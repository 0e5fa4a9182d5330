"""From messages to exchanges: fragments become one turn, results stand with their calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from palaver.log import Handle, Run, Span
from palaver.messages import (
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
class Growing:
    """An exchange while its entries are still coming.

    Attributes:
        role: The role of its first turn.
        message: The message it began with, or None when it is derived.
        blocks: What its first turn says so far.
        results: The results so far, by the index in `blocks` of the call that each answers.
        waiting: For each call id of the response, the indexes of its calls that have no result yet.
        runs: The entries so far.
        inherited: True when an ancestor owns its first entry.
        messages: How many messages it was made of.
        size: The size of its entries in bytes.
        stale: True when what stands before it was edited after it was said.
    """

    role: Role
    message: Message | None = None
    blocks: list[Block] = field(default_factory=list)
    results: dict[int, Block] = field(default_factory=dict)
    waiting: dict[str, list[int]] = field(default_factory=dict)
    runs: list[Span] = field(default_factory=list)
    inherited: bool = False
    messages: int = 0
    size: int = 0
    stale: bool = False

    @property
    def first(self) -> Handle | None:
        """The handle of its first entry; None when it is derived."""
        return Handle(self.runs[0].dialog, self.runs[0].start) if self.runs else None

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

    def says(self, targets: Collection[Handle]) -> bool:
        """Tell whether one of these places, a block or a whole entry, is in its first turn."""
        said = {block.origin for block in self.blocks if block.origin is not None}
        return any(
            target in said or any((dialog, seq, None) == target for dialog, seq, _ in said) for target in targets
        )

    def speak(self, blocks: Sequence[Block]) -> None:
        """Add blocks to the first turn; their calls wait for results."""
        for block in blocks:
            if isinstance(block.content, ToolCallContent):
                self.waiting.setdefault(block.content.id, []).append(len(self.blocks))
            self.blocks.append(block)


@dataclass(slots=True)
class Pairing:
    """The exchanges so far, and the response whose calls can still be answered: always the newest one.

    A result that comes after a newer response began is not put back into the past: a request had been sent without it. It is shown
    where it came.
    """

    apart: AbstractSet[Handle] = frozenset()
    exchanges: list[Growing] = field(default_factory=list)
    response: Growing | None = None
    omissions: list[Omission] = field(default_factory=list)
    doubled: list[Omission] = field(default_factory=list)

    def derived(self, block: Block, line: Line | None = None) -> None:
        """Put in a text that no one said; `line` is the entry it stands for, where there is one."""
        growing = Growing(role=Role.USER, blocks=[block])
        if line is not None:
            growing.count(line, 0)
        self.exchanges.append(growing)

    def respond(self, line: Line, message: Message) -> None:
        """Take a model's response, or its next fragment."""
        said = tuple(blocks(line, message))
        if not said:
            failed = bool(message.error) or message.stop_reason in _FAILED
            self.leave_out(line, Reason.FAILED_RESPONSE if failed else Reason.EMPTY)
            return
        fragment = self.response is not None and _continues(self.response, line, message)
        if self.response is None or not fragment:
            self.response = Growing(role=Role.ASSISTANT, message=message, inherited=line.inherited)
            self.exchanges.append(self.response)
        self.response.count(line, 0 if fragment else 1)
        self.response.speak(said)

    def say(self, line: Line, message: Message, role: Role) -> None:
        """Take a user's, a tool's or a late system message: results go to their calls, the rest is an exchange of its own."""
        rest: list[Block] = []
        placed = False
        for block in blocks(line, message):
            if not isinstance(block.content, ToolResultContent):
                rest.append(block)
            elif block.origin not in self.apart and self._answered(line, block, block.content):
                placed = True
            else:
                rest.extend(_as_text(block, block.content))
        if rest:
            growing = Growing(role=role, message=message, blocks=rest)
            growing.count(line, 0 if placed else 1)
            self.exchanges.append(growing)
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
        dialog, seq, _ = line.handle
        self.omissions.append(Omission(reason=reason, span=Span(dialog, seq, seq + 1), messages=1, size=line.size))

    def outdate(self, targets: Collection[Handle] | None) -> None:
        """Take down that what was said so far was edited, from the first of these places on; None: from the beginning.

        A result that is edited outdates what was said after it, not the words that called for it.
        """
        for index, growing in enumerate(self.exchanges):
            if targets is None or any(target in run for run in growing.runs for target in targets):
                first = index if targets is None or growing.says(targets) else index + 1
                for later in self.exchanges[first:]:
                    later.stale = True
                return

    def finish(self, edits: Edits, pins: frozenset[Handle]) -> tuple[Exchange, ...]:
        """Give the exchanges as they are to be shown."""
        made = (self._exchange(growing, edits, pins) for growing in self.exchanges)
        return tuple(exchange for exchange in made if exchange is not None)

    def _exchange(self, growing: Growing, edits: Edits, pins: frozenset[Handle]) -> Exchange | None:
        said = tuple([shown for block in growing.blocks if (shown := edits.shown(block)) is not None])
        if not said:
            return None
        live = growing is self.response and not growing.inherited
        results = tuple(_results(growing, edits, live=live)) if growing.waiting else ()
        turns = (_turn(growing, said), Turn(role=Role.TOOL, blocks=results)) if results else (_turn(growing, said),)
        return Exchange(
            turns=turns,
            runs=tuple(growing.runs),
            pinned=bool(pins) and any(pin in run for run in growing.runs for pin in pins),
            open=any(block.derived == "pending" for block in results),
            derived=growing.message is None,
            messages=growing.messages,
            size=growing.size,
            stale=growing.stale,
        )


def _continues(response: Growing, line: Line, message: Message) -> bool:
    """Tell whether a message goes on with a response.

    It does when it has the same id; or, where ids are not recorded, when it makes further calls directly after calls that nothing has
    answered yet: no provider answers unanswered calls with a new response, so that was one, recorded call by call.
    """
    if message.response_id:
        return response.message is not None and response.message.response_id == message.response_id
    dialog, seq, _ = line.handle
    neighbours = bool(response.runs) and (response.runs[-1].dialog, response.runs[-1].stop) == (dialog, seq)
    return neighbours and bool(response.waiting) and not response.results and bool(message.tool_calls())


def _results(growing: Growing, edits: Edits, *, live: bool) -> Iterator[Block]:
    """Give one result for each call, in the order of the calls."""
    for index, block in enumerate(growing.blocks):
        if isinstance(block.content, ToolCallContent):
            answer = growing.results.get(index)
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


def _turn(growing: Growing, said: tuple[Block, ...]) -> Turn:
    message = growing.message
    if message is None:
        return Turn(role=growing.role, blocks=said)
    extra = message.__pydantic_extra__
    return Turn(
        role=growing.role,
        blocks=said,
        name="" if message.name in (growing.role, message.role) else message.name,
        model=message.model or "",
        provider=str(extra.get("provider", "")) if extra else "",
    )


def blocks(line: Line, message: Message) -> Iterator[Block]:
    """Give the blocks of a message that say something, each with its handle."""
    dialog, seq, _ = line.handle
    speaker = message.speaker
    for index, content in enumerate(message.contents):
        if _says_something(content):
            yield Block(content=content, origin=Handle(dialog, seq, index), speaker=speaker, trust=speaker.trust)


def _says_something(content: object) -> bool:
    if isinstance(content, TextContent):
        return bool(content.content.strip())
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
