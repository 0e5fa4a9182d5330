"""The second reading of a Claude Code session: records become entries, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    Survey,
    agent_lane,
    agent_message,
    plain,
    record_id,
)
from palaver.formats.claude_code.tree import Tree
from palaver.formats.claude_code.writing import Writing
from palaver.formats.dialogs import Calls, Origin
from palaver.formats.events import Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.records import Record
from palaver.log import Custom, Derived, ErrorEntry, ModeChange, ModelChange


class Reading:
    """The second reading.

    Attributes:
        leftovers: What stays in the source only.
    """

    def __init__(self, survey: Survey, tree: Tree) -> None:
        self.leftovers = Leftovers()
        self._survey = survey
        self._tree = tree
        self._into = Writing(survey, tree)
        self._calls = Calls()
        self._bounds: dict[int, Mapping[str, object]] = {}
        self._doubled: dict[str, object] = {}
        self._newest = tree.root

    def opening(self) -> Iterator[Event]:
        """Open the conversation's first dialog."""
        yield from self._into.open(self._tree.root)

    def take(self, record: Record) -> Iterator[Event]:
        """Read a record; one that cannot be read is reported, and the next one is read."""
        try:
            yield from self._take(record)
        except (PalaverError, ValueError, RecursionError) as error:  # what the odd shape of a record can cause
            reason = f"The record cannot be read: {str(error)[:200]}"
            yield Loss(place=record.place, reason=reason, code="bad_record", severity="loss")

    def closing(self, place: str) -> Iterator[Loss]:
        """Report what the end of the file leaves open, and what stays in it."""
        for dialog in self._bounds:
            key = self._tree.dialogs[dialog].key
            reason = f"The session was compacted, and the summary does not follow (dialog {key})."
            yield Loss(place=place, reason=reason, code="missing_summary")
        yield from self.leftovers.losses(place)

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
            self._into.passed(node, dialog)

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
            yield from self._into.put(dialog, kept, origin)
        else:
            yield from self._progress(value, origin)

    def _message(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        said = messages.said(value)
        self.leftovers.fields(f"message.{name}" for name in said.keys() - SAID if said[name] is not None)
        if value.get("isApiErrorMessage"):
            failed = ErrorEntry(error=plain(said.get("content")) or "API error", data=value.get("error"), at=at)
            yield from self._into.put(dialog, failed, origin, counted=1)
        elif value.get("type") == "assistant":
            yield from self._assistant(value, origin, at, dialog, counted=1)
        elif value.get("isCompactSummary"):
            yield from self._compaction(value, origin, at, dialog)
        else:
            mode = fields.text(value, "permissionMode")
            yield from self._into.open(dialog)
            if mode and mode != self._into.standing(dialog).mode:
                yield from self._into.put(dialog, ModeChange(mode="permission", value=mode, at=at), origin)
                self._into.stands(dialog, mode=mode)
            yield from self._user(value, origin, at, dialog, counted=1)

    def _assistant(
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int, *, counted: int
    ) -> Iterator[Event]:
        last = self._survey.last_fragment.get(fields.text(messages.said(value), "id"), origin.ordinal)
        message = messages.assistant(value, origin.record, at, last=last == origin.ordinal)
        self._calls.made(message)
        yield from self._into.open(dialog)
        if message.model and message.model != self._into.standing(dialog).model:
            yield from self._into.put(
                dialog, ModelChange(model=message.model, provider=messages.provider(message.model), at=at), origin
            )
            self._into.stands(dialog, model=message.model)
        yield from self._into.say(dialog, message, origin, counted=counted)

    def _user(
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int, *, counted: int
    ) -> Iterator[Event]:
        yield from self._into.open(dialog)
        for message in messages.user(value, origin.record, at):
            yield from self._calls.unexpected(message, self._into.writer(dialog), origin.place)
            yield from self._into.say(dialog, message, origin, counted=counted)
            counted = 0

    def _compaction(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._into.open(dialog)
        writer = self._into.writer(dialog)
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
        yield from self._into.put(dialog, entry, origin, counted=1)

    def _system(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        subtype = fields.text(value, "subtype")
        if subtype == "compact_boundary":
            self._bounds[dialog] = fields.mapping(value, "compactMetadata")
        elif subtype == "microcompact_boundary":
            yield from self._clearing(fields.mapping(value, "microcompactMetadata"), origin, at, dialog)
        elif subtype == "api_error":
            yield from self._into.put(
                dialog, ErrorEntry(error=messages.error_text(value), data=value.get("error"), at=at), origin
            )
        elif fields.text(value, "content"):
            yield from self._into.put(
                dialog, Custom(custom_type=f"{NAME}/{subtype}", data=value.get("content"), at=at), origin
            )
        else:
            self.leftovers.record(f"system/{subtype}", "measurements of the harness; no one said them")

    def _clearing(self, about: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._into.open(dialog)
        writer = self._into.writer(dialog)
        calls = [call for call in fields.items(about, "compactedToolIds") if isinstance(call, str)]
        places = [place for call in calls if (place := writer.result(call)) is not None]
        if len(places) < len(calls):
            reason = (
                f"{len(calls) - len(places)} of {len(calls)} results that the harness cleared away are not in the file."
            )
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        if places:
            yield from self._into.put(dialog, writer.clearing(places, CLEARED, policy=NAME, at=at), origin)

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
            yield from self._into.put(self._newest, Custom(custom_type=f"{NAME}/{kind}", data=value, at=at), origin)

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
