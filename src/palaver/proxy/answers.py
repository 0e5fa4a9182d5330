"""Answers: the copy of what a vendor sent, whole or as far as it came, read as a message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import httpx

from palaver.errors import InvalidMessage, ProviderError
from palaver.messages import Message
from palaver.providers import APIS
from palaver.wire import Request

_EVENTS, _END = "text/event-stream", "[DONE]"
_LINE = re.compile(r"\r\n|\n|\r")
_REFUSED = 400
_EXCERPT = 2000
"""The most characters of a vendor's text that are recorded with an error."""

CLIENT_LEFT, BROKEN = (
    "The client left before the end of the answer.",
    "The vendor's connection broke before the end of the answer.",
)


class AnswerCopy(NamedTuple):
    """What was sent to a client.

    Attributes:
        status: The status; 0 where no answer came.
        headers: The headers, names in lower case.
        body: The bytes of the body as they were sent; None where there were more than are kept.
        fault: Why the body ends early, or empty.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    fault: str = ""


class Answered(NamedTuple):
    """What an answer says.

    Attributes:
        message: The whole answer; or the part that came, where there is an error.
        error: Why there is no whole answer, or empty.
    """

    message: Message | None
    error: str = ""


def read_answer(copy: AnswerCopy, request: Request) -> Answered:
    """Read an answer to a request; what cannot be read is an error, never an exception."""
    if copy.body is None or not copy.status:
        return Answered(None, copy.fault if copy.body is not None else "The answer is larger than the proxy keeps.")
    try:
        text = _decoded(copy).decode(errors="replace")
    except InvalidMessage as error:
        return Answered(None, error.message)
    if copy.status >= _REFUSED:
        return Answered(None, f"The vendor answered with status {copy.status}: {text[:_EXCERPT]}")
    return _read(text, copy, request)


def _read(text: str, copy: AnswerCopy, request: Request) -> Answered:
    api = APIS[request.profile.name]
    reader = api.reader(request, request.profile.reasoning.maker or api.maker)
    try:
        streamed, pieces = _pieces(text, events=copy.headers.get("content-type", "").startswith(_EVENTS))
        for piece in pieces:
            for _ in reader.piece(piece) if streamed else reader.whole(piece):
                pass
        if copy.fault and not reader.complete:
            raise reader.broken(copy.fault)
        return Answered(reader.end().message)
    except ProviderError as error:
        partial = error.partial
        return Answered(partial if isinstance(partial, Message) and partial.contents else None, error.message)
    except (ValueError, RecursionError, InvalidMessage) as error:
        return Answered(None, copy.fault or f"The answer cannot be read ({error}).")


def decoded(body: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding.

    Raises:
        InvalidMessage: It is damaged, or the encoding is not known here.
    """
    if not encoding or encoding.strip().lower() == "identity":
        return body
    try:
        plain = httpx.Response(200, headers={"content-encoding": encoding}, content=body).content
    except httpx.HTTPError as error:
        raise InvalidMessage(f"The body cannot be decoded from {encoding} ({error}).") from error
    if plain == body and body:  # so it is where httpx has no decoder
        raise InvalidMessage(
            f"The body is encoded as {encoding}, which cannot be read here.", hint="Install httpx[brotli,zstd]."
        )
    return plain


def _decoded(copy: AnswerCopy) -> bytes:
    """Return the body of an answer without its content encoding, as far as it came."""
    encoding, body = copy.headers.get("content-encoding", ""), copy.body or b""
    # where the end is missing, a decoder takes that for damage only when it is asked for the end
    return b"".join(_as_far(body, encoding)) if encoding and copy.fault else decoded(body, encoding)


def _as_far(body: bytes, encoding: str) -> Iterator[bytes]:
    response = httpx.Response(200, headers={"content-encoding": encoding}, stream=httpx.ByteStream(body))
    try:
        yield from response.iter_bytes()
    except httpx.DecodingError:
        return


def _pieces(text: str, *, events: bool) -> tuple[bool, list[Mapping[str, Any]]]:
    """Return whether an answer came in pieces, and these; Gemini sends a list where no events are asked for.

    Raises:
        ValueError: It is not JSON.
    """
    if events:
        return True, [value for value in _events(text) if isinstance(value, Mapping)]
    value = json.loads(text)
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(each, Mapping) for each in values):
        raise ValueError("it is not a JSON object")
    return isinstance(value, list), values


def _events(text: str) -> Iterator[Any]:
    """Yield the data of server-sent events; the last one may be cut off."""
    data: list[str] = []
    for line in [*_LINE.split(text), ""]:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            whole, data = "\n".join(data), []
            if whole != _END:
                try:
                    yield json.loads(whole)
                except ValueError:
                    return
