"""A turn's view by a policy: it must cost the counting of what is new and time in proportion to the view, however long the log.

Each turn appends a call and its result and composes the next view with the default preset on its schedule, committing what is decided, as an agent
does. The peers keep a list and go through it at every turn; their counters estimate by characters, ours counts tokens.

What is sent is timed too, with everything in view: the request is compiled and checked going on from the one before, and, as the limit to be held
against, by a process that has compiled nothing yet. No peer does that work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from bench.measure import Row, microseconds, text, timed
from palaver import (
    AssistantMessage,
    Dialog,
    Message,
    Session,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.providers import profile
from palaver.store import MemoryStore, SqliteStore
from palaver.store.records import payloads_of
from palaver.tokens import counter
from palaver.wire import Call
from palaver.wire import compile as compile_request

DEPTHS = (1_000, 10_000, 100_000)
TURNS = 40
FEW = 3
MODEL = "claude-sonnet-4-5"
SIZE = 1_000
WINDOW = 60_000
"""Tokens that a request may occupy, ours and theirs."""


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time turns on top of conversations of several lengths: ours, LangChain's, LLLM's and OpenHands'."""
    rows: list[Row] = []
    ours: list[float] = []
    for depth in DEPTHS:
        if quick and depth > DEPTHS[1]:
            continue
        with closing(SqliteStore(folder / f"context-{depth}.db")) as store:
            dialog = Session.create(store, "context").root
            for start in range(0, depth // 2, 5_000):
                dialog.append([each for n in range(start, min(start + 5_000, depth // 2)) for each in _round(n)])
            found = list(_ours(dialog, depth))
        ours.append(found[1])
        rows.append(Row(f"a turn's view on {depth:,} messages", microseconds(found[1]), aim="flat"))
        rows.append(Row("  the first of them, which reads the log", microseconds(found[0])))
        rows.append(Row("  the same without committing", microseconds(found[2])))
        rows += _requests(depth) if depth <= DEPTHS[1] else ()
        for name, peer in _PEERS.items():
            rows.append(_against(name, peer, depth, found[1]))
    rows.append(Row("the longest, against the shortest", f"{ours[-1] / ours[0]:.2f}", aim="1"))
    return rows


def _against(name: str, peer: Callable[[int], float], depth: int, ours: float) -> Row:
    try:
        theirs = peer(depth)
    except ImportError as missing:
        return Row(f"  {name}", f"not installed ({missing.name or missing})")
    return Row(f"  {name} on {depth:,}", microseconds(theirs), microseconds(ours), f"{theirs / ours:.1f}")


def _ours(dialog: Dialog, depth: int) -> Iterator[float]:
    """Return how long the first turn took, a turn in the middle, and one that commits nothing."""
    dialog.view()
    numbers = count(depth)
    yield _turn(dialog, next(numbers), commit=True)
    yield median(_turn(dialog, next(numbers), commit=True) for _ in range(TURNS))
    yield median(_turn(dialog, next(numbers), commit=False) for _ in range(TURNS // 4))


def _requests(depth: int) -> Iterator[Row]:
    """Time the request of a turn in which nothing is left out, beside one that nothing is known of."""
    dialog = Session.create(MemoryStore(), "request").root
    dialog.append([UserMessage(content="Read the files."), *(each for n in range(depth // 2) for each in _round(n))])
    dialog.request("anthropic", MODEL).digest  # noqa: B018 - what is timed is the next one
    gone_on: list[float] = []
    fresh: list[float] = []
    for number in range(TURNS // 4):
        dialog.append(list(_round(depth + number)))
        dialog.view()
        gone_on.append(timed(lambda: dialog.request("anthropic", MODEL).digest))
        fresh.append(timed(lambda: _fresh(dialog)) if number < FEW else fresh[0])
    ours, whole = median(gone_on), median(fresh)
    what = f"  a request with all {depth:,} in view, against one from nothing"
    yield Row(what, microseconds(ours), microseconds(whole), f"{whole / ours:.0f}")


def _fresh(dialog: Dialog) -> str:
    """Compile and check the request as a process does that has compiled nothing yet."""
    load = payloads_of(dialog.store, dialog.session_id)
    request = compile_request(dialog.view(), profile("anthropic", MODEL), Call(model=MODEL), load)
    request.check()
    return request.digest


def _turn(dialog: Dialog, number: int, *, commit: bool) -> float:
    dialog.append(list(_round(number)))

    def compose() -> None:
        composed = dialog.compaction.compose("palaver", WINDOW, model=MODEL)
        if commit and composed.after.total < composed.before.total:
            dialog.compaction.commit(composed)

    return timed(compose)


def _round(number: int) -> tuple[Message, Message]:
    call = ToolCallContent(id=f"call_{number}", name="read", args={"path": f"src/{number}.py"})
    return (
        AssistantMessage(contents=(call,), response_id=f"response-{number}"),
        ToolMessage.from_result(
            ToolResultContent(id=call.id, name="read", content=f"{number} {text(SIZE, number % 64)}")
        ),
    )


# --- peers ------------------------------------------------------------------------------------------------------------------------


def _langchain(depth: int) -> float:
    """Time LangChain's trim_messages with its own approximate counter."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, trim_messages  # noqa: PLC0415 - a peer
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415 - the same

    messages: list[Any] = [HumanMessage("Read the files.")]
    for number in range(depth // 2):
        calls = [{"id": f"call_{number}", "name": "read", "args": {"path": f"src/{number}.py"}}]
        messages.append(AIMessage("", tool_calls=calls))
        messages.append(ToolMessage(f"{number} {text(SIZE, number % 64)}", tool_call_id=f"call_{number}"))

    def turn() -> object:
        return trim_messages(
            messages, max_tokens=WINDOW, token_counter=count_tokens_approximately, strategy="last", start_on="ai"
        )

    return median(timed(turn) for _ in range(5 if depth <= DEPTHS[1] else 1))


def _lllm(depth: int) -> float:
    """Time LLLM's DefaultContextManager. LiteLLM counts for it, which cannot be installed beside the other peers; tiktoken, by which it counts, does."""
    from lllm.runtimes import native as theirs  # noqa: PLC0415 - a peer
    from lllm.runtimes.native.core.dialog import DefaultContextManager  # noqa: PLC0415 - the same

    sys.modules.setdefault("litellm", _counting())
    prompt = theirs.Prompt(path="bench/reader", prompt="You read files.")
    agent = theirs.Agent("reader", prompt, "gpt-4o", None)
    agent.open("main")
    dialog = agent.current_dialog
    for number in range(depth // 2):
        dialog.append(theirs.Message(role="assistant", content=f"read src/{number}.py", name="reader"))
        dialog.append(theirs.Message(role="user", content=f"{number} {text(SIZE, number % 64)}", name="user"))
    manager = DefaultContextManager("gpt-4o", max_tokens=WINDOW)
    return median(timed(lambda: manager(dialog)) for _ in range(5 if depth <= DEPTHS[0] else 1))


def _counting() -> ModuleType:
    """Return a module with the one function of LiteLLM's that LLLM calls."""
    count = counter("gpt-4o")

    def token_counter(*, messages: list[dict[str, Any]], **_: object) -> int:
        return sum(count.text(str(message["content"])) for message in messages)

    module = ModuleType("litellm")
    vars(module)["token_counter"] = token_counter
    return module


def _openhands(depth: int) -> float:
    """Time openhands-sdk's view of its events, in the Python 3.12 that `PALAVER_BENCH_OPENHANDS` names, since it runs on no older one.

    Its condenser asks a model, so no condenser is run: this is what it goes through at every step to see whether it must.
    """
    python = os.environ.get("PALAVER_BENCH_OPENHANDS", "")
    if not python:
        message = "set PALAVER_BENCH_OPENHANDS to a Python 3.12 with openhands-sdk"
        raise ImportError(message)
    script = Path(__file__).with_name("openhands_view.py")
    quiet = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [python, str(script), str(depth), str(SIZE)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **quiet},
    )
    if done.returncode:
        raise ImportError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it ended without a word")
    return float(json.loads(done.stdout)["seconds"])


_PEERS: dict[str, Callable[[int], float]] = {
    "LangChain trim_messages": _langchain,
    "LLLM DefaultContextManager": _lllm,
    "openhands-sdk View": _openhands,
}
