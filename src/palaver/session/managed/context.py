"""The context of a session manager: what the model sees, in the typed messages of the session, and what no model sees where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from palaver.log import BranchSummary, Handle, MessageEntry, ModeChange, ModelChange, Reader, Span, entry_at
from palaver.messages import BranchSummaryMessage, CompactionSummaryMessage, Message, Role, TextContent
from palaver.session.branches.paths import path_to
from palaver.session.calls.shown import messages_of
from palaver.view import Block, Exchange, Reason, View, fold
from palaver.view.lines import Material, header_at, material

__all__ = ["ROOT", "THINKING", "SessionContext", "context_at"]

THINKING = "thinking"
"""The mode whose value is the thinking level."""

ROOT = "root"
"""What stands for the place of a branch that shares nothing."""

_OFF = "off"


class ModelInForce(NamedTuple):
    """The model that was chosen, or that answered, last."""

    provider: str
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What a session manager makes of a path.

    Attributes:
        messages: The messages in order: what the model sees, summaries as the typed messages that they are; and the custom messages between them.
        thinking_level: The thinking level in force; `off` where none was chosen.
        model: The model in force, or None.
        view: The view that the messages come from.
    """

    messages: tuple[Message, ...] = ()
    thinking_level: str = _OFF
    model: ModelInForce | None = None
    view: View | None = None
    _llm: tuple[Message, ...] = ()

    def to_llm_messages(self) -> tuple[Message, ...]:
        """Give what a model is sent: summaries as a user's text, custom messages only where they were made to be seen."""
        return self._llm


class _Ranks:
    """The order of entries along a path."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = {span: index for index, span in enumerate(spans)}

    def of(self, place: Handle) -> tuple[int, int]:
        index = next((index for span, index in self._spans.items() if place in span), len(self._spans))
        return index, place.seq


def context_at(reader: Reader, place: Handle | None) -> SessionContext:
    """Make the context at an entry; at None, before the first one, there is nothing."""
    if place is None:
        return SessionContext()
    spans = path_to(reader, place)
    view = fold(reader, place.dialog, place.seq)
    found = material(reader, reader.node(place.dialog), header_at(reader, place.dialog, place.seq), whole=False)
    return SessionContext(
        messages=tuple(_messages(reader, view, found, _Ranks(spans))),
        thinking_level=_thinking_level(reader, spans),
        model=_model(reader, spans),
        view=view,
        _llm=tuple(messages_of(view, reader)),
    )


def _messages(reader: Reader, view: View, found: Material, ranks: _Ranks) -> Iterator[Message]:
    yield from messages_of(replace(view, exchanges=()), reader)
    aside = sorted(_unseen(reader, view), key=ranks.of)
    places = [ranks.of(exchange.first) for exchange in view.exchanges if exchange.first is not None]
    if found.place is not None:  # what stands before the first kept entry was compacted away with it
        begin = min([*places, ranks.of(found.place)])
        aside = [place for place in aside if ranks.of(place) >= begin]
    for number, exchange in enumerate(view.exchanges):
        while aside and exchange.first is not None and ranks.of(aside[0]) < ranks.of(exchange.first):
            yield _message_at(reader, aside.pop(0))
        yield from _said(reader, view, exchange, found, number)
    for place in aside:
        yield _message_at(reader, place)


def _unseen(reader: Reader, view: View) -> Iterator[Handle]:
    """Give the custom messages that no model sees."""
    for omission in view.omissions:
        if omission.reason is Reason.NOT_SHOWN and omission.span is not None:
            for place in omission.handles():
                if reader.header(place.dialog, place.seq).role == Role.CUSTOM:
                    yield place


def _said(reader: Reader, view: View, exchange: Exchange, found: Material, number: int) -> Iterator[Message]:
    """Give the messages of an exchange; results that nobody gave are left to the wire."""
    if exchange.derived:
        for block in exchange.blocks():
            yield _summary(reader, block, found, number)
        return
    turns = [
        replace(turn, blocks=tuple(block for block in turn.blocks if not block.derived)) for turn in exchange.turns
    ]
    kept = tuple(turn for turn in turns if turn.blocks)
    yield from messages_of(replace(view, system=(), exchanges=(replace(exchange, turns=kept),)), reader)


def _summary(reader: Reader, block: Block, found: Material, number: int) -> Message:
    """Give the typed message of a text that no one said."""
    text = block.content.content if isinstance(block.content, TextContent) else ""
    if block.origin is None:
        before, at = (found.checkpoint.tokens_before, found.checkpoint.at) if found.checkpoint is not None else (0, 0.0)
        key = f"{found.place}#{number}"
        return CompactionSummaryMessage(
            summary=text, tokens_before=before, id=key, timestamp=at, metadata={"derived": block.derived}
        )
    entry = entry_at(reader, block.origin)
    if isinstance(entry, MessageEntry):
        return entry.message
    left = entry.left if isinstance(entry, BranchSummary) else None
    from_id = ROOT if left is None else str(Handle(left.dialog, left.seq))
    key = str(block.origin._replace(block=None))
    return BranchSummaryMessage(summary=text, from_id=from_id, id=key, timestamp=entry.at)


def _message_at(reader: Reader, place: Handle) -> Message:
    entry = entry_at(reader, place)
    if not isinstance(entry, MessageEntry):
        raise TypeError(f"Entry {place} is a {entry.kind} where its header says message.")
    return entry.message


def _thinking_level(reader: Reader, spans: Sequence[Span]) -> str:
    for place, kind, _ in _backwards(reader, spans):
        if kind == "mode_change":
            entry = entry_at(reader, place)
            if isinstance(entry, ModeChange) and entry.mode == THINKING:
                return entry.value or _OFF
    return _OFF


def _model(reader: Reader, spans: Sequence[Span]) -> ModelInForce | None:
    for place, kind, role in _backwards(reader, spans):
        if kind == "model_change" or role == Role.ASSISTANT:
            entry = entry_at(reader, place)
            if isinstance(entry, ModelChange):
                return ModelInForce(entry.provider, entry.model)
            if isinstance(entry, MessageEntry) and entry.message.model:
                return ModelInForce(entry.message.provider or "", entry.message.model)
    return None


def _backwards(reader: Reader, spans: Sequence[Span]) -> Iterator[tuple[Handle, str, str]]:
    for span in reversed(spans):
        for header in reader.headers(span.dialog, span.start, span.stop, reverse=True):
            yield Handle(span.dialog, header.seq), header.kind, header.role
