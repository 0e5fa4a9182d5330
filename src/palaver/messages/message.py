"""The message: its fields, how it is constructed or read from a dict, and what is computed from it.

``Message`` is to ``UserMessage`` what ``pathlib.Path`` is to ``PosixPath``: ``Message(role="user", content="hi")`` returns a UserMessage,
and so do ``Message.model_validate``, JSON, a field of type Message, copies and pickles. Messages are frozen; ``model_copy(update=...)``
returns a changed one, always of the same class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, get_args

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from palaver.errors import InvalidMessage
from palaver.ids import BlobId, new_message_id, now
from palaver.messages.blocks import (
    Content,
    MediaBlock,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from palaver.messages.forms import (
    CONVENIENT,
    FunctionCall,
    blocks_of,
    call_of,
    calls_of,
    changes_in,
    content_of,
    extra_fields,
    result_of,
    take_convenient,
    with_content,
)
from palaver.messages.frozen import EMPTY, Replaced
from palaver.messages.media import Media
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason, stop_reason_of
from palaver.messages.usage import NO_USAGE, InvokeCost, TokenLogprob, Usage, read_logprobs
from palaver.messages.value import JsonObject, Shown, Value, listed

if TYPE_CHECKING:
    from typing import Self, Unpack


_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_SHOWN_BLOCKS = 3
"""Blocks that the repr of a message has."""
_NAME_LIMIT = 64  # the longest name that OpenAI's chat completions accept


class MessageFields(TypedDict, total=False):
    """The keywords of the constructor: of every message, and at the end those that only some roles have."""

    role: Role | str
    contents: Iterable[Content | Mapping[str, Any]]
    content: object
    tool_calls: Iterable[object] | None
    function_calls: Iterable[object] | None
    tool_call_id: str | None
    static: bool
    id: str | None
    timestamp: float | None
    name: str | None
    metadata: Mapping[str, Any] | None
    model: str | None
    provider: str | None
    api_type: APITypes | str
    usage: Mapping[str, Any] | None
    parsed: Mapping[str, Any] | None
    logprobs: Iterable[object] | None
    vectors: Iterable[float]
    modality: Modalities | str | None
    stop_reason: StopReason | str | None
    error: str
    response_id: str | None
    fragment: bool
    speaker: Speaker | str | None
    changes: Iterable[Replaced]
    custom_type: str
    in_context: bool
    summary: str
    from_id: str | None
    tokens_before: int


# --- fields that follow from others, unless they are given -------------------------------------------------------------------------

_TYPE = attrgetter("type")
_RICHEST_FIRST = {"image": Modalities.IMAGE, "audio": Modalities.AUDIO, "tool_call": Modalities.FUNCTION_CALL}


def _default_name(known: Mapping[str, Any]) -> str:
    """Return the sender's name by role; for a tool the name in its result."""
    role: Role = known["role"]
    if role is Role.TOOL_CALL:
        return Role.ASSISTANT.value
    if role is not Role.TOOL:
        return role.value
    names = (block.name for block in known["contents"] if block.type == "tool_result")
    return next(filter(None, names), "tool")


def _default_modality(known: Mapping[str, Any]) -> Modalities:
    """Return the richest modality of the blocks; text is the least."""
    types = set(map(_TYPE, known["contents"]))
    for kind, modality in _RICHEST_FIRST.items():
        if kind in types:
            return modality
    return Modalities.TEXT


def _default_speaker(known: Mapping[str, Any]) -> Speaker:
    """Return who speaks in the role."""
    return SPEAKER_OF_ROLE[known["role"]]


