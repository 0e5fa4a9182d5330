"""The work on the files of a run: replay their unfinished sessions under every policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from palaver.errors import InvalidInput, PalaverError
from palaver.lab.entrants import Entrant, Settings, code_digest, entrant_of
from palaver.lab.loading import key_of, loaded
from palaver.lab.prices import Sheet, sheet
from palaver.lab.results import CallRow, DoneFile, Problem, ReplayRow
from palaver.lab.sessions import LabSession, replayed
from palaver.lab.writing import Results
from palaver.tokens import counter
from palaver.transcripts.sources import file_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The task for each file.

    Attributes:
        settings: The settings of the run.
        policies: The valid policies.
        folder: The folder of the results.
        run: The key of the run.
        code: The digest of palaver's code in the process that asks.
    """

    settings: Settings
    policies: tuple[str, ...]
    folder: Path
    run: str
    code: str


def replay_files(paths: Sequence[Path], asked: Asked) -> list[DoneFile]:
    """Replay the unfinished sessions of files, in order.

    Raises:
        InvalidInput: This process has other code of palaver.
    """
    if code_digest() != asked.code:
        raise InvalidInput(
            "A worker has other code of palaver: its figures cannot be compared.",
            hint="Install the same palaver there.",
        )
    return [_file(path, asked) for path in paths]


def _file(path: Path, asked: Asked) -> DoneFile:
    source = str(path)
    try:
        digest = file_digest(path)
    except OSError as error:
        text = f"It cannot be read: {error.strerror or error}."
        return DoneFile(source=source, sessions=(), problems=(Problem(kind="unreadable", text=text, source=source),))
    results = Results(asked.folder)
    known = results.file_done(digest, asked.run)
    if known is not None and known.source == source:
        return known
    done = _replayed(path, digest, asked, results)
    results.write_file(digest, asked.run, done)
    return done


def _replayed(path: Path, digest: str, asked: Asked, results: Results) -> DoneFile:
    settings = asked.settings
    entrants = [entrant_of(name, settings) for name in asked.policies]
    prices, counting = sheet(settings.model, lifetime=settings.lifetime), counter(settings.model)
    keys: list[str] = []
    problems: list[Problem] = []
    for found in loaded(path):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        key = key_of(digest, found.ordinal)
        if not results.session_done(key, asked.run):
            try:
                session = LabSession.of(found, key, asked.run, counting)
            except PalaverError as error:
                problems.append(Problem(kind="unreadable", text=str(error), source=str(path), session=key))
                continue
            results.write_session(session.row, _replays(session, entrants, settings.stand_ins, prices))
        keys.append(key)
    return DoneFile(source=str(path), sessions=tuple(keys), problems=tuple(problems))


def _replays(
    session: LabSession, entrants: Sequence[Entrant], stand_ins: Sequence[str], prices: Sheet
) -> Iterator[tuple[ReplayRow, tuple[CallRow, ...]]]:
    for each in entrants:
        for stand_in in stand_ins:
            yield replayed(session, each, stand_in, prices)
