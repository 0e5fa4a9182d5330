"""Write a dialog event by event. Track its number of puts, the settings in force, and the places that later entries refer to."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from palaver import providers
from palaver.errors import PalaverError
from palaver.formats.events import Branch, Event, Loss, Put
from palaver.ids import DialogId
from palaver.log import (
    NOTHING,
    BlockEdit,
    Compaction,
    ContextEdit,
    Derived,
    Entry,
    MessageEntry,
    ModeChange,
    ModelChange,
    Omitted,
    Place,
    Run,
    Source,
    message_draft,
    next_header,
    rule,
)
from palaver.messages import Message, ToolResultContent, UnknownContent

COMPACTED, CLEARED = "compacted", "offloaded"
"""The reasons (`palaver.view.Reason`) for omissions by another agent's compaction, and for results that it cleared."""


class Origin(NamedTuple):
    """The record that entries come from.

    Attributes:
        record: The format's own id of it, or its number in the file as text.
        ordinal: Its number in the file.
        digest: The first 16 bytes of the SHA-256 of its bytes.
        place: Its place, for a report.
    """

    record: str
    ordinal: int
    digest: bytes
    place: str


class CallLog:
    """The tool calls of a conversation. Finds results without a call."""

    def __init__(self) -> None:
        self._made: set[str] = set()
        self._open: Counter[str] = Counter()

    def see(self, message: Message, writer: DialogWriter, place: str) -> Iterator[Loss]:
        """Count a message's calls, and report results without a call and second results.

        After a call was answered, a second call may reuse its id; each call has its own result.
        """
        calls = [call.id for call in message.tool_calls()]
        self._made.update(calls)
        self._open.update(calls)
        for result in message.tool_results():
            if self._open[result.id] > 0:
                self._open[result.id] -= 1
            elif result.id not in self._made:
                reason = f"It answers the call {result.id[:60]}, which is not in the file."
                yield Loss(place=place, reason=reason, code="orphan_result")
            elif writer.result(result.id) is not None:
                reason = f"It answers the call {result.id[:60]} a second time; the first result counts."
                yield Loss(place=place, reason=reason, code="duplicate_result")


class Mark(NamedTuple):
    """A point of a dialog where a fork can begin.

    Attributes:
        writer: The dialog.
        puts: The number of its own puts before that point.
        model: The model in force.
        modes: The modes in force.
    """

    writer: DialogWriter
    puts: int
    model: str
    modes: Mapping[str, str]


