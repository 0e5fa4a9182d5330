"""What the readers of all answers share: the message they build, names mapped back, and what makes an answer broken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from palaver.errors import BrokenAnswer, ProviderError
from palaver.messages import (
    APITypes,
    Content,
    StopReason,
    Usage,
    stop_reason_of,
)
from palaver.messages.parts import blocks_of
from palaver.models.assembly import Assembly
from palaver.models.events import BlockEvent, End, Event, TextDelta, ThinkingDelta, ToolCallDelta, UsageEvent
from palaver.models.failures import Fault, failed
from palaver.wire import Request

__all__ = ["AnswerReader", "Json", "items", "kept", "mapping", "text"]

Json: TypeAlias = Mapping[str, Any]
"""A JSON object, as a vendor's client gives it."""


_OK = 200
"""The status of an answer that says inside that it failed."""


class AnswerReader(ABC):
    """Reads one answer.

    Feed it the pieces of a stream with :meth:`piece`, or a whole answer with :meth:`whole`; then :meth:`end` gives the last event. Every
    event that is yielded has been added to :attr:`assembly` before.

    Attributes:
        assembly: What has come so far.
    """

    _api: ClassVar[APITypes] = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request; `provider` is who is asked, as its messages name it."""
        self.assembly = Assembly(model=request.model, provider=provider, api_type=self._api)
        self._provider = provider
        self._model = request.model
        self._names = request.tool_names
        self._raw: list[Json] = []
        self._streamed = True
        self._stop = ""
        self._about: dict[str, Any] = {}
        self._response_id: str | None = None
        self._held: dict[int, str] = {}

    def piece(self, data: Json) -> Iterator[Event]:
        """Read the next piece of a stream.

        Raises:
            BrokenAnswer: It makes no sense.
            ProviderError: The provider says that it failed.
        """
        self._raw.append(data)
        yield from self._piece(data)

    def whole(self, data: Json) -> Iterator[Event]:
        """Read an answer that came whole.

        Raises:
            BrokenAnswer: It makes no sense.
            ProviderError: The provider says that it failed.
        """
        self._raw.append(data)
        self._streamed = False
        yield from self._whole(data)

    @property
    def begun(self) -> bool:
        """Whether anything of the answer has come."""
        return bool(self._raw)

    @property
    def told(self) -> bool:
        """Whether the answer has said why it ends: then nothing of it is missing."""
        return bool(self._stop)

    def end(self) -> End:
        """Give the last event.

        Raises:
            BrokenAnswer: The answer is not whole.
        """
        if not self._stop:
            raise self.broken("The answer stops before its end")
        metadata = {"stop_reason": self._stop, **self._about}
        message = self.assembly.made(
            stop_reason=self._reason(), response_id=self._response_id, metadata=metadata, usage=self.assembly.usage
        )
        end = End(message, tuple(self._raw) if self._streamed else self._raw[-1])
        self.assembly.add(end)
        return end

    def broken(self, why: str) -> BrokenAnswer:
        """Make the error of an answer that makes no sense or is cut off, with what has come of it."""
        partial = self.assembly.partial
        if not self.assembly.ended:
            partial = partial.model_copy(update={"stop_reason": StopReason.ERROR, "error": f"{why}."})
        return BrokenAnswer(f"{why}.", provider=self._provider, model=self._model, partial=partial)

    def failed(self, message: str, *codes: str, details: object = None) -> ProviderError:
        """Make the error of an answer that says, in the provider's words, that it failed."""
        partial = self.assembly.partial
        return failed(
            Fault(
                provider=self._provider,
                model=self._model,
                message=message,
                status=_OK,
                codes=tuple(filter(None, codes)),
                details=details,
                partial=partial if partial.contents else None,
            )
        )

    @abstractmethod
    def _piece(self, data: Json) -> Iterator[Event]:
        """Read the next piece of a stream."""

    @abstractmethod
    def _whole(self, data: Json) -> Iterator[Event]:
        """Read an answer that came whole."""

    def _reason(self) -> StopReason | None:
        """Give why the model stopped, in our words. A model that calls a tool stops for it, whatever its server calls that."""
        reason = stop_reason_of(self._stop)
        calls = any(block.type == "tool_call" for block in self.assembly.made().contents)
        return StopReason.TOOL_CALLS if calls and reason in {None, StopReason.STOP} else reason

    # --- what a reader says ----------------------------------------------------------------------------------------------

    def _said(self, event: Event) -> Event:
        self.assembly.add(event)
        return event

    def _text(self, index: int, text: str, **fields: Any) -> Iterator[Event]:  # noqa: ANN401 - fields of a block
        text = self._in_characters(index, text)
        if text or fields:
            yield self._said(TextDelta(text, index, fields))

    def _thinking(
        self,
        index: int,
        text: str,
        signature: str | None = None,
        **fields: Any,  # noqa: ANN401 - fields of a block
    ) -> Iterator[Event]:
        text = self._in_characters(index, text)
        if text or fields or signature is not None:
            yield self._said(ThinkingDelta(text, index, signature, fields))

    def _call(
        self,
        index: int,
        call_id: str = "",
        name: str = "",
        arguments: str = "",
        **fields: Any,  # noqa: ANN401 - fields of a block
    ) -> Iterator[Event]:
        if call_id or name or arguments or fields:
            yield self._said(ToolCallDelta(index, call_id, self._names.get(name, name), arguments, fields))

    def _block(self, index: int, block: Content) -> Iterator[Event]:
        yield self._said(BlockEvent(block, index))

    def _unread(self, index: int, item: Json) -> Iterator[Event]:
        """Keep a part of the provider's own whole, as one that is imported is kept."""
        kind = text(item.get("type")) or "part"
        yield from self._block(index, blocks_of(({**item, "type": kind},))[0])

    def _used(self, usage: object) -> Iterator[Event]:
        if isinstance(usage, Mapping) and usage:
            yield self._said(UsageEvent(Usage({**self.assembly.usage, **usage})))

    def _named(self, model: object) -> None:
        """Keep how the answer names the model, where that is not how it was asked for."""
        if isinstance(model, str) and model and model != self._model:
            self._about["served_model"] = model

    def _in_characters(self, index: int, piece: str) -> str:
        """Hold back the first half of a character that is cut in two, until the other one comes: nobody can show half of one."""
        whole = self._held.pop(index, "") + piece
        if whole and "\ud800" <= whole[-1] <= "\udbff":
            self._held[index] = whole[-1]
            whole = whole[:-1]
        return whole.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _halves(whole) else whole


def _halves(piece: str) -> bool:
    return not piece.isascii() and any("\ud800" <= character <= "\udfff" for character in piece)


def mapping(value: object) -> Json:
    """Give a JSON object, or an empty one for what is none."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Json]:
    """Give the objects of a JSON list, or none for what is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list | tuple) else []


def text(value: object) -> str:
    """Give a JSON string, or an empty one for what is none."""
    return value if isinstance(value, str) else ""


def kept(item: Json, *known: str) -> dict[str, Any]:
    """Give the fields of an item beside the known ones, as far as they say something and no block means something else by them."""
    return {
        key: value
        for key, value in item.items()
        if key not in known and key not in {"type", "content", "changes"} and value not in (None, [], {}, "")
    }
