"""Refusals: find the block of a request that a provider refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from palaver import wire
from palaver.log import Handle
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from palaver.store.protocol import Store
from palaver.store.records import payloads_of
from palaver.view import Block, Exchange, Turn, View

_LISTS = r"messages|input|contents|system|system_instruction|systemInstruction"
_PATH = re.compile(rf"\b(?:{_LISTS})(?:\.\w+|\[['\"]?\w+['\"]?\])+")
_STEP = re.compile(r"\w+")
_MEDIA = re.compile(r"\b(?:images?|audio|media|documents?|pdf|base64)\b", re.IGNORECASE)  # in providers' error texts
_SEALED = re.compile(r"encrypted content (?:for item )?([^\s.]+)(?:\.\.\.(\S+))? could not be verified")
"""OpenAI names a sealed item by its id, or by the first and the last characters of its content (openai/codex#8145, smallmain/vscode-unify-chat-provider#178)."""
_OURS = "cache_control"  # the compiler adds it, so the block is not at fault
_MARK = "palaver-block-{}-"
_MESSAGE_STEPS = 2  # the list, and the number in it


def blamed(store: Store, request: wire.Request, words: str) -> Handle | None:
    """Return the block that a provider's refusal names by its place in the request, as in `messages.3.content.0: …`.

    Args:
        store: The store of the media.
        request: The request that was refused, compiled from a view.
        words: The provider's text, as in `str(error)`.

    Returns:
        The block's handle, or None if the text names no place with exactly one block of the log. A text about media without a place, such as
        «Could not process image», means the only new image or sound.
    """
    if request.view is None or request.call is None:
        return None
    if sealed := _SEALED.search(words):
        begins, ends = sealed[1], sealed[2] or ""
        named = [block.origin for block in _blocks(request.view) if _is_sealed(block.content, begins, ends)]
        return named[0] if len(named) == 1 else None
    paths = [_STEP.findall(path.group()) for path in _PATH.finditer(words)]
    if not paths:
        new = _new_media(request, request.view) if _MEDIA.search(words) is not None else []
        return new[0] if len(new) == 1 else None
    load = payloads_of(store, store.node(request.view.dialog_id).session_id)
    marked = wire.compile(_marked(request.view), request.profile, request.call, load)
    origins = {_MARK.format(origin): origin for origin in _origins(request.view)}
    for steps in paths:
        if _OURS in steps:
            return None
        path = _resolved(request.body, [int(step) if step.isdecimal() else step for step in steps])
        for upto in range(
            len(path), _MESSAGE_STEPS - 1, -1
        ):  # a place inside a call's arguments is not in the marked request
            text = str(_at(marked.body, path[:upto]))
            shown = [origin for mark, origin in origins.items() if mark in text]
            if len(shown) == 1:
                return shown[0]
    return None


def _is_sealed(content: Content, begins: str, ends: str) -> bool:
    """Return whether a block has this id, or encrypted content with these ends."""
    item = content.artefact if isinstance(content, ThinkingContent) else content.model_extra or {}
    text = str(item.get("encrypted_content") or "")
    return item.get("id") == begins or bool(text and ends and text.startswith(begins) and text.endswith(ends))


def _new_media(request: wire.Request, view: View) -> list[Handle]:
    """Return the images and sounds after the newest answer of the same model, which accepted the earlier ones; or all if there are none after it."""
    shown: list[Handle] = []
    new: list[Handle] = []
    for exchange in view.exchanges:
        for turn in exchange.turns:
            if turn.role is Role.ASSISTANT and turn.model == request.model:
                new.clear()
            media = [block.origin for block in turn.blocks if block.origin is not None and _shows_media(block.content)]
            shown += media
            new += media
    return new or shown


def _shows_media(content: Content) -> bool:
    if isinstance(content, ToolResultContent):
        return not isinstance(content.content, str) and any(map(_shows_media, content.content))
    return isinstance(content, ImageContent | AudioContent)


def _resolved(body: object, steps: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the steps that exist in the body. Providers insert names of types, as in `content.0.image.source`."""
    path: list[str | int] = []
    for step in steps:
        below = _at(body, (step,))
        if below is not None:
            body = below
            path.append(step)
    return tuple(path)


def _at(value: Any, path: Iterable[str | int]) -> Any:  # noqa: ANN401 - any JSON value
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        else:
            value = value[step] if isinstance(value, list | tuple) and step < len(value) else None
    return value


def _blocks(view: View) -> Iterator[Block]:
    yield from view.system
    yield from (block for exchange in view.exchanges for block in exchange.blocks())


def _origins(view: View) -> Iterator[Handle]:
    yield from (block.origin for block in _blocks(view) if block.origin is not None)


def _marked(view: View) -> View:
    """Return the view with each block's content replaced by its handle. The order stays the same."""

    def marked(turn: Turn) -> Turn:
        return replace(turn, blocks=tuple(map(_mark, turn.blocks)))

    exchanges = tuple(
        Exchange.of(tuple(map(marked, was.turns)), runs=was.runs, open=was.open, derived=was.derived)
        for was in view.exchanges
    )
    return replace(view, system=tuple(map(_mark, view.system)), exchanges=exchanges)


def _mark(block: Block) -> Block:
    if block.origin is None:
        return block
    text = _MARK.format(block.origin)
    content = block.content
    match content:
        case ToolCallContent():
            marked: Content = content.model_copy(update={"args": {"block": text}, "raw_args": None})
        case ToolResultContent():
            marked = content.model_copy(update={"content": text})
        case ThinkingContent():
            fields: dict[str, object] = {"redacted": text} if content.redacted else {"content": text}
            if "encrypted_content" in content.artefact:
                fields["artefact"] = {**content.artefact, "encrypted_content": text}
            marked = content.model_copy(update=fields)
        case _:
            marked = TextContent(content=text)
    return replace(block, content=marked)
