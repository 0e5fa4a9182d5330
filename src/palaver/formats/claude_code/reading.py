"""The second pass over a Claude Code session: turn records into entries, in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from palaver.formats import fields
from palaver.formats.claude_code import messages
from palaver.formats.claude_code.messages import CHAIN, MESSAGES, NAME, SNAPSHOT, agent_message, plain
from palaver.formats.claude_code.survey import ROOT, ClaudeCodeSurvey, record_id
from palaver.formats.claude_code.tree import BranchTree
from palaver.formats.dialogs import CallLog, DialogWriter, Mark, Origin, bad_record, guarded
from palaver.formats.events import NOTHING, Branch, Event, Loss
from palaver.formats.lists import declare
from palaver.formats.records import Record
from palaver.formats.unread import Unread
from palaver.log import Custom, Derived, Entry, Instructions, Section
from palaver.messages import clean_text

_CLEARED = "[Old tool result content cleared]"
"""The text that Claude Code shows instead of a result that its microcompaction cleared."""

_TITLE = "titles; the newest one is the session's"
_SKIPPED = {
    "file-history-snapshot": "names of backups of files; the files are not in the session",
    "summary": _TITLE,
    "custom-title": _TITLE,
    "ai-title": _TITLE,
}
"""Types of records that are skipped, with the reason."""


KEYS = {
    "": "agentId aiTitle attachment compactMetadata content customTitle cwd data durationMs effort entrypoint error forkedFrom gitBranch hasOutput hookCount "
    "hookErrors hookInfos imagePasteIds isApiErrorMessage isCompactSummary isMeta isSidechain isSnapshotUpdate isVisibleInTranscriptOnly leafUuid "
    "level logicalParentUuid madeBy maxRetries message messageId microcompactMetadata operation parentToolUseID parentUuid permissionDecision "
    "permissionMode planContent promptCacheRequested promptSource rendered renderedRole requestRef requestedModel rowSource thinkingDisplay turnOrigin "
    "prNumber prRepository prUrl preventedContinuation promptId requestId retryAttempt retryInMs sessionId slug snapshot sourceToolAssistantUUID "
    "sourceToolUseID stopReason subtype summary thinkingMetadata timestamp todos toolUseID toolUseResult type userType uuid version",
    "message": "container content context_management id input_transformations model role stop_reason stop_sequence type usage",
    "message.usage": "cache_creation cache_creation_input_tokens cache_read_input_tokens inference_geo input_tokens iterations output_tokens "
    "server_tool_use service_tier speed",
    "message.content": "*",
    "message.content.source": "type media_type data url file_id content",
    "failure": "type text",
    "compactMetadata": "trigger preTokens preservedSegment",
    "microcompactMetadata": "trigger preTokens tokensSaved compactedToolIds clearedAttachmentUUIDs",
}
"""The keys of records. `toolUseResult` repeats a result for the screen; `todos` and `planContent` repeat calls.

