"""palaver lab-report: the results of a run of the lab as one HTML file, and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output, visible
from palaver.lab.report import Report, write_pictures, write_report

_SESSIONS = 6


def run(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The results of a run: what palaver lab wrote with --out.")
    ],
    path: Annotated[
        Path, typer.Argument(metavar="FILE.html", help="The file to write; one that is there is replaced.")
    ],
    *,
    sessions: Annotated[
        int, typer.Option("--sessions", metavar="N", min=0, help="How many sessions are shown call by call.")
    ] = _SESSIONS,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="DIR", help="Write the charts as PNG files here as well.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Write what a run of the lab found as one HTML file, which needs nothing beside it and no network.

    A table, cost against what is kept, and of the sessions on which policies did worst each call: what its request was made of, what the
    cache had, and the exact view. The views are made again from the recorded files, which must still be there.
    """
    made, pictures = reported(folder, path, sessions=sessions, png=png)
    if json:
        print_json(as_data(made, pictures))
    else:
        say(made, pictures)
    return Exit.FOUND if made.left_out else Exit.OK


def reported(
    folder: Path, path: Path, *, sessions: int = _SESSIONS, png: Path | None
) -> tuple[Report, tuple[Path, ...]]:
    """Write the report, and the pictures where a folder for them is named."""
    console = errors()
    with console.status("") as status:
        made = write_report(folder, path, sessions=sessions, said=lambda what: status.update(visible(what)))
        pictures = () if png is None else write_pictures(folder, png)
    return made, pictures


def as_data(made: Report, pictures: tuple[Path, ...]) -> dict[str, Any]:
    """Give what was written as JSON values."""
    return {
        "path": str(made.path),
        "bytes": made.size,
        "sessions": list(made.sessions),
        "left_out": dict(made.left_out),
        "shortened": dict(made.shortened),
        "pictures": [str(one) for one in pictures],
    }


def say(made: Report, pictures: tuple[Path, ...]) -> None:
    """Say what was written."""
    output().print(f"Report: {visible(str(made.path))}")
    for one in pictures:
        output().print(f"Picture: {visible(str(one))}")
    for key, why in made.shortened.items():
        errors().print(f"Of session {key} something is left out: {visible(why)}.")
    for key, why in made.left_out.items():
        errors().print(f"The views of session {key} could not be made again: {visible(why)}", style="yellow")
