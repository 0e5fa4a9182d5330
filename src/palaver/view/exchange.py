"""Exchanges: the unit of cutting. What one shows of the log is named by entries and read on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import NamedTuple, TypeAlias

from palaver.errors import StoreDamaged
from palaver.ids import DialogId
from palaver.log import BranchSummary, Entry, Handle, MessageEntry, Reader, Run, Span, decoded, every_body, letter
from palaver.messages import (
    ImageContent,
    Message,
    Role,
    Speaker,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    Trust,
)
from palaver.messages.frozen import EMPTY
from palaver.view.blocks import CARRIED, NO_CHANGES, Block, BlockChange, Reason, Turn, change_of, shown_turns

NO_RESULT = "No result is recorded for this tool call: it is waiting for one, or was interrupted."
"""The result of a call that has none. The words are true of an open call and of an abandoned one: a request sent while it was open stays a prefix of the next."""

WAITING = "This tool call waits for its result."
"""What people read of a call that is open; models read `NO_RESULT`."""

OTHER_BRANCH = "The result of this call is not part of this branch."
"""The result of an inherited call that was open where the branch begins, or that the fork parts from its own."""

_NEAR = 16
"""Unwanted entries between two wanted ones that a scan passes over: beginning another scan costs about as much."""


Reading: TypeAlias = Callable[[Iterable[Handle]], Mapping[Handle, Entry]]
"""Returns entries by their handles."""


def read(reader: Reader, places: Iterable[Handle]) -> Mapping[Handle, Entry]:
    """Read entries in few scans. In place of one that is damaged or lost, a message says so."""
    wanted = set(places)
    return {
        place: decoded(reader, place, body)
        for span in _scans(sorted(wanted))
        for seq, body in every_body(reader, span)
        if (place := Handle(span.dialog, seq)) in wanted
    }


def _scans(places: Sequence[Handle]) -> Iterator[Span]:
    """Return spans that contain these sorted places, joined where few entries lie between."""
    scan: Span | None = None
    for dialog, seq, _ in places:
        if scan is not None and scan.dialog == dialog and seq - scan.stop < _NEAR:
            scan = Span(dialog, scan.start, seq + 1)
        else:
            if scan is not None:
                yield scan
            scan = Span(dialog, seq, seq + 1)
    if scan is not None:
        yield scan


def _nothing(_places: Iterable[Handle]) -> Mapping[Handle, Entry]:
    return {}


class Result(NamedTuple):
    """A recorded tool result, known without reading it.

    Attributes:
        handle: Its block.
        size: Its size in bytes of its recorded form; results of one entry share the entry's size equally.
    """

    handle: Handle
    size: int


@dataclass(slots=True)
class Recorded:
    """What an exchange shows before any change.

    Entries, runs and answers are plain tuples of strings and numbers: a view may have tens of thousands, and the garbage collector does not visit them.

    Attributes:
        read: Reads its entries.
        role: The role of its first turn.
        entries: The entries of its first turn: dialog, number, and the shape of the message. Empty where a program made the turns.
        runs: All its entries, in order: dialog, first, and the number after the last.
        aside: The blocks of its message that this exchange does not show: results shown with their calls, or second results.
        answers: For each of its calls, in order, the block of the result (dialog, number, block) and its size; or why there is none: `waiting`,
            `interrupted` or `parted`.
    """

    read: Reading
    role: Role
    entries: tuple[tuple[DialogId, int, str], ...]
    runs: tuple[tuple[DialogId, int, int], ...]
    aside: frozenset[int] = frozenset()
    answers: tuple[tuple[DialogId, int, int, int] | str, ...] = ()
    _turns: tuple[Turn, ...] | None = field(default=None, repr=False, compare=False)
    _shown: tuple[Mapping[Handle, BlockChange], tuple[Turn, ...]] | None = field(
        default=None, repr=False, compare=False
    )

    @property
    def loaded(self) -> bool:
        """Whether its bodies have been read."""
        return self._turns is not None

    def places(self) -> Iterator[Handle]:
        """Return the entries that `build` needs."""
        for dialog, seq, _ in self.entries:
            yield Handle(dialog, seq)
        for answer in self.answers:
            if not isinstance(answer, str):
                yield Handle(answer[0], answer[1])

    def shape(self) -> Iterator[tuple[Handle, str]]:
        """Return the blocks that it shows and their letters, without reading a body."""
        if not self.entries:
            for block in (each for turn in self.turns() for each in turn.blocks):
                if block.origin is not None:
                    yield block.origin, "m" if (known := letter(block.content)) == "." else known
        for dialog, seq, letters in self.entries:
            if letters == SUMMARY:
                yield Handle(dialog, seq), "t"
                continue
            for index, kind in enumerate(letters):
                if kind != "." and index not in self.aside:
                    yield Handle(dialog, seq, index), kind
        yield from ((Handle(*answer[:3]), "r") for answer in self.answers if not isinstance(answer, str))

    def turns(self) -> tuple[Turn, ...]:
        """Return its turns; the first call reads the log."""
        if self._turns is None:
            self.build(self.read(self.places()))
        return self._turns or ()

    def shown(self, changes: Mapping[Handle, BlockChange]) -> tuple[Turn, ...]:
        """Return its turns with changes. What was made last is kept, because measuring, writing and checking ask for the same."""
        if not changes:
            return self.turns()
        if self._shown is None or self._shown[0] is not changes:
            self._shown = changes, shown_turns(self.turns(), changes)
        return self._shown[1]

    def build(self, entries: Mapping[Handle, Entry]) -> None:
        """Make its turns of entries that were read."""
        first = [(place := Handle(dialog, seq), entries[place]) for dialog, seq, _ in self.entries]
        blocks = tuple(block for place, entry in first for block in self._blocks(place, entry))
        if not blocks:
            raise StoreDamaged(str(first[0][0]), "its header says that other exchanges show all of its blocks")
        turn = _turn(self.role, first[0][1], blocks)
        results = tuple(self._results(blocks, entries)) if self.answers else ()
        self._turns = (turn, Turn(role=Role.TOOL, blocks=results)) if results else (turn,)

    def _blocks(self, place: Handle, entry: Entry) -> Iterator[Block]:
        if self.entries[0][2] == SUMMARY:
            yield _summary(place, entry)
            return
        for block in blocks_of(place, entry):
            index = block.origin.block if block.origin else None
            if index in self.aside:
                continue
            if isinstance(block.content, ToolResultContent) and self.role is not Role.ASSISTANT:
                yield from _as_text(block, block.content)
            else:
                yield block

    def _results(self, blocks: Iterable[Block], entries: Mapping[Handle, Entry]) -> Iterator[Block]:
        """Return one result for each call, in the order of the calls."""
        # where a header is damaged, the body may have more calls than it names: they, too, need a result
        calls = [(block, block.content) for block in blocks if isinstance(block.content, ToolCallContent)]
        answers = chain(self.answers, repeat("interrupted"))
        for (block, call), answer in zip(calls, answers):  # noqa: B905 - the answers are endless
            result = None if isinstance(answer, str) else _result(Handle(*answer[:3]), call.id, entries)
            why = answer if isinstance(answer, str) else "interrupted"
            yield _missing(block, call, why) if result is None else result


SUMMARY = "summary"
"""The shape of a summary, whose one block has the handle of its entry."""


def _result(place: Handle, call_id: str, entries: Mapping[Handle, Entry]) -> Block | None:
    """Return a result's block; where the entry was damaged and its blocks have other places, the one with the id of the call."""
    entry = Handle(place.dialog, place.seq)
    other: Block | None = None
    for block in blocks_of(entry, entries[entry]):
        if isinstance(block.content, ToolResultContent):
            if block.origin == place:
                return block
            if block.content.id == call_id:
                other = other or block
    return other


