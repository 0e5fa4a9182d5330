"""The other two units a provider limits: bytes of the request's body, and how many images and sounds it carries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain

from palaver.context.measure import Measure, Share
from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
)

__all__ = ["Bytes", "Pieces"]

_WRITER = json.JSONEncoder(ensure_ascii=False)

_REQUEST, _MESSAGE, _PART, _CALL, _RESULT, _TOOL = 1_024, 64, 192, 448, 448, 256
"""Bytes of the keys, ids and marks around a request, a message, a block, a call, a result and a tool: the most that any of our four profiles writes, cache
marks and ids of its own included. Held to what is compiled by tests/context/test_budget.py."""

_SCHEMA = 2
"""By how much a schema may grow when it is said in a provider's own words."""


class Bytes(Measure):
    """Measures in bytes of the body: compact UTF-8 JSON with media in base64, which is how the clients send it. Never too few.

    Which provider it is for matters little and is not asked: every figure is the most that one of the profiles needs.
    """

    unit = "bytes"
    per_request = _REQUEST
    per_message = _MESSAGE
    between = _PART

    def text(self, text: str) -> int:
        """Measure a text as a block of its own."""
        return _PART + _written(text)

    def result(self, text: str) -> int:
        """Measure a tool result that says nothing but a text."""
        return _RESULT + self.text(text)

    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Measure tool schemas."""
        return sum(_TOOL + _written(tool.name + tool.description) + _SCHEMA * _json(tool.parameters) for tool in tools)

    def share(self, content: Content) -> Share:
        """Measure a block, its media apart."""
        media = sum(_PART + _encoded(each) for each in media_in(content))
        return Share(self._text_of(content), media)

    def _text_of(self, content: Content) -> int:
        match content:
            case TextContent():
                return self.text(content.content)
            case ImageContent() | AudioContent():
                return 0
            case ToolCallContent():  # arguments may be sent as JSON in a string, where every quote is written as two
                sent = max(_written(content.arguments), _json(content.args))
                return _CALL + _written(content.name) + sent + _json(content.artefact)
            case ToolResultContent():
                return _RESULT + sum(map(self._text_of, _parts(content)))
            case _:
                return _PART + _json(content)


class Pieces(Measure):
    """Measures in images and sounds."""

    unit = "images and sounds"

    def text(self, text: str) -> int:  # noqa: ARG002 - a text holds none
        """Measure a text: 0."""
        return 0

    def result(self, text: str) -> int:  # noqa: ARG002 - a text holds none
        """Measure a tool result that says nothing but a text: 0."""
        return 0

    def tools(self, tools: Sequence[ToolSpec]) -> int:  # noqa: ARG002 - a schema holds none
        """Measure tool schemas: 0."""
        return 0

    def share(self, content: Content) -> Share:
        """Count the images and sounds of a block."""
        return Share(0, sum(1 for _ in media_in(content)))


def media_in(content: Content) -> Iterator[Media]:
    """Give the images and sounds of a block, those inside a tool result included."""
    if isinstance(content, ImageContent):
        yield from content.images
    elif isinstance(content, AudioContent):
        yield from content.audio
    elif isinstance(content, ToolResultContent):
        yield from chain.from_iterable(map(media_in, _parts(content)))


def _parts(result: ToolResultContent) -> Sequence[Content]:
    return (TextContent(content=result.content),) if isinstance(result.content, str) else result.content


def _encoded(media: Media) -> int:
    """Give the length of a medium as it is sent: its address, or its bytes in base64 (RFC 4648, section 4: four for three)."""
    return len(media.url.encode()) if media.url is not None else -(-media.size // 3) * 4


def _written(text: str) -> int:
    return len(_WRITER.encode(text).encode("utf-8", "surrogatepass"))


def _json(value: object) -> int:
    return len(canonical_json(value))
