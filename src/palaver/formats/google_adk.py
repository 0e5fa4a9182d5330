"""Sessions of Google's Agent Development Kit: one JSON object with the events of a session, or the events alone as JSON lines.

`adk run --save_session`, `adk run --jsonl`, the export of `adk web` and `Session.model_dump_json` write them, with keys in camel case or snake case. A
rewind begins a branch before the invocation that it names. After a compaction the model saw its text in place of the events between its times.
Based on google-adk 2.13 (google/adk-python, src/google/adk/events and flows/llm_flows/context).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic.alias_generators import to_camel

from palaver.dialects import item_reader
from palaver.formats import fields
from palaver.formats.dialogs import DialogWriter, Mark, guarded, no_instructions
from palaver.formats.events import Conversation, Event, Loss, without_losses
from palaver.formats.lists import Item, clean, document_parts, kept, values
from palaver.formats.plain import PARTS
from palaver.formats.sources import Member, SourceFile
from palaver.formats.unread import Unread
from palaver.log import Custom, Derived, Run
from palaver.messages import Message, stop_reason_of, words_of

NAME = "google-adk"
_EVENTS = "events"
_READ = frozenset({"id", "timestamp", "author", "content", "modelVersion", "usageMetadata", "finishReason"})


class GoogleAdk:
    """Sessions of the Agent Development Kit: one conversation per file."""

    name = NAME
    title = "Google ADK"
    signs = "a JSON object with events, or JSON lines, that have author and invocationId"
    series = False

    def sniff(self, source: SourceFile) -> float:
        """Return the confidence that it is such a session, from 0.0 to 1.0."""
        opening = source.opening
        shown = [*fields.objects(opening.fields, _EVENTS), *opening.records]
        return 1.0 if any({"author", "invocationId"} <= _camel(event).keys() for event in shown) else 0.0

    def read(self, source: SourceFile) -> Iterator[Event]:
        """Read the file as one session."""
        losses: list[Loss] = []
        about: dict[str, Any] = {}
        started_at, model, invocations, forks = 0.0, "", set[str](), 0
        for item in without_losses(_parts(source.member), losses):
            if item.ordinal < 0:
                about[to_camel(item.key)] = item.value
                continue
            event = _camel(item.fields)
            about.setdefault("id", event.get("sessionId"))
            started_at = started_at or fields.moment(event.get("timestamp"))
            model = model or fields.text(event, "modelVersion")
            forks += _rewound(event) in invocations
            invocations.add(fields.text(event, "invocationId"))
        key, owner = fields.text(about, "id"), fields.text(about, "appName") or NAME
        yield Conversation(
            key=key,
            main=f"branch:{forks}" if forks else "main",
            model=model,
            started_at=started_at,
            metadata=kept(about, {"id"}),
        )
        reading = _SessionReader(key or NAME, owner)
        yield reading.writer.branch(owner)
        yield from losses
        yield no_instructions(source.member.place("whole file"))
        for item in without_losses(_parts(source.member), []):
            if item.ordinal >= 0:
                yield from guarded(item.place, reading.read(item))
        yield from reading.unread.losses()


def message_of(event: Mapping[str, Any], read: Callable[..., Sequence[Message]], **about: Any) -> Message | None:  # noqa: ANN401 - fields of a message
    """Return what an event says, with its author, model, tokens and stop reason; None if it says nothing.

    Args:
        event: The event in JSON, its keys in camel case.
        read: Reads Gemini's contents (`palaver.dialects.item_reader`).
        about: Other fields of the message.

    Raises:
        InvalidMessage: Its content is not one of Gemini's.
    """
    content = _content(event)
    if content is None:
        return None
    said = {
        "name": event.get("author"),
        "model": event.get("modelVersion"),
        "usage": event.get("usageMetadata"),
        "stop_reason": stop_reason_of(fields.text(event, "finishReason")),
    }
    (message,) = read(content, **about, **{key: value for key, value in said.items() if value})
    return message


def _content(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what an event says, or None. Where its content has no role that Gemini knows, the author decides; spoken words are in a transcription."""
    by_author = "user" if event.get("author") == "user" else "model"
    content = fields.mapping(event, "content")
    if content.get("parts"):
        return content if content.get("role") in {"user", "model", "function"} else {**content, "role": by_author}
    heard = (
        (role, fields.mapping(event, f"{way}Transcription")) for role, way in (("user", "input"), ("model", "output"))
    )
    return next(({"role": role, "parts": [{"text": said["text"]}]} for role, said in heard if said.get("text")), None)


