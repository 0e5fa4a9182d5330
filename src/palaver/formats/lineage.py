"""The order of recorded model calls, and the dialog that each continues. A call has its whole request and the answer, so that the requests of a run grow.

A request that continues an earlier one differently begins a branch, unless it says that a text stands for earlier messages: that is a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from palaver.formats import fields
from palaver.formats.events import NOTHING, Loss
from palaver.formats.lists import digest_of
from palaver.messages import Message, from_chat_dict

MARK = "cache_control"
"""The mark at the end of a prefix for Anthropic's cache. It moves from call to call, so it is not part of a message."""


class LoggedCall(NamedTuple):
    """A call.

    Attributes:
        name: Its name.
        messages: The request.
        response: The answer, or empty.
        value: The whole object: messages, response, kwargs or args, timestamp, cost.
        agent: The name of the agent that called, or empty.
        inside: What of another agent's turn it was part of, such as a tool call; or empty.
    """

    name: str
    messages: Sequence[object]
    response: Mapping[str, object]
    value: Mapping[str, object]
    agent: str = ""
    inside: str = ""

    @property
    def at(self) -> float:
        """When it was made, in seconds since 1970-01-01 UTC; 0.0 if not recorded."""
        return fields.moment(self.value.get("timestamp")) or fields.moment(self.response.get("created"))

    @property
    def model(self) -> str:
        """The model that answered, or empty."""
        return fields.text(self.response, "model")

    @property
    def answer(self) -> Mapping[str, object]:
        """The answering message, or empty."""
        return fields.mapping(next(iter(fields.objects(self.response, "choices")), NOTHING), "message")

    @property
    def tools(self) -> object:
        """The declared tools."""
        return fields.mapping(self.value, "kwargs").get("tools") or self.value.get("tools")

    @property
    def provider(self) -> str | None:
        """Who served the model, or None."""
        return fields.text(self.value, "provider") or None

    @property
    def instructions(self) -> Sequence[object]:
        """The instructions that are no message, as blocks of text."""
        return fields.items(self.value, "instructions")


class CallDialect(NamedTuple):
    """How the messages of calls are written.

    Attributes:
        read: Reads a message, with fields for it.
        essence: Returns a digest of a message's content. It is the same for an answer and for the form in which it is sent back.
        replaces: Returns whether a message is a text in place of earlier ones.
    """

    read: Callable[..., Message]
    essence: Callable[[object], bytes]
    replaces: Callable[[object], bool] = lambda _message: False


def _essence(message: object) -> bytes:
    if not isinstance(message, dict):
        return digest_of(message)
    calls = [
        [call.get("id"), *(fields.mapping(call, "function").get(name) for name in ("name", "arguments"))]
        for call in fields.objects(message, "tool_calls")
    ]
    return digest_of([message.get("role"), _content(message.get("content")), calls, message.get("tool_call_id")])


def _content(content: object) -> object:
    """Return content without cache marks. Text is equal alone or as parts, and None is empty."""
    if not isinstance(content, list):
        return content or ""
    parts = [
        {name: value for name, value in part.items() if name != MARK} if isinstance(part, dict) else part
        for part in content
    ]
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.keys() <= {"type", "text"}]
    if len(texts) == len(parts) and all(isinstance(text, str) for text in texts):
        return "\n".join(str(text) for text in texts)
    return parts


CHAT = CallDialect(from_chat_dict, _essence)
"""The messages of chat completions."""


Reading: TypeAlias = Callable[[], LoggedCall | Loss]
"""Reads a call again."""


class CallPlace(NamedTuple):
    """A call's place in the run.

    Attributes:
        read: Reads it again.
        dialog: The number of its dialog.
        shared: The number of sent messages that the dialog already shows, including inherited ones.
        parent: The number of the dialog that this one forks from, if this call begins it; or else -1.
        kept: Of a call after a compaction, the number of each shared message among those that the dialog showed before; -1 for other texts.
    """

    read: Reading
    dialog: int
    shared: int
    parent: int = -1
    kept: Sequence[int] = ()


