"""The costs of dialogs and sessions, in tokens and dollars."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from palaver import tokens
from palaver.ids import SessionId
from palaver.log import Header, Node, Reader, Span, every_body, every_header, repeated
from palaver.log.headers import SAID
from palaver.messages import InvokeCost, Message, Usage
from palaver.store.protocol import Store

REJECTED = "palaver.attempt"
"""The type of the custom entry with an answer that did not become a message."""

_USED = b'"usage":{"'
"""A part of the canonical bytes of every message that reports usage; in a text with the same words the quotes are escaped."""


def cost_of_messages(messages: Iterable[Message]) -> InvokeCost:
    """Return the tokens and dollars of messages. Dollars are estimated if the provider reported none."""
    answers = (message for message in messages if message.usage)
    return sum((tokens.cost_of(said.usage, said.model or "", said.timestamp) for said in answers), InvokeCost())


def cost_of_session(store: Store, session_id: SessionId) -> InvokeCost:
    """Return the tokens and dollars of everything that was paid for in a session; see `Session.cost`."""
    return sum((paid.cost() for node in store.nodes(session_id) for paid in own_paid(store, node)), InvokeCost())


class Paid(NamedTuple):
    """Something that was paid for.

    Attributes:
        seq: The number of the entry that says so, or that begins the answer.
        at: When, in seconds since 1970-01-01 UTC.
        model: The model.
        usage: What the provider reported.
        role: The role of the answer; `summary` for the summary of a compaction.
    """

    seq: int
    at: float
    model: str
    usage: Usage
    role: str

    def cost(self) -> InvokeCost:
        """Return its tokens and dollars."""
        return tokens.cost_of(self.usage, self.model, self.at)


def own_paid(store: Store, node: Node) -> list[Paid]:
    """Return what was paid for in a dialog's own entries, in order, without the answers that a rewritten file repeats."""
    span, again = Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1), repeated(store, node)
    return [paid for paid in paid_in(store, span) if paid.seq not in again]


def paid_in(reader: Reader, span: Span) -> list[Paid]:
    """Return what was paid for in a run of entries, in order. Bodies are read as JSON: a tenth of the time that decoding them takes."""
    paid: list[Paid] = []
    growing, response = -1, ""  # the index of the answer that fragments continue, and their response
    for header, (_, body) in zip(every_header(reader, span), every_body(reader, span), strict=False):
        if header.kind in {"compaction", "custom"}:
            paid += _apart_from_messages(header, _read(body))
        elif header.kind == "message" and (header.role in SAID or _USED in body):
            said = _object(_read(body).get("message"))
            usage = _object(said.get("usage"))
            if header.begins:
                if header.role in SAID:
                    growing, response = len(paid), header.response
                paid.append(_answer(header, said))
            elif growing >= 0 and header.response == response and usage:
                paid[growing] = paid[growing]._replace(usage=Usage(usage))
    return sorted((said for said in paid if said.usage), key=attrgetter("seq"))


def _answer(header: Header, said: Mapping[str, Any]) -> Paid:
    at = said.get("timestamp")
    model, usage = str(said.get("model") or ""), Usage(_object(said.get("usage")))
    return Paid(header.seq, header.at if at is None else at, model, usage, header.role)


def _apart_from_messages(header: Header, entry: Mapping[str, Any]) -> Iterator[Paid]:
    """Yield a dialog's summaries, and answers that did not become messages."""
    data = _object(entry.get("attempt" if header.kind == "compaction" else "data"))
    summary = _object(data.get("summary"))
    model = str(summary.get("model") or "")
    for usage in summary.get("usages") or ():
        yield Paid(header.seq, header.at, model, Usage(_object(usage)), "summary")
    if entry.get("custom_type") == REJECTED and (said := _object(data.get("message"))):
        yield _answer(header._replace(role="assistant"), said)


def _read(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body; an empty one for a body that is lost or damaged."""
    try:
        return _object(json.loads(body))
    except ValueError:
        return {}


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
