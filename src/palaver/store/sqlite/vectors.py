"""Vectors in SQLite's extension sqlite-vec, in memory: a faster look at many of them. It is an extra, and nothing depends on it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from importlib import import_module

import apsw

__all__ = ["near"]

_MOST = 4_096
"""Rows that one question of sqlite-vec gives at most."""


def near(vectors: Sequence[array[float]], wanted: array[float], limit: int) -> list[int] | None:
    """Give the indexes of the nearest vectors in no order, by cosine; None where the extension cannot be used.

    Args:
        vectors: Vectors of one length, single precision.
        wanted: What they are compared with.
        limit: How many to give.
    """
    if limit > _MOST:
        return None
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)  # noqa: FBT003 - apsw's signature
        connection.load_extension(import_module("sqlite_vec").loadable_path())
        connection.enable_load_extension(False)  # noqa: FBT003 - the same
        connection.execute(f"CREATE VIRTUAL TABLE near USING vec0(v float[{len(wanted)}] distance_metric=cosine)")
        with connection:
            connection.executemany(
                "INSERT INTO near(rowid, v) VALUES (?, ?)",
                ((index + 1, vector.tobytes()) for index, vector in enumerate(vectors)),
            )
        asked = "SELECT rowid FROM near WHERE v MATCH ? AND k = ?"
        return [row[0] - 1 for row in connection.execute(asked, (wanted.tobytes(), limit))]
    except (apsw.Error, ImportError, AttributeError):  # another machine's build, or an SQLite that loads none
        return None
    finally:
        connection.close()
