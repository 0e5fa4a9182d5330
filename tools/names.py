"""Check that a class name means one class: at most five names are defined twice in src/, each for a reason that is written here."""

import ast
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

TWICE: Mapping[str, str] = {}
"""The names that may be defined more than once, private and nested ones included, and why."""
MOST = 5


def definitions(folder: Path) -> dict[str, list[str]]:
    """Return where each class of a folder is defined, by its name without underscores at the beginning."""
    found = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{path}:{node.lineno}")
    return found


def faults(found: Mapping[str, list[str]], allowed: Mapping[str, str] = TWICE) -> list[str]:
    """Return what is wrong, one sentence each."""
    twice = {name: places for name, places in found.items() if len(places) > 1}
    return [
        *(f"{name} is defined {len(twice[name])} times: {', '.join(twice[name])}" for name in twice.keys() - allowed),
        *(f"{name} is defined once: TWICE needs it no more" for name in allowed.keys() - twice),
        *([f"{len(allowed)} names may be defined twice, at most {MOST}"] if len(allowed) > MOST else []),
    ]


def main() -> int:
    """Print the faults; return 1 if there are any."""
    found = sorted(faults(definitions(Path("src"))))
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