class Message(Value):
    """What was said in one turn.

    The constructor takes a role and ``content`` (text, parts or blocks), by position or by name, the fields, and ``tool_calls``,
    ``function_calls`` and ``tool_call_id``, which become ``contents``. Called on this class it returns the member of the family for
    the role, USER by default; the message must say something, or get ``contents=()`` explicitly.

    Attributes:
        role: The part it plays.
        contents: Its blocks.
        id: Its identity.
        timestamp: Seconds since 1970-01-01 UTC.
        name: The sender: a user, an agent, a tool; by default named after the role.
        metadata: Values that the program keeps with it; never sent.
        model: The model that wrote it, or None.
        provider: Who served the model, such as ``anthropic``, or None.
        api_type: The interface it came through.
        usage: What the call that wrote it used; empty if unknown.
        parsed: The output of the prompt's parser; empty without one.
        logprobs: Log probabilities of its tokens, if they were asked for.
        vectors: Embeddings, for programs that keep them.
        modality: What it mainly consists of, derived from the blocks.
        stop_reason: Why the model stopped, or None if unknown.
        error: What went wrong while it was written, or empty.
        response_id: The provider's id of the response, or None. Some servers repeat an id.
        fragment: Whether it is only a part of the response: a recorder wrote the response in several messages with one id.
        speaker: Who really said it; by default who speaks in the role.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"metadata", "parsed"})
    _always_stored: ClassVar[frozenset[str]] = frozenset({"role", "contents"})
    _convenient: ClassVar[frozenset[str]] = CONVENIENT

    _members: ClassVar[dict[Role, type[Message]]] = {}
    """The class for each role. The classes of `palaver.messages.family` enter themselves."""

    _speaks: ClassVar[bool] = True
    """Whether ``Message`` makes one only of something said."""

    role: Role
    contents: tuple[Content, ...] = ()
    id: str = Field(default_factory=new_message_id)
    timestamp: float = Field(default_factory=now)
    name: str = Field(default_factory=_default_name)
    metadata: JsonObject = EMPTY
    model: str | None = None
    provider: str | None = None
    api_type: APITypes = APITypes.COMPLETION
    usage: Usage = NO_USAGE
    parsed: JsonObject = EMPTY
    logprobs: tuple[TokenLogprob, ...] = ()
    vectors: tuple[float, ...] = ()
    modality: Modalities = Field(default_factory=_default_modality)
    stop_reason: StopReason | None = None
    error: str = ""
    response_id: str | None = None
    fragment: bool = False
    speaker: Speaker = Field(default_factory=_default_speaker)

    if TYPE_CHECKING:

        def __init__(
            self, role: Role | str = Role.USER, content: object = None, /, **values: Unpack[MessageFields]
        ) -> None:
            """Say something in a role.

            Args:
                role: `user`, `assistant`, `system`, `tool` or another `Role`; only `Message` itself takes it.
                content: A text, parts as providers write them, or blocks such as `ImageContent`.
                values: `tool_calls`, `function_calls` and `tool_call_id` in the forms of chat completions, and the fields: `name`,
                    `metadata`, `model`, `usage`, `speaker` … `MessageFields` lists them all.
            """

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:  # noqa: ANN401 - pydantic's signature
        for role in get_args(cls.__pydantic_fields__["role"].annotation):
            Message._members.setdefault(role, cls)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        if cls is not Message:
            return handler(source)
        members = {member.__name__: handler.generate_schema(member) for member in cls._members.values()}
        return core_schema.tagged_union_schema(members, _member_name)

    @classmethod
    def _positions(cls) -> list[str]:
        return ["role", "content"] if cls is Message else ["content"]

    @classmethod
    def _class_for(cls, values: Mapping[str, Any]) -> type[Value]:
        if cls is Message:
            return _member(values)._class_for(values)  # noqa: SLF001
        kind = super()._class_for(values)
        _refuse_silence(cls, values)
        return kind

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Convert the convenient forms to blocks."""
        word = values.get("role")
        values["role"] = Role(cls.__pydantic_fields__["role"].default if word is None else word)
        if not CONVENIENT.isdisjoint(values):
            take_convenient(values["role"], values)
        values["contents"] = listed(values.get("contents"), "Contents")
        if "name" in values and not values["name"]:
            del values["name"]  # an empty name is derived, like one that is not given
        if "logprobs" in values:
            values["logprobs"] = read_logprobs(values["logprobs"])
        return values

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
    def token_usage(self) -> Usage:
        """The same as ``usage``: a mapping with typed attributes."""
        return self.usage

    @property
    def cost(self) -> InvokeCost:
        """Tokens and recorded dollars."""
        return self.usage.invoke_cost

    @property
    def normalized(self) -> tuple[Replaced, ...]:
        """What was replaced when the message was normalised, with places seen from the message."""
        return (*self.changes, *changes_in(self.contents))

    def text_content(self) -> str:
        """Join the text of all text blocks, with nothing in between."""
        return "".join([block.content for block in self.contents if isinstance(block, TextContent)])

    def tool_calls(self) -> list[ToolCallContent]:
        """Return the tool calls in order."""
        return [block for block in self.contents if isinstance(block, ToolCallContent)]

    def tool_results(self) -> list[ToolResultContent]:
        """Return the tool results in order."""
        return [block for block in self.contents if isinstance(block, ToolResultContent)]

    def thinking(self) -> list[ThinkingContent]:
        """Return the thinking blocks in order."""
        return [block for block in self.contents if isinstance(block, ThinkingContent)]

    def to_dict(self) -> dict[str, Any]:
        """Return every field as plain JSON, media inline while they are in memory; ``from_dict`` reads it back."""
        return self.model_dump(mode="json")

    def to_api_dict(self) -> dict[str, Any]:
        """Return the chat-completions dict: role and content, and other keys only where they differ from the default.

        Arguments that are not a JSON object stand under ``MALFORMED``, so that a server that parses them accepts the dict.

        Raises:
            InvalidMessage: It holds results of several calls; chat completions keeps each in a message of its own.
            NotFound: The bytes of an image or sound are not in memory.
        """
        if len(self.tool_results()) > 1:
            raise InvalidMessage(
                "A chat-completions message answers one call, and this one answers several.",
                hint="Use ToolMessage.split() first.",
            )
        for media in media_of(self):
            if media.data is None and media.url is None:
                media.payload()  # raises
        role = Role.ASSISTANT if self.is_assistant_side else self.role
        fields: dict[str, Any] = {"role": role.value, "content": self.content}
        if self.is_function_call:
            fields["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json_arguments}}
                for call in self.tool_calls()
            ]
        if self.tool_call_id is not None:
            fields["tool_call_id"] = self.tool_call_id
        if self.name != _default_name({"role": self.role, "contents": ()}):
            fields["name"] = self.sanitized_name
        return fields

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Return the first blocks, texts as they are; `to_dict` has everything."""
        for block in self.contents[:_SHOWN_BLOCKS]:
            yield None, Shown(block.content if isinstance(block, TextContent) else block)
        if len(self.contents) > _SHOWN_BLOCKS:
            yield "more_blocks", len(self.contents) - _SHOWN_BLOCKS

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy the message, with some fields or convenient forms replaced and validated.

        ``content`` replaces what was said and leaves thinking and calls alone.

        Raises:
            InvalidMessage: The result would not be a message of this class.
        """
        if not update:
            return super().model_copy(deep=deep)
        changes = dict(update)
        if "content" in changes:
            changes["contents"] = with_content(changes.get("contents", self.contents), changes.pop("content"))
        return super().model_copy(update=changes)


