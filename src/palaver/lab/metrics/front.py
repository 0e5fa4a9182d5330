"""The front: which of several policies no other one beats, by their bills and what they keep.

Source: Pareto dominance (Börzsönyi, Kossmann, Stocker, "The Skyline Operator", ICDE 2001): a point is dominated by one that is at least as good in
every coordinate, and better in one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

__all__ = ["Worth", "beats", "front"]

_Name = TypeVar("_Name", bound=Hashable)


class Worth(NamedTuple):
    """What a policy costs, and what it keeps.

    Attributes:
        bill: The bill, recalls charged; the lower the better.
        recall: What later calls refer to and the view holds, as a share or a count; the higher the better.
    """

    bill: float
    recall: float


def beats(one: Worth, other: Worth) -> bool:
    """Return whether one is at least as good as another in both, and better in one: for the same recall, the cheaper one wins."""
    return one.bill <= other.bill and one.recall >= other.recall and one != other


def front(points: Mapping[_Name, Worth]) -> frozenset[_Name]:
    """Return the names of the points that no other one beats; of points that are equal in both, all or none."""
    return frozenset(name for name, point in points.items() if not any(beats(one, point) for one in points.values()))
