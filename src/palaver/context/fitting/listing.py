"""A caller's list of messages as a log that can be read: no store, nothing kept, the numbers of its entries are those of the list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from palaver.errors import UnknownDialog, UnknownHandle
from palaver.ids import DialogId, SessionId, derive_id
from palaver.log import (
    NOTHING,
    Entry,
    Header,
    Instructions,
    MessageEntry,
    Node,
    Pin,
    Place,
    Run,
    Section,
    Span,
    Toolset,
    ToolSpec,
    draft,
    next_header,
    rule,
)
from palaver.messages import Message, Role, Speaker, TextContent, Trust
from palaver.view import Block, Exchange, View, fold
from palaver.wire.words import marked

__all__ = ["LIST", "listed"]

LIST = DialogId(derive_id("palaver", "fit", "list"))
"""The dialog of every list: a constant, so that handles read the same whenever the same list, grown, is fitted again."""

_BESIDE = DialogId(derive_id("palaver", "fit", "beside"))
_SESSION = SessionId(derive_id("palaver", "fit"))


@dataclass(slots=True)
class _Dialog:
    node: Node
    headers: list[Header] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    def put(self, entry: Entry) -> None:
        last = self.headers[-1] if self.headers else NOTHING
        ready, _ = draft(entry, continues=last.response)
        self.headers.append(next_header(ready, last, turn=rule(entry.kind).turn))
        self.bodies.append(ready.body)


@dataclass(slots=True)
class _Listing:
    """A reader of a list, and of what stands beside it: instructions and tools."""

    dialogs: Mapping[DialogId, _Dialog]

    def node(self, dialog_id: DialogId) -> Node:
        return self._dialog(dialog_id).node

    def last(self, dialog_id: DialogId) -> Header:
        headers = self._dialog(dialog_id).headers
        return headers[-1] if headers else NOTHING

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        return self._dialog(dialog_id).headers[self._known(dialog_id, seq)]

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        found = self._dialog(dialog_id).headers[start:stop]
        return reversed(found) if reverse else iter(found)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        return enumerate(self._dialog(dialog_id).bodies[start:stop], start)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        return self._dialog(dialog_id).bodies[self._known(dialog_id, seq)]

    def _dialog(self, dialog_id: DialogId) -> _Dialog:
        if dialog_id not in self.dialogs:
            raise UnknownDialog(dialog_id)
        return self.dialogs[dialog_id]

    def _known(self, dialog_id: DialogId, seq: int) -> int:
        if not 0 <= seq < len(self._dialog(dialog_id).bodies):
            raise UnknownHandle(f"{dialog_id}:{seq}")
        return seq


def listed(
    messages: Sequence[Message], *, system: str = "", tools: Sequence[ToolSpec] = (), pinned: Sequence[int] = ()
) -> View:
    """Give the view of a list: as the fold has it, with the bytes of the media that the messages carry.

    Args:
        messages: The list.
        system: Instructions that stand beside it.
        tools: Tools that are declared beside it.
        pinned: The places in the list that every view must hold.
    """
    beside = _Dialog(Node(dialog_id=_BESIDE, session_id=_SESSION))
    if system:
        beside.put(Instructions(sections=(Section(name="system", text=system),), at=0.0))
    if tools:
        beside.put(Toolset(tools=tuple(tools), at=0.0))
    shared = (Span(_BESIDE, 0, len(beside.bodies)),) if beside.bodies else ()
    own = _Dialog(Node(dialog_id=LIST, session_id=_SESSION, parent_id=_BESIDE, ranges=shared))
    for message in messages:
        own.put(MessageEntry(message=message, at=0.0))
    for index in pinned:
        own.put(Pin(target=Place(dialog=LIST, seq=index), at=0.0))
    view = fold(_Listing({_BESIDE: beside, LIST: own}), LIST)
    shown = (_with_bytes(exchange, messages) for exchange in view.exchanges)
    return replace(view, exchanges=tuple(each for exchange in shown for each in _parted(exchange)))


def _parted(exchange: Exchange) -> Iterator[Exchange]:
    """Give an exchange, what an earlier `fit` put into it as derived texts of their own: nobody said them."""
    turn = exchange.turns[0]
    if exchange.derived or turn.role is not Role.USER or not any(map(_marked, turn.blocks)):
        yield exchange
        return
    for derived, group in groupby(turn.blocks, key=lambda block: _marked(block) is not None):
        blocks = tuple(_derived(block, exchange) if derived else block for block in group)
        messages = 0 if derived and len(blocks) < len(turn.blocks) else exchange.messages
        yield replace(exchange, turns=(replace(turn, blocks=blocks),), derived=derived, messages=messages)


def _marked(block: Block) -> tuple[str, str] | None:
    return marked(block.content.content) if isinstance(block.content, TextContent) else None


def _derived(block: Block, exchange: Exchange) -> Block:
    """Give what an earlier `fit` put into the list as the derived text that it was."""
    kind, words = _marked(block) or ("summary", "")
    runs = tuple(Run(dialog=run.dialog, start=run.start, stop=run.stop) for run in exchange.runs)
    content = TextContent(content=words)
    return replace(block, content=content, derived=kind, sources=runs, speaker=Speaker.SUMMARY, trust=Trust.MODEL)


def _with_bytes(exchange: Exchange, messages: Sequence[Message]) -> Exchange:
    """Show the caller's own blocks, which have their media's bytes, where they are shown as they are."""
    turns = tuple(
        replace(turn, blocks=tuple(_own(block, messages) for block in turn.blocks)) for turn in exchange.turns
    )
    return replace(exchange, turns=turns)


def _own(block: Block, messages: Sequence[Message]) -> Block:
    origin = block.origin
    if origin is None or origin.block is None or origin.dialog != LIST or block.reason is not None:
        return block
    return replace(block, content=messages[origin.seq].contents[origin.block])
