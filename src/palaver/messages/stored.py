"""Reading back what a store holds, without validating again what was valid when it was written.

The canonical bytes of a message spell few things, and only one way each. :func:`read_stored` looks that every field is of exactly the
type it is stored in, and sets the values together as they are. Whatever is not spelt like that (an older or newer version's, or
anybody else's) it leaves to validation, which gives the same values, or says what is wrong with them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from palaver.errors import PalaverError
from palaver.messages.blocks import (
    AudioContent,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
)
from palaver.messages.forms import CONVENIENT, default_modality, default_name
from palaver.messages.frozen import freeze_plain, frozen_dict
from palaver.messages.message import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from palaver.messages.roles import SPEAKER_OF_ROLE, APITypes, Modalities, Role, Speaker, StopReason, ToolKind
from palaver.messages.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import Enum

    from palaver.messages.frozen import FrozenDict
    from palaver.messages.value import Value

__all__ = ["Unusual", "is_plain", "number", "read_stored", "set_together", "text", "whole"]

Model = TypeVar("Model", bound=BaseModel)

_FLOAT_BITS = 1024  # an integer of fewer bits is in the range of a double (IEEE 754)
_DIRTY_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class Unusual(Exception):
    """Something is not spelt the way it is stored: no error, it is validated then."""


def is_plain(body: bytes) -> bool:
    """Tell whether JSON text spells neither a NUL nor a surrogate: then no string in it has to be replaced."""
    return b"\\" not in body or _DIRTY_ESCAPE.search(body) is None  # one byte is found several times as fast as two


def set_together(kind: type[Model], fields: dict[str, Any], given: set[str], extra: dict[str, Any]) -> Model:
    """Make a value of its fields, all of them and valid, the way pickle does: without validating them."""
    made = _new(kind)
    _set_fields(made, fields)
    _set_given(made, given)
    _set_extra(made, extra)
    _set_private(made, None)
    return made


_new = object.__new__
# what BaseModel.__setstate__ sets, by the descriptors themselves: `object.__setattr__` looks each of them up in all classes above
_set_fields, _set_given, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


@lru_cache(maxsize=1024)  # thousands of messages give the same few fields
def _given(names: tuple[str, ...]) -> set[str]:
    """Give the set of the names of fields that were given: one for all values, which are frozen and hand out copies of it."""
    return set(names)


_NOTHING_LATER: dict[str, Any] = {}  # likewise


# --- how each type is spelt ------------------------------------------------------------------------------------------------


def text(value: object) -> str:
    """Read a string."""
    if type(value) is str:
        return value
    raise Unusual


def number(value: object) -> float:
    """Read a finite number as a float."""
    if type(value) is float and isfinite(value):
        return value
    if type(value) is int and value.bit_length() < _FLOAT_BITS:
        return float(value)
    raise Unusual


def whole(value: object) -> int:
    """Read a whole number."""
    if type(value) is int:
        return value
    raise Unusual


def _truth(value: object) -> bool:
    if type(value) is bool:
        return value
    raise Unusual


def _object(value: object) -> FrozenDict:
    if type(value) is not dict:
        raise Unusual
    for item in value.values():
        if type(item) is not str:
            frozen: FrozenDict = freeze_plain(value)
            return frozen
    return frozen_dict(value)  # strings alone, as most metadata is: nothing in it to freeze


def _usage(value: object) -> Usage:
    if type(value) is dict and value:
        return Usage(value)
    raise Unusual


def _name(value: object) -> str:
    if type(value) is str and value:
        return value
    raise Unusual  # an empty one is derived


def _unusual(_value: object) -> NoReturn:
    raise Unusual


def _word_of(kind: type[Enum]) -> Callable[[Any], Enum]:
    members = {member.value: member for member in kind}

    def word(value: object) -> Enum:
        if type(value) is str and value in members:
            return members[value]
        raise Unusual

    return word


def _result(value: object) -> str | tuple[TextContent, ...]:
    """Read what a tool gave back: text, or blocks of text; media are left to validation."""
    if type(value) is str:
        return value
    if type(value) is not list:
        raise Unusual
    return tuple(
        _read(_TEXT, part) if type(part) is dict and part.get("type") == "text" else _unusual(part) for part in value
    )


class _Plan(NamedTuple):
    """How the fields of a class are read.

    Attributes:
        kind: The class.
        readers: For each field that may be stored, how its value is read.
        defaults: The fields that are not stored, in the order of the class.
    """

    kind: type[Any]
    readers: Mapping[str, Callable[[Any], Any]]
    defaults: Mapping[str, Any]


def _plan(kind: type[Value], /, **readers: Callable[[Any], Any]) -> _Plan:
    defaults = {name: field.default for name, field in kind.__pydantic_fields__.items()}
    return _Plan(kind, {"changes": _unusual, **readers}, defaults)


def _taken(plan: _Plan, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read fields one by one: those of the class, and those of a later version."""
    values = dict(plan.defaults)
    later: dict[str, Any] = {}
    readers = plan.readers
    for name, value in fields.items():
        reader = readers.get(name)
        if reader is not None:
            values[name] = reader(value)
        else:
            later[name] = value
    return values, dict(_object(later)) if later else _NOTHING_LATER


