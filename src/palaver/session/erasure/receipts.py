"""Receipts: what an erasure did, as a value that can be kept, sent and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.messages import canonical_json

__all__ = ["Receipt", "Remaining", "digest_of"]

_VERSION = 1
_LATER = frozenset({"summaries", "retold"})
"""What receipts of before do not say."""

_LISTS = ("sessions", "dialogs", "blobs", "sources", "beyond", "pending", *sorted(_LATER))


class Remaining(NamedTuple):
    """A tombstone.

    Attributes:
        dialog: The dialog.
        seq: The entry's number.
        kind: The entry's kind, which it keeps.
        digest: The digest of the tombstone's bytes, as its header has it, hexadecimal.
        part: Whether only what was made of erased entries was taken out of it.
    """

    dialog: str
    seq: int
    kind: str
    digest: str
    part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure did. It holds ids, counts and digests, and no word of what was erased.

    Attributes:
        id: Its own id; tombstones and `Erased` errors name it.
        at: When it was done, in seconds since 1970-01-01 UTC.
        asked: What was asked for; a subject only as a salted digest.
        sessions: The sessions that were removed.
        dialogs: The dialogs that were removed.
        tombstones: What remains in place of entries.
        blobs: The payloads that were removed: SHA-256, hexadecimal.
        kept_blobs: How many payloads were kept because something else names them.
        sources: The foreign conversations that were forgotten, by the SHA-256 of their identity.
        entries: How many entries were removed or overwritten.
        files: How many files that the store had written were removed.
        remaining: SHA-256 over the tombstones, hexadecimal.
        beyond: What may keep old bytes and is out of the store's reach, in words.
        summaries: The entries whose summary or record went with what was erased, by handle; they are among the tombstones.
        retold: Those of them whose goal, constraints and other facts were gathered again, by code, from the entries that stand.
        pending: What is still to be done before the bytes are gone, in words; empty when all is done.
    """

    id: str
    at: float
    asked: Mapping[str, Any]
    sessions: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    tombstones: tuple[Remaining, ...] = ()
    blobs: tuple[str, ...] = ()
    kept_blobs: int = 0
    sources: tuple[str, ...] = ()
    entries: int = 0
    files: int = 0
    remaining: str = ""
    beyond: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    retold: tuple[str, ...] = ()
    pending: tuple[str, ...] = field(default=(), compare=False)

    @property
    def complete(self) -> bool:
        """Whether nothing is pending: the bytes are gone from where the store can reach."""
        return not self.pending

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values."""
        return {
            "version": _VERSION,
            **asdict(self),
            "asked": dict(self.asked),
            "tombstones": [list(one) for one in self.tombstones],
        }

    def to_json(self) -> str:
        """Give it as one line of canonical JSON."""
        return canonical_json(self.to_dict()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Receipt:
        """Read what `to_json` gave.

        Raises:
            InvalidInput: It is no receipt, one of a later version, or one whose tombstones were changed.
        """
        try:
            told = json.loads(text)
            if told["version"] != _VERSION:
                raise InvalidInput(
                    f"This receipt has version {told['version']}; this palaver reads version {_VERSION}."
                )
            known = {one.name: told.get(one.name, ()) if one.name in _LATER else told[one.name] for one in fields(cls)}
            lists = {name: tuple(known[name]) for name in _LISTS}
            tombstones = tuple(Remaining(*one) for one in known["tombstones"])
            made = cls(**{**known, **lists, "tombstones": tombstones})
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"This is no receipt of an erasure: {error!r}.") from error
        if made.remaining != digest_of(made.tombstones):
            raise InvalidInput(f"Receipt {made.id} was changed: its digest is not that of its tombstones.")
        return made

    def with_pending(self, pending: Iterable[str]) -> Receipt:
        """Give the same receipt with other work pending."""
        return replace(self, pending=tuple(pending))


def digest_of(tombstones: Iterable[Remaining]) -> str:
    """Give the digest over tombstones that a receipt holds."""
    return sha256(canonical_json([list(one) for one in tombstones])).hexdigest()
