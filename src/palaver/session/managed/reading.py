"""Reading a session as a tree of entries by parents, with one leaf: what session managers give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, TypeAlias

from palaver.errors import InvalidHandle, UnknownDialog, UnknownHandle
from palaver.log import Handle, Header, Span
from palaver.session.branches.paths import newest, path_to
from palaver.session.dialog.dialog import Dialog
from palaver.session.managed.context import SessionContext, context_at
from palaver.session.managed.entries import Chain, SessionEntry, SessionHeader, SessionTreeNode, entries_in
from palaver.session.reading.marks import labels_of
from palaver.session.session import Session
from palaver.store.blocks import in_block

__all__ = ["HERE", "PARENT", "Here", "ManagedSession"]

PARENT = "parent_session"
"""Where the metadata of a session says which one it was taken from."""


Proof: TypeAlias = tuple[Handle, Header]
"""An entry, and what its header was."""


class Here:
    """The leaf is where the dialog ends."""


HERE = Here()


class ManagedSession:
    """A session, and a leaf in it.

    Attributes:
        session: The session.
        store: Where it lies.
    """

    def __init__(self, session: Session, dialog: Dialog | None = None) -> None:
        """Begin at the end of a dialog.

        Args:
            session: The session.
            dialog: The dialog; the one with the newest entry when not given.
        """
        self.session = session
        self.store = session.store
        self._dialog = (session.newest if dialog is None else dialog).reload()
        self._leaf: Handle | Here | None = HERE
        self._proof: Proof | None = None
        self._before: list[
            tuple[Dialog, Handle | Here | None, Proof | None]
        ] = []  # while a block may take back where it is
        self._labels: dict[Handle, str] | None = None

    # --- what it is ----------------------------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.session.session_id

    @property
    def header(self) -> SessionHeader:
        """What is known of the session as a whole."""
        record = self.session.record
        above = record.metadata.get(PARENT)
        return SessionHeader(
            id=record.session_id,
            timestamp=record.created_at,
            cwd=record.workdir,
            name=record.name,
            parent_session=above if isinstance(above, str) else None,
            metadata=record.metadata,
        )

    @property
    def name(self) -> str:
        """The session's name."""
        return self.session.name

    def rename(self, name: str) -> None:
        """Give the session another name."""
        self.session.rename(name)

    @property
    def leaf_id(self) -> str | None:
        """The id of the entry after which the next one comes, or None before the first."""
        place = self._place()
        return None if place is None else str(place)

    def _place(self) -> Handle | None:
        self._back()
        return newest(self._dialog.spans) if isinstance(self._leaf, Here) else self._leaf

    # --- reading ---------------------------------------------------------------------------------------------------------------------

    def build_session_context(self, leaf_id: str | None = None) -> SessionContext:
        """Give what the model sees at the leaf, or at another entry: the messages, the thinking level and the model in force.

        A compaction's summary stands first, after the instructions, then what it kept and what came since; summaries of branches stand where they
        were written; custom messages stand between them, for those who show the session.
        """
        return context_at(self.store, self._place() if leaf_id is None else self._entry_place(leaf_id))

    def get_entry(self, entry_id: str) -> SessionEntry:
        """Give an entry.

        Raises:
            UnknownHandle: There is none.
        """
        place = self._entry_place(entry_id)
        (entry,) = entries_in(self.store, self._chain(), [Span(place.dialog, place.seq, place.seq + 1)])
        return entry

    def get_entries(self) -> tuple[SessionEntry, ...]:
        """Give all entries of all branches, branch after branch."""
        chain = self._chain()
        return tuple(entries_in(self.store, chain, chain.spans()))

    def get_branch(self, from_id: str | None = None) -> tuple[SessionEntry, ...]:
        """Give the entries from the first one to the leaf, or to another entry."""
        place = self._place() if from_id is None else self._entry_place(from_id)
        spans = () if place is None else path_to(self.store, place)
        return tuple(entries_in(self.store, self._chain(), spans))

    def get_children(self, entry_id: str | None) -> tuple[SessionEntry, ...]:
        """Give the entries that follow an entry, by time; those that nothing stands before, for None."""
        place = None if entry_id is None else self._entry_place(entry_id)
        chain = self._chain()
        spans = [Span(one.dialog, one.seq, one.seq + 1) for one in chain.children(place)]
        return tuple(entries_in(self.store, chain, spans))

    def get_tree(self) -> tuple[SessionTreeNode, ...]:
        """Give the whole tree: the first entries, each with what follows it. However deep it is, nothing recurses."""
        chain = self._chain()
        labels = self._label_places()
        made: dict[str, SessionTreeNode] = {}
        entries = entries_in(self.store, chain, chain.spans())
        below: dict[str | None, list[SessionEntry]] = {}
        for entry in entries:
            below.setdefault(entry.parent_id, []).append(entry)
        named = {str(place): label for place, label in labels.items()}
        for entry in reversed(entries):  # what follows an entry was made after it
            children = sorted(below.get(entry.id, ()), key=lambda one: one.timestamp)
            nodes = tuple(made.pop(child.id) for child in children)
            made[entry.id] = SessionTreeNode(entry=entry, children=nodes, label=named.get(entry.id))
        return tuple(made[entry.id] for entry in sorted(below.get(None, ()), key=lambda one: one.timestamp))

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels in force, in all branches, by the id of the entry that each names."""
        return {str(place): label for place, label in self._label_places().items()}

    def get_label(self, entry_id: str) -> str | None:
        """Give an entry's label, or None."""
        return self._label_places().get(self._entry_place(entry_id))

    def _label_places(self) -> dict[Handle, str]:
        """Give the labels of the whole session; reads its headers once."""
        if self._labels is not None:
            return self._labels
        found = labels_of(self.store, self._chain().spans())
        if not in_block(self.store):
            self._labels = found
        return found

    def reload(self) -> Self:
        """Take note of what other writers have appended, and give the manager itself."""
        self._back()
        self._dialog.reload()
        self._labels = None
        return self

    def _move(self, dialog: Dialog, leaf: Handle | Here | None, proof: Handle | None = None) -> None:
        """Move the leaf; inside a block it is noted where it stood.

        Args:
            dialog: The dialog that the leaf is the end of, or was when it was moved.
            leaf: Where in it.
            proof: An entry without which it cannot stand there.
        """
        if in_block(self.store):
            self._before.append((self._dialog, self._leaf, self._proof))
            self._proof = None if proof is None else (proof, self.store.header(proof.dialog, proof.seq))
        self._dialog, self._leaf = dialog, leaf

    def _back(self) -> None:
        """Go back to where the leaf stood before, as long as a block took back what it stands on. Where somebody moved it by hand, it stays."""
        if not self._before:
            return
        while self._before and not self._stands():
            self._dialog, self._leaf, self._proof = self._before.pop()
        if not in_block(self.store):
            self._before, self._proof = [], None  # nothing takes it back any more

    def _stands(self) -> bool:
        """Tell whether that is there on which the leaf stands: its number may be another entry's by now."""
        try:
            self.store.node(self._dialog.dialog_id)
            return self._proof is None or self.store.header(self._proof[0].dialog, self._proof[0].seq) == self._proof[1]
        except (UnknownDialog, UnknownHandle):
            return False

    # --- ids -------------------------------------------------------------------------------------------------------------------------

    def _chain(self) -> Chain:
        return Chain(self.store, self.store.nodes(self.session.session_id))

    def _entry_place(self, entry_id: str) -> Handle:
        """Find an entry.

        Raises:
            UnknownHandle: There is none.
        """
        try:
            place = self.session.place(entry_id)
        except InvalidHandle as error:
            raise UnknownHandle(str(entry_id), hint="Appending gives ids.") from error
        return place._replace(block=None)
