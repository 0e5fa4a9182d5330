"""The session manager: a session as a tree of entries with one leaf, as the programs know it that keep sessions in files with parents.

A thin face over dialogs. Its entries are the log's, its ids are handles, its parents are derived; moving the leaf writes nothing, and the fork
that it means is recorded with the next append. Every append is durable when it returns, the first as the last, and costs its own size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from palaver.errors import Conflict, InvalidInput, UnknownHandle
from palaver.log import BranchSummary, Compaction, Custom, Entry, Handle, ModeChange, ModelChange, Place, Span, child_of
from palaver.messages import Content, CustomMessage, Message, TextContent
from palaver.prompts import Runtime
from palaver.session.branches.merging import Branching, departure, exchanges_of, lowest_trust
from palaver.session.branches.paths import apart, newest, path_to
from palaver.session.carried.copying import copied
from palaver.session.compaction.committing import in_one_step
from palaver.session.dialog.dialog import Dialog
from palaver.session.managed.compacting import Recorded, kept_from
from palaver.session.managed.context import THINKING
from palaver.session.managed.reading import HERE, PARENT, Here, ManagedSession
from palaver.session.reading.erased import require_unerased
from palaver.session.reading.transcript import stretches
from palaver.session.session import Session
from palaver.store.blocks import in_block
from palaver.store.connect import StoreLike, opened_store
from palaver.store.protocol import SessionRecord, Store
from palaver.view import View

__all__ = ["SessionManager"]

_PAGE = 50


class SessionManager(ManagedSession):
    """A session, and a leaf in it after which the next entry comes.

    Attributes:
        session: The session.
        store: Where it lies.
    """

    _owned = False  # whether the store was opened here

    # --- making, finding, listing -----------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        cwd: str = "",
        store: StoreLike | None = None,
        *,
        name: str = "",
        owner: str = "assistant",
        runtime: Runtime | None = None,
    ) -> Self:
        """Make a session about a working folder; it is there at once, before anything is said.

        Args:
            cwd: The working folder.
            store: A store, or the address of one; in memory when not given.
            name: A name for people; made from the time when not given.
            owner: The agent that owns it.
            runtime: What paths of prompts are resolved with.
        """
        return cls(Session.create(store, name, owner=owner, workdir=cwd, runtime=runtime))

    @classmethod
    def in_memory(cls, cwd: str = "") -> Self:
        """Make a session that ends with the process."""
        return cls.create(cwd)

    @classmethod
    def open(cls, reference: str, store: StoreLike, *, runtime: Runtime | None = None) -> Self:
        """Open a session by id, name or the first digits of its id, and go on where its newest entry is.

        Raises:
            UnknownSession: There is none.
            Ambiguous: Several ids begin with these digits.
        """
        return cls(Session.open(reference, store, runtime=runtime))

    @classmethod
    def continue_recent(cls, cwd: str = "", store: StoreLike | None = None, *, runtime: Runtime | None = None) -> Self:
        """Go on with the session about a working folder that was active last, or make one; without a folder any session counts."""
        opened, owned = opened_store(store, create=True)
        found = next((one for one in _newest_first(opened) if cwd in {"", one.workdir} and one.root is not None), None)
        if found is None:
            manager = cls.create(cwd, opened, runtime=runtime)
        else:
            manager = cls.open(found.session_id, opened, runtime=runtime)
        manager._owned = owned  # noqa: SLF001 - of this very class
        return manager

    @classmethod
    def fork_from(cls, source: str, cwd: str, store: StoreLike) -> Self:
        """Copy a session, all its branches, into a new one about another working folder; `header.parent_session` names the old one."""
        opened, owned = opened_store(store, create=False)
        session = Session.open(source, opened)
        made = copied(opened, session.session_id, workdir=cwd, metadata={PARENT: session.session_id})
        manager = cls(Session.open(made.session_id, opened))
        manager._owned = owned
        return manager

    @staticmethod
    def list(store: StoreLike, cwd: str | None = None) -> tuple[SessionRecord, ...]:
        """Give the records of sessions, newest activity first: all, or those about one working folder."""
        opened, owned = opened_store(store, create=False)
        try:
            return tuple(one for one in opened.sessions() if cwd in {None, one.workdir})
        finally:
            if owned:
                opened.close()

    # --- the leaf -----------------------------------------------------------------------------------------------------------------

    @property
    def dialog(self) -> Dialog:
        """The dialog that the next append goes to. After a move of the leaf that is a fork, which is made when this is asked."""
        return self._settled()

    # --- appending -------------------------------------------------------------------------------------------------------------------

    def append_message(self, message: Message) -> str:
        """Append a message and give the id of its entry; results of several calls become an entry each, and the last id is given.

        Raises:
            TypeError: It is no message.
            Conflict: Another writer was first; nothing was written.
        """
        if not isinstance(message, Message):
            raise TypeError(f"append_message takes a message, not a {type(message).__name__}.")
        dialog = self._settled()
        dialog.append(message)
        return self._tip()

    def append_custom_message(
        self,
        custom_type: str,
        content: str | Iterable[Content] = "",
        display: bool = True,  # noqa: FBT001, FBT002 - may be given by position, as its users are used to
        details: object = None,
        *,
        in_context: bool = False,
    ) -> str:
        """Append a message of an extension, which no model sees unless it is made to be seen, and give the id of its entry.

        Args:
            custom_type: What it is, for whoever dispatches on it.
            content: A text, or content blocks.
            display: Whether those who show the session are to show it; kept in the metadata.
            details: What is to be kept with it; JSON values.
            in_context: Whether the model is to see it, as a user's message.
        """
        metadata: dict[str, Any] = {"display": display} | ({} if details is None else {"details": details})
        return self.append_message(
            CustomMessage(
                custom_type=custom_type,
                contents=((TextContent(content),) if content else ()) if isinstance(content, str) else tuple(content),
                in_context=in_context,
                metadata=metadata,
            )
        )

    def append_custom(self, custom_type: str, data: object = None) -> str:
        """Append a record of an extension, which is never shown to a model, and give its id."""
        return self._append(Custom(custom_type=custom_type, data=data))

    def append_model_change(self, provider: str, model_id: str) -> str:
        """Append that another model is in force, and give the entry's id."""
        return self._append(ModelChange(model=model_id, provider=provider))

    def append_thinking_level_change(self, thinking_level: str) -> str:
        """Append that another thinking level is in force, and give the entry's id."""
        return self._append(ModeChange(mode=THINKING, value=thinking_level))

    def append_compaction(
        self, summary: str, first_kept_entry_id: str | None, tokens_before: int, details: object = None
    ) -> str:
        """Append that what stands before an entry is stood for by a summary, and give the entry's id. The log keeps everything.

        The newest words of the user, pinned entries and open calls stay in any case, and an exchange is kept whole.

        Args:
            summary: What the model sees first from now on.
            first_kept_entry_id: The first entry that it still sees; one that this branch does not hold keeps only what every view holds.
            tokens_before: The size of the context before, in tokens.
            details: What is to be kept with it; JSON values.

        Raises:
            Conflict: Something was erased since this manager last read or wrote: the summary may repeat it. The next one is taken.
        """
        dialog = self._settled()
        recorded = Recorded(summary, self._known(first_kept_entry_id), tokens_before, details)
        known = _end(dialog)

        def made() -> Compaction:
            view, spans = _seen(dialog)
            require_unerased(self.store, dialog.dialog_id, known, "the summary", "Make it again.")
            return kept_from(self.store, view, spans, recorded)

        in_one_step(self.store, dialog.dialog_id, made)
        dialog.reload()
        return self._tip()

    def append_branch_summary(self, summary: str, from_id: str | None = None) -> str:
        """Append what happened on another branch, which the model sees, and give the entry's id.

        Args:
            summary: What happened there.
            from_id: The entry where this branch and that one went apart; None for the beginning.
        """
        left = None if from_id is None else self._entry_place(from_id)
        entry = BranchSummary(
            summary=summary,
            dialog=None if left is None else left.dialog,
            left=None if left is None else Place(dialog=left.dialog, seq=left.seq),
        )
        return self._append(entry)

    def append_label(self, target_id: str, label: str | None) -> str:
        """Name an entry for people, or with None take its name away, and give the id of the entry that says so. No model sees it.

        While the leaf is moved, it is written beside the entry that it names, and the leaf stays where it is.

        Raises:
            UnknownHandle: There is no such entry.
        """
        self._back()
        target = self._entry_place(target_id)
        dialog = self._dialog if isinstance(self._leaf, Here) else self.session.dialog(target.dialog).reload()
        if in_block(self.store):
            self._labels = None  # the block may take it back
        known = self._label_places()  # before the new one is among them
        made = dialog.label(target, label)
        known.pop(target, None)
        if label is not None:
            known[target] = label
        return str(made)

    def _known(self, entry_id: str | None) -> Handle | None:
        try:
            return None if entry_id is None else self._entry_place(entry_id)
        except UnknownHandle:  # recorded by another program, perhaps: the summary stands, and what comes after it
            return None

    def _append(self, entry: Entry) -> str:
        self._settled().record(entry)
        return self._tip()

    def _tip(self) -> str:
        place = newest(self._dialog.spans)
        assert place is not None  # noqa: S101 - something was just appended
        return str(place)

    # --- moving the leaf -------------------------------------------------------------------------------------------------------------

    def branch(self, from_id: str) -> None:
        """Move the leaf to an entry: the next append comes after it. Nothing is written, and nothing is removed.

        Raises:
            UnknownHandle: There is no such entry; the error is a KeyError too.
        """
        place = self._entry_place(from_id)
        self._back()
        self._move(self._dialog, place, place)

    def reset_leaf(self) -> None:
        """Move the leaf before the first entry: the next append begins anew."""
        self._back()
        self._move(self._dialog, None)

    def branch_with_summary(self, summary: str, from_id: str | None = None) -> str:
        """Move the leaf, append there what happened on the branch that is left, and give the id of that entry.

        Args:
            summary: What happened on the branch that is left.
            from_id: Where to go on; None before the first entry.

        Raises:
            UnknownHandle: There is no such entry.
            Conflict: Something of the branch was erased since this manager last read or wrote: the summary may repeat it. The next one is taken.
        """
        target = None if from_id is None else self._entry_place(from_id)
        left, dialog = self._place(), self._dialog
        left_path = () if left is None else path_to(self.store, left)
        kept = () if target is None else path_to(self.store, target)
        sources = apart(left_path, kept)
        trust = lowest_trust(exchanges_of(self.store, self.session.session_id, sources))
        pair = Branching(dialog.dialog_id if left is None else left.dialog, left_path, kept)
        known = _end(dialog)
        with self.store.together():
            try:
                require_unerased(self.store, dialog.dialog_id, known, "the summary", "Make it again.")
            except Conflict:
                dialog.reload()
                raise
            there = self._end_of(target)
            there.record(departure(pair, summary, sources, trust))
            self._move(there, HERE, newest(there.spans))  # with the summary: what takes it back takes the move back
            return self._tip()

    def _settled(self) -> Dialog:
        """Give the dialog that the leaf is the end of; after a move that is the one it is already the end of, or a fork."""
        self._back()
        if not isinstance(self._leaf, Here):
            self._move(self._end_of(self._leaf), HERE)
        return self._dialog

    def _end_of(self, leaf: Handle | None) -> Dialog:
        """Give the dialog that a place is the end of: one that is there, or a fork, or one that begins anew."""
        return self._new_root() if leaf is None else self._at(leaf)

    def _new_root(self) -> Dialog:
        return self._dialog if not self._dialog.spans else self.session.new_dialog(self._dialog.owner)

    def _at(self, place: Handle) -> Dialog:
        if newest(self._dialog.spans) == place:
            return self._dialog
        owner = self.session.dialog(place.dialog).reload()
        if self.store.last(place.dialog).seq == place.seq:
            return owner
        ranges = path_to(self.store, place)
        kept = stretches(self.store, ranges)[1]
        node = child_of(self.store.node(place.dialog), ranges, kept, relation="fork", owner=self._dialog.owner)
        return self.session.dialog(self.store.create_dialog(node).dialog_id)

    # --- other sessions --------------------------------------------------------------------------------------------------------------

    def create_branched_session(self, leaf_id: str) -> SessionManager:
        """Copy what leads to an entry into a session of its own; `header.parent_session` names this one. Labels on the way are kept.

        Raises:
            InvalidInput: There is no such entry.
        """
        try:
            place = self._entry_place(leaf_id)
        except UnknownHandle as error:
            raise InvalidInput(f"There is no entry {leaf_id!r} to branch from.") from error
        session_id = self.session.session_id
        workdir = self.session.record.workdir
        copy = copied(self.store, session_id, workdir=workdir, metadata={PARENT: session_id}, leaf=place)
        made = SessionManager(Session.open(copy.session_id, self.store))
        for entry in self.get_branch(leaf_id):
            target, label = copy.place(self._entry_place(entry.id)), self.get_label(entry.id)
            if target is not None and made.get_label(str(target)) != label:
                made.append_label(str(target), label)
        return made

    def close(self) -> None:
        """Close the store, if it was opened for this manager."""
        self.session.close()
        if self._owned:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SessionManager session={self.session_id[:12]} leaf={self.leaf_id}>"


def _newest_first(store: Store) -> Iterator[SessionRecord]:
    """Give sessions a page at a time: who looks for a recent one need not wait for the order of all."""
    page = tuple(store.sessions(limit=_PAGE))
    while page:
        yield from page
        page = tuple(store.sessions(limit=_PAGE, after=page[-1]))


def _end(dialog: Dialog) -> int:
    """Give the number of a dialog's newest own entry that is known, -1 where it has none."""
    place = newest(dialog.spans)
    return place.seq if place is not None and place.dialog == dialog.dialog_id else -1


def _seen(dialog: Dialog) -> tuple[View, Sequence[Span]]:
    """Give the view of a dialog as it stands now, and what it holds."""
    return dialog.reload().view(), dialog.spans
