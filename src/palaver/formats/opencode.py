"""OpenCode's sessions, in the format of `opencode export`: one JSON document of messages, each a list of parts.

Based on the sources of OpenCode (`session/message-v2.ts`) and on sessions of version 1.18. An answer has one
or more steps, each a model call. A step changes until it is finished, so a session in use is read up to its first unfinished step.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Origin, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss
from palaver.formats.lists import Item, clean, digest_of, listed, priced
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.ids import DialogId
from palaver.log import Custom, ErrorEntry, Place
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    Media,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    Usage,
    UserMessage,
    stop_reason_of,
)

NAME = "opencode"
_LISTS = ("messages",)
_KEPT = ("slug", "projectID", "version", "agent", "share")
_CLEARED = "[Old tool result content cleared]"
"""The text that OpenCode shows instead of a result that it pruned."""
_SHOWN_AS = {"compaction": "What did we do so far?", "subtask": "The following tool was executed by the user"}
"""The text that OpenCode shows the model instead of these parts of a user message."""
_AS_TEXT = frozenset({"text/plain", "application/x-directory"})
"""Types of files whose content is also in a text part."""
_ROLES = frozenset({"user", "assistant"})
_WAITING = frozenset({"pending", "running"})
"""States of a call that has no result yet."""
_SAID = frozenset({"text", "reasoning", "tool", "file"})
"""Parts of the model's answers."""
_SAYING = ("type", "text", "synthetic", "mime", "url", "filename", "tool", "callID")
"""The fields of such a part, besides a call's input."""
_OF_RESULT = ("sessionId",)
"""The detail of a result that is kept: the session of the sub-agent that the call started."""
_UNDONE = "Messages that were undone in OpenCode are not imported, unless they were before."
_UNFINISHED = "OpenCode has not finished the newest answer; importing again adds the rest."
_SKIPPED = {
    "text": "what OpenCode shows the person only",
    "file": "files whose content is in a text, too",
    "agent": "mentions of an agent, which the text has, too",
    "patch": "the files that a step changed; its calls have them",
    "snapshot": "the state of the working folder",
}
_PARTS = _SAID | _SHOWN_AS.keys() | _SKIPPED.keys() | {"retry", "step-start", "step-finish"}
"""The known types of parts."""
_TOKENS = "cache input output reasoning total"
_KEYS = {
    "": "info",
    "info": "agent cost directory id model parentID path permission projectID revert share slug summary time title tokens version",
    "info.model": "id modelID providerID variant",
    "info.summary": "additions deletions diffs files",
    "info.tokens": _TOKENS,
    "info.tokens.cache": "read write",
    "info.time": "archived compacting created updated",
    "message": "info parts",
    "message.info": "agent cost error finish id mode model modelID parentID path providerID role sessionID summary time tokens variant",
    "message.info.error": "data name",
    "message.info.model": "modelID providerID variant",
    "message.info.path": "cwd root",
    "message.info.summary": "diffs title",
    "message.info.time": "completed created",
    "message.info.tokens": _TOKENS,
    "message.info.tokens.cache": "read write",
    "part": "agent attempt auto callID command cost description error filename files hash id ignored messageID metadata mime model name prompt reason "
    "sessionID snapshot source state synthetic tail_start_id text time tokens tool type url",
    "part.state": "attachments error input metadata output raw status time title",
    "part.state.time": "compacted end start",
    "part.time": "created end start",
    "part.tokens": _TOKENS,
    "part.tokens.cache": "read write",
}
"""The keys of sessions, messages and parts. `state.metadata` is what the screen shows."""


_Part: TypeAlias = tuple[str, Mapping[str, object]]
"""A part with its key."""


class OpenCodeFormat:
    """OpenCode sessions, with their compactions and cleared results."""

    name = NAME
    title = "OpenCode"
    signs = "opencode.db, or a JSON object with info and messages, each with info and parts"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is an OpenCode session, from 0.0 to 1.0."""
        opening = source.opening.fields
        if {"id", "projectID", "directory"} <= fields.mapping(opening, "info").keys():
            return 1.0
        messages = fields.objects(opening, "messages")
        known = any(fields.mapping(said, "info") and isinstance(said.get("parts"), list) for said in messages)
        return 0.7 if known else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file, or session of a database, as a session."""
        return _session(source.member)


