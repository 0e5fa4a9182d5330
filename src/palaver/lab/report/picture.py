"""The picture of a comparison: bill against evidence, a mark for each policy, as SVG without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import product
from math import floor, log10
from typing import NamedTuple

from palaver.lab.results import GroupRow, PolicyRow, Score

_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 28.0, 44.0
"""Pixels around the area of the marks."""

_LOOK = 'role="img" font-family="system-ui, sans-serif" font-size="12" fill="currentColor"'
_RADIUS = 4.5
_ALL = 1 + 1e-9
"""Shares are at most 1."""

_LETTER, _LINE = 6.4, 13.0
"""Pixels of a letter of a name, about, and of a line."""


class PolicyMark(NamedTuple):
    """A policy in the picture.

    Attributes:
        name: Its name.
        bill: Its bill, with the interval if there is one.
        evidence: Its evidence, with the interval if there is one.
        best: Whether it is Pareto-optimal.
    """

    name: str
    bill: Score
    evidence: Score
    best: bool = False


def mark_of(
    name: str, row: PolicyRow | GroupRow, default: PolicyRow | GroupRow | None, *, best: bool
) -> PolicyMark | None:
    """Return the mark of a policy; None if nothing was measured.

    Args:
        name: How it is called in the picture.
        row: Its figures.
        default: Those of the default policy. With it, intervals are those of the difference from it, session by session, and it has none itself:
            sessions differ far more from each other than policies do.
        best: Whether it is Pareto-optimal.
    """
    bill, evidence = (_figure(score, row, default) for score in ("bill", "evidence"))
    if bill.value is None or evidence.value is None:
        return None
    return PolicyMark(name, bill, evidence, best)


def _figure(name: str, row: PolicyRow | GroupRow, default: PolicyRow | GroupRow | None) -> Score:
    score = row.scores.get(name, Score(value=None))
    base = None if default is None else default.scores[name].value
    if base is None:
        return score
    difference = row.differences.get(name)
    if difference is None or difference.low is None or difference.high is None:
        return Score(value=score.value)
    return Score(value=score.value, low=base + difference.low, high=base + difference.high)


class _Axis(NamedTuple):
    """An axis: the values at its ends, and their places in pixels."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, scores: Sequence[Score], start: float, end: float) -> _Axis:
        """Return an axis that shows all values and intervals."""
        values = [value for each in scores for value in (each.value, each.low, each.high) if value is not None]
        low, high = min(values), max(values)
        air = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
        return cls(low - air, high + air, start, end)

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield round values, four to ten of them, with their text."""
        rough = (self.high - self.low) / 5
        power = 10.0 ** floor(log10(rough))
        step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * 0.99)
        digits = max(0, -floor(log10(step)))
        first = floor(self.low / step) + 1
        for number in range(first, floor(self.high / step) + 1):
            yield number * step, f"{number * step:,.{digits}f}"


def picture(
    marks: Mapping[int, PolicyMark], *, title: str, unit: str, size: tuple[float, float] = (860.0, 480.0)
) -> str:
    """Return a picture of policies.

    Args:
        marks: The policies by number, at least one. A mark is a link to `#chosen` with its number in `data-policy`.
        title: What the picture shows.
        unit: The unit of bills.
        size: Width and height in pixels.
    """
    width, height = size
    shown = list(marks.values())
    across = _Axis.over([each.bill for each in shown], _LEFT, width - _RIGHT)
    upward = _Axis.over([each.evidence for each in shown], height - _BOTTOM, _TOP)
    places = [(across.at(each.bill.value or 0.0), upward.at(each.evidence.value or 0.0)) for each in shown]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" {_LOOK}>',
        f"<title>{escape(title)}</title>",
        f'<text x="{_LEFT:g}" y="16" font-weight="bold">{escape(title)}</text>',
        *_grid(across, upward),
        f'<text x="{(width - _RIGHT + _LEFT) / 2:g}" y="{height - 8:g}" text-anchor="middle">bill of a session in {escape(unit)}</text>',
        f'<text transform="translate(14 {height / 2:g}) rotate(-90)" text-anchor="middle">evidence in view</text>',
        *(_whiskers(mark, place, across, upward) for mark, place in zip(shown, places, strict=True)),
        *_named(shown, places, width),
        *(_mark(number, mark, place) for (number, mark), place in zip(marks.items(), places, strict=True)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: _Axis, upward: _Axis) -> Iterator[str]:
    for value, text in across.ticks():
        x = across.at(value)
        yield _line(x, upward.start, x, upward.end, 'opacity=".12"')
        yield f'<text x="{x:.1f}" y="{upward.start + 16:g}" text-anchor="middle" opacity=".7">{text}</text>'
    for value, text in ((value, text) for value, text in upward.ticks() if value < _ALL):
        y = upward.at(value)
        yield _line(across.start, y, across.end, y, 'opacity=".12"')
        yield f'<text x="{across.start - 6:g}" y="{y + 4:.1f}" text-anchor="end" opacity=".7">{text}</text>'


def _line(x: float, y: float, to_x: float, to_y: float, more: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="currentColor" {more}/>'


def _whiskers(mark: PolicyMark, place: tuple[float, float], across: _Axis, upward: _Axis) -> str:
    x, y = place
    found = ""
    if mark.bill.low is not None and mark.bill.high is not None:
        found += _line(across.at(mark.bill.low), y, across.at(mark.bill.high), y, 'opacity=".35"')
    if mark.evidence.low is not None and mark.evidence.high is not None:
        found += _line(x, upward.at(mark.evidence.low), x, upward.at(mark.evidence.high), 'opacity=".35"')
    return found


def _mark(number: int, mark: PolicyMark, place: tuple[float, float]) -> str:
    """Return a mark: full if the policy is Pareto-optimal, with its figures as a tip."""
    fill = "currentColor" if mark.best else "none"
    tip = f"{mark.name}: bill {_words(mark.bill)}, evidence {_words(mark.evidence)}"
    circle = f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{_RADIUS:g}" stroke="currentColor" stroke-width="1.5" fill="{fill}" pointer-events="all"/>'
    return f'<a href="#chosen" data-policy="{number}"><title>{escape(tip)}</title>{circle}</a>'


_WHOLE = 1_000
"""Figures from here on, such as bills in tokens, have no decimals."""


def _words(score: Score) -> str:
    value = 0.0 if score.value is None else score.value
    form = ",.3f" if abs(value) < _WHOLE else ",.0f"
    if score.low is None or score.high is None:
        return format(value, form)
    return f"{value:{form}} ({score.low:{form}} to {score.high:{form}})"


# --- names ---------------------------------------------------------------------------------------------------------------------


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


_AWAY = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7, -7, 8, -8)
"""Lines between a mark and its name, the nearest first."""


def _named(marks: Sequence[PolicyMark], places: Sequence[tuple[float, float]], width: float) -> Iterator[str]:
    """Yield the names, each at the nearest place where it covers no mark and no other name, and a line to those that are away.

    Source: greedy placement over candidates (Christensen, Marks, Shieber, "An Empirical Study of Algorithms for Point-Feature Label Placement",
    ACM Transactions on Graphics 14(3), 1995).
    """
    taken = [_Box(x - _RADIUS - 1, y - _RADIUS - 1, x + _RADIUS + 1, y + _RADIUS + 1) for x, y in places]
    for mark, (x, y) in zip(marks, places, strict=True):
        long = len(mark.name) * _LETTER
        boxes = [
            _Box(left, y + (away - 0.5) * _LINE, left + long, y + (away + 0.5) * _LINE)
            for away, left in product(_AWAY, (x + _RADIUS + 4, x - _RADIUS - 4 - long))
            if _LEFT <= left <= width - long
        ]
        box = next((each for each in boxes if not any(map(each.meets, taken))), boxes[0] if boxes else None)
        if box is None:
            continue  # wider than the picture: its tip has the name
        taken.append(box)
        middle = (box.top + box.bottom) / 2
        if abs(middle - y) > 1:
            yield _line(x, y, box.left - 1 if box.left > x else box.right + 1, middle, 'opacity=".35"')
        yield f'<text x="{box.left:.1f}" y="{middle + 4:.1f}">{escape(mark.name)}</text>'


def standalone(svg: str) -> str:
    """Return a picture for a file of its own: dark on white, on any page."""
    return svg.replace("<svg ", '<svg style="background:#fff;color:#1b1d22" ', 1)
