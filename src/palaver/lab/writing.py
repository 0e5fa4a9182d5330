"""The folder of a run. Each session's file is written atomically, and read one at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from palaver.errors import InvalidInput
from palaver.files import write_whole
from palaver.lab.results import CallRow, DoneFile, LabRun, ReplayRow, SessionRow, Table

_DIGITS = 9
_RECORD = re.compile(r'\{\s*"record"\s*:\s*"(\w+)"')
"""The beginning of a row's line, with its type."""


def _write(path: Path, lines: Iterable[str]) -> None:
    write_whole(path, (f"{line}\n".encode() for line in lines))


class Results:
    """The folder of a run.

    Attributes:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        """Set the folder; nothing is read or written yet."""
        self.folder = folder

    # --- the run -----------------------------------------------------------------------------------------------------------

    @property
    def run(self) -> LabRun | None:
        """The run; None if the folder has none.

        Raises:
            InvalidInput: The folder's file is not a run.
        """
        path = self.folder / "run.json"
        if not path.exists():
            return None
        values = _read(path)
        try:
            return LabRun.from_dict(values)
        except ValidationError as error:
            raise InvalidInput(
                f"{path} is damaged, or is not a run of the lab.", hint="Remove it, or pass another folder."
            ) from error

    def begin(self, run: LabRun) -> None:
        """Record the run, and remove unfinished files of a killed run."""
        for part in self.folder.rglob(".*.part"):
            part.unlink(missing_ok=True)
        exact = json.dumps(run.to_dict(), ensure_ascii=False)  # prices are small numbers
        _write(self.folder / "run.json", [exact])

    def finish(self, table: Table) -> None:
        """Write the table of all policies over all sessions."""
        _write(self.folder / "table.json", [_json(table.to_dict())])

    # --- files and sessions --------------------------------------------------------------------------------------------------

    def file_done(self, digest: str, run: str) -> DoneFile | None:
        """Return the result of a file in this run; None if it is not finished."""
        path = self.folder / "files" / f"{digest[:24]}.json"
        if not path.exists():
            return None
        found = _read(path)
        if found.get("run") != run:
            return None
        return DoneFile.from_dict(found)

    def write_file(self, digest: str, run: str, done: DoneFile) -> None:
        """Write the result of a file."""
        _write(self.folder / "files" / f"{digest[:24]}.json", [_json({"run": run, **done.to_dict()})])

    def session_done(self, key: str, run: str) -> bool:
        """Return whether a session is finished in this run."""
        path = self._path(key)
        if not path.exists():
            return False
        with path.open(encoding="utf-8") as file:
            return bool(_decoded(file.readline() or "{}", path).get("run") == run)

    def write_session(self, row: SessionRow, replays: Iterable[tuple[ReplayRow, tuple[CallRow, ...]]]) -> None:
        """Write a session atomically; each replay is released as soon as it is written."""
        _write(self._path(row.session), _lines(row, replays))

    def sessions(self) -> Iterator[str]:
        """Yield the keys of the finished sessions."""
        yield from sorted(path.stem for path in (self.folder / "sessions").glob("*.jsonl"))

    def session(self, key: str) -> SessionRow:
        """Return the row of a session."""
        for values in self._records(key, "session"):
            return SessionRow.from_dict(values)
        raise InvalidInput(f"{self._path(key)} has no session.", hint="Run the lab again, with --resume.")

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
        """Yield the records of one kind, without decoding the others."""
        path = self._path(key)
        if not path.exists():
            raise InvalidInput(
                f"There is no session {key!r} in {self.folder}.", hint="The table's problems name the sessions."
            )
        with path.open(encoding="utf-8") as file:
            for line in file:
                begins = _RECORD.match(line)
                if begins is None or begins[1] == kind:  # a line that is not a row is damage, which decoding reports
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
    """Return a value with floats rounded to nine decimals, which saves space."""
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
