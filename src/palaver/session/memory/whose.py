"""Whose memory it is: that of the subject whose data a conversation is, and of nobody else.

One agent talks with many people. What it keeps of one of them must not be read by another, so where memory lies is decided by the subject of the session
that it is used in (`Session.create(subject=...)`), not by who the agent is. Because it lies in a session of that subject, whatever is done with a subject's
data reaches it: erasing, retention, lists. (Other systems have the same rule as a namespace for each actor or profile: Amazon Bedrock AgentCore, Cloudflare.)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from palaver.errors import InvalidInput
from palaver.ids import DialogId, new_dialog_id, new_session_id, now
from palaver.log import Node
from palaver.messages.frozen import EMPTY
from palaver.session.marks import MEMORY
from palaver.session.memory.archive import ArchivalMemory
from palaver.session.memory.blocks import CoreMemory
from palaver.session.memory.embedding import Embedder
from palaver.session.memory.files import Files
from palaver.session.memory.notes import Held
from palaver.store.protocol import SessionRecord, Store

__all__ = ["MemoryWarning", "SubjectMemory", "shared_memory", "warn_of_shared"]

_OWNER = "memory"
_SHARED = "shared"
"""What marks a memory that was asked for by that word; one that has no subject and is marked otherwise was kept by an agent's name."""
_MOST = 256
"""Memories that are kept open: each knows what it has read."""

_T = TypeVar("_T", CoreMemory, Files, ArchivalMemory)


class MemoryWarning(UserWarning):
    """Memory is there that is not read: it is in the trash, or was kept for everybody by a configuration that now asks for each subject's own."""


class _Place(NamedTuple):
    """A dialog, by where it lies."""

    store: Store
    dialog_id: DialogId


class SubjectMemory:
    """Memory of whoever a conversation is about: core memory, files and an archive, the same ones in all of his sessions, and in nobody else's.

    What is kept in a session without a subject stays in the dialog it was kept in, and in forks of that: nobody knows whose it is, so no other
    conversation has it. Made once, used for any number of people; may be used from several threads.

    Attributes:
        name: What it is called: agents that name the same one have the same memory of a subject.
        blocks: The blocks of core memory that each begins with, by label: the arguments of `CoreMemory.create`.
    """

    def __init__(self, name: str = "memory", *, blocks: Mapping[str, Mapping[str, Any]] = EMPTY) -> None:
        """Take what it is called, and how core memory begins."""
        self.name = name
        self.blocks = blocks
        self._open: dict[tuple[str, DialogId], CoreMemory | Files | ArchivalMemory] = {}
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<SubjectMemory {self.name!r}>"

    def core(self, dialog: Held) -> CoreMemory:
        """Give the core memory of whoever a dialog is about; blocks that it never had are made.

        Raises:
            InvalidInput: A block that it is to begin with is none.
            MemoryFull: The text of one is larger than its limit.
        """
        return _begun(self._kept("core", CoreMemory(self.place(dialog))), self.blocks)

    def files(self, dialog: Held) -> Files:
        """Give the files of whoever a dialog is about."""
        return self._kept("files", Files(self.place(dialog)))

    def archive(self, dialog: Held, embedder: Embedder | None = None) -> ArchivalMemory:
        """Give the archive of whoever a dialog is about."""
        return self._kept(f"archive {embedder and embedder.name}", ArchivalMemory(self.place(dialog), embedder))

    def place(self, dialog: Held) -> Held:
        """Give the dialog in which the memory lies that a dialog has; made where there is none yet.

        A memory that is in the trash is neither read nor replaced: what is kept then stays in the dialog, and a `MemoryWarning` says so.
        """
        record = dialog.store.session(dialog.store.node(dialog.dialog_id).session_id)
        own = _Place(dialog.store, dialog.dialog_id)
        if not record.subject:
            return own
        name = f"{self.name} of {record.subject}"
        found = _in_session(dialog.store, name, record.subject)
        if isinstance(found, SessionRecord):
            self._warn(found)
            return own
        return found

    def _warn(self, trashed: SessionRecord) -> None:
        """Say once of a memory that it is in the trash."""
        with self._lock:
            known = trashed.session_id in self._warned
            self._warned.add(trashed.session_id)
        if not known:
            warnings.warn(
                f"{_in_trash(trashed)} What is remembered now stays in the conversation.", MemoryWarning, stacklevel=4
            )

    def _kept(self, kind: str, made: _T) -> _T:
        """Give the one that is open already: it knows what it has read; the one that was used longest ago is let go."""
        key = (kind, made.dialog_id)
        with self._lock:
            known = self._open.pop(key, made)
            found = known if isinstance(known, type(made)) and known.store is made.store else made
            self._open[key] = found
            if len(self._open) > _MOST:
                self._open.pop(next(iter(self._open)))
        return found


