"""What tests of sessions share: every store, and dialogs with a few messages."""

import pytest

from palaver.session import Dialog
from palaver.store import MemoryStore, Store
from tests.stores import KINDS, empty_store

every_store = pytest.fixture(empty_store, params=KINDS, name="every_store")
"""Each store in turn, for what depends on how a store writes; the store laws hold for all of them."""


@pytest.fixture
def store() -> Store:
    """Return an empty store."""
    return MemoryStore()


@pytest.fixture
def dialog(store: Store) -> Dialog:
    """Return an empty dialog."""
    return Dialog(owner="coder", session_name="demo", store=store)


@pytest.fixture
def five(dialog: Dialog) -> Dialog:
    """Return a dialog of five messages, m0 to m4, the first of them the system's."""
    dialog.put_text("m0", role="system")
    for number in range(1, 5):
        dialog.put_text(f"m{number}")
    return dialog