def _missing(block: Block, call: ToolCallContent, why: str) -> Block:
    """Return the result of a call that has none. It reports an error only where the call did not finish."""
    parted, origin = why == "parted", block.origin
    text = OTHER_BRANCH if parted else NO_RESULT
    return Block(
        content=ToolResultContent(id=call.id, content=text, is_error=not parted, name=call.name),
        derived="interrupted" if parted else why,
        sources=() if origin is None else (Run(dialog=origin.dialog, start=origin.seq, stop=origin.seq + 1),),
        speaker=Speaker.HARNESS,
        trust=Trust.HARNESS,
    )


def _turn(role: Role, entry: Entry, blocks: tuple[Block, ...]) -> Turn:
    if not isinstance(entry, MessageEntry):
        return Turn(role=role, blocks=blocks)
    message = entry.message
    carried = message.metadata.get(CARRIED)
    return Turn(
        role=role,
        blocks=blocks,
        name="" if message.name in (role, message.role) else message.name,
        model=message.model or "",
        provider=message.provider or "",
        bound=entry.bound,
        carried=carried if carried is not None and isinstance(carried, Mapping) else EMPTY,
    )


def blocks_of(place: Handle, entry: Entry) -> tuple[Block, ...]:
    """Return the blocks of a message that say something, each with its handle and who said it."""
    if not isinstance(entry, MessageEntry):
        return ()
    message: Message = entry.message
    dialog, seq, _ = place
    saying = [(index, content) for index, content in enumerate(message.contents) if letter(content) != "."]
    blocks = []
    for index, content in saying or enumerate(
        message.contents
    ):  # a turn has at least one block, even if it says nothing
        human = message.speaker is Speaker.HUMAN and isinstance(content, ToolResultContent)
        speaker = Speaker.TOOL if human else message.speaker
        blocks.append(Block(content=content, origin=Handle(dialog, seq, index), speaker=speaker, trust=speaker.trust))
    return tuple(blocks)


