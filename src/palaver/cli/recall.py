"""palaver recall: bring back what a view left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import write
from palaver.errors import InvalidHandle, UnknownHandle
from palaver.log import Entry, Handle, MessageEntry
from palaver.messages import Content
from palaver.messages.said import words_of
from palaver.session import Session
from palaver.store import Store

__all__ = ["recalled", "run", "text_of", "who_of"]

_RUN = re.compile(r"(?P<first>(?P<dialog>[^:]+):\d{1,12})(?:-| to (?P=dialog):)(?P<last>\d{1,12})")
"""A run of entries, both ends included: `3f2a91c07b5e:12-40`, or as a notice in a view has it: `3f2a91c07b5e:12 to 3f2a91c07b5e:40`."""


def run(
    handle: Annotated[
        str,
        typer.Argument(
            metavar="HANDLE",
            help="As it stands in a placeholder or a report: dialog:entry, dialog:entry:block, or dialog:first-last.",
        ),
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Give back what a handle stands for, whole, from whichever session and branch it is in; of a run of entries, each one after its handle."""
    with opened(store) as source:
        if not json:
            for text in recalled(source, handle):
                write(text)
            return Exit.OK
        session, places, _ = _named(source, handle)
        for place in places:
            found = session.recall(place)
            about = {"handle": f"{place.dialog}:{str(place).partition(':')[2]}", "session": session.session_id}
            print_json(about | {"found": found.model_dump(mode="json")})
    return Exit.OK


def recalled(store: Store, handle: str) -> Iterator[str]:
    """Give for people what a handle, or a run of entries, stands for; each piece ends its line.

    Raises:
        InvalidHandle: It is neither.
        UnknownDialog: The store has no such dialog.
        UnknownHandle: The dialog has no such entry or block.
        Erased: It was there and was erased.
    """
    session, places, run = _named(store, handle)
    for place in places:
        found = session.recall(place)
        yield f"{place}  {who_of(found)}\n{text_of(found)}\n\n" if run else f"{text_of(found)}\n"


def _named(store: Store, text: str) -> tuple[Session, Sequence[Handle], bool]:
    """Give the session and the places that a text names, and whether it names a run."""
    named, last = _parse(text)
    dialog_id = store.resolve(named.dialog)
    session = Session.open(store.node(dialog_id).session_id, store)
    if last is None:
        return session, (named._replace(dialog=dialog_id),), False
    newest = store.last(dialog_id).seq
    if last > newest:
        raise UnknownHandle(text, hint=f"The newest entry of this dialog is {newest}.")
    return session, tuple(Handle(dialog_id, seq) for seq in range(named.seq, last + 1)), True


def _parse(text: str) -> tuple[Handle, int | None]:
    """Read a handle, or a run of entries, whose last number is included; that number is None for a handle.

    Raises:
        InvalidHandle: It is neither.
    """
    found = _RUN.fullmatch(text.strip())
    if found is None:
        return Handle.parse(text), None
    first, last = Handle.parse(found["first"]), int(found["last"])
    if last < first.seq:
        raise InvalidHandle(f"{text!r} ends before it begins.")
    return first, last


def who_of(found: Entry | Content) -> str:
    """Say who said an entry, or what a block is."""
    return f"{found.message.role.value}:" if isinstance(found, MessageEntry) else f"{getattr(found, 'kind', 'block')}:"


def text_of(found: Entry | Content) -> str:
    """Give the words of an entry or a block; of what has none, all of it as JSON."""
    if isinstance(found, MessageEntry):
        return "\n\n".join(text_of(block) for block in found.message.contents)
    said = "" if isinstance(found, Entry) else words_of(found)
    return said or found.model_dump_json(indent=2)
