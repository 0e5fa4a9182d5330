"""What tests of sessions share: every store, and a way to say many things shortly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.session import Dialog
from palaver.store import Durability, MemoryStore, SqliteStore, Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store, each kind once."""
    kind: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "s.db", Durability.NORMAL)
    yield kind
    kind.close()


@pytest.fixture
def dialog(store: Store) -> Dialog:
    """Give an empty dialog."""
    return Dialog(owner="coder", session_name="demo", store=store)


@pytest.fixture
def five(dialog: Dialog) -> Dialog:
    """Give a dialog of five messages, m0 to m4, the first of them the system's."""
    dialog.put_text("m0", role="system")
    for number in range(1, 5):
        dialog.put_text(f"m{number}")
    return dialog
