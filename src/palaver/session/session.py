"""The session: one conversation with all its branches, as a store keeps it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from palaver.errors import Ambiguous, InvalidInput, NotFound, PalaverError
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import Compaction, Custom, Entry, Handle, Node, Span, TurnEnded, decode_entry
from palaver.messages import Content, InvokeCost, Message, Usage
from palaver.messages.frozen import EMPTY
from palaver.prompts import Runtime, get_default_runtime
from palaver.session.dialog import Dialog
from palaver.session.head import SessionClock
from palaver.session.marks import holders, labels_of
from palaver.session.messages import REJECTED, cost_of_messages, own_messages
from palaver.session.recall import recall, searchable, whole
from palaver.session.tree import Tree, tree_lines, tree_of
from palaver.store import Hit, SessionRecord, Store
from palaver.store.connect import StoreLike, find_session, opened_store
from palaver.store.redacting import RedactLike, redacting
from palaver.transfer.landing import ReplayLogWarning, land
from palaver.transfer.replay import Follower, LogBase, follower_of, read_log

if TYPE_CHECKING:
    from palaver.erasure.receipts import Receipt
    from palaver.session.branches import Rewind
    from palaver.session.differences import BranchDifference

__all__ = ["Extent", "Session", "only_session", "rebuild"]

HOLD = "palaver.hold"
"""The key in a session's metadata that keeps it from retention; its value says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many entries a session has, and how many of them can be read.

    Attributes:
        dialogs: The number of its dialogs.
        total: The number of its entries.
        damaged: Runs of entries whose bytes are missing or differ from what was written; empty unless `verified`.
        cut_off: Entries of dialogs whose ancestors are missing.
        verified: Whether every entry's bytes were compared with their digest.
    """

    dialogs: int
    total: int
    damaged: tuple[Span, ...] = ()
    cut_off: int = 0
    verified: bool = False

    @property
    def reachable(self) -> int:
        """The number of entries that can be read."""
        return self.total - self.cut_off - sum(map(len, self.damaged))


class Session:
    """One conversation and all its branches.

    A session that was given an address opened the store itself, and closes it with `close` or at the end of a `with` block; one that was given
    a store leaves it open.

    Attributes:
        store: Where it is.
        session_id: The opaque id.
        runtime: Resolves paths of prompts.
        found_by: How `open` found it: `id`, `name` or `prefix`; empty for a session that was just made.
        others: How many other sessions have the same name, where it was found by name; it is the one that was active last.
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
    ) -> None:
        self.store = store
        self.session_id = session_id
        self.runtime = runtime or get_default_runtime()
        self.found_by = found_by
        self.others = others
        self._owned = owned
        self._follower = follower
        self._dialogs: dict[DialogId, Dialog] = {}
        self._clock = SessionClock(store, session_id)

    @classmethod
    def _made(
        cls,
        store: Store,
        name: str = "",
        *,
        owner: str = "assistant",
        runtime: Runtime | None = None,
        follower: Follower | None = None,
        owned: bool = False,
        **fields: Any,  # noqa: ANN401 - of a `SessionRecord`
    ) -> Session:
        """Make a session with its root, in one step; nothing is followed yet."""
        at, made = now(), new_session_id()
        known = name or f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(at))}_{made[:6]}"
        root = Node(dialog_id=new_dialog_id(made), session_id=made, owner=owner, created_at=at)
        store.create_session(SessionRecord(session_id=made, name=known, created_at=at, **fields), root)
        return cls(store, made, runtime, follower, owned=owned)

    # --- making, finding, listing -----------------------------------------------------------------------------------------------------

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
        """Make a session with its first dialog, in one step.

        Args:
            store: A store, or the address of one; in memory when not given.
            name: A name for people, which need not be unique; made from the time when not given.
            owner: The agent that owns the first dialog.
            subject: Whose data it is.
            workdir: The working folder it is about.
            metadata: Kept with it; JSON values.
            runtime: Resolves paths of prompts; the default one when not given.
            log_base: A replay log that follows, or the folder for one.
            redact: Removes secrets from all that is written, before it is durable: a redactor, or True for one that knows the usual keys and
                tokens. The model sees what was written.

        Raises:
            InvalidInput: The metadata is not JSON.
            StoreError: The store cannot be opened or written.
        """
        known, owned = opened_store(store, create=True)
        made = cls._made(
            redacting(known, redact),
            name,
            owner=owner,
            subject=subject,
            workdir=workdir,
            metadata=metadata or EMPTY,
            runtime=runtime,
            follower=follower_of(log_base),
            owned=owned,
        )
        made._follow_all()
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
        """Open a session.

        Args:
            store: A store, or the address of one.
            reference: Its id; or its name, of which the last active one is opened; or the first digits of its id, at least 6.
            create: Whether to make a session of this name where there is none. Of several processes that do so at once, one makes it.
            owner: The agent that owns the first dialog of a session that is made.
            runtime: Resolves paths of prompts; the default one when not given.
            log_base: A replay log that follows, or the folder for one; it begins with what is there.
            redact: As for `create`, of what is written from here on.

        Raises:
            InvalidInput: The reference is no text, or empty.
            NotFound: There is none; `close` has names that look like it.
            Erased: There was one of this id, and it was erased.
            Ambiguous: Several ids begin with these digits.
            StoreError: The store cannot be opened or read.
        """
        given: object = reference
        if not isinstance(given, str) or not given:
            raise InvalidInput(f"The session is {given!r}.", hint="Give its name or its id.")
        known, owned = opened_store(store, create=create)
        known = redacting(known, redact)
        if create:
            with known.transaction(lock=f"session {reference}"):
                if not any(True for _ in known.sessions(name=reference, limit=1)):
                    cls._made(known, reference, owner=owner)
        try:
            record, by, others = find_session(known, reference)
        except NotFound as missing:
            missing.hint = missing.hint or f"Session.open(store, {reference!r}, create=True) makes one of this name."
            raise
        found = cls(known, record.session_id, runtime, follower_of(log_base), found_by=by, others=others, owned=owned)
        found._follow_all()
        return found

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
            limit: At most so many.
            after: The last session of the page before.
        """
        known, owned = opened_store(store, create=False)
        try:
            return tuple(known.sessions(name=name, subject=subject, trashed=trashed, limit=limit, after=after))
        finally:
            if owned:
                known.close()

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def record(self) -> SessionRecord:
        """Its record in the store: name, subject, working folder, times."""
        return self.store.session(self.session_id)

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.name

    @property
    def dialogs(self) -> tuple[Dialog, ...]:
        """All its dialogs, in the order in which they were made."""
        return tuple(Dialog._of(self, node.dialog_id, node) for node in self.store.nodes(self.session_id))

    @property
    def root(self) -> Dialog:
        """The dialog to go on with: the first one; after an import or a rewind, the one that the conversation went on in.

        Raises:
            NotFound: The session has no dialog.
        """
        root = self.record.root
        if root is None:
            raise NotFound(self.session_id, what="dialog of session", hint="Make one with new_dialog().")
        return Dialog._of(self, root)

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
        return Dialog._of(self, last.dialog_id, last)

    def dialog(self, reference: str) -> Dialog:
        """Return a dialog by its id, or by the first digits of it, at least 6.

        Raises:
            NotFound: The session has none.
            Ambiguous: Several ids begin with these digits.
        """
        return Dialog._of(self, self.store.resolve(reference, self.session_id))

    @property
    def tree(self) -> Tree:
        """The tree of its dialogs as it is now, by dialog id."""
        return tree_of(self.store.nodes(self.session_id))

    def tree_overview(self) -> str:
        """Return the whole tree for people, a line a dialog."""
        roots = [node for node in self.tree.values() if node.is_root]
        return "\n".join(line for root in roots for line in tree_lines(root, self._count))

    def _count(self, dialog_id: str) -> int:
        """Return the number of a dialog's messages as the store has it now."""
        known = DialogId(dialog_id)
        return self.store.node(known).inherited + self.store.last(known).number

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of everything that was paid for in it: all answers, those of sub-agents and refused ones, too, and summaries.

        An answer that branches share, or that a rewritten file repeats, counts once. Reads all messages. As for dialogs, some dollars are
        estimated. `Trace.cost` counts the same for one call of an agent.
        """
        total = InvokeCost()
        for node in self.store.nodes(self.session_id):
            total += cost_of_messages(own_messages(self.store, node))
            own = Span(node.dialog_id, 0, self.store.last(node.dialog_id).seq + 1)
            total = sum(_paid_beside(self.store, own), total)
        return total

    def extent(self, *, verify: bool = False) -> Extent:
        """Count its entries.

        Args:
            verify: Whether to read every entry and compare it with its digest; else a header for each dialog is read.
        """
        nodes = self.store.nodes(self.session_id)
        lengths = {node.dialog_id: self.store.last(node.dialog_id).seq + 1 for node in nodes}
        whole_ = {
            node.dialog_id
            for node in nodes
            if (node.parent_id is None or node.parent_id in lengths)
            and all(span.stop <= lengths.get(span.dialog, 0) for span in node.ranges)
        }
        damaged = (
            [span for dialog in lengths if dialog in whole_ for span in self.store.verify(dialog)] if verify else []
        )
        cut_off = sum(length for one, length in lengths.items() if one not in whole_)
        total = sum(lengths.values())
        return Extent(dialogs=len(nodes), total=total, damaged=tuple(damaged), cut_off=cut_off, verified=verify)

    def __repr__(self) -> str:
        return f"<Session {self.session_id[:12]} name={self.name!r}>"

    # --- going on ---------------------------------------------------------------------------------------------------------------------

    def resume(self, dialog: str | None = None) -> Dialog:
        """Return the dialog to go on with: the one named, or the newest.

        A turn that was left open, because its process died, is ended as `interrupted`, so that the next one can start.

        Raises:
            NotFound: There is none.
            Conflict: Its turn is going on in another process.
        """
        found = (self.newest if dialog is None else self.dialog(dialog)).reload()
        if self.store.last(found.dialog_id).open_turn >= 0:
            found.record(TurnEnded(outcome="interrupted"))
        return found

    def fork(self, dialog: str | None = None, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off from the dialog named, or the newest; as `Dialog.fork`."""
        return (self.newest if dialog is None else self.dialog(dialog)).fork(last_n, first_k)

    def new_dialog(self, owner: str, metadata: Mapping[str, object] | None = None) -> Dialog:
        """Make a dialog that shares nothing with the others, for another agent."""
        dialog_id = new_dialog_id(self.session_id)
        node = self._new_node(
            Node(dialog_id=dialog_id, session_id=self.session_id, owner=owner, metadata=metadata or EMPTY)
        )
        if self.record.root is None:
            self.store.update_session(self.session_id, root=node.dialog_id)
        made = Dialog._of(self, node.dialog_id, node)
        made.top_prompt = None
        return made

    def _new_node(self, node: Node) -> Node:
        """Write a node, made now, and return it as the store has it."""
        return self.store.create_dialog(replace(node, created_at=self._clock.tick(now())))

    def rewind(self, to: Handle | str | None, dialog: Dialog | None = None) -> Rewind:
        """Preview going back to an entry: nothing is written before `apply()` on the result.

        Args:
            to: The last entry that stays; None to go back before the first.
            dialog: The dialog; the newest when not given.

        Raises:
            NotFound: The dialog does not hold it.
            InvalidInput: It is the newest entry: nothing would leave.
        """
        from palaver.session.branches import rewind  # noqa: PLC0415 - few programs rewind

        return rewind(self, dialog or self.newest, to)

    def undo_rewind(self, dialog: Dialog | None = None) -> Dialog:
        """Go back to the dialog that a rewind left. What was said since stays where it was said.

        Raises:
            InvalidInput: The dialog was not made by a rewind.
        """
        from palaver.session.branches import undo_rewind  # noqa: PLC0415 - as above

        return undo_rewind(self, dialog or self.newest)

    def merge(self, branch: Dialog, into: Dialog, summary: str | None = None) -> Handle:
        """Write into a dialog what happened on another branch, by one entry beside the turn, and return its handle.

        The entry names the branch, the place where the two part, and the entries it was made from. It speaks as a summary, with the lowest
        trust among them. What the branch says later can be merged later; nothing is told twice.

        Args:
            branch: The branch.
            into: The dialog that is told.
            summary: What happened; a record written by code when not given.

        Raises:
            InvalidInput: One of them is of another session, or the branch says nothing that the dialog does not hold.
        """
        from palaver.session.branches import merge  # noqa: PLC0415 - as above

        return merge(branch, into, summary)

    def diff(self, one: Dialog, other: Dialog) -> BranchDifference:
        """Compare two branches: what both begin with, and what each holds alone.

        Raises:
            InvalidInput: One of them is of another session.
        """
        from palaver.session.differences import branch_difference  # noqa: PLC0415 - as above

        for each in (one, other):
            if (each.store, each.session_id) != (self.store, self.session_id):
                raise InvalidInput(f"Dialog {each.dialog_id[:12]} is not of session {self.session_id[:12]}.")
        return branch_difference(self.store, one.dialog_id, one._spans(), other.dialog_id, other._spans())

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
        found = whole(self.store, self.session_id, handle)
        self.store.header(found.dialog, found.seq)
        return found

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force in all its dialogs, the newest of each entry; reads the headers of the whole session."""
        return labels_of(self.store, self.store.nodes(self.session_id))

    def quarantine(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """Set a block aside in every dialog of the session that holds it; as `Marks.quarantine`.

        Returns:
            The entries that say so, one for each dialog in which it was not set aside before.
        """
        place = self.place(handle)
        return tuple(
            one.marks.quarantine(place, reason) for one in self._holding(place) if place not in one.marks.quarantined
        )

    def lift(self, handle: Handle | str, reason: str = "") -> tuple[Handle, ...]:
        """Show again, in every dialog of the session, what was set aside; as `Marks.lift`.

        Raises:
            InvalidInput: No dialog has it in quarantine.
        """
        place = self.place(handle)
        lifted = tuple(one.marks.lift(place, reason) for one in self._holding(place) if place in one.marks.quarantined)
        if not lifted:
            raise InvalidInput(f"{place} is not in quarantine in any dialog of this session.")
        return lifted

    def _holding(self, place: Handle) -> Iterable[Dialog]:
        found = holders(self.store, self.session_id, place._replace(block=None))
        return [Dialog._of(self, one) for one in found]

    def search(self, query: str, limit: int = 20) -> tuple[Hit, ...]:
        """Return the entries that hold all words of `query`, best first. New entries are indexed first.

        Raises:
            StoreError: The store has no full text (reason `unsupported`).
        """
        self.store.index(searchable, session_id=self.session_id)
        return self.store.search(query, session_id=self.session_id, limit=limit)

    # --- its record, the trash, erasure -------------------------------------------------------------------------------------------------

    def rename(self, name: str) -> None:
        """Rename it."""
        self.store.update_session(self.session_id, name=name)

    def move(self, workdir: str) -> None:
        """Set its working folder."""
        self.store.update_session(self.session_id, workdir=workdir)

    def delete(self) -> None:
        """Put it into the trash, where no list and no search shows it; `restore` takes it out again."""
        self.store.update_session(self.session_id, trashed_at=now())

    def restore(self) -> None:
        """Restore it from the trash."""
        self.store.update_session(self.session_id, trashed_at=None)

    def hold(self, reason: str | None) -> None:
        """Keep it from retention, whatever its age; None no longer. An erasure that names it still happens."""
        with self.store.transaction():
            kept = {name: value for name, value in self.record.metadata.items() if name != HOLD}
            self.store.update_session(self.session_id, metadata=kept if reason is None else {**kept, HOLD: reason})

    def erase(
        self,
        *,
        dialog: str | None = None,
        entries: Iterable[Handle | str] = (),
        children: bool = False,
        tombstones: bool = False,
        files: Iterable[str | os.PathLike[str]] = (),
        thorough: bool = True,
    ) -> Receipt:
        """Erase the session, or a dialog or entries of it, for good; as `palaver.erase`.

        Args:
            dialog: A dialog, by its id or the first digits of it; the whole session when neither this nor entries are named.
            entries: Entries, by their handles.
            children: With a dialog, erase what grew from it, too.
            tombstones: With a dialog, leave tombstones for what grew from it.
            files: Files to delete, of those that `preview_erasure` listed.
            thorough: Whether to rewrite the storage where bytes stay otherwise.

        Raises:
            InvalidInput: Others grew from the dialog, and neither `children` nor `tombstones` says what becomes of them.
            NotFound: The session has no such entry.
            Erased: It was erased before.
            Ambiguous: The whole session was opened by a name that other sessions have, too; nothing is erased.
        """
        from palaver.erasure.erase import erase  # noqa: PLC0415 - few programs erase
        from palaver.erasure.plan import ErasureScope  # noqa: PLC0415 - few programs erase

        places = [self.place(entry) for entry in entries]
        scope: ErasureScope = {"entries": places, "children": children, "tombstones": tombstones}
        if dialog is not None:
            scope["dialog"] = self.store.resolve(dialog, self.session_id)
        elif not places:
            if self.others:  # opened by a name that was not its alone
                only_session(self.store, self.name)
            scope["session"] = self.session_id
        receipt = erase(self.store, files=files, thorough=thorough, **scope)
        self._dialogs.clear()
        if self._follower is not None:
            self._follower.forget(self.store, self.session_id)
        return receipt

    # --- the replay log ---------------------------------------------------------------------------------------------------------------

    def _follow(self, node: Node, upto: int) -> None:
        """Bring the follower up to a dialog's own entry `upto`."""
        if self._follower is not None:
            self._follower.follow(self.store, node, upto)

    def _follow_all(self) -> None:
        """Bring the follower up to date with every dialog; its failures are warnings."""
        try:
            for node in self.store.nodes(self.session_id) if self._follower is not None else ():
                self._follow(node, self.store.last(node.dialog_id).seq)
        except PalaverError as error:
            warnings.warn(f"The replay log could not be brought up to date: {error}", ReplayLogWarning, stacklevel=3)

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