def _read(plan: _Plan, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - a value of the plan's class
    values, later = _taken(plan, fields)
    return set_together(plan.kind, values, _given(tuple(fields)), later)


# --- blocks ----------------------------------------------------------------------------------------------------------------

_TEXT = _plan(TextContent, type=text, content=text)
_TEXT_GIVEN = {"type", "content"}
_BLOCKS = {
    "text": _TEXT,
    "thinking": _plan(
        ThinkingContent,
        type=text,
        content=text,
        signature=text,
        redacted=text,
        provider=text,
        model=text,
        artefact=_object,
    ),
    "tool_call": _plan(
        ToolCallContent,
        type=text,
        id=text,
        name=text,
        kind=_word_of(ToolKind),
        args=_object,
        raw_args=_unusual,
        error=_unusual,
        artefact=_object,
    ),
    "tool_result": _plan(
        ToolResultContent,
        type=text,
        id=text,
        content=_result,
        is_error=_truth,
        metadata=_object,
        terminate=_truth,
        name=text,
    ),
}
_VALIDATED: dict[str, type[Value]] = {
    "image": ImageContent,
    "audio": AudioContent,
    "tool_call": ToolCallContent,
    "tool_result": ToolResultContent,
}
"""The blocks whose unusual forms are usual enough to be validated alone: media, arguments kept as the model wrote them."""


def _block(fields: object) -> Any:  # noqa: ANN401 - any block
    kind = fields.get("type") if type(fields) is dict else None
    if type(fields) is not dict or type(kind) is not str:
        raise Unusual
    if kind == "text" and len(fields) == 2 and type(content := fields.get("content")) is str:  # noqa: PLR2004 - type and content
        values = {"changes": (), "type": "text", "content": content}
        return set_together(TextContent, values, _TEXT_GIVEN, _NOTHING_LATER)
    plan = _BLOCKS.get(kind)
    if plan is not None:
        try:
            return _read(plan, fields)
        except Unusual:
            if kind not in _VALIDATED:
                raise
    return _VALIDATED.get(kind, UnknownContent).model_validate(fields)


# --- messages --------------------------------------------------------------------------------------------------------------


def _contents(value: object) -> tuple[Any, ...]:
    if type(value) is not list:
        raise Unusual
    return tuple([_block(fields) for fields in value])


def _message_plan(kind: type[Message], /, **more: Callable[[Any], Any]) -> _Plan:
    return _plan(
        kind,
        role=_word_of(Role),
        contents=_contents,
        id=text,
        timestamp=number,
        name=_name,
        metadata=_object,
        model=text,
        api_type=_word_of(APITypes),
        usage=_usage,
        parsed=_object,
        logprobs=_unusual,
        vectors=_unusual,
        modality=_word_of(Modalities),
        stop_reason=_word_of(StopReason),
        error=text,
        response_id=text,
        speaker=_word_of(Speaker),
        **dict.fromkeys(CONVENIENT, _unusual),
        **more,
    )


_ASSISTANT = _message_plan(AssistantMessage)
_MESSAGES = {
    Role.SYSTEM.value: _message_plan(SystemMessage),
    Role.USER.value: _message_plan(UserMessage),
    Role.ASSISTANT.value: _ASSISTANT,
    Role.TOOL_CALL.value: _ASSISTANT,
    Role.TOOL.value: _message_plan(ToolMessage),
    Role.CUSTOM.value: _message_plan(CustomMessage, custom_type=text, in_context=_truth),
    Role.BRANCH_SUMMARY.value: _message_plan(BranchSummaryMessage, summary=text, from_id=text),
    Role.COMPACTION_SUMMARY.value: _message_plan(CompactionSummaryMessage, summary=text, tokens_before=whole),
}
_DERIVED = ("name", "modality", "speaker")
_ALWAYS = frozenset({"role", "contents", "id", "timestamp"})


def read_stored(fields: object) -> Message | None:
    """Read the fields of a message that were written by us, from JSON text that is plain (:func:`is_plain`).

    Returns:
        The message that validation would give, or None where only validation can tell.
    """
    try:
        return _message(fields)
    except (Unusual, ValidationError, PalaverError):
        return None


def _message(fields: object) -> Message:
    if type(fields) is not dict or not fields.keys() >= _ALWAYS:
        raise Unusual
    word = fields["role"]
    plan = _MESSAGES.get(word) if type(word) is str else None
    if plan is None:
        raise Unusual
    values, later = _taken(plan, fields)
    role, contents = values["role"], values["contents"]
    if "name" not in fields:
        values["name"] = default_name(role, contents)
    if "modality" not in fields:
        mere_text = len(contents) == 1 and type(contents[0]) is TextContent  # as most are
        values["modality"] = Modalities.TEXT if mere_text else default_modality(contents)
    if "speaker" not in fields:
        values["speaker"] = SPEAKER_OF_ROLE[role]
    made: Message = set_together(plan.kind, values, _given((*fields, *_DERIVED)), later)
    return made
