"""Gemini CLI's chat files: JSON lines. A later line can extend an earlier message, remove messages or replace the history.

Earlier versions wrote one JSON document with the same messages. Based on the source of its ChatRecordingService and on files of
versions 0.23 and 0.61. A message contains its calls with their results; newer versions repeat the result in a user record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.dialects import item_reader
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, clean, digest_of, document_parts
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, Derived, ErrorEntry, Run
from palaver.messages import (
    AssistantMessage,
    Content,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
)

NAME = "gemini-cli"
_TYPES = frozenset({"user", "gemini", "info", "error", "warning"})
_KEPT = ("projectHash", "kind", "directories")
_PART = "codeExecutionResult executableCode fileData functionCall functionResponse inlineData text thought thoughtSignature videoMetadata"
_KEYS = {
    "rewind": "$rewindTo",
    "set": "$set",
    "session": "directories kind lastUpdated messages projectHash sessionId startTime summary",
    "message": "content displayContent id model thoughts timestamp tokens toolCalls type",
    "message.content": _PART,
    "message.content.functionCall": "args id name",
    "message.content.functionResponse": "id name response",
    "message.content.inlineData": "data mimeType",
    "message.thoughts": "description subject timestamp",
    "message.tokens": "cached input output thoughts tool total",
    "message.toolCalls": "args description displayName id name renderOutputAsMarkdown result resultDisplay status timestamp",
    "message.toolCalls.result": _PART,
    "message.toolCalls.result.functionResponse": "id name response",
    "message.toolCalls.result.inlineData": "data mimeType",
    "response": "error output",
}
"""The keys of records. `displayContent` and `resultDisplay` are what the screen shows."""
_HARNESS_MARKS = ("<session_context>", "<hook_context>")
"""The prefixes of text that the harness writes into user records."""


class GeminiCli:
    """Gemini CLI sessions, with their rewinds and compressions."""

    name = NAME
    title = "Gemini CLI"
    signs = "JSON with sessionId and projectHash, and messages of type user and gemini"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is a Gemini CLI session, from 0.0 to 1.0."""
        shown = (*source.opening.records, source.opening.fields)
        if any("sessionId" in record and "projectHash" in record for record in shown):
            return 1.0
        said = (*shown, *fields.objects(source.opening.fields, "messages"))
        return 0.7 if any(map(_is_message, said)) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as a session."""
        return _session(source.member, source.path)


def _is_message(record: Mapping[str, object]) -> bool:
    return fields.text(record, "type") in _TYPES and {"id", "timestamp", "content"} <= record.keys()


def _items(member: Member) -> Iterator[Item | Loss]:
    """Yield the records; a document's values as records that set them, its messages as records."""
    if "messages" not in member.opening.fields:
        for record in member.records():
            yield record if isinstance(record, Loss) else Item(record.ordinal, record.place, record.value)
        return
    for number, part in enumerate(document_parts(member, ("messages",))):
        if isinstance(part, Loss):
            yield part
        elif part.ordinal >= 0:
            yield part._replace(ordinal=number)
        else:
            yield Item(number, part.place, {"$set": {part.key: part.value}})


def _session(member: Member, path: Path) -> Iterator[Event]:
    survey = _GeminiReader()  # the first event depends on the whole file
    losses: list[Loss] = []
    for item in without_losses(_items(member), losses):
        deque(guarded(item.place, survey.read(item)), maxlen=0)
    about, part = survey.about, survey.is_part
    yield Conversation(
        key=fields.text(about, "sessionId"),
        title=fields.text(about, "summary"),
        workdir=_workdir(path),
        model=survey.model,
        started_at=fields.moment(about.get("startTime")),
        main=survey.writer.key,
        metadata={name: clean(about[name]) for name in _KEPT if about.get(name) is not None},
        part_of=path.parent.name if part else "",
    )
    reading = _GeminiReader(part=part)
    yield reading.writer.branch(NAME)
    yield from losses
    place = member.place("whole file")
    yield no_instructions(place)
    for item in without_losses(_items(member), []):  # the first pass reported them
        yield from guarded(item.place, reading.read(item))
    yield from reading.unread.losses()