class DialogWriter:
    """Writes the entries of one dialog.

    Attributes:
        key: The reader's key of the dialog.
        count: The number of its entries.
        model: The model in force.
        modes: The modes in force, such as the permission mode.
    """

    def __init__(self, key: str, format_name: str, calls: CallLog | None = None, start: Mark | None = None) -> None:
        """Begin a dialog, empty or as a fork from a mark in another dialog."""
        self.key = key
        self.count = 0
        self.model = "" if start is None else start.model
        self.modes: Mapping[str, str] = MappingProxyType({}) if start is None else start.modes
        self._format = format_name
        self._calls = calls or CallLog()
        self._start = start
        self._messages = array("q", [0])
        self._last = NOTHING
        self._reported: set[str] = set()
        self._results: dict[str, tuple[int, int]] = {}  # numbers: places would need many times as much memory
        self._in_force: dict[str, list[int]] = {}

    def mark(self) -> Mark:
        """Return the current end of the dialog."""
        return Mark(self, self.count, self.model, self.modes)

    def fork(self, key: str, at: Mark | None = None) -> DialogWriter:
        """Return a writer for a fork of this dialog at a mark, by default at its end."""
        return DialogWriter(key, self._format, self._calls, at or self.mark())

    def branch(self, owner: str) -> Branch:
        """Return the event that begins the dialog."""
        if self._start is None:
            return Branch(dialog=self.key, owner=owner)
        parent, at = self._start.writer.key, self._start.puts
        return Branch(dialog=self.key, parent=parent, at=at, owner=owner, relation="fork")

    # --- entries --------------------------------------------------------------------------------------------------------

    def put(self, entry: Entry, origin: Origin, *, counted: int = 0) -> Put:
        """Put an entry that is not a message."""
        if rule(entry.kind).holds == "newest":
            self._in_force.setdefault(entry.kind, []).append(self.count)
        return self._put(entry, origin, 0, counted)

    def say(self, message: Message, origin: Origin, *, counted: int = 0) -> Iterator[Put | Loss]:
        """Put a message, preceded by a change of the model if there is one. Report replaced characters and results without a call.

        Args:
            message: The message.
            origin: Its record.
            counted: 1 for the first entry of a message record.
        """
        for change in message.normalized:
            reason = f"{change.place}: characters that UTF-8 or JSON cannot store were replaced ({change.kind})."
            yield Loss(place=origin.place, reason=reason, code=change.kind)
        for kind in sorted(_unknown_kinds(message) - self._reported):
            self._reported.add(kind)
            reason = f"A block of type {kind[:60]!r} is kept, but no model is shown it; others of the type may follow."
            yield Loss(place=origin.place, reason=reason, code="unknown_block", severity="loss")
        yield from self._calls.see(message, self, origin.place)
        if message.is_assistant_side:
            yield from self.use_model(message.model or "", message.provider or "", message.timestamp, origin)
        for index, block in enumerate(message.contents):
            if isinstance(block, ToolResultContent):
                self._results.setdefault(block.id, (self.count, index))
        self._last = next_header(message_draft(message, message.timestamp, b""), self._last)
        yield self._put(MessageEntry(message=message, at=message.timestamp), origin, int(self._last.begins), counted)

    def use_model(self, model: str, provider: str, at: float, origin: Origin) -> Iterator[Put]:
        """Put a change of the model, unless the model is already in force or empty."""
        if model and model != self.model:
            self.model = model
            yield self.put(ModelChange(model=model, provider=provider, at=at), origin)

    def use_mode(self, mode: str, value: str, at: float, origin: Origin) -> Iterator[Put]:
        """Put a change of a mode, unless the value is already in force or empty."""
        if value and value != self.modes.get(mode):
            self.modes = {**self.modes, mode: value}
            yield self.put(ModeChange(mode=mode, value=value, at=at), origin)

    def _put(self, entry: Entry, origin: Origin, messages: int, counted: int) -> Put:
        self._messages.append(self._messages[-1] + messages)
        self.count += 1
        source = Source(format=self._format, record=origin.record, ordinal=origin.ordinal)
        entry = entry.model_copy(update={"source": source})
        return Put(dialog=self.key, entry=entry, record=origin.record, digest=origin.digest, counted=counted)

    # --- places ---------------------------------------------------------------------------------------------------------

    def run(self, start: int, stop: int) -> Run:
        """Return a run of own puts, from `start` (inclusive) to `stop` (exclusive)."""
        return Run(dialog=DialogId(self.key), start=start, stop=stop)

    def spans(self, upto: int | None = None) -> list[Run]:
        """Return the runs of the dialog, oldest first, with its own puts before `upto` (None: all)."""
        inherited = [] if self._start is None else self._start.writer.spans(self._start.puts)
        own = self.run(0, self.count if upto is None else upto)
        return [*inherited, own] if own.stop else inherited

    def parted(self, place: Place) -> tuple[list[Run], list[Run]]:
        """Return the runs of the dialog before a place, and those from it on. If the place is not in the dialog, all are before."""
        before: list[Run] = []
        since: list[Run] = []
        for run in self.spans():
            if since:
                since.append(run)
            elif run.dialog == place.dialog and run.start <= place.seq < run.stop:
                before.append(Run(dialog=run.dialog, start=run.start, stop=place.seq))
                since.append(Run(dialog=run.dialog, start=place.seq, stop=run.stop))
            else:
                before.append(run)
        return [run for run in before if run.stop > run.start], since

    def place(self, seq: int) -> Place:
        """Return the place of an own put."""
        return Place(dialog=DialogId(self.key), seq=seq)

    def result(self, call_id: str, upto: int | None = None) -> Place | None:
        """Return the place of a call's first result in the dialog, with its own puts before `upto`."""
        spot = self._results.get(call_id)
        if spot is not None and (upto is None or spot[0] < upto):
            return Place(dialog=DialogId(self.key), seq=spot[0], block=spot[1])
        return None if self._start is None else self._start.writer.result(call_id, self._start.puts)

    def _state(self, upto: int | None = None) -> dict[str, Run]:
        """Return the newest instructions, tools and model in the dialog, with its own puts before `upto`."""
        state = {} if self._start is None else self._start.writer._state(self._start.puts)  # noqa: SLF001 - its own class
        for kind, seqs in self._in_force.items():
            newest = max((seq for seq in seqs if upto is None or seq < upto), default=-1)
            if newest >= 0:
                state[kind] = self.run(newest, newest + 1)
        return state

    def _said(self, run: Run) -> int:
        """Count the messages in a run of this dialog or an ancestor."""
        if run.dialog == self.key:
            return self._messages[run.stop] - self._messages[run.start]
        return 0 if self._start is None else self._start.writer._said(run)  # noqa: SLF001 - its own class

    # --- what another agent's model saw -----------------------------------------------------------------------------------

    def compaction(
        self, pieces: Sequence[Run | Derived], *, at: float, tokens_before: int = 0, tokens_after: int = 0
    ) -> Compaction:
        """Return the view that another agent had after its compaction.

        Args:
            pieces: The other agent's view: runs of earlier puts of the dialog, and texts. Instructions, tools and model stay.
            at: When, in seconds since 1970-01-01 UTC.
            tokens_before: The size of its view before, in tokens; 0 if not recorded.
            tokens_after: The size after, in tokens; 0 if not recorded.
        """
        shown = [piece for piece in pieces if isinstance(piece, Run)]
        state = [run for run in self._state().values() if not any(_within(run, piece) for piece in shown)]
        return Compaction(
            base=self.count - 1,
            pieces=(*state, *pieces),
            omitted=tuple(self._left_out([*state, *shown])),
            policy=self._format,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            foreign=True,
            at=at,
        )

    def _left_out(self, shown: Sequence[Run]) -> Iterator[Omitted]:
        for span in self.spans():
            start = span.start
            kept = sorted((run.start, run.stop) for run in shown if run.dialog == span.dialog)
            for begin, end in [*kept, (span.stop, span.stop)]:
                if begin > start:
                    run = Run(dialog=span.dialog, start=start, stop=min(begin, span.stop))
                    yield Omitted(run=run, reason=COMPACTED, by=self._format, messages=self._said(run))
                start = max(start, end)

    def clearing(self, places: Sequence[Place], text: str, *, at: float) -> ContextEdit:
        """Return the entry that says that another agent showed these blocks as `text` from here on."""
        edits = tuple(BlockEdit(target=place, text=text, reason=CLEARED) for place in places)
        return ContextEdit(base=self.count - 1, edits=edits, policy=self._format, at=at)


