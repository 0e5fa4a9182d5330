"""The lab: a replay must cost what its session has in messages, once the window is full, and a run must hold one session at a time."""

from __future__ import annotations

import gc
import json
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from types import FrameType

from bench.measure import Row, text
from palaver.lab import Settings, run_lab
from palaver.lab.entrants import entrant
from palaver.lab.loading import Loaded, loaded
from palaver.lab.prices import sheet
from palaver.lab.sessions import LabSession, replayed
from palaver.tokens import counter

_MODEL, _BUDGET = "gpt-4o", 8_000
_POLICIES = ("palaver", "openhands", "swe-agent", "full")
_TIMES = (1, 2, 4, 8)
_ROUNDS = 100


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Replay sessions of 1, 2, 4 and 8 times the length under four policies."""
    rounds = _ROUNDS // 5 if quick else _ROUNDS
    rows: list[Row] = []
    first: dict[str, tuple[float, float]] = {}
    for times in _TIMES:
        path = folder / f"replay-{times}.json"
        path.write_text(json.dumps(session(rounds * times)))
        messages = 2 * rounds * times + 1
        for name, (seconds, calls) in _taken(path).items():
            time, work = seconds / messages * 1e3, calls / messages
            once = first.setdefault(name, (time, work))
            what = f"replay under {name}, {messages - 1:,} messages"
            rows.append(Row(what, f"{time:.2f} ms a message", f"{once[0]:.2f} ms", f"{time / once[0]:.2f}", "flat"))
            if calls:
                rows.append(Row("", f"{work:,.0f} calls of Python", f"{once[1]:,.0f}", f"{work / once[1]:.2f}", "flat"))
    return [*rows, *_held(folder, rounds)]


def _held(folder: Path, rounds: int) -> Iterator[Row]:
    """Run the lab over 1, 2, 4 and 8 times as many sessions of one size, and measure what it holds at most."""
    once = 0.0
    for times in _TIMES:
        inside = folder / f"run-{times}"
        inside.mkdir()
        for number in range(2 * times):
            (inside / f"{number}.json").write_text(json.dumps(session(rounds, seed=number)))
        most = held(inside, folder / f"results-{times}", _POLICIES[:2], _BUDGET) / 1e6
        once = once or most
        yield Row(
            f"a run over {2 * times} sessions", f"{most:.1f} MB at most", f"{once:.1f} MB", f"{most / once:.2f}", "flat"
        )


def held(paths: Path, out: Path, policies: tuple[str, ...], budget: int) -> int:
    """Run the lab in this process, and give the bytes that Python held for it at most."""
    asked = Settings(paths=(paths,), policies=policies, model=_MODEL, budget=budget, resamples=10)
    gc.collect()
    tracemalloc.start()
    try:
        run_lab(asked, out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def calls_of(work: Callable[[], object]) -> int:
    """Return how many calls of Python functions some work makes: the same on every machine."""
    count = 0

    def seen(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _taken(path: Path) -> dict[str, tuple[float, int]]:
    """Return the seconds of processor time and the calls that each policy takes, and the seconds of what is made ready once for all of them."""
    (found,) = (one for one in loaded(path) if isinstance(one, Loaded))
    counting, prices = counter(_MODEL), sheet(_MODEL)
    began = process_time()
    ready = LabSession.of(found, "bench", "bench", counting)
    taken = {"all: made ready": (process_time() - began, 0)}
    for name in _POLICIES:
        each = entrant(name, _MODEL, budget=_BUDGET)
        began = process_time()
        replayed(ready, each, "fold", prices)
        seconds = process_time() - began
        taken[name] = seconds, calls_of(partial(replayed, ready, entrant(name, _MODEL, budget=_BUDGET), "fold", prices))
    return taken


def session(rounds: int, seed: int = 0) -> list[dict[str, object]]:
    """Make a session of an agent that reads files, and refers to what it read some rounds ago."""
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read all parts. You must never skip one."}]
    for number in range(rounds):
        path = f"src/part_{max(0, number - chance.randrange(12))}.py"
        call = {"name": "read", "arguments": json.dumps({"path": path, "next": f"src/part_{number}.py"})}
        asked = {"id": f"c{number}", "type": "function", "function": call}
        messages.append({"role": "assistant", "content": None, "tool_calls": [asked]})
        said = f"src/part_{number + 1}.py\n{text(1_200, number % 64)}"
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": said})
    messages.append({"role": "assistant", "content": "Done."})
    return messages
