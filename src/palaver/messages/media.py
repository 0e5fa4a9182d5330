"""Images and sound as values, named by their bytes.

The type of a payload is read from its first bytes, since what files and providers claim is often wrong. Only the factories here,
and the constructors of blocks that call them, read a file; validation and decoding never do.
"""

from __future__ import annotations

import base64
import binascii
import io
import struct
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import unquote_to_bytes

from pydantic import field_serializer

from palaver.errors import InvalidMessage, MissingFile, NotFound
from palaver.messages.value import Value, digest

MediaKind = Literal["image", "audio"]

# First bytes -> type. Images: PNG 1.2 section 12.12, JPEG ISO/IEC 10918-1 B.1.1.3, GIF89a section 17, the WebP container
# specification, TIFF 6.0 section 2. Sound: ID3v2 section 3.1 and MPEG frame sync (layer III), RFC 3533, RFC 9639, RIFF/WAVE.
_MAGIC: dict[MediaKind, dict[bytes, str]] = {
    "image": {
        b"\xff\xd8\xff": "image/jpeg",
        b"\x89PNG\r\n\x1a\n": "image/png",
        b"GIF87a": "image/gif",
        b"GIF89a": "image/gif",
        b"II*\x00": "image/tiff",
        b"MM\x00*": "image/tiff",
    },
    "audio": {
        b"ID3": "audio/mpeg",
        b"\xff\xfb": "audio/mpeg",
        b"\xff\xf3": "audio/mpeg",
        b"\xff\xf2": "audio/mpeg",
        b"OggS": "audio/ogg",
        b"fLaC": "audio/flac",
    },
}
_RIFF: dict[MediaKind, tuple[bytes, str]] = {"image": (b"WEBP", "image/webp"), "audio": (b"WAVE", "audio/wav")}
_PIL_TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"})


def sniff(data: bytes, kind: MediaKind) -> str | None:
    """Return the type of a payload by its first bytes, or None if they are unknown."""
    if data[:4] == b"RIFF":
        brand, media_type = _RIFF[kind]
        return media_type if data[8:12] == brand else None
    return next((media_type for magic, media_type in _MAGIC[kind].items() if data.startswith(magic)), None)


# Markers that open a frame: SOF0 to SOF15 without DHT, JPG and DAC (ITU-T T.81, table B.1).
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_FILL = 0xFF
_FOURTEEN_BITS = 0x3FFF


