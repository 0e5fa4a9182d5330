"""Quarantine: a block that a provider refuses is set aside in every view, and the session goes on.

The log keeps the original, and its handle brings it back; a further entry lifts the quarantine. Which block a refusal is about, the refusal
says by its place in the request: `blamed` gives the handle of what stands there. One that names no place and is about media can only mean those
that the model has not answered yet: `suspects` gives them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from palaver.errors import InvalidHandle, InvalidInput, UnknownHandle
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import BranchSummary, Handle, Instructions, MessageEntry, Place, Quarantine, entry_at
from palaver.messages import AudioContent, Content, ImageContent, Role, ThinkingContent, ToolResultContent
from palaver.plurals import counted
from palaver.session.reading.recalling import whole
from palaver.store.protocol import Store
from palaver.view import Block, Exchange, Turn, View, held
from palaver.view.edits import set_aside
from palaver.view.texts import quarantined
from palaver.wire import Request
from palaver.wire import compile as compile_request

__all__ = ["blamed", "holders", "lifting", "quarantine_of", "suspects"]


def quarantine_of(store: Store, session_id: SessionId, handle: Handle | str, reason: str) -> Quarantine:
    """Make the entry that sets a block, or all blocks of an entry, aside.

    Raises:
        InvalidHandle: It is no handle, or it names an entry that no view shows.
        UnknownHandle: The session has no such entry or block.
    """
    place = whole(store, session_id, handle)
    count = _blocks(store, place)
    if place.block is not None and place.block >= count:
        raise UnknownHandle(str(place), hint=f"The entry has {counted(count, 'block')}, numbered from 0.")
    return Quarantine(target=Place(dialog=place.dialog, seq=place.seq, block=place.block), reason=reason)


def _blocks(store: Store, place: Handle) -> int:
    entry = entry_at(store, place)
    if isinstance(entry, MessageEntry):
        return len(entry.message.contents)
    if isinstance(entry, Instructions):
        return len(entry.sections)
    if isinstance(entry, BranchSummary):
        return 1
    raise InvalidHandle(
        f"{place} is a {entry.kind} entry: it is in no view, so there is nothing to set aside.",
        hint="Name a message, or one block of it: dialog:entry or dialog:entry:block.",
    )


def lifting(place: Handle, standing: Collection[Handle], reason: str) -> Quarantine:
    """Make the entry that takes a quarantine back.

    Raises:
        InvalidInput: This place is not in quarantine.
    """
    if place not in standing:
        near = [str(one) for one in standing if (one.dialog, one.seq) == (place.dialog, place.seq)]
        hint = f"In quarantine is {', '.join(near)}." if near else "`dialog.quarantined` lists what is."
        raise InvalidInput(f"{place} is not in quarantine here.", hint=hint)
    target = Place(dialog=place.dialog, seq=place.seq, block=place.block)
    return Quarantine(target=target, reason=reason, lifted=True)


def holders(store: Store, session_id: SessionId, place: Handle) -> tuple[DialogId, ...]:
    """Give the dialogs of a session that hold an entry, as their own or as one of their ancestors'."""
    nodes = store.nodes(session_id)
    return tuple(node.dialog_id for node in nodes if any(place in span for span in held(store, node.dialog_id, None)))


# --- which block a refusal is about -----------------------------------------------------------------------------------------------

_LISTS = r"messages|input|contents|system|system_instruction|systemInstruction"
_PATH = re.compile(rf"\b(?:{_LISTS})(?:\.\w+|\[['\"]?\w+['\"]?\])+")
_STEP = re.compile(r"\w+")
_OURS = {"cache_control"}
"""What compiling adds to a block. The block is innocent, and so would be the one that is marked in its stead."""
_MESSAGE_STEPS = 2  # the list, and the number in it


def blamed(store: Store, request: Request, words: str) -> Handle | None:
    """Find the block that a provider's refusal names by its place in the request, as `messages.3.content.0: …` does.

    The request is compiled anew with the handle of each block in the block's place; what stands at the place that was named is read there.

    Args:
        store: Where the media lie.
        request: The request that was refused, compiled from a view.
        words: What the provider said, whole.

    Returns:
        The block's handle; None when the words name no place that a block of the log fills alone, and are not about the one new picture either.
    """
    view = request.view
    if view is None or request.call is None:
        return None
    for found in _PATH.finditer(words):
        steps = _STEP.findall(found.group())
        path = _resolved(request.body, [*map(_step, steps)])
        if _OURS.intersection(steps):
            return None
        if len(path) < _MESSAGE_STEPS:
            continue
        candidates = _named(store, request, _marked(view, None), path)
        exact = [one for one in candidates if one in _named(store, request, _marked(view, one), path, whole=True)]
        if len(exact) == 1:
            return exact[0]
        if not exact and len(candidates) == 1:
            return candidates[0]
    new = () if _PATH.search(words) else suspects(request, words)
    return new[0] if len(new) == 1 else None


