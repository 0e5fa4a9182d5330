"""Images and sound as values: named by their bytes, kept beside the message that shows them.

The type of a payload is read from its first bytes, since what files and providers claim is often wrong. Only the factories of
this module, and the constructors of blocks that call them, ever read a file; decoding never does.
"""

from __future__ import annotations

import base64
import binascii
import io
import sys
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import unquote_to_bytes

from pydantic import field_serializer

from palaver.errors import InvalidMedia, MediaUnavailable, MissingMedia
from palaver.messages.canonical import digest
from palaver.messages.value import Value

__all__ = ["Media", "sniff"]

MediaKind = Literal["image", "audio"]

# First bytes -> type. Images: PNG 1.2 section 12.12, JPEG ISO/IEC 10918-1 B.1.1.3, GIF89a section 17, the WebP container
# specification, TIFF 6.0 section 2. Sound: ID3v2 section 3.1 and MPEG frame sync (layer III), RFC 3533, RFC 9639, RIFF/WAVE.
_MAGIC: dict[MediaKind, tuple[tuple[bytes, str], ...]] = {
    "image": (
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"II*\x00", "image/tiff"),
        (b"MM\x00*", "image/tiff"),
    ),
    "audio": (
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
        (b"\xff\xf3", "audio/mpeg"),
        (b"\xff\xf2", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
    ),
}
_RIFF: dict[MediaKind, tuple[bytes, str]] = {"image": (b"WEBP", "image/webp"), "audio": (b"WAVE", "audio/wav")}
_PIL_TYPES = {"JPEG": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16"})


def sniff(data: bytes, kind: MediaKind) -> str | None:
    """Name the type of a payload from its first bytes, or None if they are not known."""
    for magic, media_type in _MAGIC[kind]:
        if data.startswith(magic):
            return media_type
    brand, media_type = _RIFF[kind]
    return media_type if data[:4] == b"RIFF" and data[8:12] == brand else None


class Media(Value):
    """One image or sound: an address on the web, or bytes known by their digest.

    Two are equal if address, digest and type are; whether the bytes are in memory makes no difference.

    Attributes:
        media_type: Such as ``image/png``; empty for an address.
        digest: SHA-256 of the bytes, 64 hexadecimal digits; empty for an address.
        size: Number of bytes; 0 for an address.
        url: The address, ``http`` or ``https``, or None.
        data: The bytes while they are in memory; never part of the stored form.
    """

    _never_stored: ClassVar[frozenset[str]] = frozenset({"data"})

    media_type: str = ""
    digest: str = ""
    size: int = 0
    url: str | None = None
    data: bytes | None = None

    @classmethod
    def _prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Decode base64 and name the bytes by what they are."""
        data = values.get("data")
        if isinstance(data, str):
            data = values["data"] = _from_base64(data)
        if isinstance(data, bytes):
            values |= _facts(data, values.get("digest"), values.get("media_type"))
        if not values.get("digest") and values.get("url") is None:
            raise InvalidMedia("A medium has bytes, the digest of bytes, or an address.")
        return values

    @classmethod
    def from_bytes(cls, data: bytes, kind: MediaKind = "image", media_type: str = "") -> Media:
        """Name bytes by what they are; a claimed ``media_type`` counts only where the first bytes say nothing.

        Raises:
            InvalidMedia: These are no image that is known, and nobody says what they are. (Sound that is not known counts as
                MPEG, whose streams may start anywhere.)
        """
        if not media_type.startswith(f"{kind}/"):
            media_type = sniff(data, kind) or ("audio/mpeg" if kind == "audio" and data else "")
        if not media_type:
            raise InvalidMedia(
                f"These {len(data)} bytes are no {kind} palaver knows.", hint="Pass PNG, JPEG, GIF or WebP."
            )
        return cls(media_type=media_type, data=bytes(data))

    @classmethod
    def from_text(cls, text: str, kind: MediaKind = "image", media_type: str = "") -> Media:
        """Read an ``http(s)`` address, a ``data:`` address or plain base64. Never reads a file.

        Raises:
            InvalidMedia: It is none of them, or its bytes are of no known type.
        """
        if text.startswith(("http://", "https://")):
            return cls(url=text)
        if text[:5].lower() == "data:":
            head, comma, payload = text[5:].partition(",")
            if not comma:
                raise InvalidMedia("A data: address needs a comma before its payload.")
            claimed, *marks = head.split(";")
            is_base64 = "base64" in (mark.strip().lower() for mark in marks)
            data = _from_base64(payload) if is_base64 else unquote_to_bytes(payload)
            return cls.from_bytes(data, kind, claimed.strip().lower())
        return cls.from_bytes(_from_base64(text), kind, media_type)

    @classmethod
    def from_file(cls, path: str | Path, kind: MediaKind = "image") -> Media:
        """Read a file now.

        Raises:
            MissingMedia: There is no such file; it is a FileNotFoundError too. Other errors of the file system are raised as they are.
            InvalidMedia: It is of no known type.
        """
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError as error:
            raise MissingMedia(path) from error
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
        """Make a media value of whatever a program has: bytes, base64, an address, a path object or a Pillow image.

        Raises:
            InvalidMedia: It is none of these, or of no known type.
        """
        if isinstance(source, Path):
            return cls.from_file(source, kind)
        pillow = sys.modules.get("PIL.Image")  # whoever has a Pillow image has imported Pillow
        if pillow is not None and isinstance(source, pillow.Image):
            return cls.from_pil(source)
        return cls.of_data(source, kind)

    @classmethod
    def of_data(cls, source: object, kind: MediaKind) -> Media:
        """Make a media value of what may come from outside: bytes, base64, an address or the fields of one."""
        if isinstance(source, Media):
            return source
        if isinstance(source, str):
            return cls.from_text(source, kind)
        if isinstance(source, bytes | bytearray | memoryview):
            return cls.from_bytes(bytes(source), kind)
        if isinstance(source, dict):
            return cls.from_dict(source)
        raise InvalidMedia(f"A {type(source).__name__} is no {kind}.")

    def to_base64(self) -> tuple[str, str]:
        """Give the bytes as base64 and their type, or the address and an empty type.

        Raises:
            MediaUnavailable: The bytes are not in memory.
        """
        if self.url is not None:
            return self.url, ""
        return base64.b64encode(self.payload()).decode(), self.media_type

    def payload(self) -> bytes:
        """Give the bytes.

        Raises:
            MediaUnavailable: They are not in memory, or lie at an address.
        """
        if self.data is None:
            raise MediaUnavailable(f"The bytes of {self.url or self.digest} are not in memory.")
        return self.data

    @field_serializer("data", when_used="json-unless-none")
    def _data_as_base64(self, data: bytes) -> str:
        return base64.b64encode(data).decode()

    def __eq__(self, other: object) -> bool:
        """Compare address, digest and type."""
        if not isinstance(other, Media):
            return NotImplemented
        return (self.url, self.digest, self.media_type) == (other.url, other.digest, other.media_type)

    def __hash__(self) -> int:
        """Hash what is compared."""
        return hash((self.url, self.digest, self.media_type))

    def __repr__(self) -> str:
        """Show what it is, without its bytes."""
        return (
            f"Media({self.url!r})"
            if self.url
            else f"Media({self.media_type!r}, {self.digest[:12]}…, {self.size} bytes)"
        )


def _facts(data: bytes, claimed_digest: object, claimed_type: object) -> dict[str, Any]:
    """Name bytes; a type that was claimed counts only where the first bytes say nothing.

    Raises:
        InvalidMedia: They are not the bytes of the digest that came with them, or nobody says what they are.
    """
    found = digest(data)
    if claimed_digest and claimed_digest != found:
        raise InvalidMedia(f"The bytes are not those of {claimed_digest}: their digest is {found}.")
    claim = claimed_type if isinstance(claimed_type, str) else ""
    kinds = [kind for kind in _MAGIC if claim.startswith(f"{kind}/")] or list(_MAGIC)
    media_type = next(filter(None, (sniff(data, kind) for kind in kinds)), claim)
    if not media_type:
        raise InvalidMedia(f"These {len(data)} bytes are no image and no sound palaver knows.")
    return {"digest": found, "size": len(data), "media_type": media_type}


def _from_base64(text: str) -> bytes:
    """Decode base64, white space and missing padding allowed.

    Raises:
        InvalidMedia: It is none.
    """
    packed = "".join(text.split()).rstrip("=")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidMedia(f"This text of {len(text)} characters is no address and no base64.") from error
