"""What governs the model's next turn: which prompt a dialog was left with, as its log says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from threading import get_ident
from typing import NamedTuple

from palaver.errors import NotFound, UnknownHandle
from palaver.ids import DialogId
from palaver.log import NOTHING, Entry, Handle, Header, MessageEntry, Reader, Span, entry_at
from palaver.messages import Role
from palaver.prompts import Prompt, Runtime, temporary_prompt
from palaver.store.blocks import in_block, tells_blocks
from palaver.store.protocol import Store
from palaver.tools.locks import OwnLock

__all__ = ["AS_RECORDED", "AsRecorded", "Governing", "UnknownPromptWarning", "path_in_force", "prompt_at"]

_ANSWERS = frozenset({Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL})
"""What the model and its tools say changes nothing of what governs, and says nothing about it."""


class UnknownPromptWarning(UserWarning):
    """A dialog names a prompt that its runtime does not know: it was loaded without one."""


class AsRecorded(Enum):
    """What governs is what the log says; nobody has asked yet."""

    AS_RECORDED = "as recorded"


AS_RECORDED = AsRecorded.AS_RECORDED


class _Put(NamedTuple):
    """What was put.

    Attributes:
        top: What governs.
        since: The number of the entry that it was put with, or behind.
        entry: That entry, where a block may still take it back; None where it is sure.
        thread: The thread whose block that is.
        before: What governed before, and does where the block takes this back; None where it is sure.
    """

    top: Prompt | AsRecorded | str | None
    since: int = -1
    entry: Header | None = None
    thread: int = 0
    before: _Put | None = None


class Governing:
    """What governs a dialog's next turn: a prompt, a text that was put, nothing, or what the log says until somebody asks.

    Threads may put something at once: what stands last in the log governs. What was put in a block of the store governs for who finds its entry in the
    store: for the block's thread, and for all when the block has ended. Where the block took it back, what was there before governs. No lock is held
    while the store is asked.

    Attributes:
        runtime: What paths of prompts are resolved with.
    """

    def __init__(
        self,
        runtime: Runtime,
        top: Prompt | AsRecorded | None,
        store: Store,
        dialog_id: DialogId,
        recorded: Callable[[], str | None],
    ) -> None:
        """Begin with what is given; `recorded` reads the path in force off the log."""
        self.runtime = runtime
        self._store = store
        self._dialog_id = dialog_id
        self._recorded = recorded
        self._put = _Put(top)
        self._lock = OwnLock()

    @property
    def prompt(self) -> Prompt | None:
        """The prompt that governs: for a text that was put, a temporary one. One that the runtime does not know is a warning, and None."""
        put = self._governs()
        top = put.top
        found = prompt_at(self.runtime, self._recorded(), depth=4) if isinstance(top, AsRecorded) else top
        if isinstance(found, str):
            found = temporary_prompt(found)
        if not isinstance(top, AsRecorded) or not in_block(
            self._store
        ):  # what the log says in a block may be taken back
            self._replace(put, put._replace(top=found))
        return found

    @property
    def path(self) -> str | None:
        """Its path, which is what the log keeps; None where nothing governs, or a text."""
        return self._path_of(self._governs().top)

    def _path_of(self, top: Prompt | AsRecorded | str | None) -> str | None:
        if isinstance(top, AsRecorded):
            return self._recorded()
        return self.runtime.key_of(top) if isinstance(top, Prompt) and not top.is_temporary else None

    # --- what was put ---------------------------------------------------------------------------------------------------------------

    def put(self, top: Prompt | None, since: Header) -> None:
        """Have something govern, whatever the log says up to an entry."""
        entry = None if self._sure else since
        with self._lock:
            self._put = _Put(top, since.seq, entry)

    def take(self, top: Prompt | str, since: int) -> None:
        """Have govern what was put with an entry, unless something governs that was put behind it."""
        entry = None if self._sure else self._store.header(self._dialog_id, since)
        done = False
        while not done:
            head = self._put
            put = self._standing(head)
            if since <= put.since and self._stands(put):
                return
            before = None if entry is None else put if tells_blocks(self._store) else put._replace(before=None)
            done = self._replace(head, _Put(top, since, entry, get_ident(), before))

    def _replace(self, put: _Put, new: _Put) -> bool:
        """Replace what was put last, unless something else was meanwhile."""
        with self._lock:
            last = self._put is put
            self._put = new if last else self._put
            return last

    @property
    def _sure(self) -> bool:
        return tells_blocks(self._store) and not in_block(self._store)

    def _governs(self) -> _Put:
        """Give what governs for this thread, and let go of what no block can take back any more, or has taken back."""
        head = self._put
        put = self._standing(head)
        if head.before is None or not self._sure:
            return put
        if put is head:
            put = head._replace(entry=None, before=None)
        elif head.thread != get_ident():  # its block may be open
            return put
        self._replace(head, put)
        return put

    def _standing(self, put: _Put) -> _Put:
        while put.before is not None and not self._stands(put):
            put = put.before
        return put

    def _stands(self, put: _Put) -> bool:
        """Tell whether this thread finds the entry of what was put in the store."""
        try:
            return put.entry is None or self._store.header(self._dialog_id, put.entry.seq) == put.entry
        except UnknownHandle:
            return put.entry == NOTHING

    def stamped(self, entries: Iterable[Entry], top: Prompt | str | None = None) -> tuple[Entry, ...]:
        """Give entries with the path of what governs after them, on each message that is neither the model's nor a tool's.

        Args:
            entries: The entries.
            top: What is put with them; what governs already when not given.
        """
        path = self.path if top is None else self._path_of(top)
        if path is None:
            return tuple(entries)
        return tuple(
            entry.model_copy(update={"prompt": path})
            if isinstance(entry, MessageEntry) and entry.message.role not in _ANSWERS
            else entry
            for entry in entries
        )


def path_in_force(reader: Reader, spans: Sequence[Span]) -> str | None:
    """Give the path that the newest message of neither the model nor a tool names; reads headers back to it, and one body."""
    for span in reversed(spans):
        for header in reader.headers(span.dialog, span.start, span.stop, reverse=True):
            if header.kind == "message" and header.role not in _ANSWERS:
                entry = entry_at(reader, Handle(span.dialog, header.seq))
                return entry.prompt if isinstance(entry, MessageEntry) else None
    return None


def prompt_at(runtime: Runtime, path: str | None, *, depth: int = 3) -> Prompt | None:
    """Resolve the path that a dialog was left with; an unknown one is a warning, `depth` frames up."""
    try:
        return None if path is None else runtime.get_prompt(path)
    except NotFound as error:
        warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=depth)
        return None
