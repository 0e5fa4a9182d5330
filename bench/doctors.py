"""The doctor on transcripts of 100 MB: how long it reads against a plain decode of every line, and what memory it takes."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.imports import session_file
from bench.measure import Row, compared, timed
from palaver.transcripts import scan_file

_BYTES = 100_000_000
_PI_TURN = 5_036  # bytes of a turn as `session_file` writes it
_ROUNDS = 3
_STAMP = "2026-01-01T00:00:00.000Z"


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Scan a long session of each format that is read line by line."""
    size = _BYTES // 10 if quick else _BYTES
    rows: list[Row] = []
    for name, write in _FORMS.items():
        path = folder / f"{name}.jsonl"
        write(path, size)
        rows.extend(_measured(name, path))
        path.unlink()
    return rows


def _measured(name: str, path: Path) -> Iterator[Row]:
    ours: list[float] = []
    limit: list[float] = []
    for _ in range(_ROUNDS):
        ours.append(timed(lambda: list(scan_file(path))))
        limit.append(timed(lambda: _decoded(path)))
    what = f"doctor on {path.stat().st_size / 1e6:,.0f} MB of {name}, json.loads of each line"
    yield compared(what, median(ours), median(limit), "≤ 3")
    tracemalloc.start()
    (found,) = scan_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not found.findings, found.findings[:3]
    yield Row("  its memory at the most", f"{peak / 2**20:,.1f} MiB", f"{found.total:,} records", "", "constant")


def _decoded(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


# --- sessions -------------------------------------------------------------------------------------------------------------------


def _pi(path: Path, size: int) -> None:
    session_file(path, size // _PI_TURN)


def _claude(path: Path, size: int) -> None:
    """A session of Claude Code: a call with a thought, and its result of 4 KB, in each turn; a picture in every hundredth."""
    _written(path, size, _claude_turn)


def _codex(path: Path, size: int) -> None:
    """A session of Codex: sealed reasoning, a call, its output of 4 KB, and what mirrors them for people."""
    _written(path, size, _codex_turn)


def _written(path: Path, size: int, turn: Callable[[int], list[Mapping[str, Any]]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        number = 0
        while file.tell() < size:
            file.writelines(json.dumps(row) + "\n" for row in turn(number))
            number += 1


def _claude_turn(number: int) -> list[Mapping[str, Any]]:
    def row(kind: str, part: int, content: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        parent = f"{number}-{part - 1}" if part else (f"{number - 1}-2" if number else None)
        about = {"sessionId": "bench", "timestamp": _STAMP, "cwd": "/project", "version": "2.0.0", "isSidechain": False}
        message = {"role": kind, "content": content, **more}
        return {"type": kind, "uuid": f"{number}-{part}", "parentUuid": parent, "message": message, **about}

    thought = {"type": "thinking", "thinking": "I look at the next file. " * 8, "signature": "c2lnbmVk" * 40}
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"/src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "a line of code é \t1→\n" * 200}
    said = {"id": f"msg_{number}", "model": "claude-sonnet-4-5"}
    return [
        row("assistant", 0, [thought], **said),
        row("assistant", 1, [call], **said),
        row("user", 2, [result]),
    ]


def _codex_turn(number: int) -> list[Mapping[str, Any]]:
    def row(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": _STAMP, "type": kind, "payload": payload}

    head = [row("session_meta", {"id": "bench", "cwd": "/project", "cli_version": "0.1"})] if not number else []
    call = {"type": "function_call", "call_id": f"call_{number}", "name": "shell"}
    output = {"type": "function_call_output", "call_id": f"call_{number}", "output": "a line of code é\n" * 240}
    return [
        *head,
        row("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA" * 200}),
        row("response_item", {**call, "arguments": json.dumps({"command": ["cat", f"src/{number}.py"]})}),
        row("event_msg", {"type": "token_count", "info": {"total_token_usage": {"input_tokens": number}}}),
        row("response_item", output),
    ]


_FORMS: Mapping[str, Callable[[Path, int], None]] = {"pi": _pi, "Claude Code": _claude, "Codex": _codex}
