"""How the types of the public face look to its users. mypy reads this file; nothing runs it.

Each `assert_type` is a promise: a signature that changes what a user's checker infers fails `./run check`.
"""

from collections.abc import Mapping
from typing import Any, assert_type

from palaver.errors import Conflict, InfeasibleBudget, PalaverError
from palaver.messages import (
    Message,
    ToolCallContent,
    ToolMessage,
    Usage,
    UserMessage,
    decode,
    encode,
)


def a_message_is_of_the_family(stored: bytes) -> None:
    """The root's constructor, decoding and copies give a Message; a class of the family gives itself."""
    assert_type(Message(role="user", content="hi"), Message)
    assert_type(UserMessage(content="hi"), UserMessage)
    assert_type(decode(stored), Message)
    assert_type(UserMessage(content="hi").model_copy(update={"content": "ho"}), UserMessage)
    assert_type(Message.model_validate({"role": "user", "content": "hi"}), Message)


def a_message_is_asked(message: Message) -> None:
    """Text, calls and usage have types without Any."""
    assert_type(message.text_content(), str)
    assert_type(message.tool_calls(), list[ToolCallContent])
    assert_type(message.usage, Usage)


def a_message_is_frozen(message: UserMessage) -> None:
    """A checker refuses to write to a value."""
    message.id = "another"  # type: ignore[misc]


def a_message_is_encoded(message: ToolMessage) -> None:
    """Encoding gives the canonical bytes, and the payloads by their digest."""
    body, payloads = encode(message)
    assert_type(body, bytes)
    reading: Mapping[Any, bytes] = payloads
    del reading


def errors_carry_data(error: PalaverError) -> None:
    """One `except` and the attributes tell what to do."""
    assert_type(error.hint, str)
    if isinstance(error, InfeasibleBudget):
        assert_type(error.needed, int)
        assert_type(error.breakdown, Mapping[str, int])
    if isinstance(error, Conflict):
        assert_type(error.expected, int)
