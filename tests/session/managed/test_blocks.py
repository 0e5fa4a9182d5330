"""A manager of sessions and blocks: where the leaf was and what was named before is so again, when a block took back what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from palaver import Conflict, Message, Session, SessionManager, Store
from tests.stores import KINDS, empty_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind."""
    yield from empty_store(request, tmp_path)


def said(manager: SessionManager, text: str) -> str:
    """Append a message."""
    return manager.append_message(Message(role="user", content=text))


def words(manager: SessionManager) -> list[str]:
    """Give what stands before the leaf."""
    return [message.text_content() for message in manager.build_session_context().messages]


def test_a_label_that_was_taken_back_names_nothing(store: Store) -> None:
    """The name before stands, here and in what is made of it; one that a block leaves is known."""
    manager = SessionManager.create("/w", store)
    place = said(manager, "one")
    manager.append_label(place, "first")
    with suppress(ZeroDivisionError), store.together():
        manager.append_label(place, "TAKEN")
        assert manager.get_label(place) == "TAKEN"
        raise ZeroDivisionError
    assert manager.get_label(place) == "first"
    copy = manager.create_branched_session(place)
    assert set(copy.labels.values()) == {"first"}
    with store.together():
        manager.append_label(place, "second")
    assert manager.get_label(place) == "second"


@pytest.mark.parametrize("raises", [False, True])
def test_a_leaf_whose_branch_was_taken_back_is_where_it_was(store: Store, *, raises: bool) -> None:
    """The manager goes on from the place to which it was moved, whether or not the block in which it went on there left anything."""
    manager = SessionManager.create("/w", store)
    first = said(manager, "one")
    said(manager, "two")
    with suppress(ZeroDivisionError), store.together():
        manager.branch(first)
        said(manager, "three")
        manager.branch(first)
        said(manager, "four")
        assert words(manager) == ["one", "four"]
        if raises:
            raise ZeroDivisionError
    assert words(manager) == (["one"] if raises else ["one", "four"])
    said(manager, "five")
    assert words(manager.reload()) == (["one", "five"] if raises else ["one", "four", "five"])


@pytest.mark.parametrize("back", [0, 1, 2], ids=["the first", "a middle one", "the last"])
@pytest.mark.parametrize("raises", [False, True])
def test_a_summary_that_was_taken_back_takes_the_move_with_it(store: Store, *, back: int, raises: bool) -> None:
    """Moving and telling what happened is one write: without the summary the leaf stands where it stood, and appends go on there."""
    manager = SessionManager.create("/w", store)
    places = [said(manager, text) for text in ("one", "two", "three")]
    with suppress(ZeroDivisionError), store.together():
        manager.branch_with_summary("What happened there", places[back])
        said(manager, "four")
        if raises:
            raise ZeroDivisionError
    kept = ["one", "two", "three"]
    if raises:
        assert (manager.leaf_id, words(manager)) == (places[2], kept)
    said(manager, "five")
    seen = words(manager.reload())
    assert seen[-1] == "five"
    if raises:
        assert seen == [*kept, "five"]
    else:
        assert (seen[: back + 1], "What happened there" in seen[back + 1], seen[back + 2]) == (
            kept[: back + 1],
            True,
            "four",
        )


def test_a_summary_that_is_not_written_moves_nothing(store: Store) -> None:
    """What it may repeat was erased meanwhile: the leaf stands where it stood, outside of blocks as well."""
    manager = SessionManager.create("/w", store)
    first, secret = said(manager, "one"), said(manager, "two")
    said(manager, "three")
    Session.open(manager.session_id, store).erase(entries=[secret])
    with pytest.raises(Conflict):
        manager.branch_with_summary("two", first)
    assert (words(manager)[0], words(manager)[-1]) == ("one", "three")
    manager.branch_with_summary("nothing", first)
    assert (words(manager)[0], "nothing" in words(manager)[1]) == ("one", True)


@pytest.mark.parametrize("written", [False, True], ids=["nothing since", "another entry has its number"])
def test_a_leaf_that_is_not_there_any_more_is_dropped(store: Store, *, written: bool) -> None:
    """It was moved to an entry that the block took back: it stands where it stood before, also where another entry has that number by now."""
    manager = SessionManager.create("/w", store)
    said(manager, "one")
    said(manager, "two")
    with suppress(ZeroDivisionError), store.together():
        taken = said(manager, "TAKEN")
        said(manager, "TAKEN, too")
        manager.branch(taken)
        assert words(manager) == ["one", "two", "TAKEN"]
        raise ZeroDivisionError
    others: list[str] = []
    if written:
        other = SessionManager.open(manager.session_id, store)
        assert said(other, "another writer's") == taken
        said(other, "and more")
        manager.reload()
        others = ["another writer's", "and more"]
    assert words(manager) == ["one", "two", *others]
    said(manager, "three")
    assert words(manager.reload()) == ["one", "two", *others, "three"]


@pytest.mark.parametrize("raises", [False, True])
def test_behind_an_inner_block_that_raised_everything_is_read_and_written(store: Store, *, raises: bool) -> None:
    """The outer block goes on where the leaf stood before the inner one, whatever becomes of itself; a move by hand stays, as always."""
    manager = SessionManager.create("/w", store)
    first, last = said(manager, "one"), said(manager, "two")
    with suppress(ZeroDivisionError), store.together():
        manager.branch(first)
        said(manager, "three")
        with suppress(KeyError), store.together():
            manager.branch_with_summary("inside", last)
            inner = said(manager, "four")
            manager.branch(inner)
            raise KeyError
        assert words(manager) == ["one", "three"]
        assert [entry.id for entry in manager.get_branch()][-1] == manager.leaf_id
        said(manager, "five")
        assert words(manager) == ["one", "three", "five"]
        if raises:
            raise ZeroDivisionError
    assert words(manager) == (["one"] if raises else ["one", "three", "five"])
    said(manager, "six")
    assert words(manager.reload()) == (["one", "six"] if raises else ["one", "three", "five", "six"])


def test_what_one_block_left_another_does_not_take_back(store: Store) -> None:
    """Where the leaf stood is noted for the blocks that are open, not for those that ended well, whether or not anybody looked in between."""
    manager = SessionManager.create("/w", store)
    first = said(manager, "one")
    said(manager, "two")
    with store.together():
        manager.branch_with_summary("left", first)
        said(manager, "three")
    with suppress(ZeroDivisionError), store.together():
        manager.branch_with_summary("TAKEN", first)
        raise ZeroDivisionError
    assert (words(manager)[0], words(manager)[-1], len(words(manager))) == ("one", "three", 3)
    with suppress(ZeroDivisionError), store.together():
        manager.reset_leaf()
        said(manager, "TAKEN")
        raise ZeroDivisionError
    assert words(manager) == []
