"""Write docs/reference/requirements.md: the tests that show each requirement, by the list that a docstring begins with.

R are requirements and C conflicts of the source documents, A their examples, D what users of other systems report, and T failure
modes of compaction. A test names its rows at the beginning of its docstring and nowhere else: "C13, R27, R40-R42: …".

    python tools/requirements.py            write the page
    python tools/requirements.py --check    only compare it
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "requirements.md"
SHOWN = 2
"""Tests listed in a row; the rest are counted."""

ROWS: Mapping[str, tuple[int, str]] = {
    "R": (335, "Requirements"),
    "C": (29, "Conflicts between the source documents"),
    "A": (40, "Examples of the source documents"),
    "D": (25, "What users of other systems report"),
    "T": (21, "Failure modes of compaction"),
}
"""How many rows of each kind there are, and their title."""

REASONS: Mapping[str, str] = {
    "R61": "declined: dialogs hold no live parents or children; the store keeps ancestors as ranges (ADR 0002)",
    "R222": "declined: sessions are rows of a database, ordered by sequence number; JSON Lines with parent ids are a format of import and export",
    "R289": "says what its author leaves alone; nothing to show",
    "R290": "says what its author leaves alone; nothing to show",
    "R292": "an open question of its author; here the compaction is an entry of the log",
    "R295": "an order of work; nothing to show",
    "R297": "a report on another project, and on the tests it has",
    "R323": "declined: an output too large is shortened by code with a handle; only exchanges that leave are summarised",
}
"""Requirements without a test, and why."""

_ROW = r"[RCADT]\d+(?:-[RCADT]?\d+)?"
_LIST = re.compile(rf"(?:(?:{_ROW}|law \d+)(?:, |(?=: )))+(?=: )")
_RANGE = re.compile(r"([RCADT])(\d+)(?:-\1?(\d+))?")
_HEAD = """# Requirements and their tests

`./run requirements` writes this table from the docstrings of tests. File names are relative to `tests/`; `+n` counts further tests.
"""


def shown() -> dict[tuple[str, int], list[str]]:
    """Return the tests of each row."""
    tests: dict[tuple[str, int], list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" not in path.parts:
            for test in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_"):
                    name = f"{path.relative_to(ROOT / 'tests').as_posix()}::{test.name}"
                    for row in rows_of(ast.get_docstring(test) or ""):
                        tests.setdefault(row, []).append(name)
    return tests


def rows_of(docstring: str) -> Iterator[tuple[str, int]]:
    """Yield the rows in the list that a docstring begins with."""
    if listed := _LIST.match(docstring):
        for letter, first, last in _RANGE.findall(listed[0]):
            yield from ((letter, number) for number in range(int(first), int(last or first) + 1))


def page() -> str:
    """Return the page."""
    tests = shown()
    parts = [_HEAD]
    for letter, (count, title) in ROWS.items():
        without = [
            f"{letter}{n}" for n in range(1, count + 1) if (letter, n) not in tests and f"{letter}{n}" not in REASONS
        ]
        parts.append(f"## {title}\n")
        if without:
            parts.append(f"No test names {len(without)} of {count}: {_runs(without)}.\n")
        rows = {
            f"{letter}{n}": _row(f"{letter}{n}", tests[letter, n]) for n in range(1, count + 1) if (letter, n) in tests
        }
        rows |= {
            name: f"|{name}|no test: {REASONS[name]}|" for name in REASONS if name[0] == letter and name not in rows
        }
        parts.append("|row|tests|\n|---|---|")
        parts += sorted(rows.values(), key=lambda row: int(row[2:].partition("|")[0]))
        parts.append("")
    return "\n".join(parts)


def _runs(rows: list[str]) -> str:
    """Return row names with neighbours joined: R1-R3, R7."""
    runs: list[list[str]] = []
    for row in rows:
        if runs and int(row[1:]) == int(runs[-1][-1][1:]) + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _row(row: str, tests: list[str]) -> str:
    more = f" +{len(tests) - SHOWN}" if len(tests) > SHOWN else ""
    return f"|{row}|{' '.join(tests[:SHOWN])}{more}|"


def main() -> int:
    """Write or check the page; return 1 when the check finds another one."""
    text = page()
    if "--check" not in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{PAGE.relative_to(ROOT)} written\n")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is out of date: run ./run requirements\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