_MEDIA = re.compile(r"\b(?:images?|pictures?|photos?|audio|media|documents?|pdf|base64)\b", re.IGNORECASE)


def suspects(request: Request, words: str) -> tuple[Handle, ...]:
    """Give the media that a refusal without a place can be about: «Could not process image», as Anthropic says it.

    Whatever stands before an answer of the same model was taken by it. Where nothing new is shown, any of the media may be meant.

    Args:
        request: The request that was refused, compiled from a view.
        words: What the provider said, whole.

    Returns:
        Their handles, in the order of the view; none when the words are not about media.
    """
    if request.view is None or _MEDIA.search(words) is None:
        return ()
    shown: list[Handle] = []
    new: list[Handle] = []
    for exchange in request.view.exchanges:
        for turn in exchange.turns:
            if turn.role is Role.ASSISTANT and turn.model == request.model:
                new.clear()
            found = [block.origin for block in turn.blocks if block.origin is not None and _shows_media(block.content)]
            shown += found
            new += found
    return tuple(new or shown)


def _shows_media(content: Content) -> bool:
    if isinstance(content, ToolResultContent):
        return not isinstance(content.content, str) and any(map(_shows_media, content.content))
    return isinstance(content, ImageContent | AudioContent)


def _step(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


def _resolved(body: object, steps: list[str | int]) -> tuple[str | int, ...]:
    """Give the steps that lead on in the body; providers put the names of types between them, as in `content.0.image.source`."""
    path: list[str | int] = []
    for step in steps:
        below = _below(body, step)
        if below is not None:
            body = below
            path.append(step)
    return tuple(path)


def _below(value: object, step: str | int) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(step, str):
        return value.get(step) if hasattr(value, "get") else None
    return value[step] if isinstance(value, list | tuple) and step < len(value) else None


def _named(
    store: Store, request: Request, view: View, path: tuple[str | int, ...], *, whole: bool = False
) -> list[Handle]:
    """Give the handles that stand in a request at a place: in its message, or, when `whole`, just there."""
    if request.call is None:
        return []
    body: object = compile_request(view, request.profile, request.call, _loader(store)).body
    for step in path if whole else path[:_MESSAGE_STEPS]:
        body = _below(body, step)
    told = str(body)
    origins = {block.origin for block in _blocks_of(view) if block.origin is not None}
    return sorted(origin for origin in origins if re.search(rf"recall {re.escape(str(origin))}(?!\d|:\d)", told))


def _loader(store: Store) -> Any:  # noqa: ANN401 - as `compile` takes it
    return lambda digest: store.blob(BlobId(digest))


def _blocks_of(view: View) -> Iterator[Block]:
    yield from view.system
    for exchange in view.exchanges:
        yield from exchange.blocks()


def _marked(view: View, only: Handle | None) -> View:
    """Give the view with the placeholder of each block, or of one, in its place."""

    def marked(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return tuple(_mark(block) if only in {None, block.origin} else block for block in blocks)

    def turn(one: Turn) -> Turn:
        return replace(one, blocks=marked(one.blocks))

    def exchange(one: Exchange) -> Exchange:
        return replace(one, turns=tuple(map(turn, one.turns)))

    return replace(view, system=marked(view.system), exchanges=tuple(map(exchange, view.exchanges)))


def _mark(block: Block) -> Block:
    """Give a block with its handle in it; a thought stays one, for other messages would move if it became text."""
    if block.origin is None:
        return block
    content = block.content
    if isinstance(content, ThinkingContent):
        told = quarantined(block.origin)
        spelt = {"redacted": told} if content.redacted else {"content": told}
        if "encrypted_content" in content.artefact:
            spelt["artefact"] = {**content.artefact, "encrypted_content": told}  # type: ignore[assignment]
        return replace(block, content=content.model_copy(update=spelt))
    return set_aside(block, block.origin)
