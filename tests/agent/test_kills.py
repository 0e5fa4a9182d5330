"""The kill sweep: a process that dies in a turn of thirty steps, after writes and within effects, and what the next one makes of it."""

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random

import pytest

from palaver import Dialog, Session, SqliteStore
from palaver.agent.calls import UNKNOWN
from palaver.log.entries import Custom, TurnEnded
from tests.agent import long_turn
from tests.agent.helper import entries
from tests.forking import forking

ROOT = Path(__file__).resolve().parents[2]


class Died(BaseException):
    """The process would be dead now."""


def die() -> None:
    """End the process, as far as a test can be one."""
    raise Died


def effects_of(path: Path) -> Counter[tuple[str, int]]:
    """Count what the tools did."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter((what, number) for what, number in map(json.loads, lines))


def check(dialog: Dialog, effects: Path, deaths: int) -> None:
    """Hold a finished log to the outcome table."""
    messages = list(dialog.messages)
    calls = [call for message in messages for call in message.tool_calls()]
    results = {block.id: block for message in messages for block in message.tool_results()}
    answered = Counter(block.id for message in messages for block in message.tool_results())
    said = [message.text_content() for message in messages if message.is_assistant_side]
    done = effects_of(effects)
    numbers = [call.args["number"] for call in calls]
    assert numbers == list(range(1, long_turn.STEPS + 1)), "every step was asked for once, in order"
    assert said[-1] == "Done: everything."
    assert set(answered.values()) == {1}, "one result a call"
    unknown = 0
    for call in calls:
        what = {"write_line": "write", "look": "look"}[call.name]
        times = done[what, call.args["number"]]
        if results[call.id].text() == UNKNOWN:
            unknown += 1
            assert call.name == "write_line", "what may run again is run again"
            assert times <= 1
        else:
            assert results[call.id].text() == f"{what} {call.args['number']}"
            assert times == 1 or (call.name == "look" and times >= 1), "no recorded result ran twice"
    assert unknown <= 2 * deaths, "only what was begun and cut off is unknown: two calls at most run at a time"
    kept = [entry for entry in entries(dialog) if isinstance(entry, Custom) and entry.custom_type == "palaver.attempt"]
    assert [entry.data["why"] for entry in kept] == ["refused"], "the refused answer was not asked for again"
    assert [message.role.value for message in messages].count("user") == 1
    last = entries(dialog)[-1]
    assert isinstance(last, TurnEnded)
    assert last.outcome == "final"


@pytest.fixture(scope="module")
def child() -> Iterator[Callable[..., int]]:
    """Return what answers in a process of its own, which is killed behind a write, or within an effect; it gives the exit code."""
    with forking("tests.agent.long_turn") as deed:
        yield partial(deed, "answered")


def killed_until_done(child: Callable[..., int], tmp_path: Path, plan: list[tuple[int, int]]) -> None:
    """Kill a process behind each write, or within each effect, of a plan, one after the other; then let one finish, and check."""
    path, effects = tmp_path / "store.db", tmp_path / "effects"
    with closing(SqliteStore(path)) as store:
        long_turn.begin(store, effects)
    deaths = 0
    for writes, dies_at in itertools.chain(plan, itertools.repeat((-1, -1))):
        code = child(path=str(path), effects=str(effects), writes=writes, dies_at=dies_at)
        assert code in {0, -9}
        if code == 0:
            break
        deaths += 1
    with closing(SqliteStore(path)) as store:
        check(Session.open(store, long_turn.NAME).root, effects, deaths)


@pytest.mark.parametrize("plan", [[(1, -1), (3, -1), (5, -1), (6, -1)], [(-1, 1), (9, -1), (40, -1), (-1, 20)]])
def test_law_4_killed_process_loses_nothing(
    child: Callable[..., int], tmp_path: Path, plan: list[tuple[int, int]]
) -> None:
    """SIGKILL behind a dozen writes and in the middle of effects, several deaths to a turn, over a store on disk."""
    killed_until_done(child, tmp_path, plan)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(60))
def test_law_4_process_killed_after_any_write(child: Callable[..., int], tmp_path: Path, seed: int) -> None:
    """SIGKILL behind writes and within effects drawn at random, up to six deaths to a turn."""
    draw = Random(seed)  # noqa: S311 - no secret
    plan = [
        (draw.randrange(3, 60), -1) if draw.random() < 0.6 else (-1, draw.randrange(1, 40))
        for _ in range(draw.randrange(1, 7))
    ]
    killed_until_done(child, tmp_path, plan)
