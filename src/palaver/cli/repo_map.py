"""palaver map: what a repository defines, and which of it matters, in so many tokens."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

from typer import Argument, Option

from palaver.cli.options import JsonOption, ModelOption, OneOption, StoreOption, found
from palaver.cli.terminal import complain, paged, print_json, write
from palaver.context.repo_map import MAP_TOKENS, RepoMap
from palaver.plurals import counted
from palaver.repomap import visible


def run(
    folder: Annotated[str, Argument(metavar="FOLDER", help="The repository, or a part of it.")] = ".",
    *,
    tokens: Annotated[int, Option("--tokens", min=1, help="At most so many tokens.")] = MAP_TOKENS,
    mention: Annotated[
        list[str] | None, Option("--mention", metavar="NAME", help="What matters; may be repeated.")
    ] = None,
    session: OneOption = None,
    model: ModelOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Draw a map of a repository: the definitions that the rest of it uses most, file by file, within a number of tokens.

    With --session: for what that session touched. Needs the extra `repomap`. Nothing is written, and no link is followed.
    """
    with nullcontext() if session is None else found(session, store) as named:
        dialog = None if named is None else named.dialog
        drawing = RepoMap(folder).draw(dialog, max_tokens=tokens, mentioned=mention or (), model=model)
    if json:
        row = {
            name: getattr(drawing, name) for name in ("tokens", "definitions", "of_files", "of_definitions", "digest")
        }
        files = [visible(path) for path in drawing.files]  # a name need not be text
        print_json({"map": drawing.text, "files": files, "left_out": dict(drawing.left_out), **row})
        return
    with paged():
        write(drawing.text)
    shown = f"{drawing.definitions:,} of {counted(drawing.of_definitions, 'definition')}"
    skipped = "".join(f"; not read: {count:,} {why}" for why, count in drawing.left_out.items())
    complain(
        f"{counted(drawing.tokens, 'token')}: {shown}, {len(drawing.files):,} of {drawing.of_files:,} files{skipped}."
    )
