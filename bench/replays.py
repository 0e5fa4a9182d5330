"""The lab: a replay must cost what its session has in messages, once the window is full."""

from __future__ import annotations

import json
import random
from pathlib import Path
from time import process_time

from bench.measure import Row, text
from palaver.lab.entrants import entrant
from palaver.lab.loading import Loaded, loaded
from palaver.lab.prices import sheet
from palaver.lab.sessions import Session, replayed
from palaver.tokens import counter

_MODEL, _BUDGET = "gpt-4o", 8_000
_POLICIES = ("palaver", "openhands", "swe-agent", "full")
_TIMES = (1, 2, 4, 8)
_ROUNDS = 100


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Replay sessions of 1, 2, 4 and 8 times the length under four policies."""
    rounds = _ROUNDS // 5 if quick else _ROUNDS
    rows: list[Row] = []
    first: dict[str, float] = {}
    for times in _TIMES:
        path = folder / f"replay-{times}.json"
        path.write_text(json.dumps(_session(rounds * times)))
        for name, seconds in _timed(path).items():
            each = seconds / (2 * rounds * times + 1)
            first.setdefault(name, each)
            ratio = f"{each / first[name]:.2f}"
            what = f"replay under {name}, {2 * rounds * times:,} messages"
            rows.append(Row(what, f"{each * 1e3:.2f} ms a message", f"{first[name] * 1e3:.2f} ms", ratio, "flat"))
    return rows


def _timed(path: Path) -> dict[str, float]:
    """Give the seconds of processor time that each policy takes, and what is made ready once for all of them."""
    (found,) = (one for one in loaded(path) if isinstance(one, Loaded))
    counting, prices = counter(_MODEL), sheet(_MODEL)
    began = process_time()
    session = Session.of(found, "bench", "bench", counting)
    taken = {"all: made ready": process_time() - began}
    for name in _POLICIES:
        each = entrant(name, _MODEL, budget=_BUDGET)
        began = process_time()
        replayed(session, each, "fold", prices)
        taken[name] = process_time() - began
    return taken


def _session(rounds: int) -> list[dict[str, object]]:
    """Make a session of an agent that reads files, and refers to what it read some rounds ago."""
    chance = random.Random(0)  # noqa: S311 - a workload, not a secret
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
