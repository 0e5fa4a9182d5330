"""The tables of docs/study.md, from the results of a run of the lab.

    python -m bench.study RESULTS

They list the recorded sessions, and each policy over all of them beside its difference from `palaver`, session by session, with the interval that holds 95 of 100 resamplings.
Results of a run that was cut off count as far as they go.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from palaver.lab import PolicyRow, Results, Score, SessionRow
from palaver.lab.scores import table

_TITLES = (
    "policy",
    "bill",
    "less palaver's",
    "evidence",
    "less palaver's",
    "FRR",
    "+ lookup",
    "human messages",
    "regret",
    "tokens",
    "cuts",
    "infeasible",
)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="bench.study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="the folder of a run: palaver lab --out FOLDER")
    results = Results(parser.parse_args().results)
    run = results.run
    if run is None:
        raise SystemExit(f"{results.folder} holds no results.")
    sessions = {key: row for key in results.sessions() if (row := results.session(key)).calls}
    replays = [replay for key in sessions for replay in results.replays(key)]
    _print(("format", "sessions", "messages", "calls", "tokens"), _data(sessions.values()))
    _print(_TITLES, map(_cells, table(run, replays, sessions=tuple(sessions.values())).rows))


def _print(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    columns = tuple(titles)
    lines = [columns, ("---",) * len(columns), *rows]
    print("\n".join(f"|{'|'.join(cells)}|" for cells in lines), end="\n\n")


def _data(rows: Collection[SessionRow]) -> Iterator[tuple[str, ...]]:
    """Iterate over the formats and their sum. Tokens are those of the largest whole view of each session."""
    for name in (*sorted({row.format for row in rows}), "all"):
        some = [row for row in rows if name in {row.format, "all"}]
        sums = (sum(getattr(row, field) for row in some) for field in ("messages", "calls", "tokens"))
        yield name, f"{len(some)}", *(f"{each:,}" for each in sums)


def _cells(row: PolicyRow) -> Iterator[str]:
    marks = f"{'*' if row.best else ''}{'#' if row.best_evidence else ''}"
    yield f"{row.policy}{marks and f' {marks}'}"
    for name in ("bill", "evidence"):
        yield _value(row.scores[name])
        yield _difference(row.differences.get(name))
    yield from (_value(row.scores[name]) for name in ("frr", "frr_recall", "humans"))
    yield _value(row.scores["regret"], ".2f")
    yield from (_value(row.scores["tokens"], ",.0f"), f"{row.cuts:,}", f"{row.infeasible:,}")


def _value(score: Score, form: str = ".3f") -> str:
    return "" if score.value is None else f"{score.value:{form}}"


def _difference(score: Score | None) -> str:
    if score is None or score.value is None:
        return ""
    if score.low is None or score.high is None:  # of one session
        return f"{score.value:+.3f}"
    return f"{score.value:+.3f} ({score.low:+.3f}..{score.high:+.3f})"


if __name__ == "__main__":
    main()
