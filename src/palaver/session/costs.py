"""The costs of dialogs and sessions, in tokens and dollars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from palaver import tokens
from palaver.ids import SessionId
from palaver.log import Compaction, Custom, Node, decode_entry
from palaver.messages import InvokeCost, Message, Usage
from palaver.session.messages import own_messages
from palaver.store.protocol import Store

REJECTED = "palaver.attempt"
"""The type of the custom entry with an answer that did not become a message."""


def cost_of_messages(messages: Iterable[Message]) -> InvokeCost:
    """Return the tokens and dollars of messages. Dollars are estimated if the provider reported none."""
    answers = (message for message in messages if message.usage)
    return sum((tokens.cost_of(said.usage, said.model or "", said.timestamp) for said in answers), InvokeCost())


def cost_of_session(store: Store, session_id: SessionId) -> InvokeCost:
    """Return the tokens and dollars of everything that was paid for in a session; see `Session.cost`."""
    total = InvokeCost()
    for node in store.nodes(session_id):
        total = sum(_apart_from_messages(store, node), total + cost_of_messages(own_messages(store, node)))
    return total


def _apart_from_messages(store: Store, node: Node) -> Iterator[InvokeCost]:
    """Yield the costs of a dialog's summaries, and of answers that did not become messages."""
    for header in store.headers(node.dialog_id):
        if header.kind not in {"compaction", "custom"}:  # spares reading the other bodies
            continue
        entry = decode_entry(store.body(node.dialog_id, header.seq))
        data = entry.attempt if isinstance(entry, Compaction) else entry.data if isinstance(entry, Custom) else None
        if not isinstance(data, Mapping):
            continue
        summary, message = data.get("summary"), data.get("message")
        if isinstance(summary, Mapping):
            usages = (Usage(usage) for usage in summary.get("usages", ()) if isinstance(usage, Mapping))
            yield from (tokens.cost_of(usage, str(summary.get("model") or ""), entry.at) for usage in usages)
        if isinstance(entry, Custom) and entry.custom_type == REJECTED and isinstance(message, Mapping):
            yield cost_of_messages((Message.from_dict(message),))
