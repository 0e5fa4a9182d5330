"""A request under examination, and the run of a provider's checks over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from palaver.wire.check import encoding, shape
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "Check", "Subject", "conflicting", "run"]

RULES = encoding.RULES | shape.RULES | {Rule.PARAMETER_CONFLICT}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a check looks at.

    Attributes:
        body: The request's body.
        profile: What its provider accepts.
        as_history: Whether the body is taken as the record of a conversation rather than as the next request: one that
            ends on the assistant's words is then complete.
    """

    body: Place
    profile: Profile
    as_history: bool


Check: TypeAlias = Callable[[Subject], Iterator[Violation]]


def run(
    request: Mapping[str, object], profile: Profile, fields: shape.Shape, checks: Iterable[Check], *, as_history: bool
) -> tuple[Violation, ...]:
    """Run what every provider is checked for and then its own checks; give all violations in the order found."""
    subject = Subject(Place(request), profile, as_history)
    found = [*encoding.encoded(subject.body, profile.request_bytes), *fields.check(subject.body)]
    for check in checks:
        found.extend(check(subject))
    return tuple(found)


def conflicting(body: Place, *pairs: tuple[str, str]) -> Iterator[Violation]:
    """Check that of each pair of fields at most one is given; the first is named."""
    for one, other in pairs:
        if body[one] and body[other]:
            yield body[one].breaks(Rule.PARAMETER_CONFLICT, f"{one} and {other} may not both be given")
