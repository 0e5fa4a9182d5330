"""Runs: replay all sessions of all files under all policies, in several processes or machines. An interrupted run can be resumed."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from palaver.errors import DISTRIBUTION, InfeasibleBudget, InvalidInput, PalaverError
from palaver.lab.conformance import broken_laws
from palaver.lab.entrants import Entrant, Settings, code_digest, entrant_of, source_digest
from palaver.lab.loading import files_in
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import DoneFile, LabRun, Problem, ReplayRow, Table
from palaver.lab.scores import WEIGHTS, table
from palaver.lab.stand_ins import STAND_INS
from palaver.lab.tasks import Asked, replay_files
from palaver.lab.writing import Results
from palaver.messages import canonical_json
from palaver.tokens import model_info


@dataclass(frozen=True, slots=True)
class LabProgress:
    """The progress of a run.

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
    settings: Settings,
    folder: Path,
    *,
    resume: bool = False,
    progress: Callable[[LabProgress], None] | None = None,
    executor: Executor | None = None,
) -> Table:
    """Replay sessions under policies and return the comparison.

    An unreadable file, or a policy that breaks a law or fails, is listed in the table's problems; the run continues with the others.

    Args:
        settings: What to compare.
        folder: The folder of the results.
        resume: Whether to continue an earlier run with the same settings there.
        progress: Called when files are done.
        executor: Replays the files, one at a time in each worker, and remains open. Its workers need the same palaver, and the same files and folder under
            the same paths. Default: as many processes of this machine as `settings.jobs`.

    Raises:
        InvalidInput: A setting is wrong, the folder has results and `resume` is not set, or a worker has other code of palaver.
        NotFound: A policy does not exist.
        PalaverError: A worker ended unexpectedly. The finished sessions are kept.
    """
    entrants, refused = _entrants(settings)
    prices = sheet(settings.model, lifetime=settings.lifetime)
    run = _run(settings, prices, entrants)
    results = Results(folder)
    _begin(results, run, resume=resume)
    invalid = refused | _unlawful(entrants, settings)
    problems = [*_of_prices(prices), *_of_policies(invalid)]
    files, missing = files_in(settings.paths)
    problems += missing
    valid = tuple(each.name for each in entrants if each.name not in invalid)
    asked = Asked(settings=settings, policies=valid, folder=folder.absolute(), run=_key(run, valid), code=run.code)
    done = _over_files(files, asked, executor, progress)
    problems += [problem for each in done for problem in each.problems]
    keys, twice = _unique(done)
    problems += twice
    sessions = [results.session(key) for key in keys]
    problems += [problem for each in sessions for problem in each.problems]
    rows = [row for key in keys for row in results.replays(key)]
    problems += _of_replays(rows)
    found = table(run, rows, sessions=sessions, problems=problems, invalid=invalid)
    results.finish(found)
    return found


# --- beginning ---------------------------------------------------------------------------------------------------------------


def _entrants(settings: Settings) -> tuple[tuple[Entrant, ...], dict[str, tuple[str, ...]]]:
    """Return the policies, and the reasons why some cannot be replayed: the window is too small for them."""
    unknown = [each for each in settings.stand_ins if each not in STAND_INS]
    if unknown or not settings.stand_ins:
        raise InvalidInput(
            f"{', '.join(unknown) or 'An empty list'} is not a stand-in.", hint=f"Use one of: {', '.join(STAND_INS)}."
        )
    if settings.weight not in WEIGHTS:
        raise InvalidInput(f"{settings.weight!r} is not a weight.", hint=f"Use one of: {', '.join(WEIGHTS)}.")
    if not settings.policies:
        raise InvalidInput("No policy is given.", hint="Pass some, such as --policies palaver,openhands.")
    twice = [each for each in dict.fromkeys(settings.policies) if settings.policies.count(each) > 1]
    if twice:
        raise InvalidInput(f"The policy {twice[0]!r} is given twice.", hint="Pass each policy once.")
    made: list[Entrant] = []
    refused: dict[str, tuple[str, ...]] = {}
    for each in settings.policies:
        try:
            made.append(entrant_of(each, settings))
        except InfeasibleBudget as error:
            refused[each] = (f"its own division of the window leaves no room ({error})",)
    return tuple(made), refused


def _run(settings: Settings, prices: Sheet, entrants: Sequence[Entrant]) -> LabRun:
    info = model_info(settings.model)
    run = LabRun(
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
        resamples=settings.resamples,
        weight=settings.weight,
        version=version(DISTRIBUTION),
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
    "prices": "the prices, or the lifetime of the cache",
}
"""The attributes of a run that change a figure, as text. Results that differ in one cannot be compared."""


def _assumptions(settings: Settings, prices: Sheet) -> Iterator[str]:
    info = model_info(settings.model)
    if info.warning and settings.window is None:
        yield info.warning
    yield (
        f"A prefix of at least {prices.least:,} tokens stays cached for {prices.lifetime:,.0f} seconds after its last use; the rest of a request is "
        "written to the cache."
    )
    yield "If a call has no recorded time, the cache is assumed to be warm."
    yield "The agent's steps are the recorded ones under every policy."
    yield f"No model is asked; stand-ins for a model's summary: {', '.join(settings.stand_ins)}."
    yield "A call that must send more than the budget allows is billed as if it had been sent with the view that the policy started from."


def _key(run: LabRun, valid: Sequence[str]) -> str:
    """Return the key of a session's results, from the run and the replayed policies."""
    return run.key if tuple(valid) == run.policies else f"{run.key}-{sha256(canonical_json(valid)).hexdigest()[:8]}"