@cache
def _sent() -> frozenset[str]:
    """Return the kinds of blocks that some provider's API documents, and which go back to it."""
    return frozenset(kind for api in providers.APIS.values() for kind in api.profile().api.blocks.known)


def _unknown_kinds(message: Message) -> set[str]:
    """Return the types of the blocks that no provider is sent, those inside results included."""
    inside = (
        part for result in message.tool_results() if not isinstance(result.content, str) for part in result.content
    )
    unknown = {part.type for part in (*message.contents, *inside) if isinstance(part, UnknownContent)}
    return unknown - _sent() if unknown else unknown


def _within(run: Run, other: Run) -> bool:
    return run.dialog == other.dialog and other.start <= run.start and run.stop <= other.stop


# --- reports --------------------------------------------------------------------------------------------------------------


def no_instructions(place: str) -> Loss:
    """Report that a recording lacks the system instructions. None are invented: a request is valid without them."""
    reason = "The recording lacks the system instructions; the session has none."
    return Loss(place=place, reason=reason, code="no_instructions", severity="note")


def bad_record(place: str, why: str) -> Loss:
    """Report a record that could not be read."""
    return Loss(place=place, reason=f"The record cannot be read: {why[:200]}.", code="bad_record", severity="loss")


def guarded(place: str, events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of one record. If it cannot be read, report that and continue."""
    try:
        yield from events
    except (PalaverError, ValueError, TypeError, RecursionError) as error:  # errors that a malformed record can cause
        yield bad_record(place, str(error).rstrip("."))
