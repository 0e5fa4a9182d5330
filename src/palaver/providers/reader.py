"""The common part of all answer readers: the message they build, tool names mapped back, and broken answers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, TypeAlias

from palaver.errors import ProviderError
from palaver.messages import (
    APITypes,
    AssistantMessage,
    Content,
    FrozenDict,
    StopReason,
    ToolCallContent,
    Usage,
    stop_reason_of,
)
from palaver.messages.forms import blocks_of
from palaver.providers.assembly import Assembly
from palaver.providers.failures import failed
from palaver.providers.provider import BlockEvent, End, Event, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
from palaver.wire import Request

Json: TypeAlias = Mapping[str, Any]
"""A JSON object, as a vendor's client returns it."""


OTHERS = "other_fields"
"""The key in the metadata of an answer under which it has fields that nobody knows."""


class AnswerReader(ABC):
    """Reads one answer.

    Pass it the pieces of a stream with :meth:`piece`, or a whole answer with :meth:`whole`; then :meth:`end` returns the last event. Every
    event is added to :attr:`assembly` before it is yielded.

    Attributes:
        assembly: The part that has arrived.
    """

    _api: ClassVar[APITypes] = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request; `provider` is the name that its messages record."""
        self.assembly = Assembly(model=request.model, provider=provider, api_type=self._api)
        self._provider = provider
        self._model = request.model
        self._names = request.tool_names
        self._raw: list[Json] = []
        self._streamed = True
        self._stop = ""
        self._metadata: dict[str, Any] = {}
        self._response_id: str | None = None
        self._halves: dict[int, str] = {}

    def piece(self, data: Json) -> Iterator[Event]:
        """Read the next piece of a stream.

        Raises:
            ProviderError: The piece is invalid, or reports a failure.
        """
        self._raw.append(data)
        yield from self._piece(data)

    def whole(self, data: Json) -> Iterator[Event]:
        """Read an answer that arrived whole.

        Raises:
            ProviderError: The answer is invalid, or reports a failure.
        """
        self._raw.append(data)
        self._streamed = False
        yield from self._whole(data)

    @property
    def begun(self) -> bool:
        """Whether any part of the answer has arrived."""
        return bool(self._raw)

    @property
    def complete(self) -> bool:
        """Whether the stop reason has arrived; nothing is missing then."""
        return bool(self._stop)

    def end(self) -> End:
        """Return the last event.

        Raises:
            ProviderError: The answer is not complete.
        """
        if not self._stop:
            raise self.broken("The answer stops before its end.")
        message = self.assembly.message(
            response_id=self._response_id,
            metadata={"stop_reason": self._stop, **self._metadata},
            usage=self.assembly.usage,
        )
        message = message.model_copy(update={"contents": self._contents(message.contents)})
        reason = self._reason(calls=message.is_function_call)
        contents = cut_off(message.contents) if reason in _CUT else message.contents
        metadata = {**message.metadata, **self._told(message)}
        message = message.model_copy(
            update={"stop_reason": reason, "contents": contents, "metadata": FrozenDict(metadata)}
        )
        end = End(message, tuple(self._raw) if self._streamed else self._raw[-1])
        self.assembly.add(end)
        return end

    def broken(self, why: str) -> ProviderError:
        """Return the error of an invalid or incomplete answer, with the part that arrived."""
        partial = self.assembly.partial
        if not self.assembly.ended:
            partial = partial.model_copy(update={"stop_reason": StopReason.ERROR, "error": why})
        return ProviderError(why, kind="broken", provider=self._provider, model=self._model, partial=partial)

    def failed(self, error: Json, details: object = None) -> ProviderError:
        """Return the error that an answer reports, from its `message` and, if present, `status`, `code` and `type`."""
        partial = self.assembly.partial
        codes = (error.get("status"), error.get("code"), error.get("type"))
        known = failed(
            self._provider,
            text(error.get("message")),
            model=self._model,
            status=200,
            codes=tuple(str(code) for code in codes if isinstance(code, str | int) and code),
            details=details,
        )
        known.partial = partial if partial.contents else None
        return known

    @abstractmethod
    def _piece(self, data: Json) -> Iterator[Event]:
        """Read the next piece of a stream."""

    @abstractmethod
    def _whole(self, data: Json) -> Iterator[Event]:
        """Read an answer that arrived whole."""

    def _contents(self, contents: tuple[Content, ...]) -> tuple[Content, ...]:
        """Return the blocks of the whole answer."""
        return contents

    def _told(self, _message: AssistantMessage) -> dict[str, Any]:
        """Return what the whole answer says about itself, for its metadata."""
        return {}

    def _reason(self, *, calls: bool) -> StopReason | None:
        """Return the stop reason. If the model calls a tool, that is the reason, even if the server says `stop` (Gemini, Ollama)."""
        reason = stop_reason_of(self._stop)
        return StopReason.TOOL_CALLS if calls and reason in {None, StopReason.STOP} else reason

    def _others(self, said: Json, known: AbstractSet[str]) -> None:
        """Keep what a server says beyond these fields, which are read or repeat the request."""
        others = kept(said, *known)
        if others:
            self._metadata[OTHERS] = {**self._metadata.get(OTHERS, {}), **others}

    # --- events ----------------------------------------------------------------------------------------------------------

    def _add(self, event: Event) -> Event:
        self.assembly.add(event)
        return event

    def _text(self, index: int, text: str, **fields: object) -> Iterator[Event]:
        text = self._in_characters(index, text)
        if text or fields:
            yield self._add(TextDelta(text, index, fields))

    def _thinking(self, index: int, text: str, signature: str | None = None, **fields: object) -> Iterator[Event]:
        text = self._in_characters(index, text)
        if text or fields or signature is not None:
            yield self._add(ThinkingDelta(text, index, signature, fields))

    def _call(
        self, index: int, call_id: str = "", name: str = "", arguments: str = "", **fields: object
    ) -> Iterator[Event]:
        arguments = self._in_characters(index, arguments)
        if call_id or name or arguments or fields:
            yield self._add(ToolCallDelta(index, call_id, self._names.get(name, name), arguments, fields))

    def _block(self, index: int, block: Content) -> Iterator[Event]:
        yield self._add(BlockEvent(block, index))

    def _unknown(self, index: int, item: Json) -> Iterator[Event]:
        """Keep a provider-specific part unchanged, as an importer does."""
        kind = text(item.get("type")) or "part"
        yield from self._block(index, blocks_of(({**item, "type": kind},))[0])

    def _used(self, usage: object) -> Iterator[Event]:
        if isinstance(usage, Mapping) and usage:
            yield self._add(UsageEvent(Usage({**self.assembly.usage, **usage})))

    def _served_by(self, model: object) -> None:
        """Keep the model that the answer names, if it differs from the requested one."""
        if isinstance(model, str) and model and model != self._model:
            self._metadata["served_model"] = model

    def _in_characters(self, index: int, piece: str) -> str:
        """Return a piece in whole characters: the first half of a split character waits for the second."""
        whole = self._halves.pop(index, "") + piece
        if whole and "\ud800" <= whole[-1] <= "\udbff":
            self._halves[index] = whole[-1]
            whole = whole[:-1]
        if whole.isascii() or not any("\ud800" <= character <= "\udfff" for character in whole):
            return whole
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


_CUT = frozenset({StopReason.LENGTH, StopReason.OVERFLOW})

CUT_OFF = "The call was cut off at the most tokens that the answer may have."
"""Why a call at the end of a cut answer does not run: its arguments may lack their end even where they can be read."""


def cut_off(contents: tuple[Content, ...]) -> tuple[Content, ...]:
    """Return the blocks of a cut answer: a call at its end has an error."""
    last = contents[-1] if contents else None
    if not isinstance(last, ToolCallContent) or last.error is not None:
        return contents
    return (*contents[:-1], last.model_copy(update={"raw_args": last.arguments, "error": CUT_OFF}))


def mapping(value: object) -> Json:
    """Return a JSON object; an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Json]:
    """Return the objects of a JSON list; none for any other value."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def text(value: object) -> str:
    """Return a JSON string; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def as_json(arguments: object) -> str:
    """Return arguments as JSON text. Anthropic, Google and Ollama send an object, or nothing if there are none."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":")) if arguments else ""


def kept(item: Json, *known: str) -> dict[str, Any]:
    """Return the fields of an item other than the known ones, without empty values and the names that blocks use themselves."""
    return {
        key: value
        for key, value in item.items()
        if key not in {"type", "content", "changes", *known} and value not in (None, [], {}, "")
    }
