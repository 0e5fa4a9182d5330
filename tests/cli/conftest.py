"""What the tests of the command line get."""

from pathlib import Path

import pytest

from palaver import Session, SqliteStore
from tests.cli.chats import Chats
from tests.cli.commands import Palaver, talk


@pytest.fixture
def palaver(tmp_path: Path) -> Palaver:
    """Give the command line over a store that is not there yet."""
    return Palaver(tmp_path)


@pytest.fixture
def stocked(palaver: Palaver) -> Palaver:
    """Give the command line over a store that holds the session `talk`."""
    palaver.imported(talk())
    return palaver


@pytest.fixture
def long(palaver: Palaver) -> Palaver:
    """Return the command line over a store with one long session."""
    with SqliteStore(palaver.store) as store:
        dialog = Session.create(store, "long", owner="a").root
        dialog.put_text("Make it fast. You must never push to main.")
        for turn in range(30):
            dialog.put_text(f"answer-{turn}- " + "word " * 120, role="assistant")
            dialog.put_text(f"go {turn}")
    return palaver


@pytest.fixture
def chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chats:
    """Return chats over a store that is not there yet."""
    monkeypatch.chdir(tmp_path)
    return Chats(tmp_path)
