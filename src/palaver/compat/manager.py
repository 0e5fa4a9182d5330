"""The session manager: a session as a tree of entries with one leaf, for programs that keep sessions as entries with parents.

It is a thin interface to dialogs. An entry's id is its printed handle; its parent is the entry before it in its branch. Appends and moves of
the leaf are durable when they return. The cost of an append depends only on its own size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import TracebackType
from typing import NamedTuple, Self

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import (
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    Handle,
    MessageEntry,
    ModeChange,
    ModelChange,
    Node,
    Reader,
    Run,
    Span,
    apart,
    child_of,
    common,
    decode_entry,
    entry_at,
    last_of,
    messages_in,
    path_to,
)
from palaver.messages import (
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    Message,
    Role,
    Speaker,
    TextContent,
    UserMessage,
    hydrate,
)
from palaver.messages.frozen import EMPTY
from palaver.plurals import a_type
from palaver.prompts import Runtime
from palaver.session import Dialog, Session
from palaver.session.branches import account, lowest_trust, view_of
from palaver.store.connect import StoreLike, find_session, opened_store, user_store
from palaver.store.protocol import SessionRecord
from palaver.store.records import payloads_of
from palaver.transfer.copies import copy_session
from palaver.view import Block, Drop, Exchange, Insert, Plan, Reason, View, apply, fold, in_force

PARENT = "parent_session"
"""The key in a session's metadata that names the session it was copied from."""

_THINKING = "thinking"
_OFF = "off"
_ROOT = "root"
_BEFORE_ALL = (-1, 0)
_CHOICES = frozenset({"mode_change", "model_change"})
_ANSWERS = frozenset({Role.ASSISTANT.value, Role.TOOL_CALL.value})

_ENVELOPES = {
    Role.COMPACTION_SUMMARY: "The conversation before this point was compacted into this summary:\n\n<summary>\n{}\n</summary>",
    Role.BRANCH_SUMMARY: "The conversation came back from another branch. Summary of that branch:\n\n<summary>\n{}\n</summary>",
}
"""The text in which a model reads summaries, as pi-mono renders them: between a fixed prefix and suffix."""


# --- what a manager returns ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """A session as a whole.

    Attributes:
        id: The session's id.
        timestamp: When it was created, in seconds since 1970-01-01 UTC.
        cwd: Its working folder, or empty.
        name: Its name.
        parent_session: The id of the session it was copied from, or None.
        metadata: Its metadata.
    """

    id: SessionId
    timestamp: float
    cwd: str = ""
    name: str = ""
    parent_session: str | None = None
    metadata: Mapping[str, object] = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """An entry with its parent.

    Attributes:
        id: The printed form of its handle.
        parent_id: The id of the entry that it follows, or None.
        type: `message`, `custom_message`, `compaction`, `branch_summary`, `label`, `model_change`, `thinking_level_change`, `custom`, or the
            kind of an entry that only agents write.
        timestamp: When it was written, in seconds since 1970-01-01 UTC.
        entry: The entry of the log.
    """

    id: str
    parent_id: str | None
    type: str
    timestamp: float
    entry: Entry

    @property
    def message(self) -> Message | None:
        """The message of a message entry, without the bytes of its media."""
        return self.entry.message if isinstance(self.entry, MessageEntry) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionTreeNode:
    """An entry and the entries that follow it.

    Attributes:
        entry: The entry.
        children: The entries that follow it, by time.
        label: Its label, or None.
    """

    entry: SessionEntry
    children: tuple[SessionTreeNode, ...] = ()
    label: str | None = None

    def __repr__(self) -> str:
        return f"<SessionTreeNode {self.entry.id} {self.entry.type} children={len(self.children)}>"


class ModelInForce(NamedTuple):
    """The model that was chosen or that answered last."""

    provider: str
    model_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The context at a leaf.

    Attributes:
        messages: The messages that the model sees, in order, with typed summaries, and the custom messages between them.
        thinking_level: The thinking level in force; `off` if none was chosen.
        model: The model in force, or None.
    """

    messages: tuple[Message, ...] = ()
    thinking_level: str = _OFF
    model: ModelInForce | None = None

    def to_llm_messages(self) -> tuple[Message, ...]:
        """Return the messages for a model: summaries as user messages in an envelope, and custom messages only with `in_context`."""
        return tuple(sent for message in self.messages if (sent := _sent(message)) is not None)


