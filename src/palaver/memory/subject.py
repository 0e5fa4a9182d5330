"""Memory per subject: each person has a separate memory.

One agent talks with many people, and must not show one person's data to another. So the subject of the session (`Session.create(subject=...)`)
selects the memory. The memory is a session of that subject, so erasure, retention and lists of a subject's data include it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.memory.archive import ArchivalMemory, Embedder
from palaver.memory.core import CoreMemory
from palaver.memory.files import Files
from palaver.memory.notes import HasPlace
from palaver.messages.frozen import EMPTY
from palaver.session import Session
from palaver.session.retention import MEMORY
from palaver.store.protocol import SessionRecord, Store

_OWNER = "memory"


class MemoryWarning(UserWarning):
    """A memory is in the trash; it is neither read nor replaced."""


class _StoredDialog(NamedTuple):
    store: Store
    dialog_id: DialogId


class SubjectMemory:
    """Memory of a conversation's subject: core memory, files and an archive, shared by all sessions of the subject.

    Sessions without a subject keep memory in the dialog and its forks. One object serves any number of people; several threads may use it.

    Attributes:
        name: Agents with the same name share the memory of a subject.
        blocks: The initial blocks of core memory, by label: arguments of `CoreMemory.create`.
    """

    def __init__(self, name: str = "memory", *, blocks: Mapping[str, Mapping[str, Any]] = EMPTY) -> None:
        self.name = name
        self.blocks = blocks

    def __repr__(self) -> str:
        return f"<SubjectMemory {self.name!r}>"

    def core(self, dialog: HasPlace) -> CoreMemory:
        """Return the core memory of a dialog's subject. Initial blocks that it never had are created.

        Raises:
            InvalidInput: An initial block is invalid.
        """
        return _begun(CoreMemory(self.place(dialog)), self.blocks)

    def files(self, dialog: HasPlace) -> Files:
        """Return the files of a dialog's subject."""
        return Files(self.place(dialog))

    def archive(self, dialog: HasPlace, embedder: Embedder | None = None) -> ArchivalMemory:
        """Return the archive of a dialog's subject."""
        return ArchivalMemory(self.place(dialog), embedder)

    def place(self, dialog: HasPlace) -> HasPlace:
        """Return the dialog of the memory; create it if there is none.

        While the memory is in the trash, new notes stay in the conversation, and a `MemoryWarning` says so.
        """
        store = dialog.store
        subject = store.session(store.node(dialog.dialog_id).session_id).subject
        own = _StoredDialog(store, dialog.dialog_id)
        if not subject:
            return own
        record = memory_of(store, f"{self.name} of {subject}", subject)
        if record.trashed_at is None and record.root is not None:
            return _StoredDialog(store, record.root)
        warnings.warn(f"{_in_trash(record)} New notes stay in the conversation.", MemoryWarning, stacklevel=3)
        return own


def shared_memory(store: Store, name: str, *, blocks: Mapping[str, Mapping[str, Any]] = EMPTY) -> CoreMemory:
    """Return the core memory of a name that all subjects of a store share. Store only data there that everybody may read.

    Args:
        store: The store.
        name: The name.
        blocks: The initial blocks, by label; blocks that it ever had stay unchanged.

    Raises:
        InvalidInput: An initial block is invalid, or the memory is in the trash.
    """
    record = require_kept(memory_of(store, name, ""))
    assert record.root is not None  # noqa: S101 - it was created with a dialog
    return _begun(CoreMemory(_StoredDialog(store, record.root)), blocks)


def require_kept(record: SessionRecord) -> SessionRecord:
    """Return the session of a memory, unless it is in the trash.

    Raises:
        InvalidInput: It is.
    """
    if record.trashed_at is not None or record.root is None:
        raise InvalidInput(_in_trash(record))
    return record


def _in_trash(record: SessionRecord) -> str:
    return f"The memory {record.name!r} is in the trash: restore or erase session {record.session_id}."


def _begun(memory: CoreMemory, blocks: Mapping[str, Mapping[str, Any]]) -> CoreMemory:
    for label, block in blocks.items():
        if memory.history(label):
            continue
        try:
            memory.create(label, **block)
        except InvalidInput:
            if all(block.label != label for block in memory.blocks):
                raise  # otherwise another process created it meanwhile
    return memory


def memory_of(store: Store, name: str, subject: str) -> SessionRecord:
    """Return the session of a memory, even in the trash; create it if there is none."""
    record = _find(store, name, subject)
    if record is not None:
        return record
    with store.transaction(lock=f"memory {name}"):  # of several writers, one creates it
        record = _find(store, name, subject)
        return record or Session.create(store, name, owner=_OWNER, subject=subject, metadata={MEMORY: True}).record


def _find(store: Store, name: str, subject: str) -> SessionRecord | None:
    for trashed in (False, True):
        for record in store.sessions(name=name, subject=subject or None, trashed=trashed):
            if record.metadata.get(MEMORY) and record.subject == subject:
                return record
    return None
