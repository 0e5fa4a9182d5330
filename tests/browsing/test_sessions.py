"""Sessions as rows: pages of a list, and the tree of dialogs."""

from __future__ import annotations

from palaver import MemoryStore, Session, TextContent, UserMessage
from palaver.browsing.places import locate
from palaver.browsing.sessions import dialogs, sessions


def test_pages_of_sessions_continue_each_other() -> None:
    """A page begins after the last session of the page before; all pages are the whole list, the newest activity first."""
    store = MemoryStore()
    for number in range(5):
        Session.create(store, f"s{number}", subject="a" if number % 2 else "b").root.put_text("Hello.")
    whole = list(sessions(store))
    assert [row["name"] for row in whole] == ["s4", "s3", "s2", "s1", "s0"]
    pages, last = [], None
    while page := list(sessions(store, limit=2, after=last)):
        pages += page
        last = page[-1]["session"]
    assert pages == whole
    assert [row["name"] for row in sessions(store, subject="a")] == ["s3", "s1"]


def test_title_is_the_name_or_the_first_message() -> None:
    """A name that somebody chose is the title; a session without one has its first message, and until then its name."""
    store = MemoryStore()
    assert [row["title"] for row in sessions(store)] == []
    unnamed = Session.create(store)
    assert [row["title"] for row in sessions(store)] == [unnamed.name]
    unnamed.root.put_text("Which tests fail?")
    Session.create(store, "chosen").root.put_text("Hello.")
    assert sorted(row["title"] for row in sessions(store)) == ["Which tests fail?", "chosen"]


def test_title_skips_empty_texts() -> None:
    """A message that begins with an empty text, as other agents record them, does not keep the sessions from being listed."""
    store = MemoryStore()
    session = Session.create(store)
    session.root.append(UserMessage(contents=(TextContent(content=""), TextContent(content="Which tests fail?"))))
    assert [row["title"] for row in sessions(store)] == ["Which tests fail?"]


def test_the_tree_follows_each_dialog_with_its_forks() -> None:
    """Rows are in the order of a drawn tree, with the entries that each dialog shares and holds itself."""
    store = MemoryStore()
    session = Session.create(store, "tree")
    root = session.root
    root.put_text("One.")
    first, second = root.fork(), root.fork()
    first.put_text("Two.")
    below = first.fork()
    rows = list(dialogs(store, session.session_id))
    assert [row["dialog"] for row in rows] == [each.dialog_id for each in (root, first, below, second)]
    assert [row["parent"] for row in rows] == [None, root.dialog_id, first.dialog_id, root.dialog_id]
    assert [(row["main"], row["entries"], row["messages"]) for row in rows] == [
        (True, 1, 1),
        (False, 1, 2),
        (False, 0, 2),
        (False, 0, 1),
    ]
    assert rows[2]["ranges"] == [(root.dialog_id, 0, 1), (first.dialog_id, 0, 1)]
    assert locate(store, below.dialog_id[:12]).dialog.dialog_id == below.dialog_id
