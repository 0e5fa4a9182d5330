"""Measuring views: in tokens, in bytes of the request's body, and in images and sounds."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    Role,
    Speaker,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
)
from palaver.providers import profile_of
from palaver.tokens import Counter, count_block, count_tools
from palaver.tokens.families import BYTES_PER_TOKEN
from palaver.view import Block, Exchange, Turn, View
from palaver.wire.script import from_harness, unmarked
from palaver.wire.updates import inside

_WRITER = json.JSONEncoder(ensure_ascii=False)

_MEMO = 20_000
"""Exchanges that are remembered before those that nobody asked for lately are forgotten."""

_SIZE = "size"

LOAD = 128
"""Exchanges that are read from the log at once."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a view occupies as a request, in the unit of the measure.

    Attributes:
        request: Around any request.
        instructions: The instructions.
        tools: The tool schemas.
        messages: The conversation without its media.
        media: Images and sounds, also those in tool results.
        exact: False when a part of `messages` is estimated from recorded bytes, because it was not loaded.
    """

    request: int = 0
    instructions: int = 0
    tools: int = 0
    messages: int = 0
    media: int = 0
    exact: bool = True

    @property
    def fixed(self) -> int:
        """The part that no policy can make smaller: request, instructions and tools."""
        return self.request + self.instructions + self.tools

    @property
    def total(self) -> int:
        """The sum of all parts."""
        return self.fixed + self.messages + self.media

    def parts(self) -> dict[str, int]:
        """Return the parts by name; they add up to the total."""
        names = ("request", "instructions", "tools", "messages", "media")
        return {name: getattr(self, name) for name in names}


class Share(NamedTuple):
    """The size of a part of a view: its text, and its media."""

    text: int
    media: int


class Measure(ABC):
    """Measures views in one unit, so that the same operators work on tokens, bytes and media.

    Sizes of exchanges are remembered here, and nowhere else. Counting a view of 100,000 tokens takes 60 ms, adding up remembered sizes 0.1 ms. So are the
    changes of settings in the newest view: each request asks for them up to nine times, and with 2,000 exchanges and 20 changes each time takes 4 ms.

    Attributes:
        unit: The name of the unit.
        recorded_per_unit: Recorded bytes for one unit, about.
        per_request: Around any request.
        per_message: Around a message.
        between: Between two parts of the instructions.
    """

    unit: ClassVar[str]
    recorded_per_unit: float = 1.0
    per_request: int = 0
    per_message: int = 0
    between: int = 0

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._recent: dict[int, tuple[Exchange, dict[object, Any]]] = {}
        self._older: dict[int, tuple[Exchange, dict[object, Any]]] = {}
        self._tools: tuple[Sequence[ToolSpec], int] | None = None
        self._settled: tuple[View, View, int] | None = None

    @abstractmethod
    def text(self, text: str) -> int:
        """Measure a text."""

    @abstractmethod
    def result(self, text: str) -> int:
        """Measure a tool result that is nothing but a text."""

    @abstractmethod
    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Measure tool schemas."""

    @abstractmethod
    def share(self, content: Content) -> Share:
        """Measure a block, its media apart."""

    def block(self, content: Content) -> int:
        """Measure a block with its media."""
        return sum(self.share(content))

    def exchange(self, exchange: Exchange) -> int:
        """Measure an exchange: its blocks and what surrounds its messages. Reads its bodies on first use."""
        share = self._share(exchange)
        return share.text + share.media

    def remember(self, exchange: Exchange, key: object, make: Callable[[], T]) -> T:
        """Return what `make` returned for this exchange and key before. Exchanges that nobody asked for lately are forgotten."""
        values = self._values(exchange)
        if key not in values:
            values[key] = make()
        value: T = values[key]
        return value

    def derived(self, text: str, label: str) -> int:
        """Measure a derived text as an exchange of its own, line by line: a token more here and there, and each line is counted once."""
        lines = unmarked(text).splitlines(keepends=True)
        return self.per_message + self.text(from_harness(label, "")) + sum(map(self.text, lines))

    def fixed(self, view: View) -> Size:
        """Measure what every request has: instructions, tools and what surrounds a request."""
        head = self._settings(view)[0]
        instructions = sum(self.block(block.content) + self.between for block in head.system)
        return Size(
            request=self.per_request,
            instructions=self.per_message + instructions if head.system else 0,
            tools=self._declared(head.tools),
        )

    def _settings(self, view: View) -> tuple[View, int]:
        """Return a view with the instructions and tools of its head, and the size of their changes between the exchanges."""
        if not view.earlier:
            return view, 0
        if self._settled is None or self._settled[0] is not view:
            self._settled = (view, *self._changed(view))
        return self._settled[1:]

    def _changed(self, view: View) -> tuple[View, int]:
        """Measure what is written of instructions and tools that changed: here as if each were sent."""
        later = sum(self.block(block.content) + self.between for each in view.earlier for block in each.system)
        tools = {tool.name: tool for each in view.earlier for tool in each.tools}
        return view, later + self.tools(tuple(tools.values()))

    def view(self, view: View) -> Size:
        """Measure a whole view exactly. Reads every body."""
        shares = [self._share(exchange) for exchange in view.exchanges]
        messages, media = sum(share.text for share in shares), sum(share.media for share in shares)
        return replace(self.fixed(view), messages=messages + self._settings(view)[1], media=media)

    def fits(self, view: View, limit: int) -> bool:
        """Return whether a view is at or under a limit. Reads its newest exchanges first, and no more than that needs."""
        total, index = self.fixed(view).fixed + self._settings(view)[1], len(view.exchanges)
        while index > 0 and total <= limit:
            if not view.exchanges[index - 1].loaded:
                view.load(range(max(0, index - LOAD), index))
            index -= 1
            total += self.exchange(view.exchanges[index])
        return total <= limit

    def _declared(self, tools: Sequence[ToolSpec]) -> int:
        if self._tools is None or self._tools[0] is not tools:
            self._tools = (tools, self.tools(tools))
        return self._tools[1]

    def _share(self, exchange: Exchange) -> Share:
        values = self._values(exchange)
        share: Share | None = values.get(_SIZE)
        if share is None:
            share = values[_SIZE] = self._measured(exchange)
        return share

    def _values(self, exchange: Exchange) -> dict[object, Any]:
        kept = self._recent.get(id(exchange))
        if kept is None:
            kept = self._older.get(id(exchange)) or (exchange, {})
            if len(self._recent) >= _MEMO:
                self._older, self._recent = self._recent, {}
            self._recent[id(exchange)] = kept  # it is kept, so that its id stays its own
        return kept[1]

    def _measured(self, exchange: Exchange) -> Share:
        shares = [self._turn(turn, derived=bool(exchange.derived)) for turn in exchange.turns]
        return Share(sum(share.text for share in shares), sum(share.media for share in shares))

    def _turn(self, turn: Turn, *, derived: bool) -> Share:
        """Measure a turn. Each result is a message of its own, and text that the user did not say has a mark."""
        messages = len(turn.blocks) if turn.role is Role.TOOL else 1
        shares, marks = [], 0
        for block in turn.blocks:
            marked = _marked(turn, block, derived=derived)
            shares.append(self.share(_inside(block.content) if marked else block.content))
            marks += self.text(from_harness(block.derived or "summary", "")) if marked else 0
        around = messages * self.per_message + marks
        return Share(around + sum(share.text for share in shares), sum(share.media for share in shares))


