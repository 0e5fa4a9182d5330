"""The message family: ``Message`` is to ``UserMessage`` what ``pathlib.Path`` is to ``PosixPath``.

``Message(role="user", content="hi")`` returns a UserMessage, and so do ``Message.model_validate``, JSON, a field of type Message,
copies and pickles. Messages are frozen; ``model_copy(update=...)`` returns a changed one, always of the same class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.messages.blocks import AudioContent, ImageContent, TextContent, ToolResultContent
from palaver.messages.record import MessageFields, MessageRecord, read_role
from palaver.messages.roles import Role
from palaver.messages.value import ValueMeta, by_position

if TYPE_CHECKING:
    from typing import Self, Unpack


class MessageMeta(ValueMeta):
    """Makes the root of the family construct the member for the role."""

    if not TYPE_CHECKING:  # checkers read the constructors of the classes

        def __call__(self, /, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any message
            """Construct a message."""
            if self is not Message:
                return super().__call__(*args, **values)
            values = by_position(Message, args, values)
            member = _member(values)
            member._refuse_unknown(values)  # noqa: SLF001
            _refuse_silence(member, values)
            return member(**values)


class Message(MessageRecord, metaclass=MessageMeta):
    """What was said in one turn.

    The constructor takes a role and ``content`` (text, parts or blocks), by position or by name, the fields, and ``tool_calls``,
    ``function_calls`` and ``tool_call_id``, which become ``contents``. Called on this class it returns the member of the family for
    the role, USER by default; the message must say something, or get ``contents=()`` explicitly.
    """

    if TYPE_CHECKING:

        def __init__(
            self, role: Role | str = Role.USER, content: object = None, /, **values: Unpack[MessageFields]
        ) -> None: ...

    @classmethod
    def _positions(cls) -> list[str]:
        return ["role", "content"] if cls is Message else ["content"]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls is not Message:
            return handler(source)
        members = {member.__name__: handler.generate_schema(member) for member in _MEMBERS}
        return core_schema.tagged_union_schema(members, _member_name)


BaseMessage = Message


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

    role: Literal[Role.CUSTOM] = Role.CUSTOM
    custom_type: str = ""
    in_context: bool = False

    if TYPE_CHECKING:

        def __init__(self, content: object = None, /, **values: Unpack[MessageFields]) -> None: ...


class SummaryMessage(Message):
    """A message whose text is a summary; the constructor takes ``summary`` for ``content``."""

    @classmethod
    def _keywords(cls) -> AbstractSet[str]:
        return super()._keywords() | {"summary"}

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
    """Return the class for the fields of a message."""
    word = fields.get("role")
    return UserMessage if word is None else _MEMBER_OF_ROLE[read_role(word)]


def _refuse_silence(member: type[Message], fields: Mapping[str, Any]) -> None:
    """Raise InvalidMessage for the fields of a message that would say nothing."""
    said = fields.get("contents") is not None or fields.get("content") is not None
    if member in _SPEAKING and not said and not (fields.get("tool_calls") or fields.get("function_calls")):
        raise InvalidMessage("A message needs content or tool calls.", hint="Pass contents=() for an empty one.")


def _member_name(data: object) -> str | None:
    """Return the branch of the union for a message or its fields."""
    if isinstance(data, Message):
        return _MEMBER_OF_ROLE[data.role].__name__
    if not isinstance(data, Mapping):
        return None
    member = _member(data)
    _refuse_silence(member, data)
    return member.__name__
