"""The dialog: one branch of a conversation, which only grows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TextIO, overload

from palaver.errors import UnknownPrompt
from palaver.ids import DialogId, SessionId, new_session_id, now
from palaver.log import Entry, Handle, Label, MessageEntry, Node, Pin, Place
from palaver.messages import Content, ImageContent, InvokeCost, Message, Role, TextContent
from palaver.prompts import Prompt, Runtime, get_default_runtime, temporary_prompt
from palaver.session.branch import Branch
from palaver.session.carrying import carry, unpack
from palaver.session.family import Family, made_up_name
from palaver.session.marks import labels_in, pins_in
from palaver.session.overview import message_line, tree_lines
from palaver.session.pictures import media_from
from palaver.session.recalling import recall
from palaver.session.replay import LogBase, follower_of
from palaver.session.restore import restore
from palaver.session.transcript import Messages
from palaver.session.tree import DialogTreeNode
from palaver.session.warn import UnknownPromptWarning
from palaver.session.words import as_mapping, said, stamped
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord, Store

__all__ = ["Dialog"]


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
    def of(cls, family: Family[Dialog], node: Node, top: Prompt | None = None) -> Dialog:
        """Make the object for a dialog that the store has."""
        dialog = cls.__new__(cls)
        dialog._attach(family, node, top)  # noqa: SLF001 - of this very class
        return dialog

    @classmethod
    def at(cls, family: Family[Dialog], dialog_id: DialogId) -> Dialog:
        """Give the object that stands for a dialog of the session: there is one for each."""
        found = family.live.get(dialog_id)
        return cls.of(family, family.store.node(dialog_id)) if found is None else found

    def _attach(self, family: Family[Dialog], node: Node, top: Prompt | None) -> None:
        self._family = family
        self._branch = Branch(family.store, node, family.follower)
        self._top: Prompt | str | None = top
        self.store = family.store
        self.dialog_id = node.dialog_id
        self.owner = node.owner
        family.live[node.dialog_id] = self

    # --- what it is ---------------------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> SessionId:
        """The session's opaque id."""
        return self._family.session_id

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
        """The prompt that governs the model's next turn: the last one put, or a temporary one for a text that was put."""
        if isinstance(self._top, str):
            self._top = temporary_prompt(self._top)
        return self._top

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self._top = prompt

    @property
    def in_turn(self) -> bool:
        """Whether an agent began a turn here and has not ended it."""
        return self._branch.last.open_turn >= 0

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self._branch.count}>"

    # --- what was said --------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        return self._branch.messages()

    @property
    def head(self) -> Message | None:
        """The first message, or None."""
        return self.messages[0] if self._branch.count else None

    @property
    def tail(self) -> Message | None:
        """The last message, or None."""
        return self.messages[-1] if self._branch.count else None

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
        count = self._branch.count - 1 if remove_tail else self._branch.count
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
        text = found.render(as_mapping(prompt_args, "prompt_args"))
        message = self.append(said(self.dialog_id, text, name, metadata, role))
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
        message = self.append(said(self.dialog_id, text, name, metadata, role))
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
            Conflict: Another writer was first; nothing was written.
            MediaUnavailable: It refers to media whose bytes neither it nor the store has.
        """
        given = (message,) if isinstance(message, Message) else tuple(message)
        stored = tuple(part for one in given for part in stamped(one, self.dialog_id, self.store))
        self._branch.append(MessageEntry(message=one) for one in stored)
        return stored[-1] if isinstance(message, Message) else stored

    def record(self, *entries: Entry) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, all or none, and give their handles.

        Raises:
            Conflict: Another writer was first; nothing was written.
            IllegalEntry: One of them may not stand there.
        """
        return tuple(Handle(self.dialog_id, header.seq) for header in self._branch.append(entries))

    def annotate(self, entry: Entry) -> Handle:
        """Add an entry that may stand beside a turn (a label, a decision, a late result), and give its handle.

        It never makes a turn fail. What another writer said meanwhile stays unknown until `reload`.

        Raises:
            IllegalEntry: It may not stand there.
        """
        return Handle(self.dialog_id, self._branch.annotate(entry).seq)

    def reload(self) -> Dialog:
        """Take note of what other writers have appended, and give the dialog itself."""
        self._branch.reload()
        return self

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
        return Dialog.of(self._family, self._branch.fork(last_n, first_k), self.top_prompt)

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        above = self._branch.node.parent_id
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
        prompt = self.top_prompt
        return {
            "session_name": self.session_name,
            "owner": self.owner,
            "tree_node": self.tree_node.to_dict(),
            "top_prompt_path": None if prompt is None or prompt.is_temporary else self.runtime.key_of(prompt),
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
        return cls.of(family, family.store.node(dialog_id), _prompt(family.runtime, fields.get("top_prompt_path")))

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
        return labels_in(self.store, self._branch.spans())

    @property
    def pins(self) -> tuple[Handle, ...]:
        """The pinned entries, in the order of pinning; reads the headers of the whole dialog."""
        return pins_in(self.store, self._branch.spans())

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Give back what a handle stands for: an entry, or one block; from any branch of the session.

        Args:
            handle: The handle, or its printed form as it stands in a placeholder.

        Raises:
            InvalidHandle: It is not spelt like one.
            UnknownHandle: The session has no such entry or block.
        """
        return recall(self.store, self.session_id, handle)


def _prompt(runtime: Runtime, path: str | None) -> Prompt | None:
    """Resolve the path that a dialog was saved with; an unknown one is a warning."""
    try:
        return None if path is None else runtime.get_prompt(path)
    except UnknownPrompt as error:
        warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=3)
        return None


def _place(handle: Handle) -> Place:
    return Place(dialog=handle.dialog, seq=handle.seq, block=handle.block)
