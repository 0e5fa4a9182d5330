"""palaver recall: bring back what a view left out."""

from __future__ import annotations

import re
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
        named, last = _parse(handle)
        dialog_id = source.resolve(named.dialog)
        session = Session.open(source.node(dialog_id).session_id, source)
        places = [named._replace(dialog=dialog_id)]
        if last is not None:
            newest = source.last(dialog_id).seq
            if last > newest:
                raise UnknownHandle(handle, hint=f"The newest entry of this dialog is {newest}.")
            places = [Handle(dialog_id, seq) for seq in range(named.seq, last + 1)]
        for place in places:
            found = session.recall(place)
            if json:
                print_json(
                    {
                        "handle": f"{dialog_id}:{str(place).partition(':')[2]}",
                        "session": session.session_id,
                        "found": found.model_dump(mode="json"),
                    }
                )
            else:
                write(f"{_text(found)}\n" if last is None else f"{place}  {_who(found)}\n{_text(found)}\n\n")
    return Exit.OK


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


def _who(found: Entry | Content) -> str:
    return f"{found.message.role.value}:" if isinstance(found, MessageEntry) else f"{getattr(found, 'kind', 'block')}:"


def _text(found: Entry | Content) -> str:
    if isinstance(found, MessageEntry):
        return "\n\n".join(_text(block) for block in found.message.contents)
    said = "" if isinstance(found, Entry) else words_of(found)
    return said or found.model_dump_json(indent=2)
