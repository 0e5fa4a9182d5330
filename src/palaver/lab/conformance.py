"""Conformance: check a user's policy against the laws before comparing it.

The laws are those of `palaver.testing.policy_checks`, over conversations generated from a seed: tool calls, oversized outputs, pins, open calls, images.
The suite `palaver.testing.policy_laws.PolicyLaws` goes further but needs hypothesis.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from palaver.context import ContextManager, Meter, Policy
from palaver.errors import PolicyFailed
from palaver.testing.conversations import ConversationStep, played
from palaver.testing.policy_checks import check_policy, check_stable
from palaver.tokens import Budget, counter
from palaver.view import View, fold

_KINDS = ("ask", "work", "work", "work", "say", "note", "wait", "show", "look")
_SIZES = (0, 20, 200, 900, 4_000, 12_000)
_CONVERSATIONS = 12
_STEPS = 18
_PINNED = 10
_SHARES = (10, 40, 80)
_GROWING = 3
_TOKENS = 2_000
_NUMBER = re.compile(r"\d[\d,.]*")


def broken_laws(policy: Callable[[], ContextManager], model: str) -> tuple[str, ...]:
    """Return the laws that a policy breaks, one sentence for each.

    Args:
        policy: Creates a new policy for each conversation, to detect policies with state.
        model: The model that counts tokens.
    """
    broken: dict[str, str] = {}
    for number in range(_CONVERSATIONS):
        chance = random.Random(number)  # noqa: S311 - conversations, not secrets
        steps = [_step(chance) for _ in range(chance.randrange(4, _STEPS))]
        for check in _checks(steps, policy, model, grows=number < _GROWING):
            try:
                check()
            except AssertionError as error:
                _add(broken, describe(error))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the code of a user's policy
                fault = error.error if isinstance(error, PolicyFailed) else error
                _add(broken, f"it raises {type(fault).__name__}: {fault}")
    return tuple(broken.values())


def _add(broken: dict[str, str], said: str) -> None:
    """Add a broken law, unless it only differs in numbers from one already added."""
    broken.setdefault(_NUMBER.sub("#", said), said)


def _step(chance: random.Random) -> ConversationStep:
    sizes = tuple(chance.choice(_SIZES) for _ in range(chance.randrange(1, 4)))
    return ConversationStep(kind=chance.choice(_KINDS), sizes=sizes, pinned=chance.randrange(_PINNED) == 0)


def _checks(
    steps: list[ConversationStep], policy: Callable[[], ContextManager], model: str, *, grows: bool
) -> Iterator[Callable[[], object]]:
    log, count = played(steps), counter(model)
    view = fold(log.store, log.dialog)
    size = Meter(count).view(view).total
    for share in _SHARES:
        budget = Budget.of_input(max(size * share // 100, 1))
        yield lambda budget=budget: check_policy(view, policy(), budget, count)  # type: ignore[misc]  # bound now
    if grows and isinstance(policy(), Policy):
        yield lambda: check_stable(_growing(steps), policy(), Budget.of_input(_TOKENS), count)


def _growing(steps: list[ConversationStep]) -> Iterator[View]:
    log = played(steps)
    for at in range(log.store.last(log.dialog).seq + 1):
        view = fold(log.store, log.dialog, at)
        if view.exchanges and not any(exchange.open for exchange in view.exchanges):
            yield view


def describe(error: AssertionError) -> str:
    """Return the law of an assertion: its message, or the name of its check."""
    words = str(error).partition("\n")[0].strip()
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if words and not words.startswith("assert "):
        return words
    if trace is None:
        return words or "a law"
    code = trace.tb_frame.f_code
    return f"the law in {Path(code.co_filename).name}, {code.co_name.strip('_')}"
