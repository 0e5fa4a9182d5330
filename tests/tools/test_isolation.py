"""Functions in processes of their own: they may hang and die."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver.errors import InvalidInput
from palaver.messages import ToolCallContent, thaw
from palaver.tools import Function, Toolbox, ToolOutcome, execute, tool
from tests.tools import isolated_tools
from tests.tools.calling import run


def test_arguments_and_results_cross() -> None:
    """Values of classes are built over there; a reply keeps what it says; too much is cut over there."""
    assert run(isolated_tools.twice, box={"size": 4}).result.text() == '{"size":8}'
    outcome = run(isolated_tools.later, n=5)
    call_id, number, pid = outcome.result.text().split()
    assert (call_id, number, int(pid) == os.getpid()) == ("c1", "5", False)
    assert (outcome.result.terminate, thaw(outcome.result.metadata)) == (True, {"n": 5})
    assert thaw(run(isolated_tools.shout).result.metadata) == {"cut": {"bytes": 50_000_000, "kept": 1_000}}


@pytest.mark.parametrize(
    ("how", "ending", "said"),
    [
        ("exit", "crashed", "The process of 'die' died before it answered. Its effect is unknown."),
        ("kill", "crashed", "The process of 'die' died before it answered. Its effect is unknown."),
        ("leave", "failed", "SystemExit: bye"),
        ("raise", "failed", "LookupError: nothing there"),
    ],
)
def test_a_process_that_dies_is_a_result(how: str, ending: str, said: str) -> None:
    """So is what is raised in it."""
    outcome = run(isolated_tools.die, how=how)
    assert (outcome.ending, outcome.error) == (ending, said)


def test_one_that_hangs_is_killed(tmp_path: Path) -> None:
    """After the timeout the process no longer holds the line open, and the model is told that nothing runs on."""
    line = tmp_path / "line"
    os.mkfifo(line)
    outcomes: list[ToolOutcome] = []

    async def main() -> bytes:
        async def ask() -> None:
            call = ToolCallContent("c", "hang", args={"line": str(line)})
            outcomes.append(await execute(Toolbox([isolated_tools.hang]), call))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            async with await anyio.open_file(line, "rb") as heard:
                return await heard.read()  # to the end: until nobody holds the other side
        raise AssertionError

    assert anyio.run(main) == b"started\n"
    assert outcomes[0].ending == "timeout"
    assert "Its process was killed." in str(outcomes[0].error)


def _plain(n: int) -> int:
    return n + 1


def test_what_cannot_cross_is_refused() -> None:
    """A function that no other process can import, and a processor, are refused when they are declared."""

    def local() -> None:
        """Do nothing."""

    options: Any = {"isolated": True}
    for unfit in (local, lambda: None):
        with pytest.raises(InvalidInput, match="another process cannot import it"):
            Function("t", function=unfit, **options)
    with pytest.raises(InvalidInput, match="another process cannot import it"):
        tool(**options)(local)
    with pytest.raises(InvalidInput, match="has a processor"):
        isolated_tools.twice.extend(processor=lambda value, _call: value)
    assert Function("t", properties={"n": {}}, function=_plain, isolated=True).isolated
