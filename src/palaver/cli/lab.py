"""palaver lab: recorded sessions replayed under any policies, without a model."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from palaver.browsing.calls import ModelCallRow
from palaver.cli.options import BudgetOption, JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.terminal import complain, listed, paged, print_json, progress, say, table, write
from palaver.context import POLICIES
from palaver.errors import InvalidInput
from palaver.explorer.page import replay_page
from palaver.lab import (
    DEFAULT,
    SCORES,
    STAND_INS,
    WEIGHTS,
    GroupRow,
    LabRun,
    PolicyRow,
    Problem,
    Results,
    Score,
    Settings,
    ShownCall,
    Table,
    run_lab,
    shown,
)
from palaver.lab import LabProgress as Far
from palaver.lab.report import report
from palaver.lab.results import FIGURES
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.transcripts import write_file
from palaver.transcripts.markdown import markdown

_FAULTS = frozenset({"unreadable", "damaged", "policy failed", "invalid policy", "violation"})
"""Kinds of problems with which a run ends with 1."""

_SHOWN = 12
"""Problems of one kind that are listed."""


_PATHS = "Transcripts of any agent, bundles, palaver stores, and folders of them."
_POLICIES = f"Names, name(key=value,...), file.py:Class of your own. Default: all, which is {', '.join(POLICIES)}."
_WEIGHT = f"How sessions count: {'; '.join(f'{name}, {words}' for name, words in WEIGHTS.items())}."
_STAND_INS = f"What replaces a model's summaries: {', '.join(STAND_INS)}."


def run(
    paths: Annotated[list[Path], Argument(metavar="PATH", help=_PATHS)],
    *,
    model: Annotated[
        str,
        Option("--model", "-m", help="The model to compare for: its tokens, prices and window, such as gpt-5-mini."),
    ],
    policies: Annotated[str, Option("--policies", metavar="A,B,...", help=_POLICIES)] = "all",
    window: Annotated[int | None, Option("--window", min=1, help="The window in tokens. Default: the model's.")] = None,
    budget: BudgetOption = None,
    stand_ins: Annotated[str, Option("--stand-in", metavar="S,...", help=_STAND_INS)] = "fold",
    lifetime: Annotated[
        float | None, Option("--cache", min=0, help="Lifetime of the cache, seconds; 0 for none.")
    ] = None,
    out: Annotated[Path | None, Option("--out", metavar="DIR", help="Keep the results here, JSON Lines.")] = None,
    resume: Annotated[bool, Option("--resume", help="Continue the run in --out, made with the same settings.")] = False,
    jobs: Annotated[int, Option("--jobs", min=0, help="Processes; 0 for one a core.")] = 0,
    weight: Annotated[str, Option("--weight", help=_WEIGHT)] = "session",
    resamples: Annotated[int, Option("--resamples", min=0, help="How often sessions are resampled.")] = 1_000,
    show: Annotated[
        str | None, Option("--show", metavar="SESSION:CALL", help="Show the view of one call instead.")
    ] = None,
    html: Annotated[
        Path | None,
        Option(
            "--html",
            metavar="FILE",
            help="Write the comparison as a page; with --show that call, without keys and tokens.",
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Compare policies on recorded sessions: what each costs, and how much of what was needed later stays in view. No model is asked.

    Ends with 1 if a file could not be read, or a policy failed or broke a law.
    """
    if resume and out is None:
        raise InvalidInput("There is nothing to resume.", hint="Name the folder of the earlier run with --out.")
    if html is not None and not html.parent.is_dir():  # said before what may take hours
        raise InvalidInput(f"{html.parent} is not a folder.", hint="Make it, or write the page elsewhere.")
    settings = Settings(
        paths=tuple(paths),
        policies=tuple(_named(list(_split(policies)))),
        model=model,
        window=window,
        budget=budget,
        stand_ins=tuple(_split(stand_ins)),
        lifetime=lifetime,
        jobs=jobs or os.cpu_count() or 1,
        resamples=resamples,
        weight=weight,
    )
    if show is not None:
        return _show(settings, show, html, json=json)
    with _folder(out) as folder, progress(hidden=json) as show_far:
        results = run_lab(settings, folder, resume=resume, progress=lambda now: show_far(_far(now), now.done, now.all))
        useful = any(row.sessions or row.failed or row.status == "invalid" for row in results.rows)
        if html is not None and useful:
            _write(html, report(results, Results(folder), settings))
    if json:
        print_json(results.to_dict())
    else:
        _tell_all(results, out, useful=useful)
    if not useful:
        raise InvalidInput("No session with a model call was found.", hint="`palaver doctor PATH` says what a file is.")
    return Exit.FOUND if any(problem.kind in _FAULTS for problem in results.problems) else Exit.OK


