"""Whoever catches everything says why."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

CATCHES_ALL = re.compile(r"except(\s+\(?(Exception|BaseException)\b[^:]*)?:")


def test_whoever_catches_everything_says_why() -> None:
    """`except Exception` and its kin have a reason beside them, in words: not only the number of a rule."""
    found, silent = 0, []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if CATCHES_ALL.match(line.strip()):
                found += 1
                _, _, why = line.partition("#")
                if not re.sub(r"noqa: [A-Z0-9, ]+", "", why).strip(" -"):
                    silent.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found, "nothing was looked at"
    assert not silent, "\n".join(silent)
