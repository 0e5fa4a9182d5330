"""What governs the model's next turn: which prompt a dialog was left with, as its log says."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from palaver.errors import UnknownPrompt
from palaver.log import Entry, Handle, MessageEntry, Reader, Span, entry_at
from palaver.messages import Role
from palaver.prompts import Prompt, Runtime, temporary_prompt
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


class Governing:
    """What governs a dialog's next turn: a prompt, a text that was put, nothing, or what the log says until somebody asks.

    Threads may put something at once: what stands last in the log governs.

    Attributes:
        runtime: What paths of prompts are resolved with.
    """

    def __init__(self, runtime: Runtime, top: Prompt | AsRecorded | None, recorded: Callable[[], str | None]) -> None:
        """Begin with what is given; `recorded` reads the path in force off the log."""
        self.runtime = runtime
        self._top: Prompt | AsRecorded | str | None = top
        self._since = -1
        self._recorded = recorded
        self._lock = OwnLock()

    @property
    def prompt(self) -> Prompt | None:
        """The prompt that governs: for a text that was put, a temporary one. One that the runtime does not know is a warning, and None."""
        top = self._top
        found = prompt_at(self.runtime, self._recorded(), depth=4) if isinstance(top, AsRecorded) else top
        if isinstance(found, str):
            found = temporary_prompt(found)
        with self._lock:
            if self._top is top:  # nothing was put meanwhile
                self._top = found
        return found

    @property
    def path(self) -> str | None:
        """Its path, which is what the log keeps; None where nothing governs, or a text."""
        return self._path_of(self._top)

    def _path_of(self, top: Prompt | AsRecorded | str | None) -> str | None:
        if isinstance(top, AsRecorded):
            return self._recorded()
        return self.runtime.key_of(top) if isinstance(top, Prompt) and not top.is_temporary else None

    def put(self, top: Prompt | None, since: int) -> None:
        """Have something govern, whatever the log says up to an entry."""
        with self._lock:
            self._top, self._since = top, since

    def take(self, top: Prompt | str, since: int) -> None:
        """Have govern what was put with an entry, unless something governs that was put behind it."""
        with self._lock:
            if since > self._since:
                self._top, self._since = top, since

    def back(self, to: int) -> None:
        """Take note of how far the log goes: what a block that raised has taken back is behind nothing."""
        with self._lock:
            self._since = min(self._since, to)

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
    except UnknownPrompt as error:
        warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=depth)
        return None
