"""Addresses of stores: what libpq knows of a server and a database, and the schema in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from palaver.errors import InvalidInput

SCHEMA = "palaver"
"""The schema of a store whose address names none."""

_SCHEMES = {"postgres", "postgresql"}
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}\Z")  # PostgreSQL keeps pg_ for itself, and 63 bytes of a name


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store lies.

    Attributes:
        url: As `open_store` takes it, with the password if one was given.
        conninfo: What libpq gets.
        schema: The schema.
        place: For people: without a password.
    """

    url: str
    conninfo: str
    schema: str
    place: str


def _why(url: str, error: Exception) -> str:
    """Say what is wrong with an address, unless that could show a password."""
    return "it cannot be read" if "@" in url else str(error)


def address(url: str) -> Address:
    """Read an address: `postgresql://user@host:port/database?schema=name`, with every other parameter that libpq knows.

    Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS

    Raises:
        InvalidInput: It is not such an address, or its schema is not a plain name.
    """
    try:
        parts = urlsplit(url)
        asked = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        conninfo = parts._replace(
            query=urlencode([(key, value) for key, value in asked if key != "schema"], safe="/", quote_via=quote)
        ).geturl()
        known = conninfo_to_dict(conninfo)
    except (ValueError, ProgrammingError) as error:
        raise InvalidInput(f"This is not the address of a PostgreSQL database: {_why(url, error)}.") from None
    schema = dict(asked).get("schema", SCHEMA)
    if parts.scheme not in _SCHEMES or _SCHEMA_NAME.match(schema) is None:
        raise InvalidInput(
            f"{schema!r} cannot be the schema of a store.", hint="Give letters, digits and underscores, lower case."
        )
    where = known.get("host") or known.get("hostaddr") or "the local socket"
    place = (
        f"PostgreSQL database {known.get('dbname') or known.get('user') or 'of this user'} at {where}, schema {schema}"
    )
    joint = "&" if urlsplit(conninfo).query else "?"
    return Address(f"{conninfo}{joint}schema={schema}", conninfo, schema, place)
