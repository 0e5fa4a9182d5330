"""The fold: from the log to the view, without choosing anything.

It reads headers, and bodies only of what decides how others are shown: the newest compaction, pins, edits, quarantines, instructions and tools. The
exchanges of the view read their own bodies when they are first shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from palaver.ids import DialogId, SessionId
from palaver.log import (
    NOTHING,
    Entry,
    Handle,
    Header,
    MessageEntry,
    Node,
    Reader,
    Span,
    every_header,
    lineage,
    message_draft,
    next_header,
)
from palaver.messages import Message, Role, Speaker, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.view.blocks import DECIDED
from palaver.view.checkpoint import find_start, header_at
from palaver.view.exchange import Exchange
from palaver.view.state import State
from palaver.view.view import View


def fold(reader: Reader, dialog_id: DialogId, at: int | None = None, *, whole: bool = False) -> View:
    """Return the view of a dialog: the same for the same entries, in every store.

    Args:
        reader: The log.
        dialog_id: The dialog.
        at: The last own entry to include; None for the newest, -1 for inherited entries only.
        whole: Whether to ignore compactions and context edits, so that everything is in the view.

    Raises:
        NotFound: The log has no such dialog.
    """
    return Fold(reader, reader.node(dialog_id), whole=whole).view(header_at(reader, dialog_id, at))


class Fold:
    """An incremental fold. Each view equals the one that `fold` returns; a later one reads only the headers that came since."""

    def __init__(self, reader: Reader, node: Node, *, whole: bool = False) -> None:
        """Read nothing yet.

        Args:
            reader: The log.
            node: The dialog.
            whole: Whether to ignore compactions and context edits.
        """
        self._reader = reader
        self._node = node
        self._whole = whole
        self._state: State | None = None
        self._upto = NOTHING
        self._view: View | None = None

    def view(self, upto: Header) -> View:
        """Return the view up to an own entry of the dialog, inclusive; `NOTHING` for inherited entries only."""
        if self._view is not None and upto.seq == self._upto.seq:
            return self._view
        state, before = self._state, self._upto
        self._state = self._view = None  # an error while reading leaves nothing half read
        follows = before.seq <= upto.seq and (self._whole or before.view_base == upto.view_base)
        # a new compaction, an older entry or a recorded erasure changes what came before: then all is folded anew
        if state is None or not follows or not state.take_span(self._own(before.seq + 1, upto)):
            state = self._begin(upto)
        self._state, self._upto, self._view = state, upto, state.view(upto.seq)
        return self._view

    def _own(self, start: int, upto: Header) -> Span:
        return Span(self._node.dialog_id, start, upto.seq + 1)

    def _begin(self, upto: Header) -> State:
        spans = lineage(self._node, upto.seq + 1)
        checkpoint, tail, damaged = (None, spans, []) if self._whole else find_start(self._reader, spans, upto)
        state = State.of(self._reader, self._node, whole=self._whole)
        state.damaged += damaged
        if checkpoint is not None:
            state.resume(checkpoint)
        for span in tail:
            state.take_span(span)
        return state


_CHUNK = 512
"""Headers that `omitted` reads at once."""


def omitted(view: View) -> Iterator[Exchange]:
    """Return the exchanges that compactions and plans left out of a view, newest first, from headers that are read as they are asked for."""
    if view.reader is None:
        return
    ranks = {span.dialog: rank for rank, span in enumerate(view.shared)}
    spans = [gone.span for gone in view.omissions if gone.span is not None and gone.reason in DECIDED]
    for span in sorted(spans, key=lambda span: (ranks.get(span.dialog, len(ranks)), span.start), reverse=True):
        stop = span.stop
        while stop > span.start:
            headers: list[Header] = []
            size = _CHUNK
            while not headers:  # no user's message in the chunk: where its first exchange begins is not known yet
                headers = _from_first_exchange(view.reader, Span(span.dialog, max(span.start, stop - size), stop), span)
                size *= 2
            yield from reversed(_exchanges(view.reader, span.dialog, headers))
            stop = headers[0].seq  # what comes before the first user's message of a chunk is read with the next one


_OPENING = 512
"""Entries from the beginning among which a dialog's first message of the human is looked for; it is nearly always the first."""


def said_by_human(reader: Reader, spans: Iterable[Span]) -> Iterator[Exchange]:
    """Return the messages of the human among the first entries of some spans, oldest first, from headers that are read as they are asked for."""
    for dialog, header in islice(
        ((span.dialog, header) for span in spans for header in every_header(reader, span)), _OPENING
    ):
        if header.kind == "message" and header.role == Role.USER:
            said = _exchanges(reader, dialog, [header])
            yield from (exchange for exchange in said if exchange.speaker is Speaker.HUMAN)


def _from_first_exchange(reader: Reader, part: Span, span: Span) -> list[Header]:
    """Return the headers of a part of a span, from the first user message on unless the part begins the span."""
    headers = list(every_header(reader, part))
    if part.start == span.start:
        return headers
    begins = (index for index, each in enumerate(headers) if each.role == Role.USER and "r" not in each.blocks)
    first = next(begins, None)
    return [] if first is None else headers[first:]


def _exchanges(reader: Reader, dialog_id: DialogId, headers: Sequence[Header]) -> list[Exchange]:
    node = Node(dialog_id=dialog_id, session_id=SessionId(""))
    state = State.of(reader, node)
    state.leads = 0
    for header in headers:
        if header.kind == "message":
            state.message(dialog_id, header)
        elif header.kind == "branch_summary":
            state.pairing.summary(dialog_id, header)
    return state.pairing.finish(live=False)


# --- plain lists --------------------------------------------------------------------------------------------------------------------


def fold_messages(
    messages: Sequence[Message],
    dialog_id: DialogId,
    *,
    pinned: Collection[int] = (),
) -> View:
    """Return the view of a list of messages. Its blocks show the very blocks of the messages.

    Sizes are characters, not bytes, because nothing is encoded. System messages before the conversation become `view.system`.

    Args:
        messages: The messages, in order.
        dialog_id: The dialog of the view; the messages are its entries 0, 1, 2, ...
        pinned: Indexes of messages that every view must show.
    """

    def read(wanted: Iterable[Handle]) -> Mapping[Handle, Entry]:
        said = ((place, messages[place.seq]) for place in wanted)
        return {place: MessageEntry(at=message.timestamp, message=message) for place, message in said}

    state = State(Node(dialog_id=dialog_id, session_id=SessionId("")), _no_headers, read)
    last = NOTHING
    for message in messages:
        last = next_header(message_draft(message, message.timestamp, b""), last)
        state.message(dialog_id, last._replace(size=_characters(message)))
    for index in pinned:
        state.marks.flag(Handle(dialog_id, index), "pin", Handle(dialog_id, index), holds=True)
    return state.view(len(messages) - 1)


def _no_headers(span: Span) -> Iterator[Header]:
    raise AssertionError(span)  # only spans of ancestors are read again, and a list has none


def _characters(message: Message) -> int:
    """Return a cheap estimate of a message's size: the characters of its texts, calls and results."""
    size = 0
    for content in message.contents:
        if isinstance(content, TextContent | ThinkingContent):
            size += len(content.content)
        elif isinstance(content, ToolResultContent):
            size += len(content.text())
        elif isinstance(content, ToolCallContent):
            size += len(str(content.args))
    return size
