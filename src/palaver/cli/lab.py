"""palaver lab: recorded sessions replayed under any policies, without a model: what each would have cost and lost."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as Grid

from palaver.cli.lab_report import as_data, reported, say
from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit, print_json
from palaver.cli.surroundings import errors, output, visible, write
from palaver.context import POLICIES
from palaver.errors import InvalidInput
from palaver.lab import (
    FRONT,
    STAND_INS,
    PolicyRow,
    Problem,
    Run,
    Settings,
    ShownCall,
    Table,
    run_lab,
    shown,
)
from palaver.lab import Progress as Far
from palaver.lab.report import Report
from palaver.transcripts.markdown import markdown

_PROBLEMS = 12
"""Problems of one kind that are told; --json and the folder have all."""

_FAULTS = frozenset({"unreadable", "policy failed", "invalid policy", "violation"})


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lab")(run)


def run(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Recorded sessions: transcripts of any agent, bundles, palaver stores, folders of them.",
        ),
    ],
    *,
    model: Annotated[
        str, typer.Option("--model", metavar="M", help="The model whose tokens, prices and window count.")
    ],
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="A,B,...",
            help="Names, name(key=value,...) and file.py:Class of your own, which is held to the laws first. "
            f"Default: all of {', '.join(POLICIES)}.",
        ),
    ] = ",".join(POLICIES),
    window: Annotated[
        int | None, typer.Option("--window", metavar="W", min=1, help="The window in tokens. Default: the model's.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            metavar="N",
            min=1,
            help="Tokens that a request may occupy under every policy. Default: what each makes of the window.",
        ),
    ] = None,
    stand_ins: Annotated[
        str,
        typer.Option(
            "--stand-in",
            metavar="S,...",
            help=f"What stands where a system has a model write a summary: {', '.join(STAND_INS)}. Several for a bracket.",
        ),
    ] = "fold",
    lifetime: Annotated[
        float | None,
        typer.Option(
            "--cache",
            metavar="SECONDS",
            min=0,
            help="How long the provider's cache lives; 0 for none. Default: the provider's.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Keep the results here: JSONL, and Parquet where pyarrow is installed."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Take up what is in --out, made with the same settings.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=0, help="Processes; 0 for one a core.")] = 0,
    seed: Annotated[int, typer.Option("--seed", help="What the intervals' resampling begins with.")] = 0,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="How often sessions are resampled.")] = 1_000,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE.html", help="Write the report as well, as palaver lab-report does."),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="DIR", help="With --report: write its charts as PNG files here as well."),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            "--show", metavar="SESSION:CALL", help="Show the view of one call under the first policy instead."
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Replay recorded sessions under policies and compare them: cost, what was kept, distance to the best possible. No model is asked.

    Each recorded call's view is made again as if the policy had been live. Ends with 1 if a file could not be read, or a policy broke a law or
    failed: each is named, and none of them stops the others. docs/lab.md says what the figures mean.
    """
    settings = Settings(
        paths=tuple(paths),
        policies=tuple(_split(policies)),
        model=model,
        window=window,
        budget=budget,
        stand_ins=tuple(_split(stand_ins)),
        lifetime=lifetime,
        jobs=jobs or os.cpu_count() or 1,
        seed=seed,
        resamples=resamples,
    )
    if show is not None:
        return _show(settings, show, json=json)
    if resume and out is None:
        raise InvalidInput("There is nothing to take up.", hint="Name the folder of the earlier run with --out.")
    if png is not None and report is None:
        raise InvalidInput("There are no charts without a report.", hint="Name its file with --report.")
    made: tuple[Report, tuple[Path, ...]] | None = None
    with _folder(out) as folder:
        with _progress(hidden=json) as far:
            found = run_lab(settings, folder, resume=resume, progress=far)
        replayed = any(row.sessions or row.failed for row in found.rows)
        if report is not None and replayed:
            made = reported(folder, report, png=png)
    if json:
        print_json(found.to_dict() | ({} if made is None else {"report": as_data(*made)}))
    else:
        _say(found, out)
        if made is not None:
            say(*made)
    if not replayed and not any(row.status == "invalid" for row in found.rows):
        raise InvalidInput("No session with a model call was found.", hint="`palaver doctor PATH` says what a file is.")
    faults = any(problem.kind in _FAULTS for problem in found.problems)
    return Exit.FOUND if faults or (made is not None and made[0].left_out) else Exit.OK


