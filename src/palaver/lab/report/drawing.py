"""Drawing: the only place that knows vl-convert, which brings Vega-Lite and a renderer in a wheel."""

from __future__ import annotations

import importlib
import json
from typing import Any

from palaver.errors import MissingExtra
from palaver.lab.report.specs import Spec

__all__ = ["bundle", "picture"]

_VERSION = "6.4"
"""The Vega-Lite that charts are written for."""


def bundle() -> str:
    """Give the JavaScript that draws charts in a browser, whole: the page loads nothing.

    Raises:
        MissingExtra: vl-convert is not installed.
    """
    return str(_vl_convert().javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_VERSION))


def picture(spec: Spec, *, scale: float = 2.0) -> bytes:
    """Give a chart with its data as PNG.

    Raises:
        MissingExtra: vl-convert is not installed.
    """
    return bytes(_vl_convert().vegalite_to_png(json.dumps(spec), vl_version=_VERSION, scale=scale))


def _vl_convert() -> Any:  # noqa: ANN401 - it has no types that mypy could read without it
    try:
        return importlib.import_module("vl_convert")
    except ImportError as error:
        raise MissingExtra("The report of the lab", "report", package="vl-convert-python") from error
