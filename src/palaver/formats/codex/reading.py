"""The second reading of a Codex rollout: response items become messages, replaced histories become compactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.errors import PalaverError
from palaver.formats import fields
from palaver.formats.codex import messages
from palaver.formats.codex.names import CARRIED, ENCRYPTED, FAILURES, NAME
from palaver.formats.codex.survey import Responses, Survey, digest, envelope, said_by_harness
from palaver.formats.dialogs import Calls, DialogWriter, Origin
from palaver.formats.events import Branch, Event, Loss
from palaver.formats.leftovers import Leftovers
from palaver.formats.records import Record
from palaver.formats.stubs import no_instructions
from palaver.log import (
    Custom,
    Derived,
    Entry,
    ErrorEntry,
    Instructions,
    ModeChange,
    ModelChange,
    Run,
    Section,
)
from palaver.messages import Message, Speaker, TextContent, Usage
from palaver.messages.parts import blocks_of
from palaver.plurals import counted

_MODES = {"approval": "approval_policy", "effort": "effort"}


class Reading:
    """The second reading.

    Attributes:
        leftovers: What stays in the source only.
    """

    def __init__(self, survey: Survey) -> None:
        self.leftovers = Leftovers()
        self._survey = survey
        self._responses = Responses()
        self._writer = DialogWriter("main", NAME)
        self._turns: list[tuple[DialogWriter, int]] = []
        self._calls = Calls()
        self._model = ""
        self._modes: dict[str, str] = {}
        self._told = ""
        self._where: dict[bytes, list[Run]] = {}
        self._unsealed = 0

    def opening(self) -> Iterator[Event]:
        """Open the conversation's dialog."""
        yield Branch(dialog="main", owner=NAME)
        yield self._writer.declare(self._survey.stubs, self._survey.started_at)

    def take(self, record: Record) -> Iterator[Event]:
        """Read a record; one that cannot be read is reported, and the next one is read."""
        origin = Origin(str(record.ordinal), record.ordinal, record.digest, record.place)
        kind, payload = envelope(record.value)
        at = fields.moment(record.value.get("timestamp")) or self._survey.started_at
        try:
            if self._responses.take(kind, payload, record.ordinal):
                yield from self._spoken(payload, origin, at)
            else:
                yield from self._record(kind, payload, origin, at)
        except (PalaverError, ValueError, RecursionError) as error:  # what the odd shape of a record can cause
            reason = f"The record cannot be read: {str(error)[:200]}"
            yield Loss(place=record.place, reason=reason, code="bad_record", severity="loss")

    def closing(self, place: str) -> Iterator[Loss]:
        """Report what could not be said of a single record."""
        if not self._told:
            yield no_instructions(place)
        if self._unsealed:
            reason = f"{counted(self._unsealed, 'item of reasoning holds', 'items of reasoning hold')} no encrypted content that could be sent back."
            yield Loss(place=place, reason=reason, code="reasoning", severity="note")
        if self._survey.unused:
            self.leftovers.record("token_count", "usage of calls whose answer is not recorded")
        yield from self.leftovers.losses(place)

    def _record(self, kind: str, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        if kind == "response_item":
            yield from self._item(payload, origin, at)
        elif kind == "event_msg":
            yield from self._event(payload, origin, at)
        elif kind == "turn_context":
            yield from self._context(payload, origin, at)
        elif kind == "compacted":
            yield self._put(self._compaction(payload, at), origin)
        elif kind == "session_meta":
            yield from self._instructions(payload, origin, at)
        else:
            yield self._put(Custom(custom_type=f"{NAME}/record", data=payload, at=at), origin)

    def _put(self, entry: Entry, origin: Origin, counted: int = 0) -> Event:
        return self._writer.put(entry, origin, counted=counted)

    # --- items --------------------------------------------------------------------------------------------------------

    def _spoken(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        session = fields.text(self._survey.session, "id") or NAME
        message = messages.spoken(
            payload,
            f"{session}:{origin.ordinal}",
            at,
            response=f"{session}:{self._responses.first}",
            model=self._model,
            usage=Usage(self._survey.usage.get(origin.ordinal) or {}),
        )
        self._calls.made(message)
        self._unsealed += payload.get("type") == "reasoning" and not messages.sealed(payload)
        yield from self._say(message, payload, origin)

    def _item(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        key = f"{fields.text(self._survey.session, 'id') or NAME}:{origin.ordinal}"
        if messages.is_output(payload):
            message = messages.output(payload, key, at)
            yield from self._calls.unexpected(message, self._writer, origin.place)
        elif payload.get("type") == "message":
            message = messages.told(payload, key, at)
            if message.speaker is Speaker.HUMAN:
                self._turns.append((self._writer, self._writer.count))
        else:
            kept = Custom(custom_type=f"{NAME}/{fields.text(payload, 'type') or 'item'}", data=payload, at=at)
            yield self._put(kept, origin, 1)
            return
        yield from self._say(message, payload, origin)

    def _say(self, message: Message, payload: Mapping[str, object], origin: Origin) -> Iterator[Event]:
        self.leftovers.fields(payload.keys() - CARRIED)
        if self._survey.wanted and (key := digest(payload)) in self._survey.wanted:
            self._where.setdefault(key, []).append(self._writer.run(self._writer.count, self._writer.count + 1))
        yield from self._writer.say(message, origin, counted=1)

    # --- what is not said -----------------------------------------------------------------------------------------------

    def _instructions(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        text = fields.text(fields.mapping(payload, "base_instructions"), "text")
        if text and text != self._told:
            self._told = text
            yield self._put(Instructions(sections=(Section(name="base", text=text),), at=at), origin)

    def _context(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        model = fields.text(payload, "model")
        if model and model != self._model:
            self._model = model
            provider = fields.text(self._survey.session, "model_provider")
            yield self._put(ModelChange(model=model, provider=provider, at=at), origin)
        for mode, name in _MODES.items():
            value = fields.text(payload, name)
            if value and self._modes.get(mode) != value:
                self._modes[mode] = value
                yield self._put(ModeChange(mode=mode, value=value, at=at), origin)

    def _event(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        kind = fields.text(payload, "type")
        if kind in FAILURES:
            yield self._put(ErrorEntry(error=fields.text(payload, "message") or kind, data=payload, at=at), origin)
        elif kind == "turn_aborted":
            yield self._put(Custom(custom_type=f"{NAME}/{kind}", data=payload, at=at), origin)
        elif kind == "thread_rolled_back":
            yield from self._rolled_back(fields.number(payload, "num_turns"), origin)
        elif kind == "token_count":
            self.leftovers.record(f"event_msg/{kind}", "usage, kept with the last item of the response it counts")
        else:
            self.leftovers.record(f"event_msg/{kind}", "the screen's mirror of response items")

    def _rolled_back(self, turns: int, origin: Origin) -> Iterator[Event]:
        """The user took back turns: what follows is a fork that leaves before the first of them."""
        turns = min(max(turns, 0), len(self._turns))
        parent, at = self._turns[-turns] if turns else (self._writer, self._writer.count)
        del self._turns[len(self._turns) - turns :]
        key = f"rollback:{origin.ordinal}"
        self._writer = DialogWriter(key, NAME, parent=parent, at=at)
        yield Branch(dialog=key, parent=parent.key, at=at, owner=NAME, relation="fork")

    def _compaction(self, payload: Mapping[str, object], at: float) -> Entry:
        history = fields.objects(payload, "replacement_history")
        message = fields.text(payload, "message")
        pieces: list[Run | Derived] = []
        if history:
            seen: dict[bytes, int] = {}
            pieces = [self._piece(item, seen) for item in history]
        else:
            held = {span.dialog: span for span in self._writer.spans()}
            turns = [(writer, seq) for writer, seq in self._turns if writer.key in held]
            pieces = [writer.run(seq, seq + 1) for writer, seq in turns]
        if message:
            pieces.append(Derived(text=message, label="summary", sources=tuple(self._writer.spans())))
        return self._writer.compaction(pieces, policy=NAME, at=at)

    def _piece(self, item: Mapping[str, object], seen: dict[bytes, int]) -> Run | Derived:
        """Give the put that an item of the new history repeats, or its text."""
        key = digest(item)
        nth = seen[key] = seen.get(key, -1) + 1
        known = self._where.get(key, [])
        if nth < len(known):
            return known[nth]
        if item.get("type") != "message":
            return Derived(text=ENCRYPTED, label="summary", sources=tuple(self._writer.spans()))
        text = "\n".join(b.content for b in blocks_of(item.get("content")) if isinstance(b, TextContent))
        if fields.text(item, "role") in {"developer", "system"} or said_by_harness(item):
            return Derived(text=text, label="notice", speaker="harness", trust="harness")
        return Derived(text=text, label="summary", sources=tuple(self._writer.spans()))
