"""Writing: a view of a list, written as a list of the same dialect.

An item that the view shows unchanged is the caller's own object. An item of which something is left out or shown in another form is patched. Texts of no item
(a record, a missing result) are new items. The validator of the provider checks the whole; an exchange that it refuses is compiled by the wire instead.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from palaver.errors import NotFound
from palaver.log import Handle
from palaver.messages import Message, Role, ToolResultContent, media_of, thaw
from palaver.providers.dialect import Dialect, Item, text_of
from palaver.view import Block, Exchange, Turn, View
from palaver.wire import Breach, Call, Change, How, Profile, Violation, compile, validate  # noqa: A004 - the word for it
from palaver.wire.script import BEGINS_WITH_ASSISTANT, from_harness

_PLACE = re.compile(r"(?:messages|input|contents)\[(\d+)\]")


class Written(NamedTuple):
    """A view as a list.

    Attributes:
        items: The list; the caller's own items, as JSON objects, where nothing was done to them.
        system: Instructions of the list that have no place in it.
        changes: What was repaired or changed.
        grew: Whether something was added that the view does not show, so that the list has to be measured.
    """

    items: list[Item]
    system: str
    changes: tuple[Change, ...]
    grew: bool


class _Made(NamedTuple):
    item: Item
    own: int | None  # the index of the caller's item that it is
    exchanges: tuple[int, ...]  # the exchanges that say it


class _ShownBlock(NamedTuple):
    turn: Turn
    block: Block
    exchange: int

    @property
    def side(self) -> str:
        """Who says it on the wire: results are apart from the user's words only where they are messages of their own."""
        return _SIDES.get(self.turn.role, "user")


_SIDES: Mapping[Role, str] = {
    Role.SYSTEM: "system",
    Role.ASSISTANT: "assistant",
    Role.TOOL_CALL: "assistant",
    Role.TOOL: "tool",
}


