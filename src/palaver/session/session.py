"""The session: a conversation with all its branches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from palaver import erasure, tools
from palaver.errors import InvalidInput, NotFound
from palaver.ids import SessionId, new_dialog_id, now
from palaver.log import Entry, Handle, Node, TurnEnded
from palaver.messages import Content, InvokeCost
from palaver.messages.frozen import EMPTY
from palaver.prompts import Runtime
from palaver.session import branches
from palaver.session.costs import cost_of_session
from palaver.session.dialog import Dialog
from palaver.session.differences import BranchDifference, branch_difference
from palaver.session.marks import Marks, holders, labels_of
from palaver.session.opened import OpenSession, new_session
from palaver.session.recall import recall, searchable, whole
from palaver.session.retention import HOLD
from palaver.session.tree import Tree, tree_lines, tree_of
from palaver.store.connect import StoreLike, find_session, only_session, opened_store
from palaver.store.metadata import change_metadata
from palaver.store.protocol import ARCHIVE, Hit, SessionRecord, Store
from palaver.store.redacting import RedactLike, redacting
from palaver.transfer.landing import land
from palaver.transfer.replay import Follower, LogBase, follower_of, read_log

_OWN_KEYS = ("palaver.", "palaver_")


class Session:
    """One conversation and all its branches.

    A session that opened its store by an address closes it with `close` or at the end of a `with` block. A store that was passed stays open.

    Attributes:
        store: The store.
        session_id: The opaque id.
        opened: What the session shares with its dialogs, for code that extends palaver.
        others: The number of other sessions with its name, if it was found by name. `open` chooses the last active one.
    """

    def __init__(  # noqa: PLR0913 - all but the first four by keyword
        self,
        store: Store,
        session_id: SessionId,
        runtime: Runtime | None = None,
        follower: Follower | None = None,
        *,
        others: int = 0,
        owned: bool = False,
        active: float = 0.0,
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.opened = OpenSession(store, session_id, self._dialog, runtime, follower, active=active)
        self.others = others
        self._owned = owned

    def _dialog(self, node: Node) -> Dialog:
        return Dialog(within=self, node=node)

    # --- creating, opening, listing ---------------------------------------------------------------------------------------------------

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
        """Create a session with its first dialog, in one step.

        Args:
            store: A store, or the address of one. Default: in memory.
            name: A name for people, which need not be unique. Default: made from the time.
            owner: The agent that owns the first dialog.
            subject: Whose data it is.
            workdir: The working folder it is about.
            metadata: JSON values, stored with it.
            runtime: Resolves paths of prompts. Default: the default runtime.
            log_base: A replay log that follows, or the folder for one.
            redact: Removes secrets from everything before it is written: a redactor, or True for one that recognizes the usual keys and
                tokens. The model sees what was written.

        Raises:
            InvalidInput: The metadata is not JSON.
            StoreError: The store cannot be opened or written.
        """
        known, owned = opened_store(store, create=True)
        known = redacting(known, redact)
        about = {"subject": subject, "workdir": workdir, "metadata": metadata or EMPTY}
        root = new_session(known, name, owner=owner, **about)
        made = cls(known, root.session_id, runtime, follower_of(log_base), owned=owned, active=root.created_at)
        made.opened.begun[root.dialog_id] = ()
        made.opened.follow_all()
        return made

    @classmethod
    def open(  # noqa: PLR0913 - all but the first two by keyword
        cls,
        store: StoreLike,
        reference: str,
        *,
        create: bool = False,
        owner: str = "assistant",
        runtime: Runtime | None = None,
        log_base: LogBase | None = None,
        redact: RedactLike = False,
    ) -> Session:
        """Open a session. One that was archived is brought back from its archive first.

        Args:
            store: A store, or the address of one.
            reference: Its id; its name, of which the last active session is opened; or the first digits of its id, at least 6.
            create: Whether to create a session of this name if there is none. Of several processes that do so at once, one creates it.
            owner: The agent that owns the first dialog of a session that is created.
            runtime: Resolves paths of prompts. Default: the default runtime.
            log_base: A replay log that follows, or the folder for one; it begins with what is there.
            redact: As for `create`, for everything that is written from now on.

        Raises:
            InvalidInput: The reference is not a text, or is empty.
            NotFound: There is none; `close` has similar names.
            Erased: The session of this id was erased.
            Ambiguous: Several ids begin with these digits.
            StoreError: The store cannot be opened or read, or the archive of an archived session cannot.
        """
        given: object = reference
        if not isinstance(given, str) or not given:
            raise InvalidInput(f"The session is {given!r}.", hint="Pass its name or its id.")
        known, owned = opened_store(store, create=create)
        known = redacting(known, redact)
        if create and not any(known.sessions(name=reference, limit=1)):
            with known.transaction(lock=f"session {reference}"):  # of several processes, one creates it
                if not any(known.sessions(name=reference, limit=1)):
                    new_session(known, reference, owner=owner)
        try:
            record, others = find_session(known, reference)
        except NotFound as missing:
            missing.hint = missing.hint or f"Session.open(store, {reference!r}, create=True) makes one of this name."
            raise
        if ARCHIVE in record.metadata:
            from palaver.transfer.archives import restore  # noqa: PLC0415 - few sessions are archived

            restore(known, record.session_id)
        follower = follower_of(log_base)
        about: Any = {"others": others, "owned": owned, "active": record.updated_at}
        session = cls(known, record.session_id, runtime, follower, **about)
        session.opened.follow_all()
        return session

    @classmethod
    async def acreate(cls, *args: Any, **options: Any) -> Session:  # noqa: ANN401 - as for `create`
        """Create a session as `create` does, without making the event loop wait: in a worker thread."""
        return await tools.run_in_worker(partial(cls.create, *args, **options))

    @classmethod
    async def aopen(cls, *args: Any, **options: Any) -> Session:  # noqa: ANN401 - as for `open`
        """Open a session as `open` does, without making the event loop wait: in a worker thread."""
        return await tools.run_in_worker(partial(cls.open, *args, **options))

    async def aroot(self) -> Dialog:
        """Return `root` without making the event loop wait."""
        return await tools.run_in_worker(lambda: self.root)

    @classmethod
    def list(
        cls,
        store: StoreLike,
        *,
        name: str | None = None,
        subject: str | None = None,
        trashed: bool = False,
        limit: int | None = None,
        after: SessionRecord | None = None,
    ) -> tuple[SessionRecord, ...]:
        """Return the records of sessions, last active first: those outside the trash, or only those in it.

        Args:
            store: A store, or the address of one.
            name: Only sessions of exactly this name.
            subject: Only sessions about exactly this subject.
            trashed: Whether to list the trash instead.
            limit: The maximum number.
            after: The last session of the previous page.
        """
        known, owned = opened_store(store, create=False)
        try:
            return tuple(known.sessions(name=name, subject=subject, trashed=trashed, limit=limit, after=after))
        finally:
            if owned:
                known.close()

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The runtime, which resolves paths of prompts."""
        return self.opened.runtime

    @property
    def record(self) -> SessionRecord:
        """Its record in the store: name, subject, working folder, times."""
        return self.opened.record

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """All its dialogs, in the order of creation."""
        return tuple(self.opened.dialog(node.dialog_id, node) for node in self.store.nodes(self.session_id))

    @property
    def root(self) -> Dialog:
        """The dialog to continue: the first one; after an import or a rewind, the one in which the conversation continued.

        Raises:
            NotFound: The session has no dialog.
        """
        root = self.opened.root()
        if root is None:
            away = "It is archived: Session.open() brings it back." if ARCHIVE in self.record.metadata else ""
            raise NotFound(self.session_id, what="dialog of session", hint=away or "Make one with new_dialog().")
        return root

    @property
    def newest(self) -> Dialog:
        """The dialog with the newest entry; sub-agents' dialogs do not count.

        Raises:
            NotFound: The session has no dialog.
        """
        nodes = [node for node in self.store.nodes(self.session_id) if node.relation != "subagent"]
        if not nodes:
            return self.root
        last = max(nodes, key=lambda node: (max(self.store.last(node.dialog_id).at, node.created_at), node.order))
        return self.opened.dialog(last.dialog_id, last)

    def dialog(self, reference: str) -> Dialog:
        """Return a dialog by its id, or by the first digits of it, at least 6.

        Raises:
            NotFound: The session has no such dialog.
            Ambiguous: Several ids begin with these digits.
        """
        return self.opened.dialog(self.store.resolve(reference, self.session_id))

    @property
    def tree(self) -> Tree:
        """The tree of its dialogs as it is now, by dialog id."""
        return tree_of(self.store.nodes(self.session_id))

    def tree_overview(self) -> str:
        """Return the whole tree for people, a line for each dialog."""
        roots = [node for node in self.tree.values() if node.is_root]
        return "\n".join(line for root in roots for line in tree_lines(root, self.opened.count))

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of all answers, including those of sub-agents and refused ones, and of summaries.

        An answer that branches share, or that a rewritten file repeats, counts once. Reads all messages. Dollars that no provider reported are
        estimated. `Trace.cost` counts the same for one call of an agent.
        """
        return cost_of_session(self.store, self.session_id)

    def __repr__(self) -> str:
        return f"<Session {self.session_id[:12]} name={self.name!r}>"

    # --- continuing -------------------------------------------------------------------------------------------------------------------

    def resume(self, dialog: str | None = None) -> Dialog:
        """Return the dialog to continue: the one named, or the newest.

        A turn that was left open, because its process died, is ended as `interrupted`, so that the next one can start.

        Raises:
            NotFound: There is none.
            Conflict: Another process is in its turn.
        """
        resumed = (self.newest if dialog is None else self.dialog(dialog)).reload()
        if self.store.last(resumed.dialog_id).open_turn >= 0:
            # its process died, so nobody else ends it
            resumed.record(TurnEnded(outcome="interrupted"))
        return resumed

    def fork(self, dialog: str | None = None, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off from the dialog named, or the newest; as `Dialog.fork`."""
        return (self.newest if dialog is None else self.dialog(dialog)).fork(last_n, first_k)

    def new_dialog(self, owner: str, metadata: Mapping[str, object] | None = None) -> Dialog:
        """Create a dialog that shares nothing with the others, for another agent."""
        dialog_id = new_dialog_id(self.session_id)
        made = self.opened.new_dialog(
            Node(dialog_id=dialog_id, session_id=self.session_id, owner=owner, metadata=metadata or EMPTY)
        )
        if self.record.root is None:
            self.store.update_session(self.session_id, root=made.dialog_id)
        made.top_prompt = None  # the log of an empty dialog names no prompt
        return made

    def rewind(self, to: Handle | str | None, dialog: Dialog | None = None) -> branches.Rewind[Dialog]:
        """Preview going back to an entry: nothing is written before `apply()` on the result.

        Args:
            to: The last entry that stays; None to go back before the first.
            dialog: The dialog. Default: the newest.

        Raises:
            NotFound: The dialog does not contain it.
            InvalidInput: It is the newest entry: nothing would leave.
        """
        return branches.rewind(self.opened, (dialog or self.newest).opened, to)

    def undo_rewind(self, dialog: Dialog | None = None) -> Dialog:
        """Return to the dialog before a rewind. What was said since stays in the dialog where it was said.

        Raises:
            InvalidInput: The dialog was not made by a rewind.
        """
        return branches.undo_rewind(self.opened, (dialog or self.newest).dialog_id).reload()

    def merge(self, branch: Dialog, into: Dialog, summary: str | None = None) -> Handle:
        """Write into a dialog what happened on another branch, by one entry outside the turn, and return its handle.

        The entry names the branch, the fork point, and the entries that the text is made from. It speaks as a summary, with the lowest trust
        among them. What the branch says later can be merged later; nothing is written twice.

        Args:
            branch: The branch.
            into: The dialog to write into.
            summary: What happened. Default: a record written by code.

        Raises:
            InvalidInput: A dialog belongs to another session, or the branch has no entries that the dialog lacks.
        """
        self._require_own(branch, into)
        return branches.merge(branch.opened, into.opened, summary)

    def diff(self, first: Dialog, second: Dialog) -> BranchDifference:
        """Compare two branches: their common beginning, and what only one of them has.

        Raises:
            InvalidInput: A dialog belongs to another session.
        """
        self._require_own(first, second)
        return branch_difference(first.opened, second.opened)

    def _require_own(self, *dialogs: Dialog) -> None:
        for dialog in dialogs:
            if (dialog.store, dialog.session_id) != (self.store, self.session_id):
                raise InvalidInput(f"Dialog {dialog.dialog_id[:12]} is not of session {self.session_id[:12]}.")

    # --- places in it -----------------------------------------------------------------------------------------------------------------

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Return what a handle names; as `Dialog.recall`."""
        return recall(self.store, self.session_id, handle)

    def place(self, handle: Handle | str) -> Handle:
        """Return a handle with the whole id of its dialog.

        Raises:
            InvalidInput: It is not a handle.
            NotFound: The session has no such entry.
        """
        place = whole(self.store, self.session_id, handle)
        self.store.header(place.dialog, place.seq)
        return place

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force in all its dialogs, the newest of each entry."""
        return labels_of(self.store, self.store.nodes(self.session_id))

    def quarantine(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """Set a block aside in every dialog of the session that contains it; as `Marks.quarantine`.

        Returns:
            The new entries, one for each dialog in which the block was not set aside before.
        """
        place = self.place(handle)
        return tuple(marks.quarantine(place, reason) for marks in self._marks(place) if place not in marks.quarantined)

    def lift(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """End a quarantine in every dialog of the session; as `Marks.lift`.

        Raises:
            InvalidInput: No dialog has it in quarantine.
        """
        place = self.place(handle)
        lifted = tuple(marks.lift(place, reason) for marks in self._marks(place) if place in marks.quarantined)
        if not lifted:
            raise InvalidInput(f"{place} is not in quarantine in any dialog of this session.")
        return lifted

    def _marks(self, place: Handle) -> Iterator[Marks]:
        """Yield the marks of the dialogs that contain an entry."""
        for dialog_id in holders(self.store, self.session_id, place._replace(block=None)):
            yield self.opened.dialog(dialog_id).marks

    def search(self, query: str, limit: int = 20) -> tuple[Hit, ...]:
        """Return the entries that contain all words of `query`, best first. New entries are indexed first.

        Raises:
            StoreError: The store has no full text (reason `unsupported`).
        """
        self.store.index(searchable, session_id=self.session_id)
        return self.store.search(query, session_id=self.session_id, limit=limit)

    # --- its record, the trash, erasure -------------------------------------------------------------------------------------------------

    def update(
        self,
        *,
        name: str | None = None,
        subject: str | None = None,
        workdir: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> SessionRecord:
        """Change what describes it, in one step, and return its new record. What is not passed stays.

        Args:
            name: Replaces its name, which is also its title in lists.
            subject: Replaces the subject: whose data it is. Memory per subject follows it from the next use on.
            workdir: Replaces its working folder.
            metadata: JSON values that are merged key by key: a key replaces the whole value of this key, one whose value is None is removed,
                and all others stay, whatever other writers do meanwhile.

        Raises:
            InvalidInput: The metadata is not JSON, or has a key that begins with `palaver.` or `palaver_`: these are the library's own.
        """
        new: Mapping[str, object] = metadata or EMPTY
        if own := [key for key in new if str(key).startswith(_OWN_KEYS)]:
            hint = "Use another key; values of palaver change by their own methods, such as hold()."
            raise InvalidInput(f"The metadata key {own[0]!r} is palaver's own.", hint=hint)
        described = {"name": name, "subject": subject, "workdir": workdir}
        fields = {key: value for key, value in described.items() if value is not None}

        def merged(known: Mapping[str, object]) -> Mapping[str, object]:
            return {key: value for key, value in {**known, **new}.items() if key not in new or value is not None}

        return change_metadata(self.store, self.session_id, merged, **fields)

    def delete(self) -> None:
        """Move it to the trash, where no list shows it and only its own search finds it; `restore` undoes this."""
        self.store.update_session(self.session_id, trashed_at=now())

    def restore(self) -> None:
        """Restore it from the trash."""
        self.store.update_session(self.session_id, trashed_at=None)

    def hold(self, reason: str | None) -> None:
        """Exempt it from retention, at any age; None ends this. An erasure that names it still happens."""

        def held(known: Mapping[str, object]) -> Mapping[str, object]:
            kept = {name: value for name, value in known.items() if name != HOLD}
            return kept if reason is None else {**kept, HOLD: reason}

        change_metadata(self.store, self.session_id, held)

    def erase(
        self,
        *,
        dialog: str | None = None,
        entries: Iterable[Handle | str] | None = None,
        children: bool = False,
        tombstones: bool = False,
        files: Iterable[str | os.PathLike[str]] = (),
        thorough: bool = True,
    ) -> erasure.Receipt:
        """Permanently erase the session, or a dialog or entries of it; as `palaver.erase`.

        Args:
            dialog: A dialog, by its id or the first digits of it. Default: the whole session, unless `entries` are passed.
            entries: Entries, by their handles; at least one.
            children: With a dialog, also erase its branches.
            tombstones: With a dialog, leave tombstones in its branches.
            files: Files to delete, among those that `preview_erasure` lists.
            thorough: Whether to rewrite the storage if bytes would stay otherwise.

        Raises:
            InvalidInput: The dialog has branches, and neither `children` nor `tombstones` is set; or `entries` is empty.
            NotFound: The session has no such entry.
            Erased: It was already erased.
            Ambiguous: The whole session was opened by a name that other sessions have, too; nothing is erased.
        """
        places = None if entries is None else [self.place(entry) for entry in entries]
        if places is not None and not places:  # such as a search without hits
            raise InvalidInput("entries is empty.", hint="Leave it out to erase the whole session.")
        scope: erasure.ErasureScope = {"entries": places or (), "children": children, "tombstones": tombstones}
        if dialog is not None:
            scope["dialog"] = self.store.resolve(dialog, self.session_id)
        elif not places:
            if self.others:  # opened by a name that other sessions had, too
                only_session(self.store, self.name)
            scope["session"] = self.session_id
        receipt = erasure.erase(self.store, files=files, thorough=thorough, **scope)
        self.opened.forget()
        return receipt

    def close(self) -> None:
        """Close the store, if this session opened it."""
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
        store: The store to write to, or the address of one. Default: in memory.
        session_id: Which session, if the folder has several.
        runtime: Resolves paths of prompts. Default: the default runtime.

    Raises:
        MissingFile: There is no log.
        Ambiguous: The log has several sessions, and none was named.
        InvalidInput: The store has the session already.
    """
    records = read_log(log_base, session_id)
    known, owned = opened_store(store, create=True)
    return Session(known, land(records, known, gaps=True).session_id, runtime, owned=owned)
