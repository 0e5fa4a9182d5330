"""The list that is given back: the caller's own messages where they can stand, and what has to be written between them.

Three steps, each taken only where the one before is not enough: the caller's own dicts; of those that the provider would refuse, the
words alone; and at last the whole list as `wire.compile` writes it, which is always valid.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from palaver.context.fitting.dialect import Dialect
from palaver.context.fitting.listing import LIST
from palaver.context.fitting.pieces import Piece, pieces
from palaver.context.fitting.turns import in_turns
from palaver.errors import MissingBlob
from palaver.log import Handle
from palaver.messages import Message, TextContent, media_of, thaw
from palaver.view import Block, View
from palaver.wire import Call, Change, How, Profile, Rule, Violation, validate
from palaver.wire import compile as compiled

__all__ = ["Source", "output", "reread"]

_Dict = dict[str, Any]
_Unled = Mapping[int, Mapping[str, Any] | None]
_PLACE = re.compile(r"(?:messages|input|contents)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Source:
    """What a list is made from.

    Attributes:
        given: The caller's own messages.
        messages: The same, read.
        before: The view of all of them.
        dialect: Their dialect.
        profile: What the provider accepts.
        model: The model.
        foreign: True when another maker's model is called in the words of OpenAI's interface: it may take keys that OpenAI's do not, as
            DeepSeek's take `reasoning_content`.
    """

    given: Sequence[Mapping[str, Any]]
    messages: Sequence[Message]
    before: View
    dialect: Dialect
    profile: Profile
    model: str
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class _Made:
    """A message of the list that is given back.

    Attributes:
        message: The message.
        index: The place in the caller's list of the message that it is, the very object or all of it but its id; None for one that was
            made.
    """

    message: Mapping[str, Any]
    index: int | None = None


def output(source: Source, view: View) -> tuple[list[Any], str, tuple[Change, ...]]:
    """Write a view as a list in the dialect of the caller's.

    Returns:
        The list; the instructions that stood in the caller's list and have no place in one of this dialect; what was changed in
        messages that no policy touched.
    """
    bound = source.profile.reasoning.form == "blocks"
    shared = source.dialect.turns is not None
    split = tuple(pieces(view, source.before, source.messages, shared=shared, bound=bound))
    beside = tuple(block for block in view.system if block.origin is not None and block.origin.dialog == LIST)
    system = "\n\n".join(map(_text, beside)) if source.dialect.turns else ""
    refused: frozenset[int] = frozenset()
    changes: list[Change] = []
    while True:
        leading = () if source.dialect.turns else _leading(source, beside, refused)
        own = frozenset(piece.index for piece in split if piece.own and piece.index is not None) - refused
        unled = source.dialect.unled(source.given, own)
        made = [*leading, *_made(source, split, own, unled)]
        faults = _faults(source, made) if made else {-1: "it would have been empty"}
        if not faults:
            return [each.message for each in made], system, (*changes, *_apart(unled), *_kept(source, made))
        again = {index: why for index, why in _to_write(made, faults).items() if index not in refused}
        if not again:
            return _compiled(source, view, next(iter(faults.values())))
        refused |= set(again)
        changes.extend(
            Change(Handle(LIST, index), "message", How.CHANGED, f"the provider would have refused it: {why}")
            for index, why in again.items()
        )


def reread(source: Source, out: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    """Read the list that is given back; what is the caller's own was read before, and means the same if it does by itself."""
    read = zip(source.given, source.messages, strict=True) if source.dialect.alone else ()
    known = {id(given): message for given, message in read}
    reader = source.dialect.reader()
    return tuple(
        known.get(id(message)) or reader(message, id=f"message-{index}", timestamp=0.0)
        for index, message in enumerate(out)
    )


def _to_write(made: Sequence[_Made], faults: Mapping[int, str]) -> Mapping[int, str]:
    """Give the caller's own messages that have a fault, by their place in his list."""
    found = {made[place].index: why for place, why in faults.items() if 0 <= place < len(made)}
    return {index: why for index, why in found.items() if index is not None}


