"""Writing the report of a run, from the folder of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput, PalaverError
from palaver.lab.loading import loaded
from palaver.lab.prices import sheet
from palaver.lab.report import specs
from palaver.lab.report.chosen import Worst, chosen, worst
from palaver.lab.report.drawing import bundle, picture
from palaver.lab.report.page import named, page
from palaver.lab.report.views import Views, views_of
from palaver.lab.results import PARTS, CallRow, Problem, Run, SessionRow, Table
from palaver.lab.sessions import Session
from palaver.lab.settings import Settings, entrant_of
from palaver.lab.showing import command
from palaver.lab.writing import Results, write_atomic
from palaver.tokens import counter

__all__ = ["Report", "write_pictures", "write_report"]

_COLUMNS = (
    "call", "tokens", *PARTS, "read", "written", "warm", "gap", "mark", "cost", "summary_cost", "recall_cost",
    "references", "in_view", "reached", "infeasible", "digest",
)  # fmt: skip
"""The attributes of a call that the page has; the call's number is the first."""
_WORST = 24
"""Lines of the table of the worst sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was written.

    Attributes:
        path: The file.
        size: Its bytes.
        sessions: The keys of the sessions that it shows call by call.
        left_out: The keys of those whose views could not be made again, with the reason.
    """

    path: Path
    size: int
    sessions: tuple[str, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Made:
    """What is read from a run's folder."""

    results: Results
    table: Table
    worst: tuple[Worst, ...]
    keys: tuple[str, ...]

    @property
    def stand_in(self) -> str:
        """The stand-in whose replays are shown call by call: the first one."""
        return self.table.run.stand_ins[0]


def write_report(folder: Path, path: Path, *, sessions: int = 6, said: Callable[[str], None] | None = None) -> Report:
    """Write the report of a run as one HTML file, which needs nothing beside it.

    The sessions on which policies did worst are shown call by call, each call with its exact view: the views are made again from the files of the
    run, which must still be there; where one is not, the report says so and has the figures alone.

    Args:
        folder: The results of the run.
        path: The file to write.
        sessions: How many sessions are shown call by call.
        said: Told what is being done.

    Raises:
        InvalidInput: The folder holds no finished run.
        MissingExtra: vl-convert, which brings the charts, is not installed.
    """
    script = bundle()
    made = _made(folder, sessions)
    views: dict[str, Views] = {}
    left_out: dict[str, str] = {}
    for key in made.keys:
        if said is not None:
            said(f"views of session {key}")
        try:
            views[key] = _views(made, key)
        except (PalaverError, OSError) as error:
            left_out[key] = str(error)
    write_atomic(path, [page(made.table, _data(made, views), script)])
    return Report(path=path, size=path.stat().st_size, sessions=made.keys, left_out=left_out)


def write_pictures(folder: Path, out: Path, *, sessions: int = 1) -> tuple[Path, ...]:
    """Write the charts of a run as PNG: the front, and of the worst sessions composition and cache.

    Args:
        folder: The results of the run.
        out: The folder to write to; made if it is not there.
        sessions: Of how many sessions.

    Raises:
        InvalidInput: The folder holds no finished run.
        MissingExtra: vl-convert is not installed.
    """
    made = _made(folder, sessions)
    charts = {"front": specs.with_data(specs.front(made.table.run.currency), _policies(made.table))}
    for key in made.keys:
        rows = [
            {**row, "policy": policy, "start": row["call"] - 0.5, "end": row["call"] + 0.5}
            for policy, calls in _calls(made, key).items()
            for row in calls
        ]
        charts[f"{key}-composition"] = specs.with_data(specs.composition(), rows)
        charts[f"{key}-cache"] = specs.with_data(specs.cache(), rows)
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts.items():
        path = out / f"{name}.png"
        path.write_bytes(picture(chart))
        paths.append(path)
    return tuple(paths)


def _made(folder: Path, sessions: int) -> _Made:
    results = Results(folder)
    table = results.table
    if table is None:
        raise InvalidInput(
            f"{folder} holds no finished run of the lab.",
            hint="Make one with: palaver lab PATH... --model M --out FOLDER (add --resume to finish one).",
        )
    replays = [row for key in results.sessions() for row in results.replays(key)]
    found = worst(replays, table.run.stand_ins[0])
    order = [row.policy for row in table.rows if row.status != "invalid" and row.stand_in == table.run.stand_ins[0]]
    return _Made(results, table, found, chosen(found, order, sessions))


# --- what the page draws ------------------------------------------------------------------------------------------------


def _data(made: _Made, views: Mapping[str, Views]) -> dict[str, Any]:
    run = made.table.run
    told = made.worst[:_WORST]
    keys = dict.fromkeys((*made.keys, *(one.session for one in told)))
    rows = {key: made.results.session(key) for key in keys}
    chosen_data = {
        key: {
            "calls": {
                policy: [[row[name] for name in _COLUMNS] for row in calls]
                for policy, calls in _calls(made, key).items()
            },
            "views": views[key].to_dict() if key in views else None,
        }
        for key in made.keys
    }
    return {
        "currency": run.currency,
        "parts": list(PARTS),
        "columns": list(_COLUMNS),
        "colours": dict(specs.COLOURS),
        "policies": _policies(made.table),
        "specs": {"front": specs.front(run.currency), "composition": specs.composition(), "cache": specs.cache()},
        "sessions": {key: _about(row) for key, row in rows.items()},
        "worst": [_told(one) for one in told],
        "chosen": chosen_data,
        "commands": {key: dict(_commands(made, row)) for key, row in rows.items()},
    }


def _policies(table: Table) -> list[dict[str, Any]]:
    """Give a point for each policy that could send every call, or for all where none could."""
    found = []
    able = [row for row in table.rows if not row.infeasible]
    for row in able or table.rows:
        bill, frr = row.scores.get("bill"), row.scores.get("frr")
        if bill is None or frr is None or bill.value is None or frr.value is None:
            continue
        point: dict[str, Any] = {
            "name": named(row, table.run),
            "policy": row.policy,
            "best": row.best,
            "cuts": row.cuts,
        }
        point |= {name: score.value for name, score in row.scores.items()}
        for name, score in (("bill", bill), ("frr", frr)):
            point[f"{name}_low"] = score.value if score.low is None else score.low
            point[f"{name}_high"] = score.value if score.high is None else score.high
        found.append(point)
    return found


def _calls(made: _Made, key: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {
        row.policy: [] for row in made.table.rows if row.stand_in == made.stand_in and row.status != "invalid"
    }
    for row in made.results.calls(key):
        if row.stand_in == made.stand_in:
            found.setdefault(row.policy, []).append({name: getattr(row, name) for name in _COLUMNS})
    return {policy: calls for policy, calls in found.items() if calls}


def _about(row: SessionRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "source": Path(row.source).name,
        "format": row.format,
        "messages": row.messages,
        "calls": row.calls,
    }


def _told(one: Worst) -> dict[str, Any]:
    return {
        "session": one.session,
        "policy": one.policy,
        "lost": one.lost,
        "references": one.references,
        "bill": one.bill,
        "least": one.least,
        "broken": one.broken,
        "status": one.status,
    }


def _commands(made: _Made, row: SessionRow) -> Iterator[tuple[str, str]]:
    """Give for each policy the command that shows a call, up to the call's number."""
    for policy in made.table.run.policies:
        first = CallRow(session=row.session, policy=policy, stand_in=made.stand_in, call=0, dialog="", seq=0)
        yield policy, command(made.table.run, first, row.source).removesuffix("0")


# --- the views ----------------------------------------------------------------------------------------------------------


def _views(made: _Made, key: str) -> Views:
    """Make the views of a session again.

    Raises:
        InvalidInput: Its file is not there any more, or holds another session now.
    """
    row, run = made.results.session(key), made.table.run
    settings = _settings(run)
    names = [each.policy for each in made.table.rows if each.stand_in == made.stand_in and each.status != "invalid"]
    for found in loaded(Path(row.source)):
        if not isinstance(found, Problem) and found.ordinal == row.ordinal:
            session = Session.of(found, key, run.key, counter(run.model))
            lifetime = run.prices["lifetime"]
            entrants = [entrant_of(name, settings) for name in names]
            return views_of(session, entrants, made.stand_in, sheet(run.model, lifetime=lifetime))
    raise InvalidInput(f"{row.source} does not hold session {key} any more.")


def _settings(run: Run) -> Settings:
    return Settings(
        paths=tuple(map(Path, run.sources)),
        policies=run.policies,
        model=run.model,
        window=run.window,
        budget=run.budget,
        stand_ins=run.stand_ins,
    )