def _tell_all(results: Table, out: Path | None, *, useful: bool) -> None:
    if useful:
        _report(results)
    _problems(results)
    if out is not None:
        say(f"Results: {out}")


def _write(html: Path, pieces: Iterator[bytes]) -> None:
    complain(f"Wrote {html}, {counted(write_file(html, pieces), 'byte')}.")


def _named(names: Sequence[str]) -> Iterator[str]:
    """Yield the policies that are named; `all` adds all of palaver's that are not named."""
    for name in names:
        yield from (each for each in POLICIES if each not in names) if name == "all" else (name,)


def _split(words: str) -> Iterator[str]:
    """Split at commas that are not in brackets."""
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


def _far(now: Far) -> str:
    return f"{counted(now.files, 'file')}, {counted(now.sessions, 'session')} {now.file}"


# --- the comparison -------------------------------------------------------------------------------------------------------------------


def _report(results: Table) -> None:
    run_ = results.run
    money = "dollars" if run_.currency == "USD" else run_.currency
    budget = f", budget {run_.budget:,}" if run_.budget else ""
    say(
        f"{counted(results.sessions, 'session')}, {run_.model}, window {run_.window:,}{budget}; bills in {money} a session."
    )
    titles = ("policy", *FIGURES.values(), "cuts", "too large")
    table(
        titles,
        (_cells(row, run_) for row in results.rows),
        cut={"policy": 8},
    )
    for name, title in FIGURES.items():
        say(f"  {title}: {SCORES[name][0]}")
    say("  cuts: how often the view was cut; too large: calls that must send more than the budget allows")
    _groups(results)
    default = next((row for row in results.rows if row.policy == DEFAULT), None)
    for row in results.rows:
        if default is not None and row.differences:
            over = f"; {counted(row.infeasible, 'call')} did not fit the budget" if row.infeasible else ""
            say(f"{_name(row, run_)}: {_verdict(row, default)}{over}.")
    for text in run_.assumptions:
        say(f"  {text}", "dim")
    if run_.weight != "session":
        say(f"  Weights: {WEIGHTS[run_.weight]}.", "dim")


_BY = {"tool": "tool", "length": "length in tokens"}


def _groups(results: Table) -> None:
    """Print bill and evidence of each policy in groups of sessions, if there are several."""
    for by, words in _BY.items():
        groups: dict[str, dict[tuple[str, str], GroupRow]] = {}
        for row in results.groups:
            if row.by == by:
                groups.setdefault(row.name, {})[row.policy, row.stand_in] = row
        if len(groups) > 1:
            say(f"Bill and evidence by {words}, with the number of sessions:")
            titles = {name: f"{name} ({max(row.sessions for row in rows.values()):,})" for name, rows in groups.items()}
            lines = (
                (
                    _name(row, results.run),
                    *(_both(rows.get((row.policy, row.stand_in)), results.run) for rows in groups.values()),
                )
                for row in results.rows
                if row.sessions
            )
            fewest = sorted(groups, key=lambda name: max(row.sessions for row in groups[name].values()))
            table(("policy", *titles.values()), lines, cut={"policy": 8}, drop=[titles[name] for name in fewest])


def _both(row: GroupRow | None, run_: LabRun) -> str:
    if row is None:
        return "-"
    return (
        f"{_figure(row.scores['bill'], _form('bill', run_))} {_figure(row.scores['evidence'], _form('evidence', run_))}"
    )


def _form(name: str, run_: LabRun) -> str:
    """Return the format of a figure."""
    whole = name == "tokens" or (name == "bill" and run_.currency != "USD")
    return ",.0f" if whole else ".3f"


def _name(row: PolicyRow, run_: LabRun) -> str:
    several = f" [{row.stand_in}]" if len(run_.stand_ins) > 1 else ""
    return f"{row.policy}{several}{f' ({row.remark})' if row.remark else ''}"


