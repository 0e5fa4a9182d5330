"""What a session manager gives: entries in a tree by parents, which the log does not have and which is derived here.

An entry's id is the printed form of its handle: unique in its session, the same for ever, and understood by `recall`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from palaver.ids import DialogId, SessionId
from palaver.log import Custom, Entry, Handle, MessageEntry, ModeChange, Node, Reader, Span, decode_entry
from palaver.messages import CustomMessage, Message

__all__ = ["Chain", "SessionEntry", "SessionHeader", "SessionTreeNode", "entries_in", "type_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHeader:
    """What is known of a session as a whole.

    Attributes:
        id: The session's id.
        timestamp: When it was made, in seconds since 1970-01-01 UTC.
        cwd: The working folder it is about, or empty.
        name: Its name.
        parent_session: The id of the session that it was taken from, or None.
        metadata: What its maker wants kept with it.
    """

    id: SessionId
    timestamp: float
    cwd: str = ""
    name: str = ""
    parent_session: str | None = None
    metadata: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """An entry as a session manager gives it.

    Attributes:
        id: Its id: the printed form of its handle.
        parent_id: The id of the entry that it follows, or None for a first one.
        type: What it is: `message`, `custom_message`, `compaction`, `branch_summary`, `label`, `model_change`, `thinking_level_change`,
            `custom`, or the kind of an entry that only agents write.
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
        """The message, of an entry that is one; media are not loaded."""
        return self.entry.message if isinstance(self.entry, MessageEntry) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SessionTreeNode:
    """An entry and what follows it.

    Attributes:
        entry: The entry.
        children: What follows it, by time.
        label: Its label, or None.
    """

    entry: SessionEntry
    children: tuple[SessionTreeNode, ...] = ()
    label: str | None = None

    def __repr__(self) -> str:
        return f"<SessionTreeNode {self.entry.id} {self.entry.type} children={len(self.children)}>"


def type_of(entry: Entry) -> str:
    """Name what an entry is, in the words of session files with parents."""
    if isinstance(entry, MessageEntry):
        return "custom_message" if isinstance(entry.message, CustomMessage) else "message"
    if isinstance(entry, ModeChange) and entry.mode == "thinking":
        return "thinking_level_change"
    return "custom" if isinstance(entry, Custom) else entry.kind


class Chain:
    """Which entry follows which: an entry follows the one before it in its dialog, a dialog's first one the last that the dialog inherited.

    Made from the nodes of a session; it reads headers when it is asked, and bodies never.
    """

    def __init__(self, reader: Reader, nodes: Iterable[Node]) -> None:
        self._reader = reader
        self.nodes = {node.dialog_id: node for node in nodes}
        self._forks: dict[Handle | None, list[DialogId]] = {}
        for node in self.nodes.values():
            self._forks.setdefault(_entered(node), []).append(node.dialog_id)

    def parent(self, place: Handle) -> Handle | None:
        """Give the entry before an entry, or None."""
        return Handle(place.dialog, place.seq - 1) if place.seq else _entered(self.nodes[place.dialog])

    def children(self, place: Handle | None) -> list[Handle]:
        """Give the entries that follow an entry, or the first ones for None: by time, then in the order of the dialogs."""
        firsts = [Handle(dialog, 0) for dialog in self._forks.get(place, ()) if self.length(dialog)]
        if place is not None and place.seq + 1 < self.length(place.dialog):
            firsts.insert(0, Handle(place.dialog, place.seq + 1))
        return sorted(firsts, key=lambda one: self._reader.header(one.dialog, one.seq).at)

    def length(self, dialog: DialogId) -> int:
        """Give the number of a dialog's own entries."""
        return self._reader.last(dialog).seq + 1

    def spans(self) -> list[Span]:
        """Give all entries of the session, dialog after dialog, in the order in which the dialogs were made."""
        return [Span(dialog, 0, length) for dialog in self.nodes if (length := self.length(dialog))]


def _entered(node: Node) -> Handle | None:
    """Give the entry that a dialog's own first one follows; an empty range is none."""
    last = next((span for span in reversed(node.ranges) if len(span)), None)
    return None if last is None else Handle(last.dialog, last.stop - 1)


def entries_in(reader: Reader, chain: Chain, spans: Sequence[Span]) -> list[SessionEntry]:
    """Give the entries in spans, each with the one that it follows."""
    found: list[SessionEntry] = []
    for span in spans:
        for seq, body in reader.bodies(span.dialog, span.start, span.stop):
            place = Handle(span.dialog, seq)
            parent, entry = chain.parent(place), decode_entry(body)
            found.append(
                SessionEntry(
                    id=str(place),
                    parent_id=None if parent is None else str(parent),
                    type=type_of(entry),
                    timestamp=entry.at,
                    entry=entry,
                )
            )
    return found