def _leading(source: Source, blocks: Sequence[Block], refused: frozenset[int]) -> Iterator[_Made]:
    """Give the system messages before the conversation."""
    for index, group in groupby(blocks, key=lambda block: block.origin.seq if block.origin else -1):
        own, said = source.given[index], tuple(group)
        changed = source.messages[index].normalized or any(block.reason for block in said)
        if index in refused or changed:
            yield _Made({"role": own["role"], "content": "\n\n".join(map(_text, said))})
        else:
            yield _Made(own, index)


def _text(block: Block) -> str:
    return block.content.content if isinstance(block.content, TextContent) else ""


def _made(source: Source, split: Sequence[Piece], own: Collection[int], unled: _Unled) -> Iterator[_Made]:
    made = _written(source, split, own, unled)
    turns = source.dialect.turns
    if turns is None:
        yield from made
        return
    for message, index in in_turns(((each.message, each.index) for each in made), turns):
        yield _Made(message, index)


def _written(source: Source, split: Sequence[Piece], own: Collection[int], unled: _Unled) -> Iterator[_Made]:
    for piece in split:
        if piece.index is not None and piece.index in own:
            message = unled.get(piece.index, source.given[piece.index])
            if message is not None:
                yield _Made(message, piece.index)
            continue
        said = {} if piece.index is None else source.given[piece.index]
        yield from map(_Made, source.dialect.write(piece, said))


def _apart(unled: _Unled) -> Iterator[Change]:
    """Tell which of the caller's own items stand without their ids, or not at all, because their reasoning does not stay."""
    for index, item in unled.items():
        what = "message" if item is None else "id"
        yield Change(
            Handle(LIST, index), what, How.DROPPED, "the provider looks for the reasoning before it, which is left out"
        )


def _faults(source: Source, made: Sequence[_Made]) -> Mapping[int, str]:
    """Give what the provider would refuse in the messages, by place; -1 for a fault that lies in none of them."""
    found: dict[int, str] = {}
    for place, fault in _violations(source, made):
        if not _passes(source, fault):
            found.setdefault(place, fault.message)
    return found


def _kept(source: Source, made: Sequence[_Made]) -> Iterator[Change]:
    """Tell which keys of the caller's own messages are passed on although OpenAI's interface does not have them."""
    for place, fault in _violations(source, made) if source.foreign else ():
        index = made[place].index if 0 <= place < len(made) else None
        if index is not None:
            yield Change(
                Handle(LIST, index), "field", How.KEPT, f"OpenAI's interface does not have it: {fault.message}"
            )


def _passes(source: Source, fault: Violation) -> bool:
    return source.foreign and fault.rule is Rule.FIELD_UNKNOWN


def _violations(source: Source, made: Sequence[_Made]) -> Iterator[tuple[int, Violation]]:
    """Give what the profile refuses, each with the place of its message, -1 for none of them."""
    said = source.dialect
    body: _Dict = {**({} if said.name == "gemini" else {"model": source.model or "any"}), **said.beside}
    body[said.key] = [each.message for each in made]
    history = bool(made) and said.by_model(made[-1].message)
    for fault in validate(body, source.profile, as_history=history):
        place = _PLACE.match(fault.path)
        yield int(place[1]) if place else -1, fault


def _compiled(source: Source, view: View, why: str) -> tuple[list[Any], str, tuple[Change, ...]]:
    """Write the list as it is sent."""
    beside = tuple(block for block in view.system if block.origin is not None and block.origin.dialog == LIST)
    payloads = {media.digest: media.data for message in source.messages for media in media_of(message)}

    def load(digest: str) -> bytes:
        data = payloads.get(digest)
        if data is None:
            raise MissingBlob(digest)
        return data

    request = compiled(
        replace(view, system=beside, tools=()), source.profile, Call(model=source.model or "any", cache=False), load
    )
    body = thaw(request.body)
    messages, system = body[source.dialect.key], source.dialect.instructions(body)
    if source.dialect.turns is None and system and beside[0].origin is not None:  # such a list holds them itself
        own = source.given[beside[0].origin.seq]
        messages, system = [{"role": own["role"], "content": system}, *messages], ""
    whole = Change(None, "list", How.CHANGED, f"written anew, because the provider would have refused it: {why}")
    return messages, system, (whole, *(change for change in request.report if change.what != "tool"))
