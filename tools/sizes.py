"""Name what has grown past comfort: files over 400 lines, functions over 40, classes over 200.

These are smells to look into, not limits: the report never fails.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

COMFORT = {"file": 400, "class": 200, "function": 40}


def sizes(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield (kind, lines, place) for the file and everything defined in it."""
    source = path.read_text(encoding="utf-8")
    yield "file", source.count("\n"), str(path)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield kind, (node.end_lineno or node.lineno) - node.lineno + 1, f"{path}:{node.lineno} {node.name}"


def main() -> None:
    """Print the smells of src/, largest excess first."""
    found = [size for path in sorted(Path("src").rglob("*.py")) for size in sizes(path)]
    large = [(kind, count, place) for kind, count, place in found if count > COMFORT[kind]]
    for kind, count, place in sorted(large, key=lambda size: size[1] / COMFORT[size[0]], reverse=True):
        sys.stdout.write(f"{kind:8} {count:4} lines (comfort: {COMFORT[kind]})  {place}\n")
    files = [count for kind, count, _ in found if kind == "file"]
    sys.stdout.write(f"{len(files)} files, {sum(files)} lines, {len(large)} places past comfort\n")


if __name__ == "__main__":
    main()