BaseMessage = Message


def _member(fields: Mapping[str, Any]) -> type[Message]:
    """Return the class for the fields of a message."""
    word = fields.get("role")
    return Message._members[Role.USER if word is None else Role(word)]  # noqa: SLF001


def _refuse_silence(member: type[Message], fields: Mapping[str, Any]) -> None:
    """Raise InvalidMessage for the fields of a message that would say nothing."""
    said = fields.get("contents") is not None or fields.get("content") is not None
    if member._speaks and not said and not (fields.get("tool_calls") or fields.get("function_calls")):  # noqa: SLF001
        raise InvalidMessage("A message needs content or tool calls.", hint="Pass contents=() for an empty one.")


def _member_name(data: object) -> str | None:
    """Return the branch of the union for a message or its fields."""
    if isinstance(data, Message):
        return Message._members[data.role].__name__  # noqa: SLF001
    if type(data) is not dict and not isinstance(data, Mapping):
        return None
    member = _member(data)
    if data.get("contents") is None:
        _refuse_silence(member, data)
    return member.__name__


def media_of(message: Message) -> Iterator[Media]:
    """Return the media of a message in order, those inside tool results included."""
    for block in message.contents:
        parts = (block,) if not isinstance(block, ToolResultContent) else block.content
        for part in parts if isinstance(parts, tuple) else ():
            if isinstance(part, MediaBlock):
                yield from part.media


