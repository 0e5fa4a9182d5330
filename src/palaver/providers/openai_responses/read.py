"""Answers of OpenAI's Responses API (platform.openai.com/docs/api-reference/responses, and …/responses-streaming).

Reasoning items are kept whole: unless OpenAI stores them, the next request must send them back with id and encrypted content, before the items
they led to. Calls are identified by `call_id`; the ids of items are OpenAI's own and stay in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator

from palaver.messages import APITypes, StopReason
from palaver.providers.openai_responses.items import CONSENT, CUSTOM, RUN, consent_call, run_with
from palaver.providers.provider import Event
from palaver.providers.reader import AnswerReader, Json, as_json, items, kept, mapping, text
from palaver.wire import TRANSFORMED, Request

_PARTS = 1000
"""The most parts of one item: the index of a block is that of its item times this, plus its part."""
_SEPARATOR = "\n\n"
"""Separates the parts of a summary."""
_READ = frozenset({
    "id", "object", "created_at", "completed_at", "status", "error", "incomplete_details", "model", "output", "output_text", "usage", TRANSFORMED,
    "background", "conversation", "context_management", "frequency_penalty", "include", "instructions", "max_output_tokens", "max_tool_calls",
    "metadata", "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention",
    "reasoning", "safety_identifier", "service_tier", "store", "stream", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
    "truncation", "user",
})  # fmt: skip
"""The fields of a response that are read, or repeat the request."""
_STOPS = {"max_output_tokens": "max_tokens", "content_filter": "content_filter"}


class ResponsesAnswer(AnswerReader):
    """Reads a response, or the events of its stream."""

    _api = APITypes.RESPONSE

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._given: dict[int, str] = {}
        self._last: dict[int, int] = {}
        self._done: set[int] = set()
        self._started: set[int] = set()
        self._refused = False
        self._ids: list[str] = []
        self._tools = () if request.view is None else request.view.tools

    def _whole(self, data: Json) -> Iterator[Event]:
        yield from self._finished(data)

    def _piece(self, data: Json) -> Iterator[Event]:
        kind = text(data.get("type"))
        if kind == "error":
            error = mapping(data.get("error")) or data
            raise self.failed(error, data)
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            yield from self._finished(mapping(data.get("response")))
        elif kind in {"response.created", "response.in_progress"}:
            self._header(mapping(data.get("response")))
        elif kind == "response.output_item.added":
            yield from self._start(_number(data, "output_index"), mapping(data.get("item")))
        elif kind == "response.output_item.done":
            yield from self._item(_number(data, "output_index"), mapping(data.get("item")))
        elif kind.endswith(".delta"):
            yield from self._more(kind, data)

    # --- pieces ----------------------------------------------------------------------------------------------------------

    def _start(self, number: int, item: Json) -> Iterator[Event]:
        """Read the start of an item: the id and name of a call."""
        if item.get("type") == "function_call" and number not in self._started:
            self._started.add(number)
            yield from self._call(number * _PARTS, text(item.get("call_id")), text(item.get("name")))

    def _more(self, kind: str, data: Json) -> Iterator[Event]:
        number, piece = _number(data, "output_index"), text(data.get("delta"))
        place = number * _PARTS
        part = _number(data, "summary_index" if "summary" in kind else "content_index")
        if kind == "response.output_text.delta":
            yield from self._say(place + part, piece)
        elif kind == "response.refusal.delta":
            yield from self._refuse(place + part, piece)
        elif kind in {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}:
            yield from self._think(place, piece, part)
        elif kind == "response.function_call_arguments.delta":
            self._given[place] = self._given.get(place, "") + piece
            yield from self._call(place, arguments=piece)

    def _say(self, place: int, piece: str, **fields: object) -> Iterator[Event]:
        self._given[place] = self._given.get(place, "") + piece
        yield from self._text(place, piece, **fields)

    def _refuse(self, place: int, piece: str) -> Iterator[Event]:
        self._refused = True
        yield from self._say(place, piece, **({} if place in self._given else {"part_type": "refusal"}))

    def _think(self, place: int, piece: str, part: int) -> Iterator[Event]:
        """Read more of a summary; a separator precedes each further part."""
        said = self._given.get(place, "")
        missing = _SEPARATOR if part > self._last.get(place, 0) and said else ""
        self._last[place] = part
        self._given[place] = said + missing + piece
        yield from self._thinking(place, missing + piece)

    # --- whole items -----------------------------------------------------------------------------------------------------

    def _item(self, number: int, item: Json) -> Iterator[Event]:
        """Read a whole item: the rest after its pieces."""
        if number in self._done:
            return
        self._done.add(number)
        kind, place = text(item.get("type")), number * _PARTS
        if text(item.get("id")):
            self._ids.append(item["id"])
        if kind == "message":
            yield from self._message(place, item)
        elif kind == "reasoning":
            parts = items(item.get("summary")) or items(item.get("content"))
            rest = self._rest(place, _SEPARATOR.join(text(part.get("text")) for part in parts))
            # requests accept a reasoning item without its status
            artefact = {key: value for key, value in item.items() if key != "status" and value is not None}
            yield from self._thinking(place, rest, provider="openai", model=self._model, artefact=artefact)
        elif kind == "function_call":
            yield from self._start(number, item)
            own = kept(item, "id", "call_id", "name", "arguments", "status")
            yield from self._call(place, arguments=self._rest(place, text(item.get("arguments"))), **own)
        elif kind == CUSTOM:
            args = as_json({self._argument(text(item.get("name"))): text(item.get("input"))})
            yield from self._call(place, text(item.get("call_id")), text(item.get("name")), args, artefact=item)
        else:
            yield from self._own(place, item)

    def _own(self, place: int, item: Json) -> Iterator[Event]:
        """Read an item of one of the provider's own tools. A tool of the caller's may run it, or a person decide about it."""
        kind = text(item.get("type"))
        if kind in RUN and RUN[kind][0] in self._names:
            warned = {"warned": True} if item.get("pending_safety_checks") else {}
            args = as_json(run_with(item))
            yield from self._call(place, text(item.get("call_id")), RUN[kind][0], args, artefact=item, **warned)
        elif kind == CONSENT:
            yield from self._block(place, consent_call(item))
        else:
            yield from self._unknown(place, item)

    def _argument(self, name: str) -> str:
        """Return the name of the one argument of a tool that takes free text."""
        declared = next((tool for tool in self._tools if tool.name == self._names.get(name) and tool.format), None)
        return next(iter(declared.parameters.get("properties", ()))) if declared else "input"

    def _message(self, place: int, item: Json) -> Iterator[Event]:
        phase = kept(item, "id", "type", "role", "status", "content")
        for offset, part in enumerate(items(item.get("content"))):
            at = place + offset
            if part.get("type") == "refusal":
                yield from self._refuse(at, self._rest(at, text(part.get("refusal"))))
                yield from self._text(at, "", **phase)
            else:
                more = kept(part, "text", "logprobs")
                yield from self._text(at, self._rest(at, text(part.get("text"))), **phase, **more)

    def _rest(self, place: int, whole: str) -> str:
        """Return the part of a text that has not arrived in pieces; nothing where they disagree with it."""
        said = self._given.get(place, "")
        return whole[len(said) :] if whole.startswith(said) else ""

    # --- the end ---------------------------------------------------------------------------------------------------------

    def _header(self, response: Json) -> None:
        self._response_id = text(response.get("id")) or self._response_id
        self._served_by(response.get("model"))

    def _finished(self, response: Json) -> Iterator[Event]:
        status, error = text(response.get("status")), mapping(response.get("error"))
        self._header(response)
        if error or status in {"failed", "cancelled"}:
            raise self.failed({"message": f"the response is {status}", **error}, response)
        if not isinstance(response.get("output"), list | tuple):
            raise self.broken("The answer has no output.")
        for number, item in enumerate(items(response["output"])):
            yield from self._item(number, item)
        why = text(mapping(response.get("incomplete_details")).get("reason"))
        self._stop = _STOPS.get(why, why) or ("max_tokens" if status == "incomplete" else "completed")
        if self._ids:
            self._metadata["items"] = self._ids
        self._metadata |= kept({TRANSFORMED: response.get(TRANSFORMED)})
        self._others(response, _READ)
        yield from self._used(response.get("usage"))

    def _reason(self, *, calls: bool) -> StopReason | None:
        """Return the stop reason; the API names it only for a cut answer."""
        if self._stop != "completed":
            return super()._reason(calls=calls)
        return StopReason.REFUSAL if self._refused else StopReason.TOOL_CALLS if calls else StopReason.STOP


def _number(data: Json, key: str) -> int:
    value = data.get(key)
    return value if isinstance(value, int) and value >= 0 else 0


READER = ResponsesAnswer
