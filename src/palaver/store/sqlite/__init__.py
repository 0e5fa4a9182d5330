"""The durable store in one SQLite file."""

from palaver.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
