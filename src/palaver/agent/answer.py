"""The answer of an agent: a message with a value of the agent's output type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self

from pydantic import PrivateAttr
from typing_extensions import TypeVar  # typing.TypeVar has no default before Python 3.13

from palaver.messages import AssistantMessage, Message
from palaver.prompts import Format

__all__ = ["Answer", "OutputT"]

OutputT = TypeVar("OutputT", default=str)
"""The type of an agent's output: `Agent` alone is an `Agent[str]`."""


class Answer(AssistantMessage, Generic[OutputT]):
    """The message that an agent returns, with its `output`. It equals the message in the dialog and is stored as that."""

    _format: Format | None = PrivateAttr(default=None)
    _read: tuple[Any] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, message: Message, output: Format | None) -> Self:
        """Return a message as an answer in a format; None for text."""
        answer = cls.from_dict(dict(message))
        answer._format = output  # noqa: SLF001 - its own class's
        return answer

    @property
    def output(self) -> OutputT:
        """The output: an instance of the type `Agent(output=...)`, or by default the text.

        Raises:
            ParseError: A tool ended the turn, and its result does not fit the type.
        """
        if self._read is None:
            text = self.text_content()
            self._read = (text if self._format is None else self._format.read(text),)
        found: OutputT = self._read[0]
        return found

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the answer; see `Message.model_copy`."""
        return self.of(super().model_copy(update=update, deep=deep), self._format)

    def __eq__(self, other: object) -> bool:
        """Compare the fields of the messages."""
        return isinstance(other, AssistantMessage) and dict(self) == dict(other)

    __hash__ = AssistantMessage.__hash__
