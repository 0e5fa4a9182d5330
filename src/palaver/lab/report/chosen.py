"""The sessions that a report shows call by call: those on which policies did worst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from palaver.lab.results import ReplayRow

__all__ = ["Told", "Worst", "chosen", "told", "worst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A session on which a policy did badly.

    Attributes:
        session: Its key.
        policy: The policy.
        lost: Of what later calls refer to, how much was not in view.
        references: How much was referred to.
        bill: What the session cost.
        least: What it cost under the policy that was cheapest on it.
        broken: Laws broken.
        status: `ok`, `failed` or `stopped`.
    """

    session: str
    policy: str
    lost: int
    references: int
    bill: float
    least: float
    broken: int
    status: str

    @property
    def extra(self) -> float:
        """What the session cost over the cheapest policy."""
        return self.bill - self.least


def worst(replays: Iterable[ReplayRow], stand_in: str) -> tuple[Worst, ...]:
    """Give every session under every policy, the worst first: failed or against a law, then by the share of a policy's references that were lost.

    Args:
        replays: The replays.
        stand_in: The stand-in whose replays count.
    """
    rows = [row for row in replays if row.stand_in == stand_in and (row.calls or row.status != "ok")]
    least: dict[str, float] = {}
    for row in rows:
        if row.status == "ok" and not row.infeasible:
            least[row.session] = min(row.total, least.get(row.session, row.total))
    found = [
        Worst(
            session=row.session,
            policy=row.policy,
            lost=row.references - row.in_view,
            references=row.references,
            bill=row.total,
            least=least.get(row.session, row.total),
            broken=row.broken,
            status=row.status,
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda one: (one.status == "ok", -one.broken, -one.lost, -one.extra, one.session)))


def chosen(found: Sequence[Worst], front: Sequence[str], most: int) -> tuple[str, ...]:
    """Give the keys of the sessions to show call by call: in turn the worst of each policy, those on the front first.

    Args:
        found: All of them, the worst first.
        front: The policies in the order in which they are asked.
        most: How many at most.
    """
    lists: Mapping[str, list[str]] = {name: [one.session for one in found if one.policy == name] for name in front}
    keys: dict[str, None] = {}
    for rank in range(max(map(len, lists.values()), default=0)):
        for name in front:
            if rank < len(lists[name]) and len(keys) < most:
                keys.setdefault(lists[name][rank])
    return tuple(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A session, under the policy that did worst on it.

    Attributes:
        worst: How it did.
        failed: The other policies that failed on it or broke laws, the worst first.
    """

    worst: Worst
    failed: tuple[str, ...]


def told(found: Iterable[Worst], most: int) -> tuple[Told, ...]:
    """Give each session once, the worst first.

    Args:
        found: All sessions under all policies, the worst first.
        most: How many sessions at most.
    """
    sessions: dict[str, list[Worst]] = {}
    for one in found:
        sessions.setdefault(one.session, []).append(one)
    return tuple(
        Told(worst=first, failed=tuple(one.policy for one in others if one.status != "ok" or one.broken))
        for first, *others in islice(sessions.values(), most)
    )
