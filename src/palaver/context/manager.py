"""What users subclass: a context manager turns a dialog into one that may be sent; a policy says first what it would change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar, cast

from palaver.context.compose import compose
from palaver.context.ledger import Ledger
from palaver.context.parameters import Parameters, require
from palaver.errors import InvalidInput
from palaver.tokens import Budget, ModelCounter, Rates, counter
from palaver.tokens.vocabulary import read_words
from palaver.view import Plan, View

__all__ = ["ContextManager", "Policy", "Viewed"]


class Viewed(Protocol):
    """What a policy needs of a dialog."""

    def view(self) -> View:
        """Give the view as it stands."""
        ...

    def derive(self, view: View, /) -> Any:  # noqa: ANN401 - another of its own kind
        """Give a dialog, never written back, whose view is this one."""
        ...


_Dialog = TypeVar("_Dialog", bound=Viewed)


class _ClassName:
    """Gives a manager the name of its class. The class itself has none: a registry, which goes by names, refuses it."""

    def __get__(self, instance: object, owner: type) -> str:
        if instance is None:
            message = f"{owner.__name__} sets no name"
            raise AttributeError(message, name="name", obj=owner)
        return owner.__name__


class ContextManager(ABC):
    """Turns a dialog into one that is safe to send: the same object when nothing had to change, else another one.

    The dialog itself only grows; what a manager gives is used for one call and never written back. Subclass it, set `name`, and register
    the class with a runtime to refer to it by name in a configuration.

    Attributes:
        name: The name in registries and records. A manager of a class that sets none goes by that of the class in records; such a class
            cannot be registered.
    """

    name: ClassVar[str] = cast("str", _ClassName())

    @abstractmethod
    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - users' managers take and give dialogs of their own kind
        """Give a dialog that is safe to send to the model."""


class Policy(ContextManager):
    """A context manager that says what it would change before it changes anything. Prefer it to a plain one.

    `plan` is pure: the same view, ledger, budget and prices give the same plan, on any machine. What it may not do (part a call from
    its result, drop the newest user message) it cannot say.

    Attributes:
        model_name: The model whose window and tokens count, or empty: then budget and counter come from the caller.
        max_tokens: The window: what a request and its answer may occupy, in tokens; the model's own unless given.
        parameters: What the policy is made with besides, by name, each with what it may be: whatever says otherwise is refused when it is made.
        literal: True when what is left out is left out without a word; a policy always has a line for it.
        complete: True when the policy shows everything or nothing: a view that is too large for the budget is then infeasible, where
            otherwise `compose` goes on by dropping the oldest.
    """

    complete: ClassVar[bool] = False
    literal: ClassVar[bool] = False
    parameters: ClassVar[Parameters] = MappingProxyType({})

    def __init__(self, model_name: str = "", max_tokens: int | None = None, **budget: object) -> None:
        """Make the policy for a model.

        Args:
            model_name: The model.
            max_tokens: A smaller window of your own.
            budget: Further words of a budget, in any vocabulary that `palaver.tokens.Budget.parse` reads.

        Raises:
            InvalidInput: A word is not known, or its value cannot be used.
            InfeasibleBudget: Answer and buffer leave no token for any input.
        """
        require(self.parameters, {name: getattr(self, name) for name in self.parameters})
        self._require_words(model_name, budget)
        self.model_name = model_name
        self._words: Mapping[str, object] = {**budget, "max_tokens": max_tokens}
        self.max_tokens = max_tokens
        if model_name or max_tokens is not None:  # without either, the budget comes from the caller
            window = self.budget.max_tokens
            self.max_tokens = window if max_tokens is None else max_tokens

    def _require_words(self, model_name: object, budget: Mapping[str, object]) -> None:
        """Insist that what is no parameter is a word of a budget, also where the budget comes from the caller later."""
        if not isinstance(model_name, str):
            raise InvalidInput(f"model_name is {model_name!r}.", hint="It is a text, empty for none.")
        for word in budget:
            try:
                read_words({word: None})
            except InvalidInput as error:
                close = get_close_matches(word, self.parameters, n=1)
                if close:
                    raise InvalidInput(
                        f"{word!r} is no parameter of {self.name!r}, and no word for a budget.",
                        hint=f"Close: {close[0]}.",
                    ) from error
                raise

    @cached_property
    def budget(self) -> Budget:
        """What one request may occupy.

        Raises:
            InvalidInput: The policy was made without a model and without a window.
        """
        return Budget.parse(self._words, self.model_name or None)

    def budget_for(self, model_name: str) -> Budget:
        """Give what one request may occupy; where the policy was made for no model and no window, with a model.

        Raises:
            InvalidInput: There is no model here either.
        """
        if self.model_name or self.max_tokens is not None or not model_name:
            return self.budget
        made = copy(self)
        vars(made).pop("budget", None)  # what was found out for no model
        made.model_name = model_name
        return made.budget

    @property
    def paced(self) -> bool:
        """Whether it knows itself when a view is to be made smaller, and down to what: whoever compacts by it then goes by that."""
        return False

    @cached_property
    def counter(self) -> ModelCounter:
        """What counts the model's tokens.

        Raises:
            InvalidInput: The policy was made without a model.
        """
        if not self.model_name:
            raise InvalidInput(
                f"The policy {self.name!r} has no model, so nothing can be counted.",
                hint="Make it with a model's name, or use compose() with a counter.",
            )
        return counter(self.model_name)

    @abstractmethod
    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Say what to change in a view.

        Args:
            view: The view.
            ledger: What is known besides: how large everything is.
            budget: What one request may occupy.
            prices: What a token costs, where that is known.

        Returns:
            The plan; an empty one when the view is fine as it is.
        """

    def __call__(self, dialog: _Dialog) -> _Dialog:
        """Give the dialog as the model is to see it: the very same object when nothing has to change.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        view = dialog.view()
        composed = compose(view, self, self.budget, self.counter)
        if composed.view is view:
            return dialog
        derived: _Dialog = dialog.derive(composed.view)
        return derived

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r}, max_tokens={self.max_tokens})"
