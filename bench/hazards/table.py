"""Play the hazards in each library, in a process of its own, and write the table of docs/explanation/hazards.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.table import Table

from bench.hazards.plays import HAZARDS, verdict
from bench.measure import Row

WAYS: Mapping[str, str] = {
    "palaver": "palaver_way",
    "pydantic-ai": "pydantic_ai_way",
    "openai-agents": "openai_agents_way",
    "LangChain": "langchain_way",
    "LiteLLM": "litellm_way",
}
"""The libraries, and where their conversations are."""
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "hazards.md"
BEGIN, END = "<!-- what the servers saw -->\n", "<!-- end -->\n"
_SHOWN = 100
"""How many characters of the beginning and of the end of a refusal the page shows."""


def run(folder: Path, /, *, quick: bool) -> list[Row]:
    """Print the table, and write the page unless it is a quick run."""
    del folder
    outcomes = {library: _outcome(way) for library, way in WAYS.items()}
    table = Table("hazard", *outcomes, box=None)
    for at, hazard in enumerate(HAZARDS):
        table.add_row(hazard.name, *(outcome["cells"][at][0] for outcome in outcomes.values()))
    Console(width=150).print(table)
    if not quick:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(
            head + BEGIN + "\n".join(_lines(outcomes)) + "\n" + END + rest.partition(END)[2], encoding="utf-8"
        )
    return []


def _outcome(way: str) -> dict[str, Any]:
    """Return the versions and the cells of a library; the child's complaints are its own."""
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # else it asks another machine
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "bench.hazards.table", way],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{way} failed:\n{done.stderr[-3_000:]}"
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def _lines(outcomes: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return the table and its notes in Markdown."""
    lines = ["", f"| what happens | {' | '.join(outcomes)} |", "|---|" + "---|" * len(outcomes)]
    notes: list[str] = []
    for at, hazard in enumerate(HAZARDS):
        cells = []
        for outcome in outcomes.values():
            state, said = outcome["cells"][at]
            if said and said not in notes:
                notes.append(said)
            cells.append(f"{state} [{notes.index(said) + 1}]" if said else state)
        lines.append(f"| {hazard.line} | {' | '.join(cells)} |")
    lines.append("")
    for number, said in enumerate(notes, 1):
        lines.append(f"{number}. {said if len(said) <= 2 * _SHOWN else f'{said[:_SHOWN]} … {said[-_SHOWN:]}'}")
    named = [f"{name} {found}" for outcome in outcomes.values() for name, found in outcome["versions"].items()]
    return [*lines, "", f"Releases: {', '.join(named)}.", ""]


async def _played(way: str) -> None:
    library = import_module(f"bench.hazards.{way}")
    cells = [await verdict(hazard, library.Talk) for hazard in HAZARDS]
    print(json.dumps({"versions": {name: version(name) for name in library.PACKAGES}, "cells": cells}), flush=True)


if __name__ == "__main__":
    anyio.run(_played, sys.argv[1])
    os._exit(0)  # no library's threads keep it