def _session(member: Member) -> Iterator[Event]:
    document: dict[str, object] = {}
    losses: list[Loss] = []
    survey = _OpenCodeSurvey()  # the first event depends on the whole file
    for item in listed(member, _LISTS, document, losses):
        survey.read(item)
    about = survey.about = fields.mapping(document, "info")
    place = member.place("whole file")
    survey.unread.see(document, place)
    yield Conversation(
        key=fields.text(about, "id"),
        title=fields.text(about, "title"),
        workdir=fields.text(about, "directory"),
        model=survey.model,
        started_at=_moment(about, "created"),
        metadata={name: clean(about[name]) for name in _KEPT if about.get(name) is not None},
        part_of=fields.text(about, "parentID"),
    )
    reading = _OpenCodeReader(survey)
    yield reading.writer.branch(NAME)
    yield from losses
    yield no_instructions(place)
    for item in listed(member, _LISTS):  # the first pass reported them
        if not reading.stopped:
            yield from guarded(item.place, reading.read(item))
    cut = any(loss.code == "torn_tail" for loss in losses)
    if not (reading.stopped or cut):  # put results that were cleared later after the messages before that
        yield from reading.cleared(float("inf"), place)
    if reading.stopped:
        yield Loss(place=place, reason=reading.stopped, code="skipped", severity="note")
    yield from reading.unread.losses()


class _OpenCodeSurvey:
    """The results of a first pass over the file.

    Attributes:
        about: The data of the whole session.
        model: The model that answered first.
        newest: The number of the newest answer.
        unread: What is not read.
        cleared: When OpenCode cleared results, and the keys of their parts, oldest first.
    """

    def __init__(self) -> None:
        self.about: Mapping[str, object] = NOTHING
        self.model = ""
        self.newest = -1
        self.cleared: list[tuple[float, str]] = []
        self.unread = Unread(_KEYS)

    def read(self, item: Item) -> None:
        """Read a message."""
        info = fields.mapping(item.fields, "info")
        if fields.text(info, "role") == "assistant":
            self.newest = item.ordinal
            self.model = self.model or fields.text(info, "modelID")
            for key, part in _parts(item):
                at = _moment(fields.mapping(part, "state"), "compacted")
                if at:
                    insort(self.cleared, (at, key))