def _sent(message: Message) -> Message | None:
    envelope = _ENVELOPES.get(message.role)
    if envelope is not None:
        text = envelope.format(message.text_content())
        return UserMessage(id=message.id, timestamp=message.timestamp, content=text, speaker=Speaker.SUMMARY)
    if isinstance(message, CustomMessage):
        contents, speaker = message.contents, message.speaker
        return UserMessage(id=message.id, contents=contents, speaker=speaker) if message.in_context else None
    return message


# --- the manager --------------------------------------------------------------------------------------------------------------------------


def _store(store: StoreLike | None) -> StoreLike:
    return user_store() if store is None else store


class SessionManager:
    """A session with a leaf, the end of a dialog, after which the next entry is appended. Moving the leaf forks that dialog.

    Where no store is named, the user's own is used: the one of the command line.

    Attributes:
        session: The session.
        store: Its store.
        dialog: The dialog that ends at the leaf.
    """

    def __init__(self, session: Session, dialog: Dialog | None = None) -> None:
        """Begin at the end of a dialog. Default: the newest dialog of the session."""
        self.session = session
        self.store = session.store
        self.dialog = (dialog or session.newest).reload()

    # --- creating, opening, listing -----------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        cwd: str = "",
        store: StoreLike | None = None,
        *,
        name: str = "",
        owner: str = "assistant",
        runtime: Runtime | None = None,
    ) -> Self:
        """Create a session for a working folder; it is durable at once.

        Args:
            cwd: The working folder.
            store: A store, or the address of one. Default: the user's own store, which the command line uses, too.
            name: A name for people. Default: made from the time.
            owner: The agent that owns it.
            runtime: Resolves paths of prompts.
        """
        return cls(Session.create(_store(store), name, owner=owner, workdir=cwd, runtime=runtime))

    @classmethod
    def in_memory(cls, cwd: str = "") -> Self:
        """Create a session that ends with the process."""
        return cls.create(cwd, "memory:")

    @classmethod
    def open(cls, reference: str, store: StoreLike | None = None, *, runtime: Runtime | None = None) -> Self:
        """Open a session by id, name or the first digits of its id, at its last leaf.

        Raises:
            NotFound: No session matches.
            Ambiguous: Several ids begin with these digits.
        """
        return cls(Session.open(_store(store), reference, runtime=runtime))

    @classmethod
    def continue_recent(cls, cwd: str = "", store: StoreLike | None = None, *, runtime: Runtime | None = None) -> Self:
        """Open the last active session of a working folder, or of all sessions without a folder. Create one if there is none."""
        opened, owned = opened_store(_store(store), create=True)
        recent = next((record.session_id for record in opened.sessions() if cwd in {"", record.workdir}), None)
        session_id = recent or Session.create(opened, workdir=cwd).session_id
        return cls(Session(opened, session_id, runtime, owned=owned))

    @classmethod
    def fork_from(cls, source: str, cwd: str, store: StoreLike | None = None) -> Self:
        """Copy a session with all its branches into a new one for another working folder; `header.parent_session` names the old one."""
        opened, owned = opened_store(_store(store), create=False)
        session_id = find_session(opened, source).record.session_id
        copy = copy_session(opened, session_id, workdir=cwd, metadata={PARENT: session_id})
        return cls(Session(opened, copy.session_id, owned=owned))

    @staticmethod
    def list(cwd: str | None = None, store: StoreLike | None = None) -> tuple[SessionRecord, ...]:
        """Return the records of sessions, last active first: those of a working folder, or all without a folder."""
        opened, owned = opened_store(_store(store), create=False)
        try:
            return tuple(record for record in opened.sessions() if cwd in {None, record.workdir})
        finally:
            if owned:
                opened.close()

    # --- what it is -------------------------------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> SessionId:
        """The session's id."""
        return self.session.session_id

    @property
    def header(self) -> SessionHeader:
        """The session as a whole."""
        record = self.session.record
        above = record.metadata.get(PARENT)
        return SessionHeader(
            id=record.session_id,
            timestamp=record.created_at,
            cwd=record.workdir,
            name=record.name,
            parent_session=above if isinstance(above, str) else None,
            metadata=record.metadata,
        )

    @property
    def leaf_id(self) -> str | None:
        """The id of the last entry before the next append, or None before the first."""
        place = self._leaf
        return None if place is None else str(place)

    @property
    def _leaf(self) -> Handle | None:
        return last_of(self.dialog.opened.spans())

    # --- appending --------------------------------------------------------------------------------------------------------------------

    def append_message(self, message: Message) -> str:
        """Append a message and return the id of its entry. Results of several calls become separate entries; the last id is returned.

        Raises:
            TypeError: It is not a message.
            Conflict: Another writer was first; nothing was written.
        """
        if not isinstance(message, Message):
            raise TypeError(f"append_message needs a message, not {a_type(message)}.")
        self.dialog.append(message)
        return str(self._leaf)

    def append_custom_message(
        self,
        custom_type: str,
        content: str | Iterable[Content] = "",
        display: bool = True,  # noqa: FBT001, FBT002 - a public signature of the sources
        details: object = None,
        *,
        in_context: bool = False,
    ) -> str:
        """Append a message of an extension, and return the id of its entry. No model sees it unless `in_context` is True.

        Args:
            custom_type: Its type, for dispatch.
            content: A text, or content blocks.
            display: Whether user interfaces should show it; stored in the metadata.
            details: Stored with it; JSON values.
            in_context: Whether the model sees it, as a user message of the harness.
        """
        blocks = ((TextContent(content),) if content else ()) if isinstance(content, str) else tuple(content)
        metadata = {"display": display} | ({} if details is None else {"details": details})
        message = CustomMessage(custom_type=custom_type, contents=blocks, in_context=in_context, metadata=metadata)
        return self.append_message(message)

    def append_custom(self, custom_type: str, data: object = None) -> str:
        """Append a record of an extension, which no model ever sees, and return its id."""
        return self._append(Custom(custom_type=custom_type, data=data))

    def append_model_change(self, provider: str, model_id: str) -> str:
        """Append a change of the model, and return the entry's id."""
        return self._append(ModelChange(model=model_id, provider=provider))

    def append_thinking_level_change(self, thinking_level: str) -> str:
        """Append a change of the thinking level, and return the entry's id."""
        return self._append(ModeChange(mode=_THINKING, value=thinking_level))

    def append_compaction(
        self, summary: str, first_kept_entry_id: str | None, tokens_before: int, details: object = None
    ) -> str:
        """Append a compaction: a summary replaces everything before an entry. Return the entry's id; the log keeps everything.

        The newest user message, pinned entries and open calls always stay, and an exchange stays whole. The new summary also replaces an
        earlier one.

        Args:
            summary: The text that the model sees first from now on.
            first_kept_entry_id: The first entry that stays in view. If it is not in this branch, only the protected entries stay.
            tokens_before: The size of the context before, in tokens.
            details: Stored with it; JSON values.

        Raises:
            Conflict: Another compaction was committed, or an entry was erased, after this manager last read or wrote.
        """
        view = self.dialog.view()
        try:
            first = None if first_kept_entry_id is None else self._place(first_kept_entry_id)
        except NotFound:  # another program's id: keep only the summary and later entries
            first = None
        plan = _compacting(view, _PathOrder(self.dialog.opened.spans()), summary, first)
        self.dialog.compaction.write(apply(view, plan), policy=plan.policy, before=tokens_before, details=details)
        return str(self._leaf)

    def append_label(self, target_id: str, label: str | None) -> str:
        """Label an entry for people, or remove the label with None, and return the id of the new entry. No model sees it.

        Raises:
            NotFound: The entry does not exist.
        """
        return str(self.dialog.marks.label(self._place(target_id), label))

    def _append(self, entry: Entry) -> str:
        self.dialog.record(entry)
        return str(self._leaf)

    # --- moving the leaf --------------------------------------------------------------------------------------------------------------

    def branch(self, from_id: str) -> None:
        """Move the leaf to an entry, in a new branch that the next append continues. This is durable and removes nothing.

        Raises:
            NotFound: The entry does not exist.
        """
        self._move(self._place(from_id))

    def reset_leaf(self) -> None:
        """Move the leaf before the first entry, so that the next append starts over."""
        self._move(None)

    def branch_with_summary(self, summary: str, from_id: str | None = None) -> str:
        """Move the leaf, append a summary of the old branch there, and return the id of that entry.

        Args:
            summary: What happened on the old branch.
            from_id: The entry to continue from; None for the beginning.

        Raises:
            NotFound: The entry does not exist.
        """
        target = None if from_id is None else self._place(from_id)
        left = self._leaf
        path = () if left is None else path_to(self.store, left)
        kept = () if target is None else path_to(self.store, target)
        sources = apart(path, kept)
        branch = self.dialog.dialog_id if left is None else left.dialog
        trust = lowest_trust(view_of(self.store, branch, sources).exchanges)
        self._move(target)  # after reading: what was left is another dialog then
        return self._append(account(branch, last_of(common(path, kept)), summary, sources, trust))

    def _move(self, place: Handle | None) -> None:
        if place == self._leaf:
            return
        if place is None:
            self.dialog = self.session.new_dialog(self.dialog.owner)  # a first entry has no ancestors to share
            return
        ranges = path_to(self.store, place)
        kept = messages_in(self.store, ranges)
        node = child_of(self.store.node(place.dialog), ranges, kept, relation="fork", owner=self.dialog.owner)
        self.dialog = self.session.opened.new_dialog(node)

    # --- reading ----------------------------------------------------------------------------------------------------------------------

    def build_session_context(self, leaf_id: str | None = None) -> SessionContext:
        """Return the context at the leaf, or at another entry: the messages, the thinking level and the model in force.

        The instructions come first, then a compaction's summary, the messages it kept, and later messages. Branch summaries and custom messages
        (for user interfaces) are in the order in which they were written.
        """
        place = self._leaf if leaf_id is None else self._place(leaf_id)
        if place is None:
            return SessionContext()
        spans = path_to(self.store, place)
        level, model = _in_force(self.store, spans)
        messages = self._messages(fold(self.store, place.dialog, place.seq), spans)
        return SessionContext(messages=tuple(messages), thinking_level=level, model=model)

    def _messages(self, view: View, spans: Sequence[Span]) -> Sequence[Message]:
        """Return the messages of a view as session messages, with the custom messages between them."""
        ranks = _PathOrder(spans)
        ranked: list[tuple[tuple[int, int], Message]] = []
        for _, group in groupby(view.system, key=_entry_of):
            ranked.append((_BEFORE_ALL, self._shown(tuple(group), Role.SYSTEM)))
        checkpoint = _checkpoint(self.store, spans)
        firsts = [exchange.first for exchange in view.exchanges if exchange.first is not None]
        begin = min(ranks.of(place) for place in (*firsts, checkpoint[0])) if checkpoint else _BEFORE_ALL
        at = _BEFORE_ALL
        for exchange in view.exchanges:
            at = (
                at if exchange.first is None else ranks.of(exchange.first)
            )  # a derived text stays where the view has it
            ranked += [(at, message) for message in self._said(exchange, checkpoint)]
        custom = ((ranks.of(place), place) for place in self._custom(spans))
        ranked += [(rank, self._recorded(place)) for rank, place in custom if rank >= begin]
        return [message for _, message in sorted(ranked, key=lambda pair: pair[0])]

    def _said(self, exchange: Exchange, checkpoint: tuple[Handle, Compaction] | None) -> Iterator[Message]:
        """Yield the messages of an exchange. The wire adds missing results."""
        for turn in exchange.turns:
            blocks = [block for block in turn.blocks if exchange.derived or not block.derived]
            if exchange.derived:
                yield from (self._summary(block, checkpoint) for block in blocks)
            elif turn.role is Role.TOOL:
                yield from (self._shown(tuple(group), turn.role) for _, group in groupby(blocks, key=_entry_of))
            elif blocks:
                yield self._shown(tuple(blocks), turn.role)

    def _summary(self, block: Block, checkpoint: tuple[Handle, Compaction] | None) -> Message:
        """Return a derived block as the summary of a branch or of a compaction."""
        text = block.content.content if isinstance(block.content, TextContent) else ""
        if block.origin is None:
            place, before = checkpoint or (None, None)
            return CompactionSummaryMessage(
                summary=text,
                tokens_before=before.tokens_before if before else 0,
                timestamp=before.at if before else 0.0,
                id=f"{place}#{block.derived}",
            )
        entry = entry_at(self.store, block.origin)
        if isinstance(entry, MessageEntry):
            return entry.message
        left = entry.left if isinstance(entry, BranchSummary) else None
        from_id = _ROOT if left is None else str(left.handle)
        return BranchSummaryMessage(summary=text, from_id=from_id, id=str(_entry_of(block)), timestamp=entry.at)

    def _custom(self, spans: Sequence[Span]) -> Iterator[Handle]:
        """Yield the custom messages that no model sees."""
        for span in spans:
            for header in self.store.headers(span.dialog, span.start, span.stop):
                if header.kind == "message" and header.role == Role.CUSTOM and not header.blocks:
                    yield Handle(span.dialog, header.seq)

    def _recorded(self, place: Handle) -> Message:
        entry = entry_at(self.store, place)
        assert isinstance(entry, MessageEntry)  # noqa: S101 - checked by its header
        return hydrate(entry.message, payloads_of(self.store, self.session_id))

    def _shown(self, blocks: tuple[Block, ...], role: Role) -> Message:
        """Return the message of blocks: the recorded one if unchanged, or else a copy with the view's content."""
        contents = tuple(block.content for block in blocks)
        place = next((place for block in blocks if (place := _entry_of(block)) is not None), None)
        if place is None or self.store.header(place.dialog, place.seq).kind != "message":
            return Message.from_dict({"role": role, "contents": contents})
        recorded = self._recorded(place)
        changed = recorded.model_copy(update={"contents": contents})
        return recorded if recorded == changed else hydrate(changed, payloads_of(self.store, self.session_id))

    def get_entry(self, entry_id: str) -> SessionEntry:
        """Return an entry.

        Raises:
            NotFound: The entry does not exist.
        """
        place = self._place(entry_id)
        (entry,) = self._entries([Span(place.dialog, place.seq, place.seq + 1)])
        return entry

    def get_entries(self) -> tuple[SessionEntry, ...]:
        """Return all entries of all branches, branch after branch."""
        return tuple(self._entries(Span(dialog, 0, self.store.last(dialog).seq + 1) for dialog in self._nodes()))

    def get_branch(self, from_id: str | None = None) -> tuple[SessionEntry, ...]:
        """Return the entries from the first one to the leaf, or to another entry."""
        place = self._leaf if from_id is None else self._place(from_id)
        return () if place is None else tuple(self._entries(path_to(self.store, place)))

    def get_children(self, entry_id: str | None) -> tuple[SessionEntry, ...]:
        """Return the entries that follow an entry, by time; the first entries for None."""
        place = None if entry_id is None else self._place(entry_id)
        nodes = self._nodes().values()
        spans = [Span(node.dialog_id, 0, 1) for node in nodes if last_of(node.ranges) == place]
        if place is not None:
            spans.append(Span(place.dialog, place.seq + 1, place.seq + 2))
        there = [span for span in spans if self.store.last(span.dialog).seq >= span.start]
        return tuple(sorted(self._entries(there), key=lambda entry: entry.timestamp))

    def get_tree(self) -> tuple[SessionTreeNode, ...]:
        """Return the whole tree: the first entries, each with its followers. This does not recurse, at any depth."""
        labels, entries = self.labels, self.get_entries()
        below: dict[str | None, list[SessionEntry]] = {}
        for entry in entries:
            below.setdefault(entry.parent_id, []).append(entry)
        made: dict[str, SessionTreeNode] = {}
        for entry in reversed(entries):  # followers are created after an entry
            children = sorted(below.get(entry.id, ()), key=lambda entry: entry.timestamp)
            nodes = tuple(made.pop(child.id) for child in children)
            made[entry.id] = SessionTreeNode(entry=entry, children=nodes, label=labels.get(entry.id))
        return tuple(made[entry.id] for entry in sorted(below.get(None, ()), key=lambda entry: entry.timestamp))

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels in force in all branches, by entry id. Reads the headers of the session."""
        return {str(place): label for place, label in self.session.labels.items()}

    def get_label(self, entry_id: str) -> str | None:
        """Return an entry's label, or None."""
        return self.labels.get(str(self._place(entry_id)))

    def _nodes(self) -> dict[DialogId, Node]:
        return {node.dialog_id: node for node in self.store.nodes(self.session_id)}

    def _entries(self, spans: Iterable[Span]) -> Iterator[SessionEntry]:
        """Yield entries with their parents: the previous entry in the dialog, or the last inherited one."""
        nodes = self._nodes()
        for span in spans:
            inherited = last_of(nodes[span.dialog].ranges)
            for seq, body in self.store.bodies(span.dialog, span.start, span.stop):
                parent = Handle(span.dialog, seq - 1) if seq else inherited
                entry = decode_entry(body)
                yield SessionEntry(
                    id=str(Handle(span.dialog, seq)),
                    parent_id=None if parent is None else str(parent),
                    type=_type_of(entry),
                    timestamp=entry.at,
                    entry=entry,
                )

    def _place(self, entry_id: str) -> Handle:
        """Return the handle of an entry.

        Raises:
            NotFound: The text is not a handle.
        """
        try:
            return self.session.place(entry_id)._replace(block=None)
        except InvalidInput as error:
            raise NotFound(str(entry_id), what="entry", hint="Use an id that an append returned.") from error

    # --- other sessions -----------------------------------------------------------------------------------------------------------------

    def create_branched_session(self, leaf_id: str) -> SessionManager:
        """Copy the path to an entry into a new session; `header.parent_session` names this one. Labels on the path are kept.

        Raises:
            InvalidInput: The entry does not exist.
        """
        try:
            place = self._place(leaf_id)
        except NotFound as error:
            raise InvalidInput(f"There is no entry {leaf_id!r} to branch from.") from error
        workdir = self.session.record.workdir
        copy = copy_session(
            self.store, self.session_id, workdir=workdir, metadata={PARENT: self.session_id}, leaf=place
        )
        made = SessionManager(Session.open(self.store, copy.session_id))
        there, labels = made.labels, self.labels
        for entry in self.get_branch(leaf_id):
            target = copy.place(self._place(entry.id))
            if target is not None and there.get(str(target)) != labels.get(entry.id):  # set on another branch
                made.append_label(str(target), labels.get(entry.id))
        return made

    def reload(self) -> Self:
        """Read entries of other writers, and return the manager itself."""
        self.dialog.reload()
        return self

    def close(self) -> None:
        """Close the store, if it was opened for this manager."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SessionManager session={self.session_id[:12]} leaf={self.leaf_id}>"


# --- helpers --------------------------------------------------------------------------------------------------------------------------------


class _PathOrder:
    """The order of entries along a path; an entry that is not on it comes last."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans

    def of(self, place: Handle | None) -> tuple[int, int]:
        index = next((n for n, span in enumerate(self._spans) if place in span), len(self._spans))
        return index, -1 if place is None else place.seq


