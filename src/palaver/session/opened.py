"""What a session and its dialogs share while a process uses them: the open session, and each dialog as far as the process knows it."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from palaver.errors import Conflict, MissingFile, NotFound, PalaverError
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id, now, unchosen_name
from palaver.log import (
    NOTHING,
    Entry,
    Handle,
    Header,
    MessageEntry,
    Node,
    Span,
    Stretch,
    body_digest,
    decode_entry,
    draft,
    entry_at,
    erased_since,
    joined,
    stretches,
)
from palaver.messages import FrozenDict, Message, Role, ToolMessage, media_of
from palaver.messages.frozen import EMPTY
from palaver.plurals import a_type
from palaver.prompts import Prompt, Runtime, get_default_runtime, temporary_prompt
from palaver.session.recent import Recent, Row
from palaver.store.protocol import SessionRecord, Store
from palaver.transfer.landing import ReplayLogWarning
from palaver.transfer.replay import Follower
from palaver.view import Fold, View, fold, header_at

_TICK = 1e-6
"""Seconds between two entries when the clock does not advance or was set back."""

_ANSWERS = frozenset({Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL})
"""Roles of the model and its tools: their messages do not say which prompt is in force."""

D = TypeVar("D")


def new_session(
    store: Store,
    name: str = "",
    *,
    owner: str = "assistant",
    **fields: Any,  # noqa: ANN401 - of a `SessionRecord`
) -> Node:
    """Write a session with its first dialog, in one step, and return the dialog's node."""
    at, session_id = now(), new_session_id()
    known = name or unchosen_name(time.strftime("%Y%m%d_%H%M%S", time.gmtime(at)), session_id)
    root = Node(dialog_id=new_dialog_id(session_id), session_id=session_id, owner=owner, created_at=at)
    store.create_session(SessionRecord(session_id=session_id, name=known, created_at=at, **fields), root)
    return root


class OpenSession(Generic[D]):
    """A session in use. All of its dialogs in a process share it, and a dialog is one object in it.

    Attributes:
        store: The store.
        session_id: The opaque id.
        runtime: Resolves paths of prompts.
        dialogs: The dialogs in use; each enters itself.
        begun: The newest entries of dialogs that were just read, or made: none of these need be read again when the dialog is opened.
    """

    def __init__(
        self,
        store: Store,
        session_id: SessionId,
        make: Callable[[Node], D],
        runtime: Runtime | None = None,
        follower: Follower | None = None,
        *,
        active: float = 0.0,
    ) -> None:
        """Open a session; nothing is read yet.

        Args:
            store: The store.
            session_id: The session.
            make: Returns the object of a dialog.
            runtime: Resolves paths of prompts. Default: the default runtime.
            follower: Gets every write after the store acknowledged it.
            active: When the session was last active, if that is known.
        """
        self.store = store
        self.session_id = session_id
        self.runtime = runtime or get_default_runtime()
        self.dialogs: dict[DialogId, D] = {}
        self.begun: dict[DialogId, tuple[Row, ...]] = {}
        self._make = make
        self._follower = follower
        self._latest = active

    @property
    def record(self) -> SessionRecord:
        """The session's record in the store."""
        return self.store.session(self.session_id)

    def dialog(self, dialog_id: DialogId, node: Node | None = None) -> D:
        """Return the one object of a dialog; the node is read unless the caller has it."""
        return self.dialogs.get(dialog_id) or self._make(node or self.store.node(dialog_id))

    def root(self) -> D | None:
        """Return the dialog to continue, read with its newest entries; None when there is none."""
        found = self.store.root(self.session_id)
        if found is None:
            return None
        node, rows = found
        if rows and node.dialog_id not in self.dialogs:
            self.begun[node.dialog_id] = rows
        return self.dialog(node.dialog_id, node)

    def new_dialog(self, node: Node) -> D:
        """Write a node, with the present time, and return its dialog."""
        made = self.store.create_dialog(replace(node, created_at=self.tick(now())))
        self.begun[made.dialog_id] = ()
        return self.dialog(made.dialog_id, made)

    def tick(self, at: float) -> float:
        """Return a time, or one just after the session's newest if that is later: a clock that was set back makes no branch older."""
        latest = self._latest or self.record.updated_at  # read once: later times are this process's own
        self._latest = at if at > latest else latest + _TICK
        return self._latest

    def count(self, dialog_id: str) -> int:
        """Return the number of a dialog's messages as the store has it now."""
        known = DialogId(dialog_id)
        return self.store.node(known).inherited + self.store.last(known).number

    # --- the replay log ---------------------------------------------------------------------------------------------------------------

    def follow(self, node: Node, upto: int) -> None:
        """Bring the follower up to a dialog's own entry `upto`."""
        if self._follower is not None:
            self._follower.follow(self.store, node, upto)

    def follow_all(self) -> None:
        """Bring the follower up to date with every dialog. Its failures are warnings."""
        if self._follower is None:
            return
        try:
            for node in self.store.nodes(self.session_id):
                self.follow(node, self.store.last(node.dialog_id).seq)
        except PalaverError as error:
            warnings.warn(f"The replay log could not be brought up to date: {error}", ReplayLogWarning, stacklevel=3)

    def forget(self) -> None:
        """Forget the dialogs, and let the follower remove what the store no longer has."""
        self.dialogs.clear()
        if self._follower is not None:
            self._follower.forget(self.store, self.session_id)


