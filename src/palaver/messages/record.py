"""What every message has and can tell, whatever its role."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from pydantic import Field, field_validator

from palaver.errors import InvalidMessage
from palaver.ids import new_message_id, now
from palaver.messages.blocks import (
    Content,
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
    listed,
    take_convenient,
    with_content,
)
from palaver.messages.frozen import EMPTY
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason, read_role
from palaver.messages.usage import NO_USAGE, InvokeCost, Usage
from palaver.messages.value import JsonObject, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from palaver.messages.normalize import Change

__all__ = ["MessageFields", "MessageRecord", "TokenLogprob"]

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LIMIT = 64  # the longest name OpenAI's chat completions accept
_DERIVED = frozenset({"name", "modality", "speaker"})
_WIRE_ROLE = {Role.TOOL_CALL: Role.ASSISTANT}


class MessageFields(TypedDict, total=False):
    """The keywords that the constructor of every message takes; unknown ones are kept as well."""

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


class TokenLogprob(Value):
    """The log probability of one token, natural logarithm; a bare number or text is read as one."""

    _free: ClassVar[frozenset[str]] = frozenset({"logprob"})  # minus infinity is a log probability, and no JSON

    token: str = ""
    logprob: float | None = None
    bytes: tuple[int, ...] | None = None
    top_logprobs: tuple[TokenLogprob, ...] = ()

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Read the alternatives of a token."""
        values["top_logprobs"] = _logprobs(values.get("top_logprobs"))
        return values


class MessageRecord(Value):
    """The fields of a message and the views on them.

    Attributes:
        role: The part it plays.
        contents: Its blocks.
        id: Its identity.
        timestamp: Seconds since 1970 UTC.
        name: Who sent it: a user, an agent, a tool; by default named after the role.
        metadata: Whatever the program wants to keep with it; never sent.
        model: The model that wrote it, or None.
        api_type: The interface it came through.
        usage: What the call that wrote it used; empty if it is not known.
        parsed: What the prompt's parser made of it; empty without one.
        logprobs: Log probabilities of its tokens, if they were asked for.
        vectors: Embeddings, for programs that keep them.
        modality: What it mainly consists of, derived from the blocks.
        stop_reason: Why the model stopped, or None if nobody said.
        error: What went wrong while it was written, or empty.
        response_id: The provider's id of the response; fragments of one response share it.
        speaker: Who really said it; by default who speaks in the role.
    """

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

    @field_validator("logprobs", mode="before")
    @classmethod
    def _read_logprobs(cls, value: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever a provider gave
        return _logprobs(value)

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Turn the convenient forms into blocks and derive what was not given."""
        word = values.get("role")
        role = values["role"] = read_role(cls.__pydantic_fields__["role"].default if word is None else word)
        if not CONVENIENT.isdisjoint(values):
            take_convenient(role, values)
        contents = values["contents"] = listed(values.get("contents"))
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
    def token_usage(self) -> Usage:
        """The same as ``usage``: a mapping with typed attributes."""
        return self.usage

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
        return "".join([block.content for block in self.contents if isinstance(block, TextContent)])

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
        """Give every field as plain JSON, media inline while they are in memory; ``from_dict`` reads it back."""
        return self.model_dump(mode="json")

    def to_api_dict(self) -> dict[str, Any]:
        """Give the chat-completions dict: role and content, and the other keys only where they say something.

        Raises:
            InvalidMessage: It holds results of several calls, which chat completions keeps in a message each.
        """
        if len(self.tool_results()) > 1:
            raise InvalidMessage(
                "A chat-completions message answers one call, and this one answers several.",
                hint="Use ToolMessage.split() first.",
            )
        said: dict[str, Any] = {"role": _WIRE_ROLE.get(self.role, self.role).value, "content": self.content}
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

        ``content`` replaces what was said and leaves thinking and calls alone. What was derived is derived again.

        Raises:
            InvalidMessage: The result would be no message of this class.
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


def _logprobs(items: Any) -> tuple[Any, ...]:  # noqa: ANN401 - whatever a provider gave
    if items is None:
        return ()
    if not isinstance(items, list | tuple):
        raise InvalidMessage("Log probabilities come as a list.")
    return tuple(map(_logprob, items))


def _logprob(item: Any) -> Any:  # noqa: ANN401 - whatever a provider gave
    """Read a bare number as a log probability and other things as a token."""
    if isinstance(item, TokenLogprob | dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"logprob": item}
    dump = getattr(item, "model_dump", None)
    return dump() if callable(dump) else {"token": str(item)}
