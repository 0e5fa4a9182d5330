"""The tables of docs/study.md, from the results of a run of the lab, and the pictures there, from its tables.

    python -m bench.study RESULTS
    python -m bench.study --pictures

The tables list the recorded sessions, and each policy over all of them beside its difference from `palaver`, session by session, with the interval that holds 95 of 100 resamplings.
Results of a run that was cut off count as far as they go.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from palaver.lab import DEFAULT, PolicyRow, Results, Score, SessionRow
from palaver.lab.report import PolicyMark, picture, standalone
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
    parser.add_argument("results", type=Path, nargs="?", help="the folder of a run: palaver lab --out FOLDER")
    parser.add_argument(
        "--pictures", action="store_true", help="write the pictures of docs/study.md again, from the tables there"
    )
    asked = parser.parse_args()
    if asked.pictures:
        for name, svg in pictures(PAGE.read_text(encoding="utf-8")).items():
            (PAGE.parent / name).write_text(svg, encoding="utf-8")
        return
    if asked.results is None:
        parser.error("name the folder of a run")
    results = Results(asked.results)
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


# --- pictures -----------------------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "study.md"


def pictures(page: str) -> dict[str, str]:
    """Return the pictures of the page by file: of each section that shows one, the table below it."""
    sections = re.findall(r"^## (.+)\n\n!\[.*\]\((assets/.+\.svg)\)\n\n((?:\|.*\n)+)", page, re.MULTILINE)
    return {
        name: standalone(picture(dict(enumerate(_marks(table_))), title=title, unit="dollars"))
        for title, name, table_ in sections
    }


def _marks(text: str) -> Iterator[PolicyMark]:
    lines = [line.strip("|").split("|") for line in text.splitlines()]
    rows = [
        dict(zip(("policy", "bill", "less palaver's", "evidence", "evidence less palaver's"), cells, strict=False))
        for cells in lines[2:]
    ]
    default = next(row for row in rows if row["policy"].split()[0] == DEFAULT)
    for row in rows:
        name, _, marks = row["policy"].partition(" ")
        bill = _read(row["bill"], row["less palaver's"], float(default["bill"]))
        evidence = _read(row["evidence"], row["evidence less palaver's"], float(default["evidence"]))
        yield PolicyMark(name, bill, evidence, "#" in marks)


def _read(value: str, difference: str, default: float) -> Score:
    """Return a figure of a table, with the interval of the difference from the default policy around that one's figure."""
    ends = re.search(r"\((.+)\.\.(.+)\)", difference)
    if ends is None:
        return Score(value=float(value))
    return Score(value=float(value), low=default + float(ends[1]), high=default + float(ends[2]))


if __name__ == "__main__":
    main()
