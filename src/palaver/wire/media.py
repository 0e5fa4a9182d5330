"""The fourth pass: images and sounds, as far as the provider accepts them.

A text with the handle replaces what cannot be sent: a kind that is not accepted, or bytes that are missing or too many. Where all together are too many, the
oldest leave. The oldest leave in steps of a quarter of the limit, so that a growing conversation does not change its
beginning with every new image.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from palaver.errors import Erased, NotFound, StoreDamaged
from palaver.ids import BlobId
from palaver.messages.media import pixel_size, sniff
from palaver.wire.rules import SNIFFED
from palaver.wire.script import (
    ChangeNotes,
    How,
    MediaPart,
    Part,
    ResultPart,
    Speech,
    TextPart,
    follows,
    from_harness,
    left_out,
    media_parts,
    returned,
)
from palaver.wire.table import Profile

Load: TypeAlias = Callable[[BlobId], bytes]
"""Returns the bytes of a payload by its digest."""

_SPELLED = {"audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav", "image/jpg": "image/jpeg"}
"""How providers spell the media types that have several names."""

_STEPS = 4
"""The oldest media leave in steps of the limit divided by this."""

_BASE64_IN, _BASE64_OUT = 3, 4  # RFC 4648, section 4: bytes in, characters out

_Verdict: TypeAlias = MediaPart | str
"""A medium as it is sent, or the reason why it cannot be."""


def with_media(
    scripts: Sequence[Sequence[Speech]], profile: Profile, load: Load, room: int, notes: ChangeNotes
) -> list[tuple[Speech, ...]]:
    """Return scripts with the media that the provider accepts, their bytes read, and texts instead of the others.

    Args:
        scripts: The scripts that have media, in order.
        profile: The provider's rules.
        load: Returns the bytes of a payload that is not in memory.
        room: The bytes of the request that media may use, after base64.
        notes: The changes so far.
    """
    listed = [part for script in scripts for part in media_parts(script)]
    verdicts = _judged(listed, profile, load, room)
    for verdict, part in zip(verdicts, listed, strict=True):
        if isinstance(verdict, str):
            notes.add(part.origin, part.kind, How.REPLACED, verdict)
    return _placed(scripts, iter(verdicts), profile, notes)


def without_media(script: Sequence[Speech], profile: Profile) -> tuple[Speech, ...]:
    """Return a script with a text instead of each medium: about what it needs without the media's bytes."""
    verdicts = iter(["it cannot be sent with this request to this provider"] * len(list(media_parts(script))))
    return _placed([script], verdicts, profile, ChangeNotes())[0]


# --- which can be sent ---------------------------------------------------------------------------------------------------


def _judged(listed: Sequence[MediaPart], profile: Profile, load: Load, room: int) -> list[_Verdict]:
    """Judge all media: each alone, then their number and bytes, then the content of their bytes."""
    limits = profile.media
    verdicts: list[_Verdict] = [_unfit(part, profile) or part for part in listed]
    _cut(verdicts, limits.count, lambda part: int(part.kind == "image"), "more images than one request may have")
    _cut(verdicts, room, _encoded, "more bytes than one request may have")
    images = sum(isinstance(verdict, MediaPart) and verdict.kind == "image" for verdict in verdicts)
    side = limits.crowd_side if limits.crowd is not None and images > limits.crowd else limits.side
    return [_read(verdict, profile, load, side) if isinstance(verdict, MediaPart) else verdict for verdict in verdicts]


def _unfit(part: MediaPart, profile: Profile) -> str:
    """Return why a medium cannot be sent, as far as its reference tells, or an empty text."""
    media, limits, kinds = part.media, profile.media, _kinds(part, profile)
    if not kinds:
        return f"this provider takes no {part.kind}"
    if media.url is not None:
        scheme = media.url.partition(":")[0].lower()
        fetched = part.kind == "image" and scheme in limits.schemes
        return "" if fetched else f"this provider fetches no {part.kind} from {scheme}"
    declared = _SPELLED.get(media.media_type, media.media_type)
    if declared not in kinds:
        return f"this provider does not take {declared or 'what has no type'}"
    if not media.size:
        return "it has no bytes"
    if part.kind == "image" and _encoded(part) > limits.image_bytes:
        return f"it has {_encoded(part):,} bytes in base64, and the provider takes {limits.image_bytes:,}"
    return ""


def _kinds(part: MediaPart, profile: Profile) -> frozenset[str]:
    return profile.media.images if part.kind == "image" else profile.media.audio


