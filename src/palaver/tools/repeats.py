"""Whether a call asks again for what was answered already.

A repeat is a call with the name and the arguments of an earlier one of the same agent call that succeeded, as long as nothing ran in
between that may have changed the answer: reading a file again after it was edited is no repeat. Tools that say they are idempotent change
nothing; refused calls did nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from palaver.messages import FunctionCall
from palaver.tools.toolbox import Toolbox

__all__ = ["earlier_answer"]


def earlier_answer(toolbox: Toolbox, call: FunctionCall, earlier: Sequence[FunctionCall]) -> FunctionCall | None:
    """Give the earlier call whose answer still stands for this one; None when it has to run."""
    answers: list[FunctionCall] = []
    for each in reversed(earlier):
        if not each.equals(call):
            if _may_have_changed_something(toolbox, each):
                break
        elif each.success:
            answers.append(each)
    return answers[-1] if answers else None


def _may_have_changed_something(toolbox: Toolbox, call: FunctionCall) -> bool:
    function = toolbox.get(call.name)
    return function is not None and not function.idempotent
