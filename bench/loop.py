"""A tool round of an agent: it must cost the same wherever in the turn it stands, and whatever the log has that the model is not shown.

What is shown costs little: of each request what is new is compiled and checked with its neighbours, and its bytes are put together.

Each round is timed from the moment the model is asked to the moment it is asked again: its answer, the call, the result, and the next request.
The model is a script, and the tool does nothing. LLLM's loop stands beside ours. It keeps nothing on a disk, and its script compiles no
request, while ours does both; what it does is copy the dialog before each call of the model, and keep the copies.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.measure import Row, microseconds, resident, text, timed
from palaver import AssistantMessage, Message, Prompt, ToolCallContent, ToolMessage, ToolResultContent, tool
from palaver.agent import Agent
from palaver.providers import ScriptedProvider
from palaver.store import MemoryStore, SqliteStore, Store

DEPTHS = {200: 100, 2_000: 100, 10_000: 30}
"""Messages before the turn, and how many rounds of tools it has."""
FEW = 10
WINDOW = 20_000
"""Tokens of the view that a compaction leaves, as one does before the model's window is full."""


class Turn(NamedTuple):
    """What a turn took.

    Attributes:
        lengths: How long each round took, in seconds.
        kept: What memory grew by, in MB.
        request: How long compiling and checking a request takes at its end, in seconds; 0 where nobody does.
    """

    lengths: list[float]
    kept: float
    request: float = 0.0


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time rounds on top of conversations of several lengths: on the disk, in memory, and LLLM's."""
    rows: list[Row] = []
    for depth, rounds in DEPTHS.items():
        if quick and depth > 1_000:
            continue
        with closing(SqliteStore(folder / f"loop-{depth}.db")) as store:
            durable = _ours(store, depth, rounds)
        rows += _told(f"a tool round on {depth:,} messages, durable", durable.lengths)
        rows.append(Row("    of which compiling and checking the request", microseconds(durable.request)))
        rows.append(Row(f"    what it keeps of {rounds} rounds", f"{durable.kept:,.0f} MB"))
        rows += _told(f"  in memory, on {depth:,}", _ours(MemoryStore(), depth, rounds).lengths)
        with closing(SqliteStore(folder / f"compacted-{depth}.db")) as store:
            small = _ours(store, depth, rounds, compacted=True)
        rows += _told(f"  durable, on {depth:,} compacted to {WINDOW:,} tokens", small.lengths)
        rows += _lllm_rows(depth, rounds, median(durable.lengths))
    return rows


def _told(what: str, rounds: list[float]) -> Iterator[Row]:
    first, last = median(rounds[:FEW]), median(rounds[-FEW:])
    yield Row(what, microseconds(median(rounds)))
    yield Row(
        "    its last ten rounds, against the first ten",
        microseconds(last),
        microseconds(first),
        f"{last / first:.2f}",
        "1",
    )


def _lengths(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


# --- ours -----------------------------------------------------------------------------------------------------------------------


def _ours(store: Store, depth: int, rounds: int, *, compacted: bool = False) -> Turn:
    """Let an agent of ours call a tool in each of its rounds."""
    times: list[float] = []

    def answer(_request: object) -> object:
        times.append(time.perf_counter())
        provider.requests.clear()  # else the script keeps all of them
        if len(times) > rounds:
            return "Done."
        return {"tool_calls": [{"name": "read", "arguments": {"path": f"{len(times)}.py"}, "id": f"now_{len(times)}"}]}

    prompt = Prompt(path="bench/reader", prompt="You read files.", function_list=[tool(read)])
    provider = ScriptedProvider(answer)
    agent = Agent("reader", prompt, "gpt-5", provider, store=store, max_interrupt_steps=rounds + 1)
    agent.open("main")
    agent.current_dialog.append([message for number in range(depth // 2) for message in _round(number)])
    if compacted:
        agent.current_dialog.compaction.preview("default", WINDOW, model="gpt-5").approve()
    agent.receive("Go on.")
    before = _settled()
    agent.respond()
    kept = (_settled() - before) / 2**20
    request = median(timed(lambda: agent.current_dialog.request("openai-chat", "gpt-5")) for _ in range(5))
    return Turn(_lengths(times), kept, request)


def _settled() -> int:
    """Return the memory in use once the garbage is gone, in bytes."""
    gc.collect()
    return resident()


async def read(path: str) -> str:
    """Read a file."""
    return f"{path}: {_PAGE}"


_PAGE = text(1_000, 1)


def _round(number: int) -> tuple[Message, Message]:
    call = ToolCallContent(id=f"call_{number}", name="read", args={"path": f"src/{number}.py"})
    return (
        AssistantMessage(contents=(call,), response_id=f"response-{number}"),
        ToolMessage.from_result(ToolResultContent(id=call.id, name="read", content=text(1_000, number % 64))),
    )


# --- LLLM -----------------------------------------------------------------------------------------------------------------------


def _lllm_rows(depth: int, rounds: int, ours: float) -> Iterator[Row]:
    try:
        theirs = _lllm(depth, rounds)
    except ImportError as missing:
        yield Row("  LLLM's loop", f"not installed ({missing.name})")
        return
    yield Row(
        f"  LLLM's loop on {depth:,}, against it",
        microseconds(median(theirs.lengths)),
        microseconds(ours),
        f"{median(theirs.lengths) / ours:.1f}",
    )
    yield Row(f"    what it keeps of {rounds} rounds", f"{theirs.kept:,.0f} MB")


def _lllm(depth: int, rounds: int) -> Turn:
    """Let an agent of LLLM's do the same."""
    from lllm.runtimes import native as theirs  # noqa: PLC0415 - a peer that may not be installed
    from lllm.runtimes.native.invokers.base import BaseInvoker  # noqa: PLC0415 - the same

    times: list[float] = []

    def said(words: str, **fields: Any) -> Any:  # noqa: ANN401 - their message
        return theirs.Message(role=fields.pop("role", "assistant"), content=words, name="reader", **fields)

    def called(number: int) -> Any:  # noqa: ANN401 - their message
        call = theirs.FunctionCall(id=f"call_{number}", name="read", arguments={"path": f"src/{number}.py"})
        return said("", role="tool_call", function_calls=[call])

    class Script(BaseInvoker):  # type: ignore[misc] # untyped
        def call(self, *_: object, **__: object) -> Any:  # noqa: ANN401 - their result
            times.append(time.perf_counter())
            return theirs.InvokeResult(message=said("Done.") if len(times) > rounds else called(depth + len(times)))

    properties = {"path": {"type": "string"}}
    their_read = theirs.Function(name="read", description="Read a file.", properties=properties, required=["path"])
    their_read.function = lambda path: f"{path}: {_PAGE}"
    prompt = theirs.Prompt(path="bench/reader", prompt="You read files.", function_list=[their_read])
    agent = theirs.Agent("reader", prompt, "gpt-5", Script({}), max_interrupt_steps=rounds + 1)
    agent.open("main")
    for number in range(depth // 2):
        agent.current_dialog.append(called(number))
        result = said(text(1_000, number % 64), role="tool", metadata={"tool_call_id": f"call_{number}"})
        agent.current_dialog.append(result)
    before = _settled()
    agent.respond()
    return Turn(_lengths(times), (_settled() - before) / 2**20)
