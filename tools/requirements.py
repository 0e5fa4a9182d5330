"""Write docs/reference/requirements.md: what each requirement asks, and the tests that show it, by the list that a docstring begins with.

R are requirements and C conflicts of the source documents, A their examples, D what users of other systems report, and T failure
modes of compaction; `requirements.toml` says each in words. A test names its rows at the beginning of its docstring and nowhere else:
"C13, R27, R40-R42: …".

    python tools/requirements.py            write the page
    python tools/requirements.py --check    only compare it
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "requirements.md"
WORDS: Mapping[str, Mapping[str, str | list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""The rows of each section. A row is what it asks, or that and why no test shows it."""
SHOWN = 2
"""Tests listed in a row; the rest are counted."""

_ROW = r"[RCADT]\d+(?:-[RCADT]?\d+)?"
_LIST = re.compile(rf"(?:(?:{_ROW}|law \d+)(?:, |(?=: )))+(?=: )")
_RANGE = re.compile(r"([RCADT])(\d+)(?:-\1?(\d+))?")
_HEAD = """# Requirements and their tests

R: requirements of the source documents. C: what palaver does where they disagree. A: their examples. D: reports about other systems.
T: failure modes of compaction. `./run docs` writes this page from the docstrings of tests. File names are relative to `tests/`; `+n`
counts further tests.
"""


def rows() -> dict[str, tuple[str, str]]:
    """Return for each row what it asks, and why no test shows it (empty where one does)."""
    return {row: _words(said) for section in WORDS.values() for row, said in section.items()}


def shown() -> dict[str, list[str]]:
    """Return the tests of each row."""
    tests: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" not in path.parts:
            for test in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_"):
                    name = f"{path.relative_to(ROOT / 'tests').as_posix()}::{test.name}"
                    for row in rows_of(ast.get_docstring(test) or ""):
                        tests.setdefault(row, []).append(name)
    return tests


def rows_of(docstring: str) -> Iterator[str]:
    """Yield the rows in the list that a docstring begins with."""
    if listed := _LIST.match(docstring):
        for letter, first, last in _RANGE.findall(listed[0]):
            yield from (f"{letter}{number}" for number in range(int(first), int(last or first) + 1))


def page() -> str:
    """Return the page."""
    tests = shown()
    parts = [_HEAD]
    for title, section in WORDS.items():
        parts += [f"## {title}\n", "|row|what it asks|tests|\n|---|---|---|"]
        parts += [_line(row, *_words(said), tests.get(row, [])) for row, said in section.items()]
        parts.append("")
    return "\n".join(parts)


def _words(said: str | list[str]) -> tuple[str, str]:
    return (said, "") if isinstance(said, str) else (said[0], said[1])


def _line(row: str, asks: str, reason: str, tests: list[str]) -> str:
    more = f" +{len(tests) - SHOWN}" if len(tests) > SHOWN else ""
    evidence = " ".join(tests[:SHOWN]) or (f"no test: {reason}" if reason else "no test")
    return f"|{row}|{asks}|{evidence}{more}|"


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
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is out of date: run .venv/bin/python tools/requirements.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
