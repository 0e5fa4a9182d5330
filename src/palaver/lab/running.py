"""Running: all sessions of all files under all policies, over several processes, to be taken up where it was cut off."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from palaver.errors import InfeasibleBudget, InvalidInput, PalaverError
from palaver.lab.conformance import examined
from palaver.lab.entrants import Entrant, entrant
from palaver.lab.loading import files_in, key_of, loaded
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import SCHEMA, CallRow, Problem, ReplayRow, Run, Table
from palaver.lab.scores import table
from palaver.lab.sessions import Session, replayed
from palaver.lab.stand_ins import STAND_INS
from palaver.lab.writing import Done, Results
from palaver.messages import canonical_json
from palaver.tokens import counter, model_info
from palaver.transcripts.sources import file_digest

__all__ = ["Progress", "Settings", "entrant_of", "run_lab"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is asked of the lab.

    Attributes:
        paths: Files and folders.
        policies: The policies.
        model: The model whose tokens, prices and window count.
        window: Its window in tokens; its own when None.
        budget: What a request may occupy under every policy; unless given, each divides the window in its own way.
        stand_ins: What stands for a model's summaries.
        lifetime: Seconds for which the provider's cache lives; the provider's own when None.
        jobs: How many processes work.
        seed: What the resampling of sessions begins with.
        resamples: How often sessions are resampled.
    """

    paths: tuple[Path, ...]
    policies: tuple[str, ...]
    model: str
    window: int | None = None
    budget: int | None = None
    stand_ins: tuple[str, ...] = ("fold",)
    lifetime: float | None = None
    jobs: int = 1
    seed: int = 0
    resamples: int = 1_000


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
    entrants, refused = _entrants(settings)
    prices = sheet(settings.model, lifetime=settings.lifetime)
    run = _run(settings, prices)
    results = Results(folder)
    _begin(results, run, resume=resume)
    examining = {each.name: _examined(each, settings) for each in entrants if each.own}
    invalid = refused | {name: broken for name, broken in examining.items() if broken}
    problems = [*_of_prices(prices), *_of_policies(invalid)]
    files, missing = files_in(settings.paths)
    problems += missing
    valid = tuple(each.name for each in entrants if each.name not in invalid)
    done = _over_files(files, settings, valid, results, run.key, progress)
    keys = [key for each in done for key in each.sessions]
    problems += [problem for each in done for problem in each.problems]
    rows: list[ReplayRow] = []
    for key in dict.fromkeys(keys):
        problems += results.session(key).problems
        rows += results.replays(key)
    problems += _of_replays(rows)
    found = table(run, rows, sessions=len(dict.fromkeys(keys)), problems=problems, invalid=invalid)
    results.finish(found)
    results.write_parquet()
    return found


# --- beginning ---------------------------------------------------------------------------------------------------------------


def _entrants(settings: Settings) -> tuple[tuple[Entrant, ...], dict[str, tuple[str, ...]]]:
    """Make the policies; those for which the window is too small come apart, with the reason."""
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


def entrant_of(asked: str, settings: Settings) -> Entrant:
    """Make a policy that was asked for."""
    return entrant(asked, settings.model, window=settings.window, budget=settings.budget)


def _run(settings: Settings, prices: Sheet) -> Run:
    info = model_info(settings.model)
    own = [Path(each.rpartition(":")[0]) for each in settings.policies if each.rpartition(":")[0].endswith(".py")]
    values = {
        "schema": SCHEMA,
        "version": version("palaver"),
        "policies": settings.policies,
        "files": [file_digest(path) for path in own if path.is_file()],
        "stand_ins": settings.stand_ins,
        "model": settings.model,
        "window": settings.window or info.context_window,
        "budget": settings.budget or 0,
        "prices": asdict(prices),
    }
    return Run(
        key=sha256(canonical_json(values)).hexdigest()[:16],
        sources=tuple(map(str, settings.paths)),
        policies=settings.policies,
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
    )


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
    yield "A call whose budget is infeasible is billed as if it had been sent with what the policy had to begin with."


def _begin(results: Results, run: Run, *, resume: bool) -> None:
    before = results.run
    if before is not None and not resume:
        raise InvalidInput(
            f"{results.folder} holds results already.", hint="Take them up with --resume, or name another folder."
        )
    if before is not None and before.key != run.key:
        raise InvalidInput(
            f"{results.folder} holds results of other settings.",
            hint="Name another folder, or the settings of that run.",
        )
    results.begin(run)


