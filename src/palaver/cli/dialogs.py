"""The dialog that a command is about."""

from __future__ import annotations

from palaver.ids import DialogId
from palaver.session import Session

__all__ = ["dialog_of"]


def dialog_of(session: Session, reference: str | None) -> DialogId:
    """Give the dialog that was named, or the one to go on with."""
    return session.root.dialog_id if reference is None else session.dialog(reference).dialog_id
