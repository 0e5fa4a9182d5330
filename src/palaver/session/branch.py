"""A branch: the entries of one dialog as this process knows them, and the one way to add to them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from palaver.ids import new_dialog_id, now
from palaver.log import Entry, Header, Node, Span, draft
from palaver.session.follower import Follower
from palaver.session.transcript import Messages, Stretch, stretches
from palaver.session.window import check_window, window
from palaver.store.protocol import Store

__all__ = ["Branch"]


class Branch:
    """One dialog's log up to the newest entry that this process wrote or was told of.

    Attributes:
        store: Where the log lies.
        node: The dialog's place in the tree.
        last: The newest own header that is known; what every write is compared with.
    """

    def __init__(self, store: Store, node: Node, follower: Follower | None) -> None:
        self.store = store
        self.node = node
        self.last: Header = store.last(node.dialog_id)
        self._follower = follower
        self._tell()

    def append(self, entries: Iterable[Entry]) -> tuple[Header, ...]:
        """Append entries that belong to the turn, all or none: payloads first, then one call of the store.

        Raises:
            Conflict: Another writer was first; nothing was written.
            IllegalEntry: One of them may not stand there.
        """
        drafts, continues = [], self.last.response
        for entry in entries:
            ready, payloads = draft(entry, continues=continues)
            for payload in payloads.values():
                self.store.put_blob(payload)
            continues = ready.response or continues
            drafts.append(ready)
        headers = self.store.append(self.node.dialog_id, drafts, self.last.turn_head)
        if headers:
            self.last = headers[-1]
            self._tell()
        return headers

    def annotate(self, entry: Entry) -> Header:
        """Add an entry beside the turn.

        What another writer appended to the turn meanwhile stays unknown, so that the next append is told of it.

        Raises:
            IllegalEntry: It may not stand there.
        """
        ready, payloads = draft(entry)
        for payload in payloads.values():
            self.store.put_blob(payload)
        header = self.store.annotate(self.node.dialog_id, ready)
        if header.turn_head == self.last.turn_head:
            self.last = header
            self._tell()
        return header

    def reload(self) -> None:
        """Take note of what others wrote."""
        self.last = self.store.last(self.node.dialog_id)
        self._tell()

    def _tell(self) -> None:
        if self._follower is not None:
            self._follower.follow(self.store, self.node, self.last.seq)

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self.store, self.node.ranges)[0]

    def held(self) -> tuple[Stretch, ...]:
        """Give all that the dialog holds, its own entries last."""
        own = Span(self.node.dialog_id, 0, self.last.seq + 1)
        return (*self._inherited, Stretch(own, 0, self.node.inherited)) if len(own) else self._inherited

    def spans(self) -> list[Span]:
        """Give the spans of all that the dialog holds."""
        return [stretch.span for stretch in self.held()]

    @property
    def count(self) -> int:
        """The number of its messages."""
        return self.node.inherited + self.last.number

    def messages(self) -> Messages:
        """Give its messages as they stand."""
        return Messages(self.store, self.held(), self.count)

    def fork(self, last_n: int, first_k: int) -> Node:
        """Write the node of a child that keeps a window of the messages; costs the same whatever the length of the log.

        Raises:
            TypeError: One of the numbers is no whole number.
            InvalidInput: One of them is negative.
        """
        check_window(last_n, first_k)
        kept = min(self.count, last_n + first_k) if last_n else self.count
        node = Node(
            dialog_id=new_dialog_id(),
            session_id=self.node.session_id,
            owner=self.node.owner,
            parent_id=self.node.dialog_id,
            ranges=window(self.store, self.held(), self.count, last_n, first_k),
            split_point=kept,
            last_n=last_n,
            first_k=first_k,
            inherited=kept,
            created_at=now(),
            relation="fork",
        )
        return self.store.create_dialog(node)
