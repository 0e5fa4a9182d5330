"""The conversation in a channel of LangGraph, as dialogs: one that grows, and a fork after a change of the state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

from langchain_core.messages import BaseMessage

from palaver.dialects import read_messages
from palaver.errors import PalaverError
from palaver.ids import DialogId, SessionId, new_dialog_id, now
from palaver.integrations.keyed import append, create_fork, spans_of
from palaver.integrations.langgraph_index import FRAMEWORK, Shown
from palaver.log import Custom, Entry, Handle, MessageEntry, Node, Source, upto
from palaver.store import Store

_MARK_DIGITS = 16


def is_conversation(value: object) -> bool:
    """Return whether the value of a channel is a list of messages."""
    return isinstance(value, list) and bool(value) and all(isinstance(message, BaseMessage) for message in value)


class _Marked(NamedTuple):
    """A message of a dialog: the digest of LangGraph's message, and the entry."""

    mark: str
    place: Handle


class ThreadConversation:
    """The messages of one namespace of a thread: each becomes an entry, once.

    A state that continues the messages of its parent checkpoint appends to the same dialog. If a message was changed or removed, or the
    graph continued from an older checkpoint, a fork begins after the unchanged messages.
    """

    def __init__(self, store: Store, session_id: SessionId, namespace: str) -> None:
        self._store = store
        self._session = session_id
        self._namespace = namespace
        self._marks: dict[DialogId, list[_Marked]] = {}

    def show(self, before: Shown | None, messages: Sequence[BaseMessage]) -> Shown:
        """Write the new messages of a state, and return the place of all its messages.

        Args:
            before: The place of the parent checkpoint's messages, or None.
            messages: The state's messages.
        """
        marks = [_mark(message) for message in messages]
        dialog, known, head = self._current(before)
        kept = _common([marked.mark for marked in known], marks)
        if kept < len(marks):
            if dialog is None:
                dialog, head = self._made(), None
            elif kept < len(self._marks[dialog]):
                dialog, head = self._forked(dialog, kept), None
            entries = [_entry(*pair) for pair in list(zip(messages, marks, strict=True))[kept:]]
            places = append(self._store, dialog, *entries, head=head)
            self._marks[dialog] += [_Marked(*pair) for pair in zip(marks[kept:], places, strict=True)]
        return ("", 0) if dialog is None else (dialog, len(marks))

    def _current(self, before: Shown | None) -> tuple[DialogId | None, list[_Marked], int | None]:
        """Return the dialog of a state, its messages up to the state, and the turn head that they are read up to."""
        if before is None:
            return None, [], None
        dialog = DialogId(before[0])
        last = self._store.last(dialog)
        if dialog not in self._marks or last.seq > max(
            (marked.place.seq for marked in self._marks[dialog] if marked.place.dialog == dialog), default=-1
        ):
            self._marks[dialog] = list(self._read(dialog))
        return dialog, self._marks[dialog][: before[1]], last.turn_head

    def _read(self, dialog: DialogId) -> Iterator[_Marked]:
        for span in spans_of(self._store, dialog):
            for seq, body in self._store.bodies(span.dialog, span.start, span.stop):
                source = json.loads(body).get("source") or {}
                if source.get("format") == FRAMEWORK:
                    yield _Marked(source["record"], Handle(span.dialog, seq))

    def _about(self) -> dict[str, object]:
        return {FRAMEWORK: {"namespace": self._namespace, "holds": "messages"}}

    def _made(self) -> DialogId:
        node = Node(
            dialog_id=new_dialog_id(self._session),
            session_id=self._session,
            owner=self._namespace or FRAMEWORK,
            created_at=now(),
            relation="subagent" if self._namespace else "root",
            metadata=self._about(),
        )
        self._store.create_dialog(node)
        return self._added(node, [])

    def _forked(self, dialog: DialogId, kept: int) -> DialogId:
        shared = self._marks[dialog][:kept]
        ranges = upto(spans_of(self._store, dialog), shared[-1].place) if shared else ()
        return self._added(create_fork(self._store, dialog, ranges, self._about()), shared)

    def _added(self, node: Node, shared: list[_Marked]) -> DialogId:
        if not self._namespace:
            self._store.update_session(self._session, root=node.dialog_id)
        self._marks[node.dialog_id] = list(shared)
        return node.dialog_id


def _common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((index for index, (mine, other) in pairs if mine != other), min(len(ours), len(theirs)))


def _mark(message: BaseMessage) -> str:
    text = message.model_dump_json(
        serialize_as_any=True, fallback=repr, exclude={"response_metadata", "usage_metadata"}
    )
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_DIGITS]


def _entry(message: BaseMessage, mark: str) -> Entry:
    """Return the entry of a message; a custom entry if palaver cannot read it."""
    source = Source(format=FRAMEWORK, record=mark)
    try:
        (read,) = read_messages([message], "langchain")
        return MessageEntry(message=read, source=source)
    except (PalaverError, ValueError, TypeError, RecursionError):  # errors that malformed content can cause
        return Custom(custom_type=f"{FRAMEWORK}/{message.type}", data={"text": repr(message.content)}, source=source)
