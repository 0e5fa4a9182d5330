"""Retention: what policies keep of the evidence in long histories, and what a search finds of it, over all questions of some files."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from palaver.errors import InvalidInput, PalaverError
from palaver.lab.evidence import DEPTHS, Evidence, Found, Ranked, evidence, haystacks, searched
from palaver.lab.loading import files_in
from palaver.lab.results import Problem
from palaver.lab.running import entrants_of, held_to_laws, of_policies
from palaver.lab.settings import Settings, entrant_of
from palaver.lab.workers import Began, worked
from palaver.tokens import counter

__all__ = ["Kept", "Retention", "retention"]

_LEVELS = ("sessions", "turns")
_FORMULAS = ("any", "all", "ndcg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a policy's view at the end of a history keeps, on average over the questions.

    Attributes:
        policy: The policy.
        status: `ok`; `failed` (on some history; the figures are of the others); `invalid` (it broke a law before).
        questions: How many questions.
        retained: Of the turns that hold the answer, the share that it shows word for word; None where none is marked.
        any: How often it shows something of a session that holds the answer.
        all: How often it shows something of all of them.
        answered: How often the answer's words stand in it.
    """

    policy: str
    status: str
    questions: int
    retained: float | None
    any: float | None
    all: float | None
    answered: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What was found.

    Attributes:
        histories: How many histories.
        questions: How many questions.
        rows: The policies, in the order in which they were named.
        search: What a search finds: by level (`sessions`, `turns`) and formula (`any`, `all`, `ndcg`), for each k the mean; None where no
            question has something relevant.
        scored: By level, of how many questions those are the means.
        problems: What a reader must know.
    """

    histories: int
    questions: int
    rows: tuple[Kept, ...]
    search: Mapping[str, Mapping[str, Mapping[int, float | None]]]
    scored: Mapping[str, int]
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """Give the attributes as JSON values."""
        search = {
            level: {name: {str(k): mean for k, mean in means.items()} for name, means in formulas.items()}
            for level, formulas in self.search.items()
        }
        return {**asdict(self), "search": search}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keep:
    """Replays the histories of a file under a policy; gives what its views keep, or why there are none."""

    path: Path
    policy: str
    settings: Settings
    why: str = ""

    def __call__(self, began: Began) -> tuple[tuple[Evidence, ...], str]:
        kept: list[Evidence] = []
        if self.why:
            return (), self.why
        entrant, counting = entrant_of(self.policy, self.settings), counter(self.settings.model)
        for each in haystacks(self.path):
            began((self.policy, each.name))
            try:
                kept += evidence(each, entrant, counting)
            except PalaverError as error:
                return tuple(kept), str(error)
        began(None)
        return tuple(kept), ""

    def after(self, _doing: Hashable | None, why: str) -> _Keep:
        return replace(self, why=why)


def retention(settings: Settings) -> Retention:
    """Look at what policies keep of the evidence in LongMemEval-shaped files, and what a search finds of it.

    Args:
        settings: What is asked; its paths are files in that shape, and folders of them.

    Raises:
        InvalidInput: A setting is wrong, or no file has a history.
        UnknownPolicy: There is no policy of some name.
    """
    entrants, refused = entrants_of(settings)
    invalid = refused | held_to_laws(entrants, settings)
    looked, problems = _looked(settings.paths)
    found = [one for each in looked for one in each.found]
    if not found:
        said = " ".join(problem.text for problem in problems)
        raise InvalidInput(
            f"No history with a question was found. {said}", hint="Name files in the shape of LongMemEval."
        )
    names = [each.name for each in entrants if each.name not in invalid]
    tasks = [
        _Keep(path=path, policy=name, settings=settings) for name in names for path in (each.path for each in looked)
    ]
    kept: dict[str, list[Evidence]] = {name: [] for name in names}
    failed: dict[str, Problem] = {}
    for done in worked(tasks, settings.jobs, settings.timeout):
        if done is not None:
            task, (some, why) = done
            kept[task.policy] += some
            if why:
                text = f"It failed: {why}"
                failed[task.policy] = Problem(
                    kind="policy failed", text=text, source=str(task.path), policy=task.policy
                )
    return Retention(
        histories=sum(each.histories for each in looked),
        questions=len(found),
        rows=tuple(_row(name, kept.get(name, []), _status(name, invalid, failed)) for name in settings.policies),
        search={level: _means([ranked for each in found if (ranked := getattr(each, level))]) for level in _LEVELS},
        scored={level: sum(getattr(each, level) is not None for each in found) for level in _LEVELS},
        problems=(*problems, *of_policies(invalid), *failed.values()),
    )


class _Looked(NamedTuple):
    """A file, and what a search finds in its histories."""

    path: Path
    histories: int
    found: tuple[Found, ...]


def _looked(paths: Sequence[Path]) -> tuple[list[_Looked], list[Problem]]:
    """Search all files; what is no such file is a problem."""
    files, problems = files_in(paths)
    looked = []
    for path in files:
        try:
            each = [searched(haystack) for haystack in haystacks(path)]
        except (PalaverError, OSError) as error:
            problems.append(Problem(kind="unreadable", text=str(error), source=str(path)))
        else:
            looked.append(_Looked(path, len(each), tuple(found for some in each for found in some)))
    return looked, problems


def _status(name: str, invalid: Mapping[str, object], failed: Mapping[str, object]) -> str:
    return "invalid" if name in invalid else "failed" if name in failed else "ok"


def _row(policy: str, kept: list[Evidence], status: str) -> Kept:
    return Kept(
        policy=policy,
        status=status,
        questions=len(kept),
        retained=_mean(each.retained for each in kept),
        any=_mean(each.any for each in kept),
        all=_mean(each.all for each in kept),
        answered=_mean(float(each.answered) for each in kept),
    )


def _means(ranked: list[Ranked]) -> dict[str, dict[int, float | None]]:
    return {name: {k: _mean(getattr(each, name)[k] for each in ranked) for k in DEPTHS} for name in _FORMULAS}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
