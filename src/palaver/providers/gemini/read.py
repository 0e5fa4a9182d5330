"""Answers of the Gemini API (ai.google.dev/api/generate-content, GenerateContentResponse).

A stream is a series of such answers with more parts each. Consecutive parts of one kind are one block; a signature ends it, because it must
return on its own part (ai.google.dev/gemini-api/docs/thought-signatures).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import new_message_id
from palaver.messages import APITypes, ImageContent, Media
from palaver.providers.provider import Event
from palaver.providers.reader import AnswerReader, Json, as_json, items, kept, mapping, text
from palaver.view.blocks import CARRIED
from palaver.wire import Request

_ID_DIGITS = 24

_READ = frozenset({
    "candidates", "content", "continuationToken", "createTime", "error", "finishMessage", "finishReason", "index", "modelVersion", "parsed",
    "promptFeedback", "responseId", "sdkHttpResponse", "tokenCount", "usageMetadata",
})  # fmt: skip
"""The fields of an answer and its candidate that are read, or say nothing more."""
_BESIDE = frozenset({"thought", "thoughtSignature", "partMetadata"})
"""The fields of a part other than its content."""


class GeminiAnswer(AnswerReader):
    """Reads generated content, or the answers of its stream."""

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
            raise self.failed(error, error.get("details"))
        self._response_id = text(data.get("responseId")) or self._response_id
        self._served_by(data.get("modelVersion"))
        for candidate in items(data.get("candidates"))[:1]:
            for part in items(mapping(candidate.get("content")).get("parts")):
                yield from self._part(part)
            self._stop = text(candidate.get("finishReason")) or self._stop
            self._metadata |= kept({"finish_message": candidate.get("finishMessage")})
            self._others(candidate, _READ)
        self._others(data, _READ)
        token = text(data.get("continuationToken"))
        if token:
            self._metadata[CARRIED] = {"continuationToken": token}
        blocked = text(mapping(data.get("promptFeedback")).get("blockReason"))
        if blocked:
            self._stop = "PROHIBITED_CONTENT"
            self._metadata["block_reason"] = blocked
        yield from self._used(data.get("usageMetadata"))

    def _part(self, part: Json) -> Iterator[Event]:
        signature = text(part.get("thoughtSignature"))
        artefact = {"thoughtSignature": signature} if signature else {}
        if isinstance(part.get("functionCall"), dict):
            yield from self._function_call(mapping(part["functionCall"]), artefact)
        elif isinstance(part.get("text"), str):
            more = {**artefact, **kept(part, "text", *_BESIDE)}
            yield from self._words(part["text"], more, thought=part.get("thought") is True)
        elif isinstance(part.get("inlineData"), dict):
            yield from self._image(part)
        elif held := [name for name in part if name not in _BESIDE]:
            yield from self._unknown(self._fresh(""), {"type": held[0], **part})
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
        """Read a call. Google sends no id unless asked to, but its result must name one."""
        call_id = text(call.get("id")) or f"call_{new_message_id()[:_ID_DIGITS]}"
        more = kept(call, "id", "name", "args") | ({"artefact": artefact} if artefact else {})
        yield from self._call(self._fresh(""), call_id, text(call.get("name")), as_json(call.get("args")), **more)

    def _image(self, part: Json) -> Iterator[Event]:
        data = mapping(part["inlineData"])
        try:
            image = Media.from_text(text(data.get("data")), "image", text(data.get("mimeType")))
        except InvalidInput:  # not an image format that palaver reads: the part is kept as it is
            yield from self._unknown(self._fresh(""), {"type": "inlineData", **part})
        else:
            yield from self._block(self._fresh(""), ImageContent([image]))

    def _fresh(self, kind: str) -> int:
        """Begin a block, and return its index."""
        self._next += 1
        self._kind = kind
        return self._next - 1


READER = GeminiAnswer
