"""Rank files and definitions by how much the rest of a repository uses them.

A reader of a file follows one of the names in it to a file that defines it, continues there, and sometimes starts elsewhere. The time spent in a
file is its rank: PageRank (Page, Brin, Motwani, Winograd 1999). The rank of a definition is how often the reader arrives by its name. Aider applied it to
repositories (aider/repomap.py, get_ranked_tags); the weights are Aider's unless a comment says otherwise.

It is computed here, without a library: sums in a fixed order produce the same bytes on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from palaver.repomap.parsing import Tags

_FOLLOW = 0.85
"""The probability that a reader follows a name instead of starting elsewhere, as in the paper."""

_ROUNDS, _STILL = 100, 1e-9
"""The maximum number of iterations, and the total change at which they stop."""

_NEAR = 0.5
"""The share of starts at files of interest. Aider's is 1, with which the rest of a repository has no rank."""

_MENTIONED_SHARE = 0.1
"""The total rank of mentioned names, so that a few of them come first."""

_MENTIONED, _LONG, _PRIVATE, _COMMON = 10.0, 10.0, 0.1, 0.1
_LONG_NAME, _COMMON_FILES = 8, 5
"""Factors of a reference: a mentioned name, a long name of several words (from 8 characters), a private name, a name that more than 5 files define."""

_STAY = 0.15
"""How often a reader stays with a definition of the file. Names that the file itself uses leave no other trace, because a file whose
references lead only to itself would keep every reader."""


class TaggedFile(NamedTuple):
    """A file to rank: its tags, and the family of languages in which names are shared."""

    family: str
    tags: Tags


class FileRanks(NamedTuple):
    """Ranks of files, which sum to 1, and of the names they define, by file index and name."""

    files: Sequence[float]
    names: Mapping[tuple[int, str], float]


class _Link(NamedTuple):
    to: int
    name: str
    weight: float


def rank(sources: Sequence[TaggedFile], *, near: Collection[int] = (), mentioned: Collection[str] = ()) -> FileRanks:
    """Rank files and the names they define.

    One more reference to a name that only one file defines never lowers its rank.

    Args:
        sources: The files.
        near: Indexes of the files of interest.
        mentioned: Names of interest.
    """
    links = _links(sources, mentioned)
    totals = [sum(link.weight for link in outgoing) for outgoing in links]
    files = _settled(links, totals, near)
    names: dict[tuple[int, str], float] = {}
    for index, source in enumerate(sources):
        own = _own(source.tags)
        stays = _STAY * files[index] / max(sum(own.values()), 1)
        names.update(((index, name), stays * weight) for name, weight in own.items())
    for index, outgoing in enumerate(links):
        for link in outgoing:
            names[link.to, link.name] += _FOLLOW * files[index] * link.weight / totals[index]
    asked = [key for key in names if key[1] in mentioned and speaks(key[1])]
    for key in asked:
        names[key] += _MENTIONED_SHARE / len(asked)
    return FileRanks(files, names)


def speaks(name: str) -> bool:
    """Return whether a name is long and made of several words."""
    several = "_" in name.strip("_") or (name.lower() != name and name.upper() != name)
    return len(name) >= _LONG_NAME and several


def _own(tags: Tags) -> Mapping[str, float]:
    """Return the names that a file defines, with the weight of each for the file itself."""
    used = Counter[str]()
    for use in tags.uses:
        used[use.name] += use.times
    return {tag.name: 1 + sqrt(used[tag.name]) for tag in tags.definitions}


def _links(sources: Sequence[TaggedFile], mentioned: Collection[str]) -> list[list[_Link]]:
    """Return for each file the names it uses that other files define. Several definers of a name share its weight."""
    every: dict[tuple[str, str], list[int]] = {}
    free: dict[tuple[str, str], list[int]] = {}  # defined outside of a type
    for index, source in enumerate(sources):
        for name in dict.fromkeys(tag.name for tag in source.tags.definitions):
            every.setdefault((source.family, name), []).append(index)
        for name in dict.fromkeys(tag.name for tag in source.tags.definitions if not tag.member):
            free.setdefault((source.family, name), []).append(index)
    links: list[list[_Link]] = []
    for index, source in enumerate(sources):
        outgoing: list[_Link] = []
        for use in source.tags.uses:
            definers = (free if use.plain else every).get((source.family, use.name), ())
            if index not in definers and definers:
                weight = _weight(use.name, len(definers), mentioned) * sqrt(use.times) / len(definers)
                outgoing += [_Link(to, use.name, weight) for to in definers]
        links.append(outgoing)
    return links


def _weight(name: str, definers: int, mentioned: Collection[str]) -> float:
    weight = _MENTIONED if name in mentioned else 1.0
    weight *= _PRIVATE if name.startswith("_") else 1.0
    weight *= _LONG if speaks(name) else 1.0
    return weight * (_COMMON if definers > _COMMON_FILES else 1.0)


def _settled(links: Sequence[Sequence[_Link]], totals: Sequence[float], near: Collection[int]) -> Sequence[float]:
    """Iterate until the ranks of the files converge."""
    elsewhere = (1 - _NEAR if near else 1.0) / max(len(links), 1)
    begins = [elsewhere + (_NEAR / len(near) if index in near else 0.0) for index in range(len(links))]
    shares: list[dict[int, float]] = []
    for outgoing, total in zip(links, totals, strict=True):
        share: dict[int, float] = {}
        for link in outgoing:
            share[link.to] = share.get(link.to, 0.0) + link.weight / total
        shares.append(share)
    ranks = begins
    for _ in range(_ROUNDS):
        led = [0.0] * len(ranks)
        lost = 0.0
        for here, share in zip(ranks, shares, strict=True):
            lost += 0.0 if share else here
            for to, part in share.items():
                led[to] += here * part
        again = 1 - _FOLLOW + _FOLLOW * lost
        new = [again * begin + _FOLLOW * come for begin, come in zip(begins, led, strict=True)]
        change = sum(abs(after - before) for after, before in zip(new, ranks, strict=True))
        ranks = new
        if change < _STILL:
            break
    return ranks