class _KnownCall(NamedTuple):
    """A call, by the digests of what it sent and of the answer."""

    read: Reading
    sent: list[bytes]
    answer: bytes
    replaced: int
    inside: str


class CallSurvey:
    """The first pass: finds the order of the calls, and the dialog that each continues."""

    def __init__(
        self,
        calls: Iterable[tuple[Reading, LoggedCall | Loss]],
        place: str,
        *,
        timed: bool,
        dialect: CallDialect = CHAT,
    ) -> None:
        """Read the calls once; `place` is that of the whole run. With `timed`, their times are their order, else the calls are in order."""
        self.losses: list[Loss] = []
        self.place = place
        self.dialect = dialect
        self.first: LoggedCall | None = None
        known: list[tuple[float, str, _KnownCall]] = []
        for read, call in calls:
            if isinstance(call, Loss):
                self.losses.append(call)
                continue
            if self.first is None or call.at < self.first.at:  # files of an archive are in no particular order
                self.first = call._replace(messages=(), value={"timestamp": call.at})
            answer = dialect.essence(call.answer) if call.answer else b""
            replaced = max(
                (number for number, sent in enumerate(call.messages, 1) if dialect.replaces(sent)), default=0
            )
            sent = list(map(dialect.essence, call.messages))
            known.append((call.at, call.name, _KnownCall(read, sent, answer, replaced, call.inside)))
        self._shown: list[list[bytes]] = []
        self._owners: list[list[int]] = []  # for each message of each dialog, the dialog that contains it
        self._inside: list[str] = []
        ordered = sorted(known, key=lambda call: call[:2]) if timed else known
        self.steps = tuple(self._step(call) for _, _, call in ordered)
        self.inner = {number for number, inside in enumerate(self._inside) if inside and number}
        outer = (owners for number, owners in enumerate(self._owners) if number not in self.inner)
        self.longest: Sequence[int] = max(outer, key=len, default=[])

    def _step(self, call: _KnownCall) -> CallPlace:
        """Find the dialog that shows most of the sent messages. If it continues differently, the call begins a branch, or follows a compaction."""
        known = [number for number, inside in enumerate(self._inside) if inside == call.inside]
        shared, dialog = max(((_common(self._shown[number], call.sent), number) for number in known), default=(0, -1))
        parent, kept = -1, list[int]()
        if dialog < 0 or shared < len(self._shown[dialog]):
            if dialog >= 0 and call.replaced:
                found = ((_kept(self._shown[number], call.sent, call.replaced), number) for number in known)
                kept, dialog = max(found, key=lambda each: (sum(place >= 0 for place in each[0]), each[1]))
                shared = len(kept)
                self._shown[dialog] = call.sent[:shared]
            else:
                parent = dialog
                self._shown.append(self._shown[parent][:shared] if known else [])
                self._owners.append(self._owners[parent][:shared] if known else [])
                self._inside.append(call.inside)
                dialog = len(self._shown) - 1
        new = [*call.sent[shared:], *([call.answer] if call.answer else [])]
        self._shown[dialog] += new
        self._owners[dialog] += [dialog] * len(new)
        return CallPlace(call.read, dialog, shared, parent, kept)


def _common(shown: Sequence[bytes], sent: Sequence[bytes]) -> int:
    """Count the leading messages that a request shares with what a dialog shows."""
    pairs = enumerate(zip(shown, sent, strict=False))
    return next((number for number, (message, other) in pairs if message != other), min(len(shown), len(sent)))


def _kept(shown: Sequence[bytes], sent: Sequence[bytes], replaced: int) -> list[int]:
    """Return the place of each sent message among those shown before, or -1, up to the last one that was shown or stands for others."""
    places, start = list[int](), 0
    for message in sent:
        places.append(next((place for place in range(start, len(shown)) if shown[place] == message), -1))
        start = max(start, places[-1] + 1)
    return places[: max(replaced, *(number + 1 for number, place in enumerate(places) if place >= 0), 0)]
