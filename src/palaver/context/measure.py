"""How large a view is, as a request: instructions, tools, messages and media apart, in tokens and in other units.

The size of a context is a quantity of one request. It counts what is sent, the tool schemas and the words around every message
with it, and never adds up what calls were billed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from palaver.context.work.acts import Known
from palaver.log import ToolSpec
from palaver.messages import AudioContent, Content, ImageContent, Role, Speaker, TextContent, ToolResultContent
from palaver.tokens import Counter, count_block, count_tools
from palaver.view import Block, Exchange, Turn, View
from palaver.wire.words import from_harness

__all__ = ["Measure", "Meter", "Share", "Size"]

_VIEWS = 4
"""Views of which the size is remembered: the one that is made smaller, what a policy makes of it, and what is made of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a view occupies as a request, in tokens unless it says otherwise.

    Attributes:
        request: What stands around any request.
        instructions: The instructions.
        tools: The tool schemas.
        messages: The conversation without its media.
        media: Images and sounds, those in tool results too.
    """

    request: int = 0
    instructions: int = 0
    tools: int = 0
    messages: int = 0
    media: int = 0

    @property
    def fixed(self) -> int:
        """What no policy can make smaller."""
        return self.request + self.instructions + self.tools

    @property
    def total(self) -> int:
        """All of it."""
        return self.fixed + self.messages + self.media

    def parts(self) -> dict[str, int]:
        """Give the parts by name; they add up to the total."""
        return {
            "request": self.request,
            "instructions": self.instructions,
            "tools": self.tools,
            "messages": self.messages,
            "media": self.media,
        }


class Share(NamedTuple):
    """What a part of a view has: of text, and of media."""

    text: int
    media: int


class Measure(ABC):
    """Measures views in one unit. What was measured once is not measured again while the measure lives.

    Operators know nothing else of a unit, so that what makes a view smaller in tokens makes it smaller in bytes too.

    Attributes:
        unit: The name of the unit.
        per_request: What stands around any request.
        per_message: What stands around a message.
        between: What stands between two parts of the instructions.
        acts: The calls with their results in the exchanges that were looked at: who measures views again and again looks at them again, too.
    """

    unit: ClassVar[str]
    per_request: int = 0
    per_message: int = 0
    between: int = 0

    def __init__(self) -> None:
        """Begin with nothing measured."""
        self._blocks: dict[int, tuple[Content, Share]] = {}
        self._exchanges: dict[int, tuple[Exchange, Share]] = {}
        self._schemas: tuple[Sequence[ToolSpec], int] | None = None
        self._views: tuple[tuple[View, Size], ...] = ()  # replaced and never changed, for threads that measure at once
        self.acts = Known()

    @property
    def held(self) -> int:
        """How many exchanges it remembers, those included that are in no view any more."""
        return len(self._exchanges)

    @abstractmethod
    def text(self, text: str) -> int:
        """Measure a text."""

    @abstractmethod
    def result(self, text: str) -> int:
        """Measure a tool result that says nothing but a text."""

    @abstractmethod
    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Measure tool schemas."""

    @abstractmethod
    def share(self, content: Content) -> Share:
        """Measure a block that was not measured yet."""

    def block(self, content: Content) -> int:
        """Measure a block, its media too."""
        return sum(self._block(content))

    def exchange(self, exchange: Exchange) -> int:
        """Measure an exchange: its blocks, and what stands around its messages."""
        return sum(self._exchange(exchange))

    def derived(self, text: str, label: str) -> int:
        """Measure a derived text as an exchange of its own."""
        return self.per_message + self.text(text) + self.text(from_harness(label, ""))

    def view(self, view: View) -> Size:
        """Measure a whole view; of the last few that were measured the size is known."""
        for known, size in self._views:
            if known is view:
                return size
        size = self._view(view)
        self._views = ((view, size), *self._views)[:_VIEWS]
        return size

    def _view(self, view: View) -> Size:
        instructions = sum(self.block(block.content) + self.between for block in view.system)
        shares = [self._exchange(exchange) for exchange in view.exchanges]
        return Size(
            request=self.per_request,
            instructions=self.per_message + instructions if view.system else 0,
            tools=self._declared(view.tools),
            messages=sum(share.text for share in shares),
            media=sum(share.media for share in shares),
        )

    def _declared(self, tools: Sequence[ToolSpec]) -> int:
        """Measure the tool schemas of a view; those of the view before need not be measured again."""
        if self._schemas is None or self._schemas[0] is not tools:
            self._schemas = (tools, self.tools(tools))
        return self._schemas[1]

    def _exchange(self, exchange: Exchange) -> Share:
        found = self._exchanges.get(id(exchange))
        if found is None:
            shares = [self._turn(turn, derived=exchange.derived) for turn in exchange.turns]
            share = Share(sum(each.text for each in shares), sum(each.media for each in shares))
            found = self._exchanges[id(exchange)] = (exchange, share)  # it is held, so that its id stays its own
        return found[1]

    def _turn(self, turn: Turn, *, derived: bool) -> Share:
        """Measure a turn; results are messages of their own, and words that the user did not say carry a mark."""
        messages = len(turn.blocks) if turn.role is Role.TOOL else 1
        shares = [self._block(block.content) for block in turn.blocks]
        marks = sum(self._mark(block) for block in turn.blocks if _marked(turn, block, derived=derived))
        around = messages * self.per_message + marks
        return Share(around + sum(each.text for each in shares), sum(each.media for each in shares))

    def _mark(self, block: Block) -> int:
        return self.text(from_harness(block.derived or "summary", ""))

    def _block(self, content: Content) -> Share:
        found = self._blocks.get(id(content))
        if found is None:
            found = self._blocks[id(content)] = (content, self.share(content))
        return found[1]


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
        self._texts: dict[str, int] = {}

    def text(self, text: str) -> int:
        """Count a text."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = self.counter.text(text)
        return found

    def result(self, text: str) -> int:
        """Count a tool result that says nothing but a text."""
        return self.counter.family.per_result + self.text(text)

    def tools(self, tools: Sequence[ToolSpec]) -> int:
        """Count tool schemas."""
        schemas = (
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
        )
        return count_tools(schemas, self.counter)

    def share(self, content: Content) -> Share:
        """Count a block, its media apart."""
        if isinstance(content, ImageContent | AudioContent):
            return Share(0, count_block(content, self.counter))
        if not isinstance(content, ToolResultContent) or isinstance(content.content, str):
            return Share(count_block(content, self.counter), 0)
        parts = content.content
        media = sum(count_block(part, self.counter) for part in parts if isinstance(part, ImageContent | AudioContent))
        return Share(count_block(content, self.counter) - media, media)


def _marked(turn: Turn, block: Block, *, derived: bool) -> bool:
    if turn.role is Role.SYSTEM:
        return True
    unsaid = derived or bool(block.derived) or block.speaker is Speaker.SUMMARY
    return unsaid and turn.role is Role.USER and isinstance(block.content, TextContent)
