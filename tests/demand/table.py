"""The table of scenarios, made of the reports of tests that ran and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

__all__ = ["NAMES", "Row", "Table"]

NAMES: dict[str, str] = {
    "D1": "truncation by count",
    "D2": "a system message hides the orphan",
    "D3": "compaction between call and result, then a second",
    "D4": "crash between event and head pointer",
    "D5": "two results for one call",
    "D6": "executed, but the store write failed",
    "D7": "cancelled during a tool, then a new prompt",
    "D7b": "a message while an approval is pending",
    "D8": "parallel batch, one hangs, abort",
    "D9": "a message while compaction runs",
    "D10": "rewind and branch behind a compaction",
    "D11": "half-committed compaction",
    "D12": "no progress",
    "D13": "nothing to cut",
    "D14": "compact, exit, resume",
    "D15": "poison content",
    "D16": "the provider reuses ids",
    "D17": "switch provider and back",
    "D18": "kept tail with signed reasoning",
    "D19": "second writer",
    "D20": "damaged and foreign records",
    "D21": "authority",
    "D22": "token size",
    "D23": "prefix stability",
    "D24": "fork mid-turn",
    "D25": "rolling facts",
}
"""What each scenario is about."""

_TEST = re.compile(r"tests/(?:demand/\S+|context/test_scenarios.py)::test_d(\d+)([a-g]?)_")
_STORES = ("memory", "sqlite", "postgres")
_PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini")


@dataclass
class Row:
    """One scenario.

    Attributes:
        stores: Stores that a passed test had open.
        profiles: Profiles that a passed test had requests judged for.
        passed: How many tests passed.
        failed: How many did not.
        skipped: How many were skipped.
    """

    stores: set[str] = field(default_factory=set)
    profiles: set[str] = field(default_factory=set)
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def outcome(self) -> str:
        """How it went, in a word or two."""
        if self.failed:
            return f"FAIL ({self.failed} of {self.failed + self.passed})"
        said = f"pass ({self.passed})" if self.passed else "not run"
        return f"{said}, {self.skipped} skipped" if self.skipped else said


class Table:
    """All scenarios of which a test ran."""

    def __init__(self) -> None:
        """Begin with none."""
        self.rows: dict[str, Row] = {}

    def take(self, report: pytest.TestReport) -> None:
        """Take a phase of a test into account."""
        found = _TEST.search(report.nodeid)
        if found is None:
            return
        whole = f"D{int(found[1])}"
        row = self.rows.setdefault(whole + found[2] if whole + found[2] in NAMES else whole, Row())
        if report.failed:
            row.failed += 1
        elif report.skipped:
            row.skipped += 1
        elif report.when == "call":
            row.passed += 1
            for what, name in report.user_properties:
                if what in {"store", "profile"}:
                    (row.stores if what == "store" else row.profiles).add(str(name))

    def lines(self) -> Iterator[str]:
        """Return the table, a row a line, in Markdown."""
        yield f"| {'':4} | {'scenario':50} | {'stores':24} | {'profiles':12} | outcome |"
        yield f"|{'-' * 6}|{'-' * 52}|{'-' * 26}|{'-' * 14}|---------|"
        for number, name in NAMES.items():
            row = self.rows.get(number, Row())
            stores = _all(row.stores, _STORES)
            profiles = "all four" if row.profiles >= set(_PROFILES) else _all(row.profiles, _PROFILES)
            yield f"| {number:4} | {name:50} | {stores:24} | {profiles:12} | {row.outcome} |"


def _all(found: Iterable[str], order: tuple[str, ...]) -> str:
    held = [each for each in order if each in set(found)]
    return ", ".join(held) if held else "-"
