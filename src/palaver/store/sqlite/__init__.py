"""The store in one SQLite file, through apsw."""

from palaver.store.sqlite.store import WAIT_SECONDS, SqliteStore

__all__ = ["WAIT_SECONDS", "SqliteStore"]
