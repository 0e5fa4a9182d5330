"""A tool round of an agent: what it costs must be what is new in it, however long the conversation before, and wherever in the turn.

Each round is timed from the moment the model is asked to the moment it is asked again: its answer, the call, the result, and the next request.
The model is a script, and the tool does nothing. LLLM's loop stands beside ours. It keeps nothing on a disk, and its script compiles no
request, while ours does both; what it does is copy the dialog before each call of the model, and keep the copies.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Row, microseconds, resident, text
from palaver import AssistantMessage, Message, Prompt, ToolCallContent, ToolMessage, ToolResultContent, tool
from palaver.agent import Agent, ProviderInvoker
from palaver.models import ScriptedProvider
from palaver.store import MemoryStore, SqliteStore, Store

DEPTHS = (200, 2_000, 10_000)
ROUNDS = 100
FEW = 10
WINDOW = 20_000
"""Tokens of the view that a compaction leaves, as one does before the model's window is full; a request is compiled whole, so a round costs
what the view has, and what the log has costs nothing."""
MANY_COPIES = 300_000
"""How many messages LLLM may copy in one run: it keeps all copies, at more than a kilobyte each."""


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time 100 rounds on top of conversations of several lengths: on the disk, in memory, and LLLM's."""
    rows: list[Row] = []
    for depth in DEPTHS:
        if quick and depth > DEPTHS[1]:
            continue
        with closing(SqliteStore(folder / f"loop-{depth}.db")) as store:
            durable = _ours(store, depth)
        rows += _told(f"a tool round on {depth:,} messages, durable", durable)
        rows += _told(f"  in memory, on {depth:,}", _ours(MemoryStore(), depth))
        with closing(SqliteStore(folder / f"compacted-{depth}.db")) as store:
            rows += _told(
                f"  durable, on {depth:,} compacted to {WINDOW:,} tokens", _ours(store, depth, compacted=True)
            )
        rows += _lllm_rows(depth, median(durable))
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


def _ours(store: Store, depth: int, *, compacted: bool = False) -> list[float]:
    """Let an agent of ours call a tool in each of its rounds, and give how long each took, in seconds."""
    times: list[float] = []

    def answer(_request: object) -> object:
        times.append(time.perf_counter())
        if len(times) > ROUNDS:
            return "Done."
        return {"tool_calls": [{"name": "read", "arguments": {"path": f"{len(times)}.py"}, "id": f"now_{len(times)}"}]}

    prompt = Prompt(path="bench/reader", prompt="You read files.", function_list=[tool(read)])
    invoker = ProviderInvoker(ScriptedProvider(answer))
    agent = Agent("reader", prompt, "gpt-5", invoker, store=store, max_interrupt_steps=ROUNDS + 1)
    agent.open("main")
    agent.current_dialog.append([message for number in range(depth // 2) for message in _round(number)])
    if compacted:
        agent.current_dialog.commit(agent.current_dialog.compose("default", WINDOW, model="gpt-5"))
    agent.receive("Go on.")
    agent.respond()
    return _lengths(times)


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


def _lllm_rows(depth: int, ours: float) -> Iterator[Row]:
    rounds = max(FEW, min(ROUNDS, MANY_COPIES // depth))
    before = resident()
    try:
        theirs = _lllm(depth, rounds)
    except ImportError as missing:
        yield Row("  LLLM's loop", f"not installed ({missing.name})")
        return
    grown = (resident() - before) / 2**20
    yield Row(
        f"  LLLM's loop on {depth:,}, against it",
        microseconds(median(theirs)),
        microseconds(ours),
        f"{median(theirs) / ours:.1f}",
    )
    yield Row(f"    what it keeps of {rounds} rounds", f"{grown:,.0f} MB")


def _lllm(depth: int, rounds: int) -> list[float]:
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
    agent.respond()
    return _lengths(times)
