"""Run the six tasks with each library against one server, check every result, and count the lines.

The server is the peer server of the tests: it speaks the API of OpenAI on loopback and answers from fixtures.json. Nothing inside a
library is replaced. A program reads the server's address from OPENAI_BASE_URL, as OpenAI's client does.
"""

from __future__ import annotations

import ast
import io
import os
import resource
import signal
import subprocess
import sys
import time
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.measure import Row
from tests.peers.server import Peer, serve, why_missing

LIBRARIES = {"palaver": "palaver", "pydantic_ai": "pydantic-ai", "openai_agents": "openai-agents"}
"""How the files of each library end, and what it is called."""

PROGRAMS = Path(__file__).parent
ROUNDS = 3
PATIENCE = 120.0
"""Seconds after which a program is given up."""
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Bench:
    """Where a program runs: an empty folder, the server, and how the program finds the server."""

    program: Path
    folder: Path
    peer: Peer

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the program."""
        server = {"OPENAI_BASE_URL": f"{self.peer.url}/v1", "OPENAI_API_KEY": "none"}
        return subprocess.Popen(
            [sys.executable, str(self.program), *arguments],
            cwd=self.folder,
            env={**os.environ, **server, "OPENAI_AGENTS_DISABLE_TRACING": "1"},  # traces would go to another machine
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def output(self, *arguments: str) -> str:
        """Run the program to its end and return what it prints."""
        with self.start(*arguments) as process:
            printed, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"{self.program.name} failed:\n{errors[-3_000:]}"
        return printed

    def requests(self) -> list[str]:
        """Return the bodies of the requests that the model got, oldest first."""
        return [str(entry["body"]) for entry in self.peer.journal()]


def _prints(expected: str, requests: int) -> Callable[[Bench], None]:
    """Return a check of a program that runs once: what it prints, and how often it asks the model."""

    def check(bench: Bench) -> None:
        _equal(bench, bench.output(), f"{expected}\n")
        _equal(bench, len(bench.requests()), requests)

    return check


def _approval(bench: Bench) -> None:
    """Check that the call waits without being run, and that a second process runs it and finishes."""
    _equal(bench, bench.output("ask"), "refund {'amount': 50}\n")
    _equal(bench, len(bench.requests()), 1)
    _equal(bench, bench.output("approve"), "You get 50 back.\n")
    _equal(bench, len(bench.requests()), 2)


def _streaming(bench: Bench) -> None:
    """Check that the answer is asked for as a stream and is printed in pieces."""
    pieces = bench.output().splitlines()
    _equal(bench, "".join(pieces), "Once upon a time there was a lamp.")
    assert len(pieces) > 1, f"{bench.program.name}: the answer arrived in one piece"
    assert "'stream': True" in bench.requests()[0], f"{bench.program.name} did not ask for a stream"


def _resume(bench: Bench) -> None:
    """Kill the program in its second tool call, start it again, and check that the first call and its answer are not repeated."""
    ledger = bench.folder / "ledger.txt"
    with bench.start() as process:
        deadline = time.monotonic() + PATIENCE
        while not (ledger.exists() and "ship 7\n" in ledger.read_text()):
            assert process.poll() is None, f"{bench.program.name} ended early"
            assert time.monotonic() < deadline, f"{bench.program.name} never reached the second tool"
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    _equal(bench, process.returncode, -signal.SIGKILL)
    _equal(bench, ledger.read_text(), "charge 7\nship 7\n")
    _equal(bench, len(bench.requests()), 2)
    _equal(bench, bench.output(), "Order 7 is on its way.\n")
    _equal(bench, ledger.read_text(), "charge 7\nship 7\nship 7\n")
    _equal(bench, len(bench.requests()), 3)


def _equal(bench: Bench, found: object, expected: object) -> None:
    assert found == expected, f"{bench.program.name}: {found!r} is not {expected!r}"


TASKS: Mapping[str, Callable[[Bench], None]] = {
    "tools": _prints("There are seven lamps.", 2),
    "approval": _approval,
    "subagent": _prints("We have the key.", 3),
    "output": _prints("Order(item='lamp', count=2)", 1),
    "streaming": _streaming,
    "resume": _resume,
}
"""The tasks, and what runs and checks a program for one."""


def lines(task: str, library: str) -> int:
    """Count a program's lines of code: imports count; blank lines, comments and docstrings do not."""
    source = (PROGRAMS / f"{task}_{library}.py").read_text(encoding="utf-8")
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(code)


def _processor() -> float:
    """Return the processor's seconds of all programs that ended: unlike a clock's, they do not depend on what else runs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Run and check each program; print its lines, and the processor's seconds (the median; imports are most of it)."""
    console = Console(highlight=False, width=150)
    if missing := why_missing():
        return [Row("six tasks", missing)]
    seconds: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(TASKS, LIBRARIES)}
    with serve(PROGRAMS / "fixtures.json") as peer:
        for number in range(1 if quick else ROUNDS):
            for (task, library), times in seconds.items():
                place = folder / f"{task}-{library}-{number}"
                place.mkdir()
                peer.forget()
                start = _processor()
                TASKS[task](Bench(PROGRAMS / f"{task}_{library}.py", place, peer))
                times.append(_processor() - start)
    table = Table(
        "task", *(f"lines, {name}" for name in LIBRARIES.values()), "CPU seconds, in the same order", box=None
    )
    for task in TASKS:
        times_of = " / ".join(f"{median(seconds[task, library]):.1f}" for library in LIBRARIES)
        table.add_row(task, *(str(lines(task, library)) for library in LIBRARIES), times_of)
    table.add_row("all", *(str(sum(lines(task, library) for task in TASKS)) for library in LIBRARIES))
    console.print(table)
    return []
