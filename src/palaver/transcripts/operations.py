"""A session as events of OpenTelemetry's conventions for generative AI: one for each answer, with what the model saw before it.

A line is an export of one log record in OTLP's JSON, as OpenTelemetry's file exporter writes it and the collector's `otlpjsonfile` receiver reads it. The
event and its attributes are those of semconv 1.41, docs/gen-ai/gen-ai-events.md; the values of messages are structured, as it requires of events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.dialects.genai import COMPACTED, COMPACTIONS, EVENT, messages_in, part_of
from palaver.ids import DialogId
from palaver.log import Handle, MessageEntry, Span, every_header
from palaver.log.headers import NOTHING
from palaver.messages import Message, Role, ThinkingContent, canonical_json, thaw
from palaver.providers import APIS
from palaver.store.protocol import Store
from palaver.view import Exchange, View
from palaver.view.exchange import read
from palaver.view.fold import Fold
from palaver.wire import How
from palaver.wire.script import ChangeNotes


def lost_in_events(store: Store, view: View, notes: ChangeNotes) -> None:
    """Note what events of a view do not have."""
    for place, what in _unanswered(view):
        notes.add(place, what, How.DROPPED, "no answer follows it, and an event is an answer")
    for _, place, at in _answers(store, view):
        if at > _at(store, place):
            notes.add(place, "time", How.CHANGED, "it is before that of an earlier answer, and events are in order")
    for exchange in view.exchanges:
        for block in exchange.blocks():
            if isinstance(block.content, ThinkingContent) and (block.content.artefact or block.content.redacted):
                notes.add(
                    block.origin, "thinking", How.CHANGED, "an event has no place for what is signed or encrypted"
                )
        if any(kind == "m" for _, kind in exchange.shape()):
            notes.add(
                exchange.first, "media", How.DROPPED, "events have the types of images and sounds, not their bytes"
            )


def _unanswered(view: View) -> Iterator[tuple[Handle | None, str]]:
    """Yield the results of the last answer, and the messages after it."""
    answered = max((index for index, shown in enumerate(view.exchanges) if shown.role is Role.ASSISTANT), default=-1)
    for turn in view.exchanges[answered].turns[1:] if answered >= 0 else ():
        yield from ((block.origin, "result") for block in turn.blocks if not block.derived)
    yield from ((exchange.first, "message") for exchange in view.exchanges[answered + 1 :])


def _answers(store: Store, view: View) -> Iterator[tuple[Exchange, Handle, float]]:
    """Yield each answer, its place, and when: no answer is before an earlier one, since readers order events by time."""
    at = 0.0
    for exchange in view.exchanges:
        if exchange.first is not None and exchange.role is Role.ASSISTANT:
            at = max(at, _at(store, exchange.first))
            yield exchange, exchange.first, at


def operations(store: Store, view: View) -> Iterator[bytes]:
    """Yield a line for each answer in a view. The input of each is what the model saw then: the size grows with the square of the conversation."""
    folds: dict[DialogId, Fold] = {}
    encoded: dict[int, tuple[Exchange, bytes]] = {}
    node = store.node(view.dialog_id)
    resource = {"attributes": list(_pairs({"service.name": node.owner or "palaver"}))}
    for exchange, place, at in _answers(store, view):
        known = folds.setdefault(place.dialog, Fold(store, store.node(place.dialog)))
        before = known.view(
            next(every_header(store, Span(place.dialog, place.seq - 1, place.seq))) if place.seq else NOTHING
        )
        said = _details(store, view, before, exchange)
        compacted = {COMPACTED: True} if any(shown.derived in COMPACTIONS for shown in before.exchanges) else {}
        values = [_input(shown, encoded) for shown in before.exchanges]
        attributes = b",".join(map(canonical_json, _pairs({**said, **compacted})))
        head = canonical_json({"resource": resource})[:-1]
        yield b"".join(
            (
                b'{"resourceLogs":[',
                head,
                b',"scopeLogs":[{"scope":{"name":"palaver"},"logRecords":[{"attributes":[',
                attributes,
                b',{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[',
                b",".join(value for value in values if value),
                b']}}}],"eventName":"',
                EVENT.encode(),
                b'","timeUnixNano":"',
                str(round(at * 1_000_000_000)).encode(),
                b'"}]}]}]}\n',
            )
        )


def _input(exchange: Exchange, encoded: dict[int, tuple[Exchange, bytes]]) -> bytes:
    """Return the messages of an exchange as values, encoded once."""
    known = encoded.get(id(exchange))
    if known is None or known[0] is not exchange:
        known = exchange, b",".join(canonical_json(_value(message)) for message in messages_in(exchange))
        encoded[id(exchange)] = known
    return known[1]


def _at(store: Store, place: Handle) -> float:
    return store.header(place.dialog, place.seq).at


def _details(store: Store, view: View, before: View, exchange: Exchange) -> Mapping[str, Any]:
    """Return the attributes of an answer, without its input."""
    turn = exchange.turns[0]
    entries = read(store, exchange.entries()).values()
    messages = [entry.message for entry in entries if isinstance(entry, MessageEntry)]
    answer = next((message for message in reversed(messages) if message.usage), messages[0] if messages else None)
    reason = answer.stop_reason.value if answer is not None and answer.stop_reason is not None else ""
    parts = [part_of(block.content) for block in turn.blocks]
    declare = APIS["openai-chat"].dialect.declare
    details: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": turn.provider,
        "gen_ai.request.model": turn.model,
        "gen_ai.response.model": turn.model,
        "gen_ai.conversation.id": store.node(view.dialog_id).session_id,
        "palaver.dialog.id": view.dialog_id,
        "gen_ai.system_instructions": [part_of(block.content) for block in before.system],
        "gen_ai.tool.definitions": [thaw(declare(tool)["function"]) | {"type": "function"} for tool in before.tools],
        "gen_ai.output.messages": [{"role": "assistant", "parts": parts, "finish_reason": reason}],
        "gen_ai.response.finish_reasons": [reason] if reason else [],
        **({} if answer is None else _usage(answer)),
    }
    return {name: value for name, value in details.items() if value}


def _usage(answer: Message) -> Mapping[str, Any]:
    usage = answer.usage
    return {
        "gen_ai.response.id": answer.response_id or "",
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


# --- OTLP's JSON --------------------------------------------------------------------------------------------------------


def _pairs(values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from ({"key": name, "value": _value(value)} for name, value in values.items())


def _value(value: object) -> dict[str, Any]:
    """Return a JSON value as an AnyValue of OTLP; whole numbers are texts there."""
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": list(_pairs(value))}}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    name = _SCALARS.get(type(value))
    return {} if name is None else {name: str(value) if name == "intValue" else value}


_SCALARS = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