def _camel(record: Mapping[str, object]) -> dict[str, Any]:
    return {to_camel(key): value for key, value in record.items()}


def _parts(member: Member) -> Iterator[Item | Loss]:
    """Yield the events of a file, and the values beside them."""
    return document_parts(member, (_EVENTS,)) if fields.items(member.opening.fields, _EVENTS) else values(member)


def _rewound(event: Mapping[str, object]) -> str:
    """Return the invocation before which a rewind begins again; empty where the event is none."""
    return fields.text(_camel(fields.mapping(event, "actions")), "rewindBeforeInvocationId")


class _ShownPiece(NamedTuple):
    """A piece of what the model is shown, and the times that it covers."""

    start: float
    end: float
    piece: Run | Derived


class _SessionReader:
    """Turns the events of a session into entries.

    Attributes:
        writer: The dialog in which the session goes on.
        owner: The app.
        unread: What is not read.
    """

    def __init__(self, key: str, owner: str) -> None:
        self.owner = owner
        self.writer = DialogWriter("main", NAME)
        self.unread = Unread({**PARTS, "message": "parts role"})
        self._key = key
        self._read = item_reader("gemini")
        self._shown: list[_ShownPiece] = []
        self._starts: dict[str, tuple[Mark, list[_ShownPiece]]] = {}
        self._forks = 0

    def read(self, item: Item) -> Iterator[Event]:
        """Read an event."""
        event = _camel(item.expect("an event"))
        yield from self._rewind(_rewound(event))
        self._starts.setdefault(fields.text(event, "invocationId"), (self.writer.mark(), [*self._shown]))
        at, record = fields.moment(event.get("timestamp")), fields.text(event, "id") or str(item.ordinal)
        compaction = _camel(fields.mapping(_camel(fields.mapping(event, "actions")), "compaction"))
        origin, start = item.origin(record), self.writer.count
        self.unread.see(event.get("content") or compaction.get("compactedContent"), item.place, "message")
        about = {"id": f"{self._key}:{record}", "timestamp": at, "metadata": kept(event, _READ)}
        message = message_of(event, self._read, **about)
        if message is not None:
            yield from self.writer.say(message, origin, counted=1)
            self._shown.append(_ShownPiece(at, at, self.writer.run(start, self.writer.count)))
        else:
            yield self.writer.put(Custom(custom_type=f"{NAME}/event", data=clean(item.value), at=at), origin)
        if compaction:
            entry = self.writer.compaction(self._compacted(compaction), at=at)
            yield self.writer.put(entry, item.origin(f"{record}:compaction"))

    def _rewind(self, invocation: str) -> Iterator[Event]:
        """Begin a branch where an invocation began, if there is one."""
        if invocation and invocation in self._starts:
            mark, shown = self._starts[invocation]
            self._forks += 1
            self.writer, self._shown = mark.writer.fork(f"branch:{self._forks}", mark), [*shown]
            yield self.writer.branch(self.owner)

    def _compacted(self, compaction: Mapping[str, object]) -> list[Run | Derived]:
        """Put the text of a compaction in place of what is within its times; an older text that it covers only in part stays."""
        start, end = (fields.moment(compaction.get(f"{key}Timestamp")) for key in ("start", "end"))
        gone = [shown.piece for shown in self._shown if start <= shown.start and shown.end <= end]
        (said,) = self._read(fields.mapping(compaction, "compactedContent"))
        sources = tuple(piece for piece in gone if isinstance(piece, Run)) or tuple(self.writer.spans())
        summary = _ShownPiece(
            start, end, Derived(text="\n\n".join(map(words_of, said.contents)), label="summary", sources=sources)
        )
        rest = [shown for shown in self._shown if shown.piece not in gone]
        self._shown = sorted([*rest, summary], key=lambda shown: shown.end)
        return [shown.piece for shown in self._shown]
