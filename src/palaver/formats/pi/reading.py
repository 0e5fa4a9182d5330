"""The second pass over a pi session: turn records into entries, in the order of the file."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, Origin, guarded
from palaver.formats.events import Event, Loss
from palaver.formats.lists import declare
from palaver.formats.pi import messages
from palaver.formats.pi.messages import NAME, PiPrompt
from palaver.formats.pi.survey import NONE, TYPES, PiSurvey
from palaver.formats.records import Record
from palaver.formats.unread import Unread
from palaver.log import BranchSummary, Custom, Derived, Label, Place, Run

KEYS = {
    "": "branchedFrom content customType cwd data details display firstKeptEntryId firstKeptEntryIndex fromHook fromId id label message modelId name "
    "parentId parentSession provider summary systemMessage targetId thinkingLevel timestamp tokensBefore type version",
    "message": "api cancelled command content customType details display errorMessage excludeFromContext exitCode fromId fullOutputPath isError model "
    "output provider rawStopReason responseId role sections stopReason summary thinkingLevel timestamp tokensBefore toolCallId toolName toolsAdded toolsRemoved truncated usage",
}
"""The keys of the records of known types. `rawStopReason` and `thinkingLevel` say again what `stopReason` and another record say. `details` is what pi's screen shows, besides the name and the input of an extension."""


