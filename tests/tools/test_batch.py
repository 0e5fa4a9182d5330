"""The calls of one response: side by side, each reported when it is done, answered in their order."""

import functools
import threading
from collections import Counter
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.messages import ToolCallContent
from palaver.tools import Function, Toolbox, ToolOutcome, execute_all, tool


def calls(*names: str) -> list[ToolCallContent]:
    """Return calls with ids c0, c1 and so on, each with its number as argument."""
    return [ToolCallContent(f"c{number}", name, args={"n": number}) for number, name in enumerate(names)]


def test_calls_run_side_by_side_and_are_reported_when_done() -> None:
    """A call that is done is reported while another before it still runs in its thread; outcomes stand in the order of the calls."""
    told: list[str] = []
    gate = threading.Event()

    def slow(n: int) -> int:
        assert gate.wait(60)
        return n

    async def quick(n: int) -> int:
        return n

    async def on_outcome(call: ToolCallContent, outcome: ToolOutcome) -> None:
        told.append(f"{call.id} {outcome.result.text()}")
        gate.set()

    run_both = functools.partial(execute_all, Toolbox([slow, quick]), calls("slow", "quick"), on_outcome=on_outcome)
    assert [each.result.id for each in anyio.run(run_both)] == ["c0", "c1"]
    assert told == ["c1 1", "c0 0"]


def test_a_repeat_is_not_run_unless_something_changed() -> None:
    """C22, R138: it is answered with the earlier result, until a call that is not idempotent; `allow_repeat` and failures run again."""
    runs: list[str] = []

    def read(path: str) -> str:
        runs.append(path)
        return f"text of {path}"

    def write(path: str) -> None:
        runs.append(f"write {path}")

    def fail(path: str) -> None:
        raise OSError(path)

    def asked(names: str, *, again: bool = False) -> list[ToolOutcome]:
        box = Toolbox([tool(idempotent=True, allow_repeat=again)(read), write, fail])

        async def one_by_one() -> list[ToolOutcome]:
            outcomes: list[ToolOutcome] = []
            for number, name in enumerate(names.split()):
                call = ToolCallContent(f"c{number}", name, args={"path": "a"})
                outcomes += await execute_all(box, [call], earlier=[each.function_call for each in outcomes])
            return outcomes

        return anyio.run(one_by_one)

    outcomes = asked("read read write read fail fail")
    assert [each.ending == "repeated" for each in outcomes] == [False, True, False, False, False, False]
    assert runs == ["a", "write a", "a"]
    assert "'read' was not run again: the same call, 'c0', has been answered" in outcomes[1].result.text()
    assert outcomes[1].result.text().endswith("It was:\ntext of a")
    assert [each.ending == "repeated" for each in asked("read read", again=True)] == [False, False]
    within = [ToolCallContent(f"c{number}", "read", args={"path": "a"}) for number in range(3)]
    side_by_side = anyio.run(execute_all, Toolbox([read]), within)
    assert [each.ending == "repeated" for each in side_by_side] == [False, True, True]


@pytest.mark.parametrize("when", ["start", "outcome"])
def test_a_failure_of_the_caller_ends_the_batch(when: str) -> None:
    """What `on_start` or `on_outcome` raises is raised as it is, and what was still waiting does not run."""
    ran: list[int] = []

    @tool
    async def act(n: int) -> None:
        ran.append(n)
        await anyio.lowlevel.checkpoint()

    async def fail(*_given: object) -> None:
        raise OSError("disk full")

    hooks = {f"on_{when}": fail}

    async def main() -> None:
        with pytest.raises(OSError, match="disk full"):
            await execute_all(Toolbox([act]), calls("act", "act"), parallel=1, **hooks)  # type: ignore[arg-type]

    anyio.run(main)
    assert ran == ([] if when == "start" else [0])


# --- laws, for tools by chance -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A tool: how it ends, how often it lets others run before, and how it may be run."""

    ending: str
    rounds: int
    options: dict[str, bool]


PLANS = st.builds(
    Plan,
    st.sampled_from(["return", "raise", "cancel", "stop"]),
    st.integers(0, 6),
    st.fixed_dictionaries({name: st.booleans() for name in ("exclusive", "allow_repeat", "idempotent")}),
)
CALLS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), max_size=8)
"""Which tool (there are at most four, so that some are unknown), and with which argument."""


