"""What is to be erased, as it was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import new_session_id
from palaver.log import Handle

__all__ = ["Scope", "scope_of", "subject_digest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is to be erased: exactly one of the first four.

    Attributes:
        session: A session, by its id.
        dialog: A dialog, by its id or the first 6 or more digits of it.
        subject: All sessions whose data it is, those in the trash, too.
        entries: Single entries.
        children: With a dialog, all that grew from it as well.
        tombstones: With a dialog that others grew from: leave tombstones for them in place of its entries.
    """

    session: str = ""
    dialog: str = ""
    subject: str = ""
    entries: tuple[Handle, ...] = ()
    children: bool = False
    tombstones: bool = False

    @property
    def what(self) -> str:
        """`session`, `dialog`, `subject` or `entries`."""
        return next(name for name in ("session", "dialog", "subject", "entries") if getattr(self, name))

    def told(self) -> Mapping[str, Any]:
        """Give it as a receipt tells it: a subject only by a digest with a salt, for a receipt is kept when the subject is gone."""
        if self.subject:
            salt = new_session_id()
            return {"what": "subject", "salt": salt, "digest": subject_digest(salt, self.subject)}
        names = [f"{one.dialog}:{one.seq}" for one in self.entries] or [self.session or self.dialog]
        extra = {name: True for name in ("children", "tombstones") if getattr(self, name)}
        return {"what": self.what, "names": names, **extra}


def subject_digest(salt: str, subject: str) -> str:
    """Give what a receipt holds of a subject: the SHA-256 of a salt and the subject, hexadecimal."""
    return sha256(f"{salt}:{subject}".encode("utf-8", "surrogatepass")).hexdigest()


def scope_of(
    session: str | None,
    dialog: str | None,
    subject: str | None,
    entries: Iterable[Handle | str],
    *,
    children: bool,
    tombstones: bool,
) -> Scope:
    """Read what was asked for.

    Raises:
        InvalidInput: None, or more than one, of session, dialog, subject and entries was named, or an option does not go with it.
        InvalidHandle: An entry is not spelt like a handle.
    """
    handles = tuple(Handle.parse(one) if isinstance(one, str) else one for one in entries)
    named = [
        name
        for name, given in (("session", session), ("dialog", dialog), ("subject", subject), ("entries", handles))
        if given
    ]
    if len(named) != 1:
        found = ", ".join(named) or "none"
        raise InvalidInput(f"Name one of session, dialog, subject and entries to erase; found: {found}.")
    if (children or tombstones) and not dialog:
        raise InvalidInput(
            "children and tombstones say what becomes of the dialogs that grew from a dialog: name a dialog."
        )
    if children and tombstones:
        raise InvalidInput("Either the dialogs that grew from it are erased, too, or tombstones are left for them.")
    return Scope(
        session=session or "",
        dialog=dialog or "",
        subject=subject or "",
        entries=tuple(dict.fromkeys(one._replace(block=None) for one in handles)),
        children=children,
        tombstones=tombstones,
    )
