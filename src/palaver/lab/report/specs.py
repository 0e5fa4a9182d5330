"""The charts, as Vega-Lite specifications: plain values, drawn by the page in a browser and by `drawing` as pictures.

Source of the language: vega.github.io/vega-lite/docs (version 6). Each chart takes its data by a name of its own, so that the page can put the
data of another session there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.lab.results import PARTS

__all__ = ["COLOURS", "Spec", "cache", "composition", "front", "with_data"]

Spec = dict[str, Any]

COLOURS: Mapping[str, str] = dict(
    zip(PARTS, ("#4c5a6b", "#8d99ae", "#2a7fb8", "#6fb1a0", "#e3b23c", "#b5651d", "#c9c9c9"), strict=True)
)
"""A colour for each part of a view."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_READ, _ANEW = "read from the cache", "read anew"
_LOOK: Spec = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#eee", "domainColor": "#999", "tickColor": "#999", "labelFontSize": 11},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold", "labelAnchor": "start", "titleFontSize": 0},
    "legend": {"orient": "top", "titleFontSize": 0, "labelFontSize": 11},
}


def front(currency: str) -> Spec:
    """Give the chart of cost and retention: what a session costs against what of it later calls find in view, a point for each policy.

    Args:
        currency: The unit of the bills.
    """
    money = "dollars" if currency == "USD" else currency
    place: Spec = {
        "x": {
            "field": "bill",
            "type": "quantitative",
            "title": f"bill of a session, {money}",
            "scale": {"zero": False},
        },
        "y": {
            "field": "frr",
            "type": "quantitative",
            "title": "of what later calls refer to, in view (FRR)",
            "scale": {"zero": False},
        },
    }
    hue: Spec = {
        "field": "best",
        "type": "nominal",
        "scale": {"domain": [True, False], "range": ["#b5651d", "#7f8c9b"]},
        "legend": None,
    }
    ends = [
        {"mark": {"type": "rule", "opacity": 0.3}, "encoding": {**place, "x2": {"field": "bill_high"}, "color": hue}},
        {"mark": {"type": "rule", "opacity": 0.3}, "encoding": {**place, "y2": {"field": "frr_high"}, "color": hue}},
    ]
    ends[0]["encoding"]["x"] = {**place["x"], "field": "bill_low"}
    ends[1]["encoding"]["y"] = {**place["y"], "field": "frr_low"}
    told = ["name", "bill", "frr", "frr_recall", "hits", "regret", "cuts"]
    return _chart(
        "policies",
        width=780,
        height=360,
        layer=[
            {
                "transform": [{"filter": "datum.best"}],
                "mark": {"type": "line", "interpolate": "step-after", "color": "#b5651d", "opacity": 0.5},
                "encoding": {**place, "order": {"field": "bill"}},
            },
            *ends,
            {
                "mark": {"type": "point", "filled": True, "size": 90, "cursor": "pointer"},
                "encoding": {**place, "color": hue, "tooltip": [{"field": name} for name in told]},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "dy": -6, "fontSize": 11},
                "encoding": {**place, "text": {"field": "name"}, "color": hue},
            },
        ],
    )


def composition() -> Spec:
    """Give the chart of what a session's requests were made of, call by call, a row for each policy, with the cuts marked."""
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
    return _rows("calls", [bars, cuts])


def cache() -> Spec:
    """Give the timeline of the provider's cache: of each request what was read from it and what anew; calls that found it cold are marked."""
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
    return _rows("calls", [bars, cold])


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


def _rows(name: str, layer: list[Spec]) -> Spec:
    """Give a chart of small ones below each other, one for each policy, each with a scale of its own: `full` would flatten all others."""
    return _chart(
        name,
        facet={
            "row": {
                "field": "policy",
                "type": "nominal",
                "sort": None,
                "header": {"title": "", "labelOrient": "top", "labelAnchor": "start", "labelPadding": 2},
            }
        },
        spec={"width": 780, "height": 84, "layer": layer},
        resolve={"scale": {"y": "independent"}},
        spacing=6,
    )


def _chart(data: str, **rest: Any) -> Spec:  # noqa: ANN401 - the words of Vega-Lite
    return {"$schema": _SCHEMA, "background": "white", "config": _LOOK, "data": {"name": data}, **rest}
