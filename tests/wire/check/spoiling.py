"""How a case of the negative corpus spoils a sample, as data."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from palaver.wire.profiles import Profile
from palaver.wire.violations import Rule
from tests.wire.check.samples import SAMPLES

Path: TypeAlias = tuple[str | int, ...]
Json: TypeAlias = Any


@dataclass(frozen=True)
class Put:
    """Set what stands at a path."""

    path: Path
    value: Any

    def __call__(self, request: dict[str, Any]) -> None:
        """Change the request."""
        _at(request, self.path[:-1])[self.path[-1]] = self.value


@dataclass(frozen=True)
class Drop:
    """Take away what stands at a path."""

    path: Path

    def __call__(self, request: dict[str, Any]) -> None:
        """Change the request."""
        del _at(request, self.path[:-1])[self.path[-1]]


@dataclass(frozen=True)
class Add:
    """Insert elements before the one at a path, whose last step is an index."""

    path: Path
    values: tuple[Any, ...]

    def __call__(self, request: dict[str, Any]) -> None:
        """Change the request."""
        index = self.path[-1]
        assert isinstance(index, int)
        _at(request, self.path[:-1])[index:index] = self.values


@dataclass(frozen=True)
class Move:
    """Take the element at a path out and insert it before the one at another."""

    source: Path
    target: Path

    def __call__(self, request: dict[str, Any]) -> None:
        """Change the request."""
        taken = _at(request, self.source)
        Drop(self.source)(request)
        Add(self.target, (taken,))(request)


def _at(request: Json, path: Path) -> Json:
    for step in path:
        request = request[step]
    return request


Change = Put | Drop | Add | Move


@dataclass(frozen=True)
class Case:
    """One documented rejection: a sample, how it is spoiled, and the rule that names it.

    Attributes:
        name: What is refused, in words.
        sample: The sample it spoils.
        rule: The one rule it breaks.
        changes: What is done to the sample, in order.
        limits: Changes to the sample's profile by part, where a rule is easier shown with a smaller figure or another model.
        as_history: Whether it is refused as a history as well; None for what the sample says.
    """

    name: str
    sample: str
    rule: Rule
    changes: tuple[Change, ...]
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    as_history: bool | None = None

    def request(self) -> dict[str, Any]:
        """Give the spoiled request."""
        request = SAMPLES[self.sample].request()
        for change in self.changes:
            change(request)
        return request

    def profile(self) -> Profile:
        """Give the profile to judge it by."""
        found = SAMPLES[self.sample].profile
        for part, figures in self.limits.items():
            if part == "":
                found = replace(found, **figures)
            else:
                found = replace(found, **{part: replace(getattr(found, part), **figures)})
        return found

    def history(self) -> bool:
        """Tell whether it is judged as a history."""
        return SAMPLES[self.sample].as_history if self.as_history is None else self.as_history


def maker(sample: str) -> Callable[..., Case]:
    """Give a function that writes down cases of one sample."""

    def case(name: str, rule: Rule, *changes: Change, **limits: dict[str, Any]) -> Case:
        return Case(name, sample, rule, changes, limits)

    return case
