"""Requests of another framework's agents, fitted to the model, and calls of the tools that recall, answered from the framework's own history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS, ContextManager
from palaver.context.fit import Fit, fit
from palaver.errors import InvalidInput
from palaver.tokens import Budget, model_info

RECALLS = frozenset(tool.name for tool in RECALL_TOOLS)
"""The names of the tools that recall."""

_ANY = 1_000_000  # the policy `full` leaves nothing out, whatever the window


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
    policy: str | ContextManager | Mapping[str, Any] = DEFAULT_POLICY
    budget: Budget | int | Mapping[str, object] | None = None
    model: str | None = None

    def fit(
        self,
        messages: Sequence[Any],
        *,
        model: str,
        window: int | None = None,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Fit:
        """Return a list of messages that fits.

        Args:
            messages: The whole history.
            model: The model that is called.
            window: What a request to it may occupy, in tokens, if the framework knows.
            system: The instructions beside the list.
            tools: The schemas of the tools.

        Raises:
            InvalidInput: Nobody knows the window of the model.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        name, policy = self.model or model, self.policy
        if not model_info(name).known and not isinstance(policy, ContextManager):
            room = window if self.budget is None else Budget.parse(self.budget).limit
            if not room:
                raise InvalidInput(
                    f"The window of the model {name!r} is not known.",
                    hint="Pass budget= with a number of tokens, or model= with the name of a known model.",
                )
            policy = {"max_tokens": room, **({"type": policy} if isinstance(policy, str) else policy)}
        return fit(
            messages,
            model=name,
            budget=self.budget,
            policy=policy,
            system=system,
            tools=tools,
            dialect=self.dialect,
        )

    def recall(self, messages: Sequence[Any], name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of a tool that recalls: the text of its result, or what is wrong with the arguments.

        Args:
            messages: The whole history.
            name: The tool's name.
            args: The arguments.
        """
        whole = {"type": "full", "max_tokens": _ANY}
        return fit(messages, model=self.model or "any", policy=whole, dialect=self.dialect).call_tool(name, args)
