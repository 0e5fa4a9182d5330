"""The store over an SQL database: what SQLite and PostgreSQL have in common. Each gives its connections, its schema, and a few statements."""

from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.store import SqlStore

__all__ = ["Database", "Row", "Rows", "SqlStore"]
