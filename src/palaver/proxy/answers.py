"""Answers: the copy of what a vendor sent, whole or as far as it came, read as a message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx

from palaver.errors import InvalidMessage, ProviderError
from palaver.messages import Message
from palaver.messages.frozen import EMPTY
from palaver.providers import APIS
from palaver.wire import Request

_EVENTS, _END = "text/event-stream", "[DONE]"
_LINE = re.compile(r"\r\n|\n|\r")
_REFUSED = 400
MOST_KEPT = 64 << 20
"""The largest body that is recorded, in bytes: twice what Anthropic accepts."""

_PIECE = 16 << 10
"""Bytes that are decoded at once; at most a thousand times as many come of them."""

_EXCERPT = 2000
"""The most characters of a vendor's text that are recorded with an error."""

CLIENT_LEFT, BROKEN = (
    "The client left, or the proxy was ended, before the end of the answer.",
    "The vendor's connection broke before the end of the answer.",
)


@dataclass(eq=False)
class AnswerCopy:
    """A copy of an answer, made while it is passed on.

    Attributes:
        status: The status; 0 before it begins.
        headers: The headers, names in lower case.
        body: The bytes of the body as they were sent; None where there are more than `MOST_KEPT`.
        fault: Why the body ends early, or empty. Until it has ended, the client could be the one that left.
    """

    status: int = 0
    headers: Mapping[str, str] = EMPTY
    body: bytes | bytearray | None = field(default_factory=bytearray)
    fault: str = ""

    def add(self, piece: bytes) -> None:
        """Add to the body."""
        if self.body is not None:
            self.body += piece
            self.body = self.body if len(self.body) <= MOST_KEPT else None


class Answered(NamedTuple):
    """What an answer says.

    Attributes:
        message: The answer, or the part of it that came; None where nothing came that can be read.
        whole: Whether nothing of it is missing.
        error: What the client got instead of an answer, or after it; empty where it got one.
    """

    message: Message | None
    whole: bool = False
    error: str = ""


def read_answer(copy: AnswerCopy, request: Request) -> Answered:
    """Read an answer to a request; what cannot be read is an error, never an exception."""
    if copy.body is None or not copy.status:
        return Answered(
            None, error=copy.fault if copy.body is not None else "The answer is larger than the proxy keeps."
        )
    try:
        encoding = copy.headers.get("content-encoding", "")
        text = decoded(copy.body, encoding, cut=bool(copy.fault)).decode(errors="replace")
    except InvalidMessage as error:
        return Answered(None, error=str(error))
    if copy.status >= _REFUSED:
        return Answered(None, error=f"The vendor answered with status {copy.status}: {text[:_EXCERPT]}")
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
        # a client that has all leaves early; one whose vendor broke off reports an error, even where all had come
        return Answered(reader.end().message, whole=True, error=copy.fault if copy.fault == BROKEN else "")
    except ProviderError as error:
        partial = error.partial
        return Answered(partial if isinstance(partial, Message) and partial.contents else None, error=error.message)
    except (ValueError, RecursionError, InvalidMessage) as error:
        return Answered(None, error=copy.fault or f"The answer cannot be read ({error}).")


def decoded(body: bytes | bytearray, encoding: str, *, cut: bool = False) -> bytes:
    """Return a body without its content encoding.

    Args:
        body: The body.
        encoding: The encoding; empty for none.
        cut: Whether the end of the body is missing, so that it is read as far as it came.

    Raises:
        InvalidMessage: It is damaged, is larger than `MOST_KEPT`, or the encoding is not known here.
    """
    if not encoding or encoding.strip().lower() == "identity":
        return bytes(body)
    pieces = (bytes(body[at : at + _PIECE]) for at in range(0, len(body), _PIECE))
    plain = bytearray()
    try:
        for piece in httpx.Response(200, headers={"content-encoding": encoding}, content=pieces).iter_bytes():
            plain += piece
            if len(plain) > MOST_KEPT:
                raise InvalidMessage(f"The body, decoded from {encoding}, is larger than {MOST_KEPT >> 20} MB.")
    except httpx.DecodingError as error:
        if not cut:
            raise InvalidMessage(f"The body cannot be decoded from {encoding} ({error}).") from error
    if plain == body and body:  # so it is where httpx has no decoder
        raise InvalidMessage(
            f"The body is encoded as {encoding}, which cannot be read here.", hint="Install httpx[brotli,zstd]."
        )
    return bytes(plain)


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