Since version 2.1.332 records say how a prompt, an answer and a permission came about; `requestRef` names a record of the request, which is kept.
"""


class ClaudeCodeReader:
    """Turns records into entries, in a second pass over the file."""

    def __init__(self, survey: ClaudeCodeSurvey, tree: BranchTree, owner: str = NAME) -> None:
        """Read nothing yet.

        Args:
            survey: The first pass.
            tree: The dialogs.
            owner: The agent whose conversation it is.
        """
        self._survey = survey
        self._tree = tree
        self._unread = Unread(KEYS)
        self._calls = CallLog()
        self._writers: dict[int, DialogWriter] = {}
        self._marks: dict[int, Mark] = {}  # where forks begin, by the node before them
        self._begun: dict[int, Mark] = {}  # the beginning of each lane
        self._leaves = {dialog.leaves for dialog in tree.dialogs if dialog.parent >= 0}
        self._bounds: dict[int, Mapping[str, object]] = {}
        self._doubled: dict[str, object] = {}
        self._agents: dict[str, str] = {}  # the kind of sub-agent that a call asked for
        self._newest = tree.root
        self._owner = owner
        self._in_force: dict[tuple[int, str], object] = {}  # the newest instructions and tools of each dialog

    def opening(self) -> Iterator[Event]:
        """Begin the conversation's first dialog."""
        yield from self._open(self._tree.root)

    def read(self, record: Record) -> Iterator[Event]:
        """Read a record; report one that cannot be read."""
        value = record.value
        origin = Origin(record_id(record), record.ordinal, record.digest, record.place)
        at = fields.moment(value.get("timestamp"))
        node = self._survey.nodes.get(origin.record, ROOT)
        if fields.text(value, "type") not in CHAIN or node == ROOT:
            yield from guarded(record.place, self._unchained(value, origin, at))
        elif self._survey.ordinals[node] != record.ordinal:
            yield from guarded(record.place, self._repeated(value, origin, at, node))
        else:
            dialog = self._tree.of_node[node]
            if self._survey.lane_of[node] == self._tree.root:
                self._newest = dialog
            if origin.record in self._survey.doubled:
                self._doubled[origin.record] = fields.mapping(value, "message").get("content")
            yield from guarded(record.place, self._record(value, origin, at, dialog))
            if node in self._leaves and dialog in self._writers:
                self._marks[node] = self._writers[dialog].mark()

    def closing(self, place: str) -> Iterator[Loss]:
        """Report anything the end of the file leaves open, and the skipped records."""
        for dialog in self._bounds:
            key = self._tree.dialogs[dialog].key
            reason = f"The session was compacted, and the summary does not follow (dialog {key})."
            yield Loss(place=place, reason=reason, code="missing_summary")
        yield from self._unread.losses()

    # --- dialogs --------------------------------------------------------------------------------------------------------

    def _open(self, dialog: int, starter: int | None = None) -> Iterator[Event]:
        """Begin a dialog, after its parent if that has not begun, unless it is open.

        Args:
            dialog: The dialog.
            starter: The dialog with the call that started it, if it is a sub-agent's; None for the conversation's first one.
        """
        if dialog in self._writers:
            return
        key, lane, parent, leaves = self._tree.dialogs[dialog]
        name = self._survey.lanes[lane]
        call = self._survey.started_by.get(name, "")
        owner = self._owner if lane == self._tree.root else self._agents.get(call) or name
        if parent >= 0:
            yield from self._open(parent)
            mark = self._begun[lane] if leaves == ROOT else self._marks.get(leaves) or self._writers[parent].mark()
            writer = self._writers[dialog] = self._writers[parent].fork(key, mark)
            yield writer.branch(owner)
            return
        writer = self._writers[dialog] = DialogWriter(key, NAME, self._calls)
        self._begun[lane] = writer.mark()
        if lane == self._tree.root:
            yield writer.branch(owner)
            return
        starter = self._tree.root if starter is None else starter
        yield from self._open(starter)
        about = {"call": call} if call else NOTHING
        parent_key = self._tree.dialogs[starter].key
        yield Branch(dialog=key, parent=parent_key, owner=owner, relation="subagent", metadata=about)

    def _put(self, dialog: int, entry: Entry, origin: Origin, counted: int = 0) -> Iterator[Event]:
        yield from self._open(dialog)
        yield self._writers[dialog].put(entry, origin, counted=counted)

    # --- records --------------------------------------------------------------------------------------------------------

    def _record(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        kind = fields.text(value, "type")
        self._unread.see(value, origin.place)
        if kind in MESSAGES:
            yield from self._message(value, origin, at, dialog)
        elif kind == "system":
            yield from self._system(value, origin, at, dialog)
        elif kind == "attachment":
            shown = {name: value[name] for name in ("rendered", "renderedRole") if name in value}
            yield from self._attachment({**fields.mapping(value, "attachment"), **shown}, origin, at, dialog)
        else:
            yield from self._progress(value, origin, at, dialog)

    def _attachment(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        """Keep an attachment. Instructions and tools in it are in force from there on."""
        if value.get("type") == SNAPSHOT:
            yield from self._open(dialog)
            texts = [text for text in fields.items(value, "systemPrompt") if isinstance(text, str) and text]
            if texts != self._in_force.get((dialog, "system"), []):
                self._in_force[dialog, "system"] = texts
                yield self._writers[dialog].put(_instructions(texts, at), origin)
            tools = value.get("tools")
            if tools is not None and tools != self._in_force.get((dialog, "tools")):
                self._in_force[dialog, "tools"] = tools
                yield from declare(self._writers[dialog], tools, at, origin)
            value = {name: other for name, other in value.items() if name not in {"systemPrompt", "tools"}}
        yield from self._put(dialog, Custom(custom_type=f"{NAME}/attachment", data=value, at=at), origin)

    def _message(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        content = messages.said(value).get("content")
        if failed := messages.failure(value, at):
            self._unread.see(content, origin.place, "failure")
            yield from self._put(dialog, failed, origin, 1)
        elif value.get("isCompactSummary"):
            yield from self._compaction(plain(content), origin, at, dialog)
        else:
            yield from self._open(dialog)
            if value.get("type") == "user":
                mode = fields.text(value, "permissionMode")
                yield from self._writers[dialog].use_mode("permission", mode, at, origin)
            yield from self._writers[dialog].use_mode("effort", fields.text(value, "effort"), at, origin)
            yield from self._say(value, origin, at, dialog, 1)

    def _say(
        self, value: Mapping[str, object], origin: Origin, at: float, dialog: int, counted: int
    ) -> Iterator[Event]:
        yield from self._open(dialog)
        writer = self._writers[dialog]
        response = fields.text(messages.said(value), "id")
        last = self._survey.last_fragment.get(response, origin.ordinal) == origin.ordinal
        for message in messages.messages_of(value, origin.record, at, last=last):
            self._agents |= {call.id: str(call.args.get("subagent_type") or "") for call in message.tool_calls()}
            yield from writer.say(message, origin, counted=counted)
            counted = 0

    def _compaction(self, summary: str, origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._open(dialog)
        writer = self._writers[dialog]
        bounds = self._bounds.pop(dialog, NOTHING)
        if not summary:
            yield bad_record(origin.place, "its summary is not one text")
        if bounds.get("preservedSegment"):
            reason = "The compaction kept some messages after its summary; the view begins with the summary alone."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        before = fields.number(bounds, "preTokens")
        after = min(len(summary) // 4, max(before - 1, 0))
        piece = Derived(text=summary, label="summary", sources=tuple(writer.spans()))
        yield writer.put(writer.compaction([piece], at=at, tokens_before=before, tokens_after=after), origin, counted=1)

    def _system(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        subtype = fields.text(value, "subtype")
        if subtype == "compact_boundary":
            self._bounds[dialog] = fields.mapping(value, "compactMetadata")
        elif subtype == "microcompact_boundary":
            yield from self._clearing(fields.mapping(value, "microcompactMetadata"), origin, at, dialog)
        elif failed := messages.failure(value, at):
            yield from self._put(dialog, failed, origin)
        elif fields.text(value, "content"):
            kept = Custom(custom_type=f"{NAME}/{subtype}", data=value.get("content"), at=at)
            yield from self._put(dialog, kept, origin)
        else:
            self._unread.skip(f"system/{subtype}", "measurements of the harness; no one said them", origin.place)

    def _clearing(self, about: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        yield from self._open(dialog)
        writer = self._writers[dialog]
        calls = [call for call in fields.items(about, "compactedToolIds") if isinstance(call, str)]
        places = [place for call in calls if (place := writer.result(call)) is not None]
        if len(places) < len(calls):
            gone = len(calls) - len(places)
            reason = f"{gone} of {len(calls)} results that the harness cleared are not in the file."
            yield Loss(place=origin.place, reason=reason, code="dangling_edit")
        if places:
            yield writer.put(writer.clearing(places, _CLEARED, at=at), origin)

    def _progress(self, value: Mapping[str, object], origin: Origin, at: float, dialog: int) -> Iterator[Event]:
        progress = agent_message(value)
        if progress is None:
            kind = fields.text(fields.mapping(value, "data"), "type")
            self._unread.skip(
                f"progress/{kind}", "shown while a tool or hook ran; the result has the outcome", origin.place
            )
            return
        lane, inner = self._survey.lane(progress[0]), progress[1]
        yield from self._open(lane, dialog)
        yield from self._say(inner, origin, fields.moment(inner.get("timestamp")) or at, lane, 0)

    def _unchained(self, value: Mapping[str, object], origin: Origin, at: float) -> Iterator[Event]:
        """Read a record outside the chain: keep it unchanged, unless its kind is known to be irrelevant."""
        kind = fields.text(value, "type")
        if kind in _SKIPPED:
            self._unread.see(value, origin.place)
            self._unread.skip(kind, _SKIPPED[kind], origin.place)
        elif kind == "queue-operation" and not value.get("content"):
            self._unread.skip(kind, "the queue moving on; queued words are kept where they were queued", origin.place)
        else:
            yield from self._put(self._newest, Custom(custom_type=f"{NAME}/{kind}", data=value, at=at), origin)

    def _repeated(self, value: Mapping[str, object], origin: Origin, at: float, node: int) -> Iterator[Event]:
        """Read a record whose id was used before: skip the same content, and keep different content."""
        same = fields.mapping(value, "message").get("content") == self._doubled.get(origin.record)
        reason = f"The id {origin.record[:40]} was used before"
        if same or fields.text(value, "type") not in MESSAGES:
            whole = f"{reason}, for the same record."
            yield Loss(place=origin.place, reason=whole, code="duplicate_id", severity="note")
            return
        yield Loss(place=origin.place, reason=f"{reason}, for another record; both are kept.", code="duplicate_id")
        renamed = origin._replace(record=f"{origin.record}#{origin.ordinal}")
        yield from self._message(value, renamed, at, self._tree.of_node[node])


def _instructions(texts: Sequence[str], at: float) -> Instructions:
    said = (clean_text(text, "", []) for text in texts)
    return Instructions(sections=tuple(Section(name=f"system {n}", text=text) for n, text in enumerate(said, 1)), at=at)
