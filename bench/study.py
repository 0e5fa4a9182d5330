"""The tables of docs/study.md, from the results of a run of the lab.

    python -m bench.study tables RESULTS [--apart FILE ...]    what the data is, each policy on all sessions, and less ours; also without those of some
                                                               files, and on them alone: ours, those on a front, and those that beat it in more than 1 %
    python -m bench.study asked PATH... --budget N             how many of the results that a schedule cleared are asked for again

Results of a run that was cut off count as far as they go.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from palaver.lab import COMPARED, DEFAULT, PolicyRow, Results, Settings
from palaver.lab.loading import Loaded, files_in, key_of, loaded
from palaver.lab.looks import Shown
from palaver.lab.measuring import Measured, Recording
from palaver.lab.prices import sheet
from palaver.lab.results import ReplayRow, Run, Score, SessionRow, Table
from palaver.lab.scores import table
from palaver.lab.sessions import Session, measured
from palaver.lab.settings import entrant_of
from palaver.log import Handle
from palaver.messages import ToolResultContent
from palaver.tokens import counter
from palaver.transcripts.sources import file_digest

_CLEARED = "[Old tool output cleared"
_COLUMNS = {
    "bill": "bill",
    "recalls": "recalls",
    "regret": "regret",
    "hits": "hits",
    "tokens": "tokens",
    "frr": "FRR",
    "frr_recall": "+ lookup",
    "evidence": "evidence",
    "evidence_bill": "bill by evidence",
}
_FEW = ("bill", "frr", "evidence_bill", "evidence")
_OFTEN = 0.01

CONSOLE = Console(highlight=False, width=200)


# --- tables ------------------------------------------------------------------------------------------------------------------


def tables(folder: Path, files: Collection[Path]) -> None:
    """Print what the data is, and tables of all sessions, and of those of some files apart."""
    run, sessions, replays = _read(folder)
    named = {path.resolve() for path in files}
    apart = {key for key, row in sessions.items() if Path(row.source).resolve() in named}
    _data(sessions.values())
    found = _found(run, sessions.keys(), replays)
    _title(f"All {len(sessions)} sessions")
    _print((*_COLUMNS.values(), "cuts", "infeasible", "broken"), map(_line, found.rows))
    _title(f"Less {DEFAULT}, session by session")
    _print((*map(_COLUMNS.__getitem__, COMPARED), *_SHARES), (_less(row) for row in found.rows if row.differences))
    for title, keys in (("Without those apart", sessions.keys() - apart), ("Those apart", apart)):
        if apart:
            rows = [row for row in _found(run, keys, replays).rows if _counts(row)]
            _title(f"{title}: {len(keys)} sessions")
            _print((*map(_COLUMNS.__getitem__, _FEW), *_SHARES), map(_short, rows))


_SHARES = ("beats ours", "by evidence")


def _found(run: Run, keys: Collection[str], replays: Sequence[ReplayRow]) -> Table:
    return table(run, [row for row in replays if row.session in keys], keys=sorted(keys))


def _counts(row: PolicyRow) -> bool:
    """Tell whether a policy is ours, on a front, or beats ours often."""
    often = max(row.beats or 0.0, row.beats_evidence or 0.0) > _OFTEN
    return row.policy == DEFAULT or row.best or row.best_evidence or often


def _title(title: str) -> None:
    CONSOLE.print(f"\n{title}\n")


def _print(titles: Sequence[str], lines: Iterable[str]) -> None:
    CONSOLE.print(f"| policy | {' | '.join(titles)} |", markup=False, soft_wrap=True)
    CONSOLE.print("|---" * (len(titles) + 1) + "|", markup=False)
    for line in lines:
        CONSOLE.print(line, markup=False, soft_wrap=True)


def half(key: str) -> int:
    """Give the half that a session belongs to: 0 or 1, by a hash of its key."""
    return int(sha256(key.encode()).hexdigest(), 16) % 2


def _read(folder: Path) -> tuple[Run, dict[str, SessionRow], list[ReplayRow]]:
    results = Results(folder)
    run = results.run
    if run is None:
        raise SystemExit(f"{folder} holds no results.")
    rows = {key: row for key in results.sessions() if (row := results.session(key)).calls}
    return run, rows, [replay for key in rows for replay in results.replays(key)]


def _data(rows: Collection[SessionRow]) -> None:
    grid = Grid("format", "sessions", "messages", "calls", "tokens, largest", "tokens, sum", box=None)
    names = sorted({row.format for row in rows})
    for name, some in [(name, [row for row in rows if row.format == name]) for name in names] + [("all", list(rows))]:
        sums = [sum(getattr(row, field) for row in some) for field in ("messages", "calls", "tokens")]
        largest = max(row.tokens for row in some)
        grid.add_row(name, f"{len(some)}", f"{sums[0]:,}", f"{sums[1]:,}", f"{largest:,}", f"{sums[2]:,}")
    CONSOLE.print(grid)


def _line(row: PolicyRow) -> str:
    cells = [_cell(each, row.scores[each]) for each in _COLUMNS]
    return f"| {_named(row)} | {' | '.join(cells)} | {row.cuts:,} | {row.infeasible:,} | {row.broken} |"


def _less(row: PolicyRow) -> str:
    cells = [_cell(each, row.differences[each], sign="+") for each in COMPARED]
    return f"| {row.policy} | {' | '.join([*cells, *_shares(row)])} |"


def _short(row: PolicyRow) -> str:
    return f"| {_named(row)} | {' | '.join([*(_cell(each, row.scores[each]) for each in _FEW), *_shares(row)])} |"


def _named(row: PolicyRow) -> str:
    """Give the name of a policy, with a star where it is on the front and a number sign where it is on that of evidence."""
    marks = f"{'*' if row.best else ''}{'#' if row.best_evidence else ''}"
    return f"**{row.policy}** {marks}" if marks else row.policy


def _shares(row: PolicyRow) -> list[str]:
    return ["" if share is None else f"{share:.0%}" for share in (row.beats, row.beats_evidence)]


def _cell(name: str, score: Score, sign: str = "") -> str:
    """Give a figure, those by which the fronts are drawn with their intervals."""
    if score.value is None:
        return ""
    digits = 0 if name == "tokens" else 2 if name in {"regret", "hits"} else 3
    value = f"{score.value:{sign},.{digits}f}"
    if name not in COMPARED or score.low is None or score.high is None:
        return value
    between = " to " if sign else "–"  # noqa: RUF001 - a range
    return f"{value} ({score.low:{sign}.{digits}f}{between}{score.high:{sign}.{digits}f})"


# --- asked again -------------------------------------------------------------------------------------------------------------


def asked(paths: Sequence[Path], settings: Settings, *, chosen: bool) -> None:
    """Print how many cleared results are asked for again, once and all in all."""
    entrant, prices, counting = entrant_of("scheduled", settings), sheet(settings.model), counter(settings.model)
    found: Counter[str] = Counter()
    for path in files_in(tuple(paths))[0]:
        digest = file_digest(path)
        for one in loaded(path):
            if not isinstance(one, Loaded) or (chosen and half(key_of(digest, one.ordinal))):
                continue
            session = Session.of(one, key_of(digest, one.ordinal), "study", counting)
            for each, recording in zip(measured(session, entrant, "fold", prices), session.recordings, strict=True):
                found += _asked(each, recording)
    shares = [found[name] / max(found["cleared"], 1) for name in ("again", "times")]
    CONSOLE.print(f"{dict(found)}; asked for again: {shares[0]:.3f} of the cleared; {shares[1]:.3f} times each")


def _asked(replay: Measured, recording: Recording) -> Counter[str]:
    """Count the results that are shown as cleared at some call, and those that a later call refers to."""
    cleared: set[Handle | None] = set()
    again: set[Handle | None] = set()
    times, shown = 0, Shown(recording.looks)
    for step, _ in replay.each("study"):
        shown.take(step.view)
        blocks = {
            exchange.first: [
                block.origin
                for block in exchange.blocks()
                if isinstance(block.content, ToolResultContent) and _CLEARED in block.content.text()
            ]
            for exchange in step.view.exchanges
        }
        cleared.update(origin for origins in blocks.values() for origin in origins)
        wanted = {
            step.log.exchanges[need.index].first
            for need in recording.things.needs[step.call.number - 1]
            if need.index >= 0 and blocks.get(step.log.exchanges[need.index].first) and not shown.holds(need.name)
        }
        again |= wanted
        times += len(wanted)
    return Counter(cleared=len(cleared), again=len(again), times=times)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(
        prog="bench.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("tables", "asked"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument(
        "--apart", type=Path, nargs="+", default=[], help="files whose sessions get a table of their own"
    )
    parser.add_argument("--model", default="claude-sonnet-4-5")
    parser.add_argument("--window", type=int)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--chosen", action="store_true", help="only of the half to choose by")
    given = parser.parse_args()
    if given.what == "tables":
        tables(given.paths[0], given.apart)
    else:
        settings = Settings(
            paths=tuple(given.paths),
            policies=("scheduled",),
            model=given.model,
            window=given.window,
            budget=given.budget,
        )
        asked(given.paths, settings, chosen=given.chosen)


if __name__ == "__main__":
    main()
