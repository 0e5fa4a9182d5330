"""The recorded sessions of other agents, for tests: where they are, what their manifest says, a sample of them.

The folder that PALAVER_TEST_DATA names holds `<kind>/<file>.zst` and MANIFEST.tsv, one row a file. Without it, what is
parametrised over files shows one skipped case with the reason; it never disappears silently.
"""

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

_NAMED = os.environ.get("PALAVER_TEST_DATA", "")
ROOT: Path | None = Path(_NAMED).resolve() if _NAMED and (Path(_NAMED) / "MANIFEST.tsv").is_file() else None
WHY_MISSING = (
    f"no recorded sessions: PALAVER_TEST_DATA is {_NAMED!r}, which has no MANIFEST.tsv"
    if _NAMED
    else "no recorded sessions: PALAVER_TEST_DATA is not set"
)


@dataclass(frozen=True)
class Recording:
    """One recorded file and its row of the manifest.

    `facts` has every column as text; `count` reads one as a number. An empty cell means that the manifest does not say.
    """

    path: Path
    kind: str
    facts: dict[str, str]

    @property
    def name(self) -> str:
        """The path below the folder, as in the manifest: `kind/file.zst`."""
        return self.facts["file"]

    def count(self, column: str) -> int | None:
        """Return the number in a column, such as `messages` or `tool_calls`; None when the cell is empty."""
        return int(self.facts[column]) if self.facts[column] else None


def _read_manifest() -> Iterator[Recording]:
    if ROOT is None:
        return
    with (ROOT / "MANIFEST.tsv").open(encoding="utf-8", newline="") as lines:
        for facts in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Recording(ROOT / facts["file"], facts["file"].partition("/")[0], facts)


RECORDINGS: tuple[Recording, ...] = tuple(_read_manifest())


def recordings(*kinds: str, each: int | None = None) -> list[ParameterSet]:
    """Return the recordings of these kinds (of all, without any) as parameters for `pytest.mark.parametrize`.

    With `each`, a stratified sample: of every kind the smallest, the largest and evenly spaced ones between, by raw size,
    at most `each` of them. `./run soak` takes them all; a sample is for the tests that run on every change.
    """
    if ROOT is None:
        return [pytest.param(None, marks=pytest.mark.skip(reason=WHY_MISSING), id="no-recordings")]
    found: list[ParameterSet] = []
    for kind in kinds or sorted({recording.kind for recording in RECORDINGS}):
        rows = sorted((r for r in RECORDINGS if r.kind == kind), key=lambda r: (r.count("raw_bytes") or 0, r.name))
        if not rows:
            message = f"the manifest has no recording of kind {kind!r}"
            raise LookupError(message)
        found.extend(pytest.param(row, id=row.name) for row in _spread(rows, each))
    return found


def _spread(rows: list[Recording], most: int | None) -> list[Recording]:
    if most is None or len(rows) <= most:
        return rows
    if most == 1:
        return [rows[len(rows) // 2]]
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]
