"""Write docs/scenarios.md: which tests show each scenario that came from outside, by the numbers in the tests' names.

D are what users of other systems report, T documented failure modes of compaction, A what the source documents show. A test says in its
name which of them it is about: `test_d9_…`, `test_a33_…`, `test_seed_000_block_17_a17_…`. `./run demand` runs D and prints what it covered.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.demand.table import NAMES

PAGE = Path("docs/scenarios.md")
SHOWN = 6
"""Tests named in a row; how many more there are is said."""

ACCEPTANCE: Mapping[int, str] = {
    1: "computed properties of a message",
    2: "a message through a dictionary and back",
    3: "opening a dialog",
    4: "the task's prompt from beginning to end",
    5: "putting a prompt, as an object and by its path",
    6: "putting a text, braces and all",
    7: "putting a picture, in every form",
    8: "looking at a dialog",
    9: "a dialog from a dictionary, with a log and a runtime",
    10: "the node of a dialog's tree",
    11: "forks of a part",
    12: "the tree for people",
    13: "dialogs by their aliases",
    14: "a whole turn with a tactic",
    15: "what a context manager may do",
    16: "the default context manager",
    17: "context managers from a configuration",
    18: "a context manager of one's own",
    19: "one without a name is refused",
    20: "a prompt",
    21: "braces and variables of a template",
    22: "prompt and dialog together",
    23: "an agent with named dialogs",
    24: "the trace of a call",
    25: "a context manager that is assigned later",
    26: "a context manager that is registered",
    27: "defaults of content blocks",
    28: "images, by all ways",
    29: "sounds, by their first bytes",
    30: "a user's message with sound",
    31: "the family of messages",
    32: "usage and its cost",
    33: "what is only for the session",
    34: "the boundary to a provider",
    35: "a message without text",
    36: "a conversation that the caller keeps",
    37: "a running summary over three overflows",
    38: "large old outputs become references",
    39: "reversible first, lossy if still needed",
    40: "the six headings of a summary",
}
"""What each of the 40 is about."""

_NUMBER = re.compile(r"(?:^test|_)_?([adt])0*(\d+)([a-g]?)(?=_)")
_HEAD = """# Scenarios

What broke for users of other systems, what is known to go wrong with compaction, and what the source documents show: each is a test, by its number.
`./run demand` runs D1 to D25 over every store (in memory, SQLite, PostgreSQL) and profile (OpenAI chat completions and responses, Anthropic,
Gemini) that they touch, and prints what was covered and how it went. This page is written by `python -m tools.scenarios`.
"""


def named() -> Iterator[tuple[str, int, str]]:
    """Give the letter, the number and the test for each scenario in the name of a test."""
    for path in sorted(Path("tests").rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for letter, number, _ in _NUMBER.findall(node.name):
                    yield letter.upper(), int(number), f"{path.as_posix()}::{node.name}"


def found() -> dict[tuple[str, int], list[str]]:
    """Give the tests of each scenario, those of tests/demand first."""
    tests: dict[tuple[str, int], list[str]] = {}
    for letter, number, test in named():
        tests.setdefault((letter, number), []).append(test)
    return {key: sorted(set(listed), key=lambda one: ("/demand/" not in one, one)) for key, listed in tests.items()}


def page() -> str:
    """Give the page."""
    tests = found()
    parts = [_HEAD]
    about = {("D", int(name[1:])): what for name, what in NAMES.items() if name[1:].isdigit()}
    about |= {("A", number): what for number, what in ACCEPTANCE.items()}
    about |= {key: "" for key in tests if key[0] == "T"}
    for letter, title in (
        ("D", "What users report"),
        ("T", "What goes wrong with compaction"),
        ("A", "What the source documents show"),
    ):
        keys = sorted(key for key in about if key[0] == letter)
        parts.append(
            f"## {title}\n\n| | {'about | ' if letter != 'T' else ''}shown by |\n|---|{'---|' if letter != 'T' else ''}---|"
        )
        parts += [_row(key, about[key], tests.get(key, [])) for key in keys]
        parts.append("")
    return "\n".join(parts).replace("|\n\n|", "|\n|")


def _row(key: tuple[str, int], what: str, tests: list[str]) -> str:
    listed = ", ".join(f"`{test}`" for test in tests[:SHOWN]) or "**nothing**"
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return f"| {key[0]}{key[1]} | {f'{what} | ' if what else ''}{listed}{more} |"


def main() -> int:
    """Write the page; return 1 if a scenario has no test."""
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
    return int("**nothing**" in text)


if __name__ == "__main__":
    sys.exit(main())
