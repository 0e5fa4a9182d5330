"""Processes that write into a store; what they have to say they write into a file."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from palaver.errors import Conflict
from palaver.ids import DialogId, new_dialog_id, new_session_id
from palaver.log import Node
from palaver.store import SessionRecord, open_store
from palaver.testing.store_laws import begin
from palaver.testing.store_laws.backend import words
from tests.forking import serve


def write_new(url: str, said: str) -> None:
    """Make a session with twenty entries, maybe in a store that is just being made."""
    with closing(open_store(url)) as store:
        begun = begin(store)
        for number in range(20):
            begun.say(b"%d" % number)
        Path(said).write_text(begun.dialog)


def append(url: str, said: str, dialog: str, head: int) -> None:
    """Append one entry after a head."""
    with closing(open_store(url)) as store:
        try:
            store.append(DialogId(dialog), [words(b"child")], head)
            Path(said).write_text("wrote")
        except Conflict as told:
            Path(said).write_text(f"{told.expected} {told.actual}")


def compete(url: str, said: str, dialog: str, count: int) -> None:
    """Append entries among others, again after each conflict; say the number of each."""
    place, written = DialogId(dialog), list[int]()
    with closing(open_store(url)) as store:
        head = store.last(place).turn_head
        while len(written) < count:
            try:
                (header,) = store.append(place, [words(b"%d:%d" % (os.getpid(), len(written)))], head)
                head = header.turn_head
                written.append(header.seq)
            except Conflict as told:
                head = int(str(told.actual))
    Path(said).write_text(" ".join(map(str, [os.getpid(), *written])))


def find_or_create(url: str, said: str, name: str) -> None:
    """Look for a session by its name, and create it when it is not there."""
    with closing(open_store(url)) as store:
        with store.transaction(lock=f"session {name}"):
            found = next(store.sessions(name=name, limit=1), None)
            if found is None:
                session = new_session_id()
                root = Node(dialog_id=new_dialog_id(session), session_id=session)
                store.create_session(SessionRecord(session_id=session, name=name), root)
                found = store.session(session)
        Path(said).write_text(f"{found.session_id} {found.root}")


def at_once(what: str, files: list[str], **wanted: Any) -> None:  # noqa: ANN401 - what the deed wants
    """Let as many processes do a deed at once as there are files to say something into."""
    children = []
    for file in files:
        child = os.fork()
        if child == 0:
            _DEEDS[what](said=file, **wanted)
            os._exit(0)
        children.append(child)
    assert {os.waitpid(child, 0)[1] for child in children} == {0}


_DEEDS = {each.__name__: each for each in (write_new, append, compete, find_or_create)}

if __name__ == "__main__":
    serve(at_once)
