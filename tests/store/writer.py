"""A process that writes into a store: started by the tests, told by lines on its standard input, answering on its standard output.

Usage: writer.py STORE DIALOG COMMAND [ARGUMENT]

  forever   append one entry after the other and say the number of each when it was acknowledged
  once      say the turn head, wait for a line, append after it and say how that ended
  begin     make a session and a dialog and append entries; wait for a line first, so that several begin at once
  compete   wait for a line, then append ARGUMENT entries to a dialog that others write, too, reloading at each conflict; say the number of each
            entry that was acknowledged, and in the end how often another was first
  idle      open, read, wait for a line, and go
"""

import os
import sys

from palaver.errors import Conflict
from palaver.ids import DialogId, new_dialog_id, new_session_id
from palaver.log import Draft, Node
from palaver.store import SessionRecord, Store, open_store


def words(body: bytes) -> Draft:
    """A message of a user."""
    return Draft("message", "user", 1, (), (), "", 1.0, body)


def say(text: object) -> None:
    """Answer, now."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def forever(store: Store, dialog: DialogId) -> None:
    """Append until killed; each body is large enough to spill over pages."""
    head = store.last(dialog).turn_head
    while True:
        head = store.append(dialog, [words(b"%d " % (head + 1) * 700)], head)[0].turn_head
        say(head)


def once(store: Store, dialog: DialogId) -> None:
    """Append once, after the head as it was before the line came."""
    head = store.last(dialog).turn_head
    say(head)
    sys.stdin.readline()
    try:
        say(f"wrote {store.append(dialog, [words(b'child')], head)[0].seq}")
    except Conflict as conflict:
        say(f"conflict {conflict.expected} {conflict.actual}")


def compete(store: Store, dialog: DialogId, count: int) -> None:
    """Append among others; the body of each entry names this process and counts."""
    conflicts = 0
    head = store.last(dialog).turn_head
    for number in range(count):
        draft = words(b"%d:%d" % (os.getpid(), number))
        while True:
            try:
                (header,) = store.append(dialog, [draft], head)
            except Conflict as conflict:
                conflicts += 1
                head = conflict.actual
                continue
            break
        head = header.turn_head
        say(header.seq)
    say(f"conflicts {conflicts}")


def main() -> None:
    """Do as told."""
    path, name, command = sys.argv[1:4]
    if command in {"begin", "compete"}:
        say("ready")
        sys.stdin.readline()
    store = open_store(path)
    if command == "begin":
        session, dialog = new_session_id(), new_dialog_id()
        store.create_session(SessionRecord(session_id=session))
        store.create_dialog(Node(dialog_id=dialog, session_id=session))
        store.append(dialog, [words(b"%d" % number) for number in range(20)], -1)
        say(dialog)
    elif command == "compete":
        compete(store, DialogId(name), int(sys.argv[4]))
    elif command == "forever":
        forever(store, DialogId(name))
    elif command == "once":
        once(store, DialogId(name))
    else:
        say(store.last(DialogId(name)).seq)
        sys.stdin.readline()
    store.close()


if __name__ == "__main__":
    main()
