"""The second pass over a Codex rollout: turn response items into messages, and replaced histories into compactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.formats import fields
from palaver.formats.codex import messages
from palaver.formats.codex.messages import NAME, OUTPUTS, SUMMARY_PREFIX, envelope, said_by_harness
from palaver.formats.codex.survey import CodexSurvey, Responses
from palaver.formats.dialogs import DialogWriter, Mark, Origin, guarded, no_instructions
from palaver.formats.events import Event, Loss
from palaver.formats.lists import digest_of
from palaver.formats.records import Record
from palaver.formats.unread import Unread
from palaver.log import Compaction, Custom, Derived, Entry, ErrorEntry, Instructions, Run, Section, Toolset
from palaver.messages import Message, Speaker, TextContent, Usage
from palaver.messages.forms import blocks_of
from palaver.plurals import counted

_MODES = {"approval": "approval_policy", "effort": "effort"}
_FAILURES = frozenset({"error", "stream_error", "background_error"})
_ENCRYPTED = "[The summary of what came before is encrypted for the provider and cannot be read.]"


KEYS = {
    "": "metadata timestamp type payload",
    "session_meta": "base_instructions cli_version context_window cwd forked_from_id git history_mode id instructions model_provider originator "
    "runtime_workspace_roots session_id source thread_source timestamp type",
    "session_meta.base_instructions": "provenance text",
    "turn_context": "approval_policy approvals_reviewer collaboration_mode comp_hash current_date cwd effort model multi_agent_version permission_profile personality "
    "realtime_active root_turn_id sandbox_policy summary timezone truncation_policy turn_id workspace_roots",
    "message": "content end_turn id internal_chat_message_metadata_passthrough phase role status type",
    "function_call": "arguments call_id execution id internal_chat_message_metadata_passthrough name namespace status type",
    "custom_tool_call": "call_id id input internal_chat_message_metadata_passthrough name namespace status type",
    "local_shell_call": "action call_id id status type",
    "tool_search_call": "arguments call_id execution id internal_chat_message_metadata_passthrough status type",
    "output": "call_id execution id internal_chat_message_metadata_passthrough name namespace output status success tools type",
    "compacted": "message replacement_history first_window_id previous_window_id window_id window_number",
    "compacted.replacement_history": "content encrypted_content id internal_chat_message_metadata_passthrough role type",
    "compacted.replacement_history.content": "type text",
    "token_count": "info rate_limits type",
    "token_count.info": "last_token_usage model_context_window total_token_usage",
    "token_count.info.total_token_usage": "cached_input_tokens input_tokens output_tokens reasoning_output_tokens total_tokens",
    "thread_rolled_back": "num_turns type",
}
"""The keys of records, by the kind of their payload. Kinds that are not here are kept whole, or repeat what another record says.

