"""Sync: two stores, or a store and a folder of bundles, get the same conversations, whatever was written to either meanwhile.

What is missing is found by dialog, number and digest. The shorter log of a dialog is continued. Where both sides wrote different entries under one number,
each keeps its own, and what the other wrote becomes another version of the dialog in the same session: a dialog of its own with the whole log, whose id
follows from where it leaves the dialog and with which entry. So every side gives a version the same id, a version that comes back to where it was written
is recognized, and nothing is added twice. Nothing that is there is changed.

Two logs are the same up to an entry if its headers are, apart from the names of versions: it has the number, the time, the digest and the total of all
bodies before it. Only where they differ all headers are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from palaver.errors import Conflict, Erased, InvalidInput, MissingFile, NotFound, PalaverError, StoreDamaged, StoreError
from palaver.ids import DialogId, SessionId
from palaver.store.connect import StoreLike, opened_store, shown
from palaver.store.erasing import Erasing
from palaver.store.memory import MemoryStore
from palaver.store.protocol import ARCHIVE, VALUES, Copyable, SessionRecord, Store
from palaver.transfer.bundles import BundleFolder
from palaver.transfer.copies import copy_erasures
from palaver.transfer.ways import SessionAt, Tally, Way, record_of

_DESCRIBING = ("name", "subject", "workdir")
_TRIES = 3  # of a session that others write meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync did.

    Attributes:
        sessions: How many sessions both sides have together.
        added: How many entries were added to the first and to the second side.
        forks: The versions that were added because both sides had gone on with a dialog, in words.
        changed: What else was changed, in words: names, metadata, the trash.
        refused: What could not be brought over, in words, and what to do.
    """

    sessions: int
    added: tuple[int, int]
    forks: tuple[str, ...]
    changed: tuple[str, ...]
    refused: tuple[str, ...]


def sync(first: StoreLike, second: StoreLike) -> Synced:
    """Bring what either side lacks to it: all sessions, also those in the trash.

    It can be stopped anywhere and repeated, and others may write meanwhile: each session is one transaction on each side, and what was written too late for it
    comes with the next sync. What was erased on one side does not come back to it, and is not erased on the other.

    Args:
        first: A store, the address of one, or a folder that has a bundle of each session, without the trash. It must exist. Where names or other
            metadata differ and both sides were last active at the same time, those of the first store win; else those of the side that was
            active later.
        second: The same, but it is created when it is missing; the path of a new folder ends with a slash.

    Raises:
        MissingFile: The first is not there.
        InvalidInput: They are the same, or both are folders, or one cannot be copied.
        StoreError: One of them failed. Every session is whole; sync again.
    """
    with ExitStack() as opened:
        if (bundles := _folder(first)) is not None:
            if not bundles.path.is_dir():
                raise MissingFile(bundles.path, what="folder")
            done = _with_folder(_copyable(second, opened, create=True), bundles)
            return replace(done, added=(done.added[1], done.added[0]))
        here = _copyable(first, opened, create=False)
        if (bundles := _folder(second)) is not None:
            return _with_folder(here, bundles)
        there = _copyable(second, opened, create=True)
        if here is there or (here.url == there.url and here.url != "memory:"):
            raise InvalidInput("A store cannot be synchronised with itself.", hint="Name two stores.")
        return _both(here, there)


def is_folder(side: StoreLike) -> bool:
    """Return whether a side is a folder of bundles: one that exists, or a path that ends with a slash."""
    if not isinstance(side, str | os.PathLike):
        return False
    path = os.fspath(side)
    return path.endswith(os.sep) or Path(path).is_dir()


def _folder(side: StoreLike) -> BundleFolder | None:
    return BundleFolder(Path(os.fspath(side))) if is_folder(side) else None  # type: ignore[arg-type]