def _compacting(view: View, ranks: _PathOrder, summary: str, first: Handle | None) -> Plan:
    """Return the plan of a compaction whose summary replaces everything before an entry."""
    protected, kept_from = view.protected(), ranks.of(first)
    gone = [
        index
        for index, exchange in enumerate(view.exchanges)
        if index not in protected
        and max((ranks.of(Handle(run.dialog, run.stop - 1)) for run in exchange.runs), default=(0, 0)) < kept_from
    ]
    left = tuple(view.exchanges[index] for index in gone)
    sources = tuple(dict.fromkeys(run for exchange in left for run in _sources(exchange)))
    insert = Insert(before=0, text=summary, label="summary", sources=sources, trust=lowest_trust(left))
    drops = tuple(Drop(index=index, reason=Reason.COMPACTED) for index in gone)
    return Plan(policy="summary", drops=drops, inserts=(insert,))


def _sources(exchange: Exchange) -> tuple[Run, ...]:
    if exchange.derived:
        return tuple(run for block in exchange.blocks() for run in block.sources)
    return tuple(map(Run.of, exchange.runs))


def _entry_of(block: Block) -> Handle | None:
    return None if block.origin is None else block.origin._replace(block=None)


def _checkpoint(reader: Reader, spans: Sequence[Span]) -> tuple[Handle, Compaction] | None:
    """Return the newest compaction on a path, and its place."""
    for span in reversed(spans):
        seq, entry = in_force(reader, span.dialog, reader.header(span.dialog, span.stop - 1).view_base)
        if seq >= span.start:
            return (Handle(span.dialog, seq), entry) if isinstance(entry, Compaction) else None
    return None


