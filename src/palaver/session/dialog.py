"""The dialog: one branch of a conversation, which only grows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TextIO, overload

from pydantic import BaseModel

from palaver.errors import MediaUnavailable
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import Entry, Handle, Header, Label, MessageEntry, Node, Pin, Place, Span, draft
from palaver.messages import (
    Content,
    FrozenDict,
    ImageContent,
    InvokeCost,
    Message,
    Role,
    TextContent,
    ToolMessage,
    media_of,
)
from palaver.prompts import Prompt, Runtime, get_default_runtime, temporary_prompt
from palaver.session.follower import Follower
from palaver.session.marks import labels_in, pins_in
from palaver.session.overview import message_line, tree_lines
from palaver.session.pictures import media_from
from palaver.session.recalling import recall
from palaver.session.transcript import Messages, Stretch, stretches
from palaver.session.tree import DialogTreeNode, Tree, tree_of
from palaver.session.window import check_window, window
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord, Store

__all__ = ["Dialog", "Family"]


@dataclass(slots=True)
class Family:
    """What the dialogs of one session share while they are in use.

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
    live: dict[DialogId, Dialog] = field(default_factory=dict)

    def tree(self) -> Tree:
        """Give the session's tree as it stands now."""
        return tree_of(self.store.nodes(self.session_id))

    def dialog(self, dialog_id: DialogId) -> Dialog:
        """Give the object that stands for a dialog of the session."""
        found = self.live.get(dialog_id)
        return Dialog.of(self, self.store.node(dialog_id)) if found is None else found

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
        if self.store.session(self.session_id).root is None:
            self.store.update_session(self.session_id, root=made.dialog_id)
        return made


def made_up_name(session_id: SessionId, at: float) -> str:
    """Name a session after its time and id."""
    return f"{time.strftime('%Y%m%d_%H%M%S', time.gmtime(at))}_{session_id[:6]}"


