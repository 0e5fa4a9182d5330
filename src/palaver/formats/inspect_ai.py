"""Inspect logs: a JSON object of samples, or an `.eval` archive with a file for each sample. Each sample and epoch is a conversation.

Based on logs of inspect_ai 0.3 (UKGovernmentBEIS/inspect_ai, src/inspect_ai/log). A text `attachment://<hash>` stands for one of the
sample's attachments and is put back. Usage and times come from the model events whose answer has the message's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.errors import UnsupportedTranscript
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, bad_record, guarded, no_instructions
from palaver.formats.events import NOTHING, Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, clean, declare, instructs, kept, numbered, torn, word
from palaver.formats.records import MAX_LINE
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import ErrorEntry
from palaver.messages import Message, ThinkingContent, Usage, from_chat_dict

NAME = "inspect"
_SAMPLES, _HEADS = "samples/", ("header.json", "_journal/start.json")
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_READ = frozenset({"messages", "events", "attachments", "input", "output", "error"})
_SAID = frozenset({"role", "content", "tool_calls", "tool_call_id", "function", "error", "model", "id"})
_THOUGHT = frozenset({"type", "reasoning", "summary", "signature", "redacted"})
_KEYS = {
    "": "version status eval plan results stats error invalidated samples reductions location etag tags metadata log_updates"
}


class InspectLog:
    """Inspect logs: one conversation per sample."""

    name = NAME
    title = "Inspect logs"
    signs = "a JSON object with eval and samples, or an .eval archive with samples/ and header.json"
    series = True

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is an Inspect log, from 0.0 to 1.0."""
        names = [member.name for member in source.members]
        if any(name in _HEADS for name in names):
            return 1.0 if any(name.startswith(_SAMPLES) for name in names) else 0.0
        try:
            opening = source.opening.fields
        except UnsupportedTranscript:
            return 0.0
        return 1.0 if len(names) == 1 and "task" in fields.mapping(opening, "eval") and "version" in opening else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read every sample as a conversation, one in memory at a time."""
        losses: list[Loss] = []
        names = {member.name: member for member in source.members}
        head = next((names[name] for name in _HEADS if name in names), source.members[0])
        about = dict(_values(head, losses))
        yield from losses
        unread = Unread(_KEYS)
        unread.see(about, head.place("whole file"))
        yield from unread.losses()
        evaluation, ordinal = fields.mapping(about, "eval"), 0
        for member in source.members:
            if len(source.members) == 1:
                for element in without_losses(member.elements(("samples",)), []):
                    place = member.place(element.path)
                    if element.nth >= 0 and not element.whole:
                        yield from torn(element, place, read=False)
                    elif element.nth >= 0:
                        yield from _sample(element.value, evaluation, place, ordinal, list(torn(element, place)))
                        ordinal += 1
            elif member.name.startswith(_SAMPLES):
                losses = []
                sample = dict(_values(member, losses))
                yield from _sample(sample, evaluation, member.place("whole file"), ordinal, losses)
                ordinal += 1


def _values(member: Member, losses: list[Loss]) -> Iterator[tuple[str, object]]:
    """Return the values of a file's object; samples in it are not read."""
    for element in without_losses(member.elements(("samples",)), losses):
        if element.nth < 0:
            losses += torn(element, member.place(element.path))
            yield element.key, element.value


class _Attachments:
    """Puts attachments back where texts refer to them, up to a limit of characters a sample."""

    def __init__(self, sample: Mapping[str, object]) -> None:
        self._texts = fields.mapping(sample, "attachments")
        self._left = MAX_LINE
        self.missing = 0

    def resolve(self, value: object) -> object:
        if isinstance(value, str):
            return _ATTACHMENT.sub(self._text, value)
        if isinstance(value, list):
            return [self.resolve(part) for part in value]
        return {key: self.resolve(part) for key, part in value.items()} if isinstance(value, dict) else value

    def _text(self, found: re.Match[str]) -> str:
        text = self._texts.get(found[1])
        if not isinstance(text, str) or len(text) > self._left:
            self.missing += 1
            return found[0]
        self._left -= len(text)
        return text


