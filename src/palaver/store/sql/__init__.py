"""The store over an SQL database: what SQLite and PostgreSQL have in common. Each has its own connections, schema, and a few statements."""
