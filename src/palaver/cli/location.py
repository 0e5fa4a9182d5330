"""What the first argument of a command names: a session, dialog or entry of the store, or a transcript."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from palaver import transcripts  # loads a name when it is used: few commands read files
from palaver.browsing.places import Location, locate
from palaver.cli.options import opened
from palaver.errors import NotFound
from palaver.store import MemoryStore


@contextmanager
def located(
    reference: str, url: str | None, *, writes: bool = False, read_only: bool = False, entries: bool = False
) -> Iterator[Location]:
    """Open the store and return what a text names in it; the path of a transcript is read into memory.

    Args:
        reference: As for `locate`, or a file.
        url: The store that was named, or None.
        writes: Whether the command changes the session: then it must be in the store, and its name must be its own.
        read_only: Whether the command never writes.
        entries: Whether the text may name an entry, as for `locate`.
    """
    if not writes and Path(reference).is_file():
        memory = MemoryStore()
        yield locate(memory, next(transcripts.Importer(memory, keep_source=False).import_path(reference)).session_id)
        return
    with opened(url, writes=writes, read_only=read_only) as store:
        try:
            place = locate(store, reference, only=writes, entries=entries)
        except NotFound as missing:
            if missing.what == "session" and not writes:
                folder = reference and Path(reference).is_dir()
                other = "It is a folder: name a file in it." if folder else "No file has this name either."
                missing.hint = f"{other} {missing.hint}".strip()
            raise
        yield place
