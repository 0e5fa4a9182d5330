"""Conformance: a policy held to the laws before it is compared.

The laws are those of `palaver.testing` (`holding.hold`, `holding.stable`), over conversations made from a seed: work with tools, oversized outputs,
pins, calls that wait, pictures; each at several budgets, and as it grows. The suite `palaver.testing.policy_laws.PolicyLaws` goes further, with
counterexamples made small; it needs hypothesis, this does not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

from palaver.context import ContextManager, Meter
from palaver.errors import PolicyFailed
from palaver.testing.conversations import Step, played
from palaver.testing.holding import hold, stable
from palaver.tokens import Budget, counter
from palaver.view import View, fold

__all__ = ["examined"]

_KINDS = ("ask", "work", "work", "work", "say", "note", "wait", "show", "look")
_SIZES = (0, 20, 200, 900, 4_000, 12_000)
_CONVERSATIONS = 12
_STEPS = 18
_PINNED = 10
_SHARES = (10, 40, 80)
_GROWING = 3
_TOKENS = 2_000
_NUMBER = re.compile(r"\d[\d,.]*")


def examined(policy: Callable[[], ContextManager], model: str, *, seed: int = 0) -> tuple[str, ...]:
    """Hold a policy to the laws; give what it broke, a sentence for each law, the first time it was broken.

    Args:
        policy: Makes the policy, anew for each conversation: one that remembers the last conversation is caught.
        model: The model whose tokens count.
        seed: What the conversations are made from.
    """
    broken: dict[str, str] = {}
    for number in range(_CONVERSATIONS):
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - conversations, no secret
        steps = [_step(chance) for _ in range(chance.randrange(4, _STEPS))]
        for check in _checks(steps, policy, model, grows=number < _GROWING):
            try:
                check()
            except AssertionError as error:
                _add(broken, _said(error))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a policy is anybody's code: what it raises is what is wrong with it
                fault = error.error if isinstance(error, PolicyFailed) else error
                _add(broken, f"it raises {type(fault).__name__}: {fault}")
    return tuple(broken.values())


def _add(broken: dict[str, str], said: str) -> None:
    """Add what was broken; the same of another exchange or with another size is the same."""
    broken.setdefault(_NUMBER.sub("#", said), said)


def _step(chance: random.Random) -> Step:
    sizes = tuple(chance.choice(_SIZES) for _ in range(chance.randrange(1, 4)))
    return Step(kind=chance.choice(_KINDS), sizes=sizes, pinned=chance.randrange(_PINNED) == 0)


def _checks(
    steps: list[Step], policy: Callable[[], ContextManager], model: str, *, grows: bool
) -> Iterator[Callable[[], object]]:
    log, count = played(steps), counter(model)
    view = fold(log.store, log.dialog)
    size = Meter(count).view(view).total
    for share in _SHARES:
        budget = Budget.of_input(max(size * share // 100, 1))
        yield lambda budget=budget: hold(view, policy(), budget, count)  # type: ignore[misc]  # bound now
    if grows:
        yield lambda: stable(_growing(steps), policy(), Budget.of_input(_TOKENS), count)


def _growing(steps: list[Step]) -> Iterator[View]:
    log = played(steps)
    for at in range(log.store.last(log.dialog).seq + 1):
        view = fold(log.store, log.dialog, at)
        if view.exchanges and not any(exchange.open for exchange in view.exchanges):
            yield view


def _said(error: AssertionError) -> str:
    """Say what was broken; an assertion without words is told by where it stands."""
    words = str(error).partition("\n")[0].strip()
    if words:
        return words
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"the law {trace.tb_frame.f_code.co_name.strip('_')}" if trace is not None else "a law"
