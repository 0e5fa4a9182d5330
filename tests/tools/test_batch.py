"""The calls of one response: side by side, each told of when it is done, answered in their order."""

import functools
import threading
from typing import Any

import anyio
import pytest

from palaver.messages import FunctionCall, ToolCallContent
from palaver.tools import Function, Toolbox, ToolOutcome, execute_all, tool


def calls(*names: str, **arguments: Any) -> list[ToolCallContent]:  # noqa: ANN401
    """Make calls with ids c0, c1 …, each with its number and the arguments given."""
    return [ToolCallContent(f"c{number}", name, args={"n": number, **arguments}) for number, name in enumerate(names)]


class Stage:
    """Tools that wait for each other, and a list of what happened."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.inside = 0
        self.most = 0

    def tool(self, name: str, **options: Any) -> Function:  # noqa: ANN401 - fields of a function
        """Make an async tool that lets others run while it is inside."""

        async def act(n: int) -> str:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.happened.append(f"> {name} {n}")
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            self.happened.append(f"< {name} {n}")
            self.inside -= 1
            return f"{name} {n}"

        return Function.from_callable(act, name=name, description="Act.", **options)


def test_calls_run_side_by_side_and_are_answered_in_order() -> None:
    """All are inside at once; outcomes stand in the order of the calls."""
    stage = Stage()
    outcomes = anyio.run(execute_all, Toolbox([stage.tool("a")]), calls("a", "a", "a"))
    assert [each.result.text() for each in outcomes] == ["a 0", "a 1", "a 2"]
    assert [each.result.id for each in outcomes] == ["c0", "c1", "c2"]
    assert stage.most == 3


def test_an_outcome_is_told_when_it_is_there() -> None:
    """A call that is done is told of while another before it still runs."""

    async def main() -> None:
        gate = anyio.Event()
        told: list[str] = []

        async def slow(n: int) -> int:
            await gate.wait()
            return n

        async def quick(n: int) -> int:
            return n

        async def on_outcome(call: ToolCallContent, outcome: ToolOutcome) -> None:
            told.append(f"{call.id} {outcome.result.text()}")
            gate.set()

        box = Toolbox(
            [
                Function("slow", properties={"n": {}}, function=slow),
                Function("quick", properties={"n": {}}, function=quick),
            ]
        )
        await execute_all(box, calls("slow", "quick"), on_outcome=on_outcome)
        assert told == ["c1 1", "c0 0"]

    anyio.run(main)


def test_no_more_than_agreed_run_at_a_time() -> None:
    """`parallel` bounds how many are inside; 1 is one after another, in order."""
    for parallel in (1, 2):
        stage = Stage()
        anyio.run(functools.partial(execute_all, Toolbox([stage.tool("a")]), calls(*"aaaa"), parallel=parallel))
        assert stage.most == parallel
    assert anyio.run(execute_all, Toolbox(), []) == ()


def test_an_exclusive_tool_runs_alone_and_in_its_place() -> None:
    """Those before it are done before it begins, those after it begin when it is done."""
    stage = Stage()
    anyio.run(execute_all, Toolbox([stage.tool("a"), stage.tool("x", exclusive=True)]), calls(*"aaxa"))
    begin, end = stage.happened.index("> x 2"), stage.happened.index("< x 2")
    assert end == begin + 1
    assert {"< a 0", "< a 1"} <= set(stage.happened[:begin])
    assert "> a 3" in stage.happened[end:]


def test_a_repeat_within_the_response_is_not_run() -> None:
    """The second of two equal calls waits for the first, and is answered with its result."""
    runs: list[int] = []

    @tool
    def roll(side: int) -> int:
        runs.append(side)
        return 4

    asked = [ToolCallContent(f"c{number}", "roll", args={"side": 6}) for number in range(3)]
    outcomes = anyio.run(execute_all, Toolbox([roll]), asked)
    assert [each.repeated for each in outcomes] == [False, True, True]
    assert outcomes[2].result.text().endswith("It was:\n4")
    assert runs == [6]
    again = anyio.run(functools.partial(execute_all, Toolbox([roll]), asked[:1], earlier=[outcomes[0].function_call]))
    assert [each.repeated for each in again] == [True]
    free = anyio.run(execute_all, Toolbox([roll.extend(allow_repeat=True)]), asked)
    assert [each.repeated for each in free] == [False] * 3


def test_one_bad_call_does_not_disturb_the_others() -> None:
    """An unknown name, unfit arguments and a failure stand beside results."""

    @tool
    def half(n: int) -> float:
        return 1 / (n - 3)

    asked = [
        *calls("half", "whole"),
        ToolCallContent("c2", "half", args={"n": "x"}),
        ToolCallContent("c3", "half", args={"n": 3}),
    ]
    outcomes = anyio.run(execute_all, Toolbox([half]), asked)
    assert [each.ending for each in outcomes] == ["done", "unknown_tool", "arguments", "failed"]


def test_a_cancelled_batch_delivers_what_is_done() -> None:
    """A result that is there is told to its end, though the batch is being cancelled; those under way are not told."""
    delivered: list[str] = []

    async def main() -> None:
        async def quick(n: int) -> int:
            return n

        async def never(n: int) -> int:
            await anyio.sleep_forever()
            return n

        async with anyio.create_task_group() as group:

            async def on_outcome(call: ToolCallContent, _outcome: ToolOutcome) -> None:
                group.cancel_scope.cancel()
                await anyio.lowlevel.checkpoint()
                delivered.append(call.id)

            schema = {"n": {"type": "integer"}}
            box = Toolbox(
                [
                    Function("quick", properties=schema, function=quick),
                    Function("never", properties=schema, function=never),
                ]
            )
            group.start_soon(functools.partial(execute_all, box, calls("never", "quick"), on_outcome=on_outcome))

    anyio.run(main)
    assert delivered == ["c1"]


@pytest.mark.parametrize("when", ["start", "outcome"])
def test_a_failure_of_the_callers_own_ends_the_batch(when: str) -> None:
    """What `on_start` or `on_outcome` raises is raised as it is, and what was still waiting does not run."""
    ran: list[int] = []

    @tool
    async def act(n: int) -> None:
        ran.append(n)
        await anyio.lowlevel.checkpoint()

    async def fail(*_given: object) -> None:
        raise OSError("disk full")

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await execute_all(
                Toolbox([act]),
                calls("act", "act"),
                parallel=1,
                on_start=fail if when == "start" else None,
                on_outcome=fail if when == "outcome" else None,
            )

    anyio.run(main)
    assert ran == ([] if when == "start" else [0])


def test_sync_tools_run_beside_each_other_in_threads() -> None:
    """Two that wait for each other both get through."""
    meet = threading.Barrier(2, timeout=60)

    @tool
    def wait(n: int) -> int:
        meet.wait()
        return n

    outcomes = anyio.run(execute_all, Toolbox([wait]), calls("wait", "wait"))
    assert [each.function_call for each in outcomes] == [
        FunctionCall("c0", "wait", {"n": 0}, 0, "0"),
        FunctionCall("c1", "wait", {"n": 1}, 1, "1"),
    ]
