"""Running: all sessions of all files under all policies, over several processes, to be taken up where it was cut off."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.lab.entrants import Entrant
from palaver.lab.loading import files_in
from palaver.lab.origins import code_digest, source_digest
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import Problem, ReplayRow, Run, Table
from palaver.lab.scores import table
from palaver.lab.settings import Settings, entrant_of
from palaver.lab.stand_ins import STAND_INS
from palaver.lab.tasks import Asked, Examine, ReplayFile
from palaver.lab.workers import worked
from palaver.lab.writing import Done, Results
from palaver.messages import canonical_json
from palaver.tokens import model_info

__all__ = ["Progress", "entrants_of", "held_to_laws", "of_policies", "run_lab"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        done: Bytes of the files that are done.
        all: Bytes of all files.
        files: Files that are done.
        sessions: Sessions that are done.
        file: The file that was done last, or empty.
    """

    done: int
    all: int
    files: int
    sessions: int
    file: str


def run_lab(
    settings: Settings, folder: Path, *, resume: bool = False, progress: Callable[[Progress], None] | None = None
) -> Table:
    """Replay sessions under policies, and put the results together.

    A session that cannot be read, a policy that breaks a law or fails half way: each is named in the table's problems, and none of them stops the
    others.

    Args:
        settings: What is asked.
        folder: Where the results go.
        resume: Whether to take up what an earlier run with the same settings left there.
        progress: Told how far it is, now and then.

    Raises:
        InvalidInput: A setting is wrong, or the folder holds results already and is not to be taken up.
        UnknownPolicy: There is no policy of some name.
    """
    entrants, refused = entrants_of(settings)
    prices = sheet(settings.model, lifetime=settings.lifetime)
    run = _run(settings, prices, entrants)
    results = Results(folder)
    _begin(results, run, resume=resume)
    invalid = refused | held_to_laws(entrants, settings)
    problems = [*_of_prices(prices), *of_policies(invalid)]
    files, missing = files_in(settings.paths)
    problems += missing
    valid = tuple(each.name for each in entrants if each.name not in invalid)
    try:
        done = _over_files(
            files, Asked(settings=settings, policies=valid, folder=folder, run=_of(run, valid)), progress
        )
    finally:
        results.sweep()
    problems += [problem for each in done for problem in each.problems]
    keys, twice = _apart(done)
    problems += twice
    rows: list[ReplayRow] = []
    for key in keys:
        problems += results.session(key).problems
        rows += results.replays(key)
    problems += _of_replays(rows)
    found = table(run, rows, keys=keys, problems=problems, invalid=invalid)
    results.finish(found)
    return found


# --- beginning ---------------------------------------------------------------------------------------------------------------


def entrants_of(settings: Settings) -> tuple[tuple[Entrant, ...], dict[str, tuple[str, ...]]]:
    """Make the policies; those for which the window is too small come apart, with the reason.

    Raises:
        InvalidInput: A setting is wrong.
        UnknownPolicy: There is no policy of some name.
    """
    unknown = [each for each in settings.stand_ins if each not in STAND_INS]
    if unknown or not settings.stand_ins:
        raise InvalidInput(
            f"{', '.join(unknown) or 'Nothing'} stands for no summary.", hint=f"One of: {', '.join(STAND_INS)}."
        )
    if not settings.policies:
        raise InvalidInput("No policy is named.", hint="Such as --policies palaver,openhands.")
    twice = [each for each in dict.fromkeys(settings.policies) if settings.policies.count(each) > 1]
    if twice:
        raise InvalidInput(f"The policy {twice[0]!r} is named twice.", hint="Name each once.")
    made: list[Entrant] = []
    refused: dict[str, tuple[str, ...]] = {}
    for each in settings.policies:
        try:
            made.append(entrant_of(each, settings))
        except InfeasibleBudget as error:
            refused[each] = (f"its own division of the window leaves no room ({error})",)
    return tuple(made), refused


def _run(settings: Settings, prices: Sheet, entrants: Sequence[Entrant]) -> Run:
    info = model_info(settings.model)
    run = Run(
        key="",
        sources=tuple(map(str, settings.paths)),
        policies=settings.policies,
        own={each.name: digest for each in entrants if (digest := source_digest(each))},
        stand_ins=settings.stand_ins,
        model=settings.model,
        window=settings.window or info.context_window,
        budget=settings.budget,
        prices=asdict(prices),
        currency=prices.currency,
        assumptions=tuple(_assumptions(settings, prices)),
        seed=settings.seed,
        resamples=settings.resamples,
        version=version("palaver"),
        code=code_digest(),
    )
    values = {name: getattr(run, name) for name in _KEY}
    return replace(run, key=sha256(canonical_json(values)).hexdigest()[:16])


_KEY: Mapping[str, str] = {
    "schema": "the meaning of the results",
    "version": "the version of palaver",
    "code": "the code of palaver",
    "policies": "the policies",
    "own": "the source of a policy",
    "stand_ins": "the stand-ins",
    "model": "the model",
    "window": "the window",
    "budget": "the budget",
    "prices": "the prices, or how long the cache lives",
}
"""The attributes of a run of which each figure is made: where one differs, two results do not belong together."""


