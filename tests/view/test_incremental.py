"""Incremental folds: a view after more entries reads only what is new."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from palaver.errors import StoreDamaged
from palaver.ids import DialogId
from palaver.log import (
    Compaction,
    Handle,
    Header,
    Omitted,
    Pin,
    Place,
    Run,
)
from palaver.messages import Message
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, model, result, system, user
from palaver.view import Fold, fold
from tests.sketches import sketch
from tests.view.growing import seen


class Counting(MemoryStore):
    """A store that counts the headers and bodies it gives, and can be told to break after so many headers."""

    given = 0
    bodies_given = 0
    breaks_after = -1

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return headers."""
        for header in super().headers(dialog_id, start, stop, reverse=reverse):
            if self.given == self.breaks_after:
                raise StoreDamaged(f"{dialog_id}:{header.seq}", "lost")
            self.given += 1
            yield header

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Return numbers and bodies."""
        for each in super().bodies(dialog_id, start, stop):
            self.bodies_given += 1
            yield each


@pytest.fixture(name="long")
def _long() -> tuple[Log, Counting, Fold]:
    log, store = Log(), Counting()
    store.contents = log.store.contents
    log.store = store
    log.put(*(message for turn in range(25) for message in (user(f"word {turn}"), model(f"word {turn}"))))
    going = Fold(store, store.node(log.dialog))
    going.view(store.last(log.dialog))
    store.given = store.bodies_given = 0
    return log, store, going


def test_law_11_view_after_ten_more_reads_ten_headers(long: tuple[Log, Counting, Fold]) -> None:
    """However long the log is: the new headers and no body; a store that fails in the middle fails one view."""
    log, store, going = long
    for number in range(10):
        log.put(user(f"more {number}"))
        going.view(store.last(log.dialog))
    assert (store.given, store.bodies_given) == (10, 0)
    log.put(user("hi"), model("", "a"), result("a"), user("go on"))
    store.breaks_after = store.given + 2
    with pytest.raises(StoreDamaged):
        going.view(store.last(log.dialog))
    store.breaks_after = -1
    assert going.view(store.last(log.dialog)) == seen(log)


def test_law_11_showing_the_end_reads_the_end(long: tuple[Log, Counting, Fold]) -> None:
    """Loading some exchanges reads their bodies in one scan, once; a single one reads its own."""
    log, store, going = long
    view = going.view(store.last(log.dialog))
    for _ in range(2):
        view.load(range(40, 50))
    assert store.bodies_given == 10
    assert len(list(view.exchanges[0].blocks())) == 1
    assert store.bodies_given == 11
    again = going.view(log.put(user("more"))[0])
    assert [x.loaded for x in again.exchanges] == [x.loaded for x in view.exchanges] + [False]


def test_law_11_view_starts_from_the_checkpoint(long: tuple[Log, Counting, Fold]) -> None:
    """After a compaction only the headers of what it keeps are read."""
    log, store, going = long
    kept = Run(dialog=log.dialog, start=48, stop=50)
    gone = Omitted(run=Run(dialog=log.dialog, start=0, stop=48), reason="over_budget")
    log.put(Compaction(base=49, pieces=(kept,), omitted=(gone,)))
    view = going.view(store.last(log.dialog))
    assert store.given == 2
    assert sketch(view) == ["user[word 24]", "assistant[word 24]"]


# --- first views ------------------------------------------------------------------------------------------------------------


class Number(int):
    """A number of an entry that counts how often it is compared with another one."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Number.compared += 1
        return int(self) == other

    __hash__ = int.__hash__


class Numbered(Counting):
    """A store whose headers have such numbers."""

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Return headers."""
        found = super().headers(dialog_id, start, stop, reverse=reverse)
        return (header._replace(seq=Number(header.seq)) for header in found)


SHAPES: dict[str, Callable[[int], Message]] = {
    "talk": lambda at: user("q") if at % 2 == 0 else model("a"),
    "system messages": lambda _: system("s"),
    "rounds of tools": lambda at: [user("q"), model("", f"c{at}"), result(f"c{at - 1}"), model("a")][at % 4],
    "results alone": lambda at: result(f"c{at}"),
    "fragments": lambda _: model("a", response="r"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_law_11_first_view_grows_with_the_headers(shape: str) -> None:
    """Eight times as many short entries take eight times as many calls and comparisons, and each header is read once."""

    def work(count: int) -> int:
        log, store = Log(), Numbered()
        store.contents = log.store.contents
        log.put(*map(SHAPES[shape], range(count)))
        done, Number.compared = 0, 0

        def count_call(_frame: object, _event: str, _of: object) -> None:
            nonlocal done
            done += 1

        before = sys.getprofile()
        sys.setprofile(count_call)
        try:
            fold(store, log.dialog)
        finally:
            sys.setprofile(before)
        assert store.given <= count + 2
        return done + Number.compared

    assert work(1_600) < 10 * work(200)


def test_pin_of_an_old_exchange_changes_later_views_alone(long: tuple[Log, Counting, Fold]) -> None:
    """What a view must show is known from the columns of the views before; those keep their own pins."""
    log, store, going = long
    before = going.view(store.last(log.dialog))
    target = Place.of(Handle(log.dialog, 2))
    views = [before]
    for pinned in (True, False):
        log.put(Pin(target=target, pinned=pinned))
        views.append(going.view(store.last(log.dialog)))
        assert views[-1].protected() == seen(log).protected()
    log.put(Pin(target=target), user("more"))
    assert going.view(store.last(log.dialog)).protected() == {2, 50}
    assert [view.protected() for view in views] == [{48}, {2, 48}, {48}]
