"""The session: one conversation with all its branches, as a store keeps it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Self

from palaver.errors import InvalidInput, UnknownDialog
from palaver.ids import new_session_id, now
from palaver.log import Entry, Handle, Span, TurnEnded, decode_entry
from palaver.messages import Content, InvokeCost, Usage
from palaver.prompts import Runtime, get_default_runtime
from palaver.session.branches.overview import tree_lines
from palaver.session.branches.tree import Tree
from palaver.session.calls.quarantining import holders
from palaver.session.carried.replay import LogBase, follower_of, read_log
from palaver.session.carried.restore import restore
from palaver.session.compaction.attempts import summaries_of
from palaver.session.dialog.dialog import Dialog
from palaver.session.dialog.family import Family, made_up_name
from palaver.session.erasure import Receipt, erase
from palaver.session.erasure.retention import HOLD
from palaver.session.reading.extent import Opened, extent_of
from palaver.session.reading.marks import labels_of
from palaver.session.reading.recalling import recall, whole
from palaver.session.reading.searching import searchable
from palaver.session.reading.transcript import Messages, Stretch
from palaver.store import Hit, SessionRecord, Store
from palaver.store.connect import StoreLike, opened_store
from palaver.store.finding import find_session
from palaver.store.redacting import RedactLike, redacted_store

__all__ = ["Session", "rebuild"]


class Session:
    """One conversation and all its branches.

    A session that was given an address opened the store itself, and closes it with `close` or at the end of a `with` block; one that
    was given a store leaves it open.

    Attributes:
        store: Where it lies.
        session_id: The opaque id.
        opened: How it was found, and how much of it is there when asked; None for one that was just made.
    """

    def __init__(self, family: Family[Dialog], *, opened: Opened | None = None, owned: bool = False) -> None:
        self._family = family
        self._owned = owned
        self._closed = False
        self.store = family.store
        self.session_id = family.session_id
        self.opened = opened

    # --- making, finding, listing ---------------------------------------------------------------------------------------------

    @classmethod
    def create(  # noqa: PLR0913 - all but the first two by keyword
        cls,
        store: StoreLike | None = None,
        name: str = "",
        *,
        owner: str = "assistant",
        subject: str = "",
        workdir: str = "",
        metadata: Mapping[str, object] | None = None,
        runtime: Runtime | None = None,
        log_base: LogBase | None = None,
        redact: RedactLike = False,
    ) -> Session:
        """Make a session with its first dialog.

        Args:
            store: A store, or the address of one; in memory when not given.
            name: A name for people, which need not be unique; made from the time when not given.
            owner: The agent that owns the first dialog.
            subject: Whose data it is.
            workdir: The working folder it is about.
            metadata: What is to be kept with it; JSON values.
            runtime: What paths of prompts are resolved with; the default one when not given.
            log_base: A replay log that follows, or the folder for one.
            redact: What takes secrets out of all that is written, before it is durable: a redactor, or True for one that knows the usual
                keys and tokens. What the model sees is what was written.

        Raises:
            InvalidInput: The metadata is no JSON.
            StoreError: The store cannot be opened or written.
        """
        opened, owned = opened_store(store, create=True)
        opened = redacted_store(opened, redact)
        session_id, at = new_session_id(), now()
        record = SessionRecord(
            session_id=session_id,
            name=name or made_up_name(session_id, at),
            subject=subject,
            workdir=workdir,
            created_at=at,
            metadata=metadata or {},
        )
        opened.create_session(record)
        family: Family[Dialog] = Family(opened, session_id, runtime or get_default_runtime(), follower_of(log_base))
        Dialog.of(family, family.new_root(owner))
        return cls(family, owned=owned)

    @classmethod
    def open(
        cls,
        reference: str,
        store: StoreLike,
        *,
        runtime: Runtime | None = None,
        log_base: LogBase | None = None,
        verify: bool = False,
        redact: RedactLike = False,
    ) -> Session:
        """Open a session; `opened` says how it was found and, when asked, how much of it is there.

        Args:
            reference: Its id; or its name, of which the latest is taken; or the first digits of its id, at least 6.
            store: A store, or the address of one.
            runtime: What paths of prompts are resolved with; the default one when not given.
            log_base: A replay log that follows, or the folder for one; it begins with what is there.
            verify: Whether to read every entry and compare it with its digest.
            redact: As for `create`, of what is written from here on.

        Raises:
            UnknownSession: There is none; `close` has the names that look like it.
            Erased: There was one of this id, and it was erased.
            Ambiguous: Several ids begin with these digits.
            StoreError: The store cannot be opened or read.
        """
        opened, owned = opened_store(store, create=False)
        opened = redacted_store(opened, redact)
        record, by, others = find_session(opened, reference)
        family: Family[Dialog] = Family(
            opened, record.session_id, runtime or get_default_runtime(), follower_of(log_base)
        )
        family.tell_all()
        count = partial(extent_of, opened, record.session_id, verify=verify)
        found = Opened(by=by, others=others, count=count)
        if verify:
            _ = found.extent  # who asks for proof waits for it
        return cls(family, opened=found, owned=owned)

    @classmethod
    def list(
        cls,
        store: Store,
        *,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> tuple[SessionRecord, ...]:
        """Give the records of sessions, newest activity first: those not in the trash, or only those in it.

        Args:
            store: The store.
            name: Only sessions of exactly this name.
            subject: Only sessions about exactly this subject.
            trashed: Whether to give those in the trash instead.
            limit: At most so many.
            after: The last session of the page before: those behind it.
        """
        return tuple(store.sessions(name=name, subject=subject, trashed=trashed, limit=limit, after=after))

    # --- what it is -----------------------------------------------------------------------------------------------------------

    @property
    def record(self) -> SessionRecord:
        """What the store keeps of it: name, subject, working folder, times."""
        return self._family.record

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """All its dialogs, in the order in which they were made."""
        return tuple(Dialog.at(self._family, node.dialog_id) for node in self.store.nodes(self.session_id))

    @property
    def root(self) -> Dialog:
        """The dialog to go on with: the first one, or of an imported session the one with its newest entry.

        It need not be a root of the tree: an import takes the branch that the conversation went on in, and a rewind the one that it made.

        Raises:
            UnknownDialog: It has none yet.
        """
        root = self.record.root
        if root is None:
            raise UnknownDialog(self.session_id, what="dialog of session", hint="Make one with new_dialog().")
        return Dialog.at(self._family, root)

    def dialog(self, reference: str) -> Dialog:
        """Give a dialog by its id, or by the first digits of it, at least 6.

        Raises:
            UnknownDialog: The session has none.
            Ambiguous: Several ids begin with these digits.
        """
        return Dialog.at(self._family, self.store.resolve(reference, self.session_id))

    @property
    def newest(self) -> Dialog:
        """The dialog with the newest entry; a sub-agent's does not count.

        Raises:
            UnknownDialog: There is no dialog yet.
        """
        nodes = [node for node in self.store.nodes(self.session_id) if node.relation != "subagent"]
        if not nodes:
            return self.root
        last = max(nodes, key=lambda node: (max(self.store.last(node.dialog_id).at, node.created_at), node.order))
        return Dialog.at(self._family, last.dialog_id)

    @property
    def tree(self) -> Tree:
        """The tree of its dialogs, by dialog id, as it stands now."""
        return self._family.tree()

    def tree_overview(self) -> str:
        """Give the whole tree for people, a line a dialog."""
        roots = [node for node in self.tree.values() if node.is_root]
        return "\n".join(line for root in roots for line in tree_lines(root, self._family.count))

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of all its dialogs together, what summaries cost included: a message that branches share counts once. Reads all messages."""
        total = InvokeCost()
        for node in self.store.nodes(self.session_id):
            last = self.store.last(node.dialog_id)
            own = Stretch(Span(node.dialog_id, 0, last.seq + 1), 0, 0, last.number)
            total = sum((message.cost for message in Messages(self.store, (own,), last.number).bare()), total)
            total = sum((usage.invoke_cost for usage in _summarising(self.store, own.span)), total)
        return total

    def __repr__(self) -> str:
        return f"<Session {self.session_id[:12]} name={self.name!r}>"

    # --- going on -------------------------------------------------------------------------------------------------------------

    def resume(self, dialog: str | None = None) -> Dialog:
        """Give the dialog to go on with: the one named, or the newest.

        A turn that was left open, because its process died, is ended as `interrupted`, so that the next one can start.

        Raises:
            UnknownDialog: There is none.
            Conflict: Its turn is going on in another process.
        """
        found = (self.newest if dialog is None else self.dialog(dialog)).reload()
        if found.in_turn:
            found.record(TurnEnded(outcome="interrupted"))
        return found

    def fork(self, dialog: str | None = None, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off from the dialog named, or the newest; as `Dialog.fork`."""
        return (self.newest if dialog is None else self.dialog(dialog)).fork(last_n, first_k)

    def new_dialog(self, owner: str, metadata: Mapping[str, object] | None = None) -> Dialog:
        """Make a dialog that shares nothing with the others, for another agent."""
        return Dialog.of(self._family, self._family.new_root(owner, metadata))

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Give back what a handle stands for; as `Dialog.recall`."""
        return recall(self.store, self.session_id, handle)

    def quarantine(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """Set a block aside in every dialog of the session that holds it and shows it still; as `Dialog.quarantine`.

        Returns:
            The entries that say so, one for each dialog; none where it was set aside already.
        """
        place = whole(self.store, self.session_id, handle)
        found = (self.dialog(one) for one in holders(self.store, self.session_id, place))
        return tuple(dialog.quarantine(place, reason) for dialog in found if place not in dialog.quarantined)

    def lift_quarantine(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """Show again, in every dialog of the session, what was set aside; as `Dialog.lift_quarantine`.

        Raises:
            InvalidInput: No dialog has it in quarantine.
        """
        place = whole(self.store, self.session_id, handle)
        found = [self.dialog(one) for one in holders(self.store, self.session_id, place)]
        lifted = tuple(dialog.lift_quarantine(place, reason) for dialog in found if place in dialog.quarantined)
        if not lifted:
            raise InvalidInput(f"{place} is not in quarantine in any dialog of this session.")
        return lifted

    def place(self, handle: Handle | str) -> Handle:
        """Give a handle with the whole id of its dialog.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such entry.
        """
        found = whole(self.store, self.session_id, handle)
        self.store.header(found.dialog, found.seq)
        return found

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force in all its dialogs, the newest of each entry; reads the headers of the whole session."""
        nodes = self.store.nodes(self.session_id)
        return labels_of(
            self.store, [Span(node.dialog_id, 0, self.store.last(node.dialog_id).seq + 1) for node in nodes]
        )

    def search(self, query: str, limit: int = 20) -> tuple[Hit, ...]:
        """Give the entries that hold all the words of `query`, best first; the index is brought up to date with it before.

        Raises:
            UnsupportedCapability: The store has no full text.
        """
        self.store.index(searchable, session_id=self.session_id)
        return self.store.search(query, session_id=self.session_id, limit=limit)

    # --- changing what people call it, and the trash ------------------------------------------------------------------------------

    def rename(self, name: str) -> None:
        """Give it another name."""
        self.store.update_session(self.session_id, name=name)

    def move(self, workdir: str) -> None:
        """Say that its working folder is another one now."""
        self.store.update_session(self.session_id, workdir=workdir)

    def delete(self) -> None:
        """Put it into the trash: no list and no search shows it; nothing is lost, and `restore` takes it out again."""
        self.store.update_session(self.session_id, trashed_at=now())

    def restore(self) -> None:
        """Take it out of the trash."""
        self.store.update_session(self.session_id, trashed_at=None)

    # --- privacy --------------------------------------------------------------------------------------------------------------

    def erase(
        self,
        *,
        dialog: str | None = None,
        entries: Iterable[Handle | str] = (),
        children: bool = False,
        tombstones: bool = False,
        thorough: bool = True,
    ) -> Receipt:
        """Erase the session, or a dialog or entries of it, for good, and give the receipt; as `palaver.erase`.

        Args:
            dialog: A dialog, by its id or the first digits of it; the whole session when neither this nor entries are named.
            entries: Entries, by their handles.
            children: With a dialog, erase what grew from it, too.
            tombstones: With a dialog, leave tombstones for what grew from it.
            thorough: Whether the storage is written anew, where that is what it takes.

        Raises:
            HasChildren: Others grew from the dialog, and nobody said what becomes of them.
            UnknownHandle: The session has no such entry.
            Erased: It was erased before.
            InvalidInput: A replay log follows, and a block of the store is open in this thread.
        """
        self._family.require_forgetting()
        places = [self.place(entry) for entry in entries]
        known = None if dialog is None else self.dialog(dialog).dialog_id
        session = None if known or places else self.session_id
        receipt = erase(
            self.store,
            session=session,
            dialog=known,
            entries=places,
            children=children,
            tombstones=tombstones,
            thorough=thorough,
        )
        self._family.forget()
        return receipt

    def hold(self, reason: str) -> None:
        """Keep it from retention, whatever its age, until `release`; an erasure that names it is another matter."""
        self.store.update_session(self.session_id, metadata={**self.record.metadata, HOLD: reason})

    def release(self) -> None:
        """Let retention have it again."""
        kept = {name: value for name, value in self.record.metadata.items() if name != HOLD}
        self.store.update_session(self.session_id, metadata=kept)

    def close(self) -> None:
        """Let a replay log catch up, and close the store, if this session opened it."""
        if not self._closed:
            self._closed = True
            self._family.tell_last()
        if self._owned:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def rebuild(
    log_base: str | os.PathLike[str],
    store: StoreLike | None = None,
    *,
    session_id: str | None = None,
    runtime: Runtime | None = None,
) -> Session:
    """Rebuild a session from its replay log alone: the same ids, the same entries, the same tree.

    Args:
        log_base: The log's folder.
        store: Where the session is to lie, a store or the address of one; in memory when not given.
        session_id: Which session, where the folder holds several.
        runtime: What paths of prompts are resolved with; the default one when not given.

    Raises:
        MissingStore: There is no log.
        Ambiguous: The log holds several sessions, and none was named.
        InvalidInput: The store has the session already.
    """
    record, dialogs = read_log(log_base, session_id)
    opened, owned = opened_store(store, create=True)
    restore(opened, record, dialogs)
    return Session(Family(opened, record.session_id, runtime or get_default_runtime()), owned=owned)


def _summarising(store: Store, span: Span) -> Iterator[Usage]:
    """Give what summarisers used in a stretch of a dialog."""
    for header in store.headers(span.dialog, span.start, span.stop):
        if header.kind in {"compaction", "custom"}:
            yield from (usage for _, usage in summaries_of(decode_entry(store.body(span.dialog, header.seq))))
