"""Answers of OpenAI's Responses API (platform.openai.com/docs/api-reference/responses, and …/responses-streaming).

Reasoning items are kept whole: without being stored at OpenAI, the next request must bring them back with their id and encrypted content, in
their place before what they led to. Calls are known by their `call_id`; the ids of items are OpenAI's own and stay in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palaver.messages import APITypes, StopReason
from palaver.models.answers.reading import AnswerReader, Json, items, kept, mapping, text
from palaver.models.events import Event
from palaver.wire import Request

__all__ = ["ResponsesAnswer"]

_PARTS = 1000
"""Parts that one item has at most: the place of a part is that of its item times this, and its own."""
_SEPARATOR = "\n\n"
"""What stands between the parts of a summary."""
_STOPS = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}


class ResponsesAnswer(AnswerReader):
    """Reads a response, or the events of its stream."""

    _api = APITypes.RESPONSE

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._spoken: dict[int, str] = {}
        self._last: dict[int, int] = {}
        self._done: set[int] = set()
        self._begun: set[int] = set()
        self._refused = False
        self._ids: list[str] = []

    def _whole(self, data: Json) -> Iterator[Event]:
        yield from self._finished(data)

    def _piece(self, data: Json) -> Iterator[Event]:
        kind = text(data.get("type"))
        if kind == "error":
            error = mapping(data.get("error")) or data
            raise self.failed(
                text(error.get("message")), text(error.get("code")), text(error.get("type")), details=data
            )
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            yield from self._finished(mapping(data.get("response")))
        elif kind in {"response.created", "response.in_progress"}:
            self._about_response(mapping(data.get("response")))
        elif kind == "response.output_item.added":
            yield from self._added(_number(data, "output_index"), mapping(data.get("item")))
        elif kind == "response.output_item.done":
            yield from self._item(_number(data, "output_index"), mapping(data.get("item")))
        elif kind.endswith(".delta"):
            yield from self._more(kind, data)

    # --- pieces ----------------------------------------------------------------------------------------------------------

    def _added(self, number: int, item: Json) -> Iterator[Event]:
        """Read the beginning of an item: of a call, its id and name."""
        if item.get("type") == "function_call":
            yield from self._begin_call(number, item)

    def _begin_call(self, number: int, item: Json) -> Iterator[Event]:
        if number not in self._begun:
            self._begun.add(number)
            yield from self._call(number * _PARTS, text(item.get("call_id")), text(item.get("name")))

    def _more(self, kind: str, data: Json) -> Iterator[Event]:
        number, piece = _number(data, "output_index"), text(data.get("delta"))
        place = number * _PARTS
        if kind == "response.output_text.delta":
            yield from self._say(place + _number(data, "content_index"), piece)
        elif kind == "response.refusal.delta":
            yield from self._refuse(place + _number(data, "content_index"), piece)
        elif kind == "response.reasoning_summary_text.delta":
            yield from self._think(place, piece, _number(data, "summary_index"))
        elif kind == "response.reasoning_text.delta":
            yield from self._think(place, piece, _number(data, "content_index"))
        elif kind == "response.function_call_arguments.delta":
            self._spoken[place] = self._spoken.get(place, "") + piece
            yield from self._call(place, arguments=piece)

    def _say(self, place: int, piece: str, **fields: Any) -> Iterator[Event]:  # noqa: ANN401 - fields of a block
        self._spoken[place] = self._spoken.get(place, "") + piece
        yield from self._text(place, piece, **fields)

    def _refuse(self, place: int, piece: str) -> Iterator[Event]:
        self._refused = True
        yield from self._say(place, piece, **({} if place in self._spoken else {"part_type": "refusal"}))

    def _think(self, place: int, piece: str, part: int) -> Iterator[Event]:
        """Read more of a summary; its parts are set apart."""
        said = self._spoken.get(place, "")
        missing = _SEPARATOR if part > self._last.get(place, 0) and said else ""
        self._last[place] = part
        self._spoken[place] = said + missing + piece
        yield from self._thinking(place, missing + piece)

    # --- whole items -----------------------------------------------------------------------------------------------------

    def _item(self, number: int, item: Json) -> Iterator[Event]:
        """Read an item that is whole: what its pieces have not told yet."""
        if number in self._done:
            return
        self._done.add(number)
        kind, place = text(item.get("type")), number * _PARTS
        if text(item.get("id")):
            self._ids.append(item["id"])
        if kind == "message":
            yield from self._message(place, item)
        elif kind == "reasoning":
            said = _SEPARATOR.join(
                text(part.get("text")) for part in items(item.get("summary")) or items(item.get("content"))
            )
            yield from self._thinking(
                place, self._rest(place, said), provider="openai", model=self._model, artefact=_artefact(item)
            )
        elif kind == "function_call":
            yield from self._begin_call(number, item)
            yield from self._call(place, arguments=self._rest(place, text(item.get("arguments"))))
        else:
            yield from self._unread(place, item)

    def _message(self, place: int, item: Json) -> Iterator[Event]:
        phase = kept({"phase": item.get("phase")})
        for offset, part in enumerate(items(item.get("content"))):
            at = place + offset
            if part.get("type") == "refusal":
                yield from self._refuse(at, self._rest(at, text(part.get("refusal"))))
                yield from self._text(at, "", **phase)
            else:
                more = kept(part, "text", "logprobs")
                yield from self._text(at, self._rest(at, text(part.get("text"))), **phase, **more)

    def _rest(self, place: int, whole: str) -> str:
        """Give what its pieces have not told of a text; where they told another one, they stand."""
        said = self._spoken.get(place, "")
        return whole[len(said) :] if whole.startswith(said) else ""

    # --- the end ---------------------------------------------------------------------------------------------------------

    def _about_response(self, response: Json) -> None:
        self._response_id = text(response.get("id")) or self._response_id
        self._named(response.get("model"))

    def _finished(self, response: Json) -> Iterator[Event]:
        status, error = text(response.get("status")), mapping(response.get("error"))
        self._about_response(response)
        if error or status in {"failed", "cancelled"}:
            raise self.failed(
                text(error.get("message")) or f"the response {status}", text(error.get("code")), details=response
            )
        if not isinstance(response.get("output"), list | tuple):
            raise self.broken("The answer has no output")
        for number, item in enumerate(items(response["output"])):
            yield from self._item(number, item)
        why = text(mapping(response.get("incomplete_details")).get("reason"))
        self._stop = _STOPS.get(why, why) or ("max_tokens" if status == "incomplete" else "completed")
        if self._ids:
            self._about["items"] = self._ids
        yield from self._used(response.get("usage"))

    def _reason(self) -> StopReason | None:
        """Give why the model stopped: the API tells only when it was cut off."""
        if self._stop != "completed":
            return super()._reason()
        calls = any(block.type == "tool_call" for block in self.assembly.made().contents)
        return StopReason.ERROR if self._refused else StopReason.TOOL_CALLS if calls else StopReason.STOP


def _artefact(item: Json) -> Json:
    """Give a reasoning item as it goes back. Its status is none of the request's fields."""
    return {key: value for key, value in item.items() if key != "status" and value is not None}


def _number(data: Json, key: str) -> int:
    value = data.get(key)
    return value if isinstance(value, int) and value >= 0 else 0
