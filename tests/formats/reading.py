"""What a reader of a foreign format makes of a file, and what importing the file shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from palaver.formats import Branch, Conversation, Event, Loss, Put, ReadLimits, matches, open_source
from palaver.log import Entry, MessageEntry
from palaver.messages import Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.providers import APIS
from palaver.store.memory import MemoryStore
from palaver.store.records import payloads_of
from palaver.transcripts import Imported, Importer
from palaver.view import View, fold
from palaver.wire import Call, compile, validate  # noqa: A004 - the word for it


@dataclass
class Read:
    """What a reader emitted for a file, by kind."""

    path: Path
    events: list[Event | Loss]
    conversations: list[Conversation] = field(init=False)
    branches: list[Branch] = field(init=False)
    puts: list[Put] = field(init=False)
    losses: list[Loss] = field(init=False)

    def __post_init__(self) -> None:
        """Sort the events by kind."""
        self.conversations = [event for event in self.events if isinstance(event, Conversation)]
        self.branches = [event for event in self.events if isinstance(event, Branch)]
        self.puts = [event for event in self.events if isinstance(event, Put)]
        self.losses = [event for event in self.events if isinstance(event, Loss)]

    def codes(self) -> Counter[str]:
        """Count the losses by code, without those of what most recordings leave out."""
        return Counter(loss.code for loss in self.losses if loss.code not in {"skipped", "no_instructions"})

    def entries(self, dialog: str = "main") -> list[Entry]:
        """Return what was put into a dialog."""
        return [put.entry for put in self.puts if put.dialog == dialog]

    def said(self, dialog: str = "main") -> list[Message]:
        """Return the messages that were put into a dialog."""
        return [entry.message for entry in self.entries(dialog) if isinstance(entry, MessageEntry)]

    def counted(self) -> int:
        """Count the format's own message records."""
        return sum(put.counted for put in self.puts)

    def branch(self, dialog: str) -> Branch:
        """Return how a dialog begins."""
        return next(branch for branch in self.branches if branch.dialog == dialog)

    def identities(self) -> list[tuple[str, str, bytes, int]]:
        """Return what identifies each put."""
        return [(put.dialog, put.record, put.digest, put.counted) for put in self.puts]

    @cached_property
    def landed(self) -> tuple[MemoryStore, Imported]:
        """The store into which the file was imported, and its first conversation."""
        store = MemoryStore()
        return store, imported(store, self.path)[0]

    def view(self, dialog: str = "main", *, whole: bool = False) -> View:
        """Import the file, and fold a dialog of its first conversation."""
        store, one = self.landed
        nodes = store.nodes(one.session_id)
        found = next(node for node in nodes if node.metadata["key"] == dialog)
        return fold(store, found.dialog_id, whole=whole)

    def shown(self, dialog: str = "main", *, whole: bool = False) -> list[str]:
        """Return what the view of a dialog shows."""
        return shown(self.view(dialog, whole=whole))


def events_of(path: Path, limits: ReadLimits | None = None) -> Iterator[Event | Loss]:
    """Read a file as an importer does."""
    with open_source(path, limits) as source:
        for match in matches(source):
            if isinstance(match, Loss):
                yield match
            else:
                yield from match.format.read(match.source)


def read_file(path: Path, limits: ReadLimits | None = None) -> Read:
    """Read a whole file."""
    return Read(path, list(events_of(path, limits)))


def written(folder: Path, data: bytes, name: str = "file") -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(data)
    return path


def read_bytes(folder: Path, data: bytes, name: str = "file") -> Read:
    """Read a file with this content."""
    return read_file(written(folder, data, name))


def imported(store: MemoryStore, path: Path) -> list[Imported]:
    """Import a file without keeping it."""
    return list(Importer(store, keep_source=False).import_path(path))


def views(store: MemoryStore, found: Sequence[Imported]) -> list[View]:
    """Fold every dialog of imported sessions."""
    return [fold(store, node.dialog_id) for one in found for node in store.nodes(one.session_id)]


_MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "gemini-interactions": "gemini-2.5-pro",
}


def refused(store: MemoryStore, view: View) -> list[str]:
    """Return what providers refuse of the request that is compiled from a view."""
    found: list[str] = []
    load = payloads_of(store, store.node(view.dialog_id).session_id)
    for name, api in APIS.items():
        profile = api.profile()
        request = compile(view, profile, Call(model=_MODELS[name]), load)
        found.extend(f"{name}: {violation}" for violation in validate(request.body, profile, as_history=True))
    return found


def shown(view: View) -> list[str]:
    """Return what a view shows, a line a block: the role, and the text, call or result."""
    lines = []
    for exchange in view.exchanges:
        for turn in exchange.turns:
            for block in turn.blocks:
                match block.content:
                    case TextContent(content=words):
                        pass
                    case ThinkingContent(content=thought):
                        words = f"({thought})"
                    case ToolCallContent(id=call, name=name):
                        words = f"{name}({call})"
                    case ToolResultContent(id=call) as result:
                        words = f"{call}={result.text()}"
                    case other:
                        words = other.type
                lines.append(f"{turn.role.value}: {words}")
    return lines
