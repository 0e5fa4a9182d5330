"""The second reading of a Claude Code session: records become entries, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.claude_code import messages
from palaver.formats.claude_code.names import (
    CARRIED,
    CHAIN,
    CLEARED,
    MESSAGES,
    NAME,
    SAID,
    TELEMETRY,
)
from palaver.formats.claude_code.survey import (
    ROOT,
    Survey,
    agent_lane,
    agent_message,
    plain,
    record_id,
)
from palaver.formats.claude_code.tree import Tree
from palaver.formats.dialogs import Calls, DialogWriter, Origin
from palaver.formats.events import Branch, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.records import Record
from palaver.log import Custom, Derived, Entry, ErrorEntry, ModeChange, ModelChange
from palaver.messages import Message


class Standing(NamedTuple):
    """How a dialog stands after a record: what a fork that leaves it there begins with."""

    puts: int = 0
    model: str = ""
    mode: str = ""


class Reading:
    """The second reading.

    Attributes:
        leftovers: What stays in the source only.
    """

    def __init__(self, survey: Survey, tree: Tree) -> None:
        self.leftovers = Leftovers()
        self._survey = survey
        self._tree = tree
        self._writers: dict[int, DialogWriter] = {}
        self._standing: dict[int, Standing] = {}
        self._branchings = {dialog.leaves: Standing() for dialog in tree.dialogs if dialog.parent >= 0}
        self._calls = Calls()
        self._bounds: dict[int, Mapping[str, object]] = {}
        self._doubled: dict[str, object] = {}
        self._newest = tree.root

    def opening(self) -> Iterator[Event]:
        """Open the conversation's first dialog."""
        yield from self._open(self._tree.root)

    def take(self, record: Record) -> Iterator[Event]:
        """Read a record; one that cannot be read is reported, and the next one is read."""
        try:
            yield from self._take(record)
        except (PalaverError, ValueError, RecursionError) as error:  # what the odd shape of a record can cause
            reason = f"The record cannot be read: {str(error)[:200]}"
            yield Loss(place=record.place, reason=reason, code="bad_record", severity="loss")

    def closing(self) -> Iterator[Loss]:
        """Report what the end of the file leaves open."""
        for dialog in self._bounds:
            key = self._tree.dialogs[dialog].key
            reason = f"The session was compacted, and the summary does not follow (dialog {key})."
            yield Loss(place="end", reason=reason, code="missing_summary")

    def _take(self, record: Record) -> Iterator[Event]:
        value = record.value
        kind = fields.text(value, "type")
        origin = Origin(record_id(record), record.ordinal, record.digest, record.place)
        at = fields.moment(value.get("timestamp"))
        if kind not in CHAIN:
            yield from self._beside(kind, value, origin, at)
            return
        node = self._survey.nodes[origin.record]
        if self._survey.ordinals[node] != record.ordinal:
            yield from self._again(value, origin, at, node)
            return
        if kind in MESSAGES and origin.record in self._survey.doubled:
            self._doubled[origin.record] = messages.said(value).get("content")
        dialog = self._tree.of_node[node]
        if self._survey.lanes[node] == self._tree.root:
            self._newest = dialog
        try:
            yield from self._in_chain(kind, value, origin, at, dialog)
        finally:
            if node in self._branchings:
                self._branchings[node] = self._standing.get(dialog, Standing())

    def _in_chain(
        self, kind: str, value: Mapping[str, object], origin: Origin, at: float, dialog: int
    ) -> Iterator[Event]:
        if kind in MESSAGES:
            self.leftovers.fields(value.keys() - CARRIED)
            yield from self._message(value, origin, at, dialog)
        elif kind == "system":
            yield from self._system(value, origin, at, dialog)
        elif kind == "attachment":
            kept = Custom(custom_type=f"{NAME}/attachment", data=value.get("attachment"), at=at)
            yield from self._put(dialog, kept, origin)
        else:
            yield from self._progress(value, origin)

    # --- dialogs --------------------------------------------------------------------------------------------------------

    def _open(self, dialog: int) -> Iterator[Event]:
        """Open a dialog, and before it the one it leaves."""
        if dialog in self._writers:
            return
        branching = self._tree.dialogs[dialog]
        if branching.parent >= 0:
            yield from self._open(branching.parent)
            left = self._branchings[branching.leaves]
            count = left.puts if branching.leaves != ROOT else self._preamble(branching.lane)
            parent = self._writers[branching.parent]
            self._writers[dialog] = DialogWriter(branching.key, NAME, parent=parent, at=count)
            self._standing[dialog] = left._replace(puts=0)
            yield Branch(
                dialog=branching.key, parent=parent.key, at=count, owner=self._owner(branching.lane), relation="fork"
            )
            return
        yield from self._open_lane(dialog)

    def _open_lane(self, lane: int) -> Iterator[Event]:
        key = self._tree.dialogs[lane].key
        writer = self._writers[lane] = DialogWriter(key, NAME)
        self._standing[lane] = Standing()
        if lane == self._tree.root:
            yield Branch(dialog=key, owner=self._owner(lane))
        else:
            yield from self._open(self._tree.root)
            call = self._survey.started_by.get(self._survey.lane_names[lane], "")
            caller = self._survey.callers.get(call, ROOT)
            parent = self._tree.dialogs[self._tree.root if caller == ROOT else self._tree.of_node[caller]].key
            about = {"call": call} if call else {}
            yield Branch(dialog=key, parent=parent, owner=self._owner(lane), relation="subagent", metadata=about)
        stubs = self._survey.stubs.get(lane)
        tools = stubs.toolset(self._survey.about.started_at) if stubs else None
        if tools is not None:
            yield writer.put(tools, Origin("stub:tools", 0, b"", "tools"), derived=True)
            self._stands(lane)

    def _preamble(self, lane: int) -> int:
        """Tell with how many entries of no record the first dialog of a lane begins: what a fork at the very beginning shares."""
        return 1 if lane in self._survey.stubs else 0

    def _owner(self, lane: int) -> str:
        name = self._survey.lane_names[lane]
        call = self._survey.started_by.get(name, "")
        return self._survey.agents.get(call, "") or (NAME if lane == self._tree.root else name)

    def _stands(self, dialog: int, **changes: str) -> None:
        puts = self._writers[dialog].count
        self._standing[dialog] = self._standing[dialog]._replace(puts=puts, **changes)

    def _put(self, dialog: int, entry: Entry, origin: Origin, *, counted: int = 0) -> Iterator[Event]:
        yield from self._open(dialog)
        yield self._writers[dialog].put(entry, origin, counted=counted)
        self._stands(dialog)

    def _say(self, dialog: int, message: Message, origin: Origin, *, counted: int = 0) -> Iterator[Event]:
        yield from self._open(dialog)
        yield from self._writers[dialog].say(message, origin, counted=counted)
        self._stands(dialog)

    # --- records --------------------------------------------------------------------------------------------------------

    def _message(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        said = messages.said(value)
        self.leftovers.fields(f"message.{name}" for name in said.keys() - SAID if said[name] is not None)
        if value.get("isApiErrorMessage"):
            failed = ErrorEntry(error=plain(said.get("content")) or "API error", data=value.get("error"), at=at)
            yield from self._put(dialog, failed, origin, counted=1)
        elif value.get("type") == "assistant":
            yield from self._assistant(value, origin, at, dialog, counted=1)
        elif value.get("isCompactSummary"):
            yield from self._compaction(value, origin, at, dialog)
        else:
            mode = fields.text(value, "permissionMode")
            yield from self._open(dialog)
            if mode and mode != self._standing[dialog].mode:
                yield from self._put(dialog, ModeChange(mode="permission", value=mode, at=at), origin)
                self._stands(dialog, mode=mode)
            yield from self._user(value, origin, at, dialog, counted=1)

    def _assistant(
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int, *, counted: int
    ) -> Iterator[Event]:
        last = self._survey.last_fragment.get(fields.text(messages.said(value), "id"), origin.ordinal)
        message = messages.assistant(value, origin.record, at, last=last == origin.ordinal)
        self._calls.made(message)
        yield from self._open(dialog)
        if message.model and message.model != self._standing[dialog].model:
            yield from self._put(
                dialog, ModelChange(model=message.model, provider=messages.provider(message.model), at=at), origin
            )
            self._stands(dialog, model=message.model)
        yield from self._say(dialog, message, origin, counted=counted)

    def _user(
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int, *, counted: int
    ) -> Iterator[Event]:
        yield from self._open(dialog)
        for message in messages.user(value, origin.record, at):
            yield from self._calls.unexpected(message, self._writers[dialog], origin.place)
            yield from self._say(dialog, message, origin, counted=counted)
            counted = 0

    def _compaction(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._open(dialog)
        writer = self._writers[dialog]
        bounds = self._bounds.pop(dialog, fields.NOTHING)
        if bounds.get("preservedSegment"):
            reason = "The compaction kept some messages beside its summary; the view begins with the summary alone."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        text = plain(messages.said(value).get("content"))
        summary = Derived(text=text, label="summary", sources=tuple(writer.spans()))
        before = fields.number(bounds, "preTokens")
        entry = writer.compaction(
            [summary], policy=NAME, at=at, tokens_before=before, tokens_after=min(len(text) // 4, max(before - 1, 0))
        )
        yield from self._put(dialog, entry, origin, counted=1)

    def _system(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        subtype = fields.text(value, "subtype")
        if subtype == "compact_boundary":
            self._bounds[dialog] = fields.mapping(value, "compactMetadata")
        elif subtype == "microcompact_boundary":
            yield from self._clearing(fields.mapping(value, "microcompactMetadata"), origin, at, dialog)
        elif subtype == "api_error":
            yield from self._put(
                dialog, ErrorEntry(error=messages.error_text(value), data=value.get("error"), at=at), origin
            )
        elif fields.text(value, "content"):
            yield from self._put(
                dialog, Custom(custom_type=f"{NAME}/{subtype}", data=value.get("content"), at=at), origin
            )
        else:
            self.leftovers.record(f"system/{subtype}", "measurements of the harness; no one said them")

    def _clearing(self, about: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._open(dialog)
        writer = self._writers[dialog]
        calls = [call for call in fields.items(about, "compactedToolIds") if isinstance(call, str)]
        places = [place for call in calls if (place := writer.result(call)) is not None]
        if len(places) < len(calls):
            reason = (
                f"{len(calls) - len(places)} of {len(calls)} results that the harness cleared away are not in the file."
            )
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        if places:
            yield from self._put(dialog, writer.clearing(places, CLEARED, policy=NAME, at=at), origin)

    def _progress(self, value: Mapping[str, object], origin: Origin) -> Iterator[Event]:
        inner = agent_message(value)
        if inner is None:
            kind = fields.text(fields.mapping(value, "data"), "type")
            self.leftovers.record(f"progress/{kind}", "shown while a tool or hook ran; the result has the outcome")
            return
        lane = self._survey.lane_numbers[agent_lane(value)]
        at = fields.moment(inner.get("timestamp")) or fields.moment(value.get("timestamp"))
        take = self._assistant if inner.get("type") == "assistant" else self._user
        yield from take(inner, origin, at, lane, counted=0)

    def _beside(self, kind: str, value: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        """Take a record that does not stand in the chain: telemetry is counted, everything else is kept as it is."""
        if kind in TELEMETRY:
            self.leftovers.record(kind, TELEMETRY[kind])
        elif kind == "queue-operation" and not value.get("content"):
            self.leftovers.record(kind, "the queue going on; queued words are kept where they were queued")
        else:
            yield from self._put(self._newest, Custom(custom_type=f"{NAME}/{kind}", data=value, at=at), origin)

    def _again(self, value: Mapping[str, object], origin: Origin, at: float, node: int) -> Iterator[Event]:
        """Take a record whose id an earlier one has: the same words are left out, others are put where the first one's were."""
        first = self._doubled.get(origin.record)
        same = fields.text(value, "type") not in MESSAGES or messages.said(value).get("content") == first
        reason = f"The id {origin.record[:40]} was used before"
        if same:
            yield Loss(
                place=origin.place, reason=f"{reason}, for the same record.", code="duplicate_id", severity="note"
            )
            return
        yield Loss(place=origin.place, reason=f"{reason}, for another record; both are kept.", code="duplicate_id")
        renamed = origin._replace(record=f"{origin.record}#{origin.ordinal}")
        yield from self._message(value, renamed, at, self._tree.of_node[node])