def _encoded(part: MediaPart) -> int:
    """Return the length of a medium in base64; an address counts nothing."""
    return 0 if part.media.url is not None else -(-part.media.size // _BASE64_IN) * _BASE64_OUT


def _cut(verdicts: list[_Verdict], limit: int, weigh: Callable[[MediaPart], int], why: str) -> None:
    """Leave the oldest out until the others weigh no more than `limit`, in steps of a part of it."""
    over = sum(weigh(verdict) for verdict in verdicts if isinstance(verdict, MediaPart)) - limit
    step = max(limit // _STEPS, 1)
    goal = -(-over // step) * step
    for index, verdict in enumerate(verdicts):
        if goal <= 0:
            return
        if isinstance(verdict, MediaPart) and weigh(verdict):
            goal -= weigh(verdict)
            verdicts[index] = why


def _read(part: MediaPart, profile: Profile, load: Load, side: int | None) -> _Verdict:
    """Return a medium with its bytes and their type, or the reason why they cannot be sent."""
    media = part.media
    if media.url is not None:
        return part
    try:
        data = media.data if media.data is not None else load(BlobId(media.digest))
    except (NotFound, Erased, StoreDamaged) as error:
        return f"its bytes cannot be had: {type(error).__name__}"
    if len(data) != media.size:
        return f"its bytes are not those recorded: {len(data):,} instead of {media.size:,}"
    return _judged_bytes(part, data, profile, side)


def _judged_bytes(part: MediaPart, data: bytes, profile: Profile, side: int | None) -> _Verdict:
    """Return a medium with these bytes, or the reason why they cannot be sent."""
    found = sniff(data, part.kind)
    media_type = _SPELLED.get(found or part.media.media_type, found or part.media.media_type)
    if media_type not in _kinds(part, profile):
        return f"its bytes are {media_type}, which this provider does not take"
    if found is None and media_type in SNIFFED:
        return f"its bytes are not {media_type}"
    longer = max(pixel_size(data) or (0,)) if part.kind == "image" else 0
    if side is not None and longer > side:
        return f"its longer side has {longer:,} pixels, and the provider takes {side:,} here"
    return replace(part, media_type=media_type, data=base64.b64encode(data).decode("ascii"))


# --- places ----------------------------------------------------------------------------------------------------


def _placed(
    scripts: Sequence[Sequence[Speech]], verdicts: Iterator[_Verdict], profile: Profile, notes: ChangeNotes
) -> list[tuple[Speech, ...]]:
    return [
        tuple(spoken for speech in script for spoken in _spoken(speech, verdicts, profile, notes)) for script in scripts
    ]


def _spoken(speech: Speech, verdicts: Iterator[_Verdict], profile: Profile, notes: ChangeNotes) -> Iterator[Speech]:
    """Return a speech with its media or the texts instead of them, and after it one with those that cannot be in its results."""
    lifted: list[Part] = []
    parts: list[Part] = []
    for part in speech.parts:
        if isinstance(part, MediaPart):
            parts.append(_stand_in(part, next(verdicts)))
        elif isinstance(part, ResultPart):
            body = [_stand_in(inner, next(verdicts)) if isinstance(inner, MediaPart) else inner for inner in part.body]
            outside = [inner for inner in body if isinstance(inner, MediaPart) and not _fits(inner, part, profile)]
            for inner in outside:
                why = "results hold none here: it follows in a message of its own"
                notes.add(part.origin, inner.kind, How.CHANGED, why)
            if outside:
                lifted += [TextPart(from_harness("media", returned(part.id)), part.origin), *outside]
            kept = tuple(TextPart(follows(inner.kind), part.origin) if inner in outside else inner for inner in body)
            parts.append(replace(part, body=kept))
        else:
            parts.append(part)
    yield replace(speech, parts=tuple(parts))
    if lifted:
        yield Speech("user", tuple(lifted))


def _stand_in(part: MediaPart, verdict: _Verdict) -> MediaPart | TextPart:
    if isinstance(verdict, MediaPart):
        return verdict
    what = part.kind if part.of == 1 else f"{part.kind} {part.number} of {part.of}"
    return TextPart(left_out(what, verdict, part.origin), part.origin)


def _fits(part: MediaPart, result: ResultPart, profile: Profile) -> bool:
    """Return whether a medium can be in a result; that of a failed call has text only (vellum-ai/vellum-assistant#18387)."""
    kinds = profile.calls.media
    return not result.error and (part.media_type in kinds if part.data else bool(kinds) and part.kind == "image")