# --- writing --------------------------------------------------------------------------------------------------------------------------


def append(
    store: Store, dialog_id: DialogId, entries: Iterable[Entry], turn_head: int, last: Header | None = None
) -> tuple[Row, ...]:
    """Append entries that belong to the turn, with their media, all or none (`Store.append`).

    Raises:
        Conflict: Another writer was first, and nothing was written.
        InvalidInput: An entry may not follow.
    """
    drafts, payloads = [], list[bytes]()
    for entry in entries:
        ready, media = draft(entry)
        drafts.append(ready)
        payloads += media.values()
    with (
        _storing(store, dialog_id, payloads) if payloads else nullcontext()
    ):  # most entries have no media, and need no transaction
        headers = store.append(dialog_id, drafts, turn_head, last)
    return tuple(zip(headers, (ready.body for ready in drafts), strict=True))


def annotate(store: Store, dialog_id: DialogId, entry: Entry, last: Header | None = None) -> Row:
    """Write an entry outside the turn, with its media (`Store.annotate`).

    Raises:
        Conflict: `last` is not the newest header.
        InvalidInput: The entry may not be outside a turn.
    """
    ready, media = draft(entry)
    with _storing(store, dialog_id, media.values()):
        return store.annotate(dialog_id, ready, last), ready.body


@contextmanager
def _storing(store: Store, dialog_id: DialogId, payloads: Collection[bytes]) -> Iterator[None]:
    """Store payloads in one step with the entries that name them, so that no erasure or sweep removes them in between."""
    if not payloads:
        yield
        return
    with store.transaction():
        session_id = store.node(dialog_id).session_id
        for payload in payloads:
            store.put_blob(session_id, payload)
        yield


# --- a dialog -------------------------------------------------------------------------------------------------------------------------