class Meter(Measure):
    """Measures in the tokens of one model.

    Attributes:
        counter: The model's counter.
    """

    unit = "tokens"
    between = 1  # an empty line

    def __init__(self, counter: Counter) -> None:
        """Measure with a counter."""
        super().__init__()
        self.counter = counter
        self.per_request = counter.family.per_request
        self.per_message = counter.family.per_message
        self.recorded_per_unit = BYTES_PER_TOKEN / float(getattr(counter, "factor", counter.family.factor))

    def estimate(self, view: View) -> Size:
        """Measure a view without reading bodies: exactly up to the newest exchange that was not measured before, the older ones from their recorded bytes."""
        messages, media, index = self._settings(view)[1], 0, len(view.exchanges)
        while index > 0:
            exchange = view.exchanges[index - 1]
            kept = self._recent.get(id(exchange)) or self._older.get(id(exchange))
            share: Share | None = None if kept is None else kept[1].get(_SIZE)
            if share is None:
                break
            messages, media, index = messages + share.text, media + share.media, index - 1
        messages += int(view.columns.sizes[index] / self.recorded_per_unit)
        return replace(self.fixed(view), messages=messages, media=media, exact=index == 0)

    def text(self, text: str) -> int:
        """Count a text."""
        return self.counter.text(text)

    def _changed(self, view: View) -> tuple[View, int]:
        """Count the changes of instructions and tools that the model takes between the exchanges."""
        head, texts, tools = inside(view, profile_of(str(getattr(self.counter, "model", ""))))
        return head, sum(self.text(part.text) + self.per_message for part in texts) + (
            self.tools(tools) if tools else 0
        )

    def result(self, text: str) -> int:
        """Count a tool result that is nothing but a text."""
        return self.counter.family.per_result + self.text(text)

    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Count tool schemas."""
        schemas = (
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        )
        return count_tools(schemas, self.counter)

    def share(self, content: Content) -> Share:
        """Count a block, its media apart."""
        media = sum(count_block(part, self.counter) for part in _media_blocks(content))
        return Share(count_block(content, self.counter) - media, media)


class Bytes(Measure):
    """Measures in bytes of the request's body: compact UTF-8 JSON with media in base64. Never too few, whichever provider it is for.

    The overheads are the most that any profile writes, its own ids and cache marks included (tests/context/test_scenarios.py
    compares them with compiled requests).
    """

    unit = "bytes"
    per_request = 1_024
    per_message = 64
    between = 192
    _call = 448
    _tool = 256
    _schema = 2  # a schema may grow so much in a provider's own words

    def text(self, text: str) -> int:
        """Measure a text as a block of its own."""
        return self.between + _written(text)

    def result(self, text: str) -> int:
        """Measure a tool result that is nothing but a text."""
        return self._call + self.text(text)

    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Measure tool schemas."""
        return sum(
            self._tool + _written(tool.name + tool.description) + self._schema * _json(tool.parameters)
            for tool in tools
        )

    def share(self, content: Content) -> Share:
        """Measure a block, its media apart."""
        return Share(self._words(content), sum(self.between + _encoded(part) for part in media_in(content)))

    def _words(self, content: Content) -> int:
        match content:
            case TextContent():
                return self.text(content.content)
            case ImageContent() | AudioContent():
                return 0
            case ToolCallContent():  # arguments may be sent as JSON in a string, where every quote is written as two
                sent = max(_written(content.arguments), _json(content.args))
                return self._call + _written(content.name) + sent + _json(content.artefact)
            case ToolResultContent():
                return self._call + sum(map(self._words, _result_blocks(content)))
            case _:
                return self.between + _json(content)


