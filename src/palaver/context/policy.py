"""Context managers and policies: the two protocols that decide what a model sees, and policies by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from math import isfinite
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, cast

from palaver.context.meter import Meter
from palaver.errors import InvalidInput, NotFound
from palaver.prompts import Runtime
from palaver.tokens import Budget, counter
from palaver.tokens.budget import read_words
from palaver.view import Plan, View

__all__ = [
    "DEFAULT_POLICY",
    "POLICIES",
    "SWITCH",
    "Bound",
    "ContextManager",
    "Parameters",
    "Policy",
    "count",
    "policy",
    "require",
    "require_policy",
    "share",
]


class _ClassName:
    """Return the name of the class for managers that set none; the class itself has no name, so that a registry refuses it."""

    def __get__(self, instance: object, owner: type) -> str:
        if instance is None:
            message = f"{owner.__name__} sets no name"
            raise AttributeError(message, name="name", obj=owner)
        return owner.__name__


class ContextManager(ABC):
    """A function from a dialog to the dialog that the model sees.

    `compose` sends the result exactly, with everything that the manager added, rewrote, reordered or redacted. The dialog itself never changes.
    Subclass it, set `name`, and register the class with a runtime to use it by name in a configuration.

    Attributes:
        name: The name in registries and records. A class without a name cannot be registered; its objects use the class name.
    """

    name: ClassVar[str] = cast("str", _ClassName())

    @abstractmethod
    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - users' managers take and return dialogs of their own kind
        """Return the dialog to send: the same object, or another one made from it."""


class Policy(ContextManager):
    """A context manager that returns a plan, which `compose` applies.

    `plan` is pure: the same view, budget and counter lead to the same plan on any machine. A plan names whole exchanges and single blocks, so it
    cannot separate a call from its result or drop the newest user message.

    Attributes:
        model_name: The model whose window and tokens count; empty when the caller passes the budget.
        max_tokens: The window in tokens, the request and its answer together; None for the model's own.
        parameters: The constructor's own parameters, each with its bounds; other values raise `InvalidInput`.
        acts_within_limit: Whether the policy may change a view that fits its budget; where it never does, `compose` does not ask it about such a view.
        complete: True when the policy shows everything or nothing: `compose` raises `InfeasibleBudget` instead of cutting further.
        enabled: False when the policy does nothing: `compose` sends the view as it is, also one that exceeds the budget.
        incremental: Whether a summary starts from the one before; otherwise what that one covers is summarised again.
        headings: The sections to ask of a summarizer; a mapping says what belongs in each.
        restore_files: How many of the files that its tools read last an agent reads again after a compaction.
        restore_tokens: The most tokens of each of them.
    """

    acts_within_limit: ClassVar[bool] = True
    complete: ClassVar[bool] = False
    enabled: bool = True
    incremental: bool = True
    parameters: ClassVar[Parameters] = MappingProxyType({})
    headings: ClassVar[Collection[str]] = ()
    restore_files: int = 0
    restore_tokens: int = 0

    def __init_subclass__(cls, **words: Any) -> None:  # noqa: ANN401 - of another base class
        """Refuse a subclass with a `__call__` of its own, which `compose` would never call.

        Raises:
            InvalidInput: The subclass has one.
        """
        super().__init_subclass__(**words)
        if cls.__call__ is not Policy.__call__:
            raise InvalidInput(
                f"The policy class {cls.__name__} overrides __call__, but what decides is its plan().",
                hint="Override plan(), or subclass ContextManager and call the policy in its __call__.",
            )

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

    def compact(self, view: View, budget: Budget, meter: Meter, *, asked: bool = False) -> Plan:
        """Return what to change in a view for good: the plan is committed, and the next one starts from its result. By default what `plan` returns.

        Args:
            view: The view.
            budget: What one request may occupy.
            meter: Counts tokens.
            asked: Whether somebody asked for a compaction: then what the policy does when the view does not fit.
        """
        return self.plan(
            view, budget.with_limit(min(budget.limit, meter.view(view).total - 1)) if asked else budget, meter
        )

    @abstractmethod
    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Return what to change in a view for one call. Nothing is kept: the next plan starts from the log again.

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
        from palaver.context.working import WorkingDialog  # noqa: PLC0415 - as above

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


POLICIES: Mapping[str, str] = MappingProxyType(
    {
        "palaver": "presets:Palaver",
        "fold": "presets.own:FoldContextManager",
        "offload": "presets.own:OffloadContextManager",
        "default": "presets.own:DefaultContextManager",
        "full": "presets.own:FullContext",
        "lllm": "presets.own:LLLM",
        "openhands": "presets.coding:OpenHands",
        "claude-code": "presets.coding:ClaudeCode",
        "manus": "presets.assistants:Manus",
        "opencode": "presets.coding:OpenCode",
        "opencode-dcp": "presets.coding:OpenCodeDCP",
        "aider": "presets.aider:Aider",
        "swe-agent": "presets.coding:SWEAgent",
        "cat": "presets.assistants:CAT",
        "letta": "presets.assistants:Letta",
        "dynamiq": "presets.assistants:Dynamiq",
        "pi": "presets.coding:Pi",
    }
)
"""The policies that come with palaver: each name's module in `palaver.context` and class. A module is loaded when somebody asks for its policy."""

DEFAULT_POLICY: Final = "palaver"
"""The policy where a caller names none."""