def payloads(message: Message) -> Mapping[BlobId, bytes]:
    """Return the payloads that a message refers to, as far as they are in memory, by blob id."""
    return {BlobId(media.digest): media.data for media in media_of(message) if media.data is not None}


# --- the dict forms of two interfaces ------------------------------------------------------------------------------------------------

# A key that a message has no field for stays as an extra field, as ``source_<key>`` where a message has a field of that name.


def from_chat_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of chat completions; `fields` are set as they are, such as an id the caller derived.

    An empty message is allowed, since recorded ones exist. The role ``function`` of old recordings is read as TOOL, ``developer``
    as SYSTEM; the word stays as ``source_role``. Reasoning beside the content (LiteLLM, DeepSeek) becomes thinking, and a refusal
    beside it (OpenAI API reference, chat completion message) becomes text.

    Raises:
        InvalidMessage: It is not a message.
    """
    rest = dict(message)
    own = _own_fields(rest)
    call_id, content = rest.pop("tool_call_id", None), rest.pop("content", None)
    parts = () if content is None or isinstance(content, str) else blocks_of(content)
    if own["role"] is Role.TOOL and parts and all(isinstance(part, ToolResultContent) for part in parts):
        contents: tuple[Content, ...] = parts  # the AI SDK's tool messages have results as parts
    elif own["role"] is Role.TOOL:
        result = ToolResultContent(id=call_id or "", content=result_of(content), name=own.get("name"))
        contents = (result,)
    else:
        refusal = rest.get("refusal") if own["role"] is Role.ASSISTANT else None
        if content is None and isinstance(refusal, str) and refusal:
            content = [{"type": "refusal", "refusal": refusal}]
        contents = (*_reasoning(rest), *blocks_of(content))
        if call_id is not None:
            rest["source_tool_call_id"] = call_id
    calls = calls_of(rest.pop("tool_calls", None))
    legacy = rest.pop("function_call", None)
    if legacy:
        calls = (*calls, call_of({"function": legacy}))
    return Message.from_dict(extra_fields(Message, rest) | own | {"contents": (*contents, *calls)} | fields)


def from_anthropic_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of Anthropic's interface: a request's, or the response object with its id, model and usage.

    A user message of tool results alone becomes a TOOL message. `fields` are set as they are.

    Raises:
        InvalidMessage: It is not a message.
    """
    rest = dict(message)
    own = _own_fields(rest)
    contents = blocks_of(rest.pop("content", None))
    if own["role"] is Role.USER and contents and all(isinstance(block, ToolResultContent) for block in contents):
        own["role"] = Role.TOOL
    if rest.get("type") == "message":
        del rest["type"]
        own["response_id"] = rest.pop("id", None)
    word = rest.get("stop_reason")
    if isinstance(word, str):
        own["stop_reason"] = stop_reason_of(word)  # the word itself stays: it is more precise
    return Message.from_dict(extra_fields(Message, rest) | own | {"contents": contents} | fields)


def _own_fields(rest: dict[str, Any]) -> dict[str, Any]:
    """Remove the keys that mean the same to both interfaces and to a message; a renamed role also stays."""
    word = rest.pop("role", None)
    own: dict[str, Any] = {"role": Role.TOOL if word == "function" else Role(word)}
    if own["role"] != word:
        rest["source_role"] = word
    for key in ("name", "model"):
        if isinstance(rest.get(key), str):
            own[key] = rest.pop(key)
    if isinstance(rest.get("usage"), Mapping):
        own["usage"] = Usage(rest.pop("usage"))
    return own


def _reasoning(rest: dict[str, Any]) -> tuple[Content, ...]:
    """Remove the reasoning outside the content: signed blocks if there are any, else its text."""
    signed, text = rest.get("thinking_blocks"), rest.get("reasoning_content")
    if isinstance(signed, list) and signed:
        return blocks_of(rest.pop("thinking_blocks"))
    return (ThinkingContent(content=rest.pop("reasoning_content")),) if isinstance(text, str) and text else ()
