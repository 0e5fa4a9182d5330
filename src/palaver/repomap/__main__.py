"""`python -m palaver.repomap FOLDER` draws a map of a repository: its most used definitions, within a number of tokens."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path

from palaver.errors import PalaverError
from palaver.plurals import counted
from palaver.repomap import MAP_TOKENS, Drawing, draw, look, require, visible
from palaver.tokens import counter


def main() -> int:
    """Draw a map for the command line, and return the exit code: 3 if the folder cannot be read."""
    parser = ArgumentParser(prog="python -m palaver.repomap", description="Draw a map of a repository.")
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the repository, or a part of it")
    parser.add_argument("--tokens", type=int, default=MAP_TOKENS, help="maximum tokens (%(default)s)")
    parser.add_argument(
        "--mention", metavar="NAME", action="append", default=[], help="a name of interest; may be repeated"
    )
    parser.add_argument("--model", default="", help="the model that counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    asked = parser.parse_args()
    try:
        require()
        count, mentioned = counter(asked.model).text, frozenset(asked.mention)
        drawing = draw(look(Path(asked.folder).absolute()), max_tokens=asked.tokens, count=count, mentioned=mentioned)
    except PalaverError as error:
        sys.stderr.write(f"palaver: {error}\n")
        return 3
    sys.stdout.write(json.dumps(_row(drawing)) + "\n" if asked.json else drawing.text)
    if not asked.json:
        sys.stderr.write(_summary(drawing))
    return 0


def _row(drawing: Drawing) -> dict[str, object]:
    files = [visible(path) for path in drawing.files]  # a name may have bytes that are not text
    names = ("tokens", "definitions", "of_files", "of_definitions", "digest")
    row = {"map": drawing.text, "files": files, "left_out": dict(drawing.left_out)}
    return row | {name: getattr(drawing, name) for name in names}


def _summary(drawing: Drawing) -> str:
    shown = f"{drawing.definitions:,} of {counted(drawing.of_definitions, 'definition')}"
    skipped = "".join(f"; not read: {count:,} {why}" for why, count in drawing.left_out.items())
    files = f"{len(drawing.files):,} of {drawing.of_files:,} files"
    return f"{counted(drawing.tokens, 'token')}: {shown}, {files}{skipped}.\n"


if __name__ == "__main__":
    sys.exit(main())
