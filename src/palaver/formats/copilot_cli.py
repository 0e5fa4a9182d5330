"""Copilot CLI's `events.jsonl`: JSON lines of events, each with its data.

Based on sessions of version 1.0.64 and on the event types of github/copilot-sdk. The events of a sub-agent name its call. A rewind removes an event and
all after it, so that what follows is a fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, Origin, guarded, no_instructions
from palaver.formats.events import NOTHING, Branch, Conversation, Event, Loss, without_losses
from palaver.formats.lists import clean
from palaver.formats.records import Record
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, Derived, ErrorEntry, Instructions, Section
from palaver.messages import (
    AssistantMessage,
    Content,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
)
from palaver.messages.forms import calls_of

NAME = "copilot-cli"
_SEALED = ("reasoningOpaque", "encryptedContent")
_MIRRORED = {
    "tool.execution_start": "calls, which answers have, too",
    "assistant.turn_start": "where a model call begins",
    "assistant.turn_end": "where a model call ends",
    "hook.start": "what was passed to a hook",
    "hook.end": "how a hook ended",
    "session.title_changed": "titles; the newest one is the session's",
}
_KEYS = {
    "": "agentId data ephemeral id parentId timestamp type",
    "session.start": "alreadyInUse context contextTier copilotVersion producer reasoningEffort remoteSteerable selectedModel sessionId startTime version",
    "session.start.context": "baseCommit branch cwd gitRoot headCommit hostType repository repositoryHost",
    "session.model_change": "newModel previousModel previousReasoningEffort reasoningEffort",
    "session.mode_changed": "newMode previousMode",
    "session.compaction_complete": "checkpointNumber checkpointPath compactionTokensUsed error messagesRemoved postCompactionTokens "
    "preCompactionMessagesLength preCompactionTokens requestId success summaryContent tokensRemoved",
    "session.snapshot_rewind": "eventsRemoved upToEventId",
    "system.message": "content name role",
    "system.notification": "content kind",
    "system.notification.kind": "description exitCode shellId type",
    "tool.execution_start": "arguments model parentToolCallId toolCallId toolName turnId",
    "assistant.turn_start": "interactionId turnId",
    "assistant.turn_end": "turnId",
    "hook.start": "hookInvocationId hookType input",
    "hook.end": "error hookInvocationId hookType output success",
    "user.message": "agentMode attachments content interactionId parentAgentTaskId source supportedNativeDocumentMimeTypes transformedContent",
    "assistant.message": "apiCallId content encryptedContent interactionId messageId model outputTokens parentToolCallId phase reasoningOpaque "
    "reasoningText requestId serviceRequestId toolRequests turnId",
    "tool.execution_complete": "error interactionId isUserRequested model parentToolCallId result success toolCallId toolTelemetry turnId",
    "tool.execution_complete.result": "content contents detailedContent",
    "tool.execution_complete.error": "code message",
    "subagent.started": "agentDescription agentDisplayName agentName model toolCallId",
}
"""The keys of events. `detailedContent` and `contents` are what the screen shows; `toolTelemetry` are measurements."""


class CopilotCli:
    """Copilot CLI sessions, with their sub-agents, rewinds and compactions."""

    name = NAME
    title = "Copilot CLI"
    signs = "JSON lines with type, data and parentId, such as user.message and assistant.message"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a Copilot CLI session, from 0.0 to 1.0."""
        events = [record for record in source.opening.records if {"type", "data", "id", "timestamp"} <= record.keys()]
        return 0.9 if any(fields.text(event, "type") in _KEYS for event in events) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member)


def _session(member: Member) -> Iterator[Event]:
    about, context, title, model, main, led = NOTHING, NOTHING, "", "", "main", False
    losses: list[Loss] = []
    for record in without_losses(member.records(), losses):  # the first event depends on the whole file
        data = fields.mapping(record.value, "data")
        kind = fields.text(record.value, "type")
        if kind == "session.start":
            about, context = about or data, context or fields.mapping(data, "context")
        elif kind == "session.snapshot_rewind":
            main = _fork(record)
        led = led or kind == "system.message"
        title = (kind == "session.title_changed" and fields.text(data, "title")) or title
        model = model or (fields.text(data, "model") if kind == "assistant.message" else "")
    yield Conversation(
        key=fields.text(about, "sessionId"),
        title=title,
        workdir=fields.text(context, "cwd"),
        model=model,
        started_at=fields.moment(about.get("startTime")),
        main=main,
        metadata={name: clean(value) for name, value in {**about, **context}.items() if isinstance(value, str)},
    )
    reading = _CopilotReader()
    yield reading.writer.branch(NAME)
    yield from losses
    place = member.place("whole file")
    if not led:
        yield no_instructions(place)
    for record in without_losses(member.records(), []):
        yield from guarded(record.place, reading.read(record))
    yield from reading.unread.losses()


