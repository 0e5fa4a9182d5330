"""The convenient forms of a message, ``content`` and ``tool_calls``, converted to blocks and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

from palaver.errors import InvalidMessage
from palaver.messages.blocks import Content, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.messages.normalize import Change
from palaver.messages.parts import blocks_of, calls_of, part_of, result_of
from palaver.messages.roles import Modalities, Role

__all__ = [
    "CONVENIENT",
    "changes_in",
    "content_of",
    "default_modality",
    "default_name",
    "listed",
    "take_convenient",
    "with_content",
]

CONVENIENT = frozenset({"content", "tool_calls", "function_calls", "tool_call_id", "static"})
"""The keywords of a message's constructor that are not fields. ``static`` is ignored: stored text is never a template."""

_MODALITY_OF_TYPE = {"image": Modalities.IMAGE, "audio": Modalities.AUDIO, "tool_call": Modalities.FUNCTION_CALL}
_RICHNESS = (Modalities.TEXT, Modalities.FUNCTION_CALL, Modalities.AUDIO, Modalities.IMAGE)

_Contents = tuple[Any, ...]  # blocks, or their fields before they are validated


def take_convenient(role: Role, values: dict[str, Any]) -> None:
    """Replace the convenient keywords among a message's fields by blocks in ``contents``."""
    content, call_id = values.pop("content", None), values.pop("tool_call_id", None)
    calls = (*calls_of(values.pop("tool_calls", None)), *calls_of(values.pop("function_calls", None)))
    values.pop("static", None)
    metadata = values.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}  # anything else is refused by validation
    said: _Contents = blocks_of(content)
    if role is Role.TOOL and said and not any(isinstance(block, ToolResultContent) for block in said):
        answered = known.get("tool_call_id", "") if call_id is None else call_id
        said = (ToolResultContent(id=answered, content=result_of(content), name=values.get("name")),)
    elif call_id is not None:
        values["metadata"] = {**known, "tool_call_id": call_id}
    values["contents"] = (*listed(values.get("contents")), *said, *calls)


def listed(contents: object) -> _Contents:
    """Return blocks, or their fields, as a tuple; None is empty.

    Raises:
        InvalidMessage: They are not a list.
    """
    if isinstance(contents, tuple):
        return contents
    if contents is None:
        return ()
    if isinstance(contents, str | bytes | Mapping) or not isinstance(contents, Iterable):
        raise InvalidMessage(f"Contents are a list of blocks, not a {type(contents).__name__}.")
    return tuple(contents)


def default_name(role: Role, contents: Iterable[Content]) -> str:
    """Return the sender's name by role; for a tool the name in its result."""
    if role is Role.TOOL_CALL:
        return Role.ASSISTANT.value
    if role is not Role.TOOL:
        return role.value
    names = (block.name for block in contents if isinstance(block, ToolResultContent))
    return next(filter(None, names), "tool")


def default_modality(contents: Iterable[Content]) -> Modalities:
    """Return the richest modality of the blocks; text is the least."""
    found = {_MODALITY_OF_TYPE.get(block.type, Modalities.TEXT) for block in contents}
    return max(found, key=_RICHNESS.index, default=Modalities.TEXT)


def content_of(contents: Iterable[Content]) -> str | list[dict[str, Any]] | None:
    """Return the convenient form: a string for one text, parts for more, None for calls or thinking alone.

    For the result of one call it is the result's content in the same form.
    """
    said = _said(contents)
    if len(said) == 1 and isinstance(said[0], TextContent):
        return said[0].content
    if len(said) == 1 and isinstance(said[0], ToolResultContent):
        inner = said[0].content
        return inner if isinstance(inner, str) else [part for block in inner for part in part_of(block)]
    return [part for block in said for part in part_of(block)] or None


def with_content(contents: Iterable[Content], content: object) -> tuple[Content, ...]:
    """Replace what was said, keeping the thinking before it, the calls, and the frame of a single tool result."""
    blocks = tuple(contents)
    said = _said(blocks)
    if len(said) == 1 and isinstance(said[0], ToolResultContent):
        new: tuple[Content, ...] = (said[0].model_copy(update={"content": result_of(content)}),)
    else:
        new = blocks_of(content)
    thoughts = tuple(takewhile(lambda block: isinstance(block, ThinkingContent), blocks))
    return (*thoughts, *new, *(block for block in blocks[len(thoughts) :] if block not in said))


def _said(contents: Iterable[Content]) -> list[Content]:
    return [block for block in contents if not isinstance(block, ThinkingContent | ToolCallContent)]


def changes_in(contents: Iterable[Content]) -> Iterable[Change]:
    """Return the changes recorded in blocks, with places that start at ``contents``."""
    for index, block in enumerate(contents):
        place = f"contents[{index}]"
        yield from (change.under(place) for change in block.changes)
        if isinstance(block, ToolResultContent) and isinstance(block.content, tuple):
            for number, part in enumerate(block.content):
                yield from (change.under(f"{place}.content[{number}]") for change in part.changes)
