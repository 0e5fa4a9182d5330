"""The nearest vectors: exact, in Python, or found by SQLite's extension where that is installed. Derived: made of what a store holds, never kept."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from importlib.util import find_spec
from operator import mul
from typing import TypeAlias

from palaver.store.sqlite.vectors import near

__all__ = ["Vector", "exact", "likeness", "nearest", "stored_vector"]

Vector: TypeAlias = "array[float]"
"""A vector of single precision and of length 1, or of zeros alone."""

_WORTH = 2_000
"""Vectors from which on the extension is worth being asked."""

_MORE = 16
"""Further vectors that it is asked for: those at the border are told apart exactly."""


def stored_vector(numbers: Sequence[float]) -> Vector:
    """Give numbers in the precision in which vectors are stored."""
    return array("f", numbers)


def likeness(one: Vector, other: Vector) -> float:
    """Give the cosine of two vectors of length 1."""
    return float(sum(map(mul, one, other)))


def exact(vectors: Sequence[Vector], wanted: Vector, limit: int) -> list[int]:
    """Find the nearest vectors by looking at each; of those that are alike, the earlier first."""
    scores = [likeness(vector, wanted) for vector in vectors]
    return sorted(range(len(vectors)), key=lambda index: (-scores[index], index))[: max(limit, 0)]


def nearest(vectors: Sequence[Vector], wanted: Vector, limit: int) -> list[int]:
    """Find the nearest vectors, with the extension's help where there are many and it is installed.

    The extension proposes, and what it proposes is compared exactly: with it and without, the result is the same.
    """
    if len(vectors) < _WORTH or find_spec("sqlite_vec") is None:
        return exact(vectors, wanted, limit)
    proposed = near(vectors, wanted, limit + _MORE)
    if proposed is None:
        return exact(vectors, wanted, limit)
    chosen = sorted(proposed)
    return [chosen[index] for index in exact([vectors[index] for index in chosen], wanted, limit)]