def _cells(row: PolicyRow, run_: LabRun) -> tuple[str, ...]:
    if not row.sessions:
        return (_name(row, run_), *("-" for _ in range(len(FIGURES) + 2)))
    figures = (_figure(row.scores.get(name), _form(name, run_)) for name in FIGURES)
    return (_name(row, run_), *figures, f"{row.cuts:,}", f"{row.infeasible:,}")


def _figure(score: Score | None, form: str) -> str:
    return "-" if score is None or score.value is None else format(score.value, form)


_SAME = 0.005
"""Differences below half a per cent are none."""


def _verdict(row: PolicyRow, default: PolicyRow) -> str:
    """Return in words how a policy differs from the default one, over the sessions that both finished."""
    bill, evidence = (row.differences[name] for name in ("bill", "evidence"))
    usual = default.scores["bill"].value
    cost = 0.0 if bill.value is None or not usual else bill.value / usual
    money = "costs the same as" if abs(cost) < _SAME else f"{abs(cost):.0%} {'cheaper' if cost < 0 else 'dearer'} than"
    if evidence.value is None:
        return f"{money} {DEFAULT}; evidence was not measured"
    kept = evidence.value
    if abs(kept) < _SAME:
        return f"{money} {DEFAULT}, and as much of what was needed later is in view"
    but = "and" if (cost < 0) == (kept > 0) else "but"
    return f"{money} {DEFAULT}, {but} {abs(kept):.1%} {'more' if kept > 0 else 'less'} of what was needed later is in view{_sure(evidence)}"


def _sure(score: Score) -> str:
    certain = score.low is None or score.high is None or score.low > 0 or score.high < 0
    return "" if certain else " (by chance, perhaps)"


def _problems(results: Table) -> None:
    """List faults, and count what the recordings lack."""
    for kind, count in sorted(Counter(problem.kind for problem in results.problems).items()):
        some = [problem for problem in results.problems if problem.kind == kind]
        if kind in _FAULTS or kind == "no price":
            for line in listed([f"{kind}: {_place(problem)}{problem.text}" for problem in some], _SHOWN):
                complain(line, "yellow")
        else:
            complain(f"{kind}: {count:,} of {counted(results.sessions, 'session')}; --json lists them.")


def _place(problem: Problem) -> str:
    names = (problem.policy, Path(problem.source).name, problem.session, f"call {problem.call}" if problem.call else "")
    place = ", ".join(filter(None, names))
    return f"{place}: " if place else ""


# --- one call -------------------------------------------------------------------------------------------------------------------------


def _show(settings: Settings, place: str, html: Path | None, *, json: bool) -> int:
    session, colon, number = place.rpartition(":")
    if not colon or not number.isdigit():
        raise BadParameter(f"{place!r} is not SESSION:CALL, such as 3f2a91c07b5e:12.", param_hint="--show")
    if html is not None and json:
        raise BadParameter("a page is not JSON.", param_hint="--html")
    redactor = None if html is None else PatternRedactor()
    with shown(settings, session, int(number), redactor=redactor) as call:
        if html is not None:
            _write(html, _page(settings, call))
        elif json:
            print_json(call.row.to_dict())
        else:
            _tell(call)
    return Exit.OK


def _tell(call: ShownCall) -> None:
    """Print a replayed call."""
    row = call.row
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in row.composition.items() if tokens)
    with paged():
        say(f"Call {row.call} under {row.policy}: {row.tokens:,} tokens ({parts}); view {row.digest}.")
        if row.references:
            needed = f"The response refers to {counted(row.references, 'thing')} said before"
            say(f"{needed}: {row.in_view} in view, {row.reached} within a lookup.")
        for text in markdown(call.dialog.store, call.dialog.session.record, call.step.view):
            write(text)


def _page(settings: Settings, call: ShownCall) -> Iterator[bytes]:
    """Return the page of a replayed call."""
    row, step = call.row, call.step
    known: ModelCallRow = {
        "call": row.call,
        "at": row.at,
        "model": settings.model,
        "entry": str(step.call.first),
        "recorded": False,
        "read": row.read + row.written,
        "cached": row.read,
        "written": row.output,
        "dollars": None,
        "estimated": True,
    }
    return replay_page(call.dialog, step.view, known, policy=row.policy, of=call.of)