def only_session(store: Store, reference: str) -> SessionRecord:
    """Return the one session of an id, a name or the first digits of an id, for whoever destroys something.

    Raises:
        NotFound: There is none.
        Ambiguous: Several have this name; the error lists their ids.
    """
    record, _, others = find_session(store, reference)
    if others:
        named = [one.session_id for one in store.sessions(name=reference)]
        raise Ambiguous(reference, named, hint="Name the session by its id.")
    return record


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
        store: Where the session is written to, a store or the address of one; in memory when not given.
        session_id: Which session, where the folder holds several.
        runtime: Resolves paths of prompts; the default one when not given.

    Raises:
        MissingFile: There is no log.
        Ambiguous: The log holds several sessions, and none was named.
        InvalidInput: The store has the session already.
    """
    records = read_log(log_base, session_id)
    known, owned = opened_store(store, create=True)
    made = land(records, known, gaps=True).session_id
    return Session(known, made, runtime, owned=owned)


def _paid_beside(store: Store, span: Span) -> Iterator[InvokeCost]:
    """Yield what was paid for in a stretch of a dialog besides its messages: summaries, and answers that did not become messages."""
    from palaver.tokens.pricing import cost_of  # noqa: PLC0415 - few programs need prices, which load slowly

    for header in store.headers(span.dialog, span.start, span.stop):
        if header.kind not in {"compaction", "custom"}:
            continue
        entry = decode_entry(store.body(span.dialog, header.seq))
        said = entry.attempt if isinstance(entry, Compaction) else entry.data if isinstance(entry, Custom) else None
        if not isinstance(said, Mapping):
            continue
        summary, message = said.get("summary"), said.get("message")
        if isinstance(summary, Mapping):
            used = (Usage(one) for one in summary.get("usages", ()) if isinstance(one, Mapping))
            yield from (cost_of(one, str(summary.get("model") or ""), entry.at) for one in used)
        if isinstance(entry, Custom) and entry.custom_type == REJECTED and isinstance(message, Mapping):
            yield cost_of_messages((Message.from_dict(message),))
