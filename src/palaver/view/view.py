"""The view: what a model sees, in order, with the origin of each block and a reason for everything left out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any

from palaver.ids import DialogId
from palaver.log import Handle, Omitted, Place, Reader, Run, Span, ToolSpec, gaps, part_of
from palaver.messages import Message, Role, Speaker, words_of
from palaver.messages.frozen import EMPTY
from palaver.notebook import MOST, html_table
from palaver.view.blocks import Block, Reason, Turn
from palaver.view.exchange import Exchange, Reading, Recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """Something that a view leaves out.

    Attributes:
        reason: Why.
        span: The entries left out; None when it is a single block.
        handle: The block left out; None when it is whole entries.
        by: The policy that decided it, or `palaver`.
        messages: How many messages it had.
        size: Its size in bytes of its recorded form.
    """

    reason: Reason
    span: Span | None = None
    handle: Handle | None = None
    by: str = "palaver"
    messages: int = 0
    size: int = 0

    @property
    def place(self) -> str:
        """What is left out, as `recall` takes it: a handle, or a run of entries with both ends."""
        if self.span is None:
            return str(self.handle)
        first = Handle(self.span.dialog, self.span.start)
        return str(first) if len(self.span) == 1 else f"{first}-{self.span.stop - 1}"

    def handles(self) -> Iterator[Handle]:
        """Return a handle for each entry left out, or that of the block."""
        if self.handle is not None:
            yield self.handle
        if self.span is not None:
            for seq in range(self.span.start, self.span.stop):
                yield Handle(self.span.dialog, seq)

    @classmethod
    def of(cls, gone: Omitted) -> Omission:
        """Read an omission from its recorded form."""
        return cls(
            reason=Reason(gone.reason),
            span=None if gone.run is None else gone.run.span,
            handle=None if gone.target is None else gone.target.handle,
            by=gone.by,
            messages=gone.messages,
            size=gone.size,
        )

    def stored(self) -> Omitted:
        """Return the omission in its recorded form."""
        return Omitted(
            run=None if self.span is None else Run.of(self.span),
            target=None if self.handle is None else Place.of(self.handle),
            reason=self.reason.value,
            by=self.by,
            messages=self.messages,
            size=self.size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSettings:
    """Instructions and tools that were in force earlier in a conversation.

    Attributes:
        until: The entry that replaced them.
        system: The blocks of the instructions.
        tools: The tools.
    """

    until: Handle
    system: tuple[Block, ...] = ()
    tools: tuple[ToolSpec, ...] = ()


@dataclass(slots=True)
class Columns:
    """What policies ask of every exchange of a view, without visiting each again.

    Attributes:
        sizes: The recorded size before each boundary, in bytes, without derived texts; one more than there are exchanges.
        messages: How many messages there are before each boundary.
        humans: The indexes of the human's messages.
        said: The first run of each of these; None where it is not in the log.
        summaries: The indexes of summaries.
        staying: The indexes of pinned and open exchanges, which every view must show.
        parts: Where entries of another part of the log begin: the index, and the part's name (`part_of`).
        breaks: Where the entries leave the order of one dialog; and before and after each exchange that is derived or part of two dialogs.
        between: What the dialog does not share between entries that it shares.
    """

    between: Sequence[Span] = ()
    sizes: list[int] = field(default_factory=lambda: [0])
    messages: list[int] = field(default_factory=lambda: [0])
    humans: list[int] = field(default_factory=list)
    said: list[tuple[DialogId, int, int] | None] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)
    staying: list[int] = field(default_factory=list)
    parts: list[tuple[int, tuple[object, ...]]] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)

    def grow(self, exchanges: Sequence[Exchange], stop: int | None = None) -> Columns:
        """Add the exchanges up to `stop` that are not known yet."""
        size, messages, dialog = self.sizes[-1], self.messages[-1], self.parts[-1][1][0] if self.parts else ""
        known = len(self.sizes) - 1
        end = _end(exchanges[known - 1]) if 0 < known < len(exchanges) else None
        for index, exchange in enumerate(exchanges[known:stop], start=known):
            self._note(index, exchange)
            self.sizes.append(size := size + (0 if exchange.derived else exchange.size))
            self.messages.append(messages := messages + exchange.messages)
            runs = exchange.source.runs
            if runs and (runs[0][0] != dialog or self.between):
                dialog = runs[0][0]
                part = part_of(Handle(dialog, runs[0][1]), self.between)
                if not self.parts or self.parts[-1][1] != part:
                    self.parts.append((index, part))
            before, end = end, _end(exchange)
            # runs that a plan drops are joined over neighbours, so every place where the order breaks must be known
            if before is None or end is None or runs[0][0] != before[0] or runs[0][1] < before[2]:
                self.breaks.append(index)
        return self

    def _note(self, index: int, exchange: Exchange) -> None:
        runs = exchange.source.runs
        if exchange.speaker is Speaker.HUMAN:
            if exchange.role is Role.USER and not exchange.derived:
                self.humans.append(index)
                self.said.append(runs[0] if runs else None)
        elif exchange.speaker is Speaker.SUMMARY and (exchange.derived == "summary" or runs):
            self.summaries.append(index)
        if exchange.pinned or exchange.open:
            self.staying.append(index)

    def first(self, count: int) -> Columns:
        """Return the columns of the first exchanges."""
        humans = bisect_left(self.humans, count)
        return Columns(
            self.between,
            self.sizes[: count + 1],
            self.messages[: count + 1],
            self.humans[:humans],
            self.said[:humans],
            self.summaries[: bisect_left(self.summaries, count)],
            self.staying[: bisect_left(self.staying, count)],
            [part for part in self.parts if part[0] < count],
            self.breaks[: bisect_left(self.breaks, count)],
        )


def _end(exchange: Exchange) -> tuple[DialogId, int, int] | None:
    """Return the last run of an exchange of one dialog."""
    runs = exchange.source.runs
    return runs[-1] if runs and not exchange.derived and runs[0][0] == runs[-1][0] else None


_CHUNK = 64
"""Exchanges whose entries are noted at once."""


@dataclass(frozen=True, kw_only=True)
class View:
    """What the model sees.

    Attributes:
        dialog_id: The dialog.
        at: The number of the dialog's last own entry that the view includes, or -1.
        system: The instructions, in order.
        tools: The declared tools.
        provided: The declared tools that the provider runs itself, by name: true, or their options.
        exchanges: The conversation, in order.
        omissions: The entries and blocks up to `at` that the view does not show, with the reason.
        model: The model in force, or empty.
        state: Other entries that the view depends on: instructions, toolset, model change, pins, quarantines.
        leading: How many system messages are part of the instructions because they came before the conversation.
        response: The first entry of the newest response, whose calls can still be answered, shown or not; None before the first.
        policies: The policies that shaped it, in order.
        compact_at: The number of tokens from which the provider is asked to compact the conversation; 0 for never.
        earlier: What was in force before `system` and `tools` since the conversation or its newest checkpoint began, oldest first.
        shared: The ranges of its ancestors that the dialog shares.
        reader: The log; None for a view that a program made.
        grown: The columns of the views before, which know some of the first exchanges, and how many of these no later view changes.
    """

    dialog_id: DialogId
    at: int
    system: tuple[Block, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    provided: Mapping[str, Any] = EMPTY
    exchanges: tuple[Exchange, ...] = ()
    omissions: tuple[Omission, ...] = ()
    model: str = ""
    state: tuple[Span, ...] = ()
    leading: int = 0
    response: Handle | None = None
    policies: tuple[str, ...] = ()
    compact_at: int = 0
    earlier: tuple[EarlierSettings, ...] = ()
    shared: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    reader: Reader | None = field(default=None, compare=False, repr=False)
    grown: InitVar[tuple[Columns, int] | None] = None
    _grown: tuple[Columns, int] | None = field(default=None, init=False, compare=False, repr=False)
    _noted: dict[tuple[str, int], list[int]] = field(default_factory=dict, init=False, compare=False, repr=False)
    _unnoted: list[int] = field(default_factory=list, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        left = f", {len(self.omissions)} omissions" if self.omissions else ""
        return f"<View of dialog {self.dialog_id[:12]}: {len(self.exchanges)} exchanges{left}>"

    def _repr_html_(self) -> str:
        """Return the newest exchanges, for a notebook."""
        first = max(0, len(self.exchanges) - MOST)
        rows = [
            (
                number,
                ", ".join(turn.role.value for turn in exchange.turns),
                " ".join(words_of(block.content) for block in exchange.blocks()),
            )
            for number, exchange in enumerate(self.exchanges[first:], first)
        ]
        return html_table(repr(self)[1:-1], ("", "roles", "exchange"), rows, earlier=first)

    def __post_init__(self, grown: tuple[Columns, int] | None) -> None:
        object.__setattr__(self, "_grown", grown)

    @cached_property
    def columns(self) -> Columns:
        """What policies ask of every exchange."""
        shared, settled = self._grown or (Columns(gaps(self.shared)), 0)
        shared.grow(self.exchanges, settled)
        return shared.first(settled).grow(self.exchanges)

    def load(self, indexes: Iterable[int] | None = None) -> None:
        """Read the bodies of some exchanges in few scans; of all when no indexes are given. What was read before is not read again."""
        load(self.exchanges if indexes is None else (self.exchanges[index] for index in indexes))

    @property
    def summary(self) -> str:
        """The running summary: the text that a model wrote of what left; empty if there is none."""
        newest = next((each for each in reversed(self.exchanges) if each.derived == "summary"), None)
        return "" if newest is None else "\n".join(words_of(block.content) for block in newest.blocks())

    @property
    def messages(self) -> list[Message]:
        """What the model sees as a plain list: the instructions, then the conversation; each tool result is a message of its own."""
        return [message for _, made in self.by_message() for message, _ in made]

    def by_message(self) -> Iterator[tuple[Exchange | None, list[tuple[Message, tuple[Block, ...]]]]]:
        """Yield the instructions, with None, and each exchange, as new messages with the blocks that each shows. Reads all bodies."""
        self.load()
        yield None, [(Message(role=Role.SYSTEM, contents=(block.content,)), (block,)) for block in self.system]
        for exchange in self.exchanges:
            yield exchange, [made for turn in exchange.turns for made in _of_turn(turn)]

    def find(self, handle: Handle) -> int | None:
        """Return the index of the exchange that shows an entry or a block; None when no exchange does."""
        for index in self.showing(handle):
            if handle.block is None or any(shown == handle for shown, _ in self.exchanges[index].shown()):
                return index
        return None

    def showing(self, handle: Handle) -> Sequence[int]:
        """Return the indexes of the exchanges that an entry is part of."""
        place = (handle.dialog, handle.seq)
        stop = self._unnoted[0] if self._unnoted else len(self.exchanges)
        while place not in self._noted and stop > 0:  # the newest first, because plans change new ones
            start = max(0, stop - _CHUNK)
            while start > 0 and not set(self.exchanges[start].entries()).isdisjoint(
                self.exchanges[start - 1].entries()
            ):
                start -= 1  # an entry with a result and words is part of two neighbours
            for index in range(stop - 1, start - 1, -1):
                for entry in self.exchanges[index].entries():
                    self._noted.setdefault(entry[:2], []).insert(0, index)
            self._unnoted[:] = [stop := start]
        return self._noted.get(place, ())

    def omission(self, handle: Handle) -> Omission | None:
        """Return how the view leaves an entry or block out; None when nothing says so."""
        named = (gone for gone in self.omissions if gone.handle in {handle, handle._replace(block=None)})
        return next(named, None) or next(
            (gone for gone in self.omissions if gone.span is not None and handle in gone.span), None
        )

    def newest_user(self) -> int | None:
        """Return the index of the user's newest message; None when there is none. Words that a program added do not count."""
        return next(reversed(self.columns.humans), None)

    def protected(self) -> frozenset[int]:
        """Return the indexes that every plan must keep: the newest user message, a newer message that waits for an answer, the pinned, the open."""
        keep = {*self.columns.staying, *self.columns.humans[-1:]}
        for index in reversed(range(len(self.exchanges))):
            exchange = self.exchanges[index]
            if exchange.role is Role.USER and not exchange.derived:
                keep.add(index)  # a program's message waits for an answer, too
            if exchange.role in _TALK and not exchange.derived:
                break
        return frozenset(keep)


def load(exchanges: Iterable[Exchange]) -> None:
    """Read the bodies of exchanges in few scans. What was read before is not read again."""
    by_log: dict[Reading, list[Recorded]] = {}
    for exchange in exchanges:
        if not exchange.source.loaded:
            by_log.setdefault(exchange.source.read, []).append(exchange.source)
    for read, sources in by_log.items():
        entries = read(place for source in sources for place in source.places())
        for source in sources:
            source.build(entries)


_TALK = frozenset({Role.USER, Role.ASSISTANT})


def _of_turn(turn: Turn) -> Iterator[tuple[Message, tuple[Block, ...]]]:
    for blocks in [(block,) for block in turn.blocks] if turn.role is Role.TOOL else [turn.blocks]:
        contents = tuple(block.content for block in blocks)
        yield Message(role=turn.role, contents=contents, name=turn.name, speaker=blocks[0].speaker), blocks