def policy(
    config: str | ContextManager | Mapping[str, Any] | None, model: str = "", *, runtime: Runtime | None = None
) -> ContextManager | None:
    """Return a context manager.

    Args:
        config: A name; a configuration with `type` and the words of its constructor; a manager, which is returned; or None (also `type: null`) for none.
        model: The model, unless the configuration names one.
        runtime: Where further managers are registered; they win over ours of the same name.

    Raises:
        NotFound: No policy has this name; the error lists close ones.
        InvalidInput: The configuration has no type, or a word that its policy does not know.
    """
    require_policy(config, "policy")
    if config is None or isinstance(config, ContextManager):
        return config
    words = {"type": config} if isinstance(config, str) else dict(config)
    if words and "type" not in words:
        raise InvalidInput(
            f"The policy's configuration has no 'type'; its keys: {', '.join(map(repr, words))}.",
            hint=f"Name the policy with 'type'. Policies: {', '.join(POLICIES)}.",
        )
    name = words.pop("type", None)
    if name is None or name == "null":
        return None
    if not isinstance(name, str):
        raise InvalidInput(f"The policy's type is {name!r}.", hint=f"Policies: {', '.join(POLICIES)}.")
    made: ContextManager = _named(name, runtime)(**({"model_name": model} | words))
    return made


def require_policy(given: object, argument: str) -> None:
    """Raise InvalidInput unless a value is a name, a configuration, a context manager or None; whether a policy has the name is not checked.

    Args:
        given: The value.
        argument: The argument's name, for the error.
    """
    if given is None or isinstance(given, str | ContextManager | Mapping):
        return
    if isinstance(given, type) and issubclass(given, ContextManager):
        raise InvalidInput(
            f"The {argument} is the class {given.__name__}, not an object of it.",
            hint=f"Pass an object: {given.__name__}().",
        )
    raise InvalidInput(
        f"The {argument} is {shortened(given)}.",
        hint="Pass a name such as 'palaver', a configuration with 'type', or an object whose class is a Policy or ContextManager.",
    )


def _named(name: str, runtime: Runtime | None) -> type[Any]:
    registered = runtime.context_managers() if runtime is not None else ()
    if runtime is not None and name in registered:
        return runtime.get_context_manager(name)
    if name not in POLICIES:
        known = (*POLICIES, *registered)
        raise NotFound(
            name, what="policy", close=get_close_matches(name, known), hint=f"Policies: {', '.join(sorted(known))}."
        )
    module, _, wanted = POLICIES[name].partition(":")
    found: type[Policy] = getattr(import_module(f"palaver.context.{module}"), wanted)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What a parameter may be.

    Attributes:
        of: Its type.
        least: The least number, or None.
        most: The largest number, or None.
        above: Whether the least is excluded.
        below: Whether the largest is excluded.
        none: Whether None is allowed.
    """

    of: type
    least: float | None = None
    most: float | None = None
    above: bool = False
    below: bool = False
    none: bool = False

    def holds(self, value: object) -> bool:
        """Return whether a value is within the bound. A bool is not a number, and a number is not a bool."""
        if value is None:
            return self.none
        if self.of is bool or isinstance(value, bool):
            return self.of is bool and isinstance(value, bool)
        if not isinstance(value, int if self.of is int else int | float) or not isfinite(value):
            return False
        low = self.least is None or (value > self.least if self.above else value >= self.least)
        return low and (self.most is None or (value < self.most if self.below else value <= self.most))

    def hint(self) -> str:
        """Return the bound in words."""
        what = {bool: "true or false", int: "a whole number", float: "a number"}[self.of]
        low, high = "more than" if self.above else "at least", "less than" if self.below else "at most"
        ends = " and ".join(
            f"{word} {end:g}" for word, end in ((low, self.least), (high, self.most)) if end is not None
        )
        return ", ".join(filter(None, (what, ends, "or None" if self.none else "")))


Parameters: TypeAlias = Mapping[str, Bound]
"""The parameters of a policy by name, each with its bound."""


def count(least: int = 0, *, none: bool = False) -> Bound:
    """Return the bound of a whole number."""
    return Bound(of=int, least=least, none=none)


def share(*, above: bool = False, below: bool = False) -> Bound:
    """Return the bound of a share, from 0 to 1; either end may be excluded."""
    return Bound(of=float, least=0, most=1, above=above, below=below)


SWITCH = Bound(of=bool)


def require(parameters: Parameters, values: Mapping[str, object]) -> None:
    """Raise InvalidInput where a value is out of the bound of its parameter; values of other names are not checked."""
    for name, value in values.items():
        bound = parameters.get(name)
        if bound is not None and not bound.holds(value):
            raise InvalidInput(f"{name} is {value!r}.", hint=f"Give {bound.hint()}.")


def require_words(policy: str, model_name: object, budget: Mapping[str, object], parameters: Parameters) -> None:
    """Raise InvalidInput where the model's name is not a text, or a word is neither a parameter nor a word of a budget."""
    if not isinstance(model_name, str):
        raise InvalidInput(f"model_name is {model_name!r}.", hint="Give a text, empty for none.")
    for word in budget:
        try:
            read_words({word: None})
        except InvalidInput as error:
            close = get_close_matches(word, parameters, n=1)
            if close:
                message = f"{word!r} is neither a parameter of {policy!r} nor a word for a budget."
                raise InvalidInput(message, hint=f"Close: {close[0]}.") from error
            raise
