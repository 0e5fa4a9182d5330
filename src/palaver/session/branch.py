"""A branch: the entries of one dialog as this process knows them, how they are read, and the one way to add to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self, TextIO

from palaver.errors import InvalidInput
from palaver.ids import SessionId
from palaver.log import Entry, Handle, Header, Label, Node, Pin, Place, Span, draft
from palaver.messages import Content, InvokeCost, Message
from palaver.session.booking import Books
from palaver.session.differing import BranchDifference, difference
from palaver.session.follower import Follower
from palaver.session.invocations import Invocations, Latest, latest, recorded
from palaver.session.marks import labels_in, pins_in, quarantined_in
from palaver.session.merging import ROOM, Branching, account
from palaver.session.overview import message_line
from palaver.session.quarantining import blamed, lifting, quarantine_of
from palaver.session.recalling import recall, whole
from palaver.session.transcript import Messages, Stretch, stretches
from palaver.store.protocol import Store
from palaver.view import Folding, View, fold, header_at
from palaver.wire import Request

__all__ = ["Branch"]


class Branch:
    """One dialog's log up to the newest entry that this process wrote, or was told of by `reload`.

    Every write is compared with that: when another writer was first, `Conflict` is raised and nothing was written.

    Attributes:
        store: Where the log lies.
        dialog_id: The opaque id, 32 hexadecimal digits.
        session_id: The session's opaque id.
        owner: The agent that owns it.
    """

    def __init__(self, store: Store, node: Node, follower: Follower | None) -> None:
        self.store = store
        self.dialog_id = node.dialog_id
        self.session_id: SessionId = node.session_id
        self.owner = node.owner
        self._node = node
        self._follower = follower
        self._last: Header = store.last(node.dialog_id)
        self._folding = Folding(store, node)
        self._call: Latest | None = None
        self._books = Books(store, node.dialog_id)
        self._tell()

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self.store, self._node.ranges)[0]

    def _held(self) -> tuple[Stretch, ...]:
        """Give all that the dialog holds, its own entries last."""
        own = Span(self.dialog_id, 0, self._last.seq + 1)
        return (
            (*self._inherited, Stretch(own, 0, self._node.inherited, self._last.number))
            if len(own)
            else self._inherited
        )

    def _spans(self) -> list[Span]:
        return [stretch.span for stretch in self._held()]

    @property
    def spans(self) -> tuple[Span, ...]:
        """The entries that it holds, its ancestors' first."""
        return tuple(self._spans())

    @property
    def _count(self) -> int:
        return self._node.inherited + self._last.number

    # --- reading ----------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        return Messages(self.store, self._held(), self._count)

    @property
    def head(self) -> Message | None:
        """The first message, or None."""
        return self.messages[0] if self._count else None

    @property
    def tail(self) -> Message | None:
        """The last message, or None."""
        return self.messages[-1] if self._count else None

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of all messages added up; reads all of them."""
        return sum((message.cost for message in self.messages.bare()), InvokeCost())

    def overview(
        self,
        remove_tail: bool = False,  # noqa: FBT001, FBT002 - may be given by position, as its users are used to
        max_length: int = 100,
        stream: TextIO | None = None,
        divider: bool = False,  # noqa: FBT001, FBT002 - a public signature
    ) -> str:
        """Give the messages for people, a line each.

        Args:
            remove_tail: Whether to leave the last message out.
            max_length: After how many characters a message is cut, and ends in `...`.
            stream: Where the text is written to as well.
            divider: Whether to put a ruler between the lines.
        """
        count = self._count - 1 if remove_tail else self._count
        lines = (
            message_line(i, message, max_length) for i, message in zip(range(count), self.messages.bare(), strict=False)
        )
        text = ("\n" + "-" * 40 + "\n" if divider else "\n").join(lines)
        if stream is not None:
            stream.write(text + "\n")
        return text

    @property
    def in_turn(self) -> bool:
        """Whether an agent began a turn here and has not ended it."""
        return self._last.open_turn >= 0

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force; reads the headers of the whole dialog."""
        return labels_in(self.store, self._spans())

    @property
    def pins(self) -> tuple[Handle, ...]:
        """The pinned entries, in the order of pinning; reads the headers of the whole dialog."""
        return pins_in(self.store, self._spans())

    @property
    def quarantined(self) -> Mapping[Handle, str]:
        """What is set aside here, and why, in that order; reads the headers of the whole dialog."""
        return quarantined_in(self.store, self._spans())

    @property
    def invocations(self) -> Invocations:
        """The model calls that were recorded, each with what it saw; reads the headers of the whole dialog."""
        return Invocations(self.store, self._spans())

    def _seen(self, at: int | None) -> View:
        """Give everything up to an own entry: from the view before and what came since where there is one, an earlier one by itself."""
        upto = self._last if at in {None, self._last.seq} else header_at(self.store, self.dialog_id, at)
        if upto.seq >= self._folding.at:
            return self._folding.view(upto)
        return fold(self.store, self.dialog_id, upto.seq)

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Give back what a handle stands for: an entry, or one block; from any branch of the session.

        Args:
            handle: The handle, or its printed form as it stands in a placeholder.

        Raises:
            InvalidHandle: It is not spelt like one.
            UnknownHandle: The session has no such entry or block.
        """
        return recall(self.store, self.session_id, handle)

    def diff(self, other: Branch) -> BranchDifference:
        """Compare with another branch of the session: what both begin with, and what each holds alone.

        Raises:
            InvalidInput: It is of another session.
        """
        self._require_kin(other)
        return difference(self.store, self.dialog_id, self._spans(), other.dialog_id, other._spans())

    def _require_kin(self, other: Branch) -> None:
        if (other.store, other.session_id) != (self.store, self.session_id):
            raise InvalidInput(f"Dialog {other.dialog_id[:12]} is no branch of session {self.session_id[:12]}.")

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def record(self, *entries: Entry) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, all or none, and give their handles.

        Raises:
            Conflict: Another writer was first; nothing was written.
            IllegalEntry: One of them may not stand there.
        """
        drafts, continues = [], self._last.response
        media: list[bytes] = []
        for entry in entries:
            ready, payloads = draft(entry, continues=continues)
            media += payloads.values()
            continues = ready.response or continues
            drafts.append(ready)
        self._keep(media)
        headers = self.store.append(self.dialog_id, drafts, self._last.turn_head)
        self._keep(media)
        if headers:
            self._last = headers[-1]
            self._tell()
        return tuple(Handle(self.dialog_id, header.seq) for header in headers)

    def annotate(self, entry: Entry) -> Handle:
        """Add an entry that may stand beside a turn (a label, a decision, a late result), and give its handle.

        It never makes a turn fail. What another writer said meanwhile stays unknown until `reload`.

        Raises:
            IllegalEntry: It may not stand there.
        """
        ready, payloads = draft(entry)
        self._keep(payloads.values())
        header = self.store.annotate(self.dialog_id, ready)
        self._keep(payloads.values())
        return self._took(header)

    def _keep(self, media: Iterable[bytes]) -> None:
        """Make media durable before an entry names them; and again behind it, should an erasure of others that showed them have come between."""
        for payload in media:
            self.store.put_blob(payload)

    def _took(self, header: Header) -> Handle:
        """Take note of an entry that was written beside the turn."""
        if header.turn_head == self._last.turn_head:
            self._last = header
            self._tell()
        return Handle(self.dialog_id, header.seq)

    def record_call(self, request: Request, decision: Mapping[str, Any] | None = None) -> Handle:
        """Record that a model is asked, and what it sees, so that `invocations` gives it back to the byte.

        Costs what changed since the call before; belongs before the call, so that a crash during it leaves a trace.

        Args:
            request: The request.
            decision: What a schedule decided before this call (`Composed.plan.details`), to be kept with it.

        Raises:
            InvalidInput: The request was not compiled from a view of this dialog.
        """
        before = self._call or latest(self.store, self.dialog_id)
        entry, call = recorded(self._seen, self.dialog_id, request, before, decision)
        place = self.annotate(entry)
        self._call = call._replace(seq=place.seq)
        if request.view is not None:
            self._books.took(place, request.view)
        return place

    def merge(self, branch: Branch, summary: str | None = None, *, room: int = ROOM) -> Handle:
        """Tell this dialog what happened on another branch, by one entry beside the turn, and give its handle.

        The entry names the branch, the place where the two went apart and the entries it was made of; it speaks as a summary, with the lowest
        trust among them. The branch stays as it is; what it says later can be merged later, and nothing is told twice.

        Args:
            branch: The branch.
            summary: What happened, in words; when not given, code tells it: what was asked, files, commands, errors, the last words, each
                with its handle.
            room: Tokens that an account by code may have.

        Raises:
            InvalidInput: It is of another session, or says nothing that this dialog does not hold or was not told.
        """
        self._require_kin(branch)
        pair = Branching(branch.dialog_id, branch._spans(), self._spans())
        return self.annotate(account(self.store, self.session_id, pair, summary, room))

    def reload(self) -> Self:
        """Take note of what other writers have appended, and give the dialog itself."""
        self._last = self.store.last(self.dialog_id)
        self._tell()
        return self

    def label(self, handle: Handle | str, label: str | None) -> Handle:
        """Name an entry for people; None takes the name away. No model sees it.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
        """
        return self.annotate(Label(target=self._place(handle), label=label))

    def pin(self, handle: Handle | str, *, pinned: bool = True) -> Handle:
        """Keep an entry in every view, or no longer.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
        """
        return self.annotate(Pin(target=self._place(handle), pinned=pinned))

    def quarantine(self, handle: Handle | str, reason: str = "") -> Handle:
        """Set a block aside that a provider refuses: views of this dialog, and of forks to come, show a placeholder with its handle.

        The log keeps the original, and `recall` gives it. A call keeps its name and its result, and loses its arguments.

        Args:
            handle: The block, or an entry with all its blocks.
            reason: Why, for people.

        Raises:
            InvalidHandle: It is no handle, or it names an entry that no view shows.
            UnknownHandle: The session has no such entry or block.
        """
        return self.annotate(quarantine_of(self.store, self.session_id, handle, reason))

    def lift_quarantine(self, handle: Handle | str, reason: str = "") -> Handle:
        """Show again what was set aside, by an entry of its own.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
            InvalidInput: It is not in quarantine here.
        """
        place = whole(self.store, self.session_id, handle)
        return self.annotate(lifting(place, self.quarantined, reason))

    def blamed(self, request: Request, words: str) -> Handle | None:
        """Find the block that a provider's refusal is about, from the place in the request that it names; None where it names none.

        Args:
            request: The request that was refused.
            words: What the provider said, as in `str(error)`: `messages.3.content.0.image: Could not process image`.
        """
        return blamed(self.store, request, words)

    def _place(self, handle: Handle | str) -> Place:
        found = whole(self.store, self.session_id, handle)
        return Place(dialog=found.dialog, seq=found.seq, block=found.block)

    def _tell(self) -> None:
        if self._follower is not None:
            self._follower.follow(self.store, self._node, self._last.seq)
