"""A long session as agents leave it: rounds of a call, its output and a word of the user, a compaction now and then; its calls recorded, or not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from bench.measure import text
from palaver import AssistantMessage, Message, Session, ToolMessage, UserMessage
from palaver.messages import TextContent, ToolCallContent, ToolResultContent, Usage
from palaver.store import Durability, SqliteStore

MODEL = "gpt-4o"

_ENTRIES, _BYTES = 30_000, 100_000_000
_WINDOW = 150_000
"""Tokens at which the session is compacted, as agents do."""

_KEPT = 20_000
_BATCH = 10
"""Rounds that are written in one step where no call is recorded between them."""


def long_session(path: Path, *, recorded: bool, quick: bool) -> tuple[str, int]:
    """Write a store with the session; return what it is in words, and how many calls it has."""
    entries, size = (_ENTRIES // 10, _BYTES // 10) if quick else (_ENTRIES, _BYTES)
    each = 4 if recorded else 3
    rounds, output = entries // each, size * each // entries
    between = _WINDOW * 5 // output  # some five bytes a token
    with closing(SqliteStore(path, durability=Durability.NORMAL)) as store:
        root = Session.create(store, "long").root
        for start in range(0, rounds, 1 if recorded else _BATCH):
            if recorded:
                root.calls.record(root.request("openai-chat", MODEL))
            span = range(start, start + 1 if recorded else min(start + _BATCH, rounds))
            root.append([message for at in span for message in _round(at, output)])
            if span.stop % between < len(span) and span.stop < rounds:
                root.compaction.commit(root.compaction.compose("palaver", _KEPT, model=MODEL))
        found = len(root.calls) or sum(1 for _ in range(rounds))
        held = store.last(root.dialog_id)
    how = "its calls recorded" if recorded else "as imported"
    return f"{held.seq + 1:,} entries, {held.total / 1e6:,.0f} MB, {how}", found


def _round(number: int, size: int) -> list[Message]:
    call = ToolCallContent(id=f"c{number}", name="read", args={"path": f"src/part_{number}.py"})
    said = TextContent(content=f"I read part {number}.")
    usage = Usage(input_tokens=50_000 + number, output_tokens=200, cache_read_tokens=40_000)
    words = f"part {number} zebra{number}\n{text(size, number % 64)}"
    output = ToolResultContent(id=f"c{number}", name="read", content=words, is_error=number % 50 == 7)
    return [
        AssistantMessage(contents=(said, call), model=MODEL, usage=usage),
        ToolMessage.from_result(output),
        UserMessage(f"Go on with {number}."),
    ]
