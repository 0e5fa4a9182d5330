"""Tests of memory use the stores and dialogs of the tests of sessions."""

from tests.session.conftest import dialog, every_store, five, store

__all__ = ["dialog", "every_store", "five", "store"]
