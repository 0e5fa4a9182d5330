"""The durable store in a PostgreSQL database. It needs the extra `postgres`."""

from palaver.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
