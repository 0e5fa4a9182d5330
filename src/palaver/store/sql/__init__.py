"""The store over an SQL database: what SQLite and PostgreSQL have in common. Each gives its connections, its schema, and a few statements."""
