"""The references of a session's later calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from palaver.lab.finder import Finder, Quoted
from palaver.lab.metrics import in_arguments
from palaver.lab.recorded import RecordedDialog
from palaver.messages import Content, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange


@dataclass(frozen=True, slots=True)
class Need:
    """A call's reference to earlier content.

    Attributes:
        name: The identifier.
        index: The last exchange of the whole log that mentions it; -1 for the instructions.
    """

    name: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """The references of one dialog.

    Attributes:
        names: Finds the identifiers that some call refers to.
        quoted: Finds the identifiers that a text quotes from the log.
        odd: The blocks that the log itself shows in another form.
        needs: The references of each call, in order.
    """

    names: Finder
    quoted: Quoted
    odd: tuple[Block, ...]
    needs: tuple[tuple[Need, ...], ...]


def things(trace: RecordedDialog) -> Things:
    """Return the references of a dialog's calls."""
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
    """The texts of blocks, read one by one."""

    blocks: Sequence[Block]

    def __iter__(self) -> Iterator[str]:
        return (words(block.content) for block in self.blocks)


def words(content: Content) -> str:
    """Return the searchable text of a block: texts, results, calls with their arguments, but not thinking."""
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


def _needs(trace: RecordedDialog, names: Finder) -> Iterator[tuple[Need, ...]]:
    """Yield the references of each call, with the last exchange before the call that mentions them."""
    instructions = names.found("\n".join(words(block.content) for block in trace.whole.system))
    said = dict.fromkeys(instructions, -1)
    read = 0
    for call, view in trace.views():
        for index in range(max(read - 1, 0), len(view.exchanges)):
            for block in view.exchanges[index].blocks():
                said.update(dict.fromkeys(names.found(words(block.content)), index))
        read = len(view.exchanges)
        yield tuple(Need(name, said[name]) for name in sorted(_referred(trace.responses[call.first])) if name in said)