class Pieces(Measure):
    """Counts images and sounds: texts and schemas have none."""

    unit = "images and sounds"
    recorded_per_unit = 1_000.0

    def text(self, text: str) -> int:  # noqa: ARG002 - a text has none
        """Return 0."""
        return 0

    result = text

    def tools(self, tools: Sequence[ToolSpec]) -> int:  # noqa: ARG002 - nor has a schema
        """Return 0."""
        return 0

    def share(self, content: Content) -> Share:
        """Count the images and sounds of a block."""
        return Share(0, sum(1 for _ in media_in(content)))


def media_in(content: Content) -> Iterator[Media]:
    """Iterate over the images and sounds of a block, also those in a tool result."""
    for block in _media_blocks(content):
        yield from block.images if isinstance(block, ImageContent) else block.audio


def _media_blocks(content: Content) -> Iterator[ImageContent | AudioContent]:
    blocks: Sequence[Content] = (content,)
    if isinstance(content, ToolResultContent):
        blocks = () if isinstance(content.content, str) else content.content
    return (block for block in blocks if isinstance(block, ImageContent | AudioContent))


def _result_blocks(result: ToolResultContent) -> Sequence[Content]:
    return (TextContent(content=result.content),) if isinstance(result.content, str) else result.content


def _marked(turn: Turn, block: Block, *, derived: bool) -> bool:
    if turn.role is Role.SYSTEM:
        return True
    unsaid = derived or bool(block.derived) or block.speaker is Speaker.SUMMARY
    return unsaid and turn.role is Role.USER and isinstance(block.content, TextContent)


def _inside(content: Content) -> Content:
    """Return words as they are written inside a mark."""
    return TextContent(content=unmarked(content.content)) if isinstance(content, TextContent) else content


def _encoded(media: Media) -> int:
    """Return the length of a medium as it is sent: its address, or its bytes in base64 (RFC 4648: four for three)."""
    return len(media.url.encode()) if media.url is not None else -(-media.size // 3) * 4


def _written(text: str) -> int:
    return len(_WRITER.encode(text).encode("utf-8", "surrogatepass"))


def _json(value: object) -> int:
    return len(canonical_json(value))
