"""Poison: single blocks that a provider refuses for good, in whatever conversation they stand.

Cheap looks tell what could be refused; only that is held to the providers' strict validators. A block that every provider refuses is a fault,
one that some refuse a warning.

Sources, from threads in which such a block ended a session: empty text (anthropics/claude-code#62396), lone surrogates and NUL
(anthropics/claude-code#68325, #94408), ids of other providers (openai/codex#38365), images over a limit or of another kind than they say
(anthropics/claude-code#10612), arguments that are no JSON (pydantic/pydantic-ai#4728), thoughts without their signature (badlogic/pi-mono#9391).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from palaver.errors import NotFound
from palaver.messages.blocks import Content, ImageContent, TextContent, ThinkingContent, ToolCallContent
from palaver.transcripts import refusals
from palaver.transcripts.findings import Finding
from palaver.transcripts.refusals import Refusal
from palaver.wire import PROFILES
from palaver.wire.check.media import decode, pixels

__all__ = ["judged", "of_call", "of_content", "of_image", "of_text", "of_thought", "suspicious_image", "told"]

_TAKEN_BY_ALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_TAKEN_BY_ALL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_SMALLEST_IMAGE_LIMIT = min(profile.media.image_bytes for profile in PROFILES.values())
_KINDS = frozenset.intersection(*(profile.media.images for profile in PROFILES.values()))
_HEADS = {"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/", "image/webp": "UklGR"}
"""How the base64 of a kind begins: its magic number (https://mimesniff.spec.whatwg.org/#image-type-pattern-matching-algorithm)."""
_HEAD = 1 << 16
"""Characters of base64, a multiple of four, in which the header of an image lies."""
_SMALLEST_SIDE = min(side for one in PROFILES.values() for side in (one.media.side, one.media.crowd_side) if side)
_MEDIA_SIZE = frozenset({"media-bytes", "media-side", "request-bytes"})


_AS_RECORDED: Mapping[str, Callable[[], tuple[Refusal, ...]]] = MappingProxyType(
    {
        "duplicate_id": refusals.twice,
        "malformed_arguments": lambda: refusals.call("c1", "tool", "{"),
        "nul": lambda: refusals.text("\0"),
        "orphan_result": refusals.orphan,
        "surrogate": lambda: refusals.text("\ud800"),
        "unanswered_call": refusals.unanswered,
    }
)
"""Who refuses what is wrong between blocks, or in any of them."""


def told(finding: Finding) -> Finding:
    """Give a finding with who refuses it as it was recorded, and why, where its code says that."""
    ask = _AS_RECORDED.get(finding.code)
    if ask is None or finding.refused:
        return finding
    why = {one.profile: f"{one.rule}: {one.why}" for one in ask()}
    return replace(finding, providers=tuple(why), refused=why)


def judged(place: str, code: str, what: str, refused: Sequence[Refusal]) -> Iterator[Finding]:
    """Give the finding for what some provider refuses; nothing when all take it."""
    if not refused:
        return
    names = tuple(dict.fromkeys(one.profile for one in refused))
    everyone = len(names) == len(PROFILES)
    yield Finding(
        place=place,
        code=code,
        what=what,
        severity="fault" if everyone else "warning",
        providers=names,
        refused={one.profile: f"{one.rule}: {one.why}" for one in refused},
    )


def of_text(place: str, said: str) -> Iterator[Finding]:
    """Judge a text that says nothing; any other is for the reader to clean."""
    if not said or said.isspace():
        what = "A text holds nothing." if not said else "A text holds white space only."
        yield from judged(place, "empty_text", what, refusals.text(said and " "))


def of_call(place: str, call_id: str, name: str, error: str = "") -> Iterator[Finding]:
    """Judge a call by its id, its tool's name, and whether its arguments could be read.

    Args:
        place: Where it stands.
        call_id: Its id.
        name: The tool's name.
        error: Why its arguments cannot be read, or empty.
    """
    if _TAKEN_BY_ALL_ID.fullmatch(call_id) is None:
        yield from judged(place, "bad_call_id", f"The call id {call_id[:60]!r} is not taken.", refusals.call(call_id))
    if _TAKEN_BY_ALL_NAME.fullmatch(name) is None:
        what = f"The tool name {name[:60]!r} is not taken."
        yield from judged(place, "bad_tool_name", what, refusals.call("c1", name))
    if error:
        what = f"The arguments of a call cannot be read: {error}"
        yield told(Finding(place=place, code="malformed_arguments", what=what, severity="fault"))


def suspicious_image(media_type: str, data: str) -> bool:
    """Tell whether an image could be refused: for its kind, the length of its base64, how that begins, or its pixels."""
    if media_type not in _KINDS or len(data) > _SMALLEST_IMAGE_LIMIT or not data.startswith(_HEADS[media_type]):
        return True
    head = decode(data[:_HEAD])
    return head is None or max(pixels(head, media_type), default=_SMALLEST_SIDE) >= _SMALLEST_SIDE


def of_image(place: str, media_type: str, data: str) -> Iterator[Finding]:
    """Judge an image given as base64."""
    refused = refusals.image(media_type, data)
    size = [one for one in refused if one.rule in _MEDIA_SIZE]
    kind = [one for one in refused if one.rule not in _MEDIA_SIZE]
    yield from judged(
        place, "bad_media", f"An image is not what it says, or of a kind not taken: {media_type!r}.", kind
    )
    yield from judged(place, "oversized_media", f"An image has {len(data):,} bytes in base64.", size)


def of_thought(place: str, said: str, signature: str) -> Iterator[Finding]:
    """Judge a thought that is to be sent back as a block."""
    if said and not signature:
        what = "A thought has no signature."
        yield from judged(place, "unsigned_thinking", what, refusals.thought("thought", ""))


def of_content(place: str, content: Content) -> Iterator[Finding]:
    """Judge a block of a log, its media as far as their bytes are at hand."""
    if isinstance(content, TextContent):
        yield from of_text(place, content.content)
    elif isinstance(content, ToolCallContent):
        yield from of_call(place, content.id, content.name, content.error or "")
    elif isinstance(content, ThinkingContent) and content.provider == "anthropic" and not content.redacted:
        yield from of_thought(place, content.content, content.signature)
    elif isinstance(content, ImageContent):
        yield from _of_images(place, content)


def _of_images(place: str, content: ImageContent) -> Iterator[Finding]:
    for (data, media_type), media in zip(_encoded(content), content.images, strict=False):
        if media.url is None and suspicious_image(media_type, data):
            yield from of_image(place, media_type, data)


def _encoded(content: ImageContent) -> list[tuple[str, str]]:
    try:
        return content.to_base64()
    except NotFound:
        return []
