"""Context managers and policies: the two protocols that decide what a model sees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, cast

from palaver.context.meter import Meter
from palaver.context.parameters import Parameters, require, require_words
from palaver.context.working import WorkingDialog
from palaver.errors import InvalidInput
from palaver.tokens import Budget, counter
from palaver.view import Plan, View

__all__ = ["ContextManager", "Policy"]


class _ClassName:
    """Return the name of the class for managers that set none; the class itself has no name, so that a registry refuses it."""

    def __get__(self, instance: object, owner: type) -> str:
        if instance is None:
            message = f"{owner.__name__} sets no name"
            raise AttributeError(message, name="name", obj=owner)
        return owner.__name__


class ContextManager(ABC):
    """A function from a dialog to the dialog that the model sees.

    `compose` obeys the result exactly: what the manager adds, rewrites, reorders or redacts is what is sent. The dialog itself never changes.
    Subclass it, set `name`, and register the class with a runtime to use it by name in a configuration.

    Attributes:
        name: The name in registries and records. A class without a name cannot be registered; its objects use the class name.
    """

    name: ClassVar[str] = cast("str", _ClassName())

    @abstractmethod
    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - users' managers take and return dialogs of their own kind
        """Return the dialog to send: the same object, or another one made from it."""


class Policy(ContextManager):
    """A context manager that plans: it says what it would change, and `compose` changes it.

    `plan` is pure: the same view, budget and counter give the same plan on any machine. A plan names whole exchanges and single blocks, so it
    cannot separate a call from its result or drop the newest user message.

    Attributes:
        model_name: The model whose window and tokens count; empty when the caller passes the budget.
        max_tokens: The window in tokens, the request and its answer together; None for the model's own.
        parameters: The constructor's own parameters, each with its bounds; other values raise `InvalidInput`.
        complete: True when the policy shows everything or nothing: `compose` raises `InfeasibleBudget` instead of cutting further.
        headings: The sections to ask of a summarizer.
        restore_files: How many of the files that its tools read last an agent reads again after a compaction.
        restore_tokens: The most tokens of each of them.
    """

    complete: ClassVar[bool] = False
    parameters: ClassVar[Parameters] = MappingProxyType({})
    headings: ClassVar[tuple[str, ...]] = ()
    restore_files: int = 0
    restore_tokens: int = 0

    def __init__(self, model_name: str = "", max_tokens: int | None = None, **budget: object) -> None:
        """Make the policy for a model.

        Args:
            model_name: The model.
            max_tokens: A smaller window.
            budget: Further words of a budget, in any vocabulary that `Budget.parse` reads.

        Raises:
            InvalidInput: A word is unknown or its value is out of bounds.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        require(self.parameters, {name: getattr(self, name) for name in self.parameters})
        require_words(self.name, model_name, budget, self.parameters)
        self.model_name = model_name
        self.max_tokens = max_tokens
        self._words: Mapping[str, object] = {**budget, "max_tokens": max_tokens}
        if model_name or max_tokens is not None:
            budgeted = self.budget  # checks every word
            self.max_tokens = budgeted.max_tokens if max_tokens is None else max_tokens

    @cached_property
    def budget(self) -> Budget:
        """The policy's own budget.

        Raises:
            InvalidInput: The policy was made without a model and without a window.
        """
        return self.budget_for(self.model_name)

    def budget_for(self, model_name: str) -> Budget:
        """Return the policy's budget on a model; the policy's own model wins.

        Raises:
            InvalidInput: There is neither a model nor a window.
        """
        return Budget.parse(self._words, self.model_name or model_name or None)

    def compact(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change when somebody asks for a compaction: what the policy does when the view does not fit."""
        return self.plan(view, budget.with_limit(min(budget.limit, meter.view(view).total - 1)), meter)

    @abstractmethod
    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change in a view.

        Args:
            view: The view.
            budget: What one request may occupy.
            meter: Counts tokens of blocks, exchanges and views.

        Returns:
            The plan; an empty one leaves the view as it is.
        """

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - as above
        """Return the dialog as the model sees it: the same object when nothing changes.

        Raises:
            InvalidInput: The policy was made without a model.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        from palaver.context.compose import compose  # noqa: PLC0415 - compose runs policies, and a policy can run itself

        if not self.model_name:
            raise InvalidInput(
                f"The policy {self.name!r} has no model, so it cannot count tokens.",
                hint="Make it with a model's name, or use compose() with a meter.",
            )
        view = dialog.view()
        composed = compose(view, self, self.budget, Meter(counter(self.model_name)))
        return dialog if composed.view is view else WorkingDialog(composed.view, owner=getattr(dialog, "owner", ""))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, max_tokens={self.max_tokens})"
