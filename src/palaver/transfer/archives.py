"""Archives: a session leaves its store for a bundle in a folder or in object storage, and comes back under the same ids.

The bundle is written and read back before anything is removed, and the removal is one transaction that fails if the session was written meanwhile. So whatever is
interrupted, the session is whole in the store, in the archive, or in both. Its row stays, and says where the bundle is; so do the names of the files that it was
imported from, or importing them again would make a second session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

from palaver.errors import Conflict, InvalidInput, MissingExtra, MissingFile, PalaverError, StoreDamaged, StoreError
from palaver.files import write_whole
from palaver.ids import SessionId, now
from palaver.log import Header
from palaver.store.erasing import Erasing, NotedFile
from palaver.store.memory import MemoryStore
from palaver.store.metadata import change_metadata
from palaver.store.protocol import ARCHIVE, Copyable, SessionRecord, Store
from palaver.transfer.bundle import export_bundle, import_bundle
from palaver.transfer.bundles import note_of
from palaver.transfer.ways import SessionAt, Way

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """Where an archived session is.

    Attributes:
        address: The address of its bundle.
        sha256: SHA-256 of the bundle, hexadecimal.
        bytes: The bundle's length.
        entries: How many entries it has.
        at: When it was archived, in seconds since 1970-01-01 UTC.
    """

    address: str
    sha256: str
    bytes: int
    entries: int
    at: float


def archived(record: SessionRecord) -> Archived | None:
    """Return where a session is archived, or None where it is in the store."""
    about: Any = record.metadata.get(ARCHIVE)
    return Archived(**about) if isinstance(about, Mapping) else None


# --- shelves ----------------------------------------------------------------------------------------------------------------------


class Shelf(Protocol):
    """A place for files by name."""

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file whole, durably."""
        ...

    def get(self, name: str) -> Iterator[bytes]:
        """Return the pieces of a file.

        Raises:
            FileNotFoundError: There is none.
        """
        ...


class FolderShelf:
    """A folder.

    Attributes:
        path: The folder; created on the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file that only its owner can read."""
        write_whole(self.path / name, pieces)

    def get(self, name: str) -> Iterator[bytes]:
        """Read a file."""
        file = (self.path / name).open("rb")

        def pieces() -> Iterator[bytes]:
            with file:
                yield from iter(lambda: file.read(_PIECE), b"")

        return pieces()


