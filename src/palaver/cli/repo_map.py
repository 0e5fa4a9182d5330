"""palaver map: what a repository defines and which of it matters, in so many tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, write
from palaver.context import RepoMap
from palaver.plurals import counted
from palaver.repomap import Drawing, visible
from palaver.session import Session


def run(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The repository, or a part of it.")] = ".",
    *,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            metavar="N",
            min=1,
            help="At most so many tokens. Default: 1024, or 8192 where no file is known.",
        ),
    ] = None,
    mention: Annotated[
        list[str] | None,
        typer.Option("--mention", metavar="NAME", help="A definition or file that matters now; may be given again."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="Draw for this session: for what it touched and asked for."),
    ] = None,
    dialog: DialogOption = None,
    model: Annotated[
        str, typer.Option("--model", metavar="M", help="The model whose tokens count; default: the session's own.")
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Draw a map of a repository: the definitions that the rest of it uses most, file by file, within a number of tokens.

    Needs the extra `repomap`. Nothing is written, nothing is loaded from a network, and no link is followed.
    """
    if dialog is not None and session is None:
        raise typer.BadParameter("a dialog is one of a session: name it with --session.", param_hint="--dialog")
    repo_map = RepoMap(folder)
    if session is None:
        drawing = repo_map.draw(max_tokens=tokens, mentioned=mention or (), model=model)
    else:
        with opened(store) as source:
            found = Session.open(session, source)
            talk = found.dialog(dialog_of(found, dialog))
            drawing = repo_map.draw(talk, max_tokens=tokens, mentioned=mention or (), model=model)
    if json:
        print_json(_data(drawing))
    else:
        write(drawing.text)
        errors().print(_about(drawing))
    return Exit.OK


def _data(drawing: Drawing) -> dict[str, object]:
    return {
        "map": drawing.text,
        "tokens": drawing.tokens,
        "files": [visible(path) for path in drawing.files],  # a name need not be text
        "definitions": drawing.definitions,
        "of_files": drawing.of_files,
        "of_definitions": drawing.of_definitions,
        "left_out": dict(drawing.left_out),
        "digest": drawing.digest,
    }


def _about(drawing: Drawing) -> str:
    shown = f"{drawing.definitions:,} of {counted(drawing.of_definitions, 'definition')}, files: {len(drawing.files):,} of {drawing.of_files:,}"
    left_out = "; ".join(f"{count:,} {why}" for why, count in drawing.left_out.items())
    return f"{counted(drawing.tokens, 'token')}: {shown}." + (f" Not looked at: {left_out}." if left_out else "")