class Run:
    """One batch, and what was seen of it."""

    def __init__(self, plans: list[Plan], asked: list[tuple[int, int]]) -> None:
        self.plans = plans
        self.calls = [
            ToolCallContent(f"c{index}", f"t{which}", args={"n": n}) for index, (which, n) in enumerate(asked)
        ]
        self.box = Toolbox(self._tool(f"t{number}", plan) for number, plan in enumerate(plans))
        self.seen: list[tuple[str, str]] = []
        self.inside: list[str] = []
        self.most = 0
        self.alone = True
        self.scope: anyio.CancelScope | None = None

    def _tool(self, name: str, plan: Plan) -> Function:
        async def act(n: int) -> str:
            self.seen.append(("effect", f"{name} {n}"))
            self.inside.append(name)
            self._look()
            try:
                for _ in range(plan.rounds):
                    await anyio.lowlevel.checkpoint()
                    self._look()
                self.seen.append(("ended", name))
                if plan.ending == "stop" and self.scope is not None:
                    self.scope.cancel()  # at the last moment: from here on nothing waits
                if plan.ending == "raise":
                    raise ValueError(n)
                if plan.ending == "cancel":
                    raise anyio.get_cancelled_exc_class()
                return f"{name} {n}"
            finally:
                self.inside.remove(name)

        return Function.from_callable(act, name=name).extend(**plan.options)

    def _look(self) -> None:
        exclusive = [each for each in self.inside if self.plans[int(each[1:])].options["exclusive"]]
        self.alone = self.alone and not (exclusive and len(self.inside) > 1)
        self.most = max(self.most, len(self.inside))

    async def on_start(self, call: ToolCallContent, _function: Function) -> None:
        """Record the intent."""
        self.seen.append(("intent", call.id))
        await anyio.lowlevel.checkpoint()

    async def on_outcome(self, call: ToolCallContent, outcome: ToolOutcome) -> None:
        """Record the outcome, which takes a while."""
        await anyio.lowlevel.checkpoint()
        self.seen.append(("executed" if outcome.executed else "refused", call.id))

    async def go(self, parallel: int) -> tuple[ToolOutcome, ...]:
        """Run the batch."""
        return await execute_all(
            self.box, self.calls, on_start=self.on_start, on_outcome=self.on_outcome, parallel=parallel
        )

    def count(self, *what: str) -> Counter[str]:
        """Count what was seen of each."""
        return Counter(which for kind, which in self.seen if kind in what)


@given(st.lists(PLANS, min_size=1, max_size=4), CALLS, st.integers(1, 4))
def test_every_call_has_one_outcome_and_one_effect(
    plans: list[Plan], asked: list[tuple[int, int]], parallel: int
) -> None:
    """One outcome for each call, in order; one effect and one intent for each that was executed; exclusive tools run alone."""
    run = Run(plans, asked)
    outcomes = anyio.run(run.go, parallel)
    assert [each.result.id for each in outcomes] == [call.id for call in run.calls]
    assert run.count("executed", "refused") == Counter(call.id for call in run.calls)
    executed = [call for call, outcome in zip(run.calls, outcomes, strict=True) if outcome.executed]
    assert run.count("effect") == Counter(f"{call.name} {call.args['n']}" for call in executed)
    assert run.count("intent") == run.count("executed") == Counter(call.id for call in executed)
    assert run.alone
    assert run.most <= parallel
    assert run.inside == []


@given(st.lists(PLANS, min_size=1, max_size=4), CALLS, st.integers(1, 4), st.integers(0, 30))
def test_cancelled_batch_keeps_its_outcomes(
    plans: list[Plan], asked: list[tuple[int, int]], parallel: int, rounds: int
) -> None:
    """Cancelled at any moment: no effect without its intent, none twice, and every result that was there is reported."""
    run = Run(plans, asked)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            run.scope = group.cancel_scope
            group.start_soon(run.go, parallel)
            for _ in range(rounds):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(main)
    assert run.count("effect").total() <= run.count("intent").total()
    assert all(times == 1 for times in run.count("executed", "refused").values())
    assert all(times == 1 for times in run.count("intent").values())
    assert set(run.count("executed")) <= set(run.count("intent"))
    assert run.inside == []
    assert run.alone
    # A function that ended has its result told, however close the cancellation came; one that cancels itself cannot be told from it.
    itself = {f"t{number}" for number, plan in enumerate(plans) if plan.ending == "cancel"}
    names = {call.id: call.name for call in run.calls}
    told = Counter(names[which] for which in run.count("executed") if names[which] not in itself)
    assert told == Counter({name: times for name, times in run.count("ended").items() if name not in itself})
