"""Writing a dialog, event by event: the count of its puts, what is in force in it, and the places later entries refer to."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from palaver.formats.events import Loss, Put
from palaver.formats.stubs import Stubs
from palaver.ids import DialogId
from palaver.log import (
    BlockEdit,
    Compaction,
    ContextEdit,
    Derived,
    Entry,
    MessageEntry,
    Omitted,
    Place,
    Run,
    Source,
    Toolset,
    rule,
)
from palaver.messages import Message, ToolResultContent

COMPACTED, CLEARED = "compacted", "offloaded"
"""The reasons (`palaver.view.reasons`) for what another agent's compaction left out, and for results it cleared away."""


class Origin(NamedTuple):
    """The record that entries are made of.

    Attributes:
        record: Its identity: the format's own id, or its number in the file as text.
        ordinal: Its number in the file.
        digest: The first 16 bytes of the SHA-256 of its bytes.
        place: Where it stands, for a report.
    """

    record: str
    ordinal: int
    digest: bytes
    place: str


class DialogWriter:
    """Counts what a reader puts into one dialog, so that later entries can name earlier ones.

    Attributes:
        key: The reader's key of the dialog.
        count: How many entries were put into it.
    """

    def __init__(self, key: str, format_name: str, *, parent: DialogWriter | None = None, at: int = 0) -> None:
        """Begin a dialog that shares the first `at` own puts of `parent`, and all that the parent inherited, or nothing."""
        self.key = key
        self.count = 0
        self._format = format_name
        self._parent = parent
        self._at = at
        self._said = array("q", [0])
        self._response = ""
        self._results: dict[str, tuple[int, int]] = {}  # not places, which are many times as large
        self._in_force: dict[str, list[int]] = {}

    def run(self, start: int, stop: int) -> Run:
        """Give a run of own puts, from `start` (inclusive) to `stop` (exclusive)."""
        return Run(dialog=DialogId(self.key), start=start, stop=stop)

    def spans(self, upto: int | None = None) -> list[Run]:
        """Give the runs that the dialog holds, oldest first, with its own puts before `upto` (None: all)."""
        inherited = [] if self._parent is None else self._parent.spans(self._at)
        own = self.run(0, self.count if upto is None else upto)
        return [*inherited, own] if own.stop else inherited

    def parted(self, place: Place) -> tuple[list[Run], list[Run]]:
        """Give the runs that the dialog holds before a place, and those from it on; all of them before, if it does not hold the place."""
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
        """Name an own put."""
        return Place(dialog=DialogId(self.key), seq=seq)

    def in_force(self, upto: int | None = None) -> dict[str, Run]:
        """Give the newest instructions, tools and model among what the dialog holds, with its own puts before `upto`."""
        found = {} if self._parent is None else self._parent.in_force(self._at)
        for kind, seqs in self._in_force.items():
            newest = max((seq for seq in seqs if upto is None or seq < upto), default=-1)
            if newest >= 0:
                found[kind] = self.run(newest, newest + 1)
        return found

    def messages(self, run: Run) -> int:
        """Tell how many messages a run of this dialog's, or of an ancestor's, puts holds; fragments of a response are one."""
        if run.dialog == self.key:
            return self._said[run.stop] - self._said[run.start]
        return 0 if self._parent is None else self._parent.messages(run)

    def result(self, call_id: str, upto: int | None = None) -> Place | None:
        """Give the place of a call's result among what the dialog holds, with its own puts before `upto`; the first one counts."""
        found = self._results.get(call_id)
        if found is not None and (upto is None or found[0] < upto):
            return Place(dialog=DialogId(self.key), seq=found[0], block=found[1])
        return None if self._parent is None else self._parent.result(call_id, self._at)

    def put(self, entry: Entry, origin: Origin, *, counted: int = 0, derived: bool = False) -> Put:
        """Put the next entry."""
        begun = 0
        if isinstance(entry, MessageEntry):
            begun = self._note(entry.message)
        elif rule(entry.kind).holds == "newest":
            self._in_force.setdefault(entry.kind, []).append(self.count)
        self._said.append(self._said[-1] + begun)
        self.count += 1
        if derived:
            return Put(dialog=self.key, entry=entry, record=origin.record, digest=b"", derived=True)
        if entry.source is None:
            entry = entry.model_copy(update={"source": self._source(origin)})
        return Put(dialog=self.key, entry=entry, record=origin.record, digest=origin.digest, counted=counted)

    def _source(self, origin: Origin) -> Source:
        return Source(format=self._format, record=origin.record, ordinal=origin.ordinal)

    def _note(self, message: Message) -> int:
        """Remember a message's results, and tell whether it begins a message: a further fragment of a response does not."""
        for index, block in enumerate(message.contents):
            if isinstance(block, ToolResultContent):
                self._results.setdefault(block.id, (self.count, index))
        response = message.response_id
        if response and response == self._response:
            return 0
        self._response = response or self._response
        return 1

    def say(self, message: Message, origin: Origin, *, counted: int = 0) -> Iterator[Put | Loss]:
        """Put a message, and report what its edge changed."""
        for change in message.normalized:
            reason = f"{change.place}: what UTF-8 or JSON cannot hold was replaced ({change.kind})."
            yield Loss(place=origin.place, reason=reason, code=change.kind)
        entry = MessageEntry(message=message, at=message.timestamp, source=self._source(origin))
        yield self.put(entry, origin, counted=counted)

    def declare(self, stubs: Stubs | None, at: float) -> Put:
        """Put what declares the tools that are called in a dialog of which the recording declares none.

        It is put where nothing was called, too: a file that grows its first call must not move what stands behind it.

        Args:
            stubs: What the calls tell of the tools; None where there were none.
            at: When, in seconds since 1970-01-01 UTC.
        """
        tools = None if stubs is None else stubs.toolset(at)
        return self.put(tools or Toolset(at=at), Origin("stub:tools", 0, b"", "tools"), derived=True)

    def compaction(
        self, pieces: Sequence[Run | Derived], *, policy: str, at: float, tokens_before: int = 0, tokens_after: int = 0
    ) -> Compaction:
        """Write down the view that another agent had after its compaction.

        Args:
            pieces: What that agent saw: runs of earlier puts that the dialog holds, and texts. Instructions, tools and model stay in force.
            policy: The name of the agent's policy.
            at: When, in seconds since 1970-01-01 UTC.
            tokens_before: The size of its view before, in tokens; 0 where it is not recorded.
            tokens_after: The size after, in tokens; 0 where it is not recorded.
        """
        shown = [piece for piece in pieces if isinstance(piece, Run)]
        state = [run for run in self.in_force().values() if not any(_within(run, piece) for piece in shown)]
        return Compaction(
            base=self.count - 1,
            pieces=(*state, *pieces),
            omitted=tuple(self._left_out([*state, *shown], policy)),
            policy=policy,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            foreign=True,
            at=at,
        )

    def _left_out(self, shown: Sequence[Run], policy: str) -> Iterator[Omitted]:
        for span in self.spans():
            start = span.start
            for begin, end in sorted((run.start, run.stop) for run in shown if run.dialog == span.dialog):
                yield from self._gone(span, start, begin, policy)
                start = max(start, end)
            yield from self._gone(span, start, span.stop, policy)

    def _gone(self, span: Run, start: int, stop: int, policy: str) -> Iterator[Omitted]:
        if stop > start:
            run = Run(dialog=span.dialog, start=start, stop=stop)
            yield Omitted(run=run, reason=COMPACTED, by=policy, messages=self.messages(run))

    def clearing(self, places: Sequence[Place], text: str, *, policy: str, at: float) -> ContextEdit:
        """Write down that another agent showed these blocks as `text` from here on."""
        edits = tuple(BlockEdit(target=place, text=text, reason=CLEARED) for place in places)
        return ContextEdit(base=self.count - 1, edits=edits, policy=policy, at=at)


class Calls:
    """The tool calls seen in a file, so that a result without one is noticed."""

    def __init__(self) -> None:
        self._made: set[str] = set()

    def made(self, message: Message) -> None:
        """Take notice of a message's calls."""
        self._made.update(call.id for call in message.tool_calls())

    def unexpected(self, message: Message, writer: DialogWriter, place: str) -> Iterator[Loss]:
        """Report results that answer no call of the file, or one that has a result already; they are put all the same."""
        for result in message.tool_results():
            if result.id not in self._made:
                reason = f"It answers the call {result.id[:60]}, which is not in the file."
                yield Loss(place=place, reason=reason, code="orphan_result")
            elif writer.result(result.id) is not None:
                reason = f"It answers the call {result.id[:60]} a second time; the first result counts."
                yield Loss(place=place, reason=reason, code="duplicate_result")


def _within(run: Run, other: Run) -> bool:
    return run.dialog == other.dialog and other.start <= run.start and run.stop <= other.stop
