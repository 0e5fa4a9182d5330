"""What the dialogs of one session share while they are in use."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from palaver.errors import InvalidInput, PalaverError
from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.log import Node
from palaver.prompts import Runtime
from palaver.session.branches.tree import Tree, tree_of
from palaver.session.carried.follower import Follower, Forgetting, ReplayLogWarning
from palaver.store.blocks import in_block
from palaver.store.protocol import SessionRecord, Store

__all__ = ["Family", "made_up_name"]

Member = TypeVar("Member")


@dataclass(slots=True)
class Family(Generic[Member]):
    """One session in use.

    Attributes:
        store: Where the session lies.
        session_id: The session.
        runtime: What the paths of prompts are resolved with.
        follower: What is told of everything that was written, or None.
        live: The dialogs in use: each has one object.
    """

    store: Store
    session_id: SessionId
    runtime: Runtime
    follower: Follower | None = None
    live: dict[DialogId, Member] = field(default_factory=dict)

    @property
    def record(self) -> SessionRecord:
        """What the store keeps of the session."""
        return self.store.session(self.session_id)

    def tree(self) -> Tree:
        """Give the session's tree as it stands now."""
        return tree_of(self.store.nodes(self.session_id))

    def count(self, dialog_id: str) -> int:
        """Give the number of a dialog's messages as the store has it now."""
        known = DialogId(dialog_id)
        return self.store.node(known).inherited + self.store.last(known).number

    def require_forgetting(self) -> None:
        """Refuse to erase in a block where something follows: what is forgotten cannot be taken back with the block.

        Raises:
            InvalidInput: A block of the store is open in this thread.
        """
        follower: object = self.follower
        if isinstance(follower, Forgetting) and in_block(self.store):
            raise InvalidInput(
                "An erasure in a block that may be taken back cannot be carried into the replay log.",
                hint="Erase outside of the block.",
            )

    def forget(self) -> None:
        """Let go of the dialogs in use, because something was erased: who asks for one gets it as it is now."""
        self.live.clear()
        follower: object = self.follower
        if isinstance(follower, Forgetting):
            follower.forget(self.store, self.session_id)

    def tell_all(self) -> None:
        """Let the follower catch up with every dialog of the session; behind the end of a block, for until then nothing is there."""
        if self.follower is not None and not in_block(self.store):
            for node in self.store.nodes(self.session_id):
                self.follower.follow(self.store, node, self.store.last(node.dialog_id).seq)

    def tell_last(self) -> None:
        """Let the follower catch up with the dialogs in use before the session is let go: nobody may look behind a block any more.

        What goes wrong is a warning.
        """
        if self.follower is None or in_block(self.store):
            return
        try:
            for dialog in list(self.live):
                self.follower.follow(self.store, self.store.node(dialog), self.store.last(dialog).seq)
        except PalaverError as error:  # as in every other call that is followed
            warnings.warn(f"What follows could not be told all: {error}", ReplayLogWarning, stacklevel=3)

    def new_root(self, owner: str, metadata: Mapping[str, object] | None = None) -> Node:
        """Make a dialog without a parent; the first one is the session's root."""
        node = Node(
            dialog_id=new_dialog_id(),
            session_id=self.session_id,
            owner=owner,
            created_at=now(),
            metadata=metadata or {},
        )
        made = self.store.create_dialog(node)
        if self.record.root is None:
            self.store.update_session(self.session_id, root=made.dialog_id)
        return made


def made_up_name(session_id: SessionId, at: float) -> str:
    """Name a session after its time (UTC) and id."""
    return f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(at))}_{session_id[:6]}"
