"""Parts of frameworks' messages as blocks that keep the rest of the part, so that each is written back as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from palaver.errors import InvalidInput
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    UnknownContent,
    thaw,
)
from palaver.messages.frozen import EMPTY
from palaver.messages.media import Media

Part: TypeAlias = "dict[str, Any]"

_WRAPPED = "unreadable"
_OWN = frozenset({"text", "image", "audio", "thinking", "tool_call", "tool_result"})
"""The types of palaver's own blocks: an unknown part of such a type is wrapped."""

_PLAIN, _SAFE = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")
_ADDRESS = frozenset({"url", "image_url", "uri"})
"""Keys with an address, which may have the bytes in it; other keys have base64."""


class PartPlace(NamedTuple):
    """Where parts of one kind have their text or their bytes.

    Attributes:
        kind: The kind of part.
        path: The keys that lead there.
        block: What the part is read as.
        field: The field of the block.
        safe: Whether its base64 is that for addresses, with `-` and `_` (RFC 4648, section 5).
    """

    kind: str
    path: tuple[str, ...]
    block: type[TextContent | ThinkingContent | ImageContent | AudioContent]
    field: str = "content"
    safe: bool = False

    def get(self, part: object) -> object:
        """Return the text or bytes of a part, or None."""
        for key in self.path:
            part = part.get(key) if isinstance(part, Mapping) else None
        return part

    def put(self, part: Mapping[str, Any], values: Mapping[str, Any], *, without: bool = False) -> Part:
        """Return a part with values at the end of the path, or without what is there."""
        return _put(part, self.path[:-1], values, self.path[-1] if without else None)


def _put(part: Mapping[str, Any], path: Sequence[str], values: Mapping[str, Any], gone: str | None) -> Part:
    if path:
        inner = part.get(path[0])
        inner = inner if isinstance(inner, Mapping) else {}
        return {**part, path[0]: _put(inner, path[1:], values, gone)}
    return {key: value for key, value in part.items() if key != gone} | dict(values)


def difference(value: Mapping[str, Any], plain: Mapping[str, Any]) -> Part:
    """Return what a value has more and less than a plain one; empty if they are equal."""
    more = {key: each for key, each in value.items() if key not in plain or plain[key] != each}
    less = [key for key in plain if key not in value]
    return ({"more": more} if more else {}) | ({"less": less} if less else {})


def changed(plain: Part, change: Mapping[str, Any]) -> Part:
    """Return a plain value with a difference."""
    less = change.get("less", ())
    return {key: value for key, value in (plain | change.get("more", {})).items() if key not in less}


class PartFrames:
    """The parts of one dialect. A block keeps what else its part says, its frame, in an extra field with the dialect's name."""

    def __init__(
        self, name: str, key: str, places: Sequence[PartPlace], media_type: str, beside: Mapping[str, Any] = EMPTY
    ) -> None:
        """Describe a dialect.

        Args:
            name: The dialect.
            key: The key with the kind of a part.
            places: Its kinds. A block from elsewhere is written at the first place for its class.
            media_type: The key with the type of bytes.
            beside: What each part has, whatever it says.
        """
        self._name = name
        self._key = key
        self._places = places
        self._media_type = media_type
        self._beside = beside

    def read(self, part: Mapping[str, Any], **thinking: object) -> Content:
        """Return a part as a block; as UnknownContent if it cannot be written back from one that is known.

        Args:
            part: The part, in JSON.
            thinking: Fields of a block of thinking.
        """
        kind = part.get(self._key)
        for place in self._places:
            value = place.get(part)
            if place.kind != kind or not isinstance(value, str):
                continue
            block = self._block(place, part, value, thinking)
            if block is not None and self.write(block) == [part]:
                return block
        return self.keep(part)

    def keep(self, part: Mapping[str, Any]) -> UnknownContent:
        """Return a part as UnknownContent; it is wrapped if its type is not its provider's own."""
        kind = part.get("type")
        if self._key == "type" and isinstance(kind, str) and kind not in _OWN and "changes" not in part:
            return UnknownContent.from_dict({**part, "type": kind})
        return UnknownContent(type=_WRAPPED, part=dict(part))

    def _block(
        self, place: PartPlace, part: Mapping[str, Any], value: str, thinking: Mapping[str, object]
    ) -> Content | None:
        fields: dict[str, object]
        if issubclass(place.block, ThinkingContent):
            fields = {place.field: value, **thinking}
        elif issubclass(place.block, TextContent):
            fields = {place.field: value}
        else:
            sound = issubclass(place.block, AudioContent)
            claimed = place._replace(path=(*place.path[:-1], self._media_type)).get(part)
            claimed = claimed if isinstance(claimed, str) else ""
            if claimed.partition("/")[0] not in {"", "audio" if sound else "image"}:
                return None
            try:
                text = value.translate(_PLAIN) if place.safe else value
                medium = Media.from_text(text, "audio" if sound else "image", claimed)
            except InvalidInput:
                return None
            fields = {"audio" if sound else "images": (medium,)}
        frame = place.put(part, {}, without=True)
        plain = frame == self._empty(place) and place == self._first(place.block)
        kept = {} if plain else {self._name: {"at": list(place.path), "part": frame}}
        return place.block.from_dict({**fields, **kept})

    def _empty(self, place: PartPlace) -> Part:
        """Return a part that says nothing."""
        return {self._key: place.kind, **thaw(self._beside)}

    def _first(self, block: type[Content]) -> PartPlace | None:
        return next((place for place in self._places if place.block is block), None)

    def frame(self, content: Content) -> Mapping[str, Any] | None:
        """Return what a block has kept of its part, thawed, or None."""
        kept = (content.model_extra or {}).get(self._name)
        return thaw(kept) if isinstance(kept, Mapping) else None

    def write(self, content: Content) -> list[Part]:
        """Write a block as parts: one for each image or sound."""
        if isinstance(content, UnknownContent):
            fields: Part = thaw(content.model_dump(mode="json", exclude_defaults=True))
            return [
                fields["part"] if content.type == _WRAPPED and "part" in fields else {**fields, "type": content.type}
            ]
        kept = self.frame(content) or {}
        if isinstance(content, ImageContent | AudioContent):
            return [self._medium(content, kept, data, kind) for data, kind in content.to_base64()]
        place = self._place(content, kept)
        if place is None:
            return [thaw(content.model_dump(mode="json", exclude_defaults=True)) | {"type": content.type}]
        return [place.put(kept.get("part", self._empty(place)), {place.path[-1]: getattr(content, place.field)})]

    def _place(self, content: Content, kept: Mapping[str, Any]) -> PartPlace | None:
        if not kept:
            return self._first(type(content))
        kind, path = kept["part"].get(self._key), tuple(kept["at"])
        return next((place for place in self._places if (place.kind, place.path) == (kind, path)), None)

    def _medium(self, content: ImageContent | AudioContent, kept: Mapping[str, Any], data: str, kind: str) -> Part:
        place = self._place(content, kept) if kept else None
        if place is None or (not kind and place.path[-1] not in _ADDRESS):
            fits = (
                each
                for each in self._places
                if each.block is type(content) and (each.path[-1] in _ADDRESS) != bool(kind)
            )
            place = next(fits, None) or self._first(type(content))
            kept = {}
        if place is None:
            return {"type": content.type, "data": data, self._media_type: kind}
        said = f"data:{kind};base64,{data}" if kind and place.path[-1] in _ADDRESS else data
        values = {place.path[-1]: said.translate(_SAFE) if place.safe else said}
        if not kept:
            values |= {self._media_type: kind} if kind else {}
        return place.put(kept.get("part", self._empty(place)), values)