class _OpenCodeReader:
    """Turns messages into entries, in a second pass over the file.

    Attributes:
        writer: The current dialog.
        unread: What is not read.
        stopped: Why reading stopped, or empty.
    """

    def __init__(self, survey: _OpenCodeSurvey) -> None:
        self.writer = DialogWriter("main", NAME)
        self.unread = survey.unread
        self.stopped = ""
        self._survey = survey
        self._reverted = fields.mapping(survey.about, "revert")
        self._human = Speaker.MODEL if fields.text(survey.about, "parentID") else Speaker.HUMAN
        self._starts: dict[str, int] = {}  # the first put of each message
        self._tails: dict[str, str] = {}  # the first message that a compaction keeps, by the message that asks for it
        self._results: dict[str, Place] = {}  # by part
        self._counted = 0

    def read(self, item: Item) -> Iterator[Event]:
        """Read a message, up to a removed or unfinished part."""
        value = item.fields
        info = fields.mapping(value, "info")
        key, at = fields.text(info, "id") or f"#{item.ordinal}", _moment(info, "created")
        if fields.text(info, "role") not in _ROLES or not isinstance(value.get("parts"), list):
            yield bad_record(item.place, "it is not a message of a user or an assistant with parts")
            return
        if key == self._reverted.get("messageID") and not fields.text(self._reverted, "partID"):
            self.stopped = _UNDONE
            return
        self.unread.see(value, item.place, "message")
        yield from self.cleared(at, item.place)
        self._starts.setdefault(key, self.writer.count)
        self._counted = 1
        if fields.text(info, "role") == "assistant":
            yield from self._answer(info, key, at, item)
        else:
            yield from self._prompt(key, at, item)

    def _parts(self, item: Item) -> Iterator[_Part]:
        for key, part in _parts(item):
            if key == self._reverted.get("partID"):
                self.stopped = _UNDONE
            if self.stopped:
                return
            if fields.text(part, "type") in _PARTS:
                self.unread.see(part, item.place, "part")
            yield key, part

    def _once(self) -> int:
        """Return 1 for the first entry of a message, else 0."""
        counted, self._counted = self._counted, 0
        return counted

    def _other(self, key: str, part: Mapping[str, object], at: float, item: Item) -> Iterator[Event]:
        """Put or count a part that is not part of the conversation."""
        kind = fields.text(part, "type")
        if kind == "retry":
            error = _error(fields.mapping(part, "error"))
            yield self.writer.put(ErrorEntry(error=error, at=at), item.part(key, error), counted=self._once())
        elif kind in _SKIPPED:
            self.unread.skip(kind, _SKIPPED[kind], item.place)
        else:
            self.unread.skip(kind or "nameless", "of a kind that is not known; it is in the log as it was", item.place)
            entry = Custom(custom_type=f"{NAME}/{kind or 'part'}", data=clean(dict(part)), at=at)
            yield self.writer.put(entry, item.part(key, part), counted=self._once())

    # --- messages of a person and the harness --------------------------------------------------------------------------------

    def _prompt(self, message: str, at: float, item: Item) -> Iterator[Event]:
        """Put a person's text and the harness's additions, each as a message."""
        for speaker, group in groupby(self._parts(item), lambda keyed: self._speaker(keyed[1])):
            parts = list(group)
            for key, part in parts:
                if fields.text(part, "type") == "compaction":
                    self._tails[message] = fields.text(part, "tail_start_id")
                if speaker is None:
                    yield from self._other(key, part, at, item)
            if speaker is not None:
                key, said = parts[0][0], [part for _, part in parts]
                prompt = UserMessage(id=key, timestamp=at, contents=tuple(map(_block, said)), speaker=speaker)
                yield from self.writer.say(prompt, item.part(key, list(map(_raw, said))), counted=self._once())

    def _speaker(self, part: Mapping[str, object]) -> Speaker | None:
        """Return the speaker of a part of a user message; None if the model does not see it."""
        kind = fields.text(part, "type")
        shown = kind in _SHOWN_AS or kind == "text" or (kind == "file" and part.get("mime") not in _AS_TEXT)
        if not shown or part.get("ignored") is True:
            return None
        return Speaker.HARNESS if kind in _SHOWN_AS or part.get("synthetic") is True else self._human

    # --- the model's answers ----------------------------------------------------------------------------------------------

    def _answer(self, info: Mapping[str, object], message: str, at: float, item: Item) -> Iterator[Event]:
        """Put an answer step by step, each with its results."""
        error, summary = fields.mapping(info, "error"), info.get("summary") is True
        done = bool(error) or _moment(info, "completed") > 0 or item.ordinal < self._survey.newest
        about = {
            "timestamp": at,
            "model": fields.text(info, "modelID") or None,
            "provider": fields.text(info, "providerID") or None,
            "speaker": Speaker.SUMMARY if summary else Speaker.MODEL,
        }
        if not summary:
            mode = fields.text(info, "mode")
            yield from self.writer.use_mode("agent", mode, at, item.part(message, mode))
        for step in _steps(self._parts(item)):
            if not done and not _is_finished(step):
                self.stopped = _UNFINISHED
                return
            yield from self._step(step, about, item)
        at = _moment(info, "completed") or at
        if error:
            entry = ErrorEntry(error=_error(error), at=at)
            yield self.writer.put(entry, item.part(f"{message}/error", entry.error), counted=self._once())
        elif summary and info.get("finish"):
            yield from self._compaction(fields.text(info, "parentID"), message, at, item)

    def _step(self, step: Sequence[_Part], about: Mapping[str, Any], item: Item) -> Iterator[Event]:
        said = [(key, part) for key, part in step if fields.text(part, "type") in _SAID]
        end = next((part for _, part in step if fields.text(part, "type") == "step-finish"), NOTHING)
        if said or end:
            key = step[0][0]
            message = AssistantMessage(
                id=key,
                contents=tuple(_block(part) for _, part in said),
                usage=_usage(fields.mapping(end, "tokens"), end.get("cost")),
                stop_reason=stop_reason_of(fields.text(end, "reason").replace("-", "_")),
                response_id=key,
                **about,
            )
            raw = [[_raw(part) for _, part in said], end.get("tokens"), end.get("cost")]
            origin = item.part(key, raw)
            yield from self.writer.say(message, origin, counted=self._once())
        for key, part in step:
            kind = fields.text(part, "type")
            if kind == "tool":
                yield from self._result(key, part, fields.mapping(part, "state"), item)
            elif kind not in _SAID and not kind.startswith("step-"):
                yield from self._other(key, part, about["timestamp"], item)

    def _result(self, key: str, part: Mapping[str, object], state: Mapping[str, object], item: Item) -> Iterator[Event]:
        status = fields.text(state, "status")
        if status not in {"completed", "error"}:
            if status not in _WAITING:
                yield bad_record(item.place, "it does not say how a call ended")
            return
        about = fields.mapping(state, "metadata")
        words = fields.text(state, "output" if status == "completed" else "error")
        if status == "error" and about.get("interrupted") is True:
            words = fields.text(about, "output") or words
        images = [_block(attachment) for attachment in fields.objects(state, "attachments")]
        block = ToolResultContent.from_dict(
            {
                "id": fields.text(part, "callID"),
                "content": (TextContent(content=words), *images) if images else words,
                "is_error": status == "error",
                "name": fields.text(part, "tool") or None,
                "metadata": {name: clean(about[name]) for name in _OF_RESULT if name in about},
            }
        )
        self._results[key] = Place(dialog=DialogId(self.writer.key), seq=self.writer.count, block=0)
        result = ToolMessage(id=f"{key}/result", timestamp=_moment(state, "end"), contents=(block,))
        yield from self.writer.say(result, item.part(f"{key}/result", [status, words, state.get("attachments")]))

    # --- what the model sees ----------------------------------------------------------------------------------------------

    def cleared(self, before: float, place: str) -> Iterator[Event]:
        """Put the results that OpenCode cleared before a time."""
        while self._survey.cleared and self._survey.cleared[0][0] < before:
            at, key = self._survey.cleared.pop(0)
            if key in self._results:
                origin = Origin(f"{key}/cleared", -1, digest_of(key), place)
                yield self.writer.put(self.writer.clearing([self._results[key]], _CLEARED, at=at), origin)

    def _compaction(self, asked: str, message: str, at: float, item: Item) -> Iterator[Event]:
        """Put a compaction: the model then saw the question for the summary, the summary, and the messages that were kept."""
        start, tail = self._starts.get(asked, self._starts[message]), self._tails.get(asked, "")
        pieces = [self.writer.run(start, self.writer.count)]
        if self._starts.get(tail, start) < start:
            pieces.append(self.writer.run(self._starts[tail], start))
        elif tail:
            reason = "The first message that the compaction kept is not before it; the view begins with the summary."
            yield Loss(place=item.place, reason=reason, code="dangling_edit")
        yield self.writer.put(self.writer.compaction(pieces, at=at), item.part(f"{message}/compaction", [asked, tail]))


