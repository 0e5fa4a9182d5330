"""Bundles: a whole session in one file that another store, on another machine, imports unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from palaver.errors import PalaverError, UnsupportedTranscript
from palaver.formats import ReadLimits, open_source
from palaver.ids import SessionId
from palaver.log.redaction import Redactor
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.store.redacting import redacting
from palaver.transfer.files import NAME, read_lines, write_lines
from palaver.transfer.landing import Arrived, land
from palaver.transfer.records import from_line, to_line
from palaver.transfer.writer import stream


def export_bundle(store: Store, session_id: SessionId) -> Iterator[bytes]:
    """Yield the bundle of a session in pieces: all dialogs, entries, media and stored sources.

    The same session gives the same bytes from every store it was imported into.

    Raises:
        NotFound: The session does not exist, or the store lacks a payload that an entry names.
        StoreDamaged: The store returns other bytes than were written.
    """
    yield from write_lines(map(to_line, stream(store, session_id)))


def is_bundle(path: str | Path) -> bool:
    """Return whether a file is a bundle, of any version, by its first bytes.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: It cannot be read.
    """
    with open_source(path) as source:
        return len(source.members) == 1 and source.members[0].read(len(NAME)) == NAME


def import_bundle_file(store: Store, path: str | Path, limits: ReadLimits | None = None) -> Arrived:
    """Import a bundle from a file, plain or compressed (.zst, .gz); see `import_bundle`.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: The file cannot be read, or see `import_bundle`.
    """
    with open_source(path, limits) as source:
        return import_bundle(store, source.members[0].reader(), str(path))


def import_bundle(store: Store, read: Callable[[int], bytes], name: str = "the bundle") -> Arrived:
    """Import a bundle. Entries that the store has are compared and kept; new entries are added.

    The whole bundle is read into memory, and every line, range and reference is checked; then it is written in one transaction.

    Args:
        store: The store.
        read: Returns the next bytes of the bundle, up to a maximum; none at the end.
        name: The bundle's name in errors.

    Raises:
        UnsupportedTranscript: It is damaged, or contradicts itself.
        Conflict: Its history of a session differs from the store's.
        Erased: The session was erased from the store.
        StoreError: The store failed.
    """
    with MemoryStore() as checked:
        try:
            session_id = land(map(from_line, read_lines(read, name)), checked, whole=True).session_id
        except UnsupportedTranscript:
            raise
        except (PalaverError, KeyError, TypeError, ValueError, RecursionError) as error:
            why, hint = f"a part of it cannot be read: {error}", "A newer palaver may have written it."
            raise UnsupportedTranscript(name, why, hint=hint) from error
        return land(stream(checked, session_id), store, exists="grow")


def redacted_copy(store: Store, session_id: SessionId, redactor: Redactor) -> Store:
    """Return a store in memory with a copy of the session: the same ids, no secrets, and no source files.

    Raises:
        NotFound: The session does not exist.
        StoreDamaged: The store returns other bytes than were written.
    """
    copy = MemoryStore()
    land(stream(store, session_id), redacting(copy, redactor), exists="grow")
    for source in copy.sources(session_id):
        copy.put_source(replace(source, raw=None, path=redactor.redact(source.path).text))
    return copy
