"""One broken corpus for every format and for lists of messages: no crash, no hang, bounded memory, and a report."""

from __future__ import annotations

import json
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from palaver.dialects import read_messages
from palaver.errors import PalaverError, UnsupportedTranscript
from palaver.formats import FORMATS, ReadLimits
from palaver.store.memory import MemoryStore
from palaver.transcripts import Imported, Importer
from tests.formats.broken import BOMBS, WAYS, changed, items_of, long_line
from tests.formats.reading import imported, read_bytes, refused, views, written
from tests.formats.samples import KINDS, sample

NAMES = [known.name for known in FORMATS]
_MORE = 12  # times as many files in the soak

REPORTED = {"nested too deeply", "torn gzip", "damaged zip"}
"""The ways after which nothing is missing without a report. After the others, a file may be a whole one that says less."""


def held_to(folder: Path, kind: str, data: bytes) -> list[Imported]:
    """Import a broken file twice. It is refused with a reason or imported; then the second import adds nothing, and views are valid requests."""
    path, store = written(folder, data), MemoryStore()
    try:
        found = imported(store, path)
    except UnsupportedTranscript:
        return []
    assert [one.entries for one in imported(store, path)] == [0] * len(found), kind
    for view in views(store, found)[:3]:
        assert refused(store, view) == [], kind
    return found


def said_less(folder: Path, kind: str, found: list[Imported]) -> bool:
    """Return whether fewer records were imported than the whole file has."""
    return sum(one.records for one in found) < read_bytes(folder, sample(kind), "whole").counted()


def meets(folder: Path, kind: str, way: str, seed: int) -> None:
    """Hold a format to a file that was broken in a way; what is missing then is in the report."""
    data = WAYS[way](kind, random.Random(f"{kind} {way} {seed}"))  # noqa: S311 - a test's damage
    found = held_to(folder, kind, data)
    if found and way in REPORTED and said_less(folder, kind, found):
        assert any(one.losses for one in found), (way, seed)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NAMES)
def test_format_meets_the_broken_corpus(tmp_path: Path, kind: str, way: str) -> None:
    """Every row of the registry meets every way of breaking a file, by itself."""
    assert kind in KINDS, "a format needs a golden file"
    meets(tmp_path, kind, way, 0)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NAMES)
def test_format_meets_more_of_the_corpus(tmp_path: Path, kind: str, way: str) -> None:
    """The same with many more places and kinds of damage."""
    for seed in range(1, _MORE):
        meets(tmp_path, kind, way, seed)


@pytest.mark.parametrize("bomb", BOMBS)
def test_bomb_stops_at_the_limit(tmp_path: Path, bomb: str) -> None:
    """A file that unpacks to 64 MiB is read to the limit of 2 MiB, in bounded memory, and that is reported."""
    path = written(tmp_path, BOMBS[bomb](sample("codex"), 64))
    assert path.stat().st_size < 1 << 18
    tracemalloc.start()
    try:
        (one,) = Importer(MemoryStore(), keep_source=False, limits=ReadLimits(unpacked=1 << 21)).import_path(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert any("the limit" in loss.reason for loss in one.losses)
    assert peak < 1 << (27 if "zstd" in bomb else 25)  # a step of zstd unpacks to at most 64 MiB


def memory_for(folder: Path, kind: str, size: int) -> float:
    """Import a file with one line of this size, and return the most memory that Python held, as a multiple of the size."""
    path = written(folder, long_line(kind, size))
    tracemalloc.start()
    try:
        list(Importer(MemoryStore(), keep_source=False).import_path(path))
        return tracemalloc.get_traced_memory()[1] / size
    finally:
        tracemalloc.stop()


@pytest.mark.soak
@pytest.mark.parametrize("kind", NAMES)
def test_long_line_takes_a_multiple_of_its_size(tmp_path: Path, kind: str) -> None:
    """A line of 8 MB is imported within a fixed multiple of its size."""
    assert memory_for(tmp_path, kind, 8_000_000) < 20


@pytest.mark.soak
@pytest.mark.parametrize("kind", NAMES)
def test_line_of_100_mb(tmp_path: Path, kind: str) -> None:
    """So is one of 100 MB."""
    assert memory_for(tmp_path, kind, 100_000_000) < 20


@pytest.mark.parametrize("kind", ["chat-completions", "anthropic-messages"])
@pytest.mark.parametrize("seed", range(20))
def test_broken_lists_are_read_or_refused(kind: str, seed: int) -> None:
    """`read_messages` returns messages or raises an error of palaver, whatever an item is."""
    chance = random.Random(seed)  # noqa: S311 - a test's damage
    junk: tuple[object, ...] = (
        None,
        7,
        "",
        [],
        {},
        {"role": "user"},
        "\ud800\0",
        {"content": [None]},
        {"role": 7, "content": {}},
    )
    items = [
        changed(item, lambda each: chance.choice(junk) if chance.random() < 0.15 else each) for item in items_of(kind)
    ]
    with suppress(PalaverError, TypeError):  # of an item that is no dict, a TypeError says what an item is
        assert read_messages(items) is not None


def test_list_nested_too_deeply_is_refused_or_read() -> None:
    """So for items that are nested deeper than a parser goes."""
    deep: object = "core"
    for _ in range(5000):
        deep = [deep]
    for item in ({"role": "user", "content": deep}, {"role": "user", "content": "x", "extra": deep}):
        with pytest.raises(PalaverError):
            read_messages([item])
    assert read_messages([{"role": "user", "content": "x", "extra": json.loads("[" * 50 + "]" * 50)}])
