"""The dialog: one branch of a conversation, owned by one agent, which only grows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeAlias, overload

from palaver import providers, wire
from palaver.dialects.lists import SdkObject, is_one, messages_of
from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, MessageEntry, Node, Toolset, child_of, messages_in, rule, upto
from palaver.messages import Content, ImageContent, InvokeCost, Message, Role, TextContent, words_of
from palaver.messages.frozen import EMPTY
from palaver.notebook import MOST, html_table
from palaver.plurals import a_type
from palaver.prompts import Prompt, Runtime
from palaver.session import branches
from palaver.session.awaited import awaited, in_worker
from palaver.session.calls import CallHistory
from palaver.session.compaction import BudgetLike, Compactions, PolicyLike
from palaver.session.costs import cost_of_messages
from palaver.session.incoming import media_from, rendered, tools_of
from palaver.session.marks import Marks
from palaver.session.messages import Messages, message_line
from palaver.session.opened import RECORDED, OpenDialog, Top, new_session
from palaver.session.recall import recall
from palaver.session.recall_tools import answered, with_recall
from palaver.session.tree import DialogTreeNode, tree_lines
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.store.records import payloads_of
from palaver.store.redacting import RedactingStore
from palaver.transfer.landing import land
from palaver.transfer.records import from_list, to_json
from palaver.transfer.replay import Follower, LogBase, follower_of
from palaver.transfer.writer import family, stream
from palaver.view import View

if TYPE_CHECKING:
    from palaver.session.session import Session

One: TypeAlias = Message | Mapping[str, Any] | SdkObject
"""A message, as callers append it."""


class Dialog:
    """One branch of a conversation, owned by one agent.

    A dialog knows the log up to its own last write, or to the last `reload`. If another writer continued the turn first, a write raises
    `Conflict`, nothing is written, and the caller chooses between `reload()` and `fork()`. Entries of others outside the turn, and erasures,
    show in the next view. Several threads may use one object, one at a time.

    Attributes:
        session: The session, with all its branches.
        store: The store of the log.
        dialog_id: The opaque id, 32 hexadecimal digits.
        session_id: The session's opaque id.
        owner: The agent that owns it.
        opened: The log as far as this process knows it, for code that extends palaver.
        marks: Labels, pins and quarantines.
    """

    def __init__(  # noqa: PLR0913 - the last two by keyword, and only for a session
        self,
        owner: str = "assistant",
        session_name: str | None = None,
        top_prompt: Prompt | None = None,
        runtime: Runtime | None = None,
        store: Store | None = None,
        log_base: LogBase | None = None,
        *,
        within: Session | None = None,
        node: Node | None = None,
    ) -> None:
        """Create a session with this one dialog.

        Args:
            owner: The agent that owns it.
            session_name: The session's name. Default: made from the time.
            top_prompt: The prompt in force for the model's next turn.
            runtime: Resolves paths of prompts. Default: the default runtime.
            store: The store. Default: in memory.
            log_base: A replay log that follows, or the folder for one.
            within: A session that already has the dialog, and to which it calls itself; then the arguments above are not used.
            node: The place of such a dialog in the tree.

        Raises:
            InvalidInput: The store is an address: `Session.open` and `Session.create` accept one.
        """
        prompt: Top = RECORDED
        if within is None or node is None:
            _require_store(store, session_name or owner)
            known, prompt = store or MemoryStore(), top_prompt
            node = new_session(known, session_name or "", owner=owner)
            within = _session(known, node.session_id, runtime, follower_of(log_base), active=node.created_at)
            within.opened.begun[node.dialog_id] = ()
        self.session = within
        self.store = within.store
        self.dialog_id = node.dialog_id
        self.session_id = node.session_id
        self.owner = node.owner
        self.opened = OpenDialog(within.opened, node, prompt)
        self.marks = Marks(self.opened)
        self._asked: tuple[wire.Request, int] | None = None
        self._memo = wire.Memo()
        within.opened.dialogs[node.dialog_id] = self

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def session_name(self) -> str:
        """The session's name."""
        return self.session.name

    @property
    def top_prompt(self) -> Prompt | None:
        """The prompt in force for the model's next turn: the last one put, or a temporary one for a text that was put.

        A registered prompt stays in force in later processes. If their runtime does not have it, a warning says so and this is None.
        """
        return self.opened.prompt.prompt()

    @top_prompt.setter
    def top_prompt(self, prompt: Prompt | None) -> None:
        self.opened.prompt.value = prompt

    def __repr__(self) -> str:
        return f"<Dialog {self.dialog_id[:12]} owner={self.owner!r} messages={self.opened.count}>"

    def _repr_html_(self) -> str:
        """Return the newest messages, for a notebook."""
        count = len(self.messages)
        first = max(0, count - MOST)
        rows = [
            (number, message.role.value, " ".join(map(words_of, message.contents)))
            for number, message in enumerate(self.messages[first:], first)
        ]
        return html_table(repr(self)[1:-1], ("", "role", "message"), rows, earlier=first)

    # --- reading ----------------------------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> Messages:
        """All messages, oldest first: a read-only snapshot."""
        return Messages(self.store, self.opened.stretches())

    @property
    def head(self) -> Message | None:
        """The first message, or None."""
        return self.messages[0] if self.opened.count else None

    @property
    def tail(self) -> Message | None:
        """The last message, or None."""
        return self.messages[-1] if self.opened.count else None

    @property
    def cost(self) -> InvokeCost:
        """Tokens and dollars of all messages; reads all of them. Dollars that no provider reported are estimated, and also in `estimated`."""
        return cost_of_messages(self.messages.bare())

    def overview(
        self,
        remove_tail: bool = False,  # noqa: FBT001, FBT002 - a public signature of the sources
        max_length: int = 100,
        stream: TextIO | None = None,
        divider: bool = False,  # noqa: FBT001, FBT002 - as above
    ) -> str:
        """Return the messages for people, a line for each.

        Args:
            remove_tail: Whether to leave out the last message.
            max_length: How many characters of a message to show; a longer one ends in `...`.
            stream: Where the text is also written to.
            divider: Whether to put a ruler between the lines.
        """
        messages = zip(range(self.opened.count - remove_tail), self.messages.bare(), strict=False)
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
            Erased: It was erased.
        """
        return recall(self.store, self.session_id, handle, self.dialog_id)

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    @overload
    async def aappend(
        self, message: One, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message: ...
    @overload
    async def aappend(
        self, message: Iterable[One], *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> tuple[Message, ...]: ...
    async def aappend(
        self, message: Any, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message | tuple[Message, ...]:
        """Append as `append` does, without making the event loop wait."""
        return await awaited(self.store, partial(self.append, message, dialect=dialect, metadata=metadata))

    @overload
    def append(
        self, message: One, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message: ...
    @overload
    def append(
        self, message: Iterable[One], *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> tuple[Message, ...]: ...
    def append(
        self, message: object, *, dialect: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Message | tuple[Message, ...]:
        """Append a message, or several at once, all or none.

        The stored message has this dialog's id in its metadata; the caller's object does not change. A message with the results of several
        calls is stored as one message for each. After an error that leaves open whether a message was written, append the same object again: it
        is there once.

        Args:
            message: A `Message`; a dict of OpenAI's Chat Completions or Responses, Anthropic's or Gemini's interface; an answer as a provider's
                SDK returns it, with its content, usage and ids; or several of them. If the dialog made the request that an answer answers,
                and nothing was appended since, the call is also recorded.
            dialect: How dicts are written, a dialect of `palaver.read_messages`. Default: found from the dicts.
            metadata: JSON values, stored with each message.

        Returns:
            The message as it is stored; the last one of a message with several results; a tuple for several messages.

        Raises:
            TypeError: It is not a message.
            InvalidMessage: A dict is not a message of any interface.
            ProviderError: An answer reports a failure, or stops before its end.
            Conflict: Another writer was first; nothing was written.
            MissingFile: It refers to media whose bytes neither it nor the store has.
        """
        asked, at = self._asked or (None, -1)
        request = asked if at == self.opened.last.seq else None  # after another entry, an answer is not to that request
        given = tuple(messages_of(message, request, dialect))
        entries = [
            MessageEntry(message=part, bound=request.bound_for(said) if request and said.is_assistant_side else None)
            for said, _ in given
            for part in self.opened.stamped(said, metadata or EMPTY)
        ]
        if request is not None and any(answered for _, answered in given):
            self.calls.record(request)
        stored = self._write(*entries)
        return stored[-1] if is_one(message) else stored

    def _write(self, *entries: MessageEntry) -> tuple[Message, ...]:
        """Append messages that have this dialog's id, unless they are there, and return them as they are stored."""
        self._asked = None
        try:
            self.record(*entries)
        except Conflict:
            if not self.opened.wrote([entry.message.id for entry in entries]):
                raise
        if isinstance(self.store, RedactingStore):  # what is stored differs from what was passed
            return tuple(self.store.stored(entry).message for entry in entries)
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
            name: The sender. Default: the role's.
            metadata: Stored with the message.
            role: Who speaks.
        """
        if not isinstance(text, str):
            raise TypeError(f"text is a str, not {a_type(text)}.")
        return self._put(self._message(text, name, metadata, role), text)

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
            name: As for `put_text`.
            metadata: As for `put_text`.
            role: As for `put_text`.

        Raises:
            NotFound: The runtime has no prompt of this path.
            InvalidInput: Variables are missing, or a prompt without variables has arguments; nothing was appended.
        """
        chosen = self.session.runtime.get_prompt(prompt) if isinstance(prompt, str) else prompt
        if not isinstance(chosen, Prompt):
            raise TypeError(f"prompt is a Prompt or a path, not {a_type(prompt)}.")
        return self._put(self._message(rendered(chosen, prompt_args), name, metadata, role), chosen)

    def _put(self, message: Message, prompt: Prompt | str) -> Message:
        """Append a message and put a prompt into force, both or neither."""
        before, self.opened.prompt.value = self.opened.prompt.value, prompt
        try:
            return self._write(MessageEntry(message=message))[0]
        except BaseException:
            self.opened.prompt.value = before
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
            caption: A text before the image, also in the metadata.
            name: As for `put_text`.
            metadata: As for `put_text`.
            role: As for `put_text`.

        Raises:
            MissingFile: It names no file.
            InvalidMessage: It is not an image that palaver knows.
        """
        blocks: tuple[Content, ...] = (ImageContent(images=(media_from(image),)),)
        message = self._message(blocks, name, metadata, role)
        if caption is not None:
            about = {**message.metadata, "caption": caption}
            message = self._message((TextContent(content=caption), *blocks), name, about, role)
        return self.append(message)

    def _message(
        self, said: str | tuple[Content, ...], name: str | None, metadata: Mapping[str, Any] | None, role: Role | str
    ) -> Message:
        """Return a message that has the dialog's id, as `OpenDialog.stamped` would return it."""
        about = {**({} if metadata is None else metadata), "dialog_id": self.dialog_id}
        if role == Role.TOOL:  # what a tool says is a result
            return Message(role=role, content=said, name=name, metadata=about)
        blocks = (TextContent(content=said),) if isinstance(said, str) else said
        return Message(role=role, contents=blocks, name=name, metadata=about)

    def record(self, *entries: Entry, beside: bool = False) -> tuple[Handle, ...]:
        """Append entries of the log, all or none, and return their handles.

        Kinds that belong to a turn continue it. Kinds outside a turn (labels, decisions, late results, …) do not continue it, and never conflict
        with another writer.

        Args:
            entries: The entries.
            beside: Whether kinds that may be either are written outside the turn.

        Raises:
            Conflict: Another writer was first; nothing was written.
            InvalidInput: One of them may not follow.
        """
        if beside or any(not rule(entry.kind).turn for entry in entries):
            if len(entries) == 1:
                return (self.opened.annotate(entries[0]),)
            with self.store.transaction():  # all or none
                return tuple(map(self.opened.annotate, entries))
        return self.opened.append(map(self.opened.prompt.on, entries))

    def reload(self) -> Self:
        """Read what other writers have appended, and return the dialog itself."""
        self.opened.reload()
        self.opened.prompt.reload()
        return self

    areload = in_worker(reload)

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
            policy: A policy or context manager, its name or its configuration. Default: `palaver`, if there is a budget.
            budget: The size of one request, in tokens.
            at: The number of the last own entry to take into account, for an earlier view; -1 for none of them. Default: the newest known one.
            model: The model that counts tokens. Default: the one in force.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
            NotFound: There is no policy of this name, or the dialog has no entry `at`.
            PolicyFailed: The policy raised.
        """
        seen = self.opened.view(at)
        if policy is None and budget is None:
            return seen
        return self.compaction.compose(policy, budget, model=model, view=seen).view

    def request(  # noqa: PLR0913 - all but the first two by keyword
        self,
        /,
        profile: wire.Profile | str,
        model: str,
        *,
        tools: Iterable[Any] | None = None,
        recall: bool | None = None,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        **call: Any,  # noqa: ANN401 - the fields of a Call
    ) -> wire.Request:
        """Compile the request for a provider; nothing is sent. It is a mapping: pass it to the provider's SDK as `**request`.

        Args:
            profile: `openai`, `openai-responses`, `anthropic` or `gemini`; or a profile.
            model: The model.
            tools: Schemas as providers write them, or functions. Default: the dialog's tools. If the tools of this request, with `recall` and the
                `provider_tools` of the call, differ from the dialog's, they are recorded as its tools from now on, which is the only thing that is written.
            recall: Whether `recall` and `search_history` are among the tools, with which the model reads what the view leaves out; `call_tool`
                answers them. Default: as in `tools`.
            policy: As for `view`.
            budget: As for `view`.
            at: As for `view`.
            call: Further fields of `palaver.wire.Call`, such as `max_tokens` or `tool_choice`.

        Raises:
            InvalidInput: A `Call` has no such field, or an argument has another type; nothing was written.
            NotFound: There is no profile of this name.
            InfeasibleBudget: What must be sent is larger than the budget.
            InvalidRequest: The request breaks a rule of its provider: it ends on the assistant's words, which the model does not continue, so the
                next user message is missing; or it is a defect of palaver.
        """
        for name in call.keys() - wire.Call.__dataclass_fields__.keys():
            hint = f"Put a parameter of the provider's own into parameters={{{name!r}: ...}}."
            raise InvalidInput(f"A request has no field {name!r}.", hint=hint)
        made = wire.Call(model=model, **call)
        known = providers.profile(profile, model) if isinstance(profile, str) else profile
        if not isinstance(known, wire.Profile):
            raise InvalidInput(
                f"The profile is {known!r}.", hint="Pass an API's name, such as 'anthropic', or a profile."
            )
        if recall is not None and not isinstance(recall, bool):
            raise InvalidInput(f"recall is {recall!r}.", hint="Pass True, False or None.")
        if at is not None and not (tools is None and recall is None):
            raise InvalidInput(
                "A request for an earlier view has the tools of that time.",
                hint="Leave out `at`, or `tools` and `recall`.",
            )
        view = self.opened.view(at)
        if at is None:
            declared = view.tools if tools is None else tools_of(tools)
            declared = declared if recall is None else with_recall(declared, recall=recall)
            if (declared, made.provider_tools) != (view.tools, view.provided):
                self.record(Toolset(tools=declared, provided=made.provider_tools or None))
                view = self.opened.view()
        if policy is not None or budget is not None:
            view = self.compaction.compose(policy, budget, model=model, view=view, profile=known).view
        memo = self._memo if at is None else None  # an earlier view is not what the next request goes on from
        request = wire.compile(view, known, made, payloads_of(self.store, self.session_id), memo)
        request.check()
        self._asked = None if at is not None else (request, self.opened.last.seq)
        return request

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
        return answered(self.marks, name, args)

    aview = in_worker(view)

    arequest = in_worker(request)

    @cached_property
    def calls(self) -> CallHistory:
        """The recorded model calls, and the way to record the next."""
        return CallHistory(self.opened)

    @cached_property
    def compaction(self) -> Compactions:
        """Smaller views: previewed, committed, undone and redone."""
        return Compactions(self.opened)

    # --- branches ----------------------------------------------------------------------------------------------------------------------

    def fork(self, last_n: int = 0, first_k: int = 1, *, at: Handle | str | None = None) -> Dialog:
        """Branch off: a child with all messages, with those up to an entry, or with the first `first_k` and the last `last_n`.

        Nothing is copied: the child shares the entries, and later appends are separate. An entry that is not a message belongs to the message
        before it. Queued messages stay with the parent. If another writer continued the turn, the child has what this object knows; `reload` first to have all.

        Args:
            last_n: How many of the last messages to keep; 0 keeps all.
            first_k: How many of the first messages to keep, when `last_n` is not 0.
            at: The last entry that the child shares. Default: the newest.

        Raises:
            TypeError: One of the numbers is not a whole number.
            InvalidInput: One of them is negative, or `at` comes with `last_n`.
            NotFound: The dialog does not contain the entry `at`.
        """
        for name, value in (("last_n", last_n), ("first_k", first_k)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is a whole number of messages, not {a_type(value)}.")
            if value < 0:
                raise InvalidInput(f"{name} is {value}; a fork keeps 0 messages or more.")
        if at is not None and last_n:
            raise InvalidInput(
                "A fork keeps the entries up to `at`, or the last `last_n` messages; give one of the two."
            )
        self.opened.refresh()
        if at is None:
            ranges, kept = branches.window(self.opened, last_n, first_k)
            node = child_of(self.opened.node, ranges, kept, relation="fork", window=(last_n, first_k))
        else:
            ranges = upto(self.opened.spans(), self.session.place(at)._replace(block=None))
            node = child_of(self.opened.node, ranges, messages_in(self.store, ranges), relation="fork")
        child = self.session.opened.new_dialog(node)
        child.opened.prompt.value = self.opened.prompt.value  # also one that no entry names yet
        return child

    @property
    def parent(self) -> Dialog | None:
        """The dialog it was forked from, or None."""
        above = self.opened.node.parent_id
        return None if above is None else self.session.opened.dialog(above)

    @property
    def children(self) -> tuple[Dialog, ...]:
        """The dialogs forked from it, in the order of the forks."""
        below = (node for node in self.store.nodes(self.session_id) if node.parent_id == self.dialog_id)
        return tuple(self.session.opened.dialog(node.dialog_id, node) for node in below)

    @property
    def tree_node(self) -> DialogTreeNode:
        """Its place in the tree as it is now."""
        return self.session.tree[self.dialog_id]

    def tree_overview(self) -> str:
        """Return the tree from this dialog down for people, a line for each dialog."""
        return "\n".join(tree_lines(self.tree_node, self.session.opened.count))

    # --- as a dictionary ---------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the dialog as JSON values: its ancestors, itself and all below it, media included.

        `messages` is for readers; `log` is what `from_dict` restores.
        """
        kin = family(self.store, self.opened.node)
        return {
            "session_name": self.session_name,
            "owner": self.owner,
            "tree_node": self.tree_node.to_dict(),
            "top_prompt_path": self.opened.prompt.path(),
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
            log_base: A replay log that follows from now on, beginning with what was read.
            runtime: Resolves the path of the prompt. Default: the default runtime. An unknown path is a warning.
            store: The store to write to. Default: in memory.

        Raises:
            InvalidInput: It is not a dialog's dictionary, or the store has the session already.
        """
        into = store or MemoryStore()
        made = land(from_list(fields.get("log")), into).session_id
        session = _session(into, made, runtime, follower_of(log_base))
        session.opened.follow_all()
        dialog = session.opened.dialog(DialogId(fields["tree_node"]["dialog_id"]))
        dialog.top_prompt = dialog.opened.prompt.registered(fields.get("top_prompt_path"))
        return dialog


def _require_store(store: object, name: str) -> None:
    """Refuse an address: a dialog would not know when to close the store."""
    if isinstance(store, str | os.PathLike):
        hint = f"Session.open({os.fspath(store)!r}, {name!r}, create=True).root is a dialog in it."
        raise InvalidInput(f"store is {store!r}, not a store.", hint=hint)


def _session(
    store: Store, session_id: SessionId, runtime: Runtime | None, follower: Follower | None, *, active: float = 0.0
) -> Session:
    """Return the session of a dialog that is made alone."""
    from palaver.session.session import Session  # noqa: PLC0415 - a session makes its dialogs

    return Session(store, session_id, runtime, follower, active=active)
