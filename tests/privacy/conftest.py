"""Stores for tests of privacy: an empty one, and each kind in turn."""

from tests.session.conftest import every_store, store

__all__ = ["every_store", "store"]