def _assumptions(settings: Settings, prices: Sheet) -> Iterator[str]:
    info = model_info(settings.model)
    if info.warning and settings.window is None:
        yield info.warning
    yield (
        f"A prefix stays cached for {prices.lifetime:,.0f} seconds after its last use and is found up to the first block that differs, "
        f"if it has {prices.least:,} tokens; what is not found is written to the cache."
    )
    yield "Where a call has no recorded time, the cache is taken to be warm."
    yield "The agent's steps are the recorded ones under every policy; what it would have done with another view nobody can know."
    stood = ", ".join(settings.stand_ins)
    yield f"No model is asked: where a system has one write a summary, there stands ({stood})."
    yield "An infeasible call, which must send more than its budget allows, is billed as if it had been sent with what the policy had to begin with."


def _of(run: Run, valid: tuple[str, ...]) -> str:
    """Give the key under which a session is done: of the run, and of the policies replayed there.

    What a policy breaks can differ between runs of the same key, such as with the time that it had: a session on which one was not replayed
    would else be taken for done.
    """
    return run.key if valid == run.policies else f"{run.key}-{sha256(canonical_json(valid)).hexdigest()[:8]}"


def _begin(results: Results, run: Run, *, resume: bool) -> None:
    if results.folder.exists() and not results.folder.is_dir():
        raise InvalidInput(f"{results.folder} is a file.", hint="Name a folder for the results.")
    before = results.run
    if before is not None and not resume:
        raise InvalidInput(
            f"{results.folder} holds results already.", hint="Take them up with --resume, or name another folder."
        )
    if before is not None and before.key != run.key:
        differ = [said for name, said in _KEY.items() if getattr(before, name) != getattr(run, name)]
        raise InvalidInput(
            f"{results.folder} holds results of other settings: {', '.join(differ) or 'what they are made of'} differ.",
            hint="Name another folder: results of both in one table could not be compared.",
        )
    results.begin(run)


def held_to_laws(entrants: Sequence[Entrant], settings: Settings) -> dict[str, tuple[str, ...]]:
    """Hold the policies of a user's to the laws; give what each broke that broke any."""
    tasks = [Examine(name=each.name, settings=settings) for each in entrants if each.own]
    found = {each[0].name: each[1] for each in worked(tasks, settings.jobs, settings.timeout) if each is not None}
    return {task.name: found[task.name] for task in tasks if found[task.name]}


def _apart(done: Sequence[Done]) -> tuple[tuple[str, ...], list[Problem]]:
    """Give the keys of the sessions, each once; that a session is there twice is a problem."""
    first: dict[str, str] = {}
    twice: list[Problem] = []
    for each in done:
        for key in each.sessions:
            if first.setdefault(key, each.source) != each.source:
                text = f"It holds the same as {first[key]}, and counts once."
                twice.append(Problem(kind="twice", text=text, source=each.source, session=key))
    return tuple(first), twice


def _of_prices(prices: Sheet) -> Iterator[Problem]:
    if prices.currency != "USD":
        text = f"No price is known for {prices.model!r}: bills are in {prices.currency} ({prices.source})."
        yield Problem(kind="no price", text=text)


def of_policies(invalid: Mapping[str, tuple[str, ...]]) -> Iterator[Problem]:
    """Give what a reader must know of policies that are not in order."""
    for name, broken in invalid.items():
        for law in broken:
            yield Problem(kind="invalid policy", text=f"It was not replayed: {law}.", policy=name)


def _of_replays(rows: Sequence[ReplayRow]) -> Iterator[Problem]:
    for row in rows:
        if row.status == "stopped":
            text = f"It was not replayed to an end: {row.error}."
            yield Problem(kind="policy failed", text=text, session=row.session, policy=row.policy)
        elif row.error:
            text = f"It failed and was not replayed further: {row.error}."
            yield Problem(kind="policy failed", text=text, session=row.session, policy=row.policy, call=row.calls + 1)
        for said in row.violations:
            yield Problem(kind="violation", text=said, session=row.session, policy=row.policy)


# --- files -------------------------------------------------------------------------------------------------------------------

_GIVEN_UP = 3
"""Sessions on which a policy has to be ended before it is not tried on others any more: a run comes to its end whatever a policy does."""


def _over_files(files: Sequence[Path], asked: Asked, progress: Callable[[Progress], None] | None) -> list[Done]:
    """Replay all files, the largest first, so that no process is left with a large one at the end; give them in their own order."""
    sizes = {path: path.stat().st_size for path in files}
    order = sorted(files, key=lambda path: (-sizes[path], path))
    ended: dict[str, set[str]] = {}
    sessions: set[str] = set()

    def ready(task: ReplayFile) -> ReplayFile:
        """Give a file's task with what was learnt in the meantime."""
        for (session, policy, _), _ in task.ended:
            ended.setdefault(policy, set()).add(session)
        return replace(task, given_up=tuple(sorted(name for name, at in ended.items() if len(at) >= _GIVEN_UP)))

    def began(doing: Hashable | None) -> None:
        if isinstance(doing, tuple):
            sessions.add(doing[0])

    found: dict[Path, Done] = {}
    tasks = [ReplayFile(path=path, asked=asked) for path in order]
    for each in worked(tasks, asked.settings.jobs, asked.settings.timeout, ready=ready, began=began):
        name = ""
        if each is not None:
            task, done = each
            found[task.path], name = done, task.path.name
            sessions.update(done.sessions)
        if progress is not None:
            read = sum(sizes[each] for each in found)
            progress(Progress(read, sum(sizes.values()), len(found), len(sessions), name))
    return [found[path] for path in files if path in found]
