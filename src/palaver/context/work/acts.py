"""Acts: the calls of a view with their results, in order, and from where on each is of no more use.

Everything here is said by the exchange at which it became true, so that what is decided at one point of a conversation does not depend on
what came after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from palaver.context.work.deeds import Deed, deed
from palaver.context.work.outcomes import outcome
from palaver.context.work.shown import (
    part_of,
    reads_file,
    says_refused,
    says_unchanged,
    says_written,
    without_reminders,
    written_by,
)
from palaver.messages import Content, Role, TextContent, ToolCallContent, ToolResultContent, canonical_json
from palaver.view import Block, Exchange, call_in, result_in

__all__ = ["Act", "Acts", "Known", "acts_of", "asked_for", "result_of"]

_Key: TypeAlias = "Callable[[Act], Hashable]"


@dataclass(frozen=True, slots=True)
class Act:
    """A call and its result.

    Attributes:
        index: The exchange.
        call: The block of the call.
        answer: The block of the result.
        deed: What the call did.
        failed: Whether it failed.
        written: What it wrote to a file, if it wrote all of it; else None.
        asked: The call's tool and arguments; the order in which they were written does not matter.
    """

    index: int
    call: Block
    answer: Block
    deed: Deed
    failed: bool
    written: str | None
    asked: str

    @property
    def content(self) -> ToolCallContent:
        """The call."""
        assert isinstance(self.call.content, ToolCallContent)  # noqa: S101 - acts are made of calls only
        return self.call.content

    @property
    def whole(self) -> bool:
        """Whether it wrote a file from beginning to end."""
        return self.written is not None

    @property
    def part(self) -> str:
        """Which part of a file it asked for, in the words of its arguments; empty where it did not ask for one."""
        return part_of(self.content)

    @property
    def reads(self) -> bool:
        """Whether it shows what one file says here and now, or a part of it."""
        if self.failed or not reads_file(self.content, self.deed):
            return False
        return not (says_unchanged(self.words) or says_refused(self.words))

    @property
    def shows(self) -> str:
        """The file whose whole present content it shows: it wrote all of it, or read it; empty for none."""
        if self.failed:
            return ""
        if self.whole:
            return self.deed.wrote[0] if says_written(self.words, self.deed.wrote[0], self.written or "") else ""
        return self.deed.read[0] if self.reads and not self.part else ""

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.content.name

    @property
    def said(self) -> str:
        """The result as text."""
        return self.result.text()

    @property
    def words(self) -> str:
        """The same without what a harness put behind it."""
        return without_reminders(self.said)

    @property
    def result(self) -> ToolResultContent:
        """The result; in a text protocol what was said is made one."""
        return result_of(self.answer.content, self.content)


@dataclass(frozen=True)
class Acts:
    """The acts of a view, the oldest first.

    Attributes:
        all: The acts.
    """

    all: tuple[Act, ...]
    _starts: tuple[int, ...] = field(repr=False)

    def upto(self, index: int) -> Sequence[Act]:
        """Give the acts up to and including an exchange."""
        return self.all[: self.count(index)]

    def at(self, index: int) -> Sequence[Act]:
        """Give the acts of an exchange."""
        return self.all[self.count(index - 1) : self.count(index)]

    def count(self, index: int) -> int:
        """Give how many acts there are up to and including an exchange."""
        return bisect_right(self._starts, index)

    def changeable(self, index: int) -> Sequence[Act]:
        """Give those of the acts up to and including an exchange of which a result may still be shown as it came.

        All but those whose exchange holds one result, in another form already.
        """
        acts, starts = self._changeable
        return acts[: bisect_right(starts, index)]

    @cached_property
    def _changeable(self) -> tuple[Sequence[Act], Sequence[int]]:
        alone = Counter(self._starts)
        acts = [act for act in self.all if act.answer.reason is None or alone[act.index] > 1]
        return acts, [act.index for act in acts]

    @cached_property
    def repeated(self) -> Mapping[int, int]:
        """For each act, by its place, the exchange at which the same came from a tool again: words, and pictures and sounds beside them."""
        return self._overtaken(_came, _came)

    @cached_property
    def outdated(self) -> Mapping[int, int]:
        """For each act that only looked, the exchange at which the same was looked at again: same tool, same arguments."""
        return self._overtaken(_question, _question)

    @cached_property
    def asked_again(self) -> Mapping[int, int]:
        """For each act, the exchange at which the same tool was called with the same arguments again."""
        return self._overtaken(lambda act: act.asked, lambda act: act.asked)

    @cached_property
    def overwritten(self) -> Mapping[int, int]:
        """For each act that wrote one file, the exchange at which that file was read, or written as a whole, again."""
        return self._overtaken(_touched, lambda act: act.shows)

    @cached_property
    def fixed(self) -> Mapping[int, int]:
        """For each act that failed, the exchange at which the same thing succeeded."""
        return self._overtaken(
            lambda act: act.deed.of if act.failed else "", lambda act: "" if act.failed else act.deed.of
        )

    def _overtaken(self, old: _Key, new: _Key) -> Mapping[int, int]:
        """Give for each place the exchange of the next later act whose new key is its old one; in another exchange."""
        found: dict[int, int] = {}
        latest: dict[Hashable, list[int]] = {}
        for place in range(len(self.all) - 1, -1, -1):
            act = self.all[place]
            for later in reversed(latest.get(old(act), ())):
                if later > act.index:
                    found[place] = later
                    break
            if (key := new(act)) != "":
                latest.setdefault(key, []).append(act.index)
        return MappingProxyType(found)


class Known:
    """The acts of exchanges that were looked at before: from one view of a dialog to the next few exchanges change."""

    def __init__(self) -> None:
        """Begin with none."""
        self._found: dict[int, tuple[Exchange, tuple[Act, ...]]] = {}

    def of(self, index: int, exchange: Exchange) -> tuple[Act, ...]:
        """Give the acts of an exchange that stands at a place."""
        before = self._found.get(id(exchange))
        if before is not None and (not before[1] or before[1][0].index == index):
            return before[1]
        if before is None:
            acts = tuple(_acts(index, exchange))
        else:
            acts = tuple(replace(act, index=index) for act in before[1])
        self._found[id(exchange)] = (exchange, acts)  # it is held, so that its id stays its own
        return acts


def acts_of(exchanges: Sequence[Exchange], known: Known | None = None) -> Acts:
    """Give the acts of exchanges; calls without a result of their own are none.

    Args:
        exchanges: The exchanges.
        known: Those that were looked at before.
    """
    known = known or Known()
    found: list[Act] = []
    before: Exchange | None = None
    for index, exchange in enumerate(exchanges):
        if exchange.observes:
            found += _observed(index, exchange, before)
        else:
            found += known.of(index, exchange)
            before = None if exchange.derived else exchange
    return Acts(tuple(found), tuple(act.index for act in found))


def asked_for(exchange: Exchange | None) -> tuple[Block, ToolCallContent] | None:
    """Give the call that a response makes in a text protocol, with the block that says it; None where it makes none."""
    if exchange is None or exchange.role is not Role.ASSISTANT:
        return None
    for block in reversed(exchange.turns[0].blocks):
        if isinstance(block.content, TextContent) and (call := call_in(block.content.content)) is not None:
            return block, call
    return None


def result_of(content: Content, call: ToolCallContent) -> ToolResultContent:
    """Give what answers a call as a result: what a text protocol begins an output with is no word of the tool's."""
    if isinstance(content, ToolResultContent):
        return content
    text = content.content if isinstance(content, TextContent) else ""
    return ToolResultContent(id=call.id, name=call.name, content=result_in(text))


