"""Drawing: the only place that knows vl-convert, which brings Vega-Lite and a renderer in a wheel."""

from __future__ import annotations

import importlib
import json
import zlib
from typing import Any

from palaver.errors import MissingExtra
from palaver.lab.report.specs import Spec

__all__ = ["bundle", "packed", "picture"]

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
    return packed(bytes(_vl_convert().vegalite_to_png(json.dumps(spec), vl_version=_VERSION, scale=scale)))


def packed(png: bytes) -> bytes:
    """Give a PNG with the same pixels in fewer bytes: renderers deflate in haste, which makes a chart of many bars ten times as large.

    Source: PNG is a signature and chunks of length, kind, bytes and CRC; the pixels are the `IDAT` chunks' bytes together, deflated
    (www.w3.org/TR/png-3, 5.3 and 10).
    """
    head, pixels, tail, place = bytearray(png[:8]), bytearray(), bytearray(), 8
    while place < len(png):
        end = place + 12 + int.from_bytes(png[place : place + 4], "big")
        kind = png[place + 4 : place + 8]
        if kind == b"IDAT":
            pixels += png[place + 8 : end - 4]
        else:
            (tail if pixels else head).extend(png[place:end])
        place = end
    small = b"IDAT" + zlib.compress(zlib.decompress(pixels), _LEVEL)
    return bytes(head) + _word(len(small) - 4) + small + _word(zlib.crc32(small)) + bytes(tail)


_LEVEL = 8
"""Of nine: from here on it takes much longer and gains little."""


def _word(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _vl_convert() -> Any:  # noqa: ANN401 - it has no types that mypy could read without it
    try:
        return importlib.import_module("vl_convert")
    except ImportError as error:
        raise MissingExtra("The report of the lab", "report", package="vl-convert-python") from error
