"""The message family: ``Message`` is to ``UserMessage`` what ``pathlib.Path`` is to ``PosixPath``.

``Message(role="user", content="hi")`` gives a UserMessage, and so do ``Message.model_validate``, JSON, a field of type Message,
copies and pickles. Messages are frozen; ``model_copy(update=...)`` makes a changed one, always of the same class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.messages.blocks import AudioContent, ImageContent, TextContent, ToolResultContent
from palaver.messages.record import MessageFields, MessageRecord
from palaver.messages.roles import Role, read_role
from palaver.messages.value import ValueMeta

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self, Unpack

__all__ = [
    "AgentMessage",
    "AssistantMessage",
    "BaseMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "CustomMessage",
    "LLMMessage",
    "Message",
    "SystemMessage",
    "ToolMessage",
    "UserMessage",
]


class MessageMeta(ValueMeta):
    """Makes the root of the family construct the member that the role asks for."""

    def __call__(self, /, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any message
        """Construct a message."""
        if self is Message:
            return _member(values)(*args, **values)
        return super().__call__(*args, **values)


class Message(MessageRecord, metaclass=MessageMeta):
    """What was said in one turn, and nothing of how the call went.

    Beside its fields the constructor takes ``content`` (text, parts or blocks), ``tool_calls``, ``function_calls`` and
    ``tool_call_id``, which become ``contents``. Called on this class it gives the member of the family for the role, USER if
    none is given; a message made that way has to say something, or get ``contents=()`` explicitly.
    """

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Describe the root as the union of its members, told apart by role."""
        if cls is not Message:
            return handler(source)
        members = {member.__name__: handler.generate_schema(member) for member in _MEMBERS}
        return core_schema.tagged_union_schema(members, _member_name)


BaseMessage = Message


class SystemMessage(Message):
    """Instructions."""

    role: Literal[Role.SYSTEM] = Role.SYSTEM

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def text(cls, text: str) -> Self:
        """Make one of a text."""
        return cls(contents=(TextContent(text),))


class UserMessage(Message):
    """What a person, or whoever plays one, said."""

    role: Literal[Role.USER] = Role.USER

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def text(cls, text: str) -> Self:
        """Make one of a text."""
        return cls(contents=(TextContent(text),))

    @classmethod
    def with_images(cls, text: str, images: Iterable[object]) -> Self:
        """Make one of a text followed by one block of images."""
        return cls(contents=(TextContent(text), ImageContent(images)))

    @classmethod
    def with_audio(cls, text: str, audio: Iterable[object]) -> Self:
        """Make one of a text followed by one block of sounds."""
        return cls(contents=(TextContent(text), AudioContent(audio)))


class AssistantMessage(Message):
    """What a model said; role TOOL_CALL where a dialog keeps requests for tools apart."""

    role: Literal[Role.ASSISTANT, Role.TOOL_CALL] = Role.ASSISTANT

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[MessageFields]) -> None: ...


class ToolMessage(Message):
    """What tools gave back, one block a call."""

    role: Literal[Role.TOOL] = Role.TOOL

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[MessageFields]) -> None: ...

    @classmethod
    def from_results(cls, results: Iterable[ToolResultContent]) -> Self:
        """Make one of the results of a batch, in order."""
        return cls(contents=tuple(results))

    @classmethod
    def from_result(cls, result: ToolResultContent) -> Self:
        """Make one of a single result."""
        return cls(contents=(result,))

    def text_content(self) -> str:
        """Join the text of all results by line breaks."""
        return "\n".join([result.text() for result in self.tool_results()])

    def split(self) -> tuple[Self, ...]:
        """Give one message a result, sharing ``metadata['batch_id']``; a message of one result is given as it is."""
        if len(self.contents) <= 1:
            return (self,)
        batch = {**self.metadata, "batch_id": self.id}
        return tuple(
            self.model_copy(update={"contents": (block,), "id": f"{self.id}-{index}", "metadata": batch})
            for index, block in enumerate(self.contents)
        )