def pixel_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height of a PNG, JPEG, GIF or WebP by its first bytes; None for other bytes, or too few of them."""
    reader = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}.get(
        sniff(data, "image") or ""
    )
    try:
        size = reader(data) if reader else None
    except struct.error:  # the bytes end within the header
        return None
    return size if size and min(size) > 0 else None


def _png(data: bytes) -> tuple[int, int] | None:
    """Read the header, which is the first chunk (PNG specification, 5.2 and 11.2.1)."""
    chunk, width, height = struct.unpack_from(">4sII", data, 12)
    return (width, height) if chunk == b"IHDR" else None


def _gif(data: bytes) -> tuple[int, int]:
    """Read the logical screen (GIF89a, 18)."""
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the first frame (ITU-T T.81, B.2.2)."""
    at = 2
    while data[at : at + 1] == b"\xff":
        marker, length = struct.unpack_from(">BH", data, at + 1)
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 1 if marker == _FILL else 2 + length
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk: lossy (RFC 6386, 9.1), lossless (RFC 9649, 3.4) or extended (2.7)."""
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & _FOURTEEN_BITS, height & _FOURTEEN_BITS
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & _FOURTEEN_BITS), 1 + (bits >> 14 & _FOURTEEN_BITS)
        case b"VP8X":
            wide, wider, high, higher = struct.unpack_from("<HBHB", data, 24)
            return 1 + wide + (wider << 16), 1 + high + (higher << 16)
    return None


class Media(Value):
    """One image or sound: an address on the web, or bytes identified by their digest.

    Two are equal if address, digest and type are equal, whether or not their bytes are in memory.

    Attributes:
        media_type: Such as ``image/png``; empty for an address.
        digest: SHA-256 of the bytes, 64 hexadecimal digits; empty for an address.
        size: Number of bytes; 0 for an address.
        width: Of an image, in pixels, as its bytes say; 0 where that is unknown, as at an address.
        height: Likewise.
        url: The address, ``http`` or ``https``, or None.
        data: The bytes while they are in memory; never part of the stored form.
    """

    _never_stored: ClassVar[frozenset[str]] = frozenset({"data"})

    media_type: str = ""
    digest: str = ""
    size: int = 0
    width: int = 0
    height: int = 0
    url: str | None = None
    data: bytes | None = None

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Decode base64, and identify the bytes."""
        data = values.get("data")
        if isinstance(data, str):
            data = values["data"] = _from_base64(data)
        if isinstance(data, bytes):
            values |= _facts(data, values.get("digest"), values.get("media_type"))
        if not values.get("digest") and not values.get("url"):
            raise InvalidMessage("A medium has bytes, the digest of bytes, or an address.")
        return values

    @classmethod
    def from_bytes(cls, data: bytes, kind: MediaKind = "image", media_type: str = "") -> Media:
        """Identify bytes; a claimed `media_type` counts only where the first bytes are unknown.

        Sound of unknown type counts as MPEG, whose streams may start anywhere.

        Raises:
            InvalidMessage: The bytes are not a known image, and no type is claimed.
        """
        if not media_type.startswith(f"{kind}/"):
            media_type = sniff(data, kind) or ("audio/mpeg" if kind == "audio" and data else "")
        if not media_type:
            raise InvalidMessage(
                f"These {len(data)} bytes are no {kind} palaver knows.", hint="Pass PNG, JPEG, GIF or WebP."
            )
        return cls(media_type=media_type, data=bytes(data))

    @classmethod
    def from_text(cls, text: str, kind: MediaKind = "image", media_type: str = "") -> Media:
        """Read an ``http(s)`` address, a ``data:`` address or base64. Never read a file.

        Raises:
            InvalidMessage: It is none of them, or its bytes are of unknown type.
        """
        if text.startswith(("http://", "https://")):
            return cls(url=text)
        if text[:5].lower() != "data:":
            return cls.from_bytes(_from_base64(text), kind, media_type)
        head, comma, payload = text[5:].partition(",")
        if not comma:
            raise InvalidMessage("A data: address needs a comma before its payload.")
        claimed, *marks = (mark.strip().lower() for mark in head.split(";"))
        data = _from_base64(payload) if "base64" in marks else unquote_to_bytes(payload)
        return cls.from_bytes(data, kind, claimed)

    @classmethod
    def from_file(cls, path: str | Path, kind: MediaKind = "image") -> Media:
        """Read a file now.

        Raises:
            MissingFile: There is no such file. Other errors of the file system are raised as they are.
            InvalidMessage: It is a directory, or of unknown type.
        """
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise MissingFile(path) from error
        except IsADirectoryError as error:
            raise InvalidMessage(f"{str(path)!r} is a directory, not a file.") from error
        return cls.from_bytes(data, kind)

    @classmethod
    def from_pil(cls, image: Any) -> Media:  # noqa: ANN401 - Pillow is optional
        """Encode a Pillow image now: in its own format if models accept that, else as PNG."""
        kind = image.format if image.format in _PIL_TYPES else "PNG"
        if kind == "PNG" and image.mode not in _PNG_MODES:
            image = image.convert("RGBA" if "A" in image.mode or "a" in image.mode else "RGB")
        buffer = io.BytesIO()
        image.save(buffer, format=kind)
        return cls(media_type=_PIL_TYPES[kind], data=buffer.getvalue())

    @classmethod
    def of(cls, source: object, kind: MediaKind = "image") -> Media:
        """Read media in any form that a program has: bytes, base64, an address, a path object, for a sound ``file:<path>``, or a Pillow image.

        Raises:
            InvalidMessage: It is none of these, or of unknown type.
            MissingFile: The path object names no file.
        """
        if kind == "audio" and isinstance(source, str) and source.startswith("file:"):
            source = Path(source.removeprefix("file:"))
        if isinstance(source, Path):
            return cls.from_file(source, kind)
        pillow = sys.modules.get("PIL.Image")  # a program that has a Pillow image has imported Pillow
        if pillow is not None and isinstance(source, pillow.Image):
            return cls.from_pil(source)
        return cls.of_data(source, kind)

    @classmethod
    def of_data(cls, source: object, kind: MediaKind) -> Media:
        """Read what may come from outside: bytes, base64, an address or the fields of a medium."""
        if isinstance(source, Media):
            return source
        if isinstance(source, str):
            return cls.from_text(source, kind)
        if isinstance(source, bytes | bytearray | memoryview):
            return cls.from_bytes(bytes(source), kind)
        if isinstance(source, dict):
            return cls.from_dict(source)
        raise InvalidMessage(f"A {type(source).__name__} is no {kind}.")

    def to_base64(self) -> tuple[str, str]:
        """Return the bytes as base64 and their type, or the address and an empty type.

        Raises:
            NotFound: The bytes are not in memory.
        """
        if self.url is not None:
            return self.url, ""
        return base64.b64encode(self.payload()).decode(), self.media_type

    def payload(self) -> bytes:
        """Return the bytes.

        Raises:
            NotFound: They are not in memory, or lie at an address.
        """
        if self.data is None:
            name = self.url or self.digest
            raise NotFound(name, what="payload in memory", hint="Load it first with palaver.messages.hydrate().")
        return self.data

    @field_serializer("data", when_used="json-unless-none")
    def _data_as_base64(self, data: bytes) -> str:
        return base64.b64encode(data).decode()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Media):
            return NotImplemented
        return (self.url, self.digest, self.media_type) == (other.url, other.digest, other.media_type)

    def __hash__(self) -> int:
        return hash((self.url, self.digest, self.media_type))

    def __repr__(self) -> str:
        shown = repr(self.url) if self.url else f"{self.media_type!r}, {self.digest[:12]}…, {self.size} bytes"
        return f"Media({shown})"


def _facts(data: bytes, claimed_digest: object, claimed_type: object) -> dict[str, Any]:
    """Identify bytes; a claimed type counts only where the first bytes are unknown.

    Raises:
        InvalidMessage: They have another digest than the claimed one, or nothing says what they are.
    """
    found = digest(data)
    if claimed_digest and claimed_digest != found:
        raise InvalidMessage(f"The bytes are not those of {claimed_digest}: their digest is {found}.")
    claim = claimed_type if isinstance(claimed_type, str) else ""
    kinds = [kind for kind in _MAGIC if claim.startswith(f"{kind}/")] or list(_MAGIC)
    media_type = next(filter(None, (sniff(data, kind) for kind in kinds)), claim)
    if not media_type:
        raise InvalidMessage(f"These {len(data)} bytes are not an image or sound that palaver knows.")
    width, height = pixel_size(data) or (0, 0)
    return {"digest": found, "size": len(data), "media_type": media_type, "width": width, "height": height}


def _from_base64(text: str) -> bytes:
    """Decode base64, allowing white space and missing padding.

    Raises:
        InvalidMessage: It is not base64.
    """
    packed = "".join(text.split()).rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidMessage(f"This text of {len(text)} characters is neither an address nor base64.") from error