def _split(words: str) -> Iterator[str]:
    """Split at commas that stand in no brackets."""
    depth, word = 0, ""
    for letter in words:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth <= 0:
            yield word.strip()
            word = ""
        else:
            word += letter
    if word.strip():
        yield word.strip()


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="palaver-lab-") as folder:
        yield Path(folder)


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Callable[[Far], None]]:
    console = errors()
    columns = (
        TextColumn("{task.fields[files]:,} files, {task.fields[sessions]:,} sessions"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    bar = Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)
    with bar:
        task = bar.add_task("", total=None, files=0, sessions=0)

        def far(progress: Far) -> None:
            bar.update(
                task,
                total=progress.all,
                completed=progress.done,
                files=progress.files,
                sessions=progress.sessions,
                description=visible(progress.file),
            )

        yield far


# --- the table ---------------------------------------------------------------------------------------------------------------


def _say(found: Table, out: Path | None) -> None:
    console = output()
    run = found.run
    console.print(
        f"{found.sessions:,} sessions, {run.model}, window {run.window:,}"
        + (f", budget {run.budget:,}" if run.budget else "")
        + f"; bills a session in {'dollars' if run.currency == 'USD' else run.currency}."
    )
    console.print(_grid(found, console.width))
    console.print(
        f"* on the front: {FRONT}. FRR: of what later calls refer to, in view; "
        "+lookup: or brought back. Brackets: 95 % of resampled sessions. Unsent: calls whose budget was infeasible."
    )
    for text in run.assumptions:
        console.print(f"  {text}")
    _problems(found)
    if out is not None:
        console.print(f"Results: {out}")


_WIDE = 132
"""Columns of a terminal from which on every figure and its interval have room."""


def _grid(found: Table, width: int) -> Grid:
    """Make the table: the figures that decide first, all of them where there is room."""
    wide = width >= _WIDE
    grid = Grid(box=None, pad_edge=False)
    grid.add_column("policy", overflow="fold" if wide else "ellipsis", no_wrap=not wide, min_width=12)
    for title in _TITLES if wide else _NARROW:
        grid.add_column(title, justify="right", no_wrap=True, min_width=max(len(title), 5))
    several = len(found.run.stand_ins) > 1
    for row in found.rows:
        cells = dict(zip(_TITLES, _cells(row, found.run, interval=wide), strict=True))
        name = f"{'*' if row.best else ' '} {visible(_name(row, several=several))}"
        grid.add_row(name, *(cells[title] for title in (_TITLES if wide else _NARROW)))
    return grid


_TITLES = (
    "bill",
    "regret",
    "hit",
    "tokens",
    "FRR",
    "+lookup",
    "files F1",
    "rules",
    "failures",
    "cuts",
    "unsent",
    "broken",
)
_NARROW = ("bill", "regret", "tokens", "FRR", "+lookup", "cuts", "unsent", "broken")


def _name(row: PolicyRow, *, several: bool) -> str:
    name = f"{row.policy} [{row.stand_in}]" if several else row.policy
    return name if row.status == "ok" else f"{name} ({row.status})"


def _cells(row: PolicyRow, run: Run, *, interval: bool) -> Iterator[str]:
    if not row.sessions:
        yield from ("-",) * 11
        yield f"{row.broken:,}"
        return
    yield _figure(row, "bill", ".3f" if run.currency == "USD" else ",.0f", interval=interval)
    yield _figure(row, "regret", ".2f")
    yield _figure(row, "hits", ".2f")
    yield _figure(row, "tokens", ",.0f")
    yield _figure(row, "frr", ".3f", interval=interval)
    for name in ("frr_recall", "artifacts", "constraints", "failures"):
        yield _figure(row, name, ".2f")
    yield f"{row.cuts:,}"
    yield f"{row.infeasible:,}"
    yield f"{row.broken:,}"


def _figure(row: PolicyRow, name: str, form: str, *, interval: bool = False) -> str:
    score = row.scores[name]
    if score.value is None:
        return "-"
    said = format(score.value, form)
    if interval and score.low is not None and score.high is not None:
        said += f" [{format(score.low, form)}, {format(score.high, form)}]"
    return said


def _problems(found: Table) -> None:
    """Say what a reader must know: faults one by one, and what is missing in recordings as counts."""
    console = errors()
    kinds = Counter(problem.kind for problem in found.problems)
    for kind, count in sorted(kinds.items()):
        some = [problem for problem in found.problems if problem.kind == kind]
        if kind not in _FAULTS and kind != "no price":
            console.print(f"{kind}: {count:,} of {found.sessions:,} sessions. {_general(kind)}")
            continue
        for problem in some[:_PROBLEMS]:
            console.print(f"{kind}: {_where(problem)}{problem.text}", style="yellow")
        if count > _PROBLEMS:
            console.print(f"{kind}: {count - _PROBLEMS:,} more; --json lists them all.", style="yellow")


_SAID = {
    "no timestamps": "The cache is taken to be warm there.",
    "no usage": "What the model wrote is counted from its words.",
    "no model": "The run's model counts.",
    "empty": "They have no model call.",
}


def _general(kind: str) -> str:
    return _SAID.get(kind, "")


def _where(problem: Problem) -> str:
    place = [
        problem.policy,
        Path(problem.source).name if problem.source else "",
        f"session {problem.session}" if problem.session else "",
        f"call {problem.call}" if problem.call else "",
    ]
    said = ", ".join(each for each in place if each)
    return f"{said}: " if said else ""


# --- one call ----------------------------------------------------------------------------------------------------------------


def _show(settings: Settings, place: str, *, json: bool) -> int:
    session, colon, number = place.rpartition(":")
    if not colon or not number.isdigit():
        raise typer.BadParameter(f"{place!r} is not SESSION:CALL, such as 3f2a91c07b5e:12.", param_hint="--show")
    found = shown(settings, session, int(number))
    if json:
        print_json(found.row.to_dict())
        return Exit.OK
    for text in markdown(found.record, found.step.view):
        write(text)
    _about(found)
    return Exit.OK


def _about(found: ShownCall) -> None:
    row, console = found.row, errors()
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in row.composition.items() if tokens)
    console.print(f"\nCall {row.call} under {row.policy}: {row.tokens:,} tokens ({parts}); view {row.digest}.")
    if row.mark:
        console.print(
            f"Here the policy made the view smaller ({row.mark}): the first {row.stable:,} tokens are the call's before."
        )
    if found.step.composed is not None:
        for note in found.step.composed.plan.notes:
            console.print(f"  note: {note}")
    if row.references:
        console.print(
            f"The response refers to {row.references} things said before: {row.in_view} in view, {row.reached} within a lookup."
        )
