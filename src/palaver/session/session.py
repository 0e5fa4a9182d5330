"""Sessions and dialogs: a conversation with all its branches, and one branch of it, which only grows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from types import TracebackType
from typing import Any, Self, TextIO, TypeAlias, overload

from palaver import erasure, providers, tools, wire
from palaver.dialects.lists import SdkObject, is_one, messages_of
from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.log import Entry, Handle, MessageEntry, Node, Toolset, TurnEnded, child_of, messages_in, rule, upto
from palaver.messages import Content, ImageContent, InvokeCost, Message, Role, TextContent, words_of
from palaver.messages.frozen import EMPTY
from palaver.notebook import MOST, html_table
from palaver.plurals import a_type
from palaver.prompts import Prompt, Runtime
from palaver.session import branches
from palaver.session.awaited import awaited, in_worker
from palaver.session.calls import CallHistory
from palaver.session.compaction import BudgetLike, Compactions, PolicyLike
from palaver.session.costs import cost_of_messages, cost_of_session
from palaver.session.differences import BranchDifference, branch_difference
from palaver.session.incoming import media_from, rendered, tools_of
from palaver.session.marks import Marks, holders, labels_of
from palaver.session.messages import Messages, message_line
from palaver.session.opened import RECORDED, OpenDialog, OpenSession, Top, new_session
from palaver.session.recall import recall, searchable, whole
from palaver.session.recall_tools import answered, with_recall
from palaver.session.retention import HOLD
from palaver.session.tree import DialogTreeNode, Tree, tree_lines, tree_of
from palaver.store.connect import StoreLike, find_session, only_session, opened_store
from palaver.store.memory import MemoryStore
from palaver.store.metadata import change_metadata
from palaver.store.protocol import ARCHIVE, Hit, SessionRecord, Store
from palaver.store.records import payloads_of
from palaver.store.redacting import RedactingStore, RedactLike, redacting
from palaver.transfer.landing import land
from palaver.transfer.records import from_list, to_json
from palaver.transfer.replay import Follower, LogBase, follower_of, read_log
from palaver.transfer.writer import family, stream
from palaver.view import View

_OWN_KEYS = ("palaver.", "palaver_")

One: TypeAlias = Message | Mapping[str, Any] | SdkObject
"""A message, as callers append it."""


class Session:
    """One conversation and all its branches.

    A session that opened its store by an address closes it with `close` or at the end of a `with` block. A store that was passed stays open.

    Attributes:
        store: The store.
        session_id: The opaque id.
        opened: What the session shares with its dialogs, for code that extends palaver.
        found_by: How `open` found it: `id`, `name` or `prefix`; empty for a new session.
        others: The number of other sessions with its name, if it was found by name. `open` chooses the last active one.
    """

    def __init__(  # noqa: PLR0913 - all but the first four by keyword
        self,
        store: Store,
        session_id: SessionId,
        runtime: Runtime | None = None,
        follower: Follower | None = None,
        *,
        found_by: str = "",
        others: int = 0,
        owned: bool = False,
        active: float = 0.0,
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.opened = OpenSession(store, session_id, self._dialog, runtime, follower, active=active)
        self.found_by = found_by
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
            record, by, others = find_session(known, reference)
        except NotFound as missing:
            missing.hint = missing.hint or f"Session.open(store, {reference!r}, create=True) makes one of this name."
            raise
        if ARCHIVE in record.metadata:
            from palaver.transfer.archives import restore  # noqa: PLC0415 - few sessions are archived

            restore(known, record.session_id)
        follower = follower_of(log_base)
        found: Any = {"found_by": by, "others": others, "owned": owned, "active": record.updated_at}
        session = cls(known, record.session_id, runtime, follower, **found)
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

    aupdate = in_worker(update)

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


class Dialog:
    """One branch of a conversation, owned by one agent.

    A dialog knows the log up to its own last write, or to the last `reload`. If another writer continued the turn first, a write raises
    `Conflict`, nothing is written, and the caller chooses between `reload()` and `fork()`. Entries of others outside the turn, and erasures,
    show in the next view. Several threads may use one object, one at a time.

    Attributes:
        session: The session, with all its branches.
        store: The store of the log.
        dialog_id: The opaque id, 32 hexadecimal digits.
        session_id: The session's opaque id.
        owner: The agent that owns it.
        opened: The log as far as this process knows it, for code that extends palaver.
        marks: Labels, pins and quarantines.
    """

    def __init__(  # noqa: PLR0913 - the last two by keyword, and only for a session
        self,
        owner: str = "assistant",
        session_name: str | None = None,
        top_prompt: Prompt | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
        log_base: LogBase | None = None,
        *,
        within: Session | None = None,
        node: Node | None = None,
    ) -> None:
        """Create a session with this one dialog.

        Args:
            owner: The agent that owns it.
            session_name: The session's name. Default: made from the time.
            top_prompt: The prompt in force for the model's next turn.
            runtime: Resolves paths of prompts. Default: the default runtime.
            store: The store. Default: in memory.
            log_base: A replay log that follows, or the folder for one.
            within: A session that already has the dialog, and to which it calls itself; then the arguments above are not used.
            node: The place of such a dialog in the tree.

        Raises:
            InvalidInput: The store is an address: `Session.open` and `Session.create` accept one.
        """
        prompt: Top = RECORDED
        if within is None or node is None:
            _require_store(store, session_name or owner)
            known, prompt = store or MemoryStore(), top_prompt
            node = new_session(known, session_name or "", owner=owner)
            within = Session(known, node.session_id, runtime, follower_of(log_base), active=node.created_at)
            within.opened.begun[node.dialog_id] = ()
        self.session = within
        self.store = within.store
        self.dialog_id = node.dialog_id
        self.session_id = node.session_id
        self.owner = node.owner
        self.opened = OpenDialog(within.opened, node, prompt)
        self.marks = Marks(self.opened)
        self._asked: tuple[wire.Request, int] | None = None
        self._memo = wire.Memo()
        within.opened.dialogs[node.dialog_id] = self

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def session_name(self) -> str:
        """The session's name."""
        return self.session.name

    @property
    def top_prompt(self) -> Prompt | None:
        """The prompt in force for the model's next turn: the last one put, or a temporary one for a text that was put.

        A registered prompt stays in force in later processes. If their runtime does not have it, a warning says so and this is None.
        """
        return self.opened.prompt.prompt()

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self.opened.prompt.value = prompt

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self.opened.count}>"

    def _repr_html_(self) -> str:
        """Return the newest messages, for a notebook."""
        count = len(self.messages)
        first = max(0, count - MOST)
        rows = [
            (number, message.role.value, " ".join(map(words_of, message.contents)))
            for number, message in enumerate(self.messages[first:], first)
        ]
        return html_table(repr(self)[1:-1], ("", "role", "message"), rows, earlier=first)

    # --- reading ----------------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        return Messages(self.store, self.opened.stretches())

    @property
    def head(self) -> Message | None:
        """The first message, or None."""
        return self.messages[0] if self.opened.count else None

    @property
    def tail(self) -> Message | None:
        """The last message, or None."""
        return self.messages[-1] if self.opened.count else None

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of all messages; reads all of them. Dollars that no provider reported are estimated, and also in `estimated`."""
        return cost_of_messages(self.messages.bare())

    def overview(
        self,
        remove_tail: bool = False,  # noqa: FBT001, FBT002 - a public signature of the sources
        max_length: int = 100,
        stream: TextIO | None = None,
        divider: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> str:
        """Return the messages for people, a line for each.

        Args:
            remove_tail: Whether to leave out the last message.
            max_length: How many characters of a message to show; a longer one ends in `...`.
            stream: Where the text is also written to.
            divider: Whether to put a ruler between the lines.
        """
        messages = zip(range(self.opened.count - remove_tail), self.messages.bare(), strict=False)
        lines = (message_line(index, message, max_length) for index, message in messages)
        text = ("\n" + "-" * 40 + "\n" if divider else "\n").join(lines)
        if stream is not None:
            stream.write(text + "\n")
        return text

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Return what a handle names, an entry or one block, from any branch of the session.

        Raises:
            InvalidInput: The text is not a handle.
            NotFound: The session has no such entry or block.
            Erased: It was erased.
        """
        return recall(self.store, self.session_id, handle, self.dialog_id)

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    @overload
    async def aappend(
        self, message: One, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message: ...
    @overload
    async def aappend(
        self, message: Iterable[One], *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> tuple[Message, ...]: ...
    async def aappend(
        self, message: Any, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message | tuple[Message, ...]:
        """Append as `append` does, without making the event loop wait."""
        return await awaited(self.store, partial(self.append, message, dialect=dialect, metadata=metadata))

    @overload
    def append(
        self, message: One, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message: ...
    @overload
    def append(
        self, message: Iterable[One], *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> tuple[Message, ...]: ...
    def append(
        self, message: object, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message | tuple[Message, ...]:
        """Append a message, or several at once, all or none.

        The stored message has this dialog's id in its metadata; the caller's object does not change. A message with the results of several
        calls is stored as one message for each. After an error that leaves open whether a message was written, append the same object again: it
        is there once.

        Args:
            message: A `Message`; a dict of OpenAI's Chat Completions or Responses, Anthropic's or Gemini's interface; an answer as a provider's
                SDK returns it, with its content, usage and ids; or several of them. If the dialog made the request that an answer answers,
                and nothing was appended since, the call is also recorded.
            dialect: How dicts are written, a dialect of `palaver.read_messages`. Default: found from the dicts.
            metadata: JSON values, stored with each message.

        Returns:
            The message as it is stored; the last one of a message with several results; a tuple for several messages.

        Raises:
            TypeError: It is not a message.
            InvalidMessage: A dict is not a message of any interface.
            ProviderError: An answer reports a failure, or stops before its end.
            Conflict: Another writer was first; nothing was written.
            MissingFile: It refers to media whose bytes neither it nor the store has.
        """
        asked, at = self._asked or (None, -1)
        request = asked if at == self.opened.last.seq else None  # after another entry, an answer is not to that request
        given = tuple(messages_of(message, request, dialect))
        entries = [
            MessageEntry(message=part, bound=request.bound_for(said) if request and said.is_assistant_side else None)
            for said, _ in given
            for part in self.opened.stamped(said, metadata or EMPTY)
        ]
        if request is not None and any(answered for _, answered in given):
            self.calls.record(request)
        stored = self._write(*entries)
        return stored[-1] if is_one(message) else stored

    def _write(self, *entries: MessageEntry) -> tuple[Message, ...]:
        """Append messages that have this dialog's id, unless they are there, and return them as they are stored."""
        self._asked = None
        try:
            self.record(*entries)
        except Conflict:
            if not self.opened.wrote([entry.message.id for entry in entries]):
                raise
        if isinstance(self.store, RedactingStore):  # what is stored differs from what was passed
            return tuple(self.store.stored(entry).message for entry in entries)
        return tuple(entry.message for entry in entries)

    def put_text(
        self,
        text: str,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append a text verbatim: it is not a template. A temporary prompt without tools or parser comes into force.

        Args:
            text: The text.
            name: The sender. Default: the role's.
            metadata: Stored with the message.
            role: Who speaks.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is a str, not {a_type(text)}.")
        return self._put(self._message(text, name, metadata, role), text)

    def put_prompt(
        self,
        prompt: Prompt | str,
        prompt_args: Mapping[str, Any] | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Render a prompt and append the text; the prompt comes into force for the next turn.

        Args:
            prompt: The prompt, or its path in the runtime.
            prompt_args: The template's variables.
            name: As for `put_text`.
            metadata: As for `put_text`.
            role: As for `put_text`.

        Raises:
            NotFound: The runtime has no prompt of this path.
            InvalidInput: Variables are missing, or a prompt without variables has arguments; nothing was appended.
        """
        chosen = self.session.runtime.get_prompt(prompt) if isinstance(prompt, str) else prompt
        if not isinstance(chosen, Prompt):
            raise TypeError(f"prompt is a Prompt or a path, not {a_type(prompt)}.")
        return self._put(self._message(rendered(chosen, prompt_args), name, metadata, role), chosen)

    def _put(self, message: Message, prompt: Prompt | str) -> Message:
        """Append a message and put a prompt into force, both or neither."""
        before, self.opened.prompt.value = self.opened.prompt.value, prompt
        try:
            return self._write(MessageEntry(message=message))[0]
        except BaseException:
            self.opened.prompt.value = before
            raise

    def put_image(
        self,
        image: object,
        caption: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append an image; the prompt in force stays.

        Args:
            image: A path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.
            caption: A text before the image, also in the metadata.
            name: As for `put_text`.
            metadata: As for `put_text`.
            role: As for `put_text`.

        Raises:
            MissingFile: It names no file.
            InvalidMessage: It is not an image that palaver knows.
        """
        blocks: tuple[Content, ...] = (ImageContent(images=(media_from(image),)),)
        message = self._message(blocks, name, metadata, role)
        if caption is not None:
            about = {**message.metadata, "caption": caption}
            message = self._message((TextContent(content=caption), *blocks), name, about, role)
        return self.append(message)

    def _message(
        self, said: str | tuple[Content, ...], name: str | None, metadata: Mapping[str, Any] | None, role: Role | str
    ) -> Message:
        """Return a message that has the dialog's id, as `OpenDialog.stamped` would return it."""
        about = {**({} if metadata is None else metadata), "dialog_id": self.dialog_id}
        if role == Role.TOOL:  # what a tool says is a result
            return Message(role=role, content=said, name=name, metadata=about)
        blocks = (TextContent(content=said),) if isinstance(said, str) else said
        return Message(role=role, contents=blocks, name=name, metadata=about)

    def record(self, *entries: Entry, beside: bool = False) -> tuple[Handle, ...]:
        """Append entries of the log, all or none, and return their handles.

        Kinds that belong to a turn continue it. Kinds outside a turn (labels, decisions, late results, …) do not continue it, and never conflict
        with another writer.

        Args:
            entries: The entries.
            beside: Whether kinds that may be either are written outside the turn.

        Raises:
            Conflict: Another writer was first; nothing was written.
            InvalidInput: One of them may not follow.
        """
        if beside or any(not rule(entry.kind).turn for entry in entries):
            if len(entries) == 1:
                return (self.opened.annotate(entries[0]),)
            with self.store.transaction():  # all or none
                return tuple(map(self.opened.annotate, entries))
        return self.opened.append(map(self.opened.prompt.on, entries))

    def reload(self) -> Self:
        """Read what other writers have appended, and return the dialog itself."""
        self.opened.reload()
        self.opened.prompt.reload()
        return self

    areload = in_worker(reload)

    # --- views and requests ------------------------------------------------------------------------------------------------------------

    def view(
        self,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        *,
        model: str = "",
    ) -> View:
        """Return what the model is to see: everything, or what a policy makes of it. Nothing is written.

        Args:
            policy: A policy or context manager, its name or its configuration. Default: `palaver`, if there is a budget.
            budget: The size of one request, in tokens.
            at: The number of the last own entry to take into account, for an earlier view; -1 for none of them. Default: the newest known one.
            model: The model that counts tokens. Default: the one in force.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
            NotFound: There is no policy of this name, or the dialog has no entry `at`.
            PolicyFailed: The policy raised.
        """
        seen = self.opened.view(at)
        if policy is None and budget is None:
            return seen
        return self.compaction.compose(policy, budget, model=model, view=seen).view

    def request(  # noqa: PLR0913 - all but the first two by keyword
        self,
        /,
        profile: wire.Profile | str,
        model: str,
        *,
        tools: Iterable[Any] | None = None,
        recall: bool | None = None,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        **call: Any,  # noqa: ANN401 - the fields of a Call
    ) -> wire.Request:
        """Compile the request for a provider; nothing is sent. It is a mapping: pass it to the provider's SDK as `**request`.

        Args:
            profile: `openai`, `openai-responses`, `anthropic` or `gemini`; or a profile.
            model: The model.
            tools: Schemas as providers write them, or functions. Default: the dialog's tools. If the tools of this request, with `recall` and the
                `provider_tools` of the call, differ from the dialog's, they are recorded as its tools from now on, which is the only thing that is written.
            recall: Whether `recall` and `search_history` are among the tools, with which the model reads what the view leaves out; `call_tool`
                answers them. Default: as in `tools`.
            policy: As for `view`.
            budget: As for `view`.
            at: As for `view`.
            call: Further fields of `palaver.wire.Call`, such as `max_tokens` or `tool_choice`.

        Raises:
            InvalidInput: A `Call` has no such field, or an argument has another type; nothing was written.
            NotFound: There is no profile of this name.
            InfeasibleBudget: What must be sent is larger than the budget.
            InvalidRequest: The request breaks a rule of its provider: it ends on the assistant's words, which the model does not continue, so the
                next user message is missing; or it is a defect of palaver.
        """
        for name in call.keys() - wire.Call.__dataclass_fields__.keys():
            hint = f"Put a parameter of the provider's own into parameters={{{name!r}: ...}}."
            raise InvalidInput(f"A request has no field {name!r}.", hint=hint)
        made = wire.Call(model=model, **call)
        known = providers.profile(profile, model) if isinstance(profile, str) else profile
        if not isinstance(known, wire.Profile):
            raise InvalidInput(
                f"The profile is {known!r}.", hint="Pass an API's name, such as 'anthropic', or a profile."
            )
        if recall is not None and not isinstance(recall, bool):
            raise InvalidInput(f"recall is {recall!r}.", hint="Pass True, False or None.")
        if at is not None and not (tools is None and recall is None):
            raise InvalidInput(
                "A request for an earlier view has the tools of that time.",
                hint="Leave out `at`, or `tools` and `recall`.",
            )
        view = self.opened.view(at)
        if at is None:
            declared = view.tools if tools is None else tools_of(tools)
            declared = declared if recall is None else with_recall(declared, recall=recall)
            if (declared, made.provider_tools) != (view.tools, view.provided):
                self.record(Toolset(tools=declared, provided=made.provider_tools or None))
                view = self.opened.view()
        if policy is not None or budget is not None:
            view = self.compaction.compose(policy, budget, model=model, view=view, profile=known).view
        memo = self._memo if at is None else None  # an earlier view is not what the next request goes on from
        request = wire.compile(view, known, made, payloads_of(self.store, self.session_id), memo)
        request.check()
        self._asked = None if at is not None else (request, self.opened.last.seq)
        return request

    def call_tool(self, name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of `recall` or `search_history`, which `request(..., recall=True)` offers to the model.

        Args:
            name: The tool's name.
            args: The arguments, as a mapping or as the JSON text that the model wrote.

        Returns:
            The text of the tool's result; for wrong arguments, what is wrong with them. `Dialog.recall` returns images and sounds.

        Raises:
            NotFound: The tool has another name.
        """
        return answered(self.marks, name, args)

    aview = in_worker(view)

    arequest = in_worker(request)

    @cached_property
    def calls(self) -> CallHistory:
        """The recorded model calls, and the way to record the next."""
        return CallHistory(self.opened)

    @cached_property
    def compaction(self) -> Compactions:
        """Smaller views: previewed, committed, undone and redone."""
        return Compactions(self.opened)

    # --- branches ----------------------------------------------------------------------------------------------------------------------

    def fork(self, last_n: int = 0, first_k: int = 1, *, at: Handle | str | None = None) -> Dialog:
        """Branch off: a child with all messages, with those up to an entry, or with the first `first_k` and the last `last_n`.

        Nothing is copied: the child shares the entries, and later appends are separate. An entry that is not a message belongs to the message
        before it. Queued messages stay with the parent. If another writer continued the turn, the child has what this object knows; `reload` first to have all.

        Args:
            last_n: How many of the last messages to keep; 0 keeps all.
            first_k: How many of the first messages to keep, when `last_n` is not 0.
            at: The last entry that the child shares. Default: the newest.

        Raises:
            TypeError: One of the numbers is not a whole number.
            InvalidInput: One of them is negative, or `at` comes with `last_n`.
            NotFound: The dialog does not contain the entry `at`.
        """
        for name, value in (("last_n", last_n), ("first_k", first_k)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is a whole number of messages, not {a_type(value)}.")
            if value < 0:
                raise InvalidInput(f"{name} is {value}; a fork keeps 0 messages or more.")
        if at is not None and last_n:
            raise InvalidInput(
                "A fork keeps the entries up to `at`, or the last `last_n` messages; give one of the two."
            )
        self.opened.refresh()
        if at is None:
            ranges, kept = branches.window(self.opened, last_n, first_k)
            node = child_of(self.opened.node, ranges, kept, relation="fork", window=(last_n, first_k))
        else:
            ranges = upto(self.opened.spans(), self.session.place(at)._replace(block=None))
            node = child_of(self.opened.node, ranges, messages_in(self.store, ranges), relation="fork")
        child = self.session.opened.new_dialog(node)
        child.opened.prompt.value = self.opened.prompt.value  # also one that no entry names yet
        return child

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        above = self.opened.node.parent_id
        return None if above is None else self.session.opened.dialog(above)

    @property
    def children(self) -> tuple[Dialog, ...]:
        """The dialogs forked from it, in the order of the forks."""
        below = (node for node in self.store.nodes(self.session_id) if node.parent_id == self.dialog_id)
        return tuple(self.session.opened.dialog(node.dialog_id, node) for node in below)

    @property
    def tree_node(self) -> DialogTreeNode:
        """Its place in the tree as it is now."""
        return self.session.tree[self.dialog_id]

    def tree_overview(self) -> str:
        """Return the tree from this dialog down for people, a line for each dialog."""
        return "\n".join(tree_lines(self.tree_node, self.session.opened.count))

    # --- as a dictionary ---------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the dialog as JSON values: its ancestors, itself and all below it, media included.

        `messages` is for readers; `log` is what `from_dict` restores.
        """
        kin = family(self.store, self.opened.node)
        return {
            "session_name": self.session_name,
            "owner": self.owner,
            "tree_node": self.tree_node.to_dict(),
            "top_prompt_path": self.opened.prompt.path(),
            "messages": [message.to_dict() for message in self.messages.bare()],
            "log": list(map(to_json, stream(self.store, self.session_id, kin, payloads="there"))),
        }

    @classmethod
    def from_dict(
        cls,
        fields: Mapping[str, Any],
        log_base: LogBase | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
    ) -> Dialog:
        """Read what `to_dict` returned: the same ids, entries and tree.

        Args:
            fields: The dictionary.
            log_base: A replay log that follows from now on, beginning with what was read.
            runtime: Resolves the path of the prompt. Default: the default runtime. An unknown path is a warning.
            store: The store to write to. Default: in memory.

        Raises:
            InvalidInput: It is not a dialog's dictionary, or the store has the session already.
        """
        into = store or MemoryStore()
        made = land(from_list(fields.get("log")), into).session_id
        session = Session(into, made, runtime, follower_of(log_base))
        session.opened.follow_all()
        dialog = session.opened.dialog(DialogId(fields["tree_node"]["dialog_id"]))
        dialog.top_prompt = dialog.opened.prompt.registered(fields.get("top_prompt_path"))
        return dialog


def _require_store(store: object, name: str) -> None:
    """Refuse an address: a dialog would not know when to close the store."""
    if isinstance(store, str | os.PathLike):
        hint = f"Session.open({os.fspath(store)!r}, {name!r}, create=True).root is a dialog in it."
        raise InvalidInput(f"store is {store!r}, not a store.", hint=hint)


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
