"""The messages of each role, and the constructors that editors show for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from palaver.messages.blocks import AudioContent, ImageContent, TextContent, ToolResultContent
from palaver.messages.forms import CONVENIENT
from palaver.messages.message import Message, MessageFields
from palaver.messages.roles import Role

if TYPE_CHECKING:
    from typing import Self, Unpack


class SystemMessage(Message):
    """Instructions."""

    role: Literal[Role.SYSTEM] = Role.SYSTEM

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def text(cls, text: str) -> Self:
        """Return a message of one text."""
        return cls(contents=(TextContent(text),))


class UserMessage(Message):
    """What a person, or a program in that role, said."""

    role: Literal[Role.USER] = Role.USER

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def text(cls, text: str) -> Self:
        """Return a message of one text."""
        return cls(contents=(TextContent(text),))

    @classmethod
    def with_images(cls, text: str, images: Iterable[object]) -> Self:
        """Return a message of a text followed by one block of images."""
        return cls(contents=(TextContent(text), ImageContent(images)))

    @classmethod
    def with_audio(cls, text: str, audio: Iterable[object]) -> Self:
        """Return a message of a text followed by one block of sounds."""
        return cls(contents=(TextContent(text), AudioContent(audio)))


class AssistantMessage(Message):
    """What a model said; role TOOL_CALL where a dialog keeps requests for tools apart."""

    role: Literal[Role.ASSISTANT, Role.TOOL_CALL] = Role.ASSISTANT

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...


class ToolMessage(Message):
    """What tools returned, one block a call."""

    role: Literal[Role.TOOL] = Role.TOOL

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def from_results(cls, results: Iterable[ToolResultContent]) -> Self:
        """Return a message of the results of a batch, in order."""
        return cls(contents=tuple(results))

    @classmethod
    def from_result(cls, result: ToolResultContent) -> Self:
        """Return a message of a single result."""
        return cls(contents=(result,))

    def text_content(self) -> str:
        """Join the text of all results by line breaks."""
        return "\n".join([result.text() for result in self.tool_results()])

    def split(self) -> tuple[Self, ...]:
        """Return one message a result, sharing ``metadata['batch_id']``; a message of one result is returned as it is."""
        if len(self.contents) <= 1:
            return (self,)
        batch = {**self.metadata, "batch_id": self.id}
        return tuple(
            self.model_copy(update={"contents": (block,), "id": f"{self.id}-{index}", "metadata": batch})
            for index, block in enumerate(self.contents)
        )


class CustomMessage(Message):
    """A note that a program keeps in the session; a model sees it only with ``in_context``."""

    _speaks: ClassVar[bool] = False

    role: Literal[Role.CUSTOM] = Role.CUSTOM
    custom_type: str = ""
    in_context: bool = False

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...


class SummaryMessage(Message):
    """A message whose text is a summary; the constructor accepts ``summary`` for ``content``."""

    _speaks: ClassVar[bool] = False
    _convenient: ClassVar[frozenset[str]] = CONVENIENT | {"summary"}

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        summary = values.pop("summary", None)
        return super()._prepare(values if summary is None else {"content": summary} | values)

    @property
    def summary(self) -> str:
        """The text of the summary."""
        return self.text_content()


class BranchSummaryMessage(SummaryMessage):
    """What happened on the branch that was left at ``from_id``."""

    role: Literal[Role.BRANCH_SUMMARY] = Role.BRANCH_SUMMARY
    from_id: str | None = None

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...


class CompactionSummaryMessage(SummaryMessage):
    """The summary of the messages before it, which had ``tokens_before`` tokens."""

    role: Literal[Role.COMPACTION_SUMMARY] = Role.COMPACTION_SUMMARY
    tokens_before: int = 0

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...


LLMMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
"""The messages that a model is sent as they are."""

AgentMessage: TypeAlias = LLMMessage | CustomMessage | BranchSummaryMessage | CompactionSummaryMessage
"""Every message of a session."""