def _workdir(path: Path) -> str:
    """Return the project's folder, which Gemini CLI records next to the folder of its chats."""
    for folder in path.parents[1:3]:
        note = folder / ".project_root"
        if note.is_file():
            return note.read_text("utf-8", "replace").strip()
    return ""


class _GeminiReader:
    """Turns the records of a file into entries.

    Attributes:
        writer: The current dialog.
        about: The newest values of the whole session, except that the first id counts.
        model: The model that answered first.
        unread: What is not read.
    """

    def __init__(self, *, part: bool = False) -> None:
        self.writer = DialogWriter("main", NAME)
        self.about: dict[str, object] = {}
        self.model = ""
        self.unread = Unread(_KEYS)
        self._part = part
        self._shown: dict[str, list[Run | Derived]] = {}  # what the model sees, by the id of its message
        self._before: dict[str, Mark] = {}
        self._aside: set[str] = set()  # the ids of messages of the harness
        self._results: dict[str, str] = {}
        self._returned: set[bytes] = set()  # the digests of what results have besides their texts
        self._called: set[str] = set()
        self._metered: set[str] = set()
        self._leaving: Mark | None = None

    @property
    def is_part(self) -> bool:
        """Whether the file is a sub-agent's session."""
        return self._part or self.about.get("kind") == "subagent"

    def read(self, item: Item) -> Iterator[Event]:
        """Read a record."""
        value = item.expect("a record")
        if "$rewindTo" in value:
            self.unread.see(value, item.place, "rewind")
            self._rewind(fields.text(value, "$rewindTo"))
        elif "type" in value or "id" in value:
            self.unread.see(value, item.place, "message")
            yield from self._message(value, item)
        elif "$set" in value or "sessionId" in value:
            about = fields.mapping(value, "$set") or value
            self.unread.see(value, item.place, "set" if "$set" in value else "session")
            self.unread.see(about, item.place, "session")
            self.unread.see(about.get("messages"), item.place, "message")
            session = self.about.get("sessionId")
            self.about.update(about)
            self.about["sessionId"] = session or about.get("sessionId")
            if "messages" in about:
                yield from self._history(fields.objects(about, "messages"), item)
        else:
            yield self.writer.put(Custom(custom_type=f"{NAME}/record", data=value), item.origin())

    # --- messages ---------------------------------------------------------------------------------------------------------

    def _message(self, value: Mapping[str, object], item: Item) -> Iterator[Event]:
        key = fields.text(value, "id") or f"#{item.ordinal}"
        start, was = self.writer.count, self.writer
        kind, at = fields.text(value, "type"), fields.moment(value.get("timestamp"))
        first = key not in self._shown and key not in self._aside
        if self._leaving is not None and first:
            self.writer = self.writer.fork(f"fork:{item.ordinal}", self._leaving)
            self._leaving, start = None, 0
            yield self.writer.branch(NAME)
        if first and _seen(value):
            self._shown[key], self._before[key] = [], self.writer.mark()
        elif first:
            self._aside.add(key)
        if kind == "gemini":
            yield from self._answer(value, key, at, item, first=first)
        elif kind == "user" or isinstance(value.get("content"), list):
            yield from self._prompt(value, key, at, item, first=first)
        elif first:
            words = _words(value)
            entry = ErrorEntry(error=words, at=at) if kind == "error" else None
            data = clean(dict(value)) if kind not in _TYPES else words
            entry_or = entry or Custom(custom_type=f"{NAME}/{kind or 'record'}", data=data, at=at)
            yield self.writer.put(entry_or, item.part(key, value.get("content")), counted=1)
        if key in self._shown and self.writer.count > start:
            self._shown[key].append(self.writer.run(start if self.writer is was else 0, self.writer.count))

    def _answer(self, value: Mapping[str, object], key: str, at: float, item: Item, *, first: bool) -> Iterator[Event]:
        """Put the new content of an answer's later version: its text, then each call with its result."""
        model = fields.text(value, "model")
        self.model = self.model or model
        parts = _parts(value.get("content"))
        calls = _calls(value, parts, key)
        spoken = [part for part in parts if not {"functionCall", "functionResponse"} & part.keys()]
        blocks = (*map(_thought, fields.objects(value, "thoughts")), *_blocks(spoken))
        pieces: list[tuple[str, Sequence[Content], object]] = []
        if first and (blocks or not calls):
            pieces.append((key, blocks, [value.get("content"), value.get("thoughts")]))
        for call in calls:
            name, call_id, args = fields.text(call, "name"), fields.text(call, "id"), fields.mapping(call, "args")
            if call_id not in self._called:
                block = ToolCallContent.from_dict({"id": call_id, "name": name, "args": args})
                pieces.append((f"{key}/{call_id}", (block,), [name, args]))
        yield from self._answered(calls, at, item)
        counted = int(first)
        usage = fields.mapping(value, "tokens") if key not in self._metered else {}
        for identity, said, raw in pieces:
            message = AssistantMessage(
                id=identity,
                timestamp=at,
                contents=tuple(said),
                model=model or None,
                provider="google",
                usage=Usage(usage),
                response_id=key,
                fragment=True,
            )
            yield from self.writer.say(message, item.part(identity, raw), counted=counted)
            self._metered.update((key,) if usage else ())
            counted, usage = 0, {}
            self._called.update(block.id for block in said if isinstance(block, ToolCallContent))
            yield from self._answered(calls, at, item)

    def _answered(self, calls: Sequence[Mapping[str, object]], at: float, item: Item) -> Iterator[Event]:
        """Put the results of the calls that were made so far."""
        for call in calls:
            call_id, parts = fields.text(call, "id"), _parts(call.get("result"))
            if parts and call_id in self._called:
                failed = fields.text(call, "status") in {"error", "cancelled"}
                moment = fields.moment(call.get("timestamp")) or at
                yield from self._result(call_id, fields.text(call, "name"), parts, moment, item, failed=failed)

    def _result(
        self, call_id: str, name: str, parts: Sequence[Mapping[str, object]], at: float, item: Item, *, failed: bool
    ) -> Iterator[Event]:
        """Put a result. For a known result, put the text that Gemini CLI shows instead from here on."""
        responses = [fields.mapping(part, "functionResponse") for part in parts if "functionResponse" in part]
        own = [response for response in responses if response.get("id") == call_id]
        said = fields.mapping(next(iter(own or responses), NOTHING), "response")
        failed = failed or "error" in said
        words = fields.text(said, "error") or fields.text(said, "output") or (str(clean(dict(said))) if said else "")
        if fields.text(said, "error") or fields.text(said, "output"):
            self.unread.see(said, item.place, "response")
        known = self._results.get(call_id)
        self._results[call_id] = words
        if known is None:
            besides = [part for part in parts if "functionResponse" not in part]
            self._returned.update(map(digest_of, besides))
            rest = _blocks(besides)
            content: Any = (TextContent(content=words), *rest) if rest else words
            block = ToolResultContent(id=call_id, content=content, is_error=failed, name=name or None)
            message = ToolMessage(id=f"{call_id}/result", timestamp=at, contents=(block,))
            yield from self.writer.say(message, item.part(f"{call_id}/result", words))
        elif known != words and (place := self.writer.result(call_id)) is not None:
            yield self.writer.put(self.writer.clearing([place], words, at=at), item.part(call_id, words))

    def _prompt(self, value: Mapping[str, object], key: str, at: float, item: Item, *, first: bool) -> Iterator[Event]:
        parts = _parts(value.get("content"))
        results = [part for part in parts if "functionResponse" in part]
        other = [part for part in parts if "functionResponse" not in part]
        if results:  # newer versions repeat the media of a result after it
            other = [part for part in other if digest_of(part) not in self._returned]
        rest = _blocks(other)
        before = self.writer.count
        for part in results:
            response = fields.mapping(part, "functionResponse")
            call_id = fields.text(response, "id")
            yield from self._result(call_id, fields.text(response, "name"), [part], at, item, failed=False)
        if first and (rest or not results):
            human = value.get("type") == "user" and key in self._shown and not self.is_part
            speaker = Speaker.HUMAN if human else Speaker.MODEL if key in self._shown else Speaker.HARNESS
            message = UserMessage(id=key, timestamp=at, contents=rest, speaker=speaker)
            yield from self.writer.say(message, item.part(key, value.get("content")), counted=1)
        elif first and self.writer.count == before:
            self.unread.skip("user", "results, which their calls have, too", item.place)

    # --- what the model sees ----------------------------------------------------------------------------------------------------

    def _rewind(self, key: str) -> None:
        """Remove a message and all after it. The next message begins a fork."""
        keys = list(self._shown)
        gone = keys[keys.index(key) if key in keys else 0 :]
        if gone:
            self._leaving = self._before[gone[0]]
        for removed in gone:
            del self._shown[removed]

    def _history(self, messages: Sequence[Mapping[str, object]], item: Item) -> Iterator[Event]:
        """Read the whole current history. It can have more messages, fewer (a rewind), or others (a compression)."""
        keyed = {key: message for message in messages if (key := fields.text(message, "id")) and _seen(message)}
        kept = [key for key in keyed if key in self._shown]
        current = list(self._shown)
        if kept == current:
            for message in messages:
                yield from self._message(message, item)
            return
        if len(kept) == len(keyed) and kept == current[: len(kept)]:
            self._rewind(current[len(kept)])
            return
        for message in messages:
            if fields.text(message, "id") in self._shown or not _seen(message):
                yield from self._message(message, item)
        gone = tuple(self.writer.spans())
        shown: dict[str, list[Run | Derived]] = {}
        for key, message in keyed.items():
            new: list[Run | Derived] = [
                Derived(text=words, label="summary", sources=gone) for words in [_words(message)] if words
            ]
            shown[key] = self._shown.get(key, new)
        at = max((fields.moment(message.get("timestamp")) for message in messages), default=0.0)
        pieces = [piece for parts in shown.values() for piece in parts]
        yield self.writer.put(self.writer.compaction(pieces, at=at), item.part(f"#{item.ordinal}", list(keyed)))
        self._shown = shown
        for key in shown:
            self._before.setdefault(key, self.writer.mark())


