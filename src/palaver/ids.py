"""Ids and the one clock.

An id is an opaque string of lower-case hexadecimal digits. New ids are random. The ids of imported data are derived from the source, so
importing twice produces the same ids.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import NewType

SessionId = NewType("SessionId", str)
"""Names one session: 32 hexadecimal digits."""

DialogId = NewType("DialogId", str)
"""Names one dialog: 32 hexadecimal digits. The last four are its session's, and name its database if a store is sharded."""

MessageId = NewType("MessageId", str)
"""Names one message: 32 hexadecimal digits when palaver made it, the provider's own id when it was imported."""

BlobId = NewType("BlobId", str)
"""Names one payload by its SHA-256: 64 hexadecimal digits."""

_ID_BYTES = 16  # as many random bits as a UUID; a collision needs about 2**64 ids
_LENGTH_BYTES = 8
_SHARED_DIGITS = 4  # 65,536 parts: more databases than one application spreads its sessions over


def now() -> float:
    """Return the time in seconds since 1970-01-01 UTC, ignoring leap seconds."""
    return time.time()


def new_session_id(like: str = "") -> SessionId:
    """Return a fresh session id; with `like`, one that ends in the same four digits, so that a dialog of that id fits into the session."""
    shared = like[-_SHARED_DIGITS:]
    return SessionId(os.urandom(_ID_BYTES).hex()[: 2 * _ID_BYTES - len(shared)] + shared)


def unchosen_name(beginning: str, session_id: str) -> str:
    """Return a name for a session that nobody named. It is no title."""
    return f"{beginning}_{session_id[:6]}"


def new_dialog_id(session_id: str) -> DialogId:
    """Return a fresh id for a dialog of a session. Its last four digits are those of the session's id."""
    return _in_session(os.urandom(_ID_BYTES).hex(), session_id)


def derive_dialog_id(session_id: str, *parts: str) -> DialogId:
    """Derive the id of a dialog of a session from strings, the same one every time."""
    return _in_session(derive_id(session_id, *parts), session_id)


def _in_session(digits: str, session_id: str) -> DialogId:
    return DialogId(digits[:-_SHARED_DIGITS] + session_id[-_SHARED_DIGITS:])


def new_message_id() -> MessageId:
    """Return a fresh message id."""
    return MessageId(os.urandom(_ID_BYTES).hex())


def derive_id(*parts: str) -> str:
    """Derive 32 hexadecimal digits from strings, the same ones every time.

    Each part goes into SHA-256 after its length, so that ``("ab", "c")`` and ``("a", "bc")`` differ. Lone surrogates,
    which a foreign file may contain, are allowed.
    """
    hasher = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hasher.update(len(raw).to_bytes(_LENGTH_BYTES, "big"))
        hasher.update(raw)
    return hasher.hexdigest()[: 2 * _ID_BYTES]
