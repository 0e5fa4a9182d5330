"""Answers of the Gemini API (ai.google.dev/api/generate-content, GenerateContentResponse).

A stream is a row of such answers, each with more parts. Parts of one kind that follow each other are one block; a signature ends it, because
it goes back on the part it came with (ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import new_message_id
from palaver.messages import APITypes, ImageContent, Media
from palaver.models.answers.reading import AnswerReader, Json, items, kept, mapping, text
from palaver.models.events import Event
from palaver.wire import Request

__all__ = ["GeminiAnswer"]

_ID_DIGITS = 24

_BESIDE = frozenset({"thought", "thoughtSignature", "partMetadata"})
"""What stands beside the one thing that a part holds."""


class GeminiAnswer(AnswerReader):
    """Reads a generation of content, or the answers of its stream."""

    _api = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._next = 0
        self._kind = ""

    def _whole(self, data: Json) -> Iterator[Event]:
        yield from self._piece(data)

    def _piece(self, data: Json) -> Iterator[Event]:
        error = mapping(data.get("error"))
        if error:
            code = error.get("code")
            raise self.failed(
                text(error.get("message")), text(error.get("status")), str(code or ""), details=error.get("details")
            )
        self._response_id = text(data.get("responseId")) or self._response_id
        self._named(data.get("modelVersion"))
        for candidate in items(data.get("candidates"))[:1]:
            for part in items(mapping(candidate.get("content")).get("parts")):
                yield from self._part(part)
            self._stop = text(candidate.get("finishReason")) or self._stop
            self._about |= kept({"finish_message": candidate.get("finishMessage")})
        blocked = text(mapping(data.get("promptFeedback")).get("blockReason"))
        if blocked:
            self._stop = "PROHIBITED_CONTENT"
            self._about["block_reason"] = blocked
        yield from self._used(data.get("usageMetadata"))

    def _part(self, part: Json) -> Iterator[Event]:
        signature = text(part.get("thoughtSignature"))
        artefact = {"thoughtSignature": signature} if signature else {}
        if isinstance(part.get("functionCall"), dict):
            yield from self._function_call(mapping(part["functionCall"]), artefact)
        elif isinstance(part.get("text"), str):
            yield from self._words(part["text"], artefact, thought=part.get("thought") is True)
        elif isinstance(part.get("inlineData"), dict):
            yield from self._image(part)
        elif held := [name for name in part if name not in _BESIDE]:
            yield from self._unread(self._fresh(""), {"type": held[0], **part})
        elif artefact:
            yield from self._words("", artefact, thought=False)

    def _words(self, words: str, artefact: Json, *, thought: bool) -> Iterator[Event]:
        kind = "thinking" if thought else "text"
        index = self._next - 1 if self._kind == kind else self._fresh(kind)
        if thought:
            more: dict[str, Any] = {"artefact": artefact} if artefact else {}
            yield from self._thinking(index, words, provider="google", model=self._model, **more)
        else:
            yield from self._text(index, words, **artefact)
        if artefact:
            self._kind = ""

    def _function_call(self, call: Json, artefact: Json) -> Iterator[Event]:
        """Read a call. Google gives it no id unless asked to; its result must name one all the same."""
        call_id = text(call.get("id")) or f"call_{new_message_id()[:_ID_DIGITS]}"
        arguments = json.dumps(call["args"], ensure_ascii=False, separators=(",", ":")) if call.get("args") else ""
        more = {"artefact": artefact} if artefact else {}
        yield from self._call(self._fresh(""), call_id, text(call.get("name")), arguments, **more)

    def _image(self, part: Json) -> Iterator[Event]:
        data = mapping(part["inlineData"])
        try:
            image = Media.from_text(text(data.get("data")), "image", text(data.get("mimeType")))
        except InvalidInput:  # no image, or none that palaver knows: the part is kept as it is
            yield from self._unread(self._fresh(""), {"type": "inlineData", **part})
        else:
            yield from self._block(self._fresh(""), ImageContent([image]))

    def _fresh(self, kind: str) -> int:
        """Begin a block, and give its place."""
        self._next += 1
        self._kind = kind
        return self._next - 1
