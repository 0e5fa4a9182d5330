"""Identities and the one clock.

Identities are opaque strings of lower-case hexadecimal digits. New ones are random; those of imported things are derived
from what they were imported from, so that importing twice gives the same ones.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import NewType, Protocol

__all__ = [
    "BlobId",
    "Clock",
    "DialogId",
    "IdFactory",
    "MessageId",
    "SessionId",
    "derive_id",
    "new_dialog_id",
    "new_message_id",
    "new_session_id",
    "now",
]

SessionId = NewType("SessionId", str)
"""Names one session: 32 hexadecimal digits."""

DialogId = NewType("DialogId", str)
"""Names one dialog: 32 hexadecimal digits."""

MessageId = NewType("MessageId", str)
"""Names one message: 32 hexadecimal digits when palaver made it, a provider's spelling when it was imported."""

BlobId = NewType("BlobId", str)
"""Names one payload by its SHA-256: 64 hexadecimal digits."""

_ID_BYTES = 16  # as many random bits as a UUID; a collision needs about 2**64 ids
_LENGTH_BYTES = 8


class Clock(Protocol):
    """Anything that tells the time as :func:`now` does; tests inject their own."""

    def __call__(self) -> float:
        """Give seconds since 1970-01-01 UTC."""


class IdFactory(Protocol):
    """Anything that makes fresh identities; tests inject their own."""

    def __call__(self) -> str:
        """Give an identity never given before."""


def now() -> float:
    """Give the time in seconds since 1970-01-01 UTC, leap seconds aside."""
    return time.time()


def new_session_id() -> SessionId:
    """Make a fresh session id."""
    return SessionId(os.urandom(_ID_BYTES).hex())


def new_dialog_id() -> DialogId:
    """Make a fresh dialog id."""
    return DialogId(os.urandom(_ID_BYTES).hex())


def new_message_id() -> MessageId:
    """Make a fresh message id."""
    return MessageId(os.urandom(_ID_BYTES).hex())


def derive_id(*parts: str) -> str:
    """Derive 32 hexadecimal digits from strings, the same ones every time.

    Each part goes into SHA-256 behind its length, so that ``("ab", "c")`` and ``("a", "bc")`` differ. Lone surrogates,
    which a foreign file may hold, are allowed.
    """
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hasher.update(len(raw).to_bytes(_LENGTH_BYTES, "big"))
        hasher.update(raw)
    return hasher.hexdigest()[: 2 * _ID_BYTES]
