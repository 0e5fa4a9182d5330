"""Images, sound and documents in a request: kinds, encodings, addresses, bytes, pixels and counts.

Each provider writes media in its own way, so a validator lists them (:class:`Attachment`); what may be wrong with one is the same everywhere.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from palaver.messages.media import sniff
from palaver.wire.check.place import Place, Rule, Violation, show
from palaver.wire.table import Media

# RFC 2397, with the base64 extension that every provider asks for.
_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)
_SCHEME = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*)://[^/\s]")
SNIFFED = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""The image types that `sniff` can tell apart."""
_URL_SAFE = bytes.maketrans(b"-_", b"+/")

AttachmentKind = Literal["image", "audio", "document"]


@dataclass(frozen=True, slots=True)
class Attachment:
    """One payload in a request.

    Attributes:
        kind: `image`, `audio` or `document`.
        at: Its place.
        media_type: The declared type; empty for an address.
        data: Its base64; None for an address.
    """

    kind: AttachmentKind
    at: Place
    media_type: str = ""
    data: str | None = None


def inline(kind: AttachmentKind, data: Place, media_type: str) -> Attachment:
    """Return a payload that is written as bare base64."""
    return Attachment(kind, data, media_type, data.text if isinstance(data.value, str) else None)


def linked(kind: AttachmentKind, url: Place, limits: Media, *, data_urls: bool) -> Iterator[Violation | Attachment]:
    """Return the attachment at an address, or what is wrong with the address.

    ``data_urls`` says whether the address may hold the payload itself.
    """
    if not isinstance(url.value, str):
        return  # a missing or mistyped field is the shape's business
    if url.text.startswith("data:"):
        found = _DATA_URL.fullmatch(url.text)
        if not data_urls:
            yield url.breaks(Rule.MEDIA_URL, "a data URL is not fetched; send its base64 as data")
        elif found is None:
            yield url.breaks(Rule.MEDIA_DATA, "not of the form data:TYPE;base64,DATA")
        else:
            yield Attachment(kind, url, found["type"].lower(), found["data"])
        return
    scheme = _SCHEME.match(url.text)
    if scheme is None or scheme["scheme"].lower() not in limits.schemes:
        taken = ", ".join(sorted(limits.schemes)) or "none"
        yield url.breaks(Rule.MEDIA_URL, f"{show(url.text)} is no address that is fetched (schemes: {taken})")
    else:
        yield Attachment(kind, url)


def attached(found: Iterable[Violation | Attachment], limits: Media) -> Iterator[Violation]:
    """Check every attachment of a request, and count the images; faults of addresses pass through."""
    attachments: list[Attachment] = []
    for each in found:
        if isinstance(each, Violation):
            yield each
        else:
            attachments.append(each)
    images = [each for each in attachments if each.kind == "image"]
    if len(images) > limits.count:
        yield images[limits.count].at.breaks(Rule.MEDIA_COUNT, f"{len(images)} images, {limits.count} are taken")
    crowded = limits.crowd is not None and len(images) > limits.crowd
    side = limits.crowd_side if crowded else limits.side
    for each in attachments:
        yield from _payload(each, limits, side)


def _payload(each: Attachment, limits: Media, side: int | None) -> Iterator[Violation]:
    """Check one payload's type, encoding, bytes and pixels; an address has none."""
    if each.data is None:
        return
    kinds = {"image": limits.images, "audio": limits.audio, "document": limits.documents}[each.kind]
    if each.media_type not in kinds:
        taken = ", ".join(sorted(kinds)) or "none"
        yield each.at.breaks(Rule.MEDIA_KIND, f"{show(each.media_type)} is not taken as {each.kind} ({taken})")
        return
    data = decode(each.data)
    if not data:
        yield each.at.breaks(Rule.MEDIA_DATA, "not base64" if data is None else "no bytes")
        return
    if each.kind == "image":
        if len(each.data) > limits.image_bytes:
            size = f"{len(each.data):,} bytes in base64, {limits.image_bytes:,} are taken"
            yield each.at.breaks(Rule.MEDIA_BYTES, size)
        yield from _picture(each, data, side)


def _picture(each: Attachment, data: bytes, side: int | None) -> Iterator[Violation]:
    """Compare the bytes of an image with its declared type, and its longer side with the limit."""
    if each.media_type not in SNIFFED:
        return
    actual = sniff(data, "image")
    if actual != each.media_type:
        yield each.at.breaks(Rule.MEDIA_MISMATCH, f"declared {each.media_type}, the bytes are {actual or 'no image'}")
        return
    longer = max(pixels(data, actual), default=0)
    if side is not None and longer > side:
        yield each.at.breaks(Rule.MEDIA_SIDE, f"the longer side has {longer} pixels, {side} are taken")


def decode(text: str) -> bytes | None:
    """Decode base64 in either alphabet (RFC 4648, sections 4 and 5), padded and without white space; return None for anything else."""
    try:
        return binascii.a2b_base64(text.encode("ascii").translate(_URL_SAFE), strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        return None


# --- pixels: the header of an image --------------------------------------------------------------------------


def pixels(data: bytes, media_type: str) -> tuple[int, ...]:
    """Read width and height from an image's header; empty when the header is cut short or of an unknown form."""
    if media_type == "image/png":  # PNG 1.2, section 11.2.2: IHDR comes first
        return _numbers(data, (16, 4, "big"), (20, 4, "big"))
    if media_type == "image/gif":  # GIF89a, section 18
        return _numbers(data, (6, 2, "little"), (8, 2, "little"))
    return _jpeg(data) if media_type == "image/jpeg" else _webp(data)


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF0 to SOF15; the three are tables and an extension


def _jpeg(data: bytes) -> tuple[int, ...]:
    """Walk the segments to the frame header (ISO/IEC 10918-1, B.2.2)."""
    at = 2
    while at + 9 <= len(data) and data[at : at + 1] == b"\xff":
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker in _FRAMES:
            return _numbers(data, (at + 5, 2, "big"), (at + 7, 2, "big"))
        at += 2 + length
    return ()


def _webp(data: bytes) -> tuple[int, ...]:
    """Read the first chunk of a WebP container: lossy (RFC 6386, 9.1), lossless or extended (RFC 9649)."""
    chunk = data[12:16]
    if chunk == b"VP8 ":
        return tuple(number & 0x3FFF for number in _numbers(data, (26, 2, "little"), (28, 2, "little")))
    if chunk == b"VP8L":
        bits = next(iter(_numbers(data, (21, 4, "little"))), 0)
        return (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if chunk == b"VP8X":
        return tuple(number + 1 for number in _numbers(data, (24, 3, "little"), (27, 3, "little")))
    return ()


def _numbers(data: bytes, *fields: tuple[int, int, Literal["big", "little"]]) -> tuple[int, ...]:
    """Read unsigned numbers, each given by offset, width and byte order; empty when the data ends before them."""
    if any(at + width > len(data) for at, width, _ in fields):
        return ()
    return tuple(int.from_bytes(data[at : at + width], order) for at, width, order in fields)
