"""The fields that messages of every role have, and what is computed from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from pydantic import Field, field_validator

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
    changes_in,
    content_of,
    default_modality,
    default_name,
    listed,
    take_convenient,
    with_content,
)
from palaver.messages.frozen import EMPTY, Change
from palaver.messages.media import Media
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason
from palaver.messages.usage import NO_USAGE, InvokeCost, Usage
from palaver.messages.value import JsonObject, Shown, Value

if TYPE_CHECKING:
    from typing import Self


_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_SHOWN_BLOCKS = 3
"""Blocks that the repr of a message has."""
_NAME_LIMIT = 64  # the longest name that OpenAI's chat completions accept


def read_role(word: object) -> Role:
    """Return the role for a word.

    Raises:
        InvalidMessage: No role has this name.
    """
    try:
        return Role(word)  # type: ignore[arg-type] # Enum refuses what is not a role
    except (ValueError, TypeError):
        raise InvalidMessage(f"There is no role {word!r}.", hint=f"Roles are: {', '.join(Role)}.") from None


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
    speaker: Speaker | str | None
    changes: Iterable[Change]
    custom_type: str
    in_context: bool
    summary: str
    from_id: str | None
    tokens_before: int


class TokenLogprob(Value):
    """The log probability of one token, natural logarithm; a bare number or text is read as one."""

    _free: ClassVar[frozenset[str]] = frozenset({"logprob"})  # minus infinity is a log probability, and not JSON

    token: str = ""
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None
    top_logprobs: tuple[TokenLogprob, ...] = ()

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values | {"top_logprobs": _logprobs(values.get("top_logprobs"))}


class MessageRecord(Value):
    """The fields of a message and the views on them.

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
        response_id: The provider's id of the response; fragments of one response share it.
        speaker: Who really said it; by default who speaks in the role.
    """

    _free: ClassVar[frozenset[str]] = frozenset({"metadata", "parsed"})
    _always_stored: ClassVar[frozenset[str]] = frozenset({"role", "contents"})

    role: Role
    contents: tuple[Content, ...] = ()
    id: str = Field(default_factory=new_message_id)
    timestamp: float = Field(default_factory=now)
    name: str = Field(default_factory=lambda known: default_name(known["role"], known["contents"]))
    metadata: JsonObject = EMPTY
    model: str | None = None
    provider: str | None = None
    api_type: APITypes = APITypes.COMPLETION
    usage: Usage = NO_USAGE
    parsed: JsonObject = EMPTY
    logprobs: tuple[TokenLogprob, ...] = ()
    vectors: tuple[float, ...] = ()
    modality: Modalities = Field(default_factory=lambda known: default_modality(known["contents"]))
    stop_reason: StopReason | None = None
    error: str = ""
    response_id: str | None = None
    speaker: Speaker = Field(default_factory=lambda known: SPEAKER_OF_ROLE[known["role"]])

    @field_validator("logprobs", mode="before")
    @classmethod
    def _read_logprobs(cls, value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever a provider gave
        return _logprobs(value)

    @classmethod
    def _keywords(cls) -> AbstractSet[str]:
        return super()._keywords() | CONVENIENT

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Convert the convenient forms to blocks."""
        word = values.get("role")
        values["role"] = read_role(cls.__pydantic_fields__["role"].default if word is None else word)
        if not CONVENIENT.isdisjoint(values):
            take_convenient(values["role"], values)
        values["contents"] = listed(values.get("contents"))
        values["name"] = values.get("name") or None  # an empty name is derived, like one that is not given
        return values

    def stored_fields(self) -> list[tuple[str, Any]]:
        """Leave out what is derived again."""
        derived = self._derived()
        return [item for item in super().stored_fields() if item[0] not in derived or item[1] != derived[item[0]]]

    def _derived(self) -> dict[str, Any]:
        return {
            "name": default_name(self.role, self.contents),
            "modality": default_modality(self.contents),
            "speaker": SPEAKER_OF_ROLE[self.role],
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
    def token_usage(self) -> Usage:
        """The same as ``usage``: a mapping with typed attributes."""
        return self.usage

    @property
    def cost(self) -> InvokeCost:
        """Tokens and recorded dollars."""
        return self.usage.invoke_cost

    @property
    def normalized(self) -> tuple[Change, ...]:
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
        if self.name != default_name(self.role, ()):
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

        ``content`` replaces what was said and leaves thinking and calls alone. What was derived is derived again.

        Raises:
            InvalidMessage: The result would not be a message of this class.
        """
        if not update:
            return super().model_copy(deep=deep)
        changes = dict(update)
        if "content" in changes:
            changes["contents"] = with_content(changes.get("contents", self.contents), changes.pop("content"))
        for name, value in self._derived().items():
            if name not in changes and getattr(self, name) == value:
                changes[name] = None
        return super().model_copy(update=changes)


def media_of(message: MessageRecord) -> Iterator[Media]:
    """Return the media of a message in order, those inside tool results included."""
    for block in message.contents:
        parts = (block,) if not isinstance(block, ToolResultContent) else block.content
        for part in parts if isinstance(parts, tuple) else ():
            if isinstance(part, MediaBlock):
                yield from part.media


def payloads(message: MessageRecord) -> Mapping[BlobId, bytes]:
    """Return the payloads that a message refers to, as far as they are in memory, by blob id."""
    return {BlobId(media.digest): media.data for media in media_of(message) if media.data is not None}


def _logprobs(items: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever a provider gave
    if items is None:
        return ()
    if not isinstance(items, list | tuple):
        raise InvalidMessage("Log probabilities come as a list.")
    return tuple(map(_logprob, items))


def _logprob(item: Any) -> Any:  # noqa: ANN401 - whatever a provider gave
    if isinstance(item, TokenLogprob | dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"logprob": item}
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else {"token": str(item)}
