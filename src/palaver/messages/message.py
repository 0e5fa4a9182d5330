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
    UnknownContent,
)
from palaver.messages.calls import FunctionCall
from palaver.messages.frozen import EMPTY
from palaver.messages.normalize import Change
from palaver.messages.parts import blocks_of, call_of, part_of
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason
from palaver.messages.usage import NO_USAGE, InvokeCost, Usage
from palaver.messages.value import JsonObject, Value, ValueMeta, invalid_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

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

_NAME_LIMIT = 64  # the longest name OpenAI's chat completions accept
_CONVENIENT = frozenset({"content", "tool_calls", "function_calls", "tool_call_id", "static"})
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

    free: ClassVar[frozenset[str]] = frozenset({"metadata", "parsed"})

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
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn the convenient forms into blocks and derive what was not given."""
        word = values.get("role") or cls.__pydantic_fields__["role"].default
        role = values["role"] = _ROLE_OF_WORD.get(word) or Role(word)
        if not _CONVENIENT.isdisjoint(values):
            _take_convenient(role, values)
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

    @property
    def content(self) -> str | list[dict[str, Any]] | None:
        """The convenient form: text if there is one text block, parts if there is more, None for calls alone."""
        results = [block for block in self.contents if isinstance(block, ToolResultContent)]
        if len(results) == 1 and len(self.contents) == 1:
            inner = results[0].content
            return inner if isinstance(inner, str) else [part for block in inner for part in part_of(block)]
        said = [block for block in self.contents if not isinstance(block, ThinkingContent | ToolCallContent)]
        if len(said) == 1 and isinstance(said[0], TextContent):
            return said[0].content
        return [part for block in said for part in part_of(block)] if said else None

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
        return re.sub(r"[^A-Za-z0-9_-]", "_", self.name)[:_NAME_LIMIT] or "_"

    @property
    def cost(self) -> InvokeCost:
        """Tokens and recorded dollars."""
        return self.usage.invoke_cost

    @property
    def normalized(self) -> tuple[Change, ...]:
        """Everything the edge changed in this message, its blocks included, with places seen from the message."""
        inner = (
            change.under(f"contents[{i}]") for i, block in enumerate(self.contents) for change in _all_changes(block)
        )
        return (*self.changes, *inner)

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
            raise invalid_message(cls.__name__, error) from error

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
        values = {**self.__dict__, **(self.__pydantic_extra__ or {})}
        for derived in ("name", "modality"):
            if values[derived] == _DERIVED[derived](self.role, self.contents):
                del values[derived]
        changes = dict(update)
        if "content" in changes:
            changes["contents"] = _with_content(self, changes.pop("content"))
        return type(self)(**(values | changes))


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

    def split(self) -> tuple[Self, ...]:
        """Give one message a result, sharing ``metadata['batch_id']``; a message of one result is given as it is."""
        if len(self.contents) <= 1:
            return (self,)
        batch = {**self.metadata, "batch_id": self.id}
        return tuple(
            self.model_copy(
                update={"contents": (block,), "id": f"{self.id}-{i}", "metadata": batch, "modality": None, "name": ""}
            )
            for i, block in enumerate(self.contents)
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


def default_name(role: Role, contents: Iterable[Any]) -> str:
    """Name the sender by role; a tool by the name in its result."""
    if role is not Role.TOOL:
        return _NAME_OF_ROLE[role]
    names = (_field(block, "name") for block in contents if _field(block, "type") == "tool_result")
    return next(filter(None, names), "tool")


def default_modality(contents: Iterable[Any]) -> Modalities:
    """Derive the modality from the blocks: the richest one wins, text is the least."""
    found = Modalities.TEXT
    for block in contents:
        modality = _MODALITY_OF_TYPE.get(_field(block, "type"), Modalities.TEXT)
        if _RICHNESS[modality] > _RICHNESS[found]:
            found = modality
    return found


_NAME_OF_ROLE = {role: role.value for role in Role} | {Role.TOOL_CALL: Role.ASSISTANT.value}
_MODALITY_OF_TYPE = {"image": Modalities.IMAGE, "audio": Modalities.AUDIO, "tool_call": Modalities.FUNCTION_CALL}
_RICHNESS = {Modalities.TEXT: 0, Modalities.FUNCTION_CALL: 1, Modalities.AUDIO: 2, Modalities.IMAGE: 3}


def _field(block: Any, name: str) -> Any:  # noqa: ANN401 - a block, or its fields before they are validated
    return block.get(name) if isinstance(block, dict) else getattr(block, name, None)


_DERIVED: dict[str, Any] = {
    "name": default_name,
    "modality": lambda _role, contents: default_modality(contents),
}


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


def _take_convenient(role: Role, values: dict[str, Any]) -> None:
    """Turn content, calls and the call answered into blocks."""
    content, call_id = values.pop("content", None), values.pop("tool_call_id", None)
    calls = (*(values.pop("tool_calls", None) or ()), *(values.pop("function_calls", None) or ()))
    values.pop("static", None)
    contents: tuple[Any, ...] = (*(values.get("contents") or ()), *blocks_of(content))
    if role is Role.TOOL:
        contents = _as_result(contents, content, call_id, values)
    elif call_id is not None:
        values["metadata"] = {**(values.get("metadata") or {}), "tool_call_id": call_id}
    values["contents"] = (*contents, *map(call_of, calls)) if calls else contents


def _as_result(contents: tuple[Any, ...], content: object, call_id: object, values: dict[str, Any]) -> tuple[Any, ...]:
    """Put a tool's plain content into the result block of its call."""
    if any(isinstance(block, ToolResultContent) for block in contents) or content is None:
        return contents
    answered = call_id if call_id is not None else (values.get("metadata") or {}).get("tool_call_id", "")
    inner = content if isinstance(content, str) else contents
    return (ToolResultContent(id=answered, content=inner, name=values.get("name")),)


def _with_content(message: Message, content: object) -> tuple[Any, ...]:
    """Replace what was said by new content, where it stood."""
    kept = (ThinkingContent, ToolCallContent)
    results = message.tool_results()
    if message.role is Role.TOOL and len(results) == 1 and isinstance(content, str):
        return (ToolResultContent(**(dict(results[0]) | {"content": content})),)
    new = blocks_of(content)
    first = next((i for i, block in enumerate(message.contents) if not isinstance(block, ThinkingContent)), None)
    at = len(message.contents) if first is None else first
    before = [block for block in message.contents[:at] if isinstance(block, kept)]
    after = [block for block in message.contents[at:] if isinstance(block, kept)]
    return (*before, *new, *after)


def _all_changes(block: Any) -> tuple[Change, ...]:  # noqa: ANN401 - any block
    """Give the changes of a block and of the blocks in it."""
    inner = getattr(block, "content", None)
    if not isinstance(inner, tuple):
        return tuple(block.changes)
    return (
        *block.changes,
        *(change.under(f"content[{i}]") for i, part in enumerate(inner) for change in part.changes),
    )


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