def _seen(value: Mapping[str, object]) -> bool:
    """Return whether a message is a person's or the model's, rather than a result or the harness's."""
    parts = _parts(value.get("content"))
    only_results = bool(parts) and all("functionResponse" in part for part in parts)
    spoken = fields.text(value, "type") in {"user", "gemini"} and not only_results
    return spoken and not _words(value).startswith(_HARNESS_MARKS)


def _parts(content: object) -> list[Mapping[str, object]]:
    listed = content if isinstance(content, list) else [] if content in (None, "") else [content]
    return [part if isinstance(part, dict) else {"text": str(part)} for part in listed]


def _calls(
    value: Mapping[str, object], parts: Sequence[Mapping[str, object]], key: str
) -> Sequence[Mapping[str, object]]:
    """Return the calls of an answer, each with an id."""
    told = [fields.mapping(part, "functionCall") for part in parts if "functionCall" in part]
    calls = fields.objects(value, "toolCalls") or told
    return [{**call, "id": fields.text(call, "id") or f"{key}:{number}"} for number, call in enumerate(calls)]


def _words(value: Mapping[str, object]) -> str:
    return "".join(fields.text(part, "text") for part in _parts(value.get("content")))


def _thought(thought: Mapping[str, object]) -> Content:
    subject, words = fields.text(thought, "subject"), fields.text(thought, "description")
    return ThinkingContent(content=f"**{subject}** {words}" if subject else words, provider="google")


def _blocks(parts: Iterable[Mapping[str, object]]) -> tuple[Content, ...]:
    """Read parts without calls and results, as the API's contents have them."""
    return item_reader("gemini")({"parts": list(parts)})[0].contents
