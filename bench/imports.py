"""Importing a transcript, and importing palaver itself."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.measure import Row, compared, timed
from palaver.log import MessageEntry, decode_entry
from palaver.messages import Message
from palaver.session import Session
from palaver.store import MemoryStore, SqliteStore
from palaver.transcripts import Importer

_TURNS = 4_000


def session_file(path: Path, turns: int) -> Path:
    """Write a session file in the form of pi's: a call of 300 characters and a result of 4,000 in each turn."""
    with path.open("w", encoding="utf-8") as file:
        head = {
            "type": "session",
            "id": "bench",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": "/project",
            "provider": "anthropic",
        }
        file.write(json.dumps({**head, "modelId": "claude-sonnet-4-5", "thinkingLevel": "off"}) + "\n")
        for number in range(turns):
            for message in _turn(number):
                row = {"type": "message", "timestamp": "2026-01-01T00:00:00.000Z", "message": message}
                file.write(json.dumps(row) + "\n")
    return path


def _turn(number: int) -> list[dict[str, object]]:
    call = {
        "type": "toolCall",
        "id": f"call_{number}",
        "name": "read",
        "arguments": {"path": f"src/{number}.py", "note": "n" * 250},
    }
    usage = {"input": 10, "output": 10, "cacheRead": 0, "cacheWrite": 0}
    told = {
        "role": "assistant",
        "content": [{"type": "text", "text": "I read it."}, call],
        "usage": usage,
        "stopReason": "toolUse",
    }
    given = {"role": "toolResult", "toolCallId": f"call_{number}", "toolName": "read", "isError": False}
    first: list[dict[str, object]] = (
        [{"role": "user", "content": [{"type": "text", "text": "Read everything."}]}] if not number else []
    )
    return [
        *first,
        {**told, "model": "claude-sonnet-4-5"},
        {**given, "content": [{"type": "text", "text": "line of code\n" * 300}]},
    ]


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time an import against reading the same records and validating them as messages; and its memory at two sizes."""
    turns = _TURNS // 10 if quick else _TURNS
    path = session_file(folder / "session.jsonl", turns)
    _own_form(path)
    ours: list[float] = []
    limit: list[float] = []
    for number in range(3):
        with closing(SqliteStore(folder / f"import-{number}.db")) as store:
            ours.append(timed(lambda store=store: list(Importer(store).import_path(path))))  # type: ignore[misc]
        limit.append(timed(lambda: list(_validated(path))))
    row = compared(
        f"import of {path.stat().st_size / 1e6:,.0f} MB, {turns * 2:,} messages", median(ours), median(limit), "≤ 4"
    )
    small = session_file(folder / "small.jsonl", turns // 4)
    peaks = [_peak(folder / f"memory-{number}.db", one) for number, one in enumerate((small, path))]
    grows = (peaks[1] - peaks[0]) / (turns * 2 - turns // 4 * 2)
    memory = Row(
        "  its memory at the most",
        f"{peaks[1] / 2**20:,.1f} MiB",
        f"{peaks[0] / 2**20:,.1f} MiB at a quarter",
        f"{grows:,.0f} bytes a record",
        "a few hundred",
    )
    return [row, memory]


def _validated(path: Path) -> list[Message]:
    """Decode each record, and each message of the same content in our own form with full validation, keeping none."""
    with path.open(encoding="utf-8") as file, path.with_suffix(".own").open(encoding="utf-8") as own:
        for line, message in zip(file, own, strict=True):
            json.loads(line)
            Message.model_validate(json.loads(message))
    return []


def _own_form(path: Path) -> None:
    """Write the same messages as our own JSON, a line each, for the limit."""
    store = MemoryStore()
    (one,) = Importer(store, keep_source=False).import_path(path)
    assert one.main is not None
    entries = [decode_entry(body) for _, body in store.bodies(one.main)]
    said = [entry.message.to_dict() for entry in entries if isinstance(entry, MessageEntry)]
    blank = json.dumps({"role": "user", "content": "x"})
    with path.with_suffix(".own").open("w", encoding="utf-8") as file:
        file.write(f"{blank}\n")  # for the first record, which holds no message
        file.writelines(f"{json.dumps(message)}\n" for message in said)


def _peak(store_path: Path, path: Path) -> int:
    with closing(SqliteStore(store_path)) as store:
        tracemalloc.start()
        list(Importer(store).import_path(path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def run_start(folder: Path, *, quick: bool) -> list[Row]:
    """Compare the processor time of fresh processes with that of what they stand on; best of many rounds.

    The store that is listed has twenty sessions. What is read from the disk has been read before, and what is compiled is kept: byte code is
    written into a folder of our own, where the environment would not have it.
    """
    store = folder / "start.db"
    with closing(SqliteStore(store)) as made:
        for number in range(20):
            Session.create(made, f"session {number}")
    jobs = {
        "nothing": ["-c", "pass"],
        "a model of pydantic": ["-c", "from pydantic import BaseModel\nclass One(BaseModel): number: int = 0"],
        "from palaver import Session": ["-c", "from palaver import Session"],
        "import apsw, pydantic": ["-c", "import apsw, pydantic"],
        "import palaver": ["-c", "import palaver"],
        "palaver --help": ["-m", "palaver", "--help"],
        "palaver sessions": ["-m", "palaver", "sessions", "--store", str(store)],
        "palaver show": ["-m", "palaver", "show", "session 1", "--store", str(store)],
    }
    surroundings = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(5 if quick else 21):
        for name, words in jobs.items():
            best[name] = min(best[name], _started(words, surroundings))
    ours, model = (best[name] - best["nothing"] for name in ("from palaver import Session", "a model of pydantic"))
    session = compared("from palaver import Session, against a model of pydantic", ours, model, "≤ 2")
    limit = best["import apsw, pydantic"]
    aims = {"import palaver": "≤ 1", "palaver --help": "≤ 2.5", "palaver sessions": "", "palaver show": ""}
    rows = [compared(f"{name}, against `import apsw, pydantic`", best[name], limit, aim) for name, aim in aims.items()]
    return [session, *rows]


def _started(words: list[str], surroundings: dict[str, str]) -> float:
    """Return the processor time of a fresh process of Python, in seconds, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, env=surroundings, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