class Dialog:
    """One branch of a conversation, owned by one agent.

    A dialog knows the log up to its own last write, or to the last `reload`. Every write is compared with that: when another writer
    was first, `Conflict` is raised, nothing was written, and the caller chooses between `reload()` and `fork()`.

    Attributes:
        dialog_id: The opaque id, 32 hexadecimal digits.
        owner: The agent that owns it.
    """

    def __init__(
        self,
        owner: str,
        session_name: str | None = None,
        top_prompt: Prompt | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
        log_base: Follower | None = None,
    ) -> None:
        """Begin a session of its own, with this one dialog in it.

        Args:
            owner: The agent that owns it.
            session_name: The session's name; made from the time when not given.
            top_prompt: The prompt that governs the model's next turn.
            runtime: What paths of prompts are resolved with; the default one when not given.
            store: Where the session lies; in memory when not given.
            log_base: A replay log that follows.
        """
        session_id, at = new_session_id(), now()
        family = Family(store or MemoryStore(), session_id, runtime or get_default_runtime(), log_base)
        name = session_name or made_up_name(session_id, at)
        family.store.create_session(SessionRecord(session_id=session_id, name=name, created_at=at))
        self._attach(family, family.new_root(owner), top_prompt)

    @classmethod
    def of(cls, family: Family, node: Node, top: Prompt | str | None = None) -> Dialog:
        """Make the object for a dialog that the store has."""
        dialog = cls.__new__(cls)
        dialog._attach(family, node, top)  # noqa: SLF001 - of this very class
        return dialog

    def _attach(self, family: Family, node: Node, top: Prompt | str | None) -> None:
        self._family = family
        self._store = family.store
        self._node = node
        self._last: Header = family.store.last(node.dialog_id)
        self._top = top
        self.dialog_id = node.dialog_id
        self.owner = node.owner
        family.live[node.dialog_id] = self
        self._tell()

    # --- what it is ---------------------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> SessionId:
        """The session's opaque id."""
        return self._family.session_id

    @property
    def session_name(self) -> str:
        """The session's name."""
        return self._store.session(self._family.session_id).name

    @property
    def runtime(self) -> Runtime:
        """What paths of prompts are resolved with."""
        return self._family.runtime

    @property
    def store(self) -> Store:
        """Where the session lies."""
        return self._store

    @property
    def top_prompt(self) -> Prompt | None:
        """The prompt that governs the model's next turn: the last one put, or a temporary one for a text that was put."""
        if isinstance(self._top, str):
            self._top = temporary_prompt(self._top)
        return self._top

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self._top = prompt

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self._count}>"

    # --- what was said --------------------------------------------------------------------------------------------------------

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self._store, self._node.ranges)[0]

    def _held(self) -> tuple[Stretch, ...]:
        """Give all that it holds, its own entries last."""
        own = Span(self.dialog_id, 0, self._last.seq + 1)
        return (*self._inherited, Stretch(own, 0, self._node.inherited)) if len(own) else self._inherited

    @property
    def _count(self) -> int:
        return self._node.inherited + self._last.number

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        return Messages(self._store, self._held(), self._count)

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
        text = found.render(_mapping(prompt_args, "prompt_args"))
        message = self.append(self._said(text, name, metadata, role))
        self._top = found
        return message

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
        message = self.append(self._said(text, name, metadata, role))
        self._top = text
        return message

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
            FileNotFoundError: It names no file.
            InvalidMedia: It is no image that is known.
        """
        shown = ImageContent(images=(media_from(image),))
        kept = _mapping(metadata, "metadata")
        if caption is None:
            return self.append(self._said((shown,), name, kept, role))
        return self.append(self._said((TextContent(content=caption), shown), name, {**kept, "caption": caption}, role))

    def _said(
        self, content: str | tuple[Content, ...], name: str | None, metadata: Mapping[str, Any] | None, role: Role | str
    ) -> Message:
        kept = {**_mapping(metadata, "metadata"), "dialog_id": self.dialog_id}
        return Message.from_dict({"role": role, "content": content, "name": name or "", "metadata": kept})

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
            Conflict: Another writer was first; nothing was written.
            MediaUnavailable: It refers to media whose bytes neither it nor the store has.
        """
        given = (message,) if isinstance(message, Message) else tuple(message)
        stored = tuple(self._stamped(part) for one in given for part in _parts(one))
        self.record(*(MessageEntry(message=one) for one in stored))
        return stored[-1] if isinstance(message, Message) else stored

    def _stamped(self, message: Message) -> Message:
        for media in media_of(message):
            if media.data is None and not media.url and not self._store.has_blob(BlobId(media.digest)):
                raise MediaUnavailable(f"Neither the message nor the store has the bytes of {media.digest}.")
        if message.metadata.get("dialog_id") == self.dialog_id:
            return message
        stamped = FrozenDict({**message.metadata, "dialog_id": self.dialog_id})
        return BaseModel.model_copy(
            message, update={"metadata": stamped}
        )  # past validation: all of it was validated once

    def record(self, *entries: Entry) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, all or none, and give their handles.

        Raises:
            Conflict: Another writer was first; nothing was written.
            IllegalEntry: One of them may not stand there.
        """
        drafts, continues = [], self._last.response
        for entry in entries:
            ready, payloads = draft(entry, continues=continues)
            for payload in payloads.values():
                self._store.put_blob(payload)
            continues = ready.response or continues
            drafts.append(ready)
        headers = self._store.append(self.dialog_id, drafts, self._last.turn_head)
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
        for payload in payloads.values():
            self._store.put_blob(payload)
        header = self._store.annotate(self.dialog_id, ready)
        if header.turn_head == self._last.turn_head:
            self._last = header
            self._tell()
        return Handle(self.dialog_id, header.seq)

    def reload(self) -> Dialog:
        """Take note of what other writers have appended, and give the dialog itself."""
        self._last = self._store.last(self.dialog_id)
        self._tell()
        return self

    def _tell(self) -> None:
        if self._family.follower is not None:
            self._family.follower.follow(self._store, self._node, self._last.seq)

    # --- branches -------------------------------------------------------------------------------------------------------------

    def fork(self, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off: a child that holds all messages, or the first `first_k` and the last `last_n`.

        Nothing is copied: the child shares the entries, and each side goes on by itself. Costs the same whatever the length of the
        log. What is no message goes with the message before it.

        Args:
            last_n: How many of the last messages to keep; 0 keeps all.
            first_k: How many of the first messages to keep, when `last_n` is not 0.

        Raises:
            TypeError: One of the numbers is no whole number.
            InvalidInput: One of them is negative.
        """
        check_window(last_n, first_k)
        count = self._count
        ranges = window(self._store, self._held(), count, last_n, first_k)
        kept = min(count, last_n + first_k) if last_n else count
        node = Node(
            dialog_id=new_dialog_id(),
            session_id=self.session_id,
            owner=self.owner,
            parent_id=self.dialog_id,
            ranges=ranges,
            split_point=kept,
            last_n=last_n,
            first_k=first_k,
            inherited=kept,
            created_at=now(),
            relation="fork",
        )
        return Dialog.of(self._family, self._store.create_dialog(node), self._top)

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        return None if self._node.parent_id is None else self._family.dialog(self._node.parent_id)

    @property
    def children(self) -> tuple[Dialog, ...]:
        """The dialogs forked from it, in the order of the forks."""
        return tuple(self._family.dialog(DialogId(child)) for child in self.tree_node.children_ids)

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
        return "\n".join(tree_lines(self.tree_node, self._count_of))

    def _count_of(self, dialog_id: str) -> int:
        known = DialogId(dialog_id)
        return self._store.node(known).inherited + self._store.last(known).number

    # --- marks and what was left out --------------------------------------------------------------------------------------------

    def label(self, handle: Handle, label: str | None) -> Handle:
        """Name an entry for people; None takes the name away. No model sees it."""
        return self.annotate(Label(target=_place(handle), label=label))

    def pin(self, handle: Handle, *, pinned: bool = True) -> Handle:
        """Keep an entry in every view, or no longer."""
        return self.annotate(Pin(target=_place(handle), pinned=pinned))

    @property
    def labels(self) -> Mapping[Handle, str]:
        """The labels in force; reads the headers of the whole dialog."""
        return labels_in(self._store, [stretch.span for stretch in self._held()])

    @property
    def pins(self) -> tuple[Handle, ...]:
        """The pinned entries, in the order of pinning; reads the headers of the whole dialog."""
        return pins_in(self._store, [stretch.span for stretch in self._held()])

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Give back what a handle stands for: an entry, or one block; from any branch of the session.

        Args:
            handle: The handle, or its printed form as it stands in a placeholder.

        Raises:
            InvalidHandle: It is not spelt like one.
            UnknownHandle: The session has no such entry or block.
        """
        return recall(self._store, self.session_id, handle)


def _mapping(value: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a mapping, not a {type(value).__name__}.")
    return value


def _parts(message: Message) -> Sequence[Message]:
    return message.split() if isinstance(message, ToolMessage) else (message,)


def _place(handle: Handle) -> Place:
    return Place(dialog=handle.dialog, seq=handle.seq, block=handle.block)
