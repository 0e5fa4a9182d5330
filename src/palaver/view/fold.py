"""The fold: from the entries of a log to the view, in one pass and without any choice of its own.

What the fold must decide, it decides by rule, and says so in the view: the fragments of a response are one turn, results stand with
their calls, what is empty or doubled is left out with its reason. Choosing less than everything is a policy's work, never the fold's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    BranchSummary,
    Compaction,
    Constraint,
    ContextEdit,
    Derived,
    Handle,
    Header,
    Instructions,
    MessageEntry,
    ModelChange,
    Node,
    Pin,
    Quarantine,
    Reader,
    Run,
    Span,
    Toolset,
    ToolSpec,
    is_note,
)
from palaver.messages import CustomMessage, Message, Role, Speaker, TextContent, Trust
from palaver.view.edits import Edits, handle_of
from palaver.view.hearing import ASSISTANT, Hearing
from palaver.view.lines import Line, header_at, material, read
from palaver.view.pairing import Pairing, blocks
from palaver.view.reasons import Reason
from palaver.view.texts import by_hand
from palaver.view.view import CARRIED, Block, Exchange, Omission, Stated, View, carrying

RULES = 3
"""The version of what the fold gives: raised whenever the same log gives another view than before, so that a call that was recorded is given back by
the rules of its time.

