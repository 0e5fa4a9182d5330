"""What governs the model's next turn: which prompt a dialog was left with, as its log says."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from palaver.errors import UnknownPrompt
from palaver.log import Entry, Handle, MessageEntry, Reader, Span, entry_at
from palaver.messages import Role
from palaver.prompts import Prompt, Runtime
from palaver.session.warn import UnknownPromptWarning

__all__ = ["governed", "path_in_force", "prompt_at"]

_ANSWERS = frozenset({Role.ASSISTANT, Role.TOOL_CALL, Role.TOOL})
"""What the model and its tools say changes nothing of what governs, and says nothing about it."""


def governed(entries: Iterable[Entry], path: str | None) -> tuple[Entry, ...]:
    """Give entries with the path of the prompt that governs after them, on each message that is neither the model's nor a tool's."""
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


def prompt_at(runtime: Runtime, path: str | None) -> Prompt | None:
    """Resolve the path that a dialog was left with; an unknown one is a warning."""
    try:
        return None if path is None else runtime.get_prompt(path)
    except UnknownPrompt as error:
        warnings.warn(f"The dialog was loaded without its prompt: {error}", UnknownPromptWarning, stacklevel=3)
        return None
