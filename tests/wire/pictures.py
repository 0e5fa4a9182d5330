"""Images made of their headers, for requests: real enough to be told apart and measured."""

import struct
import zlib
from base64 import b64encode


def png(width: int = 2, height: int = 2) -> bytes:
    """Return a PNG of this size; only one row of its pixels is there, which no header tells."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * (width + 1))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def gif(width: int = 2, height: int = 2) -> bytes:
    """Return the head of a GIF of this size."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int = 2, height: int = 2) -> bytes:
    """Return the head of a JPEG of this size: an application segment, then the frame."""
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9 + b"\xff\xc0" + frame


def webp(kind: str, width: int = 2, height: int = 2) -> bytes:
    """Return the head of a WebP of this size: ``VP8 `` lossy, ``VP8L`` lossless or ``VP8X`` extended."""
    if kind == "VP8 ":
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    elif kind == "VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    chunk = kind.encode() + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def data_url(data: bytes, media_type: str = "image/png") -> str:
    """Write bytes as a data URL."""
    return f"data:{media_type};base64,{b64encode(data).decode()}"


HEIC = b64encode(b"\0\0\0\x18ftypheic\0\0\0\0").decode()
PDF = b64encode(b"%PDF-1.7\n%%EOF\n").decode()
