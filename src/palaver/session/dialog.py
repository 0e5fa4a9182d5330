"""The dialog: one branch of a conversation, which only grows."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TextIO, TypeAlias, overload

from palaver.errors import InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    Entry,
    Handle,
    Header,
    MessageEntry,
    Node,
    Span,
    Stretch,
    Toolset,
    ToolSpec,
    child_of,
    entry_at,
    joined,
    rule,
    stretches,
)
from palaver.messages import Content, ImageContent, InvokeCost, Message, Role, TextContent
from palaver.plurals import a_type
from palaver.prompts import Prompt, Runtime, temporary_prompt
from palaver.session.head import KnownHead, mapping, media_from, message_of, rendered, stamped
from palaver.session.incoming import SdkObject, is_one, messages_of, tools_of
from palaver.session.marks import Marks
from palaver.session.messages import Messages, cost_of_messages, message_line
from palaver.session.recall import recall
from palaver.session.tree import DialogTreeNode, tree_lines, window
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.store.redacting import RedactingStore
from palaver.transfer.landing import land
from palaver.transfer.records import from_list, to_json
from palaver.transfer.replay import LogBase, follower_of
from palaver.transfer.writer import family, stream
from palaver.view import Fold, View, fold

if TYPE_CHECKING:
    from palaver.session.calls import CallHistory
    from palaver.session.compaction import BudgetLike, Compactions, PolicyLike
    from palaver.session.session import Session
    from palaver.wire import Profile, Request

__all__ = ["Dialog", "UnknownPromptWarning"]

_ANSWERS = frozenset({Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL})
"""Roles of the model and its tools: their messages do not say which prompt is in force."""


class UnknownPromptWarning(UserWarning):
    """A dialog names a prompt that its runtime does not have; it was loaded without one."""


class _AsRecorded(NamedTuple):
    """Stands for the prompt that the log names, until somebody asks for it."""

    path: str | None = None


_AS_RECORDED = _AsRecorded()
"""Whatever it is: nobody has read the log for its path."""
_Top: TypeAlias = Prompt | str | _AsRecorded | None


class Dialog:
    """One branch of a conversation, owned by one agent.

    A dialog knows the log up to its own last write, or to the last `reload`. When another writer continued the turn first, a write raises
    `Conflict`, nothing is written, and the caller chooses between `reload()` and `fork()`. Of what others write, entries beside the turn and
    erasures are taken note of by the next view. Several threads may use one object, one at a time.

    Attributes:
        store: Where the log is.
        marks: Labels, pins and quarantines.
    """

    def __init__(
        self,
        owner: str = "assistant",
        session_name: str | None = None,
        top_prompt: Prompt | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
        log_base: LogBase | None = None,
    ) -> None:
        """Begin a session of its own with this one dialog in it.

        Args:
            owner: The agent that owns it.
            session_name: The session's name; made from the time when not given.
            top_prompt: The prompt in force for the model's next turn.
            runtime: Resolves paths of prompts; the default one when not given.
            store: Where the session is; in memory when not given.
            log_base: A replay log that follows, or the folder for one.

        Raises:
            InvalidInput: The store is an address: `Session.open` and `Session.create` take one.
        """
        given: object = store
        if isinstance(given, str | os.PathLike):
            hint = f"Session.open({os.fspath(given)!r}, {session_name or owner!r}, create=True).root is a dialog in it."
            raise InvalidInput(f"store is {given!r}, not a store.", hint=hint)
        from palaver.session.session import Session  # noqa: PLC0415 - a session has dialogs, and this one makes its own

        session = Session._made(
            store or MemoryStore(), session_name or "", owner=owner, runtime=runtime, follower=follower_of(log_base)
        )
        (root,) = session.store.nodes(session.session_id)
        self._attach(session, root, top_prompt)

    @classmethod
    def _of(cls, session: Session, dialog_id: DialogId, node: Node | None = None) -> Dialog:
        """Return the one object that stands for a dialog of a session in use."""
        found = session._dialogs.get(dialog_id)
        if found is None:
            found = cls.__new__(cls)
            found._attach(session, node or session.store.node(dialog_id), _AS_RECORDED)
        return found

    def _attach(self, session: Session, node: Node, top: _Top) -> None:
        self.store = session.store
        self._session = session
        self._node = node
        self._top = top
        self._head = KnownHead(
            self.store, node.dialog_id, session._clock, None if session._follower is None else self._follow
        )
        self._fold: Fold | None = None
        self._asked: tuple[Request, int] | None = None
        self._changes = 0
        self.marks = Marks(self.store, node, self._spans, self._head.annotate)
        session._dialogs[node.dialog_id] = self
        session._follow(node, self._head.last.seq)

    def _follow(self, last: Header) -> None:
        self._session._follow(self._node, last.seq)

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def dialog_id(self) -> DialogId:
        """The opaque id, 32 hexadecimal digits."""
        return self._node.dialog_id

    @property
    def session_id(self) -> SessionId:
        """The session's opaque id."""
        return self._node.session_id

    @property
    def session(self) -> Session:
        """The session, with all its branches."""
        return self._session

    @property
    def owner(self) -> str:
        """The agent that owns it."""
        return self._node.owner

    @property
    def session_name(self) -> str:
        """The session's name."""
        return self._session.name

    @property
    def top_prompt(self) -> Prompt | None:
        """The prompt in force for the model's next turn: the last one put, or a temporary one for a text that was put.

        A registered prompt is in force in later processes, too. Where their runtime does not have it, a warning says so and this is None.
        """
        if isinstance(self._top, _AsRecorded):
            self._top = self._registered(self._path_in_force())
        elif isinstance(self._top, str):
            self._top = temporary_prompt(self._top)
        return self._top

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self._top = prompt

    def _registered(self, path: str | None) -> Prompt | None:
        try:
            return None if path is None else self._session.runtime.get_prompt(path)
        except NotFound as error:
            warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=3)
            return None

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self._count}>"

    # --- reading ----------------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        last = self._head.last
        return Messages(self.store, self._held(last), self._node.inherited + last.number)

    @property
    def _count(self) -> int:
        return self._node.inherited + self._head.last.number

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self.store, self._node.ranges)[0]

    def _held(self, last: Header) -> tuple[Stretch, ...]:
        """Return all that the dialog holds up to an own entry, its own entries last."""
        if last.seq < 0:
            return self._inherited
        return (*self._inherited, Stretch(Span(self.dialog_id, 0, last.seq + 1), 0, self._node.inherited, last.number))

    def _spans(self) -> tuple[Span, ...]:
        """Return the entries that the dialog holds, its ancestors' first."""
        return joined((*self._node.ranges, Span(self.dialog_id, 0, self._head.last.seq + 1)))

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
        """Tokens and dollars of all messages; reads all of them. Dollars that no provider gave are estimated, and are in `estimated`, too."""
        return cost_of_messages(self.messages.bare())

    def overview(
        self,
        remove_tail: bool = False,  # noqa: FBT001, FBT002 - a public signature of source document 000
        max_length: int = 100,
        stream: TextIO | None = None,
        divider: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> str:
        """Return the messages for people, a line each.

        Args:
            remove_tail: Whether to leave out the last message.
            max_length: How many characters of a message to show; a longer one ends in `...`.
            stream: Where the text is written to as well.
            divider: Whether to put a ruler between the lines.
        """
        count = self._count - 1 if remove_tail else self._count
        messages = zip(range(count), self.messages.bare(), strict=False)
        lines = (message_line(index, message, max_length) for index, message in messages)
        text = ("\n" + "-" * 40 + "\n" if divider else "\n").join(lines)
        if stream is not None:
            stream.write(text + "\n")
        return text

    def recall(self, handle: Handle | str) -> Entry | Content:
        """Return what a handle names, an entry or one block, from any branch of the session.

        Raises:
            InvalidInput: The text is not a handle.
            NotFound: The session has no such entry or block.
            Erased: It was there and was erased.
        """
        return recall(self.store, self.session_id, handle)

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    @overload
    def append(self, message: Message | Mapping[str, Any] | SdkObject) -> Message: ...
    @overload
    def append(self, message: Iterable[Message | Mapping[str, Any] | SdkObject]) -> tuple[Message, ...]: ...
    def append(self, message: object) -> Message | tuple[Message, ...]:
        """Append a message, or several at once, all or none.

        The stored message has this dialog's id in its metadata; the caller's object does not change. A message with the results of several
        calls is stored as one message for each.

        Args:
            message: A `Message`; a dict of OpenAI's Chat Completions or Responses, Anthropic's or Gemini's interface; an answer as a provider's
                SDK returns it, with its content, usage and ids; or several of them. When the dialog made the request that an answer answers,
                and nothing was appended since, the call is recorded, too.

        Returns:
            The message as it is stored; the last one of a message with several results; a tuple when several were given.

        Raises:
            TypeError: It is not a message.
            InvalidMessage: A dict is not a message of any interface.
            ProviderError: An answer reports a failure, or stops before its end.
            Conflict: Another writer was first; nothing was written.
            MissingFile: It refers to media whose bytes neither it nor the store has.
        """
        asked, at = self._asked or (None, -1)
        request = asked if at == self._head.last.seq else None
        given = tuple(messages_of(message, request))
        stored = tuple(part for each, _ in given for part in stamped(each, self.dialog_id, self.store))
        if request is not None and any(answered for _, answered in given):
            self.calls.record(request)
        stored = self._write(*stored)
        return stored[-1] if is_one(message) else stored

    def _write(self, *messages: Message) -> tuple[Message, ...]:
        """Append messages that bear this dialog's id, and return them as they are stored."""
        self._asked = None
        entries = tuple(MessageEntry(message=message) for message in messages)
        self.record(*entries)
        if isinstance(self.store, RedactingStore):
            entries = tuple(map(self.store.stored, entries))
        return tuple(entry.message for entry in entries)

    def put_text(
        self,
        text: str,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append a text verbatim: it is not a template. A temporary prompt without tools or parser comes into force.

        Args:
            text: The text.
            name: The sender; the role's default when not given.
            metadata: Kept with the message.
            role: Who speaks.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is a str, not {a_type(text)}.")
        return self._put(message_of(self.dialog_id, text, name, metadata, role), text)

    def put_prompt(
        self,
        prompt: Prompt | str,
        prompt_args: Mapping[str, Any] | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Render a prompt and append the text; the prompt comes into force for the next turn.

        Args:
            prompt: The prompt, or its path in the runtime.
            prompt_args: The template's variables.
            name: The sender; the role's default when not given.
            metadata: Kept with the message.
            role: Who speaks.

        Raises:
            NotFound: The runtime has no prompt of this path.
            InvalidInput: Variables are missing, or a prompt without variables has arguments; nothing was appended.
        """
        found = self._session.runtime.get_prompt(prompt) if isinstance(prompt, str) else prompt
        if not isinstance(found, Prompt):
            raise TypeError(f"prompt is a Prompt or a path, not {a_type(prompt)}.")
        text = rendered(found, prompt_args)
        return self._put(message_of(self.dialog_id, text, name, metadata, role), found)

    def _put(self, message: Message, top: Prompt | str) -> Message:
        before, self._top = self._top, top
        try:
            return self._write(message)[0]
        except BaseException:
            self._top = before
            raise

    def put_image(
        self,
        image: object,
        caption: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        role: Role | str = Role.USER,
    ) -> Message:
        """Append an image; the prompt in force stays.

        Args:
            image: A path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.
            caption: A text that stands before the image, and in the metadata.
            name: The sender; the role's default when not given.
            metadata: Kept with the message.
            role: Who speaks.

        Raises:
            MissingFile: It names no file.
            InvalidMessage: It is not an image that palaver knows.
        """
        blocks: tuple[Content, ...] = (ImageContent(images=(media_from(image),)),)
        kept = mapping(metadata, "metadata")
        if caption is not None:
            blocks = (TextContent(content=caption), *blocks)
            kept = {**kept, "caption": caption}
        return self.append(message_of(self.dialog_id, blocks, name, kept, role))

    def record(self, *entries: Entry, beside: bool = False) -> tuple[Handle, ...]:
        """Append entries of the log, all or none, and return their handles.

        Kinds that belong to a turn continue it; kinds that only stand beside a turn (labels, decisions, late results, …) are added without
        continuing it, and never conflict with another writer.

        Args:
            entries: The entries.
            beside: Whether kinds that may do both stand beside the turn.

        Raises:
            Conflict: Another writer was first; nothing was written.
            InvalidInput: One of them may not stand there.
        """
        if beside or any(not rule(entry.kind).turn for entry in entries):
            if len(entries) == 1:
                return (self._head.annotate(entries[0]),)
            with self.store.transaction():
                return tuple(map(self._head.annotate, entries))
        return self._head.append(map(self._with_prompt, entries))

    def _with_prompt(self, entry: Entry) -> Entry:
        """Return an entry with the path of the prompt in force after it, on a message of neither the model nor a tool."""
        if not isinstance(entry, MessageEntry) or entry.message.role in _ANSWERS:
            return entry
        path = self._path_in_force()
        return entry if path is None else entry.model_copy(update={"prompt": path})

    def _path_in_force(self) -> str | None:
        """Return the path of the prompt in force where the runtime has one: the log keeps it."""
        if self._top is _AS_RECORDED:
            self._top = _AsRecorded(self._recorded_path())
        top = self._top
        if isinstance(top, _AsRecorded):
            return top.path
        return self._session.runtime.key_of(top) if isinstance(top, Prompt) and not top.is_temporary else None

    def _recorded_path(self) -> str | None:
        """Return the path that the newest message of neither the model nor a tool names; reads headers back to it, and one body."""
        for span in reversed(self._spans()):
            for header in self.store.headers(span.dialog, span.start, span.stop, reverse=True):
                if header.kind == "message" and header.role not in _ANSWERS:
                    entry = entry_at(self.store, Handle(span.dialog, header.seq))
                    return entry.prompt if isinstance(entry, MessageEntry) else None
        return None

    def reload(self) -> Self:
        """Read what other writers have appended, and return the dialog itself."""
        self._follow(self._head.reload())
        if isinstance(self._top, _AsRecorded):
            self._top = _AS_RECORDED
        return self

    # --- views and requests ------------------------------------------------------------------------------------------------------------

    def view(
        self,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        *,
        model: str = "",
    ) -> View:
        """Return what the model is to see: everything, or what a policy makes of it. Nothing is written.

        Args:
            policy: A policy or context manager, its name or its configuration; `palaver` when only a budget is given.
            budget: What one request may occupy, in tokens.
            at: The number of the last own entry to take into account, for an earlier view; the newest known one when not given.
            model: The model that counts tokens; the one in force when not given.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
            NotFound: There is no policy of this name.
            PolicyFailed: The policy raised.
        """
        seen = self._seen(at)
        if policy is None and budget is None:
            return seen
        return self.compaction.compose(policy, budget, model=model, view=seen).view

    def _seen(self, at: int | None = None) -> View:
        """Return the view of everything up to an own entry, from the view before and what came since where there is one."""
        last = self._head.refresh()
        if self._fold is None or self._changes != self._head.changes:
            self._fold, self._changes = Fold(self.store, self._node), self._head.changes
        if at is None or at >= last.seq:
            return self._fold.view(last)
        return fold(self.store, self.dialog_id, at)

    def request(  # noqa: PLR0913 - all but the first two by keyword
        self,
        profile: Profile | str,
        model: str,
        *,
        tools: Iterable[Any] | None = None,
        recall: bool = False,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        **call: Any,  # noqa: ANN401 - the fields of a Call
    ) -> Request:
        """Compile the request for a provider; nothing is sent. It is a mapping: pass it to the provider's SDK as `**request`.

        Args:
            profile: `openai`, `openai-responses`, `anthropic` or `gemini`; or a profile.
            model: The model.
            tools: Schemas as providers write them, or functions. The dialog's tools when not given. Where they or the `provider_tools` of the
                call are not the dialog's tools yet, they are recorded as its tools from here on, which is the only thing that is written.
            recall: Whether `recall` and `search_history` are among the tools, with which the model reads what the view leaves out; `call_tool`
                answers them.
            policy: As for `view`.
            budget: As for `view`.
            at: As for `view`.
            call: Further fields of `palaver.wire.Call`, such as `max_tokens` or `tool_choice`.

        Raises:
            InvalidInput: A `Call` has no such field; nothing was written.
            NotFound: There is no profile of this name.
            InfeasibleBudget: What must be sent is larger than the budget.
            InvalidRequest: The request breaks a rule of its provider: a defect of palaver.
        """
        from palaver import providers, wire  # noqa: PLC0415 - a program that only stores messages needs no wire

        known = providers.profile(profile, model) if isinstance(profile, str) else profile
        for name in call.keys() - wire.Call.__dataclass_fields__.keys():
            hint = f"Put a parameter of the provider's own into parameters={{{name!r}: ...}}."
            raise InvalidInput(f"A request has no field {name!r}.", hint=hint)
        made = wire.Call(model=model, **call)
        own = None if tools is None else tools_of(tools)
        if recall:
            from palaver.session.recall_tools import with_recall  # noqa: PLC0415 - as above

            own = with_recall(self._seen().tools if own is None else own)
        self._declare(own, made.provider_tools, at)
        view = self.view(policy, budget, at, model=model)
        request = wire.compile(view, known, made, lambda digest: self.store.blob(BlobId(digest)))
        request.check()
        self._asked = None if at is not None else (request, self._head.last.seq)
        return request

    def _declare(self, tools: tuple[ToolSpec, ...] | None, provided: Mapping[str, Any], at: int | None) -> None:
        if at is not None and tools is not None:
            raise InvalidInput(
                "A request for an earlier view has the tools of that time.",
                hint="Leave out `at`, or `tools` and `recall`.",
            )
        seen = self._seen()
        declared = seen.tools if tools is None else tools
        if at is None and (declared, provided) != (seen.tools, seen.provided):
            self.record(Toolset(tools=declared, provided=provided or None))

    def call_tool(self, name: str, args: Mapping[str, Any] | str) -> str:
        """Answer a call of `recall` or `search_history`, which `request(..., recall=True)` offers to the model.

        Args:
            name: The tool's name.
            args: The arguments, as a mapping or as the JSON text that the model wrote.

        Returns:
            The text of the tool's result; for wrong arguments, what is wrong with them. `Dialog.recall` returns images and sounds.

        Raises:
            NotFound: The tool has another name.
        """
        from palaver.session.recall_tools import answered  # noqa: PLC0415 - as in `request`

        return answered(self, name, args)

    @cached_property
    def calls(self) -> CallHistory:
        """The recorded model calls, and the way to record the next."""
        from palaver.session.calls import CallHistory  # noqa: PLC0415 - as in `request`

        return CallHistory(self.store, self._node, self._head, self._seen)

    @cached_property
    def compaction(self) -> Compactions:
        """Smaller views: previewed, committed, undone and redone."""
        from palaver.session.compaction import Compactions  # noqa: PLC0415 - as in `request`

        return Compactions(self.store, self._session.runtime, self._node, self._head, self._seen)

    # --- branches ----------------------------------------------------------------------------------------------------------------------

    def fork(self, last_n: int = 0, first_k: int = 1) -> Dialog:
        """Branch off: a child that holds all messages, or the first `first_k` and the last `last_n`.

        Nothing is copied: the child shares the entries, and each side goes on by itself. An entry that is not a message goes with the message
        before it. Where another writer continued the turn, the child goes on from what this object knows; `reload` first to have all.

        Args:
            last_n: How many of the last messages to keep; 0 keeps all.
            first_k: How many of the first messages to keep, when `last_n` is not 0.

        Raises:
            TypeError: One of the numbers is not a whole number.
            InvalidInput: One of them is negative.
        """
        for name, value in (("last_n", last_n), ("first_k", first_k)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is a whole number of messages, not {a_type(value)}.")
            if value < 0:
                raise InvalidInput(f"{name} is {value}; a fork keeps 0 messages or more.")
        last = self._head.refresh()
        count = self._node.inherited + last.number
        if last_n == 0 or first_k + last_n >= count:
            ranges, kept = joined((*self._node.ranges, Span(self.dialog_id, 0, last.seq + 1))), count
        else:
            ranges, kept = window(self.store, self._held(last), last_n, first_k), last_n + first_k
        node = child_of(self._node, ranges, kept, relation="fork", window=(last_n, first_k))
        child = Dialog._of(self._session, node.dialog_id, self._session._new_node(node))
        child._top = self._top
        return child

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        above = self._node.parent_id
        return None if above is None else Dialog._of(self._session, above)

    @property
    def children(self) -> tuple[Dialog, ...]:
        """The dialogs forked from it, in the order of the forks."""
        nodes = self.store.nodes(self.session_id)
        return tuple(Dialog._of(self._session, one.dialog_id, one) for one in nodes if one.parent_id == self.dialog_id)

    @property
    def tree_node(self) -> DialogTreeNode:
        """Its place in the tree as it is now."""
        return self._session.tree[self.dialog_id]

    def tree_overview(self) -> str:
        """Return the tree from this dialog down for people, a line a dialog."""
        return "\n".join(tree_lines(self.tree_node, self._session._count))

    # --- as a dictionary ---------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the dialog as JSON values: its ancestors, itself and all below it, media included.

        `messages` is for readers; `log` is what `from_dict` restores.
        """
        kin = family(self.store, self._node)
        return {
            "session_name": self.session_name,
            "owner": self.owner,
            "tree_node": self.tree_node.to_dict(),
            "top_prompt_path": self._path_in_force(),
            "messages": [message.to_dict() for message in self.messages.bare()],
            "log": list(map(to_json, stream(self.store, self.session_id, kin, payloads="there"))),
        }

    @classmethod
    def from_dict(
        cls,
        fields: Mapping[str, Any],
        log_base: LogBase | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
    ) -> Dialog:
        """Read what `to_dict` returned: the same ids, entries and tree.

        Args:
            fields: The dictionary.
            log_base: A replay log that follows from here on, beginning with what was read.
            runtime: Resolves the path of the prompt; the default one when not given. An unknown path is a warning.
            store: Where the session is written to; in memory when not given.

        Raises:
            InvalidInput: It is not a dialog's dictionary, or the store has the session already.
        """
        from palaver.session.session import Session  # noqa: PLC0415 - as in `__init__`

        into = store or MemoryStore()
        made = land(from_list(fields.get("log")), into).session_id
        session = Session(into, made, runtime, follower_of(log_base))
        session._follow_all()
        dialog = cls._of(session, DialogId(fields["tree_node"]["dialog_id"]))
        dialog.top_prompt = dialog._registered(fields.get("top_prompt_path"))
        return dialog
