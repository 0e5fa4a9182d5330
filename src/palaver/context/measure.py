"""How large a view is, as a request: instructions, tools, messages and media apart.

The size of a context is a quantity of one request. It counts what is sent, the tool schemas and the words around every message
with it, and never adds up what calls were billed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from palaver.messages import AudioContent, Content, ImageContent, Role, Speaker, TextContent, ToolResultContent
from palaver.tokens import Counter, count_block, count_tools
from palaver.view import Block, Exchange, Turn, View
from palaver.wire.words import from_harness

__all__ = ["Meter", "Size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a view occupies as a request, in tokens.

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


class _Share(NamedTuple):
    """Tokens of text, and tokens of media."""

    text: int
    media: int


@dataclass(slots=True)
class Meter:
    """Measures for one model. What was counted once is not counted again while the meter lives.

    Attributes:
        counter: The model's counter.
    """

    counter: Counter
    _blocks: dict[int, tuple[Content, _Share]] = field(default_factory=dict, repr=False)
    _exchanges: dict[int, tuple[Exchange, _Share]] = field(default_factory=dict, repr=False)
    _texts: dict[str, int] = field(default_factory=dict, repr=False)

    def text(self, text: str) -> int:
        """Count a text."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = self.counter.text(text)
        return found

    def block(self, content: Content) -> int:
        """Count a block, its media too."""
        return sum(self._block(content))

    def exchange(self, exchange: Exchange) -> int:
        """Count an exchange: its blocks, and what stands around its messages."""
        return sum(self._exchange(exchange))

    def derived(self, text: str, label: str) -> int:
        """Count a derived text as an exchange of its own."""
        return self.counter.family.per_message + self.text(text) + self.text(from_harness(label, ""))

    def view(self, view: View) -> Size:
        """Measure a whole view."""
        family = self.counter.family
        instructions = sum(self.block(block.content) + 1 for block in view.system)  # an empty line stands between them
        shares = [self._exchange(exchange) for exchange in view.exchanges]
        return Size(
            request=family.per_request,
            instructions=family.per_message + instructions if view.system else 0,
            tools=count_tools(
                (
                    {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                    for tool in view.tools
                ),
                self.counter,
            ),
            messages=sum(share.text for share in shares),
            media=sum(share.media for share in shares),
        )

    def _exchange(self, exchange: Exchange) -> _Share:
        found = self._exchanges.get(id(exchange))
        if found is None:
            shares = [self._turn(turn, derived=exchange.derived) for turn in exchange.turns]
            share = _Share(sum(each.text for each in shares), sum(each.media for each in shares))
            found = self._exchanges[id(exchange)] = (exchange, share)  # it is held, so that its id stays its own
        return found[1]

    def _turn(self, turn: Turn, *, derived: bool) -> _Share:
        """Count a turn; results are messages of their own, and words that the user did not say carry a mark."""
        messages = len(turn.blocks) if turn.role is Role.TOOL else 1
        shares = [self._block(block.content) for block in turn.blocks]
        marks = sum(self._mark(block) for block in turn.blocks if _marked(turn, block, derived=derived))
        around = messages * self.counter.family.per_message + marks
        return _Share(around + sum(each.text for each in shares), sum(each.media for each in shares))

    def _mark(self, block: Block) -> int:
        return self.text(from_harness(block.derived or "summary", ""))

    def _block(self, content: Content) -> _Share:
        found = self._blocks.get(id(content))
        if found is None:
            share = self._counted(content)
            found = self._blocks[id(content)] = (content, share)
        return found[1]

    def _counted(self, content: Content) -> _Share:
        if isinstance(content, ImageContent | AudioContent):
            return _Share(0, count_block(content, self.counter))
        if not isinstance(content, ToolResultContent) or isinstance(content.content, str):
            return _Share(count_block(content, self.counter), 0)
        parts = content.content
        media = sum(count_block(part, self.counter) for part in parts if isinstance(part, ImageContent | AudioContent))
        return _Share(count_block(content, self.counter) - media, media)


def _marked(turn: Turn, block: Block, *, derived: bool) -> bool:
    if turn.role is Role.SYSTEM:
        return True
    unsaid = derived or bool(block.derived) or block.speaker is Speaker.SUMMARY
    return unsaid and turn.role is Role.USER and isinstance(block.content, TextContent)
