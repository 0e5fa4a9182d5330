"""Writing the report of a run, from the folder of its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput, PalaverError
from palaver.lab.entrants import short_names
from palaver.lab.loading import loaded
from palaver.lab.prices import sheet
from palaver.lab.report import specs
from palaver.lab.report.chosen import Told, Worst, chosen, told, worst
from palaver.lab.report.drawing import bundle, picture
from palaver.lab.report.page import named, page
from palaver.lab.report.views import Views, views_of
from palaver.lab.results import PARTS, CallRow, Problem, Run, SessionRow, Table
from palaver.lab.scores import able
from palaver.lab.sessions import Session
from palaver.lab.settings import Settings, entrant_of
from palaver.lab.showing import command
from palaver.lab.writing import Results, write_atomic
from palaver.plurals import counted
from palaver.tokens import counter

__all__ = ["Report", "write_pictures", "write_report"]

_COLUMNS = (
    "call", "end", "tokens", *PARTS, "read", "written", "warm", "gap", "mark", "cost", "summary_cost", "recall_cost",
    "references", "in_view", "reached", "evidence", "infeasible", "digest",
)  # fmt: skip
"""What the page has of a call: its attributes, the number first, and where its place in a chart ends."""
_WORST = 24
"""Lines of the table of the worst sessions."""
_ROWS = 150_000
"""Calls of policies that a page holds: a session that has more than there is room for is left out."""
_WORDS = 24_000_000
"""Characters of the views that a page holds."""
_DRAWN = 1_000
"""Calls that a chart draws of a policy: there are no more pixels for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was written.

    Attributes:
        path: The file.
        size: Its bytes.
        sessions: The keys of the sessions that it shows call by call.
        left_out: The keys of those whose views could not be made again, with the reason.
        shortened: The keys of those that are too large for a page, with what is left out of them.
    """

    path: Path
    size: int
    sessions: tuple[str, ...]
    left_out: Mapping[str, str]
    shortened: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Made:
    """What is read from a run's folder."""

    results: Results
    table: Table
    worst: tuple[Worst, ...]
    keys: tuple[str, ...]
    too_large: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        """The policies that are shown call by call, in the order of the table."""
        short = short_names(self.table.run.policies)
        return [short[row.policy] for row in self.table.rows if row.stand_in == self.stand_in]

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
    made = _made(folder, sessions)
    script = bundle()
    views: dict[str, Views] = {}
    left_out: dict[str, str] = {}
    shortened = dict(made.too_large)
    room = _WORDS
    for number, key in enumerate(made.keys):
        if said is not None:
            said(f"views of session {key}")
        try:
            views[key] = found = _views(made, key, room // (len(made.keys) - number))
        except (PalaverError, OSError) as error:
            left_out[key] = str(error)
        else:
            room -= found.size
            if found.cut:
                shortened[key] = (
                    f"its views are too large for a page: those under {', '.join(found.cut)} are not in it, or not all of them"
                )
    gaps = {**left_out, **shortened}
    write_atomic(path, [page(made.table, _data(made, views, gaps), script)])
    return Report(path=path, size=path.stat().st_size, sessions=made.keys, left_out=left_out, shortened=shortened)


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
    short = short_names(made.table.run.policies)
    charts = {
        name if name == "front" else f"front-{name}": specs.with_data(chart["spec"], chart["points"])
        for name, chart in _fronts(made.table).items()
        if chart["points"] or name == "front"
    }
    for key in made.keys:
        rows = [
            {**row, "policy": short[policy], "start": row["call"] - 0.5}
            for policy, calls in _calls(made, key).items()
            for row in calls
            if row["end"] is not None
        ]
        charts[f"{key}-composition"] = specs.with_data(specs.composition(made.names), rows)
        charts[f"{key}-cache"] = specs.with_data(specs.cache(made.names), rows)
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
    shown = [row.policy for row in table.rows if row.status != "invalid" and row.stand_in == table.run.stand_ins[0]]
    keys = table.keys or tuple(results.sessions())
    found = worst((row for key in keys for row in results.replays(key)), table.run.stand_ins[0])
    held, too_large = _held(results, chosen(found, shown, sessions), len(shown))
    return _Made(results, table, found, held, too_large)


def _held(results: Results, keys: Sequence[str], policies: int) -> tuple[tuple[str, ...], dict[str, str]]:
    """Give the sessions for whose calls a page has room, and of the others why it has none."""
    room, held, too_large = _ROWS, [], dict[str, str]()
    for key in keys:
        calls = results.session(key).calls
        if calls * policies <= room:
            room -= calls * policies
            held.append(key)
        else:
            too_large[key] = (
                f"its {calls:,} calls under {counted(policies, 'policy')} are too many for a page: it is not shown call by call"
            )
    return tuple(held), too_large


# --- what the page draws ------------------------------------------------------------------------------------------------


def _data(made: _Made, views: Mapping[str, Views], gaps: Mapping[str, str]) -> dict[str, Any]:
    run = made.table.run
    sessions = told(made.worst, _WORST)
    first = {one.policy: one.session for one in reversed(made.worst)}
    keys = dict.fromkeys((*made.keys, *(one.worst.session for one in sessions), *first.values()))
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
        "policies": [row.policy for row in made.table.rows if row.stand_in == made.stand_in],
        "on_a_front": [row.policy for row in made.table.rows if row.best or row.best_evidence],
        "names": dict(short_names(run.policies)),
        "fronts": _fronts(made.table),
        "specs": {
            "composition": specs.composition(made.names),
            "cache": specs.cache(made.names),
        },
        "sessions": {key: _about(row) for key, row in rows.items()},
        "gaps": dict(gaps),
        "worst": [_told(one) for one in sessions],
        "all": made.table.sessions,
        "first": first,
        "chosen": chosen_data,
        "commands": {key: dict(_commands(made, row)) for key, row in rows.items()},
    }


