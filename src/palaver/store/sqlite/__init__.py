"""The durable store in one SQLite file."""

from palaver.store.sqlite.database import SqliteStore

__all__ = ["SqliteStore"]
