"""Processes that do something and may be killed. Each is forked from one that has imported everything, so that none has to start Python.

A module of tests offers its deeds with `serve` when it is run; `forking` runs it, and returns a function that runs one of them in a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["forking", "serve"]

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def forking(module: str) -> Iterator[Callable[..., int]]:
    """Run a module that serves, and return a function that runs one of its deeds in a forked process and returns the exit code, -9 for a kill."""
    command = [sys.executable, "-m", module]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        sent, said = process.stdin, process.stdout

        def deed(name: str, /, **wanted: object) -> int:
            sent.write(json.dumps({"deed": name, **wanted}) + "\n")
            sent.flush()
            return int(said.readline())

        yield deed
        sent.close()


def serve(*deeds: Callable[..., None]) -> None:
    """Fork for every line of standard input, do in the child what the line says, and say how the child ended."""
    named = {each.__name__: each for each in deeds}
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                named[wanted.pop("deed")](**wanted)
                code = 0
            except BaseException:  # noqa: BLE001 - told by the parent's line
                traceback.print_exc()
            finally:
                os._exit(code)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
