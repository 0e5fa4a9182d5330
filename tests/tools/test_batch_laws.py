"""Laws of batches, for tools by chance: at most one execution a call, intent before effect, a result for every effect that ended."""

from collections import Counter
from dataclasses import dataclass

import anyio
from hypothesis import given
from hypothesis import strategies as st

from palaver.messages import ToolCallContent
from palaver.tools import Function, Toolbox, ToolOutcome, execute_all


@dataclass(frozen=True)
class Plan:
    """A tool: how it ends, how often it lets others run before, and how it may be run."""

    ending: str
    rounds: int
    exclusive: bool
    allow_repeat: bool
    idempotent: bool


PLANS = st.builds(
    Plan,
    st.sampled_from(["return", "raise", "cancel", "stop"]),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.booleans(),
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

        return Function.from_callable(
            act, name=name, exclusive=plan.exclusive, allow_repeat=plan.allow_repeat, idempotent=plan.idempotent
        )

    def _look(self) -> None:
        """See that nothing runs beside an exclusive tool."""
        exclusive = [each for each in self.inside if self.plans[int(each[1:])].exclusive]
        self.alone = self.alone and not (exclusive and len(self.inside) > 1)

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

    def count(self, what: str) -> Counter[str]:
        """Count what was seen of each."""
        return Counter(which for kind, which in self.seen if kind == what)


@given(st.lists(PLANS, min_size=1, max_size=4), CALLS, st.integers(1, 4))
def test_every_call_has_one_outcome_and_at_most_one_effect(
    plans: list[Plan], asked: list[tuple[int, int]], parallel: int
) -> None:
    """Outcomes in order, one told for each call, one effect for each that was executed and none for the others."""
    run = Run(plans, asked)
    outcomes = anyio.run(run.go, parallel)
    assert [each.result.id for each in outcomes] == [call.id for call in run.calls]
    told = run.count("executed") + run.count("refused")
    assert told == Counter(call.id for call in run.calls)
    executed = [call for call, outcome in zip(run.calls, outcomes, strict=True) if outcome.executed]
    assert run.count("effect") == Counter(f"{call.name} {call.args['n']}" for call in executed)
    assert run.count("intent") == run.count("executed") == Counter(call.id for call in executed)
    assert run.alone
    assert run.inside == []


@given(st.lists(PLANS, min_size=1, max_size=4), CALLS, st.integers(1, 4), st.integers(0, 30))
def test_a_cancelled_batch_forgets_nothing_it_told(
    plans: list[Plan], asked: list[tuple[int, int]], parallel: int, rounds: int
) -> None:
    """Cancelled at any moment: no effect without its intent, none twice, and nobody inside any more."""
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
    assert all(times == 1 for times in (run.count("executed") + run.count("refused") + Counter()).values())
    assert all(times == 1 for times in run.count("intent").values())
    assert set(run.count("executed")) <= set(run.count("intent"))
    assert run.inside == []
    assert run.alone
    # A function that ended has its result told, however close the cancellation came; one that cancels itself then cannot be told from it.
    ended = [which for kind, which in run.seen if kind == "ended" and plans[int(which[1:])].ending != "cancel"]
    names = {call.id: call.name for call in run.calls}
    told = [
        names[which]
        for kind, which in run.seen
        if kind == "executed" and plans[int(names[which][1:])].ending != "cancel"
    ]
    assert Counter(told) == Counter(ended)