1. What the log says, and nothing else.
2. Constraints that were put on the list by hand are told behind the instructions. What a tool gave back in a text protocol is no word of the user's.
3. More protocols are known: by words of many languages, by how an output ends, by the name of what was called, and by what the instructions say of it.
"""

_SAID_ONLY = 1
_SUMMARIES = frozenset({Role.BRANCH_SUMMARY, Role.COMPACTION_SUMMARY})


def fold(
    reader: Reader, dialog_id: DialogId, at: int | None = None, *, whole: bool = False, rules: int = RULES
) -> View:
    """Compute the view of a dialog.

    Pure in what the log holds: the same entries give the same view by the same rules, in every store, for ever.

    Args:
        reader: Where the log is read from.
        dialog_id: The dialog.
        at: The number of the last own entry to take into account, inclusive; None for the newest, -1 for what is inherited only.
        whole: True to pass over compactions and context edits, so that everything is in the view.
        rules: The version of the rules, one of those that `RULES` tells.

    Returns:
        The view. It costs what it holds and what came after its checkpoint, not the length of the log.

    Raises:
        UnknownDialog: No such dialog.
    """
    return Folding(reader, reader.node(dialog_id), whole=whole, rules=rules).view(header_at(reader, dialog_id, at))


class Folding:
    """A fold that is gone on with: what was read for one view is not read again for the next.

    The log only grows, and a fold takes one entry after the other; so the view after more entries is what this one has in hand, and
    those entries, unless a compaction came between: that is where a fold begins. Each view is the one that `fold` gives.
    """

    def __init__(self, reader: Reader, node: Node, *, whole: bool = False, rules: int = RULES) -> None:
        """Read nothing yet.

        Args:
            reader: Where the log is read from.
            node: The dialog.
            whole: True to pass over compactions and context edits.
            rules: The version of the rules.
        """
        self._reader = reader
        self._node = node
        self._whole = whole
        self._rules = rules
        # what is in hand, one or none: taken out and put back in one step each, for threads that read at once
        self._held: list[_Standing] = []

    @property
    def at(self) -> int:
        """The number of the last own entry that was read, -1 before the first."""
        return next((held.upto.seq for held in self._held), NOTHING.seq)

    def view(self, upto: Header) -> View:
        """Give the view up to an own entry of the dialog, inclusive, given by its header; `NOTHING` for what is inherited only."""
        try:  # whatever raises leaves nothing half taken; and a thread that reads meanwhile finds nothing in hand
            last = self._held.pop()
        except IndexError:
            last = None
        if last is not None and last.upto.seq == upto.seq:
            self._held = [last]
            return last.view
        dialog_id = self._node.dialog_id
        state = None if last is None or not self._leads_to(last, upto) else last.state
        if last is None or state is None or not self._gone_on(state, last.upto, upto):
            found = material(self._reader, self._node, upto, whole=self._whole)
            hearing = Hearing.by(self._rules, self._reader)
            state = _Fold(whole=self._whole, rules=self._rules, hearing=hearing)
            if found.checkpoint is not None:
                state.resume(found.checkpoint, read(self._reader, dialog_id, found.kept))
            for line in read(self._reader, dialog_id, found.tail):
                state.take(line)
        view = state.view(self._node, upto.seq)
        self._held = [_Standing(state, upto, view)]
        return view

    def _gone_on(self, state: _Fold, last: Header, upto: Header) -> bool:
        """Take what came since; False when something was erased, which this fold has still in hand."""
        dialog_id = self._node.dialog_id
        for line in read(self._reader, dialog_id, (Span(dialog_id, last.seq + 1, upto.seq + 1),)):
            if isinstance(line, Line) and is_note(line.entry):
                return False
            state.take(line)
        return True

    def _leads_to(self, last: _Standing, upto: Header) -> bool:
        return last.upto.seq <= upto.seq and (self._whole or last.upto.view_base == upto.view_base)


class _Standing(NamedTuple):
    """Where a fold stands: what is in force behind an entry, and the view there."""

    state: _Fold
    upto: Header
    view: View


@dataclass(slots=True)
class _Fold:
    """What is in force while the entries are read."""

    whole: bool
    rules: int
    hearing: Hearing
    instructions_left: int | None = None
    pairing: Pairing = field(default_factory=Pairing)
    edits: Edits = field(default_factory=Edits)
    leading: list[Block] = field(default_factory=list)
    leading_at: list[Handle] = field(default_factory=list)
    sections: list[Block] = field(default_factory=list)
    behind: list[Block] = field(default_factory=list)
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    in_force: dict[str, Handle] = field(default_factory=dict)
    pins: dict[Handle, Handle] = field(default_factory=dict)
    taken_back: dict[tuple[str, Handle], Handle] = field(default_factory=dict)
    constraints: dict[str, Stated] = field(default_factory=dict)
    settled: int = 0
    carried: tuple[Exchange, ...] = ()

    def resume(self, checkpoint: Compaction, kept: Iterable[Line | Derived]) -> None:
        """Take what a checkpoint holds, as it was when it was written down."""
        self.instructions_left = checkpoint.leading
        self.edits.take(checkpoint.edits, checkpoint.omitted, checkpoint.policy)
        self.pairing.apart = self.edits.apart
        self.pairing.edited = True
        for line in kept:
            self.take(line)
        self.pairing.edited = False
        if checkpoint.closed:
            self.pairing.response = None
        self.settled = len(self.pairing.finish(self.edits, self.pins.keys()))

    def take(self, line: Line | Derived) -> None:
        """Take the next entry, or a derived text that stands between entries."""
        if isinstance(line, Derived):
            if line.label == CARRIED:
                self.carried += carrying(_derived(line))
            else:
                self.pairing.derived(_derived(line))
            return
        match line.entry:
            case MessageEntry(message=message) as entry:
                self._message(line, message)
                self.hearing.reads(line.handle, entry)
            case Instructions() as entry:
                self._supersede("instructions", line)
                self.sections, self.behind = _sections(line, entry)
            case Toolset(tools=tools):
                self._supersede("toolset", line)
                self.tools = tools
            case ModelChange(model=model):
                self._supersede("model", line)
                self.model = model
            case BranchSummary() as entry:
                self.pairing.derived(_of_branch(line, entry), line)
            case _:
                self._adjust(line)

    def _adjust(self, line: Line) -> None:
        """Take an entry that changes how others are shown; one of another kind changes nothing here."""
        match line.entry:
            case ContextEdit() as entry if not self.whole:
                self.edits.take(entry.edits, entry.omitted, entry.policy)
                self.pairing.outdate(_targets(entry))
            case Pin() as entry:
                self._pin(line, entry)
            case Constraint(text=text, stands=stands):
                self.constraints.pop(text, None)
                self.constraints[text] = Stated(text, stands, line.handle)
            case Quarantine(target=target, lifted=lifted):
                self._mark(self.edits.quarantined, handle_of(target), line, stands=not lifted)
                self.pairing.outdate((handle_of(target),))
            case _:
                pass

    def _pin(self, line: Line, entry: Pin) -> None:
        place = Handle(entry.target.dialog, entry.target.seq)
        self.pairing.unsettle()
        self._mark(self.pins, place, line, stands=entry.pinned)

    def _mark(self, marks: dict[Handle, Handle], place: Handle, line: Line, *, stands: bool) -> None:
        """Put a mark on a place, or take it away; what took one away counts as long as what put it there may be read."""
        kind = line.entry.kind
        marks.pop(place, None)
        self.taken_back.pop((kind, place), None)
        if stands:
            marks[place] = line.handle
        else:
            self.taken_back[kind, place] = line.handle

    def _message(self, line: Line, message: Message) -> None:
        heard = self.rules > _SAID_ONLY and message.role is Role.USER
        if heard and self.hearing.observed(line.handle, message):
            self.pairing.say(line, message, Role.USER, speaker=Speaker.TOOL)
            return
        if message.role in ASSISTANT:
            self.pairing.respond(line, message)
        elif message.role in _SUMMARIES:
            self.pairing.derived(_summary(line, message.text_content()), line)
        elif message.role is Role.SYSTEM and self._leads():
            self._lead(line, message)
        elif message.role is not Role.CUSTOM:
            self.pairing.say(line, message, Role.SYSTEM if message.role is Role.SYSTEM else Role.USER)
        elif isinstance(message, CustomMessage) and message.in_context:
            self.pairing.say(line, message, Role.USER)
        else:
            self.pairing.leave_out(line, Reason.NOT_SHOWN)

    def _leads(self) -> bool:
        """Tell whether the next system message stands before the conversation; a checkpoint that dropped its beginning remembers."""
        if self.instructions_left is None:
            return not self.pairing.standing
        return len(self.leading_at) < self.instructions_left

    def _lead(self, line: Line, message: Message) -> None:
        """Take a system message that stands before the conversation: it is part of the instructions."""
        said = blocks(line, message)
        if not said:
            self.pairing.leave_out(line, Reason.EMPTY)
            return
        self.leading.extend(said)
        self.leading_at.append(line.handle)

    def _supersede(self, what: str, line: Line) -> None:
        """Put a newer entry in force; the older one is left out of the view."""
        older = self.in_force.get(what)
        if older is not None:
            self.pairing.omissions.append(
                Omission(reason=Reason.SUPERSEDED, span=Span(older.dialog, older.seq, older.seq + 1))
            )
        self.in_force[what] = line.handle

    def view(self, node: Node, at: int) -> View:
        """Give the view."""
        stated = tuple(self.constraints.values())
        told = _by_hand(stated) if self.rules > _SAID_ONLY else ()
        system = (*self.edits.all_shown((*self.sections, *self.leading, *self.behind)), *told)
        marks = (*self.pins.values(), *self.edits.quarantined.values(), *self.taken_back.values())
        state = (*self.in_force.values(), *self.leading_at, *marks, *(one.at for one in stated))
        removed = {gone.handle: gone for gone in self.pairing.doubled} | self.edits.removed
        return View(
            dialog_id=node.dialog_id,
            at=at,
            system=system,
            tools=self.tools,
            exchanges=self.pairing.finish(self.edits, self.pins.keys()),
            omissions=(*self.edits.omissions, *self.pairing.omissions, *removed.values()),
            model=self.model,
            state=tuple(Span(place.dialog, place.seq, place.seq + 1) for place in state),
            leading=len(self.leading_at),
            response=None if self.pairing.response is None else self.pairing.response.first,
            policies=tuple(self.edits.policies),
            shared=node.ranges,
            settled=self.settled,
            carried=self.carried,
            constraints=stated,
        )


def _targets(entry: ContextEdit) -> tuple[Handle, ...]:
    """Give the places that an edit touches."""
    places = [
        *(edit.target for edit in entry.edits),
        *(gone.target for gone in entry.omitted if gone.target is not None),
    ]
    runs = [
        Handle(gone.run.dialog, seq)
        for gone in entry.omitted
        if gone.run
        for seq in range(gone.run.start, gone.run.stop)
    ]
    return (*map(handle_of, places), *runs)


def _sections(line: Line, entry: Instructions) -> tuple[list[Block], list[Block]]:
    """Give the sections that say something: those before the instructions that were said as messages, and those behind them."""
    said = [(index, section) for index, section in enumerate(entry.sections) if section.text.strip()]
    before, behind = (
        [_section(line, index, one.text) for index, one in said if bool(one.behind) is last] for last in (False, True)
    )
    return before, behind


def _section(line: Line, index: int, text: str) -> Block:
    origin = Handle(line.handle.dialog, line.handle.seq, index)
    return Block(content=TextContent(content=text), origin=origin, speaker=Speaker.HARNESS, trust=Trust.HARNESS)


def _by_hand(stated: tuple[Stated, ...]) -> tuple[Block, ...]:
    """Give the section that tells what was put on the list of constraints by hand: nothing of the conversation says it.

    It stands behind the instructions, where no policy leaves anything out, and changes only when the list does.
    """
    standing = [(one.text, one.at) for one in stated if one.stands]
    if not standing:
        return ()
    runs = tuple(Run(dialog=at.dialog, start=at.seq, stop=at.seq + 1) for _, at in standing)
    text = TextContent(content=by_hand(standing))
    return (Block(content=text, derived="constraints", sources=runs, speaker=Speaker.HARNESS, trust=Trust.HARNESS),)


def _summary(line: Line, text: str) -> Block:
    return Block(
        content=TextContent(content=text),
        origin=line.handle,
        derived="summary",
        speaker=Speaker.SUMMARY,
        trust=Trust.OUTSIDE,
    )


def _of_branch(line: Line, entry: BranchSummary) -> Block:
    trust = Trust.__members__.get((entry.trust or "").upper(), Trust.OUTSIDE)
    return replace(_summary(line, entry.summary), sources=entry.sources or (), trust=trust)


def _derived(text: Derived) -> Block:
    return Block(
        content=TextContent(content=text.text),
        derived=text.label,
        sources=text.sources,
        facts=text.facts or "",
        speaker=Speaker(text.speaker),
        trust=Trust[text.trust.upper()],
    )
