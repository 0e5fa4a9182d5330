"""The stores that a user would otherwise pick, with the same messages, each as its own documentation says."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Row, microseconds, raw, text, timed
from palaver import Session
from palaver.store import SqliteStore

DEPTHS = (100, 1_000)
ROUNDS = 40
SIZE = 2_000


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time one durable append, at several lengths of the conversation, and reading the last 50 messages."""
    rows: list[Row] = []
    for depth in DEPTHS[:1] if quick else DEPTHS:
        appends: dict[str, Callable[[], object]] = {"": _raw(folder / f"raw-{depth}", depth)}
        for name, make in _PEERS.items():
            try:
                appends[name] = make(folder / f"{name.replace(' ', '-')}-{depth}", depth)
            except ImportError as missing:
                rows.append(Row(f"{name}, at {depth:,} messages", f"not installed ({missing.name})"))
        times: dict[str, list[float]] = {name: [] for name in appends}
        for _ in range(ROUNDS):
            for name, append in appends.items():
                times[name].append(timed(append))
        limit = median(times.pop(""))
        for name, found in times.items():
            ours = median(found)
            what = f"append: {name}, at {depth:,} messages"
            rows.append(Row(what, microseconds(ours), microseconds(limit), f"{ours / limit:.1f}"))
    return rows


def _item(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 else "assistant", "content": text(SIZE, number % 16)}


def _raw(path: Path, depth: int) -> Callable[[], object]:
    connection = raw(path)
    body = json.dumps(_item(1)).encode()
    ids = iter(range(10**9))
    with connection:
        for _ in range(depth):
            connection.execute("INSERT INTO rows VALUES (?, ?)", (next(ids), body))
    return lambda: connection.execute("INSERT INTO rows VALUES (?, ?)", (next(ids), body))


def _palaver(path: Path, depth: int) -> Callable[[], object]:
    dialog = Session.create(SqliteStore(path), "peer").root
    for number in range(depth):
        dialog.put_text(_item(number)["content"])
    words = _item(1)["content"]
    return lambda: dialog.put_text(words)


def _jsonl(path: Path, depth: int) -> Callable[[], object]:
    file = path.open("ab")

    def append() -> None:
        file.write(json.dumps(_item(1)).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())

    for _ in range(depth):
        append()
    return append


def _openai_agents(path: Path, depth: int) -> Callable[[], object]:
    from agents.memory import SQLiteSession  # noqa: PLC0415 - a peer that may not be installed

    session = SQLiteSession("peer", path)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(session.add_items([_item(number) for number in range(depth)]))
    return lambda: loop.run_until_complete(session.add_items([_item(1)]))


def _langgraph(path: Path, depth: int) -> Callable[[], object]:
    from langchain_core.messages import HumanMessage  # noqa: PLC0415 - a peer that may not be installed
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415
    from langgraph.graph import START, MessagesState, StateGraph  # noqa: PLC0415

    saver = SqliteSaver(sqlite3.connect(path, check_same_thread=False))
    builder = StateGraph(MessagesState)
    builder.add_node("keep", lambda _state: {})
    builder.add_edge(START, "keep")
    graph = builder.compile(checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "peer"}}
    graph.update_state(config, {"messages": [HumanMessage(_item(number)["content"]) for number in range(depth)]})
    return lambda: graph.update_state(config, {"messages": [HumanMessage(_item(1)["content"])]})


_PEERS: dict[str, Callable[[Path, int], Callable[[], object]]] = {
    "palaver Dialog.put_text": _palaver,
    "JSONL with fsync": _jsonl,
    "openai-agents SQLiteSession": _openai_agents,
    "LangGraph SqliteSaver update_state": _langgraph,
}
