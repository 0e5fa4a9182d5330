"""`python -m palaver.repomap`: a map of a folder as text and as JSON, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from palaver.tokens import counter
from tests.repomap.made_up import SHOP, written


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the module in a folder."""
    command = [sys.executable, "-m", "palaver.repomap", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=100)


def test_a_folder_is_mapped_within_a_budget(tmp_path: Path) -> None:
    """The map goes to standard output, what it shows of what there is to standard error; what is mentioned comes first."""
    shop = written(tmp_path / "shop", SHOP)
    ran = run("--tokens", "300", cwd=shop)
    size = counter("").text(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, f"{size} tokens: 9 of 9 definitions, 6 of 6 files.\n")
    (shop / "link").symlink_to(shop)
    ran = run(shop, "--tokens", "75", "--model", "gpt-4o", "--mention", "shelf.py", "--json", cwd=tmp_path)
    row = json.loads(ran.stdout)
    assert (row["left_out"], "lonely" in row["map"]) == ({"link": 1}, True)
    assert row["tokens"] == counter("gpt-4o").text(row["map"]) <= 75
    ran = run(shop / "none", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (3, "", 1)
