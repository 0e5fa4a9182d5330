"""A branch: the entries of one dialog as this process knows them, how they are read, and the one way to add to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Self, TextIO

from palaver.errors import InvalidInput
from palaver.ids import SessionId
from palaver.log import Entry, Handle, Header, Label, Node, Pin, Place, Span, draft
from palaver.messages import Content, InvokeCost, Message
from palaver.session.branches.differing import BranchDifference, difference
from palaver.session.branches.merging import ROOM, Branching, account
from palaver.session.branches.overview import message_line
from palaver.session.carried.follower import Follower
from palaver.session.dialog.ending import Ending
from palaver.session.reading.erased import require_standing, require_unerased
from palaver.session.reading.marks import labels_in, pins_in
from palaver.session.reading.recalling import recall, whole
from palaver.session.reading.transcript import Messages, Stretch, stretches
from palaver.store.blocks import in_block
from palaver.store.keeping import keeping
from palaver.store.protocol import Store

__all__ = ["Branch"]


class Branch:
    """One dialog's log up to the newest entry that this process wrote, or was told of by `reload`.

    Every write is compared with that: when another writer was first, `Conflict` is raised and nothing was written. Threads may use it at once:
    what it knows moves forward only, and who reads it reads one moment of it. What one of them writes inside a block of the store (`together`), the
    others do not know before the block has ended.

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
        self._ending = Ending(store, node.dialog_id)
        self._told = 0
        self._tell()

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self.store, self._node.ranges)[0]

    @property
    def _last(self) -> Header:
        """The newest entry that is known."""
        last = self._ending.last
        if self._told != self._ending.settled:
            self._tell()
        return last

    def _held(self, last: Header | None = None) -> tuple[Stretch, ...]:
        """Give all that the dialog holds, its own entries last: up to the newest one that is known, or was at a moment."""
        upto = self._last if last is None else last
        own = Span(self.dialog_id, 0, upto.seq + 1)
        if not len(own):
            return self._inherited
        return (*self._inherited, Stretch(own, 0, self._node.inherited, upto.number))

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
        last = self._last  # once: other threads may write meanwhile
        return Messages(self.store, self._held(last), self._node.inherited + last.number)

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
        known = self._last
        drafts, continues = [], known.response
        media: list[bytes] = []
        for entry in entries:
            ready, payloads = draft(entry, continues=continues)
            media += payloads.values()
            continues = ready.response or continues
            drafts.append(ready)
        with keeping(self.store, media):
            headers = self.store.append(self.dialog_id, drafts, known.turn_head)
        if headers:
            self._ending.wrote(headers[-1])
            self._tell()
        return tuple(Handle(self.dialog_id, header.seq) for header in headers)

    def annotate(self, entry: Entry) -> Handle:
        """Add an entry that may stand beside a turn (a label, a decision, a late result), and give its handle.

        It never makes a turn fail. What another writer said meanwhile stays unknown until `reload`.

        Raises:
            IllegalEntry: It may not stand there.
        """
        ready, payloads = draft(entry)
        with keeping(self.store, payloads.values()):
            header = self.store.annotate(self.dialog_id, ready)
        return self._took(header)

    def _took(self, header: Header) -> Handle:
        """Take note of an entry that was written beside the turn."""
        self._ending.added(header)
        self._tell()
        return Handle(self.dialog_id, header.seq)

    def _caught_up(self) -> Header:
        """Take note of what was written beside the turn that is known, by whomever, and give the newest entry that is known then.

        Memory is written straight to the store. What continues the turn stays unknown until `reload`, and all behind that.
        """
        last, newest = self._last, self.store.last(self.dialog_id)
        if newest.seq <= last.seq:
            return last
        if newest.turn_head != last.turn_head:
            newest = last
            for header in self.store.headers(self.dialog_id, last.seq + 1):
                if header.turn_head != last.turn_head:
                    break
                newest = header
        self._took(newest)
        return newest

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
            Conflict: Something that the branch holds was erased since it was reloaded: what is told of it may repeat that.
            InvalidInput: It is of another session, or says nothing that this dialog does not hold or was not told.
        """
        self._require_kin(branch)
        known = branch._last.seq
        pair = Branching(branch.dialog_id, branch._spans(), self._spans())
        told = account(self.store, self.session_id, pair, summary, room)
        look = partial(require_unerased, self.store, branch.dialog_id, known, "the account", "Merge it again.")
        return self._said(told, look)

    def _said(self, entry: Entry, look: Callable[[], None]) -> Handle:
        """Add an entry beside a turn, in one step with a look at what it tells of: no erasure comes between."""
        ready, _ = draft(entry)
        with self.store.together():
            look()
            header = self.store.annotate(self.dialog_id, ready)
        return self._took(header)

    def reload(self) -> Self:
        """Take note of what other writers have appended, and give the dialog itself."""
        self._ending.reload()
        self._tell()
        return self

    def label(self, handle: Handle | str, label: str | None) -> Handle:
        """Name an entry for people; None takes the name away. No model sees it.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
            Conflict: The entry was erased since the last `reload`: the name may say what it said.
        """
        place = self._place(handle)
        entry = Label(target=place, label=label)
        if label is None:
            return self.annotate(entry)
        return self._said(entry, self._standing(place))

    def _standing(self, place: Place) -> Callable[[], None]:
        """Give what refuses words about an entry that was erased since this dialog was looked at."""
        return partial(require_standing, self.store, self.dialog_id, self._last.seq, Handle(place.dialog, place.seq))

    def pin(self, handle: Handle | str, *, pinned: bool = True) -> Handle:
        """Keep an entry in every view, or no longer.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
        """
        return self.annotate(Pin(target=self._place(handle), pinned=pinned))

    def _place(self, handle: Handle | str) -> Place:
        found = whole(self.store, self.session_id, handle)
        return Place(dialog=found.dialog, seq=found.seq, block=found.block)

    def _tell(self) -> None:
        """Let what follows follow; behind the end of a block, for until then nothing is there."""
        if self._follower is None or in_block(self.store):
            return
        settled = self._ending.settled
        self._follower.follow(self.store, self._node, self._ending.last.seq)
        self._told = settled  # behind it: another thread that looks before that has it told, too, or waits for who does