class PiReader:
    """Turns records into entries, in a second pass over the file.

    Attributes:
        unread: What is not read.
    """

    def __init__(self, survey: PiSurvey, name: str = NAME) -> None:
        self._name = name
        self.unread = Unread(KEYS)
        self._survey = survey
        self._writers = {0: DialogWriter("main", name)}
        self._first_put = array("q")  # a record can become a change of the model and its content
        self._last_put = array("q")
        self._marks: dict[int, Mark] = {branching.leaves: self._writers[0].mark() for branching in survey.dialogs}
        self._prompts = {0: PiPrompt()}
        self._prompted: dict[int, PiPrompt] = {branching.leaves: PiPrompt() for branching in survey.dialogs}
        self._headed = False

    def opening(self) -> Iterator[Event]:
        """Begin the conversation's first dialog."""
        yield self._writers[0].branch(self._name)

    def read(self, record: Record) -> Iterator[Event]:
        """Read a record; report one that cannot be read."""
        value = record.value
        origin = Origin(fields.text(value, "id") or str(record.ordinal), record.ordinal, record.digest, record.place)
        at = fields.moment(value.get("timestamp")) or self._survey.started_at
        if fields.text(value, "type") in TYPES:
            self.unread.see(value, record.place)
        if value.get("type") == "session":
            yield from guarded(record.place, self._header(value, origin, at))
            return
        entry = len(self._first_put)
        dialog = self._survey.of_entry[entry]
        if dialog not in self._writers:
            branching = self._survey.dialogs[dialog]
            mark = self._marks[branching.leaves]
            self._writers[dialog] = self._writers[branching.parent].fork(branching.key, mark)
            self._prompts[dialog] = self._prompted[branching.leaves]
            yield self._writers[dialog].branch(self._name)
        writer = self._writers[dialog]
        self._first_put.append(writer.count)
        yield from guarded(record.place, self._entry(value, origin, at, dialog))
        self._last_put.append(max(writer.count - 1, self._first_put[entry]))
        if entry in self._marks:
            self._marks[entry], self._prompted[entry] = writer.mark(), self._prompts[dialog]

    def _header(self, value: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        """Read the header, which belongs to the beginning of every branch."""
        if self._headed or self._first_put:
            self.unread.skip("session", "further headers", origin.place)
            return
        self._headed = True
        writer = self._writers[0]
        yield from writer.use_model(fields.text(value, "modelId"), fields.text(value, "provider"), at, origin)
        yield from writer.use_mode("thinking", fields.text(value, "thinkingLevel"), at, origin)
        self._marks[NONE] = writer.mark()

    def _entry(  # noqa: C901 - one case per type
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int
    ) -> Iterator[Event]:
        writer = self._writers[dialog]
        match fields.text(value, "type"):
            case "message":
                yield from self._message(fields.mapping(value, "message"), origin, at, dialog)
            case "custom_message":
                yield from writer.say(messages.read({**value, "role": "custom"}, origin.record, at), origin)
            case "model_change":
                yield from writer.use_model(fields.text(value, "modelId"), fields.text(value, "provider"), at, origin)
            case "thinking_level_change":
                yield from writer.use_mode("thinking", fields.text(value, "thinkingLevel"), at, origin)
            case "branch_summary":
                left = self._named(value, "fromId")
                yield writer.put(BranchSummary(summary=fields.text(value, "summary"), left=left, at=at), origin)
            case "compaction":
                yield from self._compaction(value, origin, at, dialog)
            case "label":
                yield from self._label(value, origin, at, writer)
            case "session_info":
                self.unread.skip("session_info", "names; the newest one is the session's", origin.place)
            case "custom":
                kind = fields.text(value, "customType") or "custom"
                yield writer.put(Custom(custom_type=kind, data=value.get("data"), at=at), origin)
            case kind:
                yield writer.put(Custom(custom_type=f"{NAME}/{kind}", data=value, at=at), origin)

    def _message(self, said: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        if said.get("role") == "system":
            yield from self._instruct(said, origin, at, dialog)
        else:
            yield from self._writers[dialog].say(messages.read(said, origin.record, at), origin, counted=1)

    def _instruct(
        self, said: Mapping[str, object], origin: Origin, at: float, dialog: int, *, anew: bool = False
    ) -> Iterator[Event]:
        """Put the instructions and tools of a system message; with `anew`, they replace everything before it."""
        before, writer = self._prompts[dialog], self._writers[dialog]
        prompt = self._prompts[dialog] = (PiPrompt() if anew else before).after(said)
        yield writer.put(prompt.instructions(at), origin, counted=0 if anew else 1)
        if prompt.tools != before.tools:
            yield from declare(writer, list(prompt.tools.values()), at, origin)

    def _compaction(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        """Put a compaction: the model then saw the summary and everything from the first kept entry on."""
        writer = self._writers[dialog]
        place = self._place(self._first_kept(value), self._first_put)
        gone, kept = (writer.spans(), []) if place is None else writer.parted(place)
        if not kept:
            reason = "The first entry that the compaction kept is not in its branch; the view begins with the summary."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        summary = Derived(text=fields.text(value, "summary"), label="summary", sources=tuple(gone))
        pieces: list[Run | Derived] = [summary, *kept]
        yield writer.put(writer.compaction(pieces, tokens_before=fields.number(value, "tokensBefore"), at=at), origin)
        if said := fields.mapping(value, "systemMessage"):
            yield from self._instruct(said, origin, at, dialog, anew=True)

    def _first_kept(self, value: Mapping[str, object]) -> int:
        if "firstKeptEntryId" in value:
            return self._survey.index.get(fields.text(value, "firstKeptEntryId"), NONE)
        position = value.get("firstKeptEntryIndex")
        if isinstance(position, int) and 0 <= position < len(self._survey.positions):
            return self._survey.positions[position]
        return NONE

    def _named(self, value: Mapping[str, object], field: str) -> Place | None:
        """Return the place of the entry that a field names; None if it does not come before."""
        return self._place(self._survey.index.get(fields.text(value, field), NONE), self._last_put)

    def _place(self, entry: int, puts: array[int]) -> Place | None:
        if not 0 <= entry < len(puts):
            return None
        return self._writers[self._survey.of_entry[entry]].place(puts[entry])

    def _label(self, value: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        target = self._named(value, "targetId")
        if target is None:
            reason = "It labels an entry that is not before it in the file."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
            return
        yield writer.put(Label(target=target, label=fields.text(value, "label") or None, at=at), origin)
