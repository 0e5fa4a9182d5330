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
from palaver.tokens import Budget, ModelInfo, model_info
from palaver.tokens.budget import ANY_MODEL, BudgetLike, read_words

RECALLS = frozenset(tool.name for tool in RECALL_TOOLS)
"""The names of the tools that recall."""

_SIZES = ("max_tokens", "max_token_context_length", "model")
"""The words of a budget that say how large it is."""


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
            window: Its window in tokens, if the framework knows; it counts where palaver does not know the model.
            system: The instructions beside the list.
            tools: The schemas of the tools.

        Raises:
            InvalidInput: Nobody knows the window of the model.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        name = self.model or _named(model)
        return fit(
            messages,
            model=name,
            budget=self.budget if model_info(name).known else self._budget(name, window),
            policy=self.policy,
            system=system,
            tools=tools,
            dialect=self.dialect,
        )

    def answer(self, messages: Sequence[Any], name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of a tool that recalls, from the whole history."""
        known = read_list(messages, self.dialect, (), "")
        return ListRecall(known.given, known.read).answer(name, args)

    def _budget(self, name: str, window: int | None) -> BudgetLike | None:
        """Return the budget for a model that palaver does not know."""
        manager = fitting_policy(self.policy)
        own = manager if self.budget is None and isinstance(manager, Policy) else None
        if _has_size(self.budget) if own is None else own.model_name or own.max_tokens:
            return self.budget
        if not window:
            raise InvalidInput(
                f"The window of the model {name!r} is not known.",
                hint="Pass budget= with a number of tokens, or model= with the name of a known model.",
            )
        known = ModelInfo(name, context_window=window)
        return Budget.parse(self.budget, known) if own is None else own.budget_for(known)


def recalled(fitted: Fit | None, name: str, args: Mapping[str, Any] | str) -> str:
    """Answer a call of a tool that recalls, from what the newest request left out; None before the first one."""
    return "Nothing was left out." if fitted is None else fitted.call_tool(name, args)


def _named(model: object) -> str:
    """Return the name of a model; that of its class where it does not say."""
    names = (model, getattr(model, "model_name", None), getattr(model, "model", None))
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)


def _has_size(budget: BudgetLike | None) -> bool:
    """Return whether a budget needs no window of a model."""
    words = read_words(budget) if isinstance(budget, Mapping) else ()
    return isinstance(budget, Budget | int) or any(word in words for word in _SIZES)
