"""A fold that reads every body at once, entry by entry: slow and plain, to compare the real one with."""

from __future__ import annotations

from dataclasses import dataclass, field

from palaver.log import (
    BranchSummary,
    ContextEdit,
    Entry,
    Handle,
    MessageEntry,
    Pin,
    Quarantine,
    Reader,
    decode_entry,
    lineage,
)
from palaver.messages import Content, Message, Role, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Reason, View

MODEL = {Role.ASSISTANT, Role.TOOL_CALL}


@dataclass
class Said:
    """An exchange as the reference has it: what each block is, by handle, and what answers each call."""

    role: str
    blocks: list[tuple[Handle, str]]
    entries: list[Handle] = field(default_factory=list)
    response: str | None = None
    calls: list[list[object]] = field(default_factory=list)
    inherited: bool = False

    def waiting(self, call: str) -> list[object] | None:
        """Return the first unanswered call of an id."""
        return next((each for each in self.calls if each[0] == call and each[1] is None), None)


def _says(content: Content) -> bool:
    return not isinstance(content, TextContent) or bool(content.content.strip())


class Reference:
    """The exchanges of a dialog, and the marks on its blocks."""

    def __init__(self, reader: Reader, dialog_id: str) -> None:
        """Read everything."""
        self.exchanges: list[Said] = []
        self.newest: Said | None = None
        self.may_join: str | None = None
        self.removed: set[Handle] = set()
        self.edited: set[Handle] = set()
        self.quarantined: set[Handle] = set()
        self.pins: set[Handle] = set()
        self.duplicates: set[Handle] = set()
        node = reader.node(dialog_id)  # type: ignore[arg-type]
        last: Handle | None = None
        for span in lineage(node, reader.last(node.dialog_id).seq + 1):
            self.may_join = None
            for seq, body in reader.bodies(span.dialog, span.start, span.stop):
                place = Handle(span.dialog, seq)
                if last is None or last != Handle(span.dialog, seq - 1):
                    last = None
                self.take(place, decode_entry(body), last, inherited=span.dialog != node.dialog_id)
                last = place

    def take(self, place: Handle, entry: Entry, last: Handle | None, *, inherited: bool) -> None:
        """Add an entry."""
        match entry:
            case MessageEntry(message=message):
                self.say(place, message, last, inherited=inherited)
            case BranchSummary():
                self.exchanges.append(Said("user", [(place, "summary")], [place]))
            case Pin(target=target, pinned=pinned):
                self._mark(self.pins, Handle(target.dialog, target.seq), pinned)
            case Quarantine(target=target, lifted=lifted):
                self._mark(self.quarantined, Handle(target.dialog, target.seq, target.block), not lifted)
            case ContextEdit(edits=edits, omitted=omitted):
                for edit in edits:
                    handle = Handle(edit.target.dialog, edit.target.seq, edit.target.block)
                    self.edited.add(handle)
                    self.removed.discard(handle)
                for gone in omitted:
                    assert gone.target is not None
                    self.removed.add(Handle(gone.target.dialog, gone.target.seq, gone.target.block))
            case _:
                pass

    @staticmethod
    def _mark(marks: set[Handle], handle: Handle, holds: bool) -> None:
        (marks.add if holds else marks.discard)(handle)

    def say(self, place: Handle, message: Message, last: Handle | None, *, inherited: bool) -> None:
        """Add a message."""
        said = [(index, block) for index, block in enumerate(message.contents) if _says(block)]
        if message.role in MODEL:
            self.respond(place, message, said, last, inherited=inherited)
            return
        results = any(isinstance(block, ToolResultContent) for _, block in said)
        if said and message.role is not Role.TOOL and not results:
            self.may_join = None
        if message.role is Role.SYSTEM and not self.exchanges:
            return
        rest: list[tuple[Handle, str]] = []
        for index, block in said:
            handle = Handle(place.dialog, place.seq, index)
            if not isinstance(block, ToolResultContent):
                rest.append((handle, "said"))
            elif not self.answer(place, handle, block.id):
                rest.append((handle, "unpaired"))
        if rest:
            role = "system" if message.role is Role.SYSTEM else "user"
            self.exchanges.append(Said(role, rest, [place]))

    def answer(self, place: Handle, handle: Handle, call: str) -> bool:
        """Return a result to a call of the newest response."""
        newest = self.newest
        if newest is None or not any(each[0] == call for each in newest.calls):
            return False
        waiting = newest.waiting(call)
        if waiting is None:
            self.duplicates.add(handle)
        else:
            waiting[1] = handle
            if place not in newest.entries:
                newest.entries.append(place)
        return True

    def respond(
        self, place: Handle, message: Message, said: list[tuple[int, Content]], last: Handle | None, *, inherited: bool
    ) -> None:
        """Add a response or a fragment of one."""
        if not said:
            return
        response = message.response_id if message.fragment else None
        joins = response is not None and response == self.may_join
        self.may_join = response
        newest = self.newest
        calls = [block.id for _, block in said if isinstance(block, ToolCallContent)]
        if newest is not None and not joins and message.response_id is None:
            unanswered = bool(newest.calls) and all(each[1] is None for each in newest.calls)
            joins = bool(calls) and unanswered and last is not None and newest.entries[-1] == last
        if newest is None or not (joins and (response is None or newest.response == response)):
            newest = self.newest = Said("assistant", [], response=response, inherited=inherited)
            self.exchanges.append(newest)
        newest.entries.append(place)
        newest.blocks += [(Handle(place.dialog, place.seq, index), "said") for index, _ in said]
        newest.calls += [[call, None, Handle(place.dialog, place.seq, index)] for call, index in _indexed(said)]

    def lines(self) -> list[object]:
        """Return what is shown: for each exchange its role, its blocks with how each is shown, its answers, whether it is pinned or open."""
        lines: list[object] = []
        for each in self.exchanges:
            fixed = {call[2] for call in each.calls}
            shown = [
                (handle, self.how(handle, what, fixed=handle in fixed))
                for handle, what in each.blocks
                if self.stays(handle, fixed)
            ]
            if not shown:
                continue
            answers = [self.answered(call[1]) for call in each.calls]
            is_open = each is self.newest and not each.inherited and "missing" in answers
            pinned = any(entry in self.pins for entry in each.entries)
            lines.append((each.role, shown, answers, pinned, is_open))
        return lines

    def stays(self, handle: Handle, fixed: set[object]) -> bool:
        """Return whether a block is shown at all."""
        return handle in fixed or handle not in self.removed or self._refused(handle)

    def how(self, handle: Handle, what: str, *, fixed: bool = False) -> str:
        """Return in which form a block is shown; a call keeps its form unless a provider refused it."""
        if self._refused(handle):
            return "quarantined"
        return "edited" if handle in self.edited and not fixed else what

    def answered(self, result: object) -> str:
        """Return in which form a call's result is shown; it cannot be left out."""
        if not isinstance(result, Handle):
            return "missing"
        return self.how(result, "said", fixed=result in self.removed)

    def _refused(self, handle: Handle) -> bool:
        return handle in self.quarantined or Handle(handle.dialog, handle.seq) in self.quarantined


def _indexed(said: list[tuple[int, Content]]) -> list[tuple[str, int]]:
    return [(block.id, index) for index, block in said if isinstance(block, ToolCallContent)]


def lines(view: View) -> list[object]:
    """Return the same of a view."""
    found: list[object] = []
    for each in view.exchanges:
        shown = [(block.origin, _form(block)) for block in each.turns[0].blocks]
        answers = [_form(block) for turn in each.turns[1:] for block in turn.blocks]
        found.append((each.role.value, shown, answers, each.pinned, each.open))
    return found


def _form(block: Block) -> str:
    if block.derived in {"waiting", "interrupted"}:
        return "missing"
    forms = {None: block.derived or "said", Reason.QUARANTINED: "quarantined", Reason.UNPAIRED: "unpaired"}
    return forms.get(block.reason, "edited")
