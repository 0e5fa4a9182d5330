"""Broken files: what damage, other programs and hostile people make of a file of any format. Each way takes a small file of the format."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

import zstandard

from tests.formats.samples import TEXTS, ZSTD, packed, sample, value_of, zipped

HOSTILE = "\0\ud800\x1b[2J\u202e../../../etc/passwd {{7*7}} ${HOME} '; DROP TABLE entries; -- <script>alert(1)</script> \ufeff\n# \n> "
"""What no text may do anything with: control characters, paths, templates, SQL, HTML, and marks of other formats."""

DEEP = 100_000
NESTED = 150
"""How deep a value is nested: beyond what any parser reads, and what it just reads."""


def changed(value: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Return a JSON value in which each value was changed, inner ones first."""
    if isinstance(value, dict):
        value = {name: changed(inner, change) for name, inner in value.items()}
    elif isinstance(value, list):
        value = [changed(inner, change) for inner in value]
    return change(value)


def _cut(kind: str, chance: random.Random) -> bytes:
    whole = sample(kind)
    return whole[: chance.randrange(1, len(whole))]


def _flipped(kind: str, chance: random.Random) -> bytes:
    damaged = bytearray(sample(kind))
    for _ in range(1 + len(damaged) // 500):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _shuffled(kind: str, chance: random.Random) -> bytes:
    pieces = re.split(rb"(?<=[\n,])", sample(kind))
    chance.shuffle(pieces)
    return b"".join(pieces)


def _by_value(change: Callable[[Any, random.Random], Any]) -> Callable[[str, random.Random], bytes]:
    def broken(kind: str, chance: random.Random) -> bytes:
        if kind in TEXTS:
            return _flipped(kind, chance)
        value = value_of(kind)
        whole = (
            [changed(inner, lambda each: change(each, chance)) for inner in value] if isinstance(value, list) else None
        )
        return packed(kind, whole if whole is not None else changed(value, lambda each: change(each, chance)))

    return broken


def _mistyped(value: Any, chance: random.Random) -> Any:  # noqa: ANN401
    others: tuple[Any, ...] = (None, True, -1, 1.5e308, "", "x", [], [7], {}, {"type": "text"})
    return chance.choice(others) if chance.random() < 0.1 else value


def _unidentified(value: Any, _chance: random.Random) -> Any:  # noqa: ANN401
    return (
        {name: inner for name, inner in value.items() if not name.lower().endswith("id")}
        if isinstance(value, dict)
        else value
    )


def _hostile(value: Any, _chance: random.Random) -> Any:  # noqa: ANN401
    return f"{value}{HOSTILE}" if isinstance(value, str) and " " in value else value


def _nested(value: Any, chance: random.Random) -> Any:  # noqa: ANN401
    if not isinstance(value, dict) or chance.random() < 0.5:
        return value
    inner: Any = "core"
    for number in range(NESTED):
        inner = {"deep": inner} if number % 2 else [inner]
    return {**value, "nested": inner}


def _deep(kind: str, _chance: random.Random) -> bytes:
    whole = sample(kind)
    at = whole.find(b"{", len(whole) // 3) + 1
    return whole[:at] + b'"deep":' + b"[" * DEEP + b"]" * DEEP + b"," + whole[at:]


def long_line(kind: str, size: int) -> bytes:
    """Return a file in which one text, the longest, is so many bytes longer."""
    whole = sample(kind)
    texts = max(re.findall(rb"[A-Za-z][A-Za-z .?]{5,}[.?]", whole), key=len)
    return whole.replace(texts, texts + b" and so on" * (size // 10), 1)


def _long(kind: str, _chance: random.Random) -> bytes:
    return long_line(kind, 1 << 20)


def _truncated_gzip(kind: str, chance: random.Random) -> bytes:
    whole = gzip.compress(sample(kind))
    return whole[: chance.randrange(20, len(whole))]


def _flipped_zip(kind: str, chance: random.Random) -> bytes:
    damaged = bytearray(zipped({"a": sample(kind), "notes.txt": b"Notes."}))
    damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


WAYS: Mapping[str, Callable[[str, random.Random], bytes]] = {
    "cut": _cut,
    "bytes flipped": _flipped,
    "pieces shuffled": _shuffled,
    "wrong types": _by_value(_mistyped),
    "no ids": _by_value(_unidentified),
    "hostile strings": _by_value(_hostile),
    "nested": _by_value(_nested),
    "nested too deeply": _deep,
    "a long line": _long,
    "torn gzip": _truncated_gzip,
    "damaged zip": _flipped_zip,
}
"""The ways, by name."""

_FILLER = b" " * (1 << 20)

BOMBS: Mapping[str, Callable[[bytes, int], bytes]] = {
    "zip": lambda data, size: zipped({"a": data + _FILLER * size}),
    "zip of zstd": lambda data, size: zipped({"a": data + _FILLER * size}, method=ZSTD),
    "zstd": lambda data, size: zstandard.ZstdCompressor().compress(data + _FILLER * size),
    "gzip": lambda data, size: gzip.compress(data + _FILLER * size),
    "gzip in gzip": lambda data, size: gzip.compress(gzip.compress(data + _FILLER * size)),
    "zstd in zip": lambda data, size: zipped({"a": zstandard.ZstdCompressor().compress(data + _FILLER * size)}),
}
"""Files that unpack to the content and so many MiB of blanks."""


def items_of(kind: str) -> list[Any]:
    """Return the messages of a small file of a plain list."""
    value = json.loads(sample(kind))
    return list(value) if isinstance(value, list) else list(value["messages"])
