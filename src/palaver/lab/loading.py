"""Load the sessions in files, one at a time."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path

from palaver.errors import PalaverError
from palaver.ids import DialogId, SessionId, derive_id
from palaver.lab.results import Problem
from palaver.log import Node
from palaver.store import MemoryStore, Store, open_store
from palaver.transcripts import Importer, import_bundle_file, in_order, is_bundle
from palaver.transcripts.sources import file_digest

_SQLITE = b"SQLite format 3\x00"
"""The first bytes of an SQLite database (sqlite.org/fileformat.html)."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A loaded session.

    Attributes:
        store: Its store.
        session_id: Its id.
        source: The file.
        ordinal: Its number among the sessions of the file, from 0.
        name: Its name.
        format: The format of its file.
        lost: The unreadable parts of its file, a sentence for each, with its place.
    """

    store: Store
    session_id: SessionId
    source: Path
    ordinal: int
    name: str
    format: str
    lost: tuple[str, ...] = ()

    @property
    def dialogs(self) -> tuple[DialogId, ...]:
        """Its dialogs."""
        return tuple(node.dialog_id for node in self.store.nodes(self.session_id))


def key_of(digest: str, ordinal: int) -> str:
    """Return the key of a session, from its file's content and its number there. The file's name does not matter."""
    return sha256(f"{digest}#{ordinal}".encode()).hexdigest()[:12]


def files_in(paths: Sequence[Path]) -> tuple[list[Path], list[Problem]]:
    """Return the named files, and all files in the named folders. A missing file is a problem."""
    found: dict[Path, None] = {}
    problems = []
    for path in paths:
        if path.is_dir():
            below = sorted(path.rglob("*"))
            found.update(dict.fromkeys(each for each in below if each.is_file()))
            problems += [_leads_nowhere(each) for each in below if each.is_symlink() and not each.exists()]
        elif path.exists():
            found[path] = None
        else:
            problems.append(Problem(kind="unreadable", text="The file does not exist.", source=str(path)))
    return in_order(found), problems


def _leads_nowhere(path: Path) -> Problem:
    return Problem(kind="unreadable", text="The link points to no file.", source=str(path))


def loaded(path: Path) -> Generator[Loaded | Problem]:
    """Yield the sessions of a file, each in a separate store that is released before the next one.

    A file is a transcript that can be imported, a bundle, or a store of palaver. An unreadable file is a problem.
    """
    try:
        yield from _sessions(path)
    except PalaverError as error:
        text = error.message if "\n" in error.hint else str(error)  # not the title of a list that follows
        yield Problem(kind="unreadable", text=text, source=str(path))
    except OSError as error:
        yield Problem(kind="unreadable", text=f"It cannot be read: {error.strerror or error}.", source=str(path))


def _sessions(path: Path) -> Iterator[Loaded]:
    with path.open("rb") as file:
        head = file.read(len(_SQLITE))
    if head == _SQLITE:
        yield from _of_store(path)
    elif is_bundle(path):
        store = MemoryStore()
        taken = import_bundle_file(store, path)
        name = store.session(taken.session_id).name
        yield Loaded(
            store=store, session_id=taken.session_id, source=path, ordinal=0, name=name, format="palaver-bundle"
        )
    else:
        yield from _imported(path)


class _Steady(MemoryStore):
    """A store in memory with deterministic dialog ids. Views contain handles, and must be the same in every run."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._made = 0

    def create_dialog(self, node: Node) -> Node:
        self._made += 1
        steady = derive_id(self._name, str(self._made))[:-4] + node.session_id[-4:]
        return super().create_dialog(replace(node, dialog_id=DialogId(steady)))


def _imported(path: Path) -> Iterator[Loaded]:
    digest = file_digest(path)
    numbers = count()
    importer = Importer(
        _Steady(key_of(digest, 0)),
        keep_source=False,
        session_ids=lambda: SessionId(derive_id(digest, "session", str(next(numbers)))),
    )
    for ordinal, one in enumerate(importer.import_path(path)):
        yield Loaded(
            store=importer.store,
            session_id=one.session_id,
            source=path,
            ordinal=ordinal,
            name=one.name,
            format=one.format,
            lost=tuple(f"{loss.place}: {loss.reason}" for loss in one.losses if loss.severity == "loss"),
        )
        # release the previous session before reading the next one
        importer.store = _Steady(key_of(digest, ordinal + 1))


def _of_store(path: Path) -> Iterator[Loaded]:
    store = open_store(str(path), create=False, read_only=True)
    try:
        for ordinal, record in enumerate(store.sessions()):
            yield Loaded(
                store=store,
                session_id=record.session_id,
                source=path,
                ordinal=ordinal,
                name=record.name,
                format="palaver",
            )
    finally:
        store.close()