def _copyable(side: StoreLike, opened: ExitStack, *, create: bool) -> Copyable:
    if is_folder(side):
        raise InvalidInput("Both sides are folders of bundles.", hint="Name a store as one of them.")
    store, owned = opened_store(side, create=create)
    if owned:
        opened.callback(store.close)
    if not isinstance(store, Copyable):
        raise InvalidInput("One of the stores is of a kind that cannot be copied.")
    return store


def _done(tally: Tally, sessions: int) -> Synced:
    words = (tuple(dict.fromkeys(said)) for said in (tally.forks, tally.changed, tally.refused))
    forks, changed, refused = words
    added = (tally.added[0], tally.added[1])
    return Synced(sessions=sessions, added=added, forks=forks, changed=changed, refused=refused)


def _both(first: Copyable, second: Copyable) -> Synced:
    tally = Tally()
    erased: set[str] = set()
    for source, target in ((first, second), (second, first)):
        for thing, name, gone in sorted(copy_erasures(source, target), reverse=True):
            erased.add(name)
            if thing == "session" or target.node(DialogId(name)).session_id not in erased:  # sessions come first
                tally.refused.append(
                    f"{thing} {name}: it was erased in {shown(source)} (receipt {gone.receipt}) and is still in {shown(target)}. "
                    f"Erase it there, too: palaver erase {name} --store {quote(shown(target))}"
                )
    ids = sorted({record.session_id for store in (first, second) for record in _records(store)})
    for session_id in ids:
        if session_id not in erased:
            _meet(first, second, session_id, tally)
    return _done(tally, len(ids))


def _records(store: Store) -> Iterator[SessionRecord]:
    return chain(store.sessions(), store.sessions(trashed=True))


# --- a folder of bundles ----------------------------------------------------------------------------------------------------------


def _with_folder(store: Copyable, folder: BundleFolder) -> Synced:
    tally = Tally()
    tally.refused += [
        f"{path}: it was not read, as it has not the name of a bundle of this folder. It stays as it is: import or remove it."
        for path in folder.strays()
    ]
    known = folder.sessions()
    ids = sorted({record.session_id for record in _records(store)} | known.keys())
    for session_id in ids:
        try:
            _with_bundles(store, folder, session_id, known.get(session_id, {}), tally)
        except (InvalidInput, Conflict, Erased, StoreDamaged) as error:
            tally.refused.append(f"session {session_id}: {error}")
    return _done(tally, len(ids))


def _with_bundles(
    store: Copyable, folder: BundleFolder, session_id: SessionId, files: Mapping[str, Path], tally: Tally
) -> None:
    """Sync one session with its files, of which there are several after several machines wrote."""
    gone = store.gone("session", session_id) if isinstance(store, Erasing) else None
    if gone is not None:
        folder.erase(session_id, files.values(), gone.receipt)
        tally.changed.append(f"session {session_id}: it was erased in {shown(store)}, and now in the folder")
        return
    if (receipt := folder.erased(session_id)) is not None:
        tally.refused.append(
            f"session {session_id}: it was erased on another machine (receipt {receipt}) and is still in {shown(store)}. "
            f"Erase it there, too: palaver erase {session_id} --store {quote(shown(store))}"
        )
        return
    if _one_is_archived([record_of(store, session_id), None], tally):
        return
    with suppress(NotFound):
        if files.keys() == {SessionAt(store, session_id).heads()}:
            return
    loaded = list(_loaded(folder, files.values(), tally))
    copy = loaded[0][1] if loaded else MemoryStore()
    for _path, other in loaded[1:]:
        _meet(copy, other, session_id, Tally())
    with suppress(NotFound):
        copy.update_session(session_id, trashed_at=store.session(session_id).trashed_at)  # each store has its own trash
    _meet(store, copy, session_id, tally)
    if record_of(copy, session_id) is None:
        return  # no file can be read
    heads = SessionAt(copy, session_id).heads()
    path = folder.write(copy, session_id, heads, replacing=[path for path, _ in loaded])
    if isinstance(store, Erasing):
        with suppress(StoreError, NotFound):
            folder.note(store, session_id, path, [path for path, _ in loaded])


