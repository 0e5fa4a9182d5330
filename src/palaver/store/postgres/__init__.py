"""The store in a PostgreSQL database, through psycopg 3: the extra `postgres`. Whoever does not name such a store does not load it."""

from palaver.store.postgres.store import STATEMENT_SECONDS, WAIT_SECONDS, PostgresStore

__all__ = ["STATEMENT_SECONDS", "WAIT_SECONDS", "PostgresStore"]
