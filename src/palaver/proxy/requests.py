"""Requests: what the body of a call says, in the words of any API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.dialects import items_of, tool_specs
from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import Message
from palaver.providers import APIS

_PREVIOUS = ("previous_response_id", "previous_interaction_id")
"""Fields that name the answer after which a request goes on, where the vendor keeps the conversation."""

_SYSTEM = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True, eq=False)
class ReadRequest:
    """What a request says.

    Attributes:
        api: Its API.
        body: Its body, without a content encoding.
        fields: The fields of its body.
        model: The model.
        stream: Whether it asks for a stream.
        system: Its instructions: those in a field of their own, and messages of the system before the conversation.
        tools: Its tools.
        items: The conversation, as JSON.
        previous: The id of the answer after which the conversation goes on, where the vendor keeps it; else empty.
        kept: The id of the conversation that the vendor keeps and the answer belongs to, or empty.
    """

    api: str
    body: bytes
    fields: Mapping[str, Any]
    model: str
    stream: bool
    system: str
    tools: tuple[ToolSpec, ...]
    items: Sequence[Any]
    previous: str
    kept: str

    def messages(self, start: int) -> list[Message]:
        """Read the conversation from an item on, one message for each.

        Raises:
            InvalidMessage: An item is not a message.
        """
        return _messages(self.api, self.items[start:])


def read_request(api: str, body: bytes, model: str = "", *, stream: bool = False) -> ReadRequest:
    """Read the body of a request, but not yet its conversation.

    Args:
        api: The API.
        body: The body, without a content encoding.
        model: The model that the path names, or empty.
        stream: Whether the path asks for a stream.

    Raises:
        InvalidMessage: It is not a request of the API.
    """
    fields = fields_of(body)
    dialect = APIS[api].dialect
    given = fields.get(dialect.items)
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidMessage(f"It is not a request of {api}: it has no list of {dialect.items}.")
    try:
        said = (at for at, item in enumerate(items) if dialect.model_role or item.get("role") not in _SYSTEM)
        leading = next(said, len(items))
        system = [dialect.instructions(fields), *(each.text_content() for each in _messages(api, items[:leading]))]
        tools = tool_specs(dialect.tools(fields))[1]
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # a foreign program may send anything
        raise InvalidMessage(f"It is not a request of {api}: {error}") from error
    kept = fields.get("conversation")  # its id, or an object with it
    kept = _text(kept, "id") if isinstance(kept, dict) else _text(fields, "conversation")
    return ReadRequest(
        api=api,
        body=body,
        fields=fields,
        model=model or _text(fields, "model"),
        stream=stream or fields.get("stream") is True,
        system="\n\n".join(filter(None, system)),
        tools=tools,
        items=items[leading:],
        previous=next(filter(None, (_text(fields, name) for name in _PREVIOUS)), kept),
        kept=kept,
    )


def _messages(api: str, items: Sequence[Any]) -> list[Message]:
    try:
        return list(map(APIS[api].dialect.reader(), items_of(items)))
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # a foreign program may send anything
        raise InvalidMessage(f"It is not a request of {api}: {error}") from error


def fields_of(body: bytes) -> dict[str, Any]:
    """Return the fields of a body.

    Raises:
        InvalidMessage: It is not a JSON object in UTF-8.
    """
    try:
        fields = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidMessage("The request is not JSON.") from error
    if not isinstance(fields, dict):
        raise InvalidMessage("The request is not a JSON object.")
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