def _loaded(folder: BundleFolder, files: Iterable[Path], tally: Tally) -> Iterator[tuple[Path, MemoryStore]]:
    """Yield the files that can be read, each with what it has."""
    for path in files:
        try:
            yield path, folder.load(path)
        except PalaverError as error:
            tally.refused.append(f"{path}: {error} The file stays as it is.")


# --- one session ------------------------------------------------------------------------------------------------------------------


def _meet(first: Copyable, second: Copyable, session_id: SessionId, tally: Tally) -> None:
    """Sync one session."""
    for left in reversed(range(_TRIES)):
        try:
            _exchange(first, second, session_id, tally)
        except (InvalidInput, Conflict) as error:
            if left:
                continue  # somebody wrote meanwhile
            tally.refused.append(f"session {session_id}: {error}")
        except (Erased, StoreDamaged, NotFound) as error:
            tally.refused.append(f"session {session_id}: {error}")
        return


def _exchange(first: Copyable, second: Copyable, session_id: SessionId, tally: Tally) -> None:
    before = [record_of(store, session_id) for store in (first, second)]
    if _one_is_archived(before, tally):
        return
    if None not in before:
        one, two = (SessionAt(store, session_id) for store in (first, second))
        same = one.heads() == two.heads() and before[0].trashed_at == before[1].trashed_at  # type: ignore[union-attr]
        if same and one.root(before[0].root) == two.root(before[1].root):  # type: ignore[union-attr]
            return
    ways: list[Way] = []
    for index, (source, target) in enumerate(((first, second), (second, first))):
        if record_of(source, session_id) is not None:
            with target.transaction():
                ways.append(way := Way(source, target, session_id))
                way.go()
            tally.add(way.said, 1 - index, way.written)
    if None not in before:
        _settle(before, ways, tally)  # type: ignore[arg-type]


def _one_is_archived(records: Iterable[SessionRecord | None], tally: Tally) -> bool:
    """Return whether a session is in an archive, and say so where the other side has it."""
    kept = [record is not None and ARCHIVE in record.metadata for record in records]
    for record in records if any(kept) and not all(kept) else ():
        if record is not None:
            back = f"palaver archive {record.session_id} --restore"
            tally.refused.append(
                f"session {record.session_id}: it is archived on one side. To sync it, bring it back: {back}"
            )
    return any(kept)


def _merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of both sides: ours wins, and of the named values those that were written last."""
    merged = {**theirs, **ours}
    one, two = theirs.get(VALUES), ours.get(VALUES)
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        merged[VALUES] = {**one, **{key: pair for key, pair in two.items() if key not in one or pair[0] >= one[key][0]}}
    return merged


def _settle(before: Sequence[SessionRecord], ways: Sequence[Way], tally: Tally) -> None:
    """Let both sides describe the session in the same way."""
    newer = 1 if before[1].updated_at > before[0].updated_at else 0
    ours, theirs = before[newer], before[1 - newer]
    merged: dict[str, Any] = {name: getattr(ours, name) or getattr(theirs, name) for name in _DESCRIBING}
    merged |= {"trashed_at": ours.trashed_at, "metadata": _merged(theirs.metadata, ours.metadata)}
    way = ways[newer]  # from the side that wins to the other
    moved = theirs.root
    if ours.root is not None and way.source.root(ours.root) != way.target.root(theirs.root):
        moved = way.place(ours.root, -1)
    for side, record, root in ((way.source, ours, ours.root), (way.target, theirs, moved)):
        store, wanted = side.store, merged | {"root": root}
        different = {name: value for name, value in wanted.items() if value != getattr(record, name)}
        if different:
            store.update_session(record.session_id, **different)
            tally.changed.append(f"session {record.session_id} in {shown(store)}: its {', '.join(sorted(different))}")
