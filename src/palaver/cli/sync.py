"""palaver sync: two stores, or a store and a folder of bundles, get the same conversations."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

from typer import Argument

from palaver.cli.options import JsonOption
from palaver.cli.outcome import Exit
from palaver.cli.terminal import emit, listed
from palaver.errors import InvalidInput, MissingFile
from palaver.plurals import counted
from palaver.store.connect import StoreLike, open_for_user
from palaver.transfer.sync import is_folder, sync

_SHOWN = 20
_SIDE = "A file or the address of a store, or a folder of bundles (FOLDER/)"


def run(
    first: Annotated[str, Argument(metavar="A", help=f"{_SIDE}. It must exist.")],
    second: Annotated[str, Argument(metavar="B", help="The same, but created when it is missing.")],
    *,
    json: JsonOption = False,
) -> int:
    """Copy to each side what it lacks: sessions, entries, branches, names. Ends with 1 if something could not be copied.

    Where both sides went on with a dialog, each keeps its own, and the other's becomes a branch. Nothing is changed or deleted, and what was erased does not
    come back. A folder gets one file a session, for any program that synchronises files. It can be stopped and repeated.
    """
    if {first, second} & {"memory:", ":memory:"}:
        raise InvalidInput("A store in memory ends with this command.", hint="Name a file or a database.")
    with ExitStack() as stores:
        here, _ = _side(first, stores, create=False)
        there, created = _side(second, stores, create=True)
        done = sync(here, there)
    row = {
        "created": created,
        "sessions": done.sessions,
        "added": list(done.added),
        "forks": list(done.forks),
        "changed": list(done.changed),
        "refused": list(done.refused),
    }
    said = f"{f'{second} was created. ' if created else ''}{counted(done.sessions, 'session')}; {counted(done.added[0], 'entry')} added to A and {done.added[1]:,} to B."
    lists = {"branch": done.forks, "changed": done.changed, "refused": done.refused}
    lines = [f"  {title}: {line}" for title, words in lists.items() for line in listed(words, _SHOWN)]
    emit(json, row, said, *lines)
    return Exit.FOUND if done.refused else Exit.OK


def _side(name: str, stores: ExitStack, *, create: bool) -> tuple[StoreLike, bool]:
    """Return a store or the name of a folder, and whether it is new."""
    if is_folder(name):
        return name, not Path(name).exists()
    try:
        return stores.enter_context(closing(open_for_user(name, create=False))), False
    except MissingFile as error:
        if not create:
            raise MissingFile(
                error.path, what="store", hint="Only B may be new: name a store that exists as A."
            ) from error
        return stores.enter_context(closing(open_for_user(name))), True