def _observed(index: int, exchange: Exchange, before: Exchange | None) -> Iterator[Act]:
    """Give the act of a text protocol that an exchange is the answer of."""
    asked = asked_for(before)
    answer = exchange.turns[0].blocks[0]
    if asked is None or not isinstance(answer.content, TextContent):
        return
    block, call = asked
    done = deed(call)
    yield Act(
        index=index,
        call=replace(block, content=call),
        answer=answer,
        deed=done,
        failed=outcome(result_of(answer.content, call)) != "ok",
        written=written_by(call, done),
        asked=f"{call.name} {canonical_json(call.args).decode()}",
    )


def _acts(index: int, exchange: Exchange) -> Iterator[Act]:
    calls = [block for block in exchange.turns[0].blocks if isinstance(block.content, ToolCallContent)]
    answers = [block for turn in exchange.turns[1:] for block in turn.blocks]
    for call, answer in zip(calls, answers, strict=False):
        if isinstance(call.content, ToolCallContent) and isinstance(answer.content, ToolResultContent):
            if answer.derived or answer.origin is None:
                continue
            done = deed(call.content)
            yield Act(
                index=index,
                call=call,
                answer=answer,
                deed=done,
                failed=outcome(answer.content) != "ok",
                written=written_by(call.content, done),
                asked=f"{call.content.name} {canonical_json(call.content.args).decode()}",
            )


def _came(act: Act) -> Hashable:
    """Give what came from a tool; nothing where nothing did."""
    parts = act.result.content
    others = () if isinstance(parts, str) else tuple(part for part in parts if not isinstance(part, TextContent))
    return (act.said, others) if others else act.said


def _question(act: Act) -> str:
    """Give what an act asked, if it did nothing but look; what stands in the place of an answer overtakes none."""
    if act.failed or act.deed.run or act.deed.wrote or not act.deed.read:
        return ""
    return "" if says_unchanged(act.words) or says_refused(act.words) else act.asked


def _touched(act: Act) -> str:
    """Give the file that an act wrote, if that is all it did."""
    return "" if act.failed or act.deed.run or len(act.deed.wrote) != 1 else act.deed.wrote[0]
