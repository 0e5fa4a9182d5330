"""A session in use: what its dialogs share in one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from palaver.errors import PalaverError
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import Node
from palaver.messages.frozen import EMPTY
from palaver.prompts import Runtime, get_default_runtime
from palaver.session.head import SessionClock
from palaver.session.replay_log import Follower, ReplayLogWarning
from palaver.session.tree import Tree, tree_of
from palaver.store.protocol import SessionRecord, Store

__all__ = ["OpenSession"]

D = TypeVar("D")


@dataclass(slots=True)
class OpenSession(Generic[D]):
    """One session in use.

    Attributes:
        store: Where the session lies.
        session_id: The session.
        runtime: Resolves paths of prompts.
        follower: Is told of every write, or None.
        dialogs: The dialogs in use: one object for each.
        clock: Gives its entries and dialogs their times.
    """

    store: Store
    session_id: SessionId
    runtime: Runtime
    follower: Follower | None = None
    dialogs: dict[DialogId, D] = field(default_factory=dict)
    clock: SessionClock = field(init=False)

    def __post_init__(self) -> None:
        self.clock = SessionClock(self.store, self.session_id)

    @classmethod
    def create(  # noqa: PLR0913 - the fields of a session
        cls,
        store: Store,
        name: str = "",
        *,
        owner: str = "assistant",
        subject: str = "",
        workdir: str = "",
        metadata: Mapping[str, object] = EMPTY,
        runtime: Runtime | None = None,
        follower: Follower | None = None,
        session_id: SessionId | None = None,
    ) -> tuple[OpenSession[D], Node]:
        """Make a session with its root, in one step, and return both.

        Raises:
            InvalidInput: A session with this id exists, or the metadata is not JSON.
        """
        at = now()
        made = session_id or new_session_id()
        record = SessionRecord(
            session_id=made,
            name=name or f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(at))}_{made[:6]}",
            subject=subject,
            workdir=workdir,
            created_at=at,
            metadata=metadata,
        )
        opened: OpenSession[D] = cls(store, made, runtime or get_default_runtime(), follower)
        root = Node(dialog_id=new_dialog_id(made), session_id=made, owner=owner, created_at=at)
        store.create_session(record, root)
        return opened, store.node(root.dialog_id)

    @property
    def record(self) -> SessionRecord:
        """The session's record in the store."""
        return self.store.session(self.session_id)

    def tree(self) -> Tree:
        """Return the session's tree as it is now."""
        return tree_of(self.store.nodes(self.session_id))

    def count(self, dialog_id: str) -> int:
        """Return the number of a dialog's messages as the store has it now."""
        known = DialogId(dialog_id)
        return self.store.node(known).inherited + self.store.last(known).number

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    def new_root(self, owner: str, metadata: Mapping[str, object] = EMPTY) -> Node:
        """Make a dialog without a parent."""
        node = Node(
            dialog_id=new_dialog_id(self.session_id), session_id=self.session_id, owner=owner, metadata=metadata
        )
        return self.new_dialog(node)

    def new_dialog(self, node: Node) -> Node:
        """Write a node, made now, and return it as the store has it."""
        return self.store.create_dialog(replace(node, created_at=self.clock.tick(now())))

    # --- the replay log ---------------------------------------------------------------------------------------------------------------

    def follow(self, node: Node, upto: int) -> None:
        """Bring the follower up to a dialog's own entry `upto`."""
        if self.follower is not None:
            self.follower.follow(self.store, node, upto)

    def follow_all(self) -> None:
        """Bring the follower up to date with every dialog; its failures are warnings."""
        if self.follower is None:
            return
        try:
            for node in self.store.nodes(self.session_id):
                self.follower.follow(self.store, node, self.store.last(node.dialog_id).seq)
        except PalaverError as error:
            warnings.warn(f"The replay log could not be brought up to date: {error}", ReplayLogWarning, stacklevel=3)

    def forget(self) -> None:
        """Drop the objects of dialogs, and let the follower forget what was erased."""
        self.dialogs.clear()
        if self.follower is not None:
            self.follower.forget(self.store, self.session_id)
