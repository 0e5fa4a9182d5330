"""Answers of Gemini's Interactions API (ai.google.dev/gemini-api/docs/interactions-overview; the types of `google-genai`, `interactions`).

A stream begins each step, adds to it, and may end it; what it adds to the step of a tool of Google's own are fields. A thought's signature arrives
after its summary. Thoughts and such steps are kept whole, because they go back as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import APITypes, ImageContent, Media, StopReason
from palaver.providers.provider import End, Event
from palaver.providers.reader import AnswerReader, Json, as_json, items, kept, mapping, text
from palaver.view.blocks import CARRIED
from palaver.wire import Request

_PARTS = 1000
"""The most pieces of one step: the index of a block is that of its step times this, plus its piece."""
_SEPARATOR = "\n\n"
"""Separates the parts of a summary."""
_REASONS: Mapping[str, StopReason] = {
    "completed": StopReason.STOP,
    "requires_action": StopReason.TOOL_CALLS,
    "incomplete": StopReason.LENGTH,
    "budget_exceeded": StopReason.LENGTH,
    "requires_continuation": StopReason.CONTINUE,
    "blocked": StopReason.CONTENT_FILTER,
}
"""The statuses of an answer that has ended, and `blocked`, our word for one that failed because its words were blocked."""
_CALL, _OUTPUT, _THOUGHT = "function_call", "model_output", "thought"
_FAILED = frozenset({"failed", "cancelled"})
_RUNNING = frozenset({"", "in_progress", "queued", "idle"})
_BLOCKED = frozenset({
    "safety", "recitation", "language", "prohibited_content", "spii", "blocklist", "image_safety", "image_prohibited_content",
    "image_recitation", "image_other", "content_blocked",
})  # fmt: skip
"""Codes of errors by which words were blocked (ai.google.dev/gemini-api/docs/api-errors)."""


class InteractionAnswer(AnswerReader):
    """Reads an interaction, or the events of its stream."""

    _api = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._open: dict[int, dict[str, Any]] = {}
        self._done: set[int] = set()
        self._status = ""

    def _whole(self, data: Json) -> Iterator[Event]:
        error = mapping(data.get("error"))
        if error:
            raise self.failed(error, error.get("details"))
        yield from self._finished(data)
        if not self._stop:
            raise self.broken(f"The interaction has not ended: its status is {text(data.get('status'))!r}.")

    def _piece(self, data: Json) -> Iterator[Event]:
        kind, number = text(data.get("event_type")), _number(data)
        if kind == "error":
            raise self.failed(mapping(data.get("error")), data)
        if kind == "step.start":
            yield from self._start(number, mapping(data.get("step")))
        elif kind == "step.delta":
            yield from self._more(number, mapping(data.get("delta")))
        elif kind == "step.stop":
            yield from self._close(number)
        elif kind == "interaction.status_update":
            self._status = text(data.get("status"))
            yield from self._used(data.get("usage"))
        elif isinstance(data.get("interaction"), Mapping):  # created, and completed
            yield from self._finished(mapping(data["interaction"]))

    def end(self) -> End:
        """Return the last event. A stream may end with a status alone.

        Raises:
            ProviderError: The answer is not complete, or has failed.
        """
        if not self._stop:
            for _ in self._finished({"status": self._status}):
                pass
        return super().end()

    # --- pieces ----------------------------------------------------------------------------------------------------------

    def _start(self, number: int, step: Json) -> Iterator[Event]:
        """Begin a step. Its first pieces may be in it."""
        if number in self._open:
            return
        kind, place = text(step.get("type")), number * _PARTS
        self._open[number] = {**step, "content": [], "summary": []} if kind in {_OUTPUT, _THOUGHT} else dict(step)
        if kind == _CALL:
            more = kept(step, "type", "id", "name", "arguments", "signature")
            more |= {"artefact": {"signature": step["signature"]}} if text(step.get("signature")) else {}
            name = text(step.get("name"))
            yield from self._call(place, text(step.get("id")), name, as_json(step.get("arguments")), **more)
        for piece in items(step.get("content")) if kind == _OUTPUT else ():
            yield from self._words(number, piece)
        for piece in items(step.get("summary")) if kind == _THOUGHT else ():
            yield from self._thought(number, piece)

    def _more(self, number: int, delta: Json) -> Iterator[Event]:
        """Read more of a step: more words, or fields."""
        kind = text(delta.get("type"))
        yield from self._start(number, {"type": _STEP_OF.get(kind, kind)})  # where its beginning was lost
        step = self._open[number]
        if step["type"] == _CALL:
            yield from self._call(number * _PARTS, arguments=as_json(delta.get("arguments")))
        elif step["type"] == _OUTPUT:
            yield from self._words(number, delta)
        elif kind == "thought_summary":
            yield from self._thought(number, mapping(delta.get("content")))
        else:
            step |= {key: value for key, value in delta.items() if key != "type"}

    def _words(self, number: int, piece: Json) -> Iterator[Event]:
        """Read more of the model's words: a text and its annotations go on, anything else is a piece of its own."""
        content, kind = self._open[number]["content"], text(piece.get("type"))
        if kind not in {"text", "text_annotation_delta"}:
            content.append(piece)
            yield from self._media(number * _PARTS + len(content) - 1, piece)
            return
        if not content or content[-1].get("type") != "text" or not self._streamed:
            content.append({"type": "text", "annotations": []})
        marks = content[-1]["annotations"]
        marks += items(piece.get("annotations"))
        at = number * _PARTS + len(content) - 1
        more = kept(piece, "type", "text", "annotations") | kept({"annotations": [*marks]})
        yield from self._text(at, text(piece.get("text")), **more)

    def _media(self, at: int, piece: Json) -> Iterator[Event]:
        """Read an image; anything else goes back as a step of its own."""
        try:
            image = Media.from_text(text(piece.get("data")), "image", text(piece.get("mime_type")))
        except InvalidInput:  # not an image that palaver reads
            yield from self._unknown(at, {"type": _OUTPUT, "content": [dict(piece)]})
        else:
            yield from self._block(at, ImageContent([image]))

    def _thought(self, number: int, piece: Json) -> Iterator[Event]:
        """Read the next part of the summary of a thought."""
        summary = self._open[number]["summary"]
        missing = _SEPARATOR if summary else ""
        summary.append(dict(piece))
        yield from self._thinking(number * _PARTS, missing + text(piece.get("text")))

    def _close(self, number: int) -> Iterator[Event]:
        """End a step: what is kept whole of it is complete."""
        if number in self._done or number not in self._open:
            return
        self._done.add(number)
        step = self._open[number]
        if step["type"] == _THOUGHT:
            artefact = {key: value for key, value in step.items() if value not in ("", None, [])}
            yield from self._thinking(number * _PARTS, "", provider="google", model=self._model, artefact=artefact)
        elif step["type"] == _OUTPUT:
            self._metadata |= kept({"error": step.get("error")})
        elif step["type"] != _CALL:
            yield from self._unknown(number * _PARTS, step)

    # --- the end ---------------------------------------------------------------------------------------------------------

    def _finished(self, data: Json) -> Iterator[Event]:
        """Read an interaction: what is known at its beginning, and all of it at its end."""
        self._response_id = text(data.get("id")) or self._response_id
        self._served_by(data.get("model"))
        yield from self._used(data.get("usage"))
        status = text(data.get("status"))
        if status in _RUNNING:
            return
        errors = items(data.get("errors"))
        codes = [text(error.get("code")) for error in errors]
        if status in _FAILED and not _BLOCKED.intersection(codes):
            raise self.failed({"message": f"the interaction is {status}", **(errors[0] if errors else {})}, data)
        for number, step in enumerate(items(data.get("steps"))):
            yield from self._start(number, step)
        for number in sorted(self._open):
            yield from self._close(number)
        self._metadata |= kept({"errors": errors, "continuation_token": data.get("continuation_token")})
        if text(data.get("continuation_token")):
            self._metadata[CARRIED] = {"continuation_token": data["continuation_token"]}
        self._others(data, _READ)
        self._stop = "blocked" if status in _FAILED else status

    def _reason(self, *, calls: bool) -> StopReason | None:
        reason = _REASONS.get(self._stop)
        return StopReason.TOOL_CALLS if reason is StopReason.STOP and calls else reason


_READ = frozenset({
    "id", "object", "model", "agent", "status", "created", "updated", "steps", "output_text", "usage", "error", "errors", "continuation_token",
    "previous_interaction_id", "system_instruction", "tools", "generation_config", "response_format", "input", "store", "stream", "background",
    "environment_id", "service_tier",
})  # fmt: skip
"""The fields of an interaction that are read, or repeat the request."""
_STEP_OF: Mapping[str, str] = {
    "text": "model_output", "text_annotation_delta": "model_output", "image": "model_output", "audio": "model_output",
    "video": "model_output", "document": "model_output", "thought_summary": "thought", "thought_signature": "thought",
    "arguments_delta": "function_call",
}  # fmt: skip
"""The step that a delta belongs to whose beginning was lost; the other deltas have its name."""


def _number(data: Json) -> int:
    value = data.get("index")
    return value if isinstance(value, int) and value >= 0 else 0


READER = InteractionAnswer
