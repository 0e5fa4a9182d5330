"""What later calls of a session refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from palaver.lab.finder import Finder
from palaver.lab.metrics import distance_of, in_arguments
from palaver.lab.quoted import Quoted
from palaver.lab.recorded import Trace
from palaver.messages import Content, Role, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange

__all__ = ["Need", "Things", "things", "words"]

_ORIGINS: Mapping[Role, str] = {Role.ASSISTANT: "assistant", Role.TOOL: "tool", Role.SYSTEM: "system"}


@dataclass(frozen=True, slots=True)
class Need:
    """A reference of a call to something that had been said before it.

    Attributes:
        name: The identifier.
        index: The exchange of the whole log that said it last; -1 for the instructions.
        origin: Who said it there: `user`, `tool`, `assistant` or `system`.
        distance: How many calls ago, as the name of a distance.
    """

    name: str
    index: int
    origin: str
    distance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """All of it, of one dialog.

    Attributes:
        names: Finds the identifiers that some call refers to.
        quoted: Finds those of them that a text holds in the words of the log.
        odd: The blocks that the log itself shows in another form than they came in.
        needs: What each call refers to, in the order of the calls.
    """

    names: Finder
    quoted: Quoted
    odd: tuple[Block, ...]
    needs: tuple[tuple[Need, ...], ...]


def things(trace: Trace) -> Things:
    """Find what the views of a dialog are asked for."""
    exchanges = trace.whole.exchanges
    names = Finder(name for response in trace.responses.values() for name in sorted(_referred(response)))
    blocks = [block for exchange in exchanges for block in exchange.blocks()]
    said = (*trace.whole.system, *blocks)
    return Things(
        names=names,
        quoted=Quoted(names, _Words(said)),
        odd=tuple(block for block in said if block.reason is not None or block.derived),
        needs=tuple(_needs(trace, names)),
    )


@dataclass(frozen=True, slots=True)
class _Words:
    """What blocks say, each when it is come to."""

    blocks: Sequence[Block]

    def __iter__(self) -> Iterator[str]:
        return (words(block.content) for block in self.blocks)


def words(content: Content) -> str:
    """Give what a block says, for whoever looks for words: texts, results, calls with their arguments. Thinking is not counted on."""
    if isinstance(content, ToolResultContent):
        return content.text()
    if isinstance(content, ToolCallContent):
        return f"{content.name}\n{_values(content.args)}"
    return content.content if isinstance(content, TextContent) else ""


def _values(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{key}\n{_values(each)}" for key, each in value.items())
    if isinstance(value, Sequence):
        return "\n".join(map(_values, value))
    return str(value)


def _calls(exchange: Exchange) -> Iterator[ToolCallContent]:
    return (block.content for block in exchange.blocks() if isinstance(block.content, ToolCallContent))


def _referred(response: Exchange) -> frozenset[str]:
    return frozenset(name for call in _calls(response) for name in in_arguments(call.args))


def _needs(trace: Trace, names: Finder) -> Iterator[tuple[Need, ...]]:
    """Give for each call what it refers to, with where it was said last before it."""
    told = names.found("\n".join(words(block.content) for block in trace.whole.system))
    spoken: dict[str, tuple[int, str, int]] = {}
    read = 0
    for call, view in trace.views():
        for index in range(max(read - 1, 0), len(view.exchanges)):
            for name, origin in _said(view.exchanges[index], names):
                spoken[name] = (index, origin, call.number)
        read = len(view.exchanges)
        found = []
        for name in sorted(_referred(trace.responses[call.first])):
            if name in spoken:
                index, origin, number = spoken[name]
                found.append(Need(name, index, origin, distance_of(call.number - number + 1)))
            elif name in told:
                found.append(Need(name, -1, "system", distance_of(call.number)))
        yield tuple(found)


def _said(exchange: Exchange, names: Finder) -> Iterator[tuple[str, str]]:
    """Give the identifiers in an exchange, each with who said it; what the tools said comes last."""
    for turn in exchange.turns:
        origin = _ORIGINS.get(turn.role, "user")
        for block in turn.blocks:
            yield from ((name, origin) for name in names.found(words(block.content)))