class CustomFields(MessageFields, total=False):
    """The keywords of a custom message."""

    custom_type: str
    in_context: bool


class CustomMessage(Message):
    """Whatever a program wants to keep in the session; a model sees it only if ``in_context`` says so."""

    role: Literal[Role.CUSTOM] = Role.CUSTOM
    custom_type: str = ""
    in_context: bool = False

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[CustomFields]) -> None: ...


class SummaryMessage(Message):
    """A message whose text is its summary: the part that branch and compaction summaries share."""

    summary: str = ""

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Take plain content as the summary."""
        if isinstance(values.get("content"), str) and not values.get("summary"):
            values["summary"] = values.pop("content")
        return super()._prepare(values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the message, with some fields replaced; plain content replaces the summary."""
        if update and isinstance(update.get("content"), str) and not self.contents:
            rest = {name: value for name, value in update.items() if name != "content"}
            update = rest | {"summary": update["content"]}
        return super().model_copy(update=update, deep=deep)

    @property
    def content(self) -> str | list[dict[str, Any]] | None:
        """The summary, unless there are blocks."""
        return super().content if self.contents else self.summary

    def text_content(self) -> str:
        """Give the summary, unless there are blocks."""
        return super().text_content() if self.contents else self.summary


class BranchSummaryFields(MessageFields, total=False):
    """The keywords of a branch summary."""

    summary: str
    from_id: str | None


class BranchSummaryMessage(SummaryMessage):
    """What happened on the branch that was left at ``from_id``."""

    role: Literal[Role.BRANCH_SUMMARY] = Role.BRANCH_SUMMARY
    from_id: str | None = None

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[BranchSummaryFields]) -> None: ...


class CompactionSummaryFields(MessageFields, total=False):
    """The keywords of a compaction summary."""

    summary: str
    tokens_before: int


class CompactionSummaryMessage(SummaryMessage):
    """What stands for the messages before it, which were ``tokens_before`` tokens."""

    role: Literal[Role.COMPACTION_SUMMARY] = Role.COMPACTION_SUMMARY
    tokens_before: int = 0

    if TYPE_CHECKING:

        def __init__(self, **values: Unpack[CompactionSummaryFields]) -> None: ...


LLMMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
"""The messages that a model is sent as they are."""

AgentMessage: TypeAlias = LLMMessage | CustomMessage | BranchSummaryMessage | CompactionSummaryMessage
"""Every message of a session."""

_MEMBER_OF_ROLE: dict[Role, type[Message]] = {
    Role.SYSTEM: SystemMessage,
    Role.USER: UserMessage,
    Role.ASSISTANT: AssistantMessage,
    Role.TOOL_CALL: AssistantMessage,
    Role.TOOL: ToolMessage,
    Role.CUSTOM: CustomMessage,
    Role.BRANCH_SUMMARY: BranchSummaryMessage,
    Role.COMPACTION_SUMMARY: CompactionSummaryMessage,
}
_MEMBERS: tuple[type[Message], ...] = tuple(dict.fromkeys(_MEMBER_OF_ROLE.values()))
_SPEAKING = frozenset({SystemMessage, UserMessage, AssistantMessage, ToolMessage})


def _member(fields: Mapping[str, Any]) -> type[Message]:
    """Choose the class for the fields of a message, and refuse fields that say nothing."""
    word = fields.get("role")
    member = UserMessage if word is None else _MEMBER_OF_ROLE[read_role(word)]
    if member in _SPEAKING and fields.get("contents") is None and fields.get("content") is None:
        _refuse_silence(fields)
    return member


def _refuse_silence(fields: Mapping[str, Any]) -> None:
    if not (fields.get("tool_calls") or fields.get("function_calls")):
        raise InvalidMessage("A message needs content or tool calls.", hint="Pass contents=() for an empty one.")


def _member_name(data: object) -> str | None:
    """Name the branch of the union for a message or its fields."""
    if isinstance(data, Message):
        return _MEMBER_OF_ROLE[data.role].__name__
    return _member(data).__name__ if isinstance(data, Mapping) else None
