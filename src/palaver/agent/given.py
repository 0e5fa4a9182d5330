"""A conversation that the caller keeps: a list of messages comes in, and is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import Message, Role, UserMessage

__all__ = ["given_messages"]


def given_messages(messages: Sequence[Message | Mapping[str, Any]] | None, text: str) -> tuple[Message, ...]:
    """Read what the caller gives: a list of messages, as objects or in the form of chat completions, a text, or both, the text last.

    Raises:
        InvalidInput: There is nothing to answer, or the last message is neither the user's nor the result of a tool.
        InvalidMessage: One of them is no message.
    """
    found = tuple(map(_message, messages or ()))
    found += (UserMessage.text(text),) if text else ()
    if not found:
        raise InvalidInput("There is nothing to answer.", hint="Give a text, or at least one message.")
    if found[-1].role not in {Role.USER, Role.TOOL}:
        raise InvalidInput(
            f"The last message has the role {found[-1].role.value!r}: there is nothing to answer.",
            hint="End with the user's message, or with the result of a tool to go on from there.",
        )
    return found


def _message(given: object) -> Message:
    if isinstance(given, Message):
        return given
    if isinstance(given, Mapping):
        return Message.from_dict(given)
    raise InvalidInput(
        f"There is a {type(given).__name__} in the place of a message: this is no list of messages.",
        hint='Give messages=[{"role": "user", "content": "…"}] or Message objects; a text alone goes into input=.',
    )
