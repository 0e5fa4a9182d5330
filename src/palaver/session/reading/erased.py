"""What was erased meanwhile: whoever writes what he made of entries that he read before finds out whether their words are still to be had.

An erasure says itself in every dialog that holds what it took words out of, by an entry (`palaver.log.is_note`) in the same transaction. So whoever
knows the number of the newest entry that he looked at finds out by the headers behind it; and who asks inside a block of the store, and writes in
it, is not overtaken, for no erasure takes place meanwhile (`Store.together`).
"""

from __future__ import annotations

from palaver.errors import Conflict
from palaver.ids import DialogId
from palaver.log import Handle, Header, Reader, entry_at, is_note

__all__ = ["erased_since", "require_standing", "require_unerased", "tells_of_erasure"]


def erased_since(reader: Reader, dialog_id: DialogId, at: int) -> int | None:
    """Give the number of the first entry behind `at` by which a dialog was told that something it holds was erased; None where it was not.

    Reads the headers of what the dialog got since, and the context edits among it.

    Args:
        reader: The log as it is now.
        dialog_id: The dialog.
        at: The number of the last own entry that was taken into account, -1 for none.
    """
    return next(
        (one.seq for one in reader.headers(dialog_id, at + 1) if tells_of_erasure(reader, dialog_id, one)), None
    )


def tells_of_erasure(reader: Reader, dialog_id: DialogId, header: Header) -> bool:
    """Tell whether an own entry of a dialog says that something it holds was erased; its body is read only where it may."""
    return header.kind == "context_edit" and is_note(entry_at(reader, Handle(dialog_id, header.seq)))


def require_unerased(reader: Reader, dialog_id: DialogId, at: int, what: str, again: str) -> None:
    """Refuse what was made of a dialog of which something was erased since: it may bring the words back.

    Args:
        reader: The log as it is now.
        dialog_id: The dialog.
        at: The number of the last own entry that was taken into account, -1 for none.
        what: What was made of it, as the subject of a clause.
        again: What is to be done, as an order.

    Raises:
        Conflict: Something was erased.
    """
    told = erased_since(reader, dialog_id, at)
    if told is not None:
        raise Conflict(
            dialog_id,
            at,
            told,
            why=f"Something that dialog {dialog_id} holds was erased after {what} was made of it, and {what} may repeat it. Nothing was written.",
            hint=f"Reload the dialog. {again}",
        )


def require_standing(reader: Reader, dialog_id: DialogId, at: int, place: Handle) -> None:
    """Refuse words about an entry that was erased after a dialog was looked at: whoever says them may be saying what it said.

    Args:
        reader: The log as it is now.
        dialog_id: The dialog.
        at: The number of its last own entry that is known, -1 for none.
        place: The entry.

    Raises:
        Conflict: It was erased.
    """
    told = erased_since(reader, dialog_id, at)
    if told is not None and entry_at(reader, place).erased is not None:
        raise Conflict(
            dialog_id,
            at,
            told,
            why=f"Entry {place} was erased meanwhile. Nothing was written.",
            hint="Reload the dialog, and look at what stands there now.",
        )
