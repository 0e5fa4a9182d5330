"""Write the pages of docs/reference that say what is asked of palaver, and the tests that show it, by the list that a docstring begins with.

`requirements.toml` has the requirements: R those of the source documents and C their conflicts, A their examples, D what users of other systems
report, and T failure modes of compaction. `hazards.toml` has what a conversation may go through on the wire. A test names its rows at the beginning of its docstring
and nowhere else: "C13, R27, R40-R42: …", "«leading history cut x strict»: …".

    python tools/requirements.py            write the pages
    python tools/requirements.py --check    only compare them
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = {
    ROOT / "docs" / "reference" / f"{name}.md": tomllib.loads(
        Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    )
    for name in ("requirements", "hazards")
}
"""The title of each page, what it is about, the heads of its columns, and the rows of its sections. A row is what it asks, or that and why no test shows it."""
SHOWN = 2
"""Tests listed in a row; the rest are counted."""

_ROW = r"[RCADT]\d+(?:-[RCADT]?\d+)?|«[^»]+»"
_LIST = re.compile(rf"(?:(?:{_ROW}|law \d+)(?:, |(?=: )))+(?=: )")
_RANGE = re.compile(r"([RCADT])(\d+)(?:-\1?(\d+))?|«([^»]+)»")


def rows() -> dict[str, tuple[str, str]]:
    """Return for each row what it asks, and why no test shows it (empty where one does)."""
    return {
        row: _words(said)
        for page in PAGES.values()
        for section in _sections(page).values()
        for row, said in section.items()
    }


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
        for letter, first, last, quoted in _RANGE.findall(listed[0]):
            numbers = range(int(first), int(last or first) + 1) if letter else ()
            yield from [quoted] if quoted else (f"{letter}{number}" for number in numbers)


def text_of(page: Mapping[str, Any]) -> str:
    """Return the text of a page."""
    tests = shown()
    parts = [f"# {page['title']}\n\n{page['about'].strip()}\n"]
    for title, section in _sections(page).items():
        parts += [f"## {title}\n", f"|{page['columns']}|tests|\n|---|---|---|"]
        parts += [_line(row, *_words(said), tests.get(row, [])) for row, said in section.items()]
        parts.append("")
    return "\n".join(parts)


def _sections(page: Mapping[str, Any]) -> Mapping[str, Mapping[str, str | list[str]]]:
    return {title: section for title, section in page.items() if isinstance(section, dict)}


def _words(said: str | list[str]) -> tuple[str, str]:
    return (said, "") if isinstance(said, str) else (said[0], said[1])


def _line(row: str, asks: str, reason: str, tests: list[str]) -> str:
    more = f" +{len(tests) - SHOWN}" if len(tests) > SHOWN else ""
    evidence = " ".join(tests[:SHOWN]) or (f"no test: {reason}" if reason else "no test")
    return f"|{row}|{asks}|{evidence}{more}|"


def main() -> int:
    """Write or check the pages; return 1 when the check finds others."""
    for path, page in PAGES.items():
        text = text_of(page)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)} written\n")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path.relative_to(ROOT)} is out of date: run .venv/bin/python tools/requirements.py\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