class OpenDialog:
    """A dialog as far as this process wrote or read it.

    A write that continues the turn is compared with the newest known entry: if another writer was first, the store raises `Conflict` and
    nothing is written. Several threads may use one object, one at a time: each write locks it.

    Attributes:
        session: The session.
        store: The store.
        node: The dialog's place in the tree.
        dialog_id: The opaque id.
        recent: Reads the log, and what this process knows of the dialog's newest entries without asking the store.
        last: The newest known header; `NOTHING` in an empty dialog.
        changes: How often something that was read is different now: erased, or rolled back with its transaction. What was computed before is void.
        prompt: The prompt in force.
    """

    def __init__(self, session: OpenSession[Any], node: Node, prompt: Top) -> None:
        """Read the newest entries, unless the session has them."""
        self.session = session
        self.store = session.store
        self.node = node
        self.dialog_id = node.dialog_id
        self.recent = Recent(session.store, node)
        self.changes = 0
        self.prompt = PromptInForce(self, prompt)
        self._lock = threading.RLock()
        begun = session.begun.pop(node.dialog_id, None)
        if begun is not None:
            self.recent.start(begun)
        self._newest = self._look() if begun is None else begun[-1][0] if begun else NOTHING
        self.last = self._newest
        self._looked = self.last.seq
        self._fold: Fold | None = None
        self._folded = 0
        session.follow(node, self.last.seq)

    # --- what it contains -------------------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of messages."""
        return self.node.inherited + self.last.number

    def spans(self) -> tuple[Span, ...]:
        """Return the spans of its entries, its ancestors' first."""
        return joined((*self.node.ranges, Span(self.dialog_id, 0, self.last.seq + 1)))

    def stretches(self) -> tuple[Stretch, ...]:
        """Return the spans with their counts of messages, its own entries last."""
        last = self.last
        if last.seq < 0:
            return self._inherited
        return (*self._inherited, Stretch(Span(self.dialog_id, 0, last.seq + 1), 0, self.node.inherited, last.number))

    @cached_property
    def _inherited(self) -> tuple[Stretch, ...]:
        return stretches(self.store, self.node.ranges)

    def view(self, at: int | None = None) -> View:
        """Return the view of everything up to an own entry (None: the newest), from the view before and what is new."""
        self.refresh()
        return self.known_view(at)

    def known_view(self, at: int | None = None) -> View:
        """Return a view as `view` does, of what is known without asking the store for more."""
        last = self.last
        if at is not None and not -1 <= at <= last.seq:
            raise NotFound(f"{self.dialog_id[:12]}:{at}", what="entry", hint=f"The newest entry has number {last.seq}.")
        if self._fold is None or self._folded != self.changes:  # what was folded is void
            self._fold, self._folded = Fold(self.recent, self.node), self.changes
        if at is None or at >= last.seq:
            return self._fold.view(last)
        return fold(self.store, self.dialog_id, at)

    # --- writing ----------------------------------------------------------------------------------------------------------------------

    def stamped(self, message: Message, metadata: Mapping[str, Any] = EMPTY) -> list[Message]:
        """Return a message as the dialog stores it: with the dialog's id in its metadata, and one message for each result of a tool.

        Args:
            message: The message.
            metadata: JSON values, added to its own.

        Raises:
            TypeError: The metadata is not a mapping.
            InvalidMessage: The metadata cannot be written as JSON.
            MissingFile: It refers to media whose bytes neither it nor the store has.
        """
        for media in media_of(message):
            known = media.data is not None or media.url
            if not known and not self.store.has_blob(self.node.session_id, BlobId(media.digest)):
                raise MissingFile(media.digest, what="media payload", hint="Neither the message nor the store has it.")
        if not isinstance(metadata, Mapping):
            raise TypeError(f"metadata is a mapping, not {a_type(metadata)}.")
        if metadata:
            message = message.model_copy(update={"metadata": {**message.metadata, **metadata}})
        return [self._stamped(part) for part in (message.split() if isinstance(message, ToolMessage) else (message,))]

    def _stamped(self, message: Message) -> Message:
        if message.metadata.get("dialog_id") == self.dialog_id:
            return message
        metadata = FrozenDict({**message.metadata, "dialog_id": self.dialog_id})
        return BaseModel.model_copy(message, update={"metadata": metadata})  # valid before, so valid now

    def append(self, entries: Iterable[Entry]) -> tuple[Handle, ...]:
        """Append entries that belong to the turn, with their media, all or none, and return their handles.

        Raises:
            Conflict: Another writer was first; nothing was written.
            InvalidInput: An entry may not follow.
        """
        timed = list(map(self._timed, entries))
        with self._lock:
            head = self.last.turn_head
            rows = self._written(lambda last: append(self.store, self.dialog_id, timed, head, last))
            if rows:
                self._note(rows, rows[-1][0])
        return tuple(Handle(self.dialog_id, header.seq) for header, _body in rows)

    def annotate(self, entry: Entry, check: Callable[[Header], None] | None = None) -> Handle:
        """Write an entry outside the turn, with its media, and return its handle.

        Args:
            entry: The entry.
            check: Raises to refuse the entry, given the newest header. No other writer comes between it and the write.

        Raises:
            InvalidInput: The entry may not be outside a turn.
        """
        timed = self._timed(entry)

        def write(last: Header | None) -> tuple[Row, ...]:
            if last is not None:
                if check is not None:
                    check(last)
                return (annotate(self.store, self.dialog_id, timed, last),)
            with self.store.transaction():  # nobody else writes before its end
                row = annotate(self.store, self.dialog_id, timed)
                if check is not None:
                    check(header_at(self.store, self.dialog_id, row[0].seq - 1))
                return (row,)

        with self._lock:
            rows = self._written(write)
            header = rows[0][0]
            self._note(rows, header if header.turn_head == self.last.turn_head else self.last)
        return Handle(self.dialog_id, header.seq)

    def _written(self, write: Callable[[Header | None], tuple[Row, ...]]) -> tuple[Row, ...]:
        """Write directly after the newest known header, which reads nothing; if another writer was first, after the newest one.

        Where that fails, too, the store itself finds the newest header, for it may be damaged.
        """
        tried: Header | None = None
        while True:
            newest = self._newest
            try:
                return write(None if newest == tried else newest)
            except Conflict:
                if newest == tried:
                    raise
                tried = newest
                self.refresh()

    def wrote(self, ids: list[str]) -> bool:
        """Return whether the next messages of the turn have these ids, and take them for written by this process if they have.

        A write whose outcome is not known can so be repeated.
        """
        with self._lock:
            came = self.recent.headers(self.dialog_id, self.last.seq + 1)
            turn = islice((header for header in came if header.turn_head == header.seq), len(ids))
            rows = [(header, self.recent.body(self.dialog_id, header.seq)) for header in turn]
            there = [decode_entry(body) for _header, body in rows]
            if not ids or [entry.message.id for entry in there if isinstance(entry, MessageEntry)] != ids:
                return False
            self._note(tuple(rows), rows[-1][0])
            return True

    def _note(self, rows: tuple[Row, ...], last: Header) -> None:
        """Record what was just written."""
        self._newest = rows[-1][0]
        if rows[0][0].seq == self._looked + 1:  # nobody wrote in between
            self._looked = self._newest.seq
        if all(body_digest(body) == header.digest for header, body in rows):
            self.recent.follow(rows)
        else:  # the store wrote other bytes than it was given: without secrets
            self.recent.start()
        self.last = last
        self.session.follow(self.node, max(self._newest.seq, last.seq))

    def _timed(self, entry: Entry) -> Entry:
        """Return an entry with the session's time, unless its maker set one."""
        if "at" in entry.model_fields_set:
            return entry
        at = self.session.tick(entry.at)
        return entry if at == entry.at else entry.model_copy(update={"at": at})

    # --- other writers ----------------------------------------------------------------------------------------------------------------

    def refresh(self) -> Header:
        """Read entries outside the turn, whoever wrote them, and return the newest known header.

        What another writer added to the turn stays unknown until `reload`, but an erasure counts at once.
        """
        with self._lock:
            newest = self._newest = self._look()
            last = self.last
            if newest == last and newest.seq == self._looked:
                return newest
            if not self._is_there(last, newest):  # its transaction was rolled back
                self.changes += 1
                last = newest
            elif erased_since(self.recent, self.dialog_id, self._looked) is not None:
                self.changes += 1
                self.recent.start()
            self._looked = newest.seq
            # else another writer continued the turn
            self.last = newest if newest.turn_head == last.turn_head else last
            return self.last

    def _look(self) -> Header:
        """Read the entries from the newest known one on, and return the newest header."""
        known = self.recent.rows
        came = self.store.tail(self.dialog_id, known[-1][0].seq if known else 0)
        if known and came and came[0] == known[-1]:
            self.recent.follow(came[1:])
        else:
            self.recent.start(came)
        return came[-1][0] if came else self.store.last(self.dialog_id)

    def _is_there(self, last: Header, newest: Header) -> bool:
        """Return whether the newest known entry is still in the store."""
        if last.seq < 0:
            return True
        try:
            return last.seq <= newest.seq and _same(self.recent.header(self.dialog_id, last.seq), last)
        except NotFound:
            return False

    def reload(self) -> Header:
        """Read everything that was written, and return the newest header."""
        with self._lock:
            self.refresh()
            self.last = self.recent.last(self.dialog_id)
            self.session.follow(self.node, self.last.seq)
            return self.last

    def require_unerased(self, at: int, what: str) -> None:
        """Refuse what was computed before something in the dialog was erased: it may repeat the words.

        Args:
            at: The number of the last own entry that was taken into account, -1 for none.
            what: What was computed, as the subject of a clause.

        Raises:
            Conflict: Something was erased.
        """
        erased = erased_since(self.recent, self.dialog_id, at)
        if erased is not None:
            raise Conflict(
                self.dialog_id,
                at,
                erased,
                why=f"An entry that dialog {self.dialog_id} has was erased after {what} was made. Nothing was written.",
                hint=f"Reload the dialog and make {what} again.",
            )


