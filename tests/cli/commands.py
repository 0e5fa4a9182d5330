"""Running the command line in this process or in a child, and small transcripts for it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from palaver.cli import main
from tests.formats.samples import Claude, call, codex, item, said, text

PROGRAM = (sys.executable, "-m", "palaver")
"""The entry point as a child is started with it."""


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        """Return standard output as JSON objects, one a line; fails when a line is none."""
        found = [json.loads(line) for line in self.out.splitlines()]
        assert all(isinstance(row, dict) for row in found)
        return found

    def row(self) -> dict[str, Any]:
        """Return the one object of standard output."""
        (found,) = self.rows()
        return found


@dataclass(frozen=True)
class Palaver:
    """The command line over one store, in this process."""

    folder: Path

    @property
    def store(self) -> Path:
        """The store's file."""
        return self.folder / "store.db"

    def __call__(self, *words: object) -> Ran:
        """Run a command with this store."""
        return run(*words, "--store", self.store)

    def file(self, name: str, data: bytes | str) -> Path:
        """Write a file beside the store."""
        path = self.folder / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def imported(self, data: bytes, name: str = "talk.jsonl") -> dict[str, Any]:
        """Import a transcript of these bytes."""
        ran = self("import", self.file(name, data), "--json")
        assert ran.code == 0, ran
        return ran.row()


def run(*words: object) -> Ran:
    """Run a command in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return Ran(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(errors="surrogateescape")


def child(*words: object, **environment: str) -> Ran:
    """Run a command in a child with pipes for both streams."""
    ran = subprocess.run(
        [*PROGRAM, *map(str, words)], capture_output=True, env={**os.environ, **environment}, timeout=100, check=False
    )
    return Ran(ran.returncode, ran.stdout.decode(errors="surrogateescape"), ran.stderr.decode())


PATH = "src/palaver/wire/compile.py"
CODE = "def fold(reader):\n\treturn reader.entries[0]\r\n"


def talk() -> bytes:
    """A Claude Code session with calls, code with tabs, text in Chinese, a rewind, and an escape sequence in a tool's output."""
    session = Claude()
    session.user("u1", f"Please look at {PATH}")
    session.model("a1", "m1", text("I look."), call("t1", "Read", file_path=PATH), call("t2", command="cat fold.py"))
    session.result("r1", "t1", "x = 1\n" * 400)
    session.result("r2", "t2", CODE, after="a1")
    session.model("a2", "m2", text("會話狀態不會遺失。"), call("t3", command="ls --color"))
    session.result("r3", "t3", "\x1b[31mred\x1b[0m \x1b]0;title\x07")
    session.model("a3", "m3", text("It is red."))
    session.user("u2", "And now?")
    session.model("a4", "m4", text("Now it is done."))
    session.user("u3", "Another question instead.", after="a3")
    session.model("a5", "m5", text("Another answer."))
    return session.bytes()


def rollout() -> bytes:
    """A Codex session of a few items."""
    return codex(
        said("user", "Count the files."),
        item("function_call", call_id="c1", name="shell", arguments='{"command": "ls | wc -l"}'),
        item("function_call_output", call_id="c1", output="12"),
        said("assistant", "There are twelve."),
    )