The `metadata` of a record (since version 0.171) numbers it and says which records it stands for.
"""


def _object(kind: str, payload: Mapping[str, object]) -> str:
    """Return the name of the keys of a payload, or a name that has none."""
    inner = fields.text(payload, "type")
    if kind in {"response_item", "event_msg"}:
        return "output" if inner in OUTPUTS else inner if inner in KEYS else "kept"
    return kind or "kept"


class CodexReader:
    """Turns records into entries, in a second pass over the file."""

    def __init__(self, survey: CodexSurvey) -> None:
        self._survey = survey
        self._session = fields.text(survey.session, "id") or NAME
        self._responses = Responses()
        self._writer = DialogWriter("main", NAME)
        self._turns: list[Mark] = []
        self._instructions = ""
        self._where: dict[bytes, list[Run]] = {}
        self._unsealed = 0
        self._unread = Unread(KEYS)

    def opening(self) -> Iterator[Event]:
        """Begin the conversation's dialog."""
        yield self._writer.branch(NAME)

    def read(self, record: Record) -> Iterator[Event]:
        """Read a record; report one that cannot be read."""
        origin = Origin(str(record.ordinal), record.ordinal, record.digest, record.place)
        kind, payload = envelope(record.value)
        at = fields.moment(record.value.get("timestamp")) or self._survey.started_at
        self._unread.see(record.value, record.place, "" if "payload" in record.value else "kept")
        self._unread.see(payload, record.place, _object(kind, payload))
        if self._responses.read(kind, payload, record.ordinal):
            yield from guarded(record.place, self._spoken(payload, origin, at))
        else:
            yield from guarded(record.place, self._record(kind, payload, origin, at))

    def closing(self, place: str) -> Iterator[Loss]:
        """Report losses that concern more than one record."""
        if not self._instructions:
            yield no_instructions(place)
        if self._unsealed:
            what = counted(self._unsealed, "item of reasoning has", "items of reasoning have")
            reason = f"{what} no encrypted content that could be sent back."
            yield Loss(place=place, reason=reason, code="reasoning", severity="note")
        if self._survey.unused:
            self._unread.skip("token_count", "usage of calls whose answer is not recorded", place)
        yield from self._unread.losses()

    def _record(self, kind: str, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        if kind == "response_item":
            yield from self._item(payload, origin, at)
        elif kind == "event_msg":
            yield from self._event(payload, origin, at)
        elif kind == "turn_context":
            provider = fields.text(self._survey.session, "model_provider")
            yield from self._writer.use_model(fields.text(payload, "model"), provider, at, origin)
            for mode, name in _MODES.items():
                yield from self._writer.use_mode(mode, fields.text(payload, name), at, origin)
        elif kind == "compacted":
            yield from self._compacted(payload, origin, at)
        elif kind == "session_meta":
            yield from self._instruct(fields.text(fields.mapping(payload, "base_instructions"), "text"), origin, at)
        elif kind == "token_usage_record":
            self._unread.skip(kind, "usage, kept with the last item of its response", origin.place)
        else:
            yield self._put(Custom(custom_type=f"{NAME}/{kind or 'record'}", data=payload, at=at), origin)

    def _instruct(self, text: str, origin: Origin, at: float) -> Iterator[Event]:
        if text and text != self._instructions:
            self._instructions = text
            yield self._put(Instructions(sections=(Section(name="base", text=text),), at=at), origin)

    def _put(self, entry: Entry, origin: Origin, counted: int = 0) -> Event:
        return self._writer.put(entry, origin, counted=counted)

    # --- items --------------------------------------------------------------------------------------------------------

    def _spoken(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        message = messages.spoken(
            payload,
            f"{self._session}:{origin.ordinal}",
            at,
            response=f"{self._session}:{self._responses.first}",
            model=self._writer.model,
            usage=Usage(self._survey.usage.get(origin.ordinal) or {}),
        )
        self._unsealed += payload.get("type") == "reasoning" and not messages.is_sealed(payload)
        yield from self._say(message, payload, origin)

    def _item(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        key = f"{self._session}:{origin.ordinal}"
        kind = fields.text(payload, "type")
        if kind in OUTPUTS:
            yield from self._say(messages.output(payload, key, at), payload, origin)
        elif kind == "message":
            message = messages.prompt(payload, key, at)
            if message.speaker is Speaker.HUMAN:
                self._turns.append(self._writer.mark())
            yield from self._say(message, payload, origin)
        elif kind == "additional_tools":
            yield self._put(Toolset(tools=tuple(messages.tools(payload)), at=at), origin)
        else:
            yield self._put(Custom(custom_type=f"{NAME}/{kind or 'item'}", data=payload, at=at), origin, 1)

    def _say(self, message: Message, payload: Mapping[str, object], origin: Origin) -> Iterator[Event]:
        yield from self._said(message, payload, origin, counted=1)

    def _said(
        self, message: Message, payload: Mapping[str, object], origin: Origin, counted: int = 0
    ) -> Iterator[Event]:
        """Put a message, and note where it is if a later history repeats it."""
        yield from self._writer.say(message, origin, counted=counted)
        if self._survey.wanted and (key := digest_of(payload)) in self._survey.wanted:
            self._where.setdefault(key, []).append(self._writer.run(self._writer.count - 1, self._writer.count))

    # --- events -------------------------------------------------------------------------------------------------------

    def _event(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        kind = fields.text(payload, "type")
        if kind in _FAILURES:
            yield self._put(ErrorEntry(error=fields.text(payload, "message") or kind, data=payload, at=at), origin)
        elif kind == "turn_aborted":
            yield self._put(Custom(custom_type=f"{NAME}/{kind}", data=payload, at=at), origin)
        elif kind == "thread_rolled_back":
            yield self._rolled_back(fields.number(payload, "num_turns"), origin)
        elif kind == "token_count":
            self._unread.skip(f"event_msg/{kind}", "usage, kept with the last item of its response", origin.place)
        else:
            self._unread.skip(f"event_msg/{kind}", "the screen's mirror of response items", origin.place)

    def _rolled_back(self, turns: int, origin: Origin) -> Event:
        """Begin a fork before the first turn that the user undid."""
        turns = min(max(turns, 0), len(self._turns))
        mark = self._turns[-turns] if turns else self._writer.mark()
        del self._turns[len(self._turns) - turns :]
        self._writer = self._writer.fork(f"rollback:{origin.ordinal}", mark)
        return self._writer.branch(NAME)

    def _compacted(self, payload: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        """Put the history that replaced the one before, after the provider's compactions in it, which no other record has."""
        for item in fields.objects(payload, "replacement_history"):
            if messages.is_compaction(item) and digest_of(item) not in self._where:
                key = f"{self._session}:{origin.ordinal}"
                message = messages.spoken(item, key, at, response="", model=self._writer.model, usage=Usage({}))
                yield from self._said(message, item, origin)
        yield self._put(self._compaction(payload, at, origin.place), origin)

    def _compaction(self, payload: Mapping[str, object], at: float, place: str) -> Compaction:
        history = fields.objects(payload, "replacement_history")
        summary = fields.text(payload, "message")
        own = {span.dialog for span in self._writer.spans()}
        seen: dict[bytes, int] = {}
        pieces: list[Run | Derived] = [self._piece(item, seen, place) for item in history]
        if not history:
            pieces = [turn.writer.run(turn.puts, turn.puts + 1) for turn in self._turns if turn.writer.key in own]
            pieces += [self._summary(summary)] if summary else []
        return self._writer.compaction(pieces, at=at)

    def _piece(self, item: Mapping[str, object], seen: dict[bytes, int], place: str) -> Run | Derived:
        """Return the entry that an item of the new history repeats, or its text."""
        key = digest_of(item)
        nth = seen[key] = seen.get(key, -1) + 1
        known = self._where.get(key, [])
        if nth < len(known):
            return known[nth]
        if item.get("type") != "message":
            return self._summary(_ENCRYPTED)
        blocks = blocks_of(item.get("content"))
        text = "\n".join(block.content for block in blocks if isinstance(block, TextContent))
        for block in blocks:
            if not isinstance(block, TextContent):
                self._unread.count(f"compacted.replacement_history.content ({block.type})", place)
        if fields.text(item, "role") in {"developer", "system"} or said_by_harness(item):
            return Derived(text=text, label="notice", speaker="harness", trust="harness")
        return self._summary(text)

    def _summary(self, text: str) -> Derived:
        text = text.removeprefix(f"{SUMMARY_PREFIX}\n")
        return Derived(text=text, label="summary", sources=tuple(self._writer.spans()))