class ObjectShelf:
    """Object storage, by a store of the package obstore.

    Attributes:
        store: The store of obstore.
    """

    def __init__(self, store: Any) -> None:  # noqa: ANN401 - a class of an optional package
        self.store = store
        self._obstore = import_module("obstore")

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write an object, in several parts where it is large."""
        self._obstore.put(self.store, name, iter(pieces))

    def get(self, name: str) -> Iterator[bytes]:
        """Read an object."""
        return (bytes(piece) for piece in self._obstore.get(self.store, name).stream(min_chunk_size=_PIECE))


Shelves: TypeAlias = Callable[[str], Shelf]
"""What opens the shelf at an address."""


def open_shelf(url: str) -> Shelf:
    """Open the shelf at an address: `file:///folder`, or one of object storage, such as `s3://bucket/prefix`.

    Object storage needs the extra `archive`; its credentials and endpoint come from the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` and so on).

    Raises:
        InvalidInput: It is no such address.
        MissingExtra: The extra is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return FolderShelf(Path(unquote(parts.path)))
    if parts.scheme in {"", "file"} or not parts.netloc:
        raise InvalidInput(
            f"{url!r} is not the address of an archive.", hint="Give file:///folder or s3://bucket/prefix."
        )
    if find_spec("obstore") is None:
        raise MissingExtra("An archive in object storage", "archive", package="obstore")
    try:
        return ObjectShelf(import_module("obstore.store").from_url(url))
    except Exception as error:
        raise InvalidInput(f"The archive {url} cannot be opened: {error}.") from error


# --- out and in -------------------------------------------------------------------------------------------------------------------


def archive(store: Store, session_id: SessionId, to: str, *, shelves: Shelves = open_shelf) -> Archived:
    """Move a session into an archive, and return where it is. Its row stays in the store, with its name and metadata and the records of its sources.

    Args:
        store: The store.
        session_id: The session.
        to: The address of the archive, as for `open_shelf`.
        shelves: What opens it.

    Raises:
        NotFound: The session does not exist, or the store lacks a payload that an entry names.
        InvalidInput: It is archived, or the address is none.
        Conflict: An agent is in its turn, or it was written meanwhile; nothing was removed.
        StoreDamaged: The store or the archive returns other bytes than were written; nothing was removed.
        StoreError: The archive cannot be written, or the store cannot remove anything; nothing was removed.
    """
    if (there := archived(store.session(session_id))) is not None:
        raise InvalidInput(f"Session {session_id} is archived in {there.address}.")
    if not (isinstance(store, Erasing) and isinstance(store, Copyable)):
        raise StoreError("This store does not remove anything.", reason="unsupported")
    before = _ends(store, session_id)
    if any(last.open_turn >= 0 for last in before.values()):
        why = f"An agent is in its turn in session {session_id}."
        raise Conflict(
            session_id, why=why, hint="Archive it when the turn has ended; Session.resume() ends one of a dead process."
        )
    heads = SessionAt(store, session_id).heads()
    address = f"{to.rstrip('/')}/{session_id}-{heads}.bundle"
    shelf, name = _shelf_of(address, shelves)
    sent = _Counted(export_bundle(store, session_id))
    with _reported(address):
        shelf.put(name, sent)
    entries = sum(last.seq + 1 for last in before.values())
    about = Archived(address=address, sha256=sent.digest, bytes=sent.size, entries=entries, at=now())
    if SessionAt(_read(about, shelves), session_id).heads() != heads:
        raise StoreDamaged(
            address, "it has another session than was written", hint="Nothing was removed. Archive it again."
        )
    _remove(store, session_id, before, about)
    return about


def _ends(store: Store, session_id: SessionId) -> dict[str, Header]:
    return {node.dialog_id: store.last(node.dialog_id) for node in store.nodes(session_id)}


def _remove(store: Erasing, session_id: SessionId, before: Mapping[str, Header], about: Archived) -> None:
    """Replace all of a session by its row, if it is still as it was."""
    assert isinstance(store, Copyable)  # noqa: S101 - checked before
    with store.erasing() as eraser:
        fields = {name: getattr(about, name) for name in Archived.__slots__}
        # the session is locked first, then each dialog: nobody adds to them from here on
        change_metadata(store, session_id, lambda known: {**known, ARCHIVE: fields})
        nodes = store.nodes(session_id)
        for node in nodes:
            eraser.clear_dialog(node.dialog_id)
        if _ends(store, session_id) != before:
            raise Conflict(
                session_id,
                why=f"Session {session_id} was written while it was archived; nothing was removed.",
                hint="Archive it again.",
            )
        payloads, noted = frozenset(store.blob_ids(session_id)), store.files(session_id)
        sources = store.sources(session_id)
        kept = store.session(session_id)
        eraser.remove_dialogs([node.dialog_id for node in reversed(nodes)])
        eraser.remove_session(session_id)
        eraser.remove_blobs(session_id, eraser.unnamed(session_id, payloads))
        store.create_session(replace(kept, root=None))
        for source in sources:
            store.put_source(replace(source, raw=None, index=None))
        for file in chain(noted, [_note(about)]):
            store.note_file(session_id, file)


def _note(about: Archived) -> NotedFile:
    """Return what an erasure of the session needs to delete the bundle, or to name it."""
    parts = urlsplit(about.address)
    return note_of(Path(unquote(parts.path))) if parts.scheme == "file" else NotedFile(about.address, about.sha256)


def restore(store: Store, session_id: SessionId, *, shelves: Shelves = open_shelf) -> int:
    """Bring an archived session back, and return how many entries that were. Its bundle stays in the archive.

    Args:
        store: The store.
        session_id: The session.
        shelves: What opens the archive.

    Raises:
        NotFound: The session does not exist.
        InvalidInput: It is not archived.
        MissingFile: The bundle is not in the archive any more.
        StoreDamaged: The bundle was changed.
        StoreError: The archive cannot be read, or the store not written.
    """
    about = archived(store.session(session_id))
    if about is None:
        raise InvalidInput(f"Session {session_id} is not archived.")
    if not isinstance(store, Copyable):
        raise StoreError("This store takes no entries of another.", reason="unsupported")
    copy = _read(about, shelves)
    with store.transaction(lock=f"restore {session_id}"):
        record = store.session(session_id)
        if ARCHIVE not in record.metadata:
            return 0  # another process was first
        way = Way(copy, store, session_id)
        way.go()
        root = record.root or copy.session(session_id).root
        change_metadata(
            store,
            session_id,
            lambda known: {name: value for name, value in known.items() if name != ARCHIVE},
            root=root,
        )
    return way.written


def _read(about: Archived, shelves: Shelves) -> MemoryStore:
    """Read a bundle into memory, and check it."""
    shelf, name = _shelf_of(about.address, shelves)
    hint = "Bring the file back from a copy of the archive and try again; or give the session up with `palaver erase`."
    with _reported(about.address):
        try:
            got = _Counted(shelf.get(name))
        except FileNotFoundError as error:
            raise MissingFile(about.address, what="archive", hint=hint) from error
        data = b"".join(got)
    if got.digest != about.sha256:
        raise StoreDamaged(about.address, "it has other bytes than were archived", hint=hint)
    copy = MemoryStore()
    import_bundle(copy, BytesIO(data).read, about.address)
    return copy


def _shelf_of(address: str, shelves: Shelves) -> tuple[Shelf, str]:
    base, _, name = address.rpartition("/")
    return shelves(base), name


@contextmanager
def _reported(address: str) -> Iterator[None]:
    """Turn what a shelf raises into an error of the store."""
    try:
        yield
    except PalaverError:
        raise
    except Exception as error:
        said = str(error).partition("\n")[0]  # obstore appends a dump of its structures
        text = f"The archive {address} cannot be reached: {said}"
        raise StoreError(text, reason="unavailable", hint="Nothing was removed. Try again.") from error


class _Counted:
    """Pieces of bytes, with their length and digest once they were all read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._sum = sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._sum.update(piece)
            self.size += len(piece)
            yield piece

    @property
    def digest(self) -> str:
        return self._sum.hexdigest()