def shared_memory(store: Store, name: str, *, blocks: Mapping[str, Mapping[str, Any]] = EMPTY) -> CoreMemory:
    """Give the one core memory of a name that a store has for everybody, whoever is talked with: only what all may read belongs there.

    Args:
        store: Where it lies.
        name: What it is called.
        blocks: The blocks that it begins with, by label; those that it ever had are left as they are.

    Raises:
        InvalidInput: A block that it is to begin with is none; or it is in the trash.
        MemoryFull: The text of one is larger than its limit.
    """
    found = _in_session(store, name, "")
    if isinstance(found, SessionRecord):
        raise InvalidInput(_in_trash(found))
    return _begun(CoreMemory(found), blocks)


def warn_of_shared(store: Store, name: str) -> None:
    """Say that a store has memory that was kept by an agent's name, to whoever asks for each subject's own: before ADR 78 the same words meant that."""
    if any(record.metadata[MEMORY] != _SHARED for record in _memories(store, name, "")):
        warnings.warn(
            f"The store has a memory {name!r} from when an agent had one for everybody; memory is that of each subject now, and this one is not read. "
            f"To have it, as `memory: true` did before, write `memory: {{name: {name!r}, shared: true}}`; "
            "if nobody needs it any more, erase its session.",
            MemoryWarning,
            stacklevel=2,
        )


def _in_trash(record: SessionRecord) -> str:
    return (
        f"The memory {record.name!r} is in the trash: it is not read, and no other is begun in its place. "
        f"Take it out (Session.restore(), session {record.session_id}), or erase it to begin anew."
    )


def _begun(memory: CoreMemory, blocks: Mapping[str, Mapping[str, Any]]) -> CoreMemory:
    for label, block in blocks.items():
        if memory.history(label):
            continue
        try:
            memory.create(label, **block)
        except InvalidInput:
            if all(each.label != label for each in memory.blocks):
                raise  # else somebody made it meanwhile
    return memory


def _in_session(store: Store, name: str, subject: str) -> _Place | SessionRecord:
    """Find the session of a memory, or make it; or give its record where it is in the trash.

    Where two processes made one at the same time, the first one counts for both.
    """
    found = _memories(store, name, subject)
    if not found:
        thrown = _memories(store, name, subject, trashed=True)
        if thrown:
            return thrown[0]
        with store.together():
            found = _memories(store, name, subject)
            if not found:
                _make(store, name, subject)
        found = _memories(store, name, subject)
    first = min(found, key=lambda record: (record.created_at, record.session_id))
    root = first.root or _root(store, first)
    return _Place(store, DialogId(root))


def _memories(store: Store, name: str, subject: str, *, trashed: bool = False) -> list[SessionRecord]:
    found = store.sessions(name=name, subject=subject, trashed=trashed)
    return [record for record in found if record.metadata.get(MEMORY) and record.subject == subject]


def _make(store: Store, name: str, subject: str) -> None:
    record = SessionRecord(
        session_id=new_session_id(),
        name=name,
        subject=subject,
        created_at=now(),
        metadata={MEMORY: True if subject else _SHARED},
    )
    store.create_session(record)
    _root(store, record)


def _root(store: Store, record: SessionRecord) -> DialogId:
    """Make the dialog of a session that has none: whoever made it was stopped before he could."""
    nodes = store.nodes(record.session_id)
    if nodes:
        return nodes[0].dialog_id
    node = store.create_dialog(
        Node(dialog_id=new_dialog_id(), session_id=record.session_id, owner=_OWNER, created_at=now())
    )
    store.update_session(record.session_id, root=node.dialog_id)
    return node.dialog_id