def _sample(
    value: object, evaluation: Mapping[str, object], place: str, ordinal: int, losses: list[Loss]
) -> Iterator[Event]:
    sample = value if isinstance(value, dict) else NOTHING
    task, name = word(evaluation.get("task") or ""), word(sample.get("id"))
    started_at = fields.moment(evaluation.get("created"))
    run = f"{word(evaluation.get('run_id'))}:{name}:{word(sample.get('epoch'))}" if "id" in sample else ""
    yield Conversation(
        key=fields.text(sample, "uuid") or run,
        ordinal=ordinal,
        title=f"{task} {name}".strip(),
        model=fields.text(evaluation, "model"),
        started_at=started_at,
        metadata=kept(sample, _READ),
    )
    writer, unread, attached = DialogWriter("main", NAME), Unread({}), _Attachments(sample)
    yield writer.branch(NAME)
    yield from losses
    if not isinstance(sample.get("messages"), list):
        yield bad_record(f"{place}, messages", "it is not a list of messages")
    calls = {}
    tools: object = None
    for event in fields.objects(sample, "events"):
        unread.skip("event", "the trace of the run, which the source has", place)
        if event.get("event") == "model":
            tools = tools or event.get("tools")
            output = fields.mapping(event, "output")
            choice = next(iter(fields.objects(output, "choices")), NOTHING)
            calls[word(fields.mapping(choice, "message").get("id"))] = event
    yield from guarded(place, declare(writer, clean(tools), started_at, Item(0, place, tools).origin("tools")))
    items = list(numbered(sample.get("messages"), f"{place}, messages"))
    if not any(instructs(item.value) for item in items):
        yield no_instructions(place)
    at = started_at
    for item in items:
        event = calls.get(word(fields.text(item.value, "id")) if isinstance(item.value, dict) else "", NOTHING)
        at = fields.moment(event.get("completed") or event.get("timestamp")) or at
        yield from guarded(item.place, _message(item, writer, event, attached, at))
    if error := fields.mapping(sample, "error"):
        entry = ErrorEntry(error=fields.text(error, "message"), data=clean(dict(error)), at=at)
        yield writer.put(entry, Item(0, f"{place}, error", dict(error)).origin("error"))
    if attached.missing:
        reason = f"{attached.missing} references to attachments stay as they are: the sample lacks them, or they are too long."
        yield Loss(place=place, reason=reason, code="missing_attachment", severity="loss")
    yield from unread.losses()


def _message(
    item: Item, writer: DialogWriter, event: Mapping[str, object], attached: _Attachments, at: float
) -> Iterator[Event]:
    value = attached.resolve(item.value)
    if not isinstance(value, dict):
        yield bad_record(item.place, "it is not a message")
        return
    message: dict[str, Any] = {
        key: value[key] for key in ("role", "tool_calls", "tool_call_id", "model") if value.get(key)
    }
    message.setdefault("content", value.get("content"))
    provider = fields.text(event, "model").partition("/")[0]
    if isinstance(value.get("content"), list):
        message["content"] = [_part(part, provider) for part in value["content"]]
    if value.get("function"):
        message["name"] = value["function"]
    failed = fields.mapping(value, "error")
    if failed and not message.get("content"):
        message["content"] = fields.text(failed, "message")
    about: dict[str, Any] = {"id": fields.text(value, "id") or f"{NAME}:{item.place}", "timestamp": at}
    about["metadata"] = {**kept(value, _SAID), **({"error": clean(dict(failed))} if failed else {})}
    if usage := fields.mapping(fields.mapping(event, "output"), "usage"):
        about["usage"] = Usage(usage)
    said = from_chat_dict(message, **about)
    yield from writer.say(_failed(said) if failed else said, item.origin(), counted=1)


def _failed(message: Message) -> Message:
    results = tuple(result.model_copy(update={"is_error": True}) for result in message.tool_results())
    return message.model_copy(update={"contents": results}) if results else message


def _part(part: object, provider: str) -> object:
    """Return a part of a message as one of chat completions; what has no such form stays as it is."""
    about = part if isinstance(part, dict) else NOTHING
    if about.get("type") == "reasoning" and not about.get("redacted"):
        text = fields.text(about, "summary") or fields.text(about, "reasoning")
        own = {"type": "thinking", "content": text, "signature": fields.text(about, "signature"), "provider": provider}
        return ThinkingContent.from_dict({**kept(about, _THOUGHT), **own})
    if about.get("type") == "reasoning" and provider == "anthropic":
        return ThinkingContent(redacted=fields.text(about, "reasoning"), provider=provider)
    if about.get("type") == "image" and isinstance(about.get("image"), str):
        return {**kept(about, {"image"}), "type": "image_url", "image_url": {"url": about["image"]}}
    return part
