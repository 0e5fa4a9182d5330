"""palaver lab: recorded sessions replayed under any policies, without a model: what each would have cost and lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from palaver.cli.lab_table import FAULTS, say_problems, say_table
from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, visible, write
from palaver.context import POLICIES
from palaver.errors import InvalidInput
from palaver.lab import STAND_INS, Settings, ShownCall, run_lab, shown
from palaver.lab import Progress as Far
from palaver.plurals import counted
from palaver.transcripts.markdown import markdown

_ALL = "all"
_FOLD = "fold"

# --- what can be asked for ---------------------------------------------------------------------------------------------------

PathsArgument: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="Recorded sessions: transcripts of any agent, bundles, palaver stores, folders of them.",
    ),
]
ModelOption: TypeAlias = Annotated[
    str, typer.Option("--model", metavar="M", help="The model whose tokens, prices and window count.")
]
PoliciesOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--policies",
        metavar="A,B,...",
        help="Names, name(key=value,...) and file.py:Class of your own, which is held to the laws first. "
        f"Default: all, which is {', '.join(POLICIES)}.",
    ),
]
WindowOption: TypeAlias = Annotated[
    int | None, typer.Option("--window", metavar="W", min=1, help="The window in tokens. Default: the model's.")
]
BudgetOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="N",
        min=1,
        help="Tokens that a request may occupy under every policy. Default: what each makes of the window.",
    ),
]
StandInsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--stand-in",
        metavar="S,...",
        help=f"What stands where a system has a model write a summary: {', '.join(STAND_INS)}. Several for a bracket.",
    ),
]
CacheOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--cache",
        metavar="SECONDS",
        min=0,
        help="How long the provider's cache lives; 0 for none. Default: the provider's.",
    ),
]
OutOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Keep the results here, as JSON Lines."),
]
ResumeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Take up what is in --out, made with the same settings; what was stopped is run again where --timeout is longer now.",
    ),
]
JobsOption: TypeAlias = Annotated[int, typer.Option("--jobs", metavar="N", min=0, help="Processes; 0 for one a core.")]
TimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0,
        help="How long a session may take under one policy before it is ended, and the policy named as failed; 0 for any time.",
    ),
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="What the intervals' resampling begins with.")]
ResamplesOption: TypeAlias = Annotated[
    int, typer.Option("--resamples", min=0, help="How often sessions are resampled.")
]
ShowOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--show", metavar="SESSION:CALL", help="Show the view of one call under the first policy instead."),
]


def run(
    paths: PathsArgument,
    *,
    model: ModelOption,
    policies: PoliciesOption = _ALL,
    window: WindowOption = None,
    budget: BudgetOption = None,
    stand_ins: StandInsOption = _FOLD,
    lifetime: CacheOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    jobs: JobsOption = 0,
    timeout: TimeoutOption = 600,
    seed: SeedOption = 0,
    resamples: ResamplesOption = 1_000,
    show: ShowOption = None,
    json: JsonOption = False,
) -> int:
    """Replay recorded sessions under policies and compare them: cost, what was kept, distance to the best possible. No model is asked.

    Each recorded call's view is made again as if the policy had been live. Ends with 1 if a file could not be read, or a policy broke a law or
    failed: each is named, and none of them stops the others. docs/lab.md says what the figures mean.
    """
    settings = Settings(
        paths=tuple(paths),
        policies=tuple(_named(list(_split(policies)))),
        model=model,
        window=window,
        budget=budget,
        stand_ins=tuple(_split(stand_ins)),
        lifetime=lifetime,
        jobs=jobs or os.cpu_count() or 1,
        timeout=timeout or None,
        seed=seed,
        resamples=resamples,
    )
    if show is not None:
        if out is not None or resume:
            raise InvalidInput(
                "--show makes no comparison, so it takes no --out or --resume.", hint="Leave them out, or --show."
            )
        return _show(settings, show, json=json)
    return _compare(settings, out, resume=resume, json=json)


def _named(names: Sequence[str]) -> Iterator[str]:
    """Give the policies that are named; `all` stands for all of ours that are not named besides."""
    for name in names:
        yield from (each for each in POLICIES if each not in names) if name == "all" else (name,)


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


# --- policies compared --------------------------------------------------------------------------------------------------------


def _compare(settings: Settings, out: Path | None, *, resume: bool, json: bool) -> int:
    if resume and out is None:
        raise InvalidInput("There is nothing to resume.", hint="Name the folder of the earlier run with --out.")
    with _folder(out) as folder, _progress(hidden=json) as far:
        found = run_lab(settings, folder, resume=resume, progress=far)
    nothing = not any(row.sessions or row.failed or row.status == "invalid" for row in found.rows)
    if json:
        print_json(found.to_dict())
    elif nothing:
        say_problems(found)
    else:
        say_table(found, out)
    if nothing:
        raise InvalidInput("No session with a model call was found.", hint="`palaver doctor PATH` says what a file is.")
    return Exit.FOUND if any(problem.kind in FAULTS for problem in found.problems) else Exit.OK


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
        TextColumn("{task.fields[files]}, {task.fields[sessions]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    bar = Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal)
    with bar:
        task = bar.add_task("", total=None, files=counted(0, "file"), sessions=counted(0, "session"))

        def far(progress: Far) -> None:
            bar.update(
                task,
                total=progress.all,
                completed=progress.done,
                files=counted(progress.files, "file"),
                sessions=counted(progress.sessions, "session"),
                description=visible(progress.file),
            )

        yield far


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
            f"The response refers to {counted(row.references, 'thing')} said before: {row.in_view} in view, {row.reached} within a lookup."
        )
