"""Two writers on one dialog: every entry of both is there, or the loser was told (law 5)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Conflict, Store
from palaver.log import Label, Place
from palaver.session import Dialog, Session
from palaver.store import MemoryStore


def _twice(store: Store) -> tuple[Dialog, Dialog]:
    """Open one dialog as two processes would."""
    session = Session.create(store, "shared")
    return session.root, Session.open(store, "shared").root


def _texts(dialog: Dialog) -> list[str]:
    return [message.text_content() for message in dialog.messages]


def test_an_annotation_never_makes_a_turn_fail(every_store: Store) -> None:
    """A label by one writer lets the other's next append through; an append hidden behind an own annotation does not pass unseen."""
    one, two = _twice(every_store)
    one.put_text("first")
    two.reload()
    two.marks.label(two.messages.handle(0), "start")
    one.put_text("second")
    two.marks.label(two.messages.handle(0), "begin")
    assert _texts(two) == ["first"]
    with pytest.raises(Conflict):
        two.put_text("unaware")
    assert _texts(two.reload()) == ["first", "second"]
    assert dict(two.marks.labels) == {two.messages.handle(0): "begin"}


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["append", "append", "annotate", "reload"])), max_size=30
    )
)
def test_law_05_nothing_is_lost_and_nobody_is_ignored(steps: list[tuple[int, str]]) -> None:
    """Three writers in any order: the log holds what was acknowledged, in that order; what was not made on the newest head was refused."""
    store = MemoryStore()
    session = Session.create(store, "s")
    writers = [session.root, Session.open(store, "s").root, Session.open(store, "s").root]
    said: list[str] = []
    known = [0, 0, 0]
    for number, (who, what) in enumerate(steps):
        if what == "annotate":
            label = Label(target=Place(dialog=session.root.dialog_id, seq=0), label=str(number))
            writers[who].record(label, beside=True)
        elif what == "reload":
            writers[who].reload()
            known[who] = len(said)
        elif known[who] == len(said):
            writers[who].put_text(str(number))
            said.append(str(number))
            known[who] = len(said)
        else:
            with pytest.raises(Conflict):
                writers[who].put_text(str(number))
        assert _texts(writers[who]) == said[: known[who]]
    assert _texts(session.root.reload()) == said
