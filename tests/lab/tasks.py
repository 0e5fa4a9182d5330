"""Tasks for workers to do: they end, fail, hang and die."""

import os
import subprocess
import sys
import threading
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path

from palaver.errors import InvalidInput
from palaver.lab.workers import Began

CHILD = "import sys, time; held = open(sys.argv[1], 'w'); print('begun', flush=True); time.sleep(90)"
"""Holds a pipe open for as long as it lives."""


@dataclass(frozen=True)
class Doing:
    """A task with several things to do; where it was ended at one, it goes on with the rest.

    Attributes:
        todo: `fine`, `fails`, `dies`, `hangs`, `starts` (a process of its own that goes on), `closes` (all files, and goes
            on), `prints` or `dies early`.
        pipe: A named pipe, for the process that is started.
        ended: What it was ended at, and why.
    """

    todo: tuple[str, ...]
    pipe: Path | None = None
    ended: tuple[tuple[Hashable, str], ...] = ()

    def __call__(self, began: Began) -> tuple[int, tuple[tuple[Hashable, str], ...]]:
        """Do it, and give the process that did and what was passed over."""
        if "dies early" in self.todo and not self.ended:
            os._exit(4)
        known = dict(self.ended)
        for what in self.todo:
            if what not in known:
                began(None if what == "starts" else what)
                self._do(what)
        began(None)
        return os.getpid(), self.ended

    def after(self, doing: Hashable | None, why: str) -> "Doing":
        """Pass over what it was ended at."""
        return replace(self, ended=(*self.ended, (doing, why)))

    def _do(self, what: str) -> None:
        if what == "fails":
            raise InvalidInput("It is wrong.", hint="Mend it.")
        if what == "dies":
            os._exit(3)
        if what == "starts":
            child = subprocess.Popen([sys.executable, "-c", CHILD, str(self.pipe)], stdout=subprocess.PIPE)
            assert child.stdout is not None
            child.stdout.readline()
        if what == "prints":
            os.write(1, b"a word of a policy's\n")
        if what == "closes":
            os.closerange(3, 256)
            threading.Event().wait(20)
            os._exit(0)
        if what == "hangs":
            while True:
                pass