def _fork(record: Record) -> str:
    return f"rewind:{record.ordinal}"


class _CopilotReader:
    """Turns events into entries.

    Attributes:
        writer: The current dialog.
        unread: What is not read.
    """

    def __init__(self) -> None:
        self.writer = DialogWriter("main", NAME)
        self.unread = Unread(_KEYS)
        self._agents: dict[str, DialogWriter] = {}
        self._owners: dict[str, str] = {}
        self._before: dict[str, Mark] = {}
        self._tools: dict[str, str] = {}
        self._instructions: dict[str, str] = {}

    def read(self, record: Record) -> Iterator[Event]:
        """Read an event. One of a kind that has no meaning here is kept whole."""
        value, data = record.value, fields.mapping(record.value, "data")
        kind, key = fields.text(value, "type"), fields.text(value, "id") or str(record.ordinal)
        origin = Origin(key, record.ordinal, record.digest, record.place)
        at = fields.moment(value.get("timestamp"))
        self._before.setdefault(key, self.writer.mark())
        self.unread.see(value, record.place)
        self.unread.see(data, record.place, kind)
        if kind in _MIRRORED:
            self.unread.skip(kind, _MIRRORED[kind], record.place)
        elif kind == "session.snapshot_rewind":
            gone = self._before.get(fields.text(data, "upToEventId"), self.writer.mark())
            self.writer = self.writer.fork(_fork(record), gone)
            yield self.writer.branch(NAME)
        elif kind == "subagent.started":
            call = fields.text(data, "toolCallId")
            self._owners[call] = fields.text(data, "agentName")
        else:
            agent = fields.text(value, "agentId") or fields.text(data, "parentToolCallId")
            if agent and agent not in self._agents:
                yield self._begin(agent)
            writer = self._agents.get(agent, self.writer)
            yield from self._entry(kind, data, origin, at, writer)

    def _begin(self, agent: str) -> Event:
        self._agents[agent] = DialogWriter(f"agent:{agent}", NAME)
        owner = self._owners.get(agent) or agent
        about = {"call": agent} if agent in self._tools else NOTHING
        return Branch(dialog=f"agent:{agent}", parent=self.writer.key, owner=owner, relation="subagent", metadata=about)

    def _entry(  # noqa: C901 - one case per type
        self, kind: str, data: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter
    ) -> Iterator[Event]:
        match kind:
            case "system.message":
                yield from self._instruct(fields.text(data, "content"), origin, at, writer)
            case "user.message":
                yield from self._prompt(data, origin, at, writer)
            case "system.notification":
                yield from writer.say(_spoken(fields.text(data, "content"), origin.record, at, Speaker.HARNESS), origin)
            case "assistant.message":
                self._tools |= {
                    fields.text(call, "toolCallId"): fields.text(call, "name")
                    for call in fields.objects(data, "toolRequests")
                }
                yield from writer.say(_answer(data, origin.record, at), origin, counted=1)
            case "tool.execution_complete":
                name = self._tools.get(fields.text(data, "toolCallId"), "")
                yield from writer.say(_result(data, name, origin.record, at), origin, counted=1)
            case "session.start" | "session.model_change":
                yield from writer.use_model(fields.text(data, "newModel"), "github-copilot", at, origin)
                yield from writer.use_mode("effort", fields.text(data, "reasoningEffort"), at, origin)
            case "session.mode_changed":
                yield from writer.use_mode("agent", fields.text(data, "newMode"), at, origin)
            case "session.compaction_complete" if fields.text(data, "summaryContent"):
                text, before = fields.text(data, "summaryContent"), fields.number(data, "preCompactionTokens")
                summary = Derived(text=text, label="summary", sources=tuple(writer.spans()))
                yield writer.put(writer.compaction([summary], at=at, tokens_before=before), origin)
            case "session.error":
                yield writer.put(ErrorEntry(error=fields.text(data, "message") or kind, data=data, at=at), origin)
            case _:
                yield writer.put(Custom(custom_type=f"{NAME}/{kind or 'event'}", data=clean(data), at=at), origin)

    def _instruct(self, text: str, origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        """Put the instructions. They are repeated before each prompt, and put when they change."""
        if text == self._instructions.get(writer.key, ""):
            self.unread.skip("system.message", "instructions that are in force already", origin.place)
            return
        self._instructions[writer.key] = text
        yield writer.put(Instructions(sections=(Section(name="system", text=text),), at=at), origin, counted=1)

    def _prompt(self, data: Mapping[str, object], origin: Origin, at: float, writer: DialogWriter) -> Iterator[Event]:
        """Put what a person typed, and what the harness sent before and after it."""
        typed, sent = fields.text(data, "content"), fields.text(data, "transformedContent")
        before, found, after = sent.partition(typed) if typed else (sent, "", "")
        if typed and sent and not found:
            self.unread.count("user.message.transformedContent", origin.place)
            before = after = ""
        source = fields.text(data, "source")
        human = Speaker.HUMAN if source in {"", "user"} and writer is self.writer else Speaker.MODEL
        attached = data.get("attachments")
        parts = (
            (f"{origin.record}.0", before.strip("\n"), Speaker.HARNESS),
            (origin.record, typed, human),
            (f"{origin.record}.2", after.strip("\n"), Speaker.HARNESS),
        )
        counted = 1
        for key, text, speaker in parts:
            if text.strip() or (speaker is human and (attached or not sent)):
                about = {"attachments": clean(attached)} if attached and speaker is human else {}
                yield from writer.say(_spoken(text, key, at, speaker, about), origin, counted=counted)
                counted = 0


def _spoken(text: str, key: str, at: float, speaker: Speaker, about: Mapping[str, object] = NOTHING) -> UserMessage:
    contents = (TextContent(content=text),) if text else ()
    return UserMessage(id=key, timestamp=at, contents=contents, speaker=speaker, metadata={**about})


def _answer(data: Mapping[str, object], key: str, at: float) -> AssistantMessage:
    sealed = {name: data[name] for name in _SEALED if isinstance(data.get(name), str)}
    thought, text, model = fields.text(data, "reasoningText"), fields.text(data, "content"), fields.text(data, "model")
    blocks: list[Content] = []
    if thought or sealed:
        about: dict[str, Any] = {"provider": "github-copilot", "model": model, "artefact": sealed}
        blocks.append(ThinkingContent(content=thought, **about))
    if text:
        blocks.append(TextContent(content=text))
    blocks += calls_of(map(_call, fields.objects(data, "toolRequests")))
    return AssistantMessage(
        id=key,
        timestamp=at,
        contents=tuple(blocks),
        model=model or None,
        provider="github-copilot",
        usage=Usage({"output_tokens": count} if (count := fields.number(data, "outputTokens")) else {}),
        response_id=fields.text(data, "apiCallId") or fields.text(data, "messageId") or None,
    )


def _call(call: Mapping[str, object]) -> Mapping[str, object]:
    """Return a call as one of chat completions. A custom tool takes a text."""
    args = call.get("arguments")
    custom = isinstance(args, str) and call.get("type") == "custom"
    rest = {name: value for name, value in call.items() if name not in {"toolCallId", "type"}}
    return {**rest, "id": fields.text(call, "toolCallId"), "arguments": {"input": args} if custom else args}


def _result(data: Mapping[str, object], name: str, key: str, at: float) -> ToolMessage:
    result, error = fields.mapping(data, "result"), fields.mapping(data, "error")
    text = fields.text(result, "content") or fields.text(error, "message")
    about: dict[str, Any] = {"is_error": data.get("success") is False, "name": name or None}
    return ToolMessage(
        id=key,
        timestamp=at,
        contents=(ToolResultContent(id=fields.text(data, "toolCallId"), content=text, **about),),
    )