def _type_of(entry: Entry) -> str:
    """Return the type of an entry, as session files with parents name it."""
    if isinstance(entry, MessageEntry):
        return "custom_message" if isinstance(entry.message, CustomMessage) else "message"
    if isinstance(entry, ModeChange) and entry.mode == _THINKING:
        return "thinking_level_change"
    return "custom" if isinstance(entry, Custom) else entry.kind


def _in_force(reader: Reader, spans: Sequence[Span]) -> tuple[str, ModelInForce | None]:
    """Return the thinking level and the model that were chosen last. A model that answered counts as chosen."""
    level, model = "", None
    for span in reversed(spans):
        for header in reader.headers(span.dialog, span.start, span.stop, reverse=True):
            if level and model:
                return level, model
            if header.kind not in _CHOICES and header.role not in _ANSWERS:
                continue
            match entry_at(reader, Handle(span.dialog, header.seq)):
                case ModeChange(mode="thinking", value=value) if not level:
                    level = value or _OFF
                case ModelChange(provider=provider, model=name) if model is None:
                    model = ModelInForce(provider, name)
                case MessageEntry(message=message) if model is None and message.model:
                    extra = message.__pydantic_extra__ or {}
                    model = ModelInForce(str(extra.get("provider", "")), message.model)
    return level or _OFF, model
