"""The size of an image and the length of a recording, read from their first bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["pixel_size", "seconds"]

_PNG = struct.Struct(">8s4x4sII")  # signature, IHDR, width, height (PNG specification, 5.2 and 11.2.1)
_GIF = struct.Struct("<6sHH")  # signature, width, height (GIF89a, 17 and 18)
_RIFF = struct.Struct("<4s4x4s4s")  # RIFF, form, first chunk (RFC 9649, 2.4)
_WEBP_LOSSY = struct.Struct("<HH")  # width and height, 14 bits each (RFC 6386, 9.1)
_WEBP_LOSSLESS = struct.Struct("<I")  # width - 1 and height - 1, 14 bits each (RFC 9649, 3.4)
_WEBP_EXTENDED = struct.Struct("<HBHB")  # width - 1 and height - 1, 24 bits each (RFC 9649, 2.7)
_JPEG_FRAME = struct.Struct(">HH")  # height, width (ITU-T T.81, B.2.2)
_WAV = struct.Struct("<4s4x4s16xI")  # RIFF, WAVE, and the bytes a second of the format chunk behind it

_FOURTEEN_BITS = 0x3FFF
_MARK = 0xFF

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers that open a frame: SOF0 to SOF15 without DHT, JPG and DAC (ITU-T T.81, table B.1)."""

_SPEECH_BYTES_PER_SECOND = 4_000
"""What a compressed recording is taken to have: 32 kbit/s, the low end for speech, so that its length errs high."""


def pixel_size(data: bytes) -> tuple[int, int] | None:
    """Read width and height, in pixels, from the head of a PNG, JPEG, GIF or WebP.

    Args:
        data: The image, or at least its first bytes.

    Returns:
        (width, height), both at least 1, or None when the bytes are none of these formats or end too early.
    """
    size = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    return size if size and min(size) > 0 else None


def seconds(data: bytes | None, size: int) -> float:
    """Return how long a recording is.

    Args:
        data: The recording, or None when its bytes are not at hand.
        size: Its length in bytes.

    Returns:
        Seconds: of a WAV file by the byte rate of its header, of anything else by 32 kbit/s.
    """
    rate = _SPEECH_BYTES_PER_SECOND
    if data and len(data) >= _WAV.size:
        riff, form, stated = _WAV.unpack_from(data)
        if (riff, form) == (b"RIFF", b"WAVE") and stated:
            rate = stated
    return size / rate


def _png(data: bytes) -> tuple[int, int] | None:
    """Read the image header, which is the first chunk."""
    if len(data) < _PNG.size:
        return None
    signature, chunk, width, height = _PNG.unpack_from(data)
    return (width, height) if (signature, chunk) == (b"\x89PNG\r\n\x1a\n", b"IHDR") else None


def _gif(data: bytes) -> tuple[int, int] | None:
    """Read the logical screen."""
    if len(data) < _GIF.size:
        return None
    signature, width, height = _GIF.unpack_from(data)
    return (width, height) if signature in {b"GIF87a", b"GIF89a"} else None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk, of which there are three kinds."""
    if len(data) < 30 or _RIFF.unpack_from(data)[:2] != (b"RIFF", b"WEBP"):  # noqa: PLR2004 - where the sizes end
        return None
    match _RIFF.unpack_from(data)[2]:
        case b"VP8X":
            wide, wider, high, higher = _WEBP_EXTENDED.unpack_from(data, 24)
            return 1 + wide + (wider << 16), 1 + high + (higher << 16)
        case b"VP8L":
            (bits,) = _WEBP_LOSSLESS.unpack_from(data, 21)
            return 1 + (bits & _FOURTEEN_BITS), 1 + (bits >> 14 & _FOURTEEN_BITS)
        case b"VP8 ":
            width, height = _WEBP_LOSSY.unpack_from(data, 26)
            return width & _FOURTEEN_BITS, height & _FOURTEEN_BITS
        case _:
            return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the first frame header."""
    if not data.startswith(b"\xff\xd8"):
        return None
    for marker, place in _segments(data):
        if marker in _FRAMES and place + 7 <= len(data):
            height, width = _JPEG_FRAME.unpack_from(data, place + 3)
            return width, height
    return None


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Return the marker of each JPEG segment and where its length field begins."""
    place = 2
    while place + 4 <= len(data) and data[place] == _MARK:
        if data[place + 1] == _MARK:  # a fill byte
            place += 1
            continue
        yield data[place + 1], place + 2
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