def _summary(place: Handle, entry: Entry) -> Block:
    """Return the block of a recorded summary, with the lowest trust unless the entry records another."""
    text, sources, trust = "", None, None
    if isinstance(entry, BranchSummary):
        text, sources, trust = entry.summary, entry.sources, entry.trust
    elif isinstance(entry, MessageEntry):
        text = entry.message.text_content()
    return Block(
        content=TextContent(content=text),
        origin=place,
        derived="summary",
        sources=sources or (),
        speaker=Speaker.SUMMARY,
        trust=Trust.__members__.get((trust or "").upper(), Trust.OUTSIDE),
    )


def unpaired(call_id: str, text: str) -> str:
    """Return the text that shows a result whose call is not in the view."""
    return f"[Result of tool call {call_id or '?'}, which is not in this context]\n{text}"


def _as_text(block: Block, content: ToolResultContent) -> Iterator[Block]:
    """Return a result without its call as text, and its images after it."""
    yield replace(block, content=TextContent(content=unpaired(content.id, content.text())), reason=Reason.UNPAIRED)
    if not isinstance(content.content, str):
        for part in content.content:
            if isinstance(part, ImageContent):
                yield replace(block, content=part, reason=Reason.UNPAIRED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchange:
    """An assistant response with a result for each of its calls, or one user or system message, or a derived text.

    An exchange of the log is made from headers; its turns are read on first use, or before with `View.load`. Two exchanges are equal when they show
    the same; comparing them reads both.

    Attributes:
        source: What it shows before any change: of the log, or turns that a program made.
        role: The role of its first turn.
        speaker: Who speaks in its first message.
        pinned: Whether every view must show it.
        open: Whether a call in it still waits for its result.
        derived: The kind of a derived exchange: `record`, `summary` or `notice`; else empty.
        messages: How many recorded messages it was made of.
        size: The size of their recorded form, in bytes.
        changes: Its blocks that are shown in another form or left out.
    """

    source: Recorded
    role: Role = Role.USER
    speaker: Speaker = Speaker.HUMAN
    pinned: bool = False
    open: bool = False
    derived: str = ""
    messages: int = 0
    size: int = 0
    changes: Mapping[Handle, BlockChange] = NO_CHANGES

    @classmethod
    def of(  # noqa: PLR0913 - its fields, by keyword
        cls,
        turns: Sequence[Turn],
        *,
        runs: Iterable[Span] = (),
        pinned: bool = False,
        open: bool = False,  # noqa: A002 - the field's name
        derived: str = "",
        messages: int = 0,
        size: int = 0,
    ) -> Exchange:
        """Return an exchange of turns in memory; `role` and `speaker` are those of the first turn."""
        role, entries = turns[0].role, tuple((run.dialog, run.start, run.stop) for run in runs)
        return cls(
            source=Recorded(_nothing, role, (), entries, _turns=tuple(turns)),
            role=role,
            speaker=next((block.speaker for block in turns[0].blocks), Speaker.HARNESS),
            pinned=pinned,
            open=open,
            derived=derived,
            messages=messages,
            size=size,
        )

    @classmethod
    def stated(cls, text: str, label: str, sources: tuple[Run, ...], speaker: Speaker, trust: Trust) -> Exchange:
        """Return an exchange of a derived text."""
        said = TextContent(content=text)
        block = Block(content=said, derived=label, sources=sources, speaker=speaker, trust=trust)
        return cls.of((Turn(role=Role.USER, blocks=(block,)),), derived=label)

    @property
    def runs(self) -> tuple[Span, ...]:
        """Its entries, in order; empty when it is derived."""
        return tuple([Span(*run) for run in self.source.runs])

    @property
    def results(self) -> tuple[Result, ...]:
        """Its recorded tool results, in the order of the calls; the size of those that a program made is not known."""
        source = self.source
        if not source.entries:
            given = (block.origin for turn in source.turns()[1:] for block in turn.blocks)
            return tuple(Result(origin, 0) for origin in given if origin is not None)
        return tuple(Result(Handle(*answer[:3]), answer[3]) for answer in source.answers if not isinstance(answer, str))

    def entries(self) -> Iterator[Handle]:
        """Return its entries, in order."""
        for dialog, start, stop in self.source.runs:
            for seq in range(start, stop):
                yield Handle(dialog, seq)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """A user or system turn alone; or an assistant turn, and after it the tool turn with a result for each of its calls."""
        return self.source.shown(self.changes)

    @property
    def loaded(self) -> bool:
        """Whether its turns can be had without reading the log."""
        return self.source.loaded

    @property
    def first(self) -> Handle | None:
        """The handle of its first entry; None when it is derived."""
        return next(self.entries(), None)

    def blocks(self) -> Iterator[Block]:
        """Return its blocks in order."""
        for turn in self.turns:
            yield from turn.blocks

    def shape(self) -> Iterator[tuple[Handle, str]]:
        """Return the handles and letters of its recorded blocks, changed or not, without reading the log.

        Letters: `t` text, `h` thinking, `c` tool call, `r` tool result, `m` media and blocks of a kind unknown here.
        """
        return self.source.shape()

    def shown(self) -> Iterator[tuple[Handle, str]]:
        """Return the handles and letters of its recorded blocks that are not left out."""
        if not self.changes:
            yield from self.shape()
            return
        for handle, kind in self.shape():
            change = change_of(self.changes, handle)
            stays = kind == "c" or (kind == "r" and self.role is Role.ASSISTANT)
            if stays or change is None or change.text is not None:
                yield handle, kind

    def __eq__(self, other: object) -> bool:
        """Return whether both show the same of the same entries."""
        if not isinstance(other, Exchange):
            return NotImplemented
        return self is other or (self._key() == other._key() and self.turns == other.turns)

    def __hash__(self) -> int:
        """Return a hash that reads nothing."""
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.source.runs, self.role, self.speaker, self.pinned, self.open, self.derived, self.messages, self.size
