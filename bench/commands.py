"""Every command of the terminal on recorded sessions of Claude Code and Codex, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.measure import Row, timed

_FOLDERS = ("claude_code", "codex")

_AIM = "≤ 0.5 s"

_NO_AIM = frozenset({"import", "import again", "search, first", "cost, first"})
"""What may take longer: reading files, and building the index."""


_ON_ONE = (
    ("show",),
    ("view",),
    ("view", "--explain"),
    ("view", "--budget", "50000"),
    ("view", "--call", "20"),
    ("view", "--wire", "anthropic"),
    ("calls",),
    ("doctor",),
    ("compact", "--budget", "50000"),
    ("branch", "tree"),
    ("branch", "fork"),
    ("export", "--to", "markdown"),
    ("export", "--to", "bundle", "-o", "FILE"),
)
"""Commands on one session, which is their first argument."""


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Import the sessions of the folder PALAVER_TEST_DATA names, and time the commands.

    Those on one session are timed on the session of the most messages and on the one in the middle.
    """
    recorded = os.environ.get("PALAVER_TEST_DATA", "")
    places = [Path(recorded, name) for name in _FOLDERS]
    if not recorded or not all(place.is_dir() for place in places):
        return [Row("commands: PALAVER_TEST_DATA names no folder of recorded sessions", "skipped")]
    surroundings = os.environ | {
        "PALAVER_STORE": str(folder / "palaver.db"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }

    def command(*words: str) -> str:
        """Run a command; 1 says that it found faults."""
        done = subprocess.run(
            [sys.executable, "-m", "palaver", *words], env=surroundings, capture_output=True, text=True, check=False
        )
        if done.returncode not in {0, 1}:
            raise RuntimeError(f"palaver {' '.join(words)}: {done.stderr}")
        return done.stdout

    def row(name: str, *words: str, rounds: int = 1) -> Row:
        """Time a command; of several runs the fastest counts, as other programs only slow it down."""
        times = [timed(partial(command, *words)) for _ in range(rounds)]
        return Row(f"palaver {name}", f"{min(times):.2f} s", aim="" if name in _NO_AIM else _AIM)

    command("--help")
    rows = [row("import", "import", *map(str, places)), row("import again", "import", *map(str, places))]
    rows.append(row("cost, first", "cost"))
    several = 2 if quick else 4
    rows += [
        row(" ".join(words), *words, rounds=several)
        for words in (("sessions",), ("cost",), ("cost", "--by", "session"), ("search", "tests"), ("store", "receipts"))
    ]
    rows += [row("doctor", "doctor"), row("store verify", "store", "verify")]
    listed = [json.loads(line) for line in command("sessions", "--json").splitlines()]
    listed.sort(key=lambda one: int(one["messages"]))
    for one in (listed[-1], listed[len(listed) // 2]):
        for words in _ON_ONE:
            name = " ".join(words)
            given = [str(folder / "one.palaver") if word == "FILE" else word for word in words]
            given.insert(2 if words[0] == "branch" else 1, str(one["session"]))
            rows.append(row(f"{name} ({one['messages']:,} messages)", *given, rounds=several))
    return rows
