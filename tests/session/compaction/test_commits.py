"""A commit's check and its write are one step: what another writer adds in between is seen before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from palaver import Conflict, Dialog, Session
from palaver.errors import InvalidInput
from palaver.store import MemoryStore
from palaver.view import Drop, Plan


class Raced(MemoryStore):
    """A store in which another writer is a moment faster: it acts just before a step of ours begins."""

    def __init__(self) -> None:
        super().__init__()
        self.other: Callable[[], object] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let the other one act, once."""
        other, self.other = self.other, None
        if other is not None:
            other()
        with super().together():
            yield


@pytest.fixture
def raced() -> Raced:
    """Give the store."""
    return Raced()


def _two(raced: Raced) -> tuple[Dialog, Dialog]:
    """Give two objects for one dialog with a few words in it, as two processes have them."""
    session = Session.create(raced, "raced")
    for number in range(6):
        session.root.put_text(f"word {number} " * 50)
    return session.root, Session.open("raced", raced).root


_FIRST = Plan(policy="mine", drops=(Drop(index=0),))


def test_a_pin_between_check_and_write_is_seen(raced: Raced) -> None:
    """What the view leaves out and someone pins a moment before it is written: the commit is refused, and nothing was written."""
    mine, theirs = _two(raced)
    raced.other = lambda: theirs.pin(theirs.messages.handle(0))

    with pytest.raises(InvalidInput, match="every view must hold"):
        mine.commit(_FIRST, model="gpt-4o")

    assert raced.last(mine.dialog_id).kind == "pin"
    assert len(mine.reload().view().exchanges) == 6


def test_a_label_between_check_and_write_changes_nothing(raced: Raced) -> None:
    """What does not touch the view does not hinder the commit, which takes the number after it."""
    mine, theirs = _two(raced)
    raced.other = lambda: theirs.label(theirs.messages.handle(0), "first")

    place = mine.commit(_FIRST, model="gpt-4o")

    assert place.seq == 7
    assert len(mine.view().exchanges) == 5


@pytest.mark.parametrize("act", ["commit", "undo"])
def test_of_two_commits_the_second_is_told(raced: Raced, act: str) -> None:
    """A compaction written a moment before another, or before an undo, is a Conflict for the other, and stands."""
    mine, theirs = _two(raced)
    mine.commit(Plan(policy="mine", drops=(Drop(index=1),)), model="gpt-4o")
    theirs.reload()
    raced.other = lambda: theirs.commit(_FIRST, model="gpt-4o")

    with pytest.raises(Conflict):
        mine.undo() if act == "undo" else mine.commit(_FIRST, model="gpt-4o")

    assert raced.last(mine.dialog_id).seq == 7
    assert len(mine.reload().view().exchanges) == 4
