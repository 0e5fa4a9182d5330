"""Canonical forms, digests and seals: what a server signs or encrypts, and reads again without a table of what it signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any, Final

Json = dict[str, Any]

_MAC_BYTES: Final = 16
_PLAIN: Final = str.maketrans("-_", "+/")
"""Some clients write bytes in the alphabet for URLs."""

_DIGEST_CHARACTERS: Final = 20


def canonical(value: object) -> str:
    """Return a JSON value as text that does not depend on the order of keys or on spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(*parts: object) -> str:
    """Return a short digest of JSON values."""
    joined = "\x1e".join(part if isinstance(part, str) else canonical(part) for part in parts)
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]


class Seal:
    """A key that encrypts and authenticates small values.

    The text of a sealed value says everything that the server needs later, as the signatures and encrypted contents of the vendors do. Equal values
    have equal texts. The cipher is a keystream of SHA-256: good enough to be opaque to a client, and no protection of secrets.
    """

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def close(self, kind: str, value: Json) -> str:
        """Return the sealed text of a value of this kind."""
        plain = canonical([kind, value]).encode()
        mac = hmac.digest(self._key, plain, "sha256")[:_MAC_BYTES]
        return base64.b64encode(mac + self._mixed(mac, plain)).decode()

    def open(self, kind: str, text: object) -> Json | None:
        """Return the value of a sealed text, or None where the text is no text of this key and kind."""
        try:
            sealed = base64.b64decode(str(text).translate(_PLAIN).encode("ascii"), validate=True)
        except (ValueError, binascii.Error):
            return None
        mac, plain = sealed[:_MAC_BYTES], self._mixed(sealed[:_MAC_BYTES], sealed[_MAC_BYTES:])
        if not hmac.compare_digest(mac, hmac.digest(self._key, plain, "sha256")[:_MAC_BYTES]):
            return None
        sealed_kind, value = json.loads(plain)
        return dict(value) if sealed_kind == kind else None

    def _mixed(self, nonce: bytes, data: bytes) -> bytes:
        blocks = range(0, len(data), 32)
        stream = b"".join(hashlib.sha256(self._key + nonce + at.to_bytes(8, "big")).digest() for at in blocks)
        return bytes(left ^ right for left, right in zip(data, stream, strict=False))
