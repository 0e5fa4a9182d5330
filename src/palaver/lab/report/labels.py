"""Labels: where the names of points stand so that none covers another name or a point.

Greedy placement over candidate positions, the nearest free one first (the usual heuristic for point labels: Christensen, Marks, Shieber, "An Empirical
Study of Algorithms for Point-Feature Label Placement", ACM Transactions on Graphics 14(3), 1995). Points that coincide have their names one below
the other, each with a line to its point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

__all__ = ["LINE", "Label", "Point", "placed"]

LINE = 13.0
"""Pixels from one line of text of 11 pixels to the next."""

_LETTER = 6.7
"""Pixels of a letter of such a text, on average, in a wide typeface."""

_MARK = 6.0
"""Pixels from the middle of a point to its edge, and a little air."""

_ROWS = 40


class Point(NamedTuple):
    """A point with a name, in pixels from the left and from the top."""

    x: float
    y: float
    name: str


class Label(NamedTuple):
    """Where a name stands.

    Attributes:
        x: Its left end, in pixels.
        y: Its middle, in pixels from the top.
        end: The end of the line that leads to it from its point, or None where it stands beside its point.
    """

    x: float
    y: float
    end: float | None


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def placed(points: Sequence[Point], steps: Sequence[Point], width: float, height: float) -> tuple[Label, ...]:
    """Place the names of points.

    Args:
        points: The points; those that come first choose first.
        steps: The points through which a line goes in steps, from the left to the right, first across and then up; no name stands on it.
        width: The chart's width in pixels.
        height: Its height.

    Returns:
        A label for each point, in order. Where nothing is free any more, names cover each other.
    """
    taken = [_Box(one.x - _MARK, one.y - _MARK, one.x + _MARK, one.y + _MARK) for one in points]
    for one, other in pairwise(steps):
        taken.append(_Box(one.x, one.y - 1, other.x, one.y + 1))
        taken.append(_Box(other.x - 1, min(one.y, other.y), other.x + 1, max(one.y, other.y)))
    found = []
    for point in points:
        size = len(point.name) * _LETTER
        candidates = list(_candidates(point, size, width, height))
        free = (one for one in candidates if not any(_box(one, size).meets(other) for other in taken))
        label = next(free, candidates[-1])
        taken.append(_box(label, size))
        found.append(label)
    return tuple(found)


def _candidates(point: Point, size: float, width: float, height: float) -> Iterator[Label]:
    """Give positions that lie in the chart, the nearest first; one at least."""
    right, left = point.x + _MARK + 2, point.x - _MARK - 2 - size
    for row in range(_ROWS):
        for y in dict.fromkeys((point.y - row * LINE, point.y + row * LINE)):
            if LINE / 2 <= y <= height - LINE / 2 or row == 0:
                shift = LINE / 2 if row else 0.0
                for x, end in ((right + shift, right + shift - 2), (left - shift, left - shift + size + 2)):
                    if 0 <= x <= width - size:
                        yield Label(x, y, end if row else None)
    yield Label(min(max(right, 0.0), max(width - size, 0.0)), point.y, None)


def _box(label: Label, size: float) -> _Box:
    return _Box(label.x, label.y - LINE / 2 + 0.5, label.x + size, label.y + LINE / 2 - 0.5)
