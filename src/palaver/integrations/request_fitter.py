"""Requests of another framework's agents, fitted to the model that is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS, Policy
from palaver.context.fit import Fit, fit, fitting_policy
from palaver.context.policy import PolicyLike
from palaver.context.recall import ListRecall
from palaver.dialects import read_list
from palaver.errors import InvalidInput
from palaver.tokens import Budget, model_info
from palaver.tokens.budget import ANY_MODEL, BudgetLike

RECALLS = frozenset(tool.name for tool in RECALL_TOOLS)
"""The names of the tools that recall."""


@dataclass(frozen=True, kw_only=True)
class RequestFitter:
    """Fits requests in one dialect.

    Attributes:
        dialect: The dialect of the framework's messages.
        policy: As for `palaver.fit`.
        budget: As for `palaver.fit`.
        model: The model whose window counts. Default: the one that is called.
    """

    dialect: str
    policy: PolicyLike = DEFAULT_POLICY
    budget: BudgetLike | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        """Refuse a wrong policy or budget before the first request does."""
        fitting_policy(self.policy)
        Budget.parse(self.budget, ANY_MODEL)

    def fit(
        self,
        messages: Sequence[Any],
        *,
        model: object,
        window: int | None = None,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Fit:
        """Return a list of messages that fits.

        Args:
            messages: The whole history.
            model: The model that is called: its name, or the framework's object for it.
            window: What a request to it may occupy, in tokens, if the framework knows.
            system: The instructions beside the list.
            tools: The schemas of the tools.

        Raises:
            InvalidInput: Nobody knows the window of the model.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        name, budget = self.model or _named(model), self.budget
        if budget is None and not model_info(name).known and not _has_window(self.policy):
            if not window:
                raise InvalidInput(
                    f"The window of the model {name!r} is not known.",
                    hint="Pass budget= with a number of tokens, or model= with the name of a known model.",
                )
            budget = {"max_tokens": window}
        return fit(
            messages,
            model=name,
            budget=budget,
            policy=self.policy,
            system=system,
            tools=tools,
            dialect=self.dialect,
        )

    def answer(self, messages: Sequence[Any], name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of a tool that recalls, from the whole history."""
        known = read_list(messages, self.dialect, (), "")
        return ListRecall(known.given, known.read).answer(name, args)


def recalled(fitted: Fit | None, name: str, args: Mapping[str, Any] | str) -> str:
    """Answer a call of a tool that recalls, from what the newest request left out; None before the first one."""
    return "Nothing was left out." if fitted is None else fitted.call_tool(name, args)


def _named(model: object) -> str:
    """Return the name of a model; that of its class where it does not say."""
    names = (model, getattr(model, "model_name", None), getattr(model, "model", None))
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)


def _has_window(policy: PolicyLike) -> bool:
    """Return whether a policy brings a window of its own."""
    manager = fitting_policy(policy)
    return isinstance(manager, Policy) and bool(manager.model_name or manager.max_tokens)
