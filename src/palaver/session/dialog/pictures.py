"""Images as programs have them: the one place that decides whether a string is a file's name."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from palaver.errors import InvalidMedia
from palaver.messages import Media
from palaver.messages.media import sniff

__all__ = ["media_from"]


def media_from(image: object) -> Media:
    """Make a media value of a path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.

    A string that is the base64 of an image is that image, even where a file has such a name; any other string that is no address
    names a file.

    Raises:
        MissingMedia: A string or path names no file; it is a FileNotFoundError too. Other errors of the file system are raised as they are.
        InvalidMedia: It is no image that is known.
    """
    if not isinstance(image, str) or image.startswith(("http://", "https://")) or image[:5].lower() == "data:":
        return Media.of(image)
    decoded = _decoded(image)
    if decoded and sniff(decoded, "image") is not None:
        return Media.from_bytes(decoded)
    if decoded and not Path(image).exists():
        raise InvalidMedia(f"{image[:40]!r} is no file, and as base64 it is no image palaver knows.")
    return Media.from_file(image)


def _decoded(text: str) -> bytes:
    """Give the bytes of a base64 text, none if it is not one."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