def _same(header: Header, other: Header) -> bool:
    """Return whether two headers are of one entry; an erasure changes its size and digest, and the totals after it."""
    return (header.at, header.kind, header.role, header.number) == (other.at, other.kind, other.role, other.number)


# --- the prompt in force --------------------------------------------------------------------------------------------------------------


class UnknownPromptWarning(UserWarning):
    """A dialog names a prompt that its runtime does not have; it was loaded without one."""


@dataclass(frozen=True, slots=True)
class _LoggedPrompt:
    """The prompt that the log names, until it is needed: its path, once that was read."""

    path: str | None = None


RECORDED = _LoggedPrompt()
"""The prompt that the log names; its path was not read yet."""

Top: TypeAlias = Prompt | str | _LoggedPrompt | None


class PromptInForce:
    """The prompt for the model's next turn.

    Attributes:
        value: A prompt, a text that was put, or the prompt that the log names.
    """

    def __init__(self, dialog: OpenDialog, value: Top) -> None:
        self.value = value
        self._dialog = dialog
        self._runtime = dialog.session.runtime

    def prompt(self, known: Prompt | None = None) -> Prompt | None:
        """Return the prompt; for a text, a temporary one. A path that is neither `known` nor one that the runtime has is a warning."""
        if isinstance(self.value, _LoggedPrompt):
            path = self.path()
            self.value = known if known is not None and known.path == path else self.registered(path)
        elif isinstance(self.value, str):
            self.value = temporary_prompt(self.value)
        return self.value

    def registered(self, path: str | None) -> Prompt | None:
        """Return the prompt of a path, or None with a warning."""
        try:
            return None if path is None else self._runtime.get_prompt(path)
        except NotFound as error:
            warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=4)
            return None

    def path(self) -> str | None:
        """Return the path where the runtime has the prompt, which the log keeps."""
        if self.value is RECORDED:
            self.value = _LoggedPrompt(self._recorded_path())
        top = self.value
        if isinstance(top, _LoggedPrompt):
            return top.path
        return self._runtime.key_of(top) if isinstance(top, Prompt) and not top.is_temporary else None

    def _recorded_path(self) -> str | None:
        """Return the path that the newest message of neither the model nor a tool names; reads headers back to it, and one body."""
        for span in reversed(self._dialog.spans()):
            for header in self._dialog.recent.headers(span.dialog, span.start, span.stop, reverse=True):
                if header.kind == "message" and header.role not in _ANSWERS:
                    entry = entry_at(self._dialog.recent, Handle(span.dialog, header.seq))
                    return entry.prompt if isinstance(entry, MessageEntry) else None
        return None

    def reload(self) -> None:
        """Read the log again, unless a prompt was put."""
        if isinstance(self.value, _LoggedPrompt):  # another writer may have put another one
            self.value = RECORDED

    def on(self, entry: Entry) -> Entry:
        """Return an entry with the path of the prompt in force after it, on a message of neither the model nor a tool."""
        if not isinstance(entry, MessageEntry) or entry.message.role in _ANSWERS:
            return entry
        path = self.path()
        return entry if path is None else entry.model_copy(update={"prompt": path})
