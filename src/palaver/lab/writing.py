"""The folder of a run: each session's file is written whole or not at all, and read again one at a time."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput
from palaver.lab.results import CallRow, Problem, ReplayRow, Run, SessionRow, Table

__all__ = ["Done", "Results", "write_atomic"]

_DIGITS = 9
_BATCH = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A source file that is done.

    Attributes:
        source: The file.
        sessions: The keys of its sessions, in order.
        problems: What was wrong with the file.
    """

    source: str
    sessions: tuple[str, ...]
    problems: tuple[Problem, ...]


def write_atomic(path: Path, lines: Iterable[str]) -> None:
    """Write a text file so that it is there whole or not at all, even if the machine stops."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
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
    def run(self) -> Run | None:
        """What was asked; None where the folder holds no run.

        Raises:
            InvalidInput: What is there is no run.
        """
        path = self.folder / "run.json"
        if not path.exists():
            return None
        values = _read(path)
        try:
            return Run.from_dict(values)
        except (TypeError, KeyError) as error:
            raise InvalidInput(
                f"{path} is damaged, or is no run of the lab.", hint="Remove it, or name another folder."
            ) from error

    @property
    def table(self) -> Table | None:
        """All policies over all sessions; None where the run is not finished."""
        path = self.folder / "table.json"
        return Table.from_dict(_read(path)) if path.exists() else None

    def begin(self, run: Run) -> None:
        """Write down what is asked."""
        write_atomic(self.folder / "run.json", [_json(run.to_dict())])

    def finish(self, table: Table) -> None:
        """Write down all policies over all sessions."""
        write_atomic(self.folder / "table.json", [_json(table.to_dict())])

    # --- files and sessions --------------------------------------------------------------------------------------------------

    def file_done(self, digest: str, run: str) -> Done | None:
        """Give what came of a file in this run; None where it is not done."""
        path = self.folder / "files" / f"{digest[:24]}.json"
        if not path.exists():
            return None
        found = _read(path)
        if found.get("run") != run:
            return None
        problems = tuple(Problem.from_dict(one) for one in found["problems"])
        return Done(source=found["source"], sessions=tuple(found["sessions"]), problems=problems)

    def write_file(self, digest: str, run: str, done: Done) -> None:
        """Write down what came of a file."""
        values = {
            "run": run,
            "source": done.source,
            "sessions": done.sessions,
            "problems": [each.to_dict() for each in done.problems],
        }
        write_atomic(self.folder / "files" / f"{digest[:24]}.json", [_json(values)])

    def session_done(self, key: str, run: str) -> bool:
        """Tell whether a session is done in this run."""
        path = self._path(key)
        if not path.exists():
            return False
        with path.open(encoding="utf-8") as file:
            return bool(json.loads(file.readline() or "{}").get("run") == run)

    def write_session(self, row: SessionRow, replays: Iterable[tuple[ReplayRow, tuple[CallRow, ...]]]) -> None:
        """Write a session down, whole or not at all; a replay is let go of as soon as it is written."""
        write_atomic(self._path(row.session), _lines(row, replays))

    def sessions(self) -> Iterator[str]:
        """Give the keys of the sessions that are done."""
        yield from sorted(path.stem for path in (self.folder / "sessions").glob("*.jsonl"))

    def session(self, key: str) -> SessionRow:
        """Read what is to be known about a session."""
        for kind, values in self._records(key):
            if kind == "session":
                return SessionRow.from_dict(values)
        raise InvalidInput(f"{self._path(key)} holds no session.", hint="Run the lab again, with --resume.")

    def replays(self, key: str) -> Iterator[ReplayRow]:
        """Read the replays of a session."""
        return (ReplayRow.from_dict(values) for kind, values in self._records(key) if kind == "replay")

    def calls(self, key: str, policy: str | None = None) -> Iterator[CallRow]:
        """Read the calls of a session, of all policies or of one, in order."""
        for kind, values in self._records(key):
            if kind == "call" and policy in {None, values["policy"]}:
                yield CallRow.from_dict(values)

    def _path(self, key: str) -> Path:
        return self.folder / "sessions" / f"{key}.jsonl"

    def _records(self, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
        path = self._path(key)
        if not path.exists():
            raise InvalidInput(
                f"There is no session {key!r} in {self.folder}.", hint="The table's problems name the sessions."
            )
        with path.open(encoding="utf-8") as file:
            for line in file:
                values = json.loads(line)
                yield values.pop("record"), values

    # --- Parquet -------------------------------------------------------------------------------------------------------------

    def write_parquet(self) -> tuple[Path, ...]:
        """Write the rows of all sessions as Parquet as well, where pyarrow is installed; one session in memory at a time."""
        if importlib.util.find_spec("pyarrow") is None:
            return ()
        return (
            self._parquet("replays", (row.to_dict() for key in self.sessions() for row in self.replays(key))),
            self._parquet("calls", (row.to_dict() for key in self.sessions() for row in self.calls(key))),
        )

    def _parquet(self, name: str, rows: Iterator[dict[str, Any]]) -> Path:
        arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
        path = self.folder / f"{name}.parquet"
        writer, batch = None, []
        for row in rows:
            batch.append({key: _json(value) if isinstance(value, Mapping) else value for key, value in row.items()})
            if len(batch) >= _BATCH:
                writer = _written(arrow, parquet, path, writer, batch)
                batch = []
        writer = _written(arrow, parquet, path, writer, batch) if batch else writer
        if writer is not None:
            writer.close()
        return path


def _written(arrow: Any, parquet: Any, path: Path, writer: Any, batch: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - pyarrow has no types
    made = arrow.Table.from_pylist(batch, schema=None if writer is None else writer.schema)
    found = writer or parquet.ParquetWriter(path, made.schema)
    found.write_table(made)
    return found


def _lines(row: SessionRow, replays: Iterable[tuple[ReplayRow, tuple[CallRow, ...]]]) -> Iterator[str]:
    yield _json({"record": "session", **row.to_dict()})
    for replay, calls in replays:
        yield _json({"record": "replay", **replay.to_dict()})
        for call in calls:
            yield _json({"record": "call", **call.to_dict()})
    yield _json({"record": "end"})


def _json(values: object) -> str:
    return json.dumps(_rounded(values), ensure_ascii=False, separators=(",", ":"))


def _rounded(value: object) -> object:
    """Give a value with its floats to nine digits after the point: more of them say nothing, and fill the disk."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInput(
            f"{path} is damaged: {error}.", hint="Remove it, and run the lab again with --resume."
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} is damaged.", hint="Remove it, and run the lab again with --resume.")
    return found