def _parts(item: Item) -> Iterator[_Part]:
    """Yield the parts of a message, each with its key."""
    for number, part in enumerate(fields.objects(item.fields, "parts")):
        yield fields.text(part, "id") or f"#{item.ordinal}.{number}", part


def _steps(parts: Iterable[_Part]) -> list[list[_Part]]:
    steps: list[list[_Part]] = []
    for key, part in parts:
        if not steps or fields.text(part, "type") == "step-start":
            steps.append([])
        steps[-1].append((key, part))
    return steps


def _is_finished(step: Iterable[_Part]) -> bool:
    """Return whether a step is final."""
    waiting = any(fields.text(fields.mapping(part, "state"), "status") in _WAITING for _, part in step)
    return not waiting and any(fields.text(part, "type") == "step-finish" for _, part in step)


def _moment(record: Mapping[str, object], name: str) -> float:
    return fields.moment(fields.mapping(record, "time").get(name))


def _raw(part: Mapping[str, object]) -> object:
    """Return the part's content, which does not change once it is finished."""
    return [*(part.get(name) for name in _SAYING), fields.mapping(part, "state").get("input")]


def _error(error: Mapping[str, object]) -> str:
    words = fields.text(fields.mapping(error, "data"), "message")
    return ": ".join(filter(None, (fields.text(error, "name"), words))) or "unknown"


def _usage(tokens: Mapping[str, object], cost: object) -> Usage:
    """Return usage in palaver's format. OpenCode counts cached tokens separately; newer versions also count reasoning separately."""
    cache = fields.mapping(tokens, "cache")
    read, write = fields.number(cache, "read"), fields.number(cache, "write")
    entered = fields.number(tokens, "input") + read + write
    figures = {
        "input_tokens": entered,
        "cache_read_tokens": read,
        "cache_write_tokens": write,
        "output_tokens": max(fields.number(tokens, "output"), fields.number(tokens, "total") - entered),
        "reasoning_tokens": fields.number(tokens, "reasoning"),
    }
    return priced({name: count for name, count in figures.items() if count}, cost)


def _block(part: Mapping[str, object]) -> Content:
    kind, words = fields.text(part, "type"), fields.text(part, "text")
    if kind == "tool":
        state = fields.mapping(part, "state")
        args: Any = fields.mapping(state, "input")
        return ToolCallContent.from_dict(
            {"id": fields.text(part, "callID"), "name": fields.text(part, "tool"), "args": args}
        )
    if kind == "reasoning":
        signature = fields.text(fields.mapping(fields.mapping(part, "metadata"), "anthropic"), "signature")
        return ThinkingContent(content=words, signature=signature, provider="anthropic" if signature else "")
    url, mime = fields.text(part, "url"), fields.text(part, "mime")
    if kind == "file" and mime.startswith("image/") and url.startswith(("data:", "http")):
        return ImageContent(images=(Media.from_text(url, "image", mime),))
    if kind == "file":
        return UnknownContent.from_dict({"type": "file", "mime": mime, "url": url, "filename": part.get("filename")})
    return TextContent(content=_SHOWN_AS.get(kind, words))
