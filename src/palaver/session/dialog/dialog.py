"""The dialog: one branch of a conversation, which only grows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, overload

from palaver.ids import DialogId, new_session_id, now
from palaver.log import Entry, Handle, Header, MessageEntry, Node, child_of
from palaver.messages import ImageContent, Message, Role, TextContent
from palaver.prompts import Prompt, Runtime, get_default_runtime
from palaver.session.branches.overview import tree_lines
from palaver.session.branches.rewinding import REWIND, Rewind, Standing, rewind, undo_rewind
from palaver.session.branches.tree import DialogTreeNode
from palaver.session.branches.window import check_window, window
from palaver.session.calls.composing import Composing
from palaver.session.calls.shown import messages_of
from palaver.session.carried.carrying import carry, unpack
from palaver.session.carried.replay import LogBase, follower_of
from palaver.session.carried.restore import restore
from palaver.session.dialog.family import Family, made_up_name
from palaver.session.dialog.governing import AS_RECORDED, AsRecorded, Governing, path_in_force, prompt_at
from palaver.session.dialog.pictures import media_from
from palaver.session.dialog.scratch import Scratch
from palaver.session.dialog.seen import SeenBranch
from palaver.session.dialog.words import as_mapping, said, stamped
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord, Store
from palaver.store.redacting import as_written
from palaver.view import View

__all__ = ["Dialog"]


class Dialog(SeenBranch):
    """One branch of a conversation, owned by one agent.

    A dialog knows the log up to its own last write, or to the last `reload`. Every write is compared with that: when another writer
    was first, `Conflict` is raised, nothing was written, and the caller chooses between `reload()` and `fork()`. Of what others write one
    thing is taken note of at once, before each view: that something was erased.

    Threads and tasks may share one object. Each write is one step; of two that continue the turn at the same moment one gets a `Conflict`, as
    two processes would. What stands beside a turn (labels, pins, compactions, calls) conflicts with nothing. Whoever reads sees one moment.
    """

    def __init__(
        self,
        owner: str,
        session_name: str | None = None,
        top_prompt: Prompt | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
        log_base: LogBase | None = None,
    ) -> None:
        """Begin a session of its own, with this one dialog in it.

        Args:
            owner: The agent that owns it.
            session_name: The session's name; made from the time when not given.
            top_prompt: The prompt that governs the model's next turn.
            runtime: What paths of prompts are resolved with; the default one when not given.
            store: Where the session lies; in memory when not given.
            log_base: A replay log that follows, or the folder for one.
        """
        session_id, at = new_session_id(), now()
        family: Family[Dialog] = Family(
            store or MemoryStore(), session_id, runtime or get_default_runtime(), follower_of(log_base)
        )
        name = session_name or made_up_name(session_id, at)
        family.store.create_session(SessionRecord(session_id=session_id, name=name, created_at=at))
        self._attach(family, family.new_root(owner), top_prompt)

    @classmethod
    def of(cls, family: Family[Dialog], node: Node, top: Prompt | AsRecorded | None = None) -> Dialog:
        """Make the object for a dialog that the store has; what governs it is given, or is what its log says when someone asks."""
        dialog = cls.__new__(cls)
        dialog._attach(family, node, top)  # noqa: SLF001 - of this very class
        return dialog

    @classmethod
    def at(cls, family: Family[Dialog], dialog_id: DialogId) -> Dialog:
        """Give the object that stands for a dialog of the session: there is one for each."""
        found = family.live.get(dialog_id)
        if found is not None:
            return found
        made = cls.of(family, family.store.node(dialog_id), AS_RECORDED)
        return family.live.get(dialog_id, made)  # another thread may have been first

    def _attach(self, family: Family[Dialog], node: Node, top: Prompt | AsRecorded | None) -> None:
        super().__init__(family.store, node, family.follower)
        self._family = family
        self._governing = Governing(family.runtime, top, self.store, self.dialog_id, self._path_in_force)
        family.live.setdefault(node.dialog_id, self)

    def _path_in_force(self) -> str | None:
        return path_in_force(self.store, self._spans())

    # --- what it is ---------------------------------------------------------------------------------------------------------

    @property
    def session_name(self) -> str:
        """The session's name."""
        return self._family.record.name

    @property
    def runtime(self) -> Runtime:
        """What paths of prompts are resolved with."""
        return self._family.runtime

    @property
    def top_prompt(self) -> Prompt | None:
        """The prompt that governs the model's next turn: the last one put, or a temporary one for a text that was put.

        A prompt of the runtime governs in later processes too. One that their runtime does not know is a warning, and None.
        """
        return self._governing.prompt

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self._governing.put(prompt, self._last)

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self._count}>"

    # --- saying something -----------------------------------------------------------------------------------------------------

    def put_prompt(
        self,
        prompt: Prompt | str,
        prompt_args: Mapping[str, Any] | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Render a prompt, append what it says, and let it govern the next turn.

        Args:
            prompt: The prompt, or its path in the runtime.
            prompt_args: The template's variables.
            name: The sender; the role's default when not given.
            metadata: What is to be kept with the message.
            role: Who speaks.

        Raises:
            UnknownPrompt: The runtime has no prompt of this path.
            InvalidPrompt: Variables are missing; nothing was appended.
        """
        found = self.runtime.get_prompt(prompt) if isinstance(prompt, str) else prompt
        if not isinstance(found, Prompt):
            raise TypeError(f"prompt is a Prompt or a path, not a {type(prompt).__name__}.")
        text = found.render(as_mapping(prompt_args, "prompt_args"))
        return self._put(said(self.dialog_id, text, name, metadata, role), found)

    def put_text(
        self,
        text: str,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append a text as it is: nothing in it is a template. What governed the next turn no longer does.

        Args:
            text: The text.
            name: The sender; the role's default when not given.
            metadata: What is to be kept with the message.
            role: Who speaks.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is a str, not a {type(text).__name__}.")
        return self._put(said(self.dialog_id, text, name, metadata, role), text)

    def _put(self, message: Message, top: Prompt | str) -> Message:
        """Append what was said, and let something govern from there on; when it cannot be written, nothing is changed."""
        stored = tuple(stamped(message, self.dialog_id, self.store))
        entries = (MessageEntry(message=one) for one in stored)
        places = super().record(*self._governing.stamped(entries, top))
        self._governing.take(top, places[-1].seq)
        return as_written(self.store, stored)[-1]

    def put_image(
        self,
        image: object,
        caption: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append an image; what governs the next turn stays.

        Args:
            image: A path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.
            caption: A text that goes before the image, and into the metadata.
            name: The sender; the role's default when not given.
            metadata: What is to be kept with the message.
            role: Who speaks.

        Raises:
            MissingMedia: It names no file; the error is a FileNotFoundError too.
            InvalidMedia: It is no image that is known.
        """
        shown = ImageContent(images=(media_from(image),))
        kept = as_mapping(metadata, "metadata")
        if caption is None:
            return self.append(said(self.dialog_id, (shown,), name, kept, role))
        both = (TextContent(content=caption), shown)
        return self.append(said(self.dialog_id, both, name, {**kept, "caption": caption}, role))

    @overload
    def append(self, message: Message) -> Message: ...
    @overload
    def append(self, message: Iterable[Message]) -> tuple[Message, ...]: ...
    def append(self, message: Message | Iterable[Message]) -> Message | tuple[Message, ...]:
        """Append a message, or several at once, all or none.

        What is stored bears this dialog's id in its metadata; the caller's own object is not touched. A message with the results of
        several calls is stored as one message for each.

        Returns:
            The message as it is stored, the last one of a message with several results; a tuple when several were given.

        Raises:
            TypeError: It is no message.
            Conflict: Another writer was first; nothing was written.
            MediaUnavailable: It refers to media whose bytes neither it nor the store has.
        """
        given = (message,) if isinstance(message, Message) else tuple(message)
        stored = tuple(part for one in given for part in stamped(one, self.dialog_id, self.store))
        self.record(*(MessageEntry(message=one) for one in stored))
        stored = as_written(self.store, stored)
        return stored[-1] if isinstance(message, Message) else stored

    def record(self, *entries: Entry) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, all or none, and give their handles; messages say which prompt governs after them.

        Raises:
            Conflict: Another writer was first; nothing was written.
            IllegalEntry: One of them may not stand there.
        """
        return super().record(*self._governing.stamped(entries))

    # --- branches -------------------------------------------------------------------------------------------------------------

    def fork(self, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off: a child that holds all messages, or the first `first_k` and the last `last_n`.

        Nothing is copied: the child shares the entries, and each side goes on by itself. Costs the same whatever the length of the
        log. What is no message goes with the message before it, also what others wrote beside the turn: memory, labels, pins, compactions.
        Where another writer continued the turn, the child goes on from what this object knows; `reload` first to have all.

        Args:
            last_n: How many of the last messages to keep; 0 keeps all.
            first_k: How many of the first messages to keep, when `last_n` is not 0.

        Raises:
            TypeError: One of the numbers is no whole number.
            InvalidInput: One of them is negative.
        """
        check_window(last_n, first_k)
        last = self._caught_up()  # once: other threads may write meanwhile
        count = self._node.inherited + last.number
        kept = min(count, last_n + first_k) if last_n else count
        ranges = window(self.store, self._held(last), count, last_n, first_k)
        node = child_of(self._node, ranges, kept, relation="fork", window=(last_n, first_k))
        return Dialog.of(self._family, self.store.create_dialog(node), self.top_prompt)

    def rewind(self, to: Handle | str | None) -> Rewind[Dialog]:
        """Look at what going back to an entry would do: nothing is written before `apply()` is called on what this gives.

        Args:
            to: The last entry that is to stay; None for none: back to before the first.

        Raises:
            UnknownHandle: The dialog does not hold it.
            InvalidInput: It is the newest entry: nothing would leave.
        """
        standing = Standing(
            store=self.store,
            node=self._node,
            turn_head=self._last.turn_head,
            last=self._last.seq,
            spans=tuple(self._spans()),
            view=self._seen(None),
            adopt=partial(Dialog.of, self._family, top=AS_RECORDED),
        )
        return rewind(standing, to)

    @property
    def rewound(self) -> bool:
        """Whether a rewind made it, which `undo_rewind` takes back."""
        return self._node.relation == REWIND

    def undo_rewind(self) -> Dialog:
        """Go back to the dialog that a rewind left to make this one. What was said here since stays here.

        Raises:
            InvalidInput: This dialog was not made by a rewind.
        """
        return Dialog.at(self._family, undo_rewind(self.store, self._node)).reload()

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        above = self._node.parent_id
        return None if above is None else Dialog.at(self._family, above)

    @property
    def children(self) -> tuple[Dialog, ...]:
        """The dialogs forked from it, in the order of the forks."""
        return tuple(Dialog.at(self._family, DialogId(child)) for child in self.tree_node.children_ids)

    @property
    def tree_node(self) -> DialogTreeNode:
        """Its place in the tree as it stands now."""
        return self._family.tree()[self.dialog_id]

    @property
    def depth(self) -> int:
        """How many forks lie between it and its root."""
        return self.tree_node.depth

    def tree_overview(self) -> str:
        """Give the tree from this dialog down for people, a line a dialog."""
        return "\n".join(tree_lines(self.tree_node, self._family.count))

    def to_dict(self) -> dict[str, Any]:
        """Give the dialog as JSON values: its ancestors, itself and all below it, media included.

        `messages` is for readers; `log` is what `from_dict` restores.
        """
        return {
            "session_name": self.session_name,
            "owner": self.owner,
            "tree_node": self.tree_node.to_dict(),
            "top_prompt_path": self._governing.path,
            "messages": [message.to_dict() for message in self.messages.bare()],
            "log": carry(self.store, self.dialog_id),
        }

    @classmethod
    def from_dict(
        cls,
        fields: Mapping[str, Any],
        log_base: LogBase | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
    ) -> Dialog:
        """Read what `to_dict` gave: the same ids, entries and tree; or the dictionary of another program that has `messages`.

        Args:
            fields: The dictionary.
            log_base: A replay log that follows from here on, beginning with what was read.
            runtime: What the path of the prompt is resolved with; the default one when not given. An unknown path is a warning.
            store: Where the session is to lie; in memory when not given.

        Raises:
            InvalidInput: It is no dialog's dictionary, or the store has the session already.
        """
        record, dialogs, dialog_id = unpack(fields)
        family: Family[Dialog] = Family(
            store or MemoryStore(), record.session_id, runtime or get_default_runtime(), follower_of(log_base)
        )
        restore(family.store, record, dialogs)
        family.tell_all()
        return cls.of(family, family.store.node(dialog_id), prompt_at(family.runtime, fields.get("top_prompt_path")))

    # --- working copies -----------------------------------------------------------------------------------------------------------

    def derive(self, view: View) -> Dialog:
        """Give a dialog that is never written back: its view is this one, its messages are what the model sees of it."""
        derived = Derived(self._family, self.owner, self.top_prompt, view)
        derived._compiled = self._compiled  # noqa: SLF001 - of this very class: it goes on from what this one was compiled to
        return derived


class Derived(Dialog):
    """A dialog that is never written back: what context managers get and give.

    Its view is the one it was made from, until something is appended to it. Its messages are written down, into a store of its own, when
    they are first asked for: a working copy that is only compiled costs nothing.
    """

    def __init__(self, family: Family[Dialog], owner: str, top: Prompt | None, view: View) -> None:
        """Make one from a view; `family` is where the view came from."""
        scratch = Scratch(family.store)
        scratch.create_session(SessionRecord(session_id=family.session_id, name=family.record.name))
        own: Family[Dialog] = Family(scratch, family.session_id, family.runtime)
        self._view = view
        self._source = family.store
        self._length: int | None = None  # of what was written down; None before
        self._attach(own, own.new_root(owner), top)

    @property
    def _last(self) -> Header:
        if self._length is None:
            self._length = -1
            self.record(*(MessageEntry(message=message) for message in messages_of(self._view, self._source)))
            self._length = self._ending.last.seq
        return self._ending.last

    def _seen(self, at: int | None) -> View:
        as_made = self._length is None or self._ending.last.seq == self._length
        return self._view if at is None and as_made else super()._seen(at)

    def _booked(self, ready: Composing, when: float | None) -> Composing:  # noqa: ARG002 - as its parent's
        """Leave the books empty: no model was called with what is in it."""
        return ready
