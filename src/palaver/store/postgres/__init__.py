"""The durable store in a PostgreSQL database. It needs the extra `postgres`."""

from palaver.store.postgres.database import PostgresStore

__all__ = ["PostgresStore"]
