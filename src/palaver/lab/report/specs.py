"""The charts, as Vega-Lite specifications: plain values, drawn by the page in a browser and by `drawing` as pictures.

Source of the language: vega.github.io/vega-lite/docs (version 6). Each chart takes its data by a name of its own, so that the page can put the
data of another session there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from palaver.lab.report.labels import Point, placed
from palaver.lab.results import PARTS

__all__ = ["COLOURS", "EVIDENCE", "WORDS", "Kept", "Spec", "cache", "composition", "front", "labelled", "with_data"]

Spec = dict[str, Any]

COLOURS: Mapping[str, str] = dict(
    zip(PARTS, ("#4c5a6b", "#8d99ae", "#2a7fb8", "#6fb1a0", "#e3b23c", "#b5651d", "#c9c9c9"), strict=True)
)
"""A colour for each part of a view."""

WIDTH, HEIGHT = 780, 360
"""Pixels of the chart of cost and retention."""


class Kept(NamedTuple):
    """What counts as kept on a chart of cost and retention.

    Attributes:
        bill: The figure that goes across.
        kept: The figure that goes up.
        best: What tells that a policy is on this front.
        across: What the first one is called, before the currency.
        up: What the second one is called.
    """

    bill: str
    kept: str
    best: str
    across: str
    up: str


WORDS = Kept("bill", "frr", "best", "bill of a session", "of what later calls refer to, in view (FRR)")
EVIDENCE = Kept(
    "evidence_bill",
    "evidence",
    "best_evidence",
    "bill of a session by evidence",
    "of what later calls refer to, in view as content (evidence)",
)

_AIR = 0.12
"""What an axis is longer than its points are apart, on either side, as a share."""
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_READ, _ANEW = "read from the cache", "read anew"
_LOOK: Spec = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#eee", "domainColor": "#999", "tickColor": "#999", "labelFontSize": 11},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold", "labelAnchor": "start", "titleFontSize": 0},
    "legend": {"orient": "top", "titleFontSize": 0, "labelFontSize": 11},
}


def front(currency: str, points: Sequence[Mapping[str, Any]], by: Kept = WORDS) -> Spec:
    """Give the chart of cost and retention: what a session costs against what of it later calls find in view, a point for each policy.

    Args:
        currency: The unit of the bills.
        points: The points (`labelled` gives their labels), from which the ends of the axes follow.
        by: What counts as kept.
    """
    money = "dollars" if currency == "USD" else currency
    across, up = (_ends(points, name) for name in (by.bill, by.kept))
    place: Spec = {"x": _axis(by.bill, f"{by.across}, {money}", across), "y": _axis(by.kept, by.up, up)}
    hue: Spec = {
        "field": by.best,
        "type": "nominal",
        "scale": {"domain": [True, False], "range": ["#b5651d", "#7f8c9b"]},
        "legend": None,
    }
    ends: list[Spec] = [
        {
            "mark": {"type": "rule", "opacity": 0.22, "clip": True},
            "encoding": {
                **place,
                axis: {**place[axis], "field": f"{name}_low"},
                f"{axis}2": {"field": f"{name}_high"},
                "color": hue,
            },
        }
        for axis, name in (("x", by.bill), ("y", by.kept))
    ]
    told = ["name", "bill", "frr", "frr_recall", "evidence_bill", "evidence", "hits", "regret", "cuts"]
    text: Spec = {"x": {**place["x"], "field": "label_x"}, "y": {**place["y"], "field": "label_y"}}
    return _chart(
        "policies",
        width=WIDTH,
        height=HEIGHT,
        layer=[
            {
                "transform": [{"filter": f"datum.{by.best}"}],
                "mark": {"type": "line", "interpolate": "step-after", "color": "#b5651d", "opacity": 0.5},
                "encoding": {**place, "order": {"field": by.bill}},
            },
            *ends,
            {
                "transform": [{"filter": "isValid(datum.lead_x)"}],
                "mark": {"type": "rule", "opacity": 0.45, "strokeWidth": 0.7},
                "encoding": {**place, "x2": {"field": "lead_x"}, "y2": {"field": "label_y"}, "color": hue},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.9, "cursor": "pointer"},
                "encoding": {**place, "color": hue, "tooltip": [{"field": name} for name in told]},
            },
            {
                "mark": {"type": "text", "align": "left", "baseline": "middle", "fontSize": 11, "cursor": "pointer"},
                "encoding": {**text, "text": {"field": "label"}, "color": hue, "tooltip": [{"field": "name"}]},
            },
        ],
    )


def labelled(points: Sequence[Mapping[str, Any]], by: Kept = WORDS) -> list[dict[str, Any]]:
    """Give points with where their labels stand, in the units of the chart: `label_x`, `label_y`, and `lead_x` where a line leads to it."""
    across, up = (_ends(points, name) for name in (by.bill, by.kept))
    wide, high = (across[1] - across[0]) / WIDTH, (up[1] - up[0]) / HEIGHT
    ordered = sorted(points, key=lambda one: (not one[by.best], one[by.bill], -one[by.kept], one["label"]))
    at = [Point((one[by.bill] - across[0]) / wide, (up[1] - one[by.kept]) / high, one["label"]) for one in ordered]
    steps = [point for one, point in zip(ordered, at, strict=True) if one[by.best]]
    return [
        {
            **one,
            "label_x": across[0] + label.x * wide,
            "label_y": up[1] - label.y * high,
            "lead_x": None if label.end is None else across[0] + label.end * wide,
        }
        for one, label in zip(ordered, placed(at, steps, WIDTH, HEIGHT), strict=True)
    ]


def _ends(points: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """Give the ends of an axis: all points, and some air. Intervals are longer than that wherever sessions differ, which all do."""
    low = min((one[name] for one in points), default=0.0)
    high = max((one[name] for one in points), default=1.0)
    air = (high - low) * _AIR or abs(high) * _AIR or _AIR
    return low - air, high + air


def _axis(field: str, title: str, ends: tuple[float, float]) -> Spec:
    scale = {"domain": list(ends), "nice": False, "zero": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale}


def composition(policies: Sequence[str]) -> Spec:
    """Give the chart of what a session's requests were made of, call by call, a row for each policy, with the cuts marked.

    Args:
        policies: The policies, in the order of the rows.
    """
    ranks = " : ".join(f"datum.part == '{part}' ? {rank}" for rank, part in enumerate(PARTS))
    bars = _stacked(
        [{"fold": list(PARTS), "as": ["part", "size"]}, {"calculate": f"{ranks} : {len(PARTS)}", "as": "rank"}],
        {"field": "part", "scale": {"domain": list(PARTS), "range": [COLOURS[part] for part in PARTS]}},
        ("policy", "call", "part", "size", "tokens", "mark"),
    )
    cuts = {
        "transform": [{"filter": "datum.mark == 'cut'"}],
        "mark": {"type": "rule", "color": "#c0392b", "strokeDash": [3, 2], "strokeWidth": 1.2},
        "encoding": {
            "x": {"field": "start", "type": "quantitative"},
            "tooltip": [{"field": "policy"}, {"field": "call"}, {"field": "mark"}],
        },
    }
    return _rows("calls", policies, [bars, cuts])


def cache(policies: Sequence[str]) -> Spec:
    """Give the timeline of the provider's cache: of each request what was read from it and what anew; calls that found it cold are marked.

    Args:
        policies: The policies, in the order of the rows.
    """
    bars = _stacked(
        [
            {"fold": ["read", "written"], "as": ["kind", "size"]},
            {"calculate": f"datum.kind == 'read' ? '{_READ}' : '{_ANEW}'", "as": "how"},
            {"calculate": "datum.kind == 'read' ? 0 : 1", "as": "rank"},
        ],
        {"field": "how", "scale": {"domain": [_READ, _ANEW], "range": ["#8fc1a9", "#d1495b"]}},
        ("policy", "call", "how", "size", "gap", "warm"),
    )
    cold = {
        "transform": [{"filter": "!datum.warm && datum.call > 1"}],
        "mark": {"type": "tick", "color": "#2c3e50", "thickness": 2, "size": 8, "yOffset": 4},
        "encoding": {
            "x": {"field": "call", "type": "quantitative"},
            "y": {"datum": 0},
            "tooltip": [{"field": "call"}, {"field": "gap"}],
        },
    }
    return _rows("calls", policies, [bars, cold])


def with_data(spec: Spec, rows: list[dict[str, Any]]) -> Spec:
    """Give a chart with its data in it."""
    return {**spec, "data": {"values": rows}}


def _stacked(transform: list[Spec], hue: Spec, told: tuple[str, ...]) -> Spec:
    """Give a layer of rectangles, a column for each call, its `size`s on top of each other in the order of `rank`."""
    stack = {"stack": "size", "groupby": ["policy", "call"], "sort": [{"field": "rank"}], "as": ["low", "high"]}
    return {
        "transform": [*transform, stack, {"filter": "datum.size > 0"}],
        "mark": {"type": "rect", "cursor": "pointer"},
        "encoding": {
            "x": {
                "field": "start",
                "type": "quantitative",
                "title": "call",
                "axis": {"tickMinStep": 1, "format": "d"},
                "scale": {"zero": False, "nice": False},
            },
            "x2": {"field": "end"},
            "y": {"field": "low", "type": "quantitative", "title": "tokens", "axis": {"format": "~s", "tickCount": 4}},
            "y2": {"field": "high"},
            "color": {"type": "nominal", **hue},
            "tooltip": [{"field": name} for name in told],
        },
    }


def _rows(name: str, policies: Sequence[str], layer: list[Spec]) -> Spec:
    """Give a chart of small ones below each other, one for each policy, each with a scale of its own: `full` would flatten all others."""
    return _chart(
        name,
        facet={
            "row": {
                "field": "policy",
                "type": "nominal",
                "sort": list(policies),
                "header": {"title": "", "labelOrient": "top", "labelAnchor": "start", "labelPadding": 2},
            }
        },
        spec={"width": 780, "height": 84, "layer": layer},
        resolve={"scale": {"y": "independent"}},
        spacing=6,
    )


def _chart(data: str, **rest: Any) -> Spec:  # noqa: ANN401 - the words of Vega-Lite
    return {"$schema": _SCHEMA, "background": "white", "config": _LOOK, "data": {"name": data}, **rest}