@dataclass(frozen=True)
class ListWriter:
    """Writes views of one list.

    Attributes:
        dialect: The dialect of the list.
        items: The list.
        messages: What was read from it.
        before: The view of the whole list.
        profile: What the provider accepts.
        model: The model that is called next.
        lenient: Whether unknown fields pass, because another maker's model is called in OpenAI's dialect.
    """

    dialect: Dialect
    items: Sequence[Item]
    messages: Sequence[Message]
    before: View
    profile: Profile
    model: str
    lenient: bool = False

    def write(self, view: View) -> Written:
        """Write a view."""
        refused = {index for index, exchange in enumerate(view.exchanges) if any(map(self._new, exchange.blocks()))}
        stripped: dict[int, Item] = {}
        changes: list[Change] = []
        while True:
            made = self._turns([*self._leading(view, stripped), *self._made(view, refused, stripped)])
            faults = self._faults(made)
            if not faults and made:
                grew = bool(refused) or (made[0].own is None and not made[0].exchanges)
                items = [written.item for written in made]
                return Written(items, self._beside(view), (*changes, *self._unknown_fields(made)), grew)
            progress = False
            for place, objections in faults.items():
                written = made[place] if place >= 0 else None
                why = f"the provider refuses it: {objections[0].message}"
                if (
                    written is not None
                    and written.own is not None
                    and written.own not in stripped
                    and _removable(objections)
                ):
                    stripped[written.own] = _without(written.item, objections)
                    changes.append(Change(Handle(self.before.dialog_id, written.own), "message", How.CHANGED, why))
                    progress = True
                elif written is not None:
                    again = [index for index in written.exchanges if index not in refused]
                    changes += [Change(view.exchanges[at].first, "message", How.CHANGED, why) for at in again]
                    refused.update(again)
                    progress = progress or bool(again)
            if not progress:
                first = next(iter(faults.values()), None)
                return self._compiled(view, first[0].message if first else "it would be empty")

    def _new(self, block: Block) -> bool:
        """Return whether a block is neither in the list nor derived: a manager added it, or its text was cleaned when it was read."""
        if block.origin is None:
            return not block.derived
        return block.origin.dialog == self.before.dialog_id and bool(self.messages[block.origin.seq].normalized)

    # --- pieces -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> Mapping[int, list[Handle]]:
        """The blocks of each item that the view of the whole list shows."""
        shown: dict[int, list[Handle]] = {}
        for block in (*self.before.system, *(each for exchange in self.before.exchanges for each in exchange.blocks())):
            if block.origin is not None and block.origin.dialog == self.before.dialog_id:
                shown.setdefault(block.origin.seq, []).append(block.origin)
        return shown

    def _key(self, piece: _ShownBlock, refused: Collection[int]) -> tuple[object, ...]:
        if piece.exchange in refused:
            return ("compiled", piece.exchange)
        if piece.block.origin is None:
            return ("derived", id(piece.block))
        side = "user" if self.dialect.model_role and piece.side == "tool" else piece.side
        return ("item", piece.block.origin.seq, side)

    def _made(self, view: View, refused: Collection[int], stripped: Mapping[int, Item]) -> Iterator[_Made]:
        stream = (
            _ShownBlock(turn, block, index)
            for index, exchange in enumerate(view.exchanges)
            for turn in exchange.turns
            for block in turn.blocks
        )
        made: list[_Made] = []
        for key, group in groupby(stream, key=lambda piece: self._key(piece, refused)):
            pieces = tuple(group)
            if key[0] == "compiled":
                index = pieces[0].exchange
                made += [_Made(item, None, (index,)) for item in self._compile(view, index)]
            elif key[0] == "derived":
                made.append(_Made(self._derived(pieces[0]), None, (pieces[0].exchange,)))
            else:
                made += self._item(pieces, key[1], stripped)
        return self._unlinked(made, view)

    def _derived(self, piece: _ShownBlock) -> Item:
        """Write what no item says."""
        content = piece.block.content
        if isinstance(content, ToolResultContent):
            call = next((run.start for run in piece.block.sources), None)  # of the entry that makes it
            return self.dialect.answer(content, {} if call is None else self.items[call])
        label = piece.block.derived
        return self.dialect.say(from_harness(label, text_of(content)) if label else text_of(content))

    def _item(self, pieces: Sequence[_ShownBlock], index: Any, stripped: Mapping[int, Item]) -> Iterator[_Made]:  # noqa: ANN401 - of a key
        """Write what is shown of one item of the caller's."""
        item, message = stripped.get(index, self.items[index]), self.messages[index]
        exchanges = tuple(dict.fromkeys(piece.exchange for piece in pieces))
        shown = {
            piece.block.origin.block: piece.block
            for piece in pieces
            if piece.block.origin is not None and piece.block.origin.block is not None
        }
        places = [piece.block.origin for piece in pieces]
        if places == self._whole[index] and all(block.reason is None for block in shown.values()):
            yield _Made(item, index, exchanges)
        elif pieces[0].side == "user" and message.role is Role.TOOL:  # a result that has lost its call
            yield from (_Made(self.dialect.say(text_of(block.content)), None, exchanges) for block in shown.values())
        else:
            contents = {
                place: message.contents[place] if block.reason is None else block.content
                for place, block in shown.items()
            }
            patched = self.dialect.patch(item, message, contents)
            if patched is not None:
                yield _Made(patched, None, exchanges)

    def _unlinked(self, made: Sequence[_Made], view: View) -> Iterator[_Made]:
        """Loosen items of the model from what is left out of their response."""
        own = {piece.own for piece in made}
        for piece in made:
            responses = (view.exchanges[index] for index in piece.exchanges)
            if piece.own is not None and any(self._parted(exchange, own) for exchange in responses):
                item = self.dialect.unlink(piece.item) if self.dialect.by_model(piece.item) else piece.item
                if item is not None:
                    yield _Made(item, piece.own if item is piece.item else None, piece.exchanges)
            else:
                yield piece

    def _parted(self, exchange: Exchange, own: Collection[int | None]) -> bool:
        """Return whether a response is not shown as the caller passed it."""
        said = (
            seq
            for run in exchange.runs
            for seq in range(run.start, run.stop)
            if run.dialog == self.before.dialog_id and seq < len(self.items) and self.dialect.by_model(self.items[seq])
        )
        return any(seq not in own for seq in said)

    # --- around the conversation ------------------------------------------------------------------------------------------

    def _leading(self, view: View, stripped: Mapping[int, Item]) -> Iterator[_Made]:
        """Write the instructions that are messages of the list."""
        if self.dialect.model_role:
            return
        blocks = (block for block in view.system if block.origin and block.origin.dialog == self.before.dialog_id)
        for index, group in groupby(blocks, key=lambda block: block.origin.seq if block.origin else -1):
            said = tuple(group)
            if self.messages[index].normalized or any(block.reason for block in said):
                yield _Made(
                    {**self.items[index], "content": "\n\n".join(text_of(each.content) for each in said)}, None, ()
                )
            else:
                yield _Made(stripped.get(index, self.items[index]), index, ())

    def _beside(self, view: View) -> str:
        """Return the instructions of the list that have no place in a list of this dialect."""
        if not self.dialect.model_role:
            return ""
        said = (block for block in view.system if block.origin and block.origin.dialog == self.before.dialog_id)
        return "\n\n".join(text_of(block.content) for block in said)

    def _turns(self, made: Sequence[_Made]) -> list[_Made]:
        """Join neighbours of one role, and let the user begin, where the dialect wants it."""
        out: list[_Made] = []
        if made and not self.dialect.opens(made[0].item):
            out.append(_Made(self.dialect.say(from_harness("notice", BEGINS_WITH_ASSISTANT)), None, ()))
        if not self.dialect.model_role:
            return [*out, *made]
        for piece in made:
            if out and self.dialect.by_model(out[-1].item) == self.dialect.by_model(piece.item):
                last = out.pop()
                both = tuple(dict.fromkeys((*last.exchanges, *piece.exchanges)))
                out.append(_Made(self.dialect.join(last.item, piece.item), None, both))
            else:
                out.append(piece)
        return out

    # --- checking and compiling -------------------------------------------------------------------------------------------

    def _faults(self, made: Sequence[_Made]) -> Mapping[int, list[Violation]]:
        """Return the provider's objections by index in the list; -1 for those outside its items."""
        faults: dict[int, list[Violation]] = {}
        for place, fault in self._violations(made):
            if not (self.lenient and fault.rule is Breach.FIELD_UNKNOWN):
                faults.setdefault(place if place < len(made) else -1, []).append(fault)
        return faults

    def _unknown_fields(self, made: Sequence[_Made]) -> Iterator[Change]:
        """Report fields of the caller's items that OpenAI's interface does not have."""
        for place, fault in self._violations(made) if self.lenient else ():
            index = made[place].own if 0 <= place < len(made) else None
            if index is not None:
                handle = Handle(self.before.dialog_id, index)
                yield Change(handle, "field", How.KEPT, f"OpenAI's interface does not have it: {fault.message}")

    def _violations(self, made: Sequence[_Made]) -> Iterator[tuple[int, Violation]]:
        named = {"model": self.model or "any"} if "model" in self.profile.api.owned else {}
        body = {**named, **self.dialect.beside, self.dialect.items: [piece.item for piece in made]}
        history = bool(made) and self.dialect.by_model(made[-1].item)
        for fault in validate(body, self.profile, as_history=history):
            place = _PLACE.match(fault.path)
            yield int(place[1]) if place else -1, fault

    def _compile(self, view: View, index: int) -> list[Item]:
        """Compile one exchange. Before an exchange of the model the wire lets the user begin."""
        exchange = view.exchanges[index]
        alone = replace(view, system=(), tools=(), exchanges=(exchange,), omissions=())
        items: list[Item] = self._request(alone)[self.dialect.items]
        begins = (
            self.profile.turns.first
            and not self.dialect.by_model(items[0])
            and _SIDES.get(exchange.role) == "assistant"
        )
        return items[1:] if begins else items

    def _compiled(self, view: View, why: str) -> Written:
        """Compile the whole list."""
        own = tuple(block for block in view.system if block.origin and block.origin.dialog == self.before.dialog_id)
        body = self._request(replace(view, system=own, tools=()))
        items, system = body[self.dialect.items], self.dialect.instructions(body)
        if not self.dialect.model_role and system and own[0].origin is not None:  # such a list holds them itself
            items, system = [{"role": self.items[own[0].origin.seq]["role"], "content": system}, *items], ""
        change = Change(None, "list", How.CHANGED, f"written anew, because the provider refuses it: {why}")
        return Written(items, system, (change,), grew=True)

    def _request(self, view: View) -> Any:  # noqa: ANN401 - a JSON object
        # what thinking is bound to is decided with the whole list, by `fit`
        unchecked = replace(self.profile, reasoning=replace(self.profile.reasoning, bound=False))
        request = compile(view, unchecked, Call(model=self.model or "any", cache=False), self._media)
        return thaw(request.fields)

    def _media(self, digest: str) -> bytes:
        data = self._payloads.get(digest)
        if data is None:
            raise NotFound(digest, what="payload")
        return data

    @cached_property
    def _payloads(self) -> Mapping[str, bytes | None]:
        return {media.digest: media.data for message in self.messages for media in media_of(message)}


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _removable(faults: Sequence[Violation]) -> bool:
    """Return whether everything that is wrong with an item is a field that can be left out of it."""
    return all(fault.rule is Breach.FIELD_UNKNOWN and "." in fault.path for fault in faults)


def _without(item: Item, faults: Sequence[Violation]) -> Item:
    """Return a copy of an item without the fields that break rules."""
    out: dict[str, Any] = thaw(item)
    for fault in faults:
        *steps, last = [key or int(place) for key, place in _STEP.findall(fault.path)][1:]
        inner: Any = out
        for step in steps:
            inner = inner[step] if isinstance(inner, list) or step in inner else {}
        inner.pop(last, None)
    return out
