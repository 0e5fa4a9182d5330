"""Gemini's generateContent: its routes, and its answers, whole or as chunks."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Final

from palaver.testing.strict.google.fields import MODELS, GeminiRequest, check_fields, error_body, in_camel_case, refuse
from palaver.testing.strict.google.turns import check_turns, signature
from palaver.testing.strict.seal import Json, Seal, canonical
from palaver.testing.strict.server import HttpRequest, NextAnswer, Reply, Script

__all__ = ["GeminiApi"]

_CHARACTERS_PER_TOKEN: Final = 4
_USUAL: Final = NextAnswer(({"text": "hm", "thought": True}, "Well."))
_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens")


def _tokens(value: object) -> int:
    return len(canonical(value)) // _CHARACTERS_PER_TOKEN


class GeminiApi:
    """generateContent, the counting of tokens, the list of models, and cached contents."""

    def __init__(self, *, key: str = "strict") -> None:
        """Make the API; servers with the same key read each other's signatures."""
        self._seal = Seal(key)
        self._serial = 0
        self._lock = threading.Lock()

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        return error_body(status, message)

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        path = asked.path.partition("?")[0].removeprefix("/v1beta").removeprefix("/v1")
        if not asked.headers.get("x-goog-api-key") and "key=" not in asked.path:
            refuse("Method doesn't allow unregistered callers (callers without established identity).", 403)
        if path == "/models":
            return Reply({"models": [{"name": f"models/{name}"} for name in MODELS]})
        if path == "/cachedContents":
            return Reply(self._cached(asked.body))
        name, _, method = path.removeprefix("/models/").partition(":")
        if method not in _METHODS:
            refuse("The requested URL was not found on this server.", 404)
        if name not in MODELS:
            refuse(f"models/{name} is not found for API version v1beta, or is not supported for {method}.", 404)
        subject = GeminiRequest(in_camel_case(asked.body), name, self._seal)
        check_fields(subject)
        check_turns(subject)
        if method == "countTokens":
            return Reply({"totalTokens": _tokens(asked.body["contents"])})
        with self._lock:
            self._serial += 1
            serial = f"{self._serial:06d}"
        answer = script.next(asked, _USUAL)
        response = self._response(subject, answer, serial)
        streamed = list(_chunks(response)) if method.startswith("stream") else None
        return Reply(response, streamed, cut=answer.cut)

    def _cached(self, body: Json) -> Json:
        """Return a new cached content: its name says all that is in it."""
        name = self._seal.close("cache", {"body": body}).replace("+", "-").replace("/", "_")
        return {
            "name": f"cachedContents/{name}",
            "model": body.get("model"),
            "usageMetadata": {"totalTokenCount": _tokens(body)},
        }

    def _response(self, subject: GeminiRequest, answer: NextAnswer, serial: str) -> Json:
        parts = [self._part(said, f"{serial}{at:02d}", signs=subject.signs) for at, said in enumerate(answer.content)]
        if subject.signs:
            self._sign(subject, parts)
        size, made = _tokens(subject.body["contents"]), _tokens(parts)
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": answer.stop or "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": size, "candidatesTokenCount": made, "totalTokenCount": size + made},
            "modelVersion": subject.model,
            "responseId": f"resp{serial}",
        } | dict(answer.fields)

    def _part(self, said: Json | str, serial: str, *, signs: bool) -> Json:
        part: Json = {"text": said} if isinstance(said, str) else dict(said)
        if signs and "functionCall" in part:
            part["functionCall"] = {"id": f"call{serial}", "args": {}} | part["functionCall"]
        known = {
            "text",
            "functionCall",
            "executableCode",
            "codeExecutionResult",
            "toolCall",
            "toolResponse",
            "inlineData",
            "fileData",
        }
        return part if known & part.keys() else part | {"seal": self._seal.close("own", part)}

    def _sign(self, subject: GeminiRequest, parts: list[Json]) -> None:
        """Sign the first call, each part of a tool of the server, or else the last text."""
        calls = [at for at, part in enumerate(parts) if "functionCall" in part]
        texts = [at for at, part in enumerate(parts) if "text" in part and not part.get("thought")]
        own = [at for at, part in enumerate(parts) if part.keys() & {"toolCall", "toolResponse"}]
        for at in [*own, *(calls[:1] or texts[-1:])]:
            parts[at]["thoughtSignature"] = signature(subject, parts, at)


def _chunks(response: Json) -> Iterator[tuple[str, Json]]:
    """Yield the chunks of a response that is streamed: texts in halves; the signature of a text comes last, in a part of its own."""
    candidate = response["candidates"][0]
    parts: Sequence[Json] = candidate["content"]["parts"]
    for part in parts:
        for piece in _pieces(part):
            content = {"role": "model", "parts": [piece]}
            yield "", response | {"candidates": [{"content": content, "index": 0}], "usageMetadata": {}}
    content = {"role": "model", "parts": [{"text": ""}]}
    yield "", response | {"candidates": [{"content": content, "finishReason": candidate["finishReason"], "index": 0}]}


def _pieces(part: Json) -> list[Json]:
    if "text" not in part or len(part["text"]) < 2:  # noqa: PLR2004 - halves
        return [part]
    middle, rest = len(part["text"]) // 2, {name: value for name, value in part.items() if name != "thoughtSignature"}
    return [rest | {"text": part["text"][:middle]}, part | {"text": part["text"][middle:]}]
