"""The tables of docs/study.md, from the results of a run of the lab.

    python -m bench.study tables RESULTS [--apart FILE ...]    what the data is, and each policy on all sessions; also without those of some files, and on them alone
    python -m bench.study asked PATH... --budget N             how many of the results that a schedule cleared are asked for again

Results of a run that was cut off count as far as they go.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid

from palaver.lab import Results, Settings
from palaver.lab.loading import Loaded, files_in, key_of, loaded
from palaver.lab.looks import Shown
from palaver.lab.measuring import Measured, Recording
from palaver.lab.metrics import Worth, beats
from palaver.lab.prices import sheet
from palaver.lab.results import ReplayRow, Run, Score, SessionRow, Table
from palaver.lab.scores import table
from palaver.lab.sessions import Session, measured
from palaver.lab.settings import entrant_of
from palaver.log import Handle
from palaver.messages import ToolResultContent
from palaver.tokens import counter
from palaver.transcripts.sources import file_digest

_OURS = "palaver"
_CLEARED = "[Old tool output cleared"
_COLUMNS = ("bill", "recalls", "regret", "hits", "tokens", "frr", "frr_recall", "artifacts", "constraints", "failures")

CONSOLE = Console(highlight=False, width=200)


# --- tables ------------------------------------------------------------------------------------------------------------------


def tables(folder: Path, files: Collection[Path]) -> None:
    """Print what the data is, and a table of all sessions, and of those of some files apart."""
    run, sessions, replays = _read(folder)
    named = {path.resolve() for path in files}
    apart = {key for key, row in sessions.items() if Path(row.source).resolve() in named}
    _data(sessions.values())
    _table(f"All {len(sessions)} sessions", run, sessions, replays)
    for title, keys in (
        ("Without those apart", sessions.keys() - apart),
        ("Those apart", apart),
    ):
        if apart:
            _table(title, run, {key: sessions[key] for key in keys}, replays)


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


def _table(title: str, run: Run, sessions: Mapping[str, SessionRow], replays: Sequence[ReplayRow]) -> None:
    found = table(run, [row for row in replays if row.session in sessions], keys=tuple(sessions))
    CONSOLE.print(f"\n{title}: {found.sessions} sessions\n")
    CONSOLE.print(f"| policy | {' | '.join(_COLUMNS)} | cuts | not sent | broken | beats ours |", markup=False)
    CONSOLE.print("|---" * (len(_COLUMNS) + 5) + "|", markup=False)
    for line in _lines(found, _beaten(run, [row for row in replays if row.session in sessions])):
        CONSOLE.print(line, markup=False, soft_wrap=True)


def _beaten(run: Run, replays: Sequence[ReplayRow]) -> Mapping[str, float]:
    """Give for each policy in what share of resampled sessions it beats ours in bill and recall."""
    rows: dict[str, dict[str, ReplayRow]] = {}
    for row in replays:
        rows.setdefault(row.policy, {})[row.session] = row
    able = {
        name: found for name, found in rows.items() if not any(row.infeasible or row.error for row in found.values())
    }
    keys = sorted(rows.get(_OURS, {}))
    pairs = {
        name: [(found[key].total, found[key].in_view) for key in keys]
        for name, found in able.items()
        if found.keys() == set(keys)
    }
    chance, beaten = random.Random(run.seed), Counter[str]()  # noqa: S311 - resampling, not a secret
    for _ in range(run.resamples if _OURS in pairs else 0):
        drawn = chance.choices(range(len(keys)), k=len(keys))
        sums = {name: [sum(each) for each in zip(*(of[n] for n in drawn), strict=True)] for name, of in pairs.items()}
        ours = Worth(*sums[_OURS])
        beaten.update(name for name, found in sums.items() if beats(Worth(*found), ours))
    return {name: beaten[name] / run.resamples for name in pairs if name != _OURS}


def _lines(found: Table, beaten: Mapping[str, float]) -> Iterator[str]:
    for row in found.rows:
        name = f"**{row.policy}** *" if row.best else row.policy
        if row.sessions:
            cells = [_cell(each, row.scores[each]) for each in _COLUMNS]
            often = f"{beaten[row.policy]:.0%}" if row.policy in beaten else ""
            yield f"| {name} | {' | '.join(cells)} | {row.cuts:,} | {row.infeasible:,} | {row.broken} | {often} |"
        else:
            yield f"| {name} | {row.status} |"


def _cell(name: str, score: Score) -> str:
    """Give a figure, the two by which the front is drawn with their intervals."""
    if score.value is None:
        return ""
    digits = 0 if name == "tokens" else 2 if name in {"regret", "hits"} else 3
    value = f"{score.value:,.{digits}f}"
    if name not in {"bill", "frr"} or score.low is None or score.high is None:
        return value
    return f"{value} ({score.low:.{digits}f}–{score.high:.{digits}f})"  # noqa: RUF001 - a range


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
