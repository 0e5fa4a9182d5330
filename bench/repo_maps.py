"""The repo map: of this repository, cold and warm, against tree-sitter alone, which parses the same files; and of a hundred thousand files."""

from __future__ import annotations

import importlib
import tracemalloc
from pathlib import Path
from statistics import median

from bench.measure import Row, compared, timed
from palaver.repomap import Tags, draw, look
from palaver.repomap.files import ScanLimits
from palaver.repomap.languages import language_of
from palaver.tokens import counter

_HERE = Path(__file__).parent.parent
_ROUNDS = 5
_TOKENS = 1_024
_TREE = 100_000
_COUNT = counter("gpt-4o").text


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Map this repository, and a tree of many files."""
    rounds = 1 if quick else _ROUNDS
    known: dict[str, Tags | None] = {}
    found = look(_HERE, None, known)
    _ = draw(found, max_tokens=_TOKENS, count=_COUNT)
    sources = [path for file in found.files if language_of(path := file.path)]
    cold, warm, alone = [], [], []
    for _ in range(rounds):
        cold.append(timed(_mapped))
        alone.append(timed(lambda: _parsed(sources)))
        warm.append(timed(lambda: _mapped(known)))
    what = f"map of {len(found.files):,} files, {found.definitions:,} definitions"
    limit = median(alone)
    return [
        compared(f"{what}, cold; tree-sitter alone on {len(sources):,}", median(cold), limit, "≤ 6"),
        compared("  the same, nothing changed", median(warm), limit, "≤ 1.5"),
        *_tree(folder, _TREE // 10 if quick else _TREE),
    ]


def _mapped(known: dict[str, Tags | None] | None = None) -> None:
    assert draw(look(_HERE, None, known), max_tokens=_TOKENS, count=_COUNT).tokens <= _TOKENS


def _parsed(paths: list[str]) -> None:
    """Read and parse, and nothing else: what no map can be faster than that has to."""
    library = importlib.import_module("tree_sitter")
    parsers = {}
    for path in paths:
        language = language_of(path)
        assert language is not None
        if language.name not in parsers:
            grammar = getattr(importlib.import_module(language.package), language.grammar)()
            parsers[language.name] = library.Parser(library.Language(grammar))
        parsers[language.name].parse((_HERE / path).read_bytes())


def _tree(folder: Path, files: int) -> list[Row]:
    """Map a tree of many small files, as many of which are parsed as the limits say."""
    for number in range(files):
        place = folder / f"d{number // 1_000}" / f"e{number // 100 % 10}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"f{number}.py").write_text(f"def made_{number}(): return made_{number * 7 % files}()\n", "utf-8")
    seconds = timed(lambda: draw(look(folder), max_tokens=_TOKENS, count=_COUNT))
    tracemalloc.start()
    found = look(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    parsed = sum(file.tags is not None for file in found.files)
    assert parsed == min(files, ScanLimits().files)
    what = f"  a tree of {files:,} files, {parsed:,} of them parsed"
    return [Row(what, f"{seconds:,.1f} s", f"{peak / 2**20:,.0f} MiB at the most", "", "bounded")]