def _examined(each: Entrant, settings: Settings) -> tuple[str, ...]:
    return examined(lambda: entrant_of(each.name, settings).manager, settings.model, seed=settings.seed)


def _of_prices(prices: Sheet) -> Iterator[Problem]:
    if prices.currency != "USD":
        text = f"No price is known for {prices.model!r}: bills are in {prices.currency} ({prices.source})."
        yield Problem(kind="no price", text=text)


def _of_policies(invalid: dict[str, tuple[str, ...]]) -> Iterator[Problem]:
    for name, broken in invalid.items():
        for law in broken:
            yield Problem(kind="invalid policy", text=f"It was not replayed: {law}.", policy=name)


def _of_replays(rows: Sequence[ReplayRow]) -> Iterator[Problem]:
    for row in rows:
        if row.error:
            text = f"It failed and was not replayed further: {row.error}."
            yield Problem(kind="policy failed", text=text, session=row.session, policy=row.policy, call=row.calls + 1)
        for said in row.violations:
            yield Problem(kind="violation", text=said, session=row.session, policy=row.policy)


# --- files -------------------------------------------------------------------------------------------------------------------


def _over_files(
    files: Sequence[Path],
    settings: Settings,
    policies: tuple[str, ...],
    results: Results,
    run: str,
    progress: Callable[[Progress], None] | None,
) -> list[Done]:
    """Replay all files, the largest first, so that no process is left with a large one at the end; give them in their own order."""
    sizes = {path: path.stat().st_size for path in files}
    order = sorted(files, key=lambda path: (-sizes[path], path))
    found: dict[Path, Done] = {}
    for path, done in _in_processes(order, settings, policies, results, run):
        if done is not None and path is not None:
            found[path] = done
        if progress is not None:
            read = sum(sizes[each] for each in found)
            count = sum(1 for _ in results.sessions())
            progress(Progress(read, sum(sizes.values()), len(found), count, "" if path is None else path.name))
    return [found[path] for path in files if path in found]


_PATIENCE = 0.5
"""Seconds after which progress is told again."""


def _in_processes(
    files: Sequence[Path], settings: Settings, policies: tuple[str, ...], results: Results, run: str
) -> Iterator[tuple[Path | None, Done | None]]:
    if settings.jobs <= 1 or len(files) <= 1:
        for path in files:
            yield path, _file(path, settings, policies, results.folder, run)
        return
    jobs = min(settings.jobs, len(files))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: dict[Future[Done], Path] = {
            pool.submit(_file, path, settings, policies, results.folder, run): path for path in files
        }
        try:
            while waiting:
                ready, _ = wait(waiting, timeout=_PATIENCE, return_when=FIRST_COMPLETED)
                for one in ready:
                    yield waiting.pop(one), one.result()
                if not ready:
                    yield None, None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _file(path: Path, settings: Settings, policies: tuple[str, ...], folder: Path, run: str) -> Done:
    """Replay the sessions of a file, as far as they are not done; runs in a process of its own."""
    results = Results(folder)
    try:
        digest = file_digest(path)
    except OSError as error:
        text = f"It cannot be read: {error.strerror or error}."
        return Done(source=str(path), sessions=(), problems=(Problem(kind="unreadable", text=text, source=str(path)),))
    known = results.file_done(digest, run)
    if known is not None and known.source == str(path):
        return known
    entrants = [entrant_of(name, settings) for name in policies]
    prices, counting = sheet(settings.model, lifetime=settings.lifetime), counter(settings.model)
    keys: list[str] = []
    problems: list[Problem] = []
    for found in loaded(path):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        key = key_of(digest, found.ordinal)
        keys.append(key)
        if not results.session_done(key, run):
            try:
                session = Session.of(found, key, run, counting)
            except PalaverError as error:
                keys.pop()
                problems.append(Problem(kind="unreadable", text=str(error), source=str(path), session=key))
                continue
            results.write_session(session.row, _replays(session, entrants, settings.stand_ins, prices))
    done = Done(source=str(path), sessions=tuple(keys), problems=tuple(problems))
    results.write_file(digest, run, done)
    return done


def _replays(
    session: Session, entrants: Sequence[Entrant], stand_ins: Sequence[str], prices: Sheet
) -> Iterator[tuple[ReplayRow, tuple[CallRow, ...]]]:
    for each in entrants:
        for stand_in in stand_ins:
            yield replayed(session, each, stand_in, prices)