def _fronts(table: Table) -> dict[str, dict[str, Any]]:
    """Give the charts of cost and retention: by words, and by evidence, which has no point in results from before it was measured."""
    found = {}
    for name, by in (("front", specs.WORDS), ("evidence", specs.EVIDENCE)):
        points = specs.labelled(_points(table, by), by)
        found[name] = {"spec": specs.front(table.run.currency, points, by), "points": points}
    return found


def _points(table: Table, by: specs.Kept) -> list[dict[str, Any]]:
    """Give a point for each policy that can be compared, or for all where there is none."""
    found, short = [], short_names(table.run.policies)
    for row in able(table.rows) or table.rows:
        figures = {name: row.scores[name] for name in (by.bill, by.kept) if name in row.scores}
        if any(score.value is None for score in figures.values()) or len(figures) < len((by.bill, by.kept)):
            continue
        point: dict[str, Any] = {
            "name": named(row, table.run),
            "label": named(row, table.run, short),
            "policy": row.policy,
            by.best: getattr(row, by.best),
            "cuts": row.cuts,
        }
        point |= {name: score.value for name, score in row.scores.items()}
        for name, score in figures.items():
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
            values = {name: getattr(row, name, None) for name in _COLUMNS}
            found.setdefault(row.policy, []).append(values)
    for calls in found.values():
        _end(calls)
    return {policy: calls for policy, calls in found.items() if calls}


def _end(calls: Sequence[dict[str, Any]]) -> None:
    """Say of calls where their places in a chart end: where the next one that is drawn begins. Of very many only some are drawn, and every cut."""
    step = -(-len(calls) // _DRAWN)
    drawn = [call for at, call in enumerate(calls) if at % step == 0 or call["mark"] == "cut"]
    ends = [*(after["call"] - 0.5 for after in drawn[1:]), *(last["call"] + 0.5 for last in calls[-1:])]
    for call, end in zip(drawn, ends, strict=True):
        call["end"] = end


def _about(row: SessionRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "source": Path(row.source).name,
        "format": row.format,
        "messages": row.messages,
        "calls": row.calls,
    }


def _told(one: Told) -> dict[str, Any]:
    return {**asdict(one.worst), "failed": list(one.failed)}


def _commands(made: _Made, row: SessionRow) -> Iterator[tuple[str, str]]:
    """Give for each policy the command that shows a call, up to the call's number."""
    for policy in made.table.run.policies:
        first = CallRow(session=row.session, policy=policy, stand_in=made.stand_in, call=0, dialog="", seq=0)
        yield policy, command(made.table.run, first, row.source).removesuffix("0")


# --- the views ----------------------------------------------------------------------------------------------------------


def _views(made: _Made, key: str, most: int) -> Views:
    """Make the views of a session again.

    Raises:
        InvalidInput: Its file is not there any more, or holds another session now.
    """
    row, run = made.results.session(key), made.table.run
    settings = _settings(run)
    stopped = {each.policy for each in made.results.replays(key) if each.status == "stopped"}
    names = [
        each.policy
        for each in made.table.rows
        if each.stand_in == made.stand_in and each.status != "invalid" and each.policy not in stopped
    ]
    for found in loaded(Path(row.source)):
        if not isinstance(found, Problem) and found.ordinal == row.ordinal:
            session = Session.of(found, key, run.key, counter(run.model))
            lifetime = run.prices["lifetime"]
            entrants = [entrant_of(name, settings) for name in names]
            return views_of(session, entrants, made.stand_in, sheet(run.model, lifetime=lifetime), most)
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