def _begin(results: Results, run: LabRun, *, resume: bool) -> None:
    if results.folder.exists() and not results.folder.is_dir():
        raise InvalidInput(f"{results.folder} is a file.", hint="Pass a folder for the results.")
    before = results.run
    if before is not None and not resume:
        raise InvalidInput(
            f"{results.folder} already has results.", hint="Continue them with --resume, or pass another folder."
        )
    if before is not None and before.key != run.key:
        differ = [words for name, words in _KEY.items() if getattr(before, name) != getattr(run, name)]
        raise InvalidInput(
            f"{results.folder} has results of other settings: {', '.join(differ) or 'some values'} differ.",
            hint="Pass another folder: results of both cannot be compared.",
        )
    results.begin(run)


def _unlawful(entrants: Sequence[Entrant], settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return the laws that a user's own policies break, by policy."""
    found = {
        each.name: broken_laws(lambda each=each: entrant_of(each.name, settings).manager, settings.model)  # type: ignore[misc]
        for each in entrants
        if each.own
    }
    return {name: broken for name, broken in found.items() if broken}


# --- problems ----------------------------------------------------------------------------------------------------------------


def _unique(done: Sequence[DoneFile]) -> tuple[tuple[str, ...], list[Problem]]:
    """Return the keys of the sessions, each once, and a problem for each session that occurs twice."""
    first: dict[str, str] = {}
    twice: list[Problem] = []
    for each in done:
        for key in each.sessions:
            if first.setdefault(key, each.source) != each.source:
                text = f"It has the same content as {first[key]}, and counts once."
                twice.append(Problem(kind="twice", text=text, source=each.source, session=key))
    return tuple(first), twice


def _of_prices(prices: Sheet) -> Iterator[Problem]:
    if prices.currency != "USD":
        text = f"The price of {prices.model!r} is not known: bills are in {prices.currency} ({prices.source})."
        yield Problem(kind="no price", text=text)


def _of_policies(invalid: Mapping[str, tuple[str, ...]]) -> Iterator[Problem]:
    for name, broken in invalid.items():
        for law in broken:
            yield Problem(kind="invalid policy", text=f"It was not replayed: {law}.", policy=name)


def _of_replays(rows: Sequence[ReplayRow]) -> Iterator[Problem]:
    for row in rows:
        if row.error:
            text = f"It failed and was not replayed further: {row.error}."
            yield Problem(kind="policy failed", text=text, session=row.session, policy=row.policy, call=row.calls + 1)
        for violation in row.violations:
            yield Problem(kind="violation", text=violation, session=row.session, policy=row.policy)


# --- files -------------------------------------------------------------------------------------------------------------------


def _over_files(
    files: Sequence[Path], asked: Asked, executor: Executor | None, progress: Callable[[LabProgress], None] | None
) -> list[DoneFile]:
    """Replay all files, the largest first, and return their results in the order of the files."""
    sizes = {path: path.stat().st_size for path in files}
    largest = sorted(files, key=lambda path: (-sizes[path], path))
    # files with the same content write the same session, so one task replays them in order
    tasks = [tuple(same) for _, same in groupby(largest, key=sizes.__getitem__)]
    found: dict[Path, DoneFile] = {}
    with closing(_each(tasks, asked, executor)) as results:
        for paths, done in results:
            found |= zip(paths, done, strict=True)
            if progress is not None:
                read, sessions = sum(map(sizes.__getitem__, found)), sum(len(each.sessions) for each in found.values())
                progress(LabProgress(read, sum(sizes.values()), len(found), sessions, paths[-1].name))
    return [found[path] for path in files]


_Done: TypeAlias = tuple[tuple[Path, ...], list[DoneFile]]


def _each(tasks: Sequence[tuple[Path, ...]], asked: Asked, executor: Executor | None) -> Generator[_Done, None, None]:
    """Yield the files of each task with their results when they are done."""
    if executor is not None:
        yield from _distributed(tasks, asked, executor)
    elif (jobs := min(asked.settings.jobs, len(tasks))) > 1:
        with _crew(jobs) as crew:
            yield from _distributed(tasks, asked, crew)
    else:
        for paths in tasks:
            with redirect_stdout(sys.stderr):
                done = replay_files(paths, asked)
            yield paths, done


def _distributed(tasks: Sequence[tuple[Path, ...]], asked: Asked, executor: Executor) -> Iterator[_Done]:
    waiting: dict[Future[list[DoneFile]], tuple[Path, ...]] = {}
    try:
        for paths in tasks:
            waiting[executor.submit(replay_files, paths, asked)] = paths
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenExecutor as error:
        raise PalaverError(
            "A worker of the lab ended unexpectedly: a policy may have ended it, or memory was short.",
            hint='Use --jobs 1 to see the policy\'s own message. A script runs several jobs under `if __name__ == "__main__"`.',
        ) from error
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def _crew(jobs: int) -> Iterator[Executor]:
    """Yield processes of this machine, which replay files until the block ends."""
    crew = ProcessPoolExecutor(
        jobs,
        multiprocessing.get_context("spawn"),  # a fork would inherit the caller's threads and locks
        initializer=_begin_worker,
    )
    try:
        yield crew
        crew.shutdown()  # it frees the semaphores, which a hard exit would leave
    finally:
        crew.shutdown(wait=False, cancel_futures=True)


def _begin_worker() -> None:
    """Let an interrupt end a process of the crew, and keep what policies print out of the results of the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout = sys.stderr
