"""Ranking: which definitions of a repository the rest of it leans on.

Somebody reads a file, follows one of the names that it uses to a file that defines it, reads on there, and every so often begins somewhere
else: where he is how often says how much a file matters, and which way he came, how much a definition does. That is PageRank (Page, Brin,
Motwani, Winograd, "The PageRank Citation Ranking", 1999), asked of a repository by Aider (aider/repomap.py), whose weights these are where
nothing else is said.

It is reckoned here, not by a library: sums are made in one order, so that the same repository gives the same bytes on any machine; and one more
reference to a definition that has a name for itself never lowers its rank. (In a Markov chain, steps that are moved from elsewhere to a state make
it sooner reached from everywhere, and how often it is visited is the inverse of how long one takes to come back.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, TypeAlias

from palaver.repomap.tags import Tags, Use

__all__ = ["Graph", "Interest", "Node", "Ranks", "ranked", "telling"]

_FOLLOWS = 0.85
"""How often a name is followed rather than begun elsewhere, as in the paper."""

_ROUNDS, _STILL = 100, 1e-9
"""Rounds, and the change in all of one below which there is no further."""

_NEAR = 0.5
"""How much of beginning elsewhere is beginning at a file of interest. (With Aider all of it: then what the rest of a repository leans on is gone.)"""

_ASKED = 0.1
"""What is given to the definitions that were asked for by name, all together: each of a few is among the first then."""

_MENTIONED, _LONG, _PRIVATE, _COMMON = 10.0, 10.0, 0.1, 0.1
"""How much more a reference weighs whose name was mentioned or says a lot, and one whose name is private or common."""

_EVERYWHERE = frozenset(
    "add all any append apply as_ref bytes call catch clear clone close copy count decode delete dict encode equals err extend "  # noqa: SIM905
    "filter find first float forEach format from get hashCode has id includes index indexOf input insert int into items iter "
    "join keys last len length list lower main map match max min name new next object ok open pop print push put read reduce "
    "remove replace reverse round run search send set size slice sort split start stop str strip sum test then toString trim "
    "type unwrap update upper value values write zip".split()
)
"""Names that languages, and their strings and collections, have themselves: a use of one is seldom a use of the one here."""

_LOOKS = 0.15
"""How often who reads a file stays with one of its definitions. All of them share it, those more that the file itself uses: that leads nowhere else,
or a file that uses nothing but its own would keep whoever comes."""

_TELLS = 8
"""Characters from which on a name of several words says a lot."""


class Node(NamedTuple):
    """A file, as it is ranked.

    Attributes:
        family: Names are known to each other within one.
        tags: What it defines and uses.
        parts: The names of the file, without its ending, and of the folders that it lies in.
    """

    family: str
    tags: Tags
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Interest:
    """What somebody is at.

    Attributes:
        near: The files that were touched or mentioned, by their place.
        words: The names that were mentioned.
    """

    near: AbstractSet[int] = frozenset()
    words: AbstractSet[str] = frozenset()


class Ranks(NamedTuple):
    """How much everything matters.

    Attributes:
        files: For each file; one in all.
        names: For each name that a file defines, by the file's place and the name.
    """

    files: Sequence[float]
    names: Mapping[tuple[int, str], float]


class _Step(NamedTuple):
    """A way from a file to a name that a file defines, and its weight."""

    to: int
    name: str
    weight: float


_Ways: TypeAlias = "Sequence[Sequence[_Step]]"
_Shares: TypeAlias = "Sequence[Sequence[tuple[int, float]]]"


class Graph:
    """The ways between files, whatever somebody is at. Made once for a repository.

    Attributes:
        defined: The names that each file defines, with how much each is to the file itself.
        ways: The ways from each file to names of others.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Find the ways.

        Args:
            nodes: The files.
        """
        self.defined = tuple(_defined(node) for node in nodes)
        names = _Names(nodes, self.defined)
        here = _Here(frozenset(part for node in nodes for part in node.parts))
        self.ways: _Ways = [list(_from(place, node, names, here)) for place, node in enumerate(nodes)]

    def weighed(self, words: AbstractSet[str]) -> _Ways:
        """Give the ways, those heavier whose names were mentioned."""
        if not any(name in words for own in self.defined for name in own):
            return self.ways
        return [
            [step._replace(weight=step.weight * _MENTIONED) if step.name in words else step for step in each]
            for each in self.ways
        ]


def ranked(graph: Graph, interest: Interest) -> Ranks:
    """Rank files, and the names that they define.

    Args:
        graph: The ways between them.
        interest: What somebody is at.
    """
    ways = graph.weighed(interest.words)
    totals = [sum(step.weight for step in each) for each in ways]
    files = _settled(_shares(ways, totals), _begins(len(ways), interest.near))
    names: dict[tuple[int, str], float] = {}
    for place, own in enumerate(graph.defined):
        looks = _LOOKS * files[place] / max(sum(own.values()), 1)
        names.update(((place, name), looks * much) for name, much in own.items())
    for place, each in enumerate(ways):
        follows = _FOLLOWS * files[place]
        for step in each:
            names[step.to, step.name] += follows * step.weight / totals[place]
    asked = [key for key in names if key[1] in interest.words and telling(key[1])]
    for key in asked:
        names[key] += _ASKED / len(asked)
    return Ranks(files, names)


def telling(name: str) -> bool:
    """Tell whether a name says a lot: it is long, and made of several words."""
    parts = "_" in name.strip("_") or (name.lower() != name and name.upper() != name)
    return len(name) >= _TELLS and parts


def _defined(node: Node) -> Mapping[str, float]:
    used = Counter[str]()
    for use in node.tags.uses:
        used[use.name] += use.times
    return {each.name: 1 + sqrt(used[each.name]) for each in node.tags.definitions}


class _Names:
    """Which files define a name: any of theirs, and one that is no member."""

    def __init__(self, nodes: Sequence[Node], defined: Sequence[Mapping[str, float]]) -> None:
        self.any: dict[tuple[str, str], list[int]] = {}
        self.free: dict[tuple[str, str], list[int]] = {}
        for place, node in enumerate(nodes):
            for name in defined[place]:
                self.any.setdefault((node.family, name), []).append(place)
            for name in dict.fromkeys(each.name for each in node.tags.definitions if not each.member):
                self.free.setdefault((node.family, name), []).append(place)

    def of(self, family: str, use: Use) -> Sequence[int]:
        """Give the files that may be meant."""
        return (self.free if use.plain else self.any).get((family, use.name), ())


def _from(place: int, node: Node, names: _Names, here: _Here) -> Iterator[_Step]:
    """Give the ways from a file. Of several files that define a name nobody knows which is meant: they share it."""
    for use in node.tags.uses:
        there = names.of(node.family, use)
        if place in there or not there or not here[use.module]:
            continue
        weight = _weight(use.name) * sqrt(use.times)  # used everywhere in a file, it is no hundred times more to it
        for to in there:
            yield _Step(to, use.name, weight / len(there))


class _Here(dict[str, bool]):
    """Whether a module may be of this repository: it is named from where it is used, or some file or folder has its name."""

    def __init__(self, parts: AbstractSet[str]) -> None:
        super().__init__()
        self._parts = parts

    def __missing__(self, module: str) -> bool:
        first = [part for part in _JOINTS.split(module.removeprefix("@")) if part][:2]
        self[module] = found = module.startswith((".", "~", "@/")) or not first or not self._parts.isdisjoint(first)
        return found


_JOINTS = re.compile(r"[./:\\]+")


def _weight(name: str) -> float:
    weight = _PRIVATE if name.startswith("_") else 1.0
    if telling(name):
        return weight * _LONG
    return weight * _COMMON if name in _EVERYWHERE else weight


def _begins(count: int, near: AbstractSet[int]) -> Sequence[float]:
    """Give how often each file is begun at."""
    somewhere = (1 - _NEAR if near else 1.0) / max(count, 1)
    return [somewhere + (_NEAR / len(near) if place in near else 0.0) for place in range(count)]


def _shares(ways: _Ways, totals: Sequence[float]) -> _Shares:
    """Give for each file how often each other one is come to from it."""
    shares = []
    for each, total in zip(ways, totals, strict=True):
        sums: dict[int, float] = {}
        for step in each:
            sums[step.to] = sums.get(step.to, 0.0) + step.weight
        shares.append([(to, weight / total) for to, weight in sums.items()])
    return shares


def _settled(shares: _Shares, begins: Sequence[float]) -> Sequence[float]:
    """Go on until nothing changes any more."""
    ranks = list(begins)
    for _ in range(_ROUNDS):
        led = [0.0] * len(ranks)
        lost = 0.0
        for rank, ways in zip(ranks, shares, strict=True):
            if not ways:
                lost += rank
            for to, share in ways:
                led[to] += rank * share
        again = 1 - _FOLLOWS + _FOLLOWS * lost
        new = [again * begin + _FOLLOWS * come for begin, come in zip(begins, led, strict=True)]
        change = sum(abs(one - other) for one, other in zip(new, ranks, strict=True))
        ranks = new
        if change < _STILL:
            break
    return ranks
