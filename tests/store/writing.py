"""Processes that write into a store; what they have to say they write into a file."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from palaver.errors import Conflict
from palaver.ids import DialogId
from palaver.store import open_store
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


_DEEDS = {each.__name__: each for each in (write_new, compete)}

if __name__ == "__main__":
    serve(at_once)
