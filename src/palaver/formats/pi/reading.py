"""The second reading of a pi session: entries in the order of the file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.dialogs import Calls, DialogWriter, Origin
from palaver.formats.events import Branch, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.pi import messages
from palaver.formats.pi.names import CARRIED, NAME, OURS
from palaver.formats.pi.survey import NONE, Survey
from palaver.formats.records import Record
from palaver.log import (
    BranchSummary,
    Compaction,
    Custom,
    Derived,
    Entry,
    Instructions,
    Label,
    ModeChange,
    ModelChange,
    Place,
    Run,
    Toolset,
)
from palaver.messages import Message


class Reading:
    """The second reading.

    Attributes:
        leftovers: What stays in the source only.
    """

    def __init__(self, survey: Survey) -> None:
        self.leftovers = Leftovers()
        self._survey = survey
        self._writers = {0: DialogWriter("main", NAME)}
        self._first_put = array("q")
        self._left = {branching.leaves: 0 for branching in survey.dialogs}
        self._calls = Calls()
        self._headed = False

    def opening(self) -> Iterator[Event]:
        """Open the conversation's first dialog."""
        yield Branch(dialog="main", owner=NAME)
        yield self._writers[0].declare(self._survey.stubs, self._survey.started_at)
        self._left[NONE] = self._writers[0].count

    def take(self, record: Record) -> Iterator[Event]:
        """Read an entry; one that cannot be read is reported, and the next one is read."""
        value = record.value
        key = fields.text(value, "id")
        origin = Origin(key or str(record.ordinal), record.ordinal, record.digest, record.place)
        at = fields.moment(value.get("timestamp")) or self._survey.started_at
        header = value.get("type") == "session"
        entry = NONE if header else len(self._first_put)
        try:
            if header:
                yield from self._header(value, origin, at)
            else:
                yield from self._entry(value, origin, at, entry)
        except (PalaverError, ValueError, RecursionError) as error:  # what the odd shape of an entry can cause
            reason = f"The entry cannot be read: {str(error)[:200]}"
            yield Loss(place=record.place, reason=reason, code="bad_record", severity="loss")
        if entry in self._left and not header:
            self._left[entry] = self._writers[self._survey.of_entry[entry]].count

    def _header(self, value: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        """Take the header; it belongs to the beginning of every branch."""
        if self._headed or self._first_put:
            self.leftovers.record("session", "further headers")
            return
        self._headed = True
        writer = self._writers[0]
        if model := fields.text(value, "modelId"):
            yield writer.put(ModelChange(model=model, provider=fields.text(value, "provider"), at=at), origin)
        if level := fields.text(value, "thinkingLevel"):
            yield writer.put(ModeChange(mode="thinking", value=level, at=at), origin)
        self._left[NONE] = writer.count

    def _entry(self, value: Mapping[str, object], origin: Origin, at: float, entry: int) -> Iterator[Event]:
        dialog = self._survey.of_entry[entry]
        if dialog not in self._writers:
            yield self._fork(dialog)
        writer = self._writers[dialog]
        self._first_put.append(writer.count)
        yield from self._written(value, origin, at, writer)

    def _fork(self, dialog: int) -> Branch:
        branching = self._survey.dialogs[dialog]
        parent, at = self._writers[branching.parent], self._left[branching.leaves]
        self._writers[dialog] = DialogWriter(branching.key, NAME, parent=parent, at=at)
        return Branch(dialog=branching.key, parent=parent.key, at=at, owner=NAME, relation="fork")

    def _written(self, value: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        kind = value.get("type")
        if kind == "message":
            yield from self._message(fields.mapping(value, "message"), origin, at, writer)
        elif kind == "custom" and value.get("customType") == f"{OURS}.message":
            yield from writer.say(Message.from_dict(fields.mapping(value, "data")), origin, counted=1)
        elif kind == "branch_summary":
            left = self._place(self._survey.index.get(fields.text(value, "fromId"), NONE))
            yield writer.put(BranchSummary(summary=fields.text(value, "summary"), left=left, at=at), origin)
        elif kind == "custom_message":
            message = messages.read({**value, "role": "custom"}, origin.record, at)
            yield from writer.say(message, origin)
        elif kind == "compaction":
            yield from self._compaction(value, origin, at, writer)
        elif kind == "label":
            yield from self._label(value, origin, at, writer)
        elif kind == "session_info":
            self.leftovers.record("session_info", "names; the newest one is the session's")
        else:
            yield writer.put(_plain(value, at), origin)

    def _message(self, said: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        self.leftovers.fields(said.keys() - CARRIED)
        message = messages.read(said, origin.record, at)
        self._calls.made(message)
        yield from self._calls.unexpected(message, writer, origin.place)
        yield from writer.say(message, origin, counted=1)

    def _compaction(
        self, value: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter
    ) -> Iterator[Event]:
        """Take a compaction: the model then saw the summary, and everything from the first kept entry on."""
        place = self._place(self._first_kept(value))
        gone, kept = (writer.spans(), []) if place is None else writer.parted(place)
        if not kept:
            reason = "The first entry that the compaction kept is not in its branch; the view begins with the summary."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        pieces: list[Run | Derived] = [
            Derived(text=fields.text(value, "summary"), label="summary", sources=tuple(gone)),
            *kept,
        ]
        before = fields.number(value, "tokensBefore")
        made = writer.compaction(pieces, policy=NAME, tokens_before=before, at=at)
        if "details" in value:
            made = Compaction.model_validate({**dict(made), "details": value["details"]})
        yield writer.put(made, origin)

    def _first_kept(self, value: Mapping[str, object]) -> int:
        if "firstKeptEntryId" in value:
            return self._survey.index.get(fields.text(value, "firstKeptEntryId"), NONE)
        position = value.get("firstKeptEntryIndex")
        if isinstance(position, int) and 0 <= position < len(self._survey.positions):
            return self._survey.positions[position]
        return NONE

    def _place(self, entry: int) -> Place | None:
        """Give the place of an entry's first put; None when it does not come before."""
        if not 0 <= entry < len(self._first_put):
            return None
        return self._writers[self._survey.of_entry[entry]].place(self._first_put[entry])

    def _label(self, value: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        target = self._place(self._survey.index.get(fields.text(value, "targetId"), NONE))
        if target is None:
            reason = "It labels an entry that does not stand before it."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
            return
        yield writer.put(Label(target=target, label=fields.text(value, "label") or None, at=at), origin)


_DECLARED: Mapping[str, type[Entry]] = {f"{OURS}.toolset": Toolset, f"{OURS}.instructions": Instructions}
"""Records that palaver wrote and that pi has no type for."""


def _plain(value: Mapping[str, object], at: float) -> Entry:
    """Read an entry that stands for itself; one of an unknown type is kept whole."""
    kind = fields.text(value, "type")
    if kind == "model_change":
        return ModelChange(model=fields.text(value, "modelId"), provider=fields.text(value, "provider"), at=at)
    if kind == "thinking_level_change":
        return ModeChange(mode="thinking", value=fields.text(value, "thinkingLevel"), at=at)
    if kind == "custom":
        declared = _DECLARED.get(fields.text(value, "customType"))
        if declared is not None:
            return declared.model_validate({**fields.mapping(value, "data"), "at": at})
        return Custom(custom_type=fields.text(value, "customType") or "custom", data=value.get("data"), at=at)
    return Custom(custom_type=f"{NAME}/{kind}", data=value, at=at)
