"""palaver copy-store: everything of one store into another, and the proof that it is there."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, output
from palaver.errors import InvalidInput
from palaver.plurals import counted
from palaver.store import Store, open_store
from palaver.store.copying import Copied, copy_store

_SHOWN = 10
_DIGITS = 32  # of the digests, for people; --json gives them whole


def run(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="The store to copy: a file or postgresql://…; it is only read.")
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The store to copy into; it is made when it is missing.")],
    json: JsonOption = False,
) -> int:
    """Copy all sessions, entries, payloads and sources into another store, the trash too, and prove that both are equal.

    A copy that was cut off goes on where it was. Nothing in TO is changed or deleted but the names of copied sessions and the like; what is
    not equal afterwards is told by exit code 1. The full-text index is not copied: the next search makes it.
    """
    if "memory:" in (source, target):
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    with closing(open_store(source, create=False, read_only=True)) as here, closing(open_store(target)) as there:
        copied = _copy(here, there, hidden=json)
    if json:
        print_json(_row(copied))
    else:
        _print(copied)
    return Exit.OK if copied.equal else Exit.FOUND


def _copy(source: Store, target: Store, *, hidden: bool) -> Copied:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = errors()
    hidden = hidden or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        task = progress.add_task("copying", total=None)

        def shown(what: str, done: int, of: int) -> None:
            progress.update(task, description=what, completed=done, total=of)

        return copy_store(source, target, shown)


def _print(copied: Copied) -> None:
    console = output()
    held = f"sessions {copied.sessions:,}, dialogs {copied.dialogs:,}, entries {copied.entries:,} ({counted(copied.bytes, 'byte')})"
    console.print(f"{held}, payloads {copied.blobs:,}; entries written {copied.written:,}")
    if copied.others:
        console.print(
            f"The target holds {counted(copied.others, 'other session, which was', 'other sessions, which were')} left alone."
        )
    console.print(f"from  {copied.digest[:_DIGITS]}")
    console.print(f"to    {copied.found[:_DIGITS]}")
    console.print("equal" if copied.equal else "NOT equal:", style="" if copied.equal else "red")
    for difference in copied.differences[:_SHOWN]:
        console.print(f"  {difference}")
    if len(copied.differences) > _SHOWN:
        console.print(f"  … {len(copied.differences) - _SHOWN} more: --json lists them")


def _row(copied: Copied) -> dict[str, object]:
    return {
        "equal": copied.equal,
        "sessions": copied.sessions,
        "dialogs": copied.dialogs,
        "entries": copied.entries,
        "bytes": copied.bytes,
        "blobs": copied.blobs,
        "written": copied.written,
        "others": copied.others,
        "digest": {"from": copied.digest, "to": copied.found},
        "differences": list(copied.differences),
    }
