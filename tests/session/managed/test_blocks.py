"""A manager of sessions and blocks: where the leaf was and what was named before is so again, when a block took back what it wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from palaver import Message, SessionManager, Store
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
