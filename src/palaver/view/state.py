"""The state after some entries: exchanges, marks on their blocks, pins, instructions, tools, the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from palaver.ids import DialogId
from palaver.log import (
    BlockEdit,
    Compaction,
    ContextEdit,
    Derived,
    Entry,
    Handle,
    Header,
    Instructions,
    MessageEntry,
    ModelChange,
    Node,
    Omitted,
    Pin,
    Quarantine,
    Reader,
    Span,
    Toolset,
    ToolSpec,
    every_header,
    gaps,
    is_note,
)
from palaver.messages import Role, Speaker, TextContent, Trust
from palaver.messages.frozen import EMPTY
from palaver.view.blocks import NO_CHANGES, QUARANTINE, Block, BlockChange, Reason, from_edit, shown_blocks
from palaver.view.exchange import Exchange, Reading, blocks_of, read
from palaver.view.pairing import Pairing
from palaver.view.view import Columns, EarlierSettings, Omission, View


@dataclass(slots=True)
class BlockMarks:
    """The marks in force.

    Attributes:
        edits: The blocks shown in another form; the newest edit of a block wins.
        removed: The blocks left out.
        apart: The results that a checkpoint found without their call: what answered the call before may have left the view since.
        flags: The newest entry about each pin and quarantine, and whether it sets or removes it. A removal counts, too, as long as the entry before it may be
            read.
        touched: The entries whose marks changed since they were last asked for.
    """

    edits: dict[Handle, BlockChange] = field(default_factory=dict)
    removed: dict[Handle, Omission] = field(default_factory=dict)
    apart: set[Handle] = field(default_factory=set)
    flags: dict[tuple[str, Handle], tuple[Handle, bool]] = field(default_factory=dict)
    touched: set[tuple[DialogId, int]] = field(default_factory=set)
    _targets: dict[tuple[DialogId, int], dict[Handle, None]] = field(default_factory=dict)

    def edit(self, edits: Iterable[BlockEdit]) -> None:
        """Show blocks in another form."""
        for edit in edits:
            target = edit.target.handle
            if edit.reason == Reason.UNPAIRED:  # the fold shows it as text again: only that it does is recorded
                self.apart.add(target)
                continue
            self._touch(target)
            self.edits[target] = from_edit(edit)
            self.removed.pop(target, None)

    def remove(self, block: Handle, gone: Omission) -> None:
        """Leave a block out."""
        self._touch(block)
        self.removed[block] = gone

    def flag(self, place: Handle, kind: str, target: Handle, *, holds: bool) -> None:
        """Set or remove a pin or a quarantine."""
        self._touch(target)
        self.flags.pop((kind, target), None)
        self.flags[kind, target] = place, holds

    def _touch(self, target: Handle) -> None:
        entry = (target.dialog, target.seq)
        self._targets.setdefault(entry, {})[target] = None
        self.touched.add(entry)

    def places(self) -> Iterator[Handle]:
        """Return the entries that the pins and quarantines depend on."""
        return (place for place, _ in self.flags.values())

    def _holds(self, kind: str, target: Handle) -> bool:
        return (kind, target) in self.flags and self.flags[kind, target][1]

    def touches(self, exchange: Exchange) -> bool:
        """Return whether the marks of an exchange changed since they were last asked for."""
        return bool(self.touched) and any(entry[:2] in self.touched for entry in exchange.entries())

    def on(self, exchange: Exchange) -> Exchange:
        """Return an exchange with its marks; the same object when it has none."""
        if not self._targets:
            return exchange
        entries = list(exchange.entries())
        changes = self.changes(entries)
        pinned = any(self._holds("pin", entry) for entry in entries)
        return replace(exchange, changes=changes, pinned=pinned) if changes or pinned else exchange

    def changes(self, entries: Iterable[Handle]) -> Mapping[Handle, BlockChange]:
        """Return the changes of the blocks of entries. A quarantine wins over an edit, which may show just what was refused."""
        changes: dict[Handle, BlockChange] = {}
        for entry in entries:
            for target in self._targets.get((entry.dialog, entry.seq), ()):
                if self._holds("quarantine", target):
                    changes[target] = QUARANTINE
                elif target in self.removed:
                    changes[target] = BlockChange(self.removed[target].reason)
                elif target in self.edits:
                    changes[target] = self.edits[target]
        return changes or NO_CHANGES


def _sections(place: Handle, entry: Instructions, *, behind: bool) -> Iterator[Block]:
    """Return the sections that say something, those before the instructions that were said as messages or those after them."""
    for index, section in enumerate(entry.sections):
        if bool(section.behind) is behind and section.text.strip():
            origin = Handle(place.dialog, place.seq, index)
            text = TextContent(content=section.text)
            yield Block(content=text, origin=origin, speaker=Speaker.HARNESS, trust=Trust.HARNESS)


def _superseded(place: Handle) -> Omission:
    """Return the omission of an entry that newer ones replace."""
    return Omission(reason=Reason.SUPERSEDED, span=Span(place.dialog, place.seq, place.seq + 1))


@dataclass(slots=True)
class State:
    """The state after the entries read so far.

    Attributes:
        node: The dialog.
        headers: Returns the headers of a span.
        read: Reads entries.
        whole: Whether to ignore context edits.
        leads: How many system messages come before the conversation, where a checkpoint records it.
        pairing: The exchanges, without marks.
        leading: The system messages before the conversation.
        in_force: The newest instructions, toolset and model change.
        changes: The instructions and toolsets that came after the conversation or its checkpoint began, each with what was in force before it.
        marks: Edits, pins and quarantines of entries and blocks.
        omissions: What the checkpoint left out.
        policies: The policies that decided, in order.
        damaged: Entries that decide how others are shown and cannot be read.
    """

    node: Node
    headers: Callable[[Span], Iterator[Header]]
    read: Reading
    whole: bool = False
    leads: int | None = None
    pairing: Pairing = field(init=False)
    leading: list[Handle] = field(default_factory=list)
    in_force: dict[str, Handle] = field(default_factory=dict)
    changes: list[tuple[Handle, tuple[Handle, ...]]] = field(default_factory=list)
    marks: BlockMarks = field(default_factory=BlockMarks)
    omissions: list[Omission] = field(default_factory=list)
    policies: list[str] = field(default_factory=list)
    damaged: list[Handle] = field(default_factory=list)
    _shown: list[Exchange] = field(default_factory=list)
    _hidden: set[int] = field(default_factory=set)
    _settled: int = 0
    _settings: tuple[Handle, ...] | None = None
    _replaced: tuple[Handle, ...] = ()
    _system: tuple[Block, ...] = ()
    _tools: tuple[ToolSpec, ...] = ()
    _provided: Mapping[str, Any] = EMPTY
    _model: str = ""
    _earlier: tuple[EarlierSettings, ...] = ()
    _columns: Columns = field(init=False)
    reader: Reader | None = None

    @classmethod
    def of(cls, reader: Reader, node: Node, *, whole: bool = False) -> State:
        """Return the state before the first entry of a log."""
        return cls(node, partial(every_header, reader), partial(read, reader), whole=whole, reader=reader)

    def __post_init__(self) -> None:
        self._columns = Columns(gaps(self.node.ranges))
        self.pairing = Pairing(self.read, self._open_at, self._open_before, self._columns.between, self.marks.apart)

    def resume(self, checkpoint: Compaction) -> None:
        """Begin with a checkpoint."""
        self.leads = checkpoint.leading
        self._edit(checkpoint.edits, checkpoint.omitted, checkpoint.policy)
        for piece in checkpoint.pieces:
            if isinstance(piece, Derived):
                self.pairing.derived(piece)
            else:
                self.take_span(Span(piece.dialog, piece.start, piece.stop), edited=True)
        self.changes.clear()  # a checkpoint begins with what is in force: the conversation before it is sent anew in any case
        if checkpoint.closed:  # the newest response is not in the view: a late result must not go to an older one
            self.pairing.finish(live=False)
            self.pairing.response = None

    def take_span(self, span: Span, *, edited: bool = False) -> bool:
        """Read the headers of a span; return False when an entry in it records an erasure.

        Args:
            span: The entries.
            edited: Whether a checkpoint already records what the context edits in the span say.
        """
        dialog = span.dialog
        inherited = dialog != self.node.dialog_id
        kept = True
        for header in self.headers(span):
            if header.kind == "message":
                self.message(dialog, header, inherited=inherited)
            elif header.kind in _READ and not (edited and header.kind == "context_edit"):
                kept &= self._adjust(Handle(dialog, header.seq), header)
        return kept

    def message(self, dialog: DialogId, header: Header, *, inherited: bool = False) -> None:
        """Add a message.

        Args:
            dialog: The dialog that owns it.
            header: Its header.
            inherited: Whether an ancestor owns it.
        """
        role = header.role
        if role in _MODEL:
            self.pairing.respond(dialog, header, inherited=inherited)
        elif role in _SUMMARIES and header.blocks:
            self.pairing.summary(dialog, header)
        elif role == Role.SYSTEM and self._leads() and header.blocks:
            self.leading.append(Handle(dialog, header.seq))
        elif role == Role.CUSTOM and not header.blocks:
            self.pairing.leave_out(dialog, header, Reason.NOT_SHOWN)
        else:
            self.pairing.say(dialog, header, Role.SYSTEM if role == Role.SYSTEM else Role.USER)

    def _leads(self) -> bool:
        """Return whether a system message comes before the conversation; a checkpoint whose beginning was dropped records it."""
        return not self.pairing.exchanges if self.leads is None else len(self.leading) < self.leads

    def _adjust(self, place: Handle, header: Header) -> bool:
        """Read an entry that decides how others are shown; return False when it records an erasure."""
        if header.kind in _IN_FORCE:
            self._supersede(place, header.kind)
            return True
        if header.kind == "branch_summary":
            self.pairing.summary(place.dialog, header)
            return True
        match self.read((place,))[place]:
            case ContextEdit() as entry:
                if not self.whole:
                    self._edit(entry.edits, entry.omitted, entry.policy)
                return not is_note(entry)
            case Pin() as entry:
                self.marks.flag(place, entry.kind, entry.target.handle._replace(block=None), holds=entry.pinned)
            case Quarantine() as entry:
                self.marks.flag(place, entry.kind, entry.target.handle, holds=not entry.lifted)
            case _:
                self.damaged.append(place)
        return True

    def _supersede(self, place: Handle, kind: str) -> None:
        older = self.in_force.get(kind)
        if older is not None:
            self.pairing.omissions.append(_superseded(older))
        if kind != "model_change" and self.pairing.exchanges:
            self.changes.append((place, tuple(self.in_force.values())))
        self.in_force[kind] = place

    def _edit(self, edits: Iterable[BlockEdit], omitted: Iterable[Omitted], policy: str) -> None:
        """Apply the edits and omissions of a compaction or a context edit."""
        self.marks.edit(edits)
        for gone in map(Omission.of, omitted):
            if gone.handle is None or gone.handle.block is None:
                self.omissions.append(gone)
            elif gone.reason is Reason.DUPLICATE_RESULT:
                self.pairing.blocks[gone.handle] = gone
            elif gone.reason is Reason.PARTED:
                self.pairing.parted[gone.handle] = gone
            else:
                self.marks.remove(gone.handle, gone)
        if policy and policy not in self.policies:
            self.policies.append(policy)

    def view(self, at: int) -> View:
        """Return the view of the entries read so far."""
        self._read_settings()
        leading = [place for place in self.leading if place not in self._replaced]
        state = (*self.in_force.values(), *leading, *self.marks.places())
        exchanges = self._exchanges()
        response = self.pairing.response
        return View(
            dialog_id=self.node.dialog_id,
            at=at,
            system=shown_blocks(self._system, self.marks.changes(self._settings or ())),
            tools=self._tools,
            provided=self._provided,
            exchanges=exchanges,
            omissions=(
                *self.omissions,
                *self.pairing.omissions,
                *map(_superseded, self._replaced),
                *(self.pairing.parted | self.pairing.blocks | self.marks.removed).values(),
            ),
            model=self._model,
            state=tuple(Span(place.dialog, place.seq, place.seq + 1) for place in state),
            leading=len(leading),
            response=None if response is None else response.first,
            policies=tuple(self.policies),
            earlier=self._shown_earlier(),
            shared=self.node.ranges,
            reader=self.reader,
            grown=None if self._hidden else (self._columns, self._settled),
        )

    def _exchanges(self) -> tuple[Exchange, ...]:
        """Return the exchanges with their marks. An exchange that did not change since the last view is the same object."""
        plain, shown, marks = self.pairing.finish(), self._shown, self.marks
        if marks.touched:  # a pin is part of the columns, and older views may still use those that were grown
            self._columns = Columns(self._columns.between)
        for index in range(0 if marks.touched else min(self._settled, len(shown)), len(plain)):
            exchange = plain[index]
            if index == len(shown):
                shown.append(exchange)
            elif shown[index].source is exchange.source and not marks.touches(exchange):
                continue
            shown[index] = made = marks.on(exchange)
            self._hidden.discard(index)
            if made.changes and next(made.shown(), None) is None:
                self._hidden.add(index)
        response = self.pairing.response
        self._settled = len(plain) if response is None else response.index  # the newest response may still grow
        marks.touched.clear()
        if not self._hidden:
            return tuple(shown)
        return tuple([exchange for index, exchange in enumerate(shown) if index not in self._hidden])

    def _open_at(self, place: Handle) -> Collection[str]:
        """Return the calls that were open at the end of the inherited span that contains a place."""
        return next((self._open_after(span, span.stop - 1) for span in self.node.ranges if place in span), ())

    def _open_before(self, place: Handle, call: str) -> Handle | None:
        """Return the block of a call that was open before the inherited span that contains a place."""
        span = next((span for span in self.node.ranges if place in span), None)
        if span is None or call not in self._open_after(span, span.start - 1):
            return None
        # one by one, because it is in the newest response
        steps = (Span(span.dialog, seq, seq + 1) for seq in reversed(range(span.start)))
        for header in (header for step in steps for header in self.headers(step)):
            if "c" in header.blocks and call in header.calls:
                blocks = [index for index, letter in enumerate(header.blocks) if letter == "c"]
                return Handle(span.dialog, header.seq, blocks[header.calls.index(call)])
        return None

    def _open_after(self, span: Span, seq: int) -> Collection[str]:
        return next(self.headers(Span(span.dialog, seq, seq + 1))).open_calls if seq >= 0 else ()

    def _read_settings(self) -> None:
        """Read instructions, tools and model again when other entries decide them."""
        decisive = (*self.in_force.values(), *self.damaged)
        older = (place for _, before in self.changes for place in before)
        places = (*decisive, *self.leading, *older)
        if self._settings == places:
            return  # their bodies are the same, and the system blocks keep their identity
        entries = self.read(dict.fromkeys(places))
        self._replaced, self._system, self._tools = self._in_force_of(decisive, entries)
        said = [entries[place] for place in self.in_force.values()]
        toolset = next((entry for entry in said if isinstance(entry, Toolset)), None)
        self._provided = (toolset.provided or EMPTY) if toolset else EMPTY
        self._model = next((entry.model for entry in said if isinstance(entry, ModelChange)), "")
        self._earlier = tuple(
            EarlierSettings(until=place, system=system, tools=tools)
            for place, before in self.changes
            for _, system, tools in (self._in_force_of((*before, *self.damaged), entries),)
        )
        self._settings = places

    def _in_force_of(
        self, decisive: Sequence[Handle], entries: Mapping[Handle, Entry]
    ) -> tuple[tuple[Handle, ...], tuple[Block, ...], tuple[ToolSpec, ...]]:
        """Return the system messages that some settings replace, their instructions, and their tools."""
        said = [(place, entries[place]) for place in decisive]
        sections = [(place, entry) for place, entry in said if isinstance(entry, Instructions)]
        lines = [(place, entry) for place, entry in said if isinstance(entry, MessageEntry)]
        replaced = {place.handle for _, entry in sections for place in entry.replaces}
        leading = [place for place in self.leading if place not in replaced]
        system = (
            *(block for each in sections for block in _sections(*each, behind=False)),
            *(block for place in leading for block in blocks_of(place, entries[place])),
            *(block for each in sections for block in _sections(*each, behind=True)),
            *(block for place, entry in lines for block in blocks_of(place, entry)),
        )
        tools = next((entry.tools for _, entry in said if isinstance(entry, Toolset)), ())
        return tuple(place for place in self.leading if place in replaced), system, tools

    def _shown_earlier(self) -> tuple[EarlierSettings, ...]:
        """Return what was in force before, as the marks show it."""
        changes = self.marks.changes(self._settings or ()) if self._earlier else NO_CHANGES
        return (
            tuple(replace(each, system=shown_blocks(each.system, changes)) for each in self._earlier)
            if changes
            else self._earlier
        )


_MODEL = frozenset({Role.ASSISTANT.value, Role.TOOL_CALL.value})
_SUMMARIES = frozenset({Role.BRANCH_SUMMARY.value, Role.COMPACTION_SUMMARY.value})
_IN_FORCE = frozenset({"instructions", "toolset", "model_change"})
_READ = _IN_FORCE | {"branch_summary", "context_edit", "pin", "quarantine"}
