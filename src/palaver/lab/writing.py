"""The folder of a run: each session's file is written whole or not at all, and read again one at a time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput
from palaver.lab.results import CallRow, LabRun, Problem, ReplayRow, SessionRow, Table

__all__ = ["DoneFile", "Results", "write_private"]

_DIGITS = 9
_RECORD = re.compile(r'\{\s*"record"\s*:\s*"(\w+)"')
"""How the line of a row begins: which one it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneFile:
    """A source file that is done.

    Attributes:
        source: The file.
        sessions: The keys of its sessions, in order.
        problems: What was wrong with the file.
    """

    source: str
    sessions: tuple[str, ...]
    problems: tuple[Problem, ...]


def write_private(path: Path, lines: Iterable[str]) -> None:
    """Write a text file that only its owner can read, whole or not at all.

    Raises:
        OSError: It cannot be written; the error names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:  # that of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


class Results:
    """The folder of a run.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is read or written yet."""
        self.folder = folder

    # --- the run -----------------------------------------------------------------------------------------------------------

    @property
    def run(self) -> LabRun | None:
        """What was asked; None where the folder holds no run.

        Raises:
            InvalidInput: What is there is no run.
        """
        path = self.folder / "run.json"
        if not path.exists():
            return None
        values = _read(path)
        try:
            return LabRun.from_dict(values)
        except (TypeError, KeyError) as error:
            raise InvalidInput(
                f"{path} is damaged, or is no run of the lab.", hint="Remove it, or name another folder."
            ) from error

    @property
    def table(self) -> Table | None:
        """All policies over all sessions; None where the run is not finished."""
        path = self.folder / "table.json"
        return Table.from_dict(_read(path)) if path.exists() else None

    def begin(self, run: LabRun) -> None:
        """Record what is asked; remove what a run that was killed left unfinished."""
        for part in self.folder.rglob(".*.part"):
            part.unlink(missing_ok=True)
        exact = json.dumps(run.to_dict(), ensure_ascii=False)  # prices are small numbers
        write_private(self.folder / "run.json", [exact])

    def finish(self, table: Table) -> None:
        """Write down all policies over all sessions."""
        write_private(self.folder / "table.json", [_json(table.to_dict())])

    # --- files and sessions --------------------------------------------------------------------------------------------------

    def file_done(self, digest: str, run: str) -> DoneFile | None:
        """Return what came of a file in this run; None where it is not done."""
        path = self.folder / "files" / f"{digest[:24]}.json"
        if not path.exists():
            return None
        found = _read(path)
        if found.get("run") != run:
            return None
        problems = tuple(Problem.from_dict(one) for one in found["problems"])
        return DoneFile(source=found["source"], sessions=tuple(found["sessions"]), problems=problems)

    def write_file(self, digest: str, run: str, done: DoneFile) -> None:
        """Write down what came of a file."""
        values = {
            "run": run,
            "source": done.source,
            "sessions": done.sessions,
            "problems": [each.to_dict() for each in done.problems],
        }
        write_private(self.folder / "files" / f"{digest[:24]}.json", [_json(values)])

    def session_done(self, key: str, run: str) -> bool:
        """Return whether a session is done in this run."""
        path = self._path(key)
        if not path.exists():
            return False
        with path.open(encoding="utf-8") as file:
            return bool(_decoded(file.readline() or "{}", path).get("run") == run)

    def write_session(self, row: SessionRow, replays: Iterable[tuple[ReplayRow, tuple[CallRow, ...]]]) -> None:
        """Write a session down, whole or not at all; a replay is let go of as soon as it is written."""
        write_private(self._path(row.session), _lines(row, replays))

    def sessions(self) -> Iterator[str]:
        """Return the keys of the sessions that are done."""
        yield from sorted(path.stem for path in (self.folder / "sessions").glob("*.jsonl"))

    def session(self, key: str) -> SessionRow:
        """Read what is to be known about a session."""
        for values in self._records(key, "session"):
            return SessionRow.from_dict(values)
        raise InvalidInput(f"{self._path(key)} holds no session.", hint="Run the lab again, with --resume.")

    def replays(self, key: str) -> Iterator[ReplayRow]:
        """Read the replays of a session."""
        return (ReplayRow.from_dict(values) for values in self._records(key, "replay"))

    def calls(self, key: str, policy: str | None = None) -> Iterator[CallRow]:
        """Read the calls of a session, of all policies or of one, in order."""
        for values in self._records(key, "call"):
            if policy in {None, values["policy"]}:
                yield CallRow.from_dict(values)

    def _path(self, key: str) -> Path:
        return self.folder / "sessions" / f"{key}.jsonl"

    def _records(self, key: str, kind: str) -> Iterator[dict[str, Any]]:
        """Return the records of one kind; the others are not decoded."""
        path = self._path(key)
        if not path.exists():
            raise InvalidInput(
                f"There is no session {key!r} in {self.folder}.", hint="The table's problems name the sessions."
            )
        with path.open(encoding="utf-8") as file:
            for line in file:
                begins = _RECORD.match(line)
                if begins is None or begins[1] == kind:  # what is no row is damage, which decoding tells
                    yield _decoded(line, path)


def _lines(row: SessionRow, replays: Iterable[tuple[ReplayRow, tuple[CallRow, ...]]]) -> Iterator[str]:
    yield _line("session", row)
    for replay, calls in replays:
        yield _line("replay", replay)
        for call in calls:
            yield _line("call", call)
    yield _json({"record": "end"})


def _line(kind: str, row: SessionRow | ReplayRow | CallRow) -> str:
    return _json({"record": kind, **row.to_dict()})


def _json(values: object) -> str:
    return json.dumps(_rounded(values), ensure_ascii=False, separators=(",", ":"))


def _rounded(value: object) -> object:
    """Return a value with its floats to nine digits after the point: more of them say nothing, and fill the disk."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _read(path: Path) -> dict[str, Any]:
    return _decoded(path.read_text(encoding="utf-8"), path)


def _decoded(text: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidInput(
            f"{path} is damaged: {error}.", hint="Remove it, and run the lab again with --resume."
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} is damaged.", hint="Remove it, and run the lab again with --resume.")
    return found
