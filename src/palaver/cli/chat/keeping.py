"""/pin and /constraints: what stays whatever leaves, listed and changed by entries of the log."""

from __future__ import annotations

from palaver.cli.chat.screen import Screen
from palaver.cli.chat.talk import Talk
from palaver.cli.compacting import sentence, stated
from palaver.cli.pinning import gist, pin_in, pinned_in
from palaver.errors import InvalidInput

__all__ = ["constraints", "pin"]

_NEWEST = 8
"""Messages that are shown with their handles, so that one can be pinned."""


def pin(talk: Talk, screen: Screen, words: str) -> None:
    """Pin a message, or no longer; without a handle, list what is pinned and what can be.

    Raises:
        InvalidHandle: It is no handle, or not spelt like one.
        InvalidInput: The branch does not hold it, it is no message, or not pinned.
        UnknownHandle: The session has no such entry.
    """
    dialog = talk.dialog.reload()
    undo = [word for word in words.split() if word == "--undo"]
    match [word for word in words.split() if word != "--undo"]:
        case [handle]:
            place = pin_in(dialog, handle, undo=bool(undo))
            screen.note(
                f"{place} is pinned no longer." if undo else f"{place} is pinned; /pin {place} --undo lets it go."
            )
        case [] if not undo:
            pinned = [one.line for one in pinned_in(dialog)]
            screen.show_lines(pinned or ["Nothing is pinned. The newest messages, with their handles:"])
            if not pinned:
                many = len(dialog.messages)
                newest = (dialog.messages.handle(index) for index in range(max(0, many - _NEWEST), many))
                screen.show_lines(f"{place}  {gist(dialog, place)}" for place in newest)
        case _:
            raise InvalidInput("/pin takes one handle, and --undo behind it.", hint="/pin alone lists what is pinned.")


def constraints(talk: Talk, screen: Screen, words: str) -> None:
    """List what the user said must or must not be; or put a sentence on the list, or take one off it.

    Raises:
        InvalidInput: The words are none of that, or the sentence is empty, too long, or on the list.
        NotFound: The list has no such sentence.
    """
    dialog = talk.dialog.reload()
    what, _, text = words.partition(" ")
    match what, text.strip():
        case "", _:
            pass
        case "add", said if said:
            dialog.constraints.add(said)
        case "remove", said if said:
            dialog.constraints.remove(sentence(said, dialog.constraints.texts))
        case _:
            raise InvalidInput(
                "/constraints takes nothing, `add TEXT`, or `remove N`.",
                hint="/constraints alone lists them, numbered.",
            )
    lines = list(stated(dialog))
    screen.show_lines(lines or ["You said nothing that must or must not be."])
