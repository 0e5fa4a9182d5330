"""Check the change fragments: each has a name that towncrier understands, and says something.

towncrier leaves out a file whose kind it does not know, without a word; the change would be missing from the changelog.
"""

import re
import sys
import tomllib
from pathlib import Path

FOLDER = Path("changes")


def faults(kinds: set[str]) -> list[str]:
    """Return what is wrong with the fragments, one sentence each."""
    found = []
    for path in sorted(FOLDER.iterdir()):
        if path.name == "README.md":
            continue
        match = re.fullmatch(r"(?:\d+|\+[\w-]+)\.(\w+)(?:\.\d+)?\.md", path.name)
        if match is None:
            found.append(f"{path}: the name is not <issue>.<kind>.md, <issue>.<kind>.<number>.md or +<word>.<kind>.md")
        elif match[1] not in kinds:
            found.append(f"{path}: unknown kind {match[1]!r}; there are {', '.join(sorted(kinds))}")
        elif not path.read_text(encoding="utf-8").strip():
            found.append(f"{path}: empty")
    return found


def main() -> int:
    """Print the faults; return 1 if there are any."""
    settings = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    found = faults({kind["directory"] for kind in settings["type"]})
    sys.stdout.write("".join(f"{fault}\n" for fault in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
