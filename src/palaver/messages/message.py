"""The message family: ``Message`` is to ``UserMessage`` what ``pathlib.Path`` is to ``PosixPath``.

``Message(role="user", content="hi")`` gives a UserMessage, and so do ``Message.model_validate``, JSON, a field of type Message,
copies and pickles. Messages are frozen; ``model_copy(update=...)`` makes a changed one, always of the same class.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, ValidationError, field_validator
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.ids import new_message_id, now
from palaver.messages.blocks import (
    AudioContent,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from palaver.messages.calls import FunctionCall
from palaver.messages.forms import (
    CONVENIENT,
    changes_in,
    content_of,
    default_modality,
    default_name,
    take_convenient,
    with_content,
)
from palaver.messages.frozen import EMPTY
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason
from palaver.messages.usage import NO_USAGE, InvokeCost, Usage
from palaver.messages.value import JsonObject, Value, ValueMeta, own_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from palaver.messages.normalize import Change

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
    "TokenLogprob",
    "ToolMessage",
    "UserMessage",
]

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LIMIT = 64  # the longest name OpenAI's chat completions accept
_DERIVED = frozenset({"name", "modality", "speaker"})
_ROLE_OF_WORD = {role.value: role for role in Role}


class TokenLogprob(Value):
    """The log probability of one token, natural logarithm; a bare number or text is read as one."""

    token: str = ""
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None
    top_logprobs: tuple[TokenLogprob, ...] = ()


class MessageMeta(ValueMeta):
    """Makes the root of the family construct the member that the role asks for."""

    def __call__(cls, *args: Any, **values: Any) -> Any:  # noqa: ANN401 - the constructor of any message
        """Construct a message."""
        if cls is Message:
            return _member(values).__call__(*args, **values)
        return super().__call__(*args, **values)


class Message(Value, metaclass=MessageMeta):
    """What was said in one turn, and nothing of how the call went.

    Beside its fields the constructor takes ``content`` (text, parts or blocks), ``tool_calls``, ``function_calls`` and
    ``tool_call_id``, which become ``contents``.

    Attributes:
        role: The part it plays.
        contents: Its blocks.
        id: Its identity.
        timestamp: Seconds since 1970 UTC.
        name: Who sent it: a user, an agent, a tool.
        metadata: Whatever the program wants to keep with it; never sent.
        model: The model that wrote it, or None.
        api_type: The interface it came through.
        usage: What the call that wrote it used; empty if it is not known.
        parsed: What the prompt's parser made of it; empty without one.
        logprobs: Log probabilities of its tokens, if they were asked for.
        vectors: Embeddings, for programs that keep them.
        modality: Text, image, audio or function call, derived from the blocks.
        stop_reason: Why the model stopped, or None if nobody said.
        error: What went wrong while it was written, or empty.
        response_id: The provider's id of the response; fragments of one response share it.
        speaker: Who really said it.
    """

    model_config = ConfigDict(defer_build=True)

    _free: ClassVar[frozenset[str]] = frozenset({"metadata", "parsed"})
    _always_stored: ClassVar[frozenset[str]] = _DERIVED | {"role", "contents"}

    role: Role
    contents: tuple[Content, ...] = ()
    id: str = Field(default_factory=new_message_id)
    timestamp: float = Field(default_factory=now)
    name: str = ""
    metadata: JsonObject = EMPTY
    model: str | None = None
    api_type: APITypes = APITypes.COMPLETION
    usage: Usage = NO_USAGE
    parsed: JsonObject = EMPTY
    logprobs: tuple[TokenLogprob, ...] = ()
    vectors: tuple[float, ...] = ()
    modality: Modalities = Modalities.TEXT
    stop_reason: StopReason | None = None
    error: str = ""
    response_id: str | None = None
    speaker: Speaker = Speaker.HUMAN

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """Describe the root as the union of its members, told apart by role."""
        if cls is not Message:
            return handler(source)
        union = core_schema.tagged_union_schema(
            {member.__name__: handler.generate_schema(member) for member in _MEMBERS}, _member_name
        )
        return core_schema.no_info_before_validator_function(_said_something, union)

    @field_validator("logprobs", mode="before")
    @classmethod
    def _read_logprobs(cls, value: Any) -> Any:  # noqa: ANN401 - whatever a provider gave
        return tuple(_logprob(item) for item in value or ())

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn the convenient forms into blocks and derive what was not given."""
        word = values.get("role") or cls.__pydantic_fields__["role"].default
        role = values["role"] = _ROLE_OF_WORD.get(word) or Role(word)
        if not CONVENIENT.isdisjoint(values):
            take_convenient(role, values)
        contents = values.setdefault("contents", ())
        if values.get("id") is None:
            values["id"] = new_message_id()
        if values.get("timestamp") is None:
            values["timestamp"] = now()
        if not values.get("name"):
            values["name"] = default_name(role, contents)
        if values.get("modality") is None:
            values["modality"] = default_modality(contents)
        if values.get("speaker") is None:
            values["speaker"] = SPEAKER_OF_ROLE[role]
        return values

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Leave out what is derived again."""
        derived = self._derived()
        return [item for item in super().stored_fields() if item[0] not in derived or item[1] != derived[item[0]]]

    def _derived(self) -> dict[str, Any]:
        role, contents = self.role, self.contents
        return {
            "name": default_name(role, contents),
            "modality": default_modality(contents),
            "speaker": SPEAKER_OF_ROLE[role],
        }

    @property
    def content(self) -> str | list[dict[str, Any]] | None:
        """The convenient form: text if there is one text block, parts if there is more, None for calls alone."""
        return content_of(self.contents)

    @property
    def function_calls(self) -> list[FunctionCall]:
        """The tool calls as a loop handles them."""
        return [FunctionCall.of(block) for block in self.tool_calls()]

    @property
    def is_function_call(self) -> bool:
        """Whether the model asked for at least one tool."""
        return any(isinstance(block, ToolCallContent) for block in self.contents)

    @property
    def is_assistant_side(self) -> bool:
        """Whether a model wrote it: role ASSISTANT or TOOL_CALL."""
        return self.role in {Role.ASSISTANT, Role.TOOL_CALL}

    @property
    def tool_call_id(self) -> str | None:
        """The call this answers, if it answers exactly one."""
        results = self.tool_results()
        if len(results) == 1:
            return results[0].id
        return None if results else self.metadata.get("tool_call_id")

    @property
    def sanitized_name(self) -> str:
        """The name with every character outside ``[A-Za-z0-9_-]`` replaced by ``_``, at most 64 long, never empty."""
        return _FOREIGN.sub("_", self.name)[:_NAME_LIMIT] or "_"

    @property
    def cost(self) -> InvokeCost:
        """Tokens and recorded dollars."""
        return self.usage.invoke_cost

    @property
    def normalized(self) -> tuple[Change, ...]:
        """Everything the edge changed in this message, its blocks included, with places seen from the message."""
        return (*self.changes, *changes_in(self.contents))

    def text_content(self) -> str:
        """Join the text of all text blocks, with nothing in between."""
        return "".join(block.content for block in self.contents if isinstance(block, TextContent))

    def tool_calls(self) -> list[ToolCallContent]:
        """Give the tool calls in order."""
        return [block for block in self.contents if isinstance(block, ToolCallContent)]

    def tool_results(self) -> list[ToolResultContent]:
        """Give the tool results in order."""
        return [block for block in self.contents if isinstance(block, ToolResultContent)]

    def thinking(self) -> list[ThinkingContent]:
        """Give the thinking blocks in order."""
        return [block for block in self.contents if isinstance(block, ThinkingContent)]

    def to_dict(self) -> dict[str, Any]:
        """Give every field as plain JSON, media inline while they are in memory."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` gave, or a dict in the chat-completions form.

        Raises:
            InvalidMessage: It is neither.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise own_error(cls.__name__, error) from error

    def to_api_dict(self) -> dict[str, Any]:
        """Give the chat-completions dict: role and content, and the other keys only where they say something.

        Raises:
            InvalidMessage: It holds results of several calls, which chat completions keeps in a message each.
        """
        if len(self.tool_results()) > 1:
            raise InvalidMessage("One chat-completions message answers one call.", hint="Use ToolMessage.split() first.")
        said: dict[str, Any] = {"role": _WIRE_ROLES.get(self.role, self.role).value, "content": self.content}
        if self.is_function_call:
            said["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls()
            ]
        if self.tool_call_id is not None:
            said["tool_call_id"] = self.tool_call_id
        if self.name != default_name(self.role, ()):
            said["name"] = self.sanitized_name
        return said

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the message, with some fields or convenient forms replaced and validated.

        ``content`` replaces what was said and leaves thinking and calls alone.

        Raises:
            InvalidMessage: The result would be no message of this class.
        """
        if not update:
            return super().model_copy(deep=deep)
        changes = dict(update)
        if "content" in changes:
            changes["contents"] = with_content(self.contents, changes.pop("content"))
        for name, value in self._derived().items():
            if name not in changes and getattr(self, name) == value:
                changes[name] = None  # to be derived again
        return super().model_copy(update=changes)


BaseMessage = Message


class SystemMessage(Message):
    """Instructions."""

    role: Literal[Role.SYSTEM] = Role.SYSTEM

    @classmethod
    def text(cls, text: str) -> Self:
        """Make one of a text."""
        return cls(contents=(TextContent(text),))


class UserMessage(Message):
    """What a person, or whoever plays one, said."""

    role: Literal[Role.USER] = Role.USER

    @classmethod
    def text(cls, text: str) -> Self:
        """Make one of a text."""
        return cls(contents=(TextContent(text),))

    @classmethod
    def with_images(cls, text: str, images: Iterable[Any]) -> Self:
        """Make one of a text followed by one block of images."""
        return cls(contents=(TextContent(text), ImageContent(images=tuple(images))))

    @classmethod
    def with_audio(cls, text: str, audio: Iterable[Any]) -> Self:
        """Make one of a text followed by one block of sounds."""
        return cls(contents=(TextContent(text), AudioContent(audio=tuple(audio))))


class AssistantMessage(Message):
    """What a model said; role TOOL_CALL where a dialog keeps requests for tools apart."""

    role: Literal[Role.ASSISTANT, Role.TOOL_CALL] = Role.ASSISTANT


class ToolMessage(Message):
    """What tools gave back, one block a call."""

    role: Literal[Role.TOOL] = Role.TOOL

    @classmethod
    def from_results(cls, results: Sequence[ToolResultContent]) -> Self:
        """Make one of the results of a batch, in order."""
        return cls(contents=tuple(results))

    @classmethod
    def from_result(cls, result: ToolResultContent) -> Self:
        """Make one of a single result."""
        return cls(contents=(result,))

    def text_content(self) -> str:
        """Join the text of all results by line breaks."""
        return "\n".join(result.text() for result in self.tool_results())

    def split(self) -> tuple[Self, ...]:
        """Give one message a result, sharing ``metadata['batch_id']``; a message of one result is given as it is."""
        if len(self.contents) <= 1:
            return (self,)
        batch = {**self.metadata, "batch_id": self.id}
        return tuple(
            self.model_copy(update={"contents": (block,), "id": f"{self.id}-{index}", "metadata": batch})
            for index, block in enumerate(self.contents)
        )


class CustomMessage(Message):
    """Whatever a program wants to keep in the session; a model sees it only if ``in_context`` says so."""

    role: Literal[Role.CUSTOM] = Role.CUSTOM
    custom_type: str = ""
    in_context: bool = False


class _SummaryMessage(Message):
    """A message whose text is its summary."""

    summary: str = ""

    @property
    def content(self) -> str | list[dict[str, Any]] | None:
        """The summary, unless there are blocks."""
        return super().content if self.contents else self.summary

    def text_content(self) -> str:
        """Give the summary, unless there are blocks."""
        return super().text_content() if self.contents else self.summary


class BranchSummaryMessage(_SummaryMessage):
    """What happened on the branch that was left at ``from_id``."""

    role: Literal[Role.BRANCH_SUMMARY] = Role.BRANCH_SUMMARY
    from_id: str | None = None


class CompactionSummaryMessage(_SummaryMessage):
    """What stands for the messages before it, which were ``tokens_before`` tokens."""

    role: Literal[Role.COMPACTION_SUMMARY] = Role.COMPACTION_SUMMARY
    tokens_before: int = 0


LLMMessage: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage
AgentMessage: TypeAlias = LLMMessage | CustomMessage | BranchSummaryMessage | CompactionSummaryMessage

_MEMBER_OF_ROLE: dict[str, type[Message]] = {
    Role.SYSTEM: SystemMessage,
    Role.USER: UserMessage,
    Role.ASSISTANT: AssistantMessage,
    Role.TOOL_CALL: AssistantMessage,
    Role.TOOL: ToolMessage,
    Role.CUSTOM: CustomMessage,
    Role.BRANCH_SUMMARY: BranchSummaryMessage,
    Role.COMPACTION_SUMMARY: CompactionSummaryMessage,
}
_MEMBERS = tuple(dict.fromkeys(_MEMBER_OF_ROLE.values()))
_SPEAKING = frozenset({SystemMessage, UserMessage, AssistantMessage, ToolMessage})
_WIRE_ROLES = {Role.TOOL_CALL: Role.ASSISTANT}


def _member(values: Mapping[str, Any]) -> type[Message]:
    """Choose the class for the fields of a message that says something."""
    word = values.get("role") or Role.USER
    member = _MEMBER_OF_ROLE.get(word)
    if member is None:
        try:
            member = _MEMBER_OF_ROLE[Role(word)]
        except ValueError:
            raise InvalidMessage(f"There is no role {word!r}.", hint=f"Roles are: {', '.join(Role)}.") from None
    if values.get("contents") is None and values.get("content") is None and member in _SPEAKING:
        calls = values.get("tool_calls") or values.get("function_calls")
        if not calls:
            raise InvalidMessage("A message needs content or tool calls.", hint="Pass contents=() for an empty one.")
    return member


def _said_something(data: Any) -> Any:  # noqa: ANN401 - whatever is validated
    """Refuse fields that say nothing, as the constructor does."""
    if isinstance(data, dict):
        _member(data)
    return data


def _member_name(data: Any) -> str | None:  # noqa: ANN401 - a message or its fields
    """Name the branch of the union."""
    if isinstance(data, Message):
        return _MEMBER_OF_ROLE[data.role].__name__
    return _member(data).__name__ if isinstance(data, dict) else None


def _logprob(item: Any) -> Any:  # noqa: ANN401 - whatever a provider gave
    """Read a bare number as a log probability and other things as a token."""
    if isinstance(item, TokenLogprob | dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return TokenLogprob(logprob=item)
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else TokenLogprob(token=str(item))


for _class in (*_MEMBERS, Message):
    _class.model_rebuild()
