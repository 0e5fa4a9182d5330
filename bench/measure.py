"""Timing two things in turn, and saying how they compare."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import apsw

from tests import postgres

WORDS = [
    "the",
    "store",
    "keeps",
    "every",
    "entry",
    "of",
    "a",
    "dialog",
    "in",
    "order",
    "and",
    "a",
    "reader",
    "may",
    "follow",
    "it",
    "from",
    "the",
    "first",
    "to",
    "the",
    "last",
    "one",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured.
        ours: Our figure, with its unit.
        limit: The figure it is compared with.
        ratio: Ours through the limit's, or empty.
        aim: What the ratio should be at most (or at least), or empty.
    """

    what: str
    ours: str
    limit: str = ""
    ratio: str = ""
    aim: str = ""


def text(size: int, seed: int) -> str:
    """Return prose-like text of about so many characters."""
    chance = random.Random(seed)  # noqa: S311 - words, not secrets
    words: list[str] = []
    length = 0
    while length < size:
        word = chance.choice(WORDS)
        words.append(word)
        length += len(word) + 1
    return " ".join(words)


def timed(job: Callable[[], object]) -> float:
    """Return how long a job takes, in seconds."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def in_turn(ours: Callable[[int], object], limit: Callable[[int], object], rounds: int) -> tuple[float, float]:
    """Time two things in turn, each round given its number; the medians, in seconds. The order changes every round."""
    first: list[float] = []
    second: list[float] = []
    gc.collect()
    for number in range(rounds):
        pairs = [(ours, first), (limit, second)]
        for job, times in pairs if number % 2 else reversed(pairs):
            times.append(timed(partial(job, number)))
    return median(first), median(second)


def raw(path: Path, *, synchronous: str = "FULL") -> apsw.Connection:
    """Open a plain database with one table of numbered rows: what the limit is measured on."""
    connection = apsw.Connection(str(path))
    for pragma in ("journal_mode=WAL", f"synchronous={synchronous}", "wal_autocheckpoint=1000"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body BLOB)")
    return connection


def microseconds(seconds: float) -> str:
    """Return a duration for people."""
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.1 else f"{seconds * 1e3:,.0f} ms"


def compared(what: str, ours: float, limit: float, aim: str = "") -> Row:
    """Return the line for two durations."""
    return Row(what, microseconds(ours), microseconds(limit), f"{ours / limit:.2f}", aim)


def resident() -> int:
    """Return the memory that this process occupies now, in bytes (Linux; elsewhere 0)."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * 4096


def postgres_programs(what: str, package: str) -> Path | list[Row]:
    """Return the programs of a PostgreSQL server; where they or a package are missing, a line that says why something is not measured."""
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is not None and reason is None and find_spec(package) is not None:
        return programs
    return [Row(what, f"not measured: {reason or f'{package} is not installed'}")]


def numbers(start: int = 0) -> Iterator[int]:
    """Count up."""
    while True:
        yield start
        start += 1
