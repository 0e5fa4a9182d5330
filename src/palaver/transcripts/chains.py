"""Exporting to session files with parents: pi's, as its session manager writes them, and as `palaver import` reads them.

The log has no parents; here each entry names the one before it. What is written depends on the entries and on nothing else: importing the file and
exporting what came of it gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from palaver.formats.pi.names import NAME, OURS
from palaver.formats.pi.writing import written
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    BranchSummary,
    Compaction,
    Custom,
    Derived,
    Entry,
    Handle,
    Label,
    MessageEntry,
    ModeChange,
    ModelChange,
    Node,
    Run,
    Source,
    Toolset,
    decode_entry,
)
from palaver.messages import FrozenDict, Message, canonical_json, hydrate
from palaver.store.protocol import Store
from palaver.wire import Report
from palaver.wire.request import Change, How

__all__ = ["chain_report", "export_chain"]

_VERSION = 3
_NAME_ID = "session-name"
_LOST = {
    "compaction": "its text is kept, and a view of the imported session holds everything",
    "context_edit": "it is kept as a record, and views of the imported session do not follow it",
    "pin": "it is kept as a record, and nothing is pinned in the imported session",
    "quarantine": "it is kept as a record, and views of the imported session show the block",
}
"""What is written as a record that no view of the imported session follows, and what that means."""


class _Link(NamedTuple):
    """An entry in the chain.

    Attributes:
        place: Where it stands.
        parent: The entry before it that is written, or None.
        at: When, in microseconds since 1970-01-01 UTC.
        key: Its id in the file.
    """

    place: Handle
    parent: Handle | None
    at: int
    key: str


@dataclass(slots=True)
class _Tree:
    """The entries to be written, by the one before each."""

    links: dict[Handle, _Link] = field(default_factory=dict)
    below: dict[Handle | None, list[_Link]] = field(default_factory=dict)

    def add(self, link: _Link) -> None:
        """Add an entry whose parent was added before."""
        self.links[link.place] = link
        self.below.setdefault(link.parent, []).append(link)

    def in_order(self) -> Iterator[_Link]:
        """Give the entries, each after its parent, by time, but the way to the newest one last: readers go on where a file ends."""
        newest = max(self.links.values(), key=lambda link: (link.at, link.key), default=None)
        way: set[Handle] = set()
        while newest is not None:
            way.add(newest.place)
            newest = None if newest.parent is None else self.links[newest.parent]
        waiting = self._sorted(None, way)
        while waiting:
            link = waiting.pop()
            yield link
            waiting.extend(self._sorted(link.place, way))

    def _sorted(self, parent: Handle | None, way: set[Handle]) -> list[_Link]:
        """Give what follows an entry, what comes first at the end."""
        found = self.below.get(parent, [])
        return sorted(found, key=lambda link: (link.place in way, link.at, link.key), reverse=True)


def export_chain(store: Store, session_id: SessionId) -> Iterator[bytes]:
    """Give a session's file, line by line: the header, then every entry with its id and that of its parent."""
    yield canonical_json(_header(store, session_id)) + b"\n"
    tree = _read(store, session_id)
    done: dict[Handle, str] = {}
    last: str | None = None
    for link in tree.in_order():
        entry = decode_entry(store.body(link.place.dialog, link.place.seq))
        parent = None if link.parent is None else done[link.parent]
        about = {"id": link.key, "parentId": parent, "timestamp": _stamp(link.at)}
        done[link.place] = last = link.key
        yield canonical_json(_record(store, entry, link, done) | about) + b"\n"
    record = store.session(session_id)
    named = {"type": "session_info", "id": _NAME_ID, "parentId": last, "name": record.name}
    yield canonical_json(named | {"timestamp": _stamp(_micro(record.created_at))}) + b"\n"


def chain_report(store: Store, session_id: SessionId) -> Report:
    """Say what such a file holds as records only, or not at all."""
    told: list[Change] = []
    nodes = store.nodes(session_id)
    apart = _apart(nodes)
    for node in nodes:
        if node.dialog_id in apart:
            why = "a sub-agent's dialog follows no entry of the session's"
            told.append(Change(Handle(node.dialog_id, 0), "dialog", How.DROPPED, why))
            continue
        for header in store.headers(node.dialog_id):
            place = Handle(node.dialog_id, header.seq)
            if header.kind in _LOST and not _is_summary(decode_entry(store.body(*place[:2]))):
                told.append(Change(place, header.kind, How.CHANGED, _LOST[header.kind]))
    return Report(tuple(told))


def _header(store: Store, session_id: SessionId) -> dict[str, Any]:
    record = store.session(session_id)
    known = [source.identity for source in store.sources(session_id) if source.format == NAME]
    key = known[0].partition(":")[2].partition("@")[0] if known else record.session_id
    said = {"type": "session", "version": _VERSION, "id": key, "cwd": record.workdir}
    above = record.metadata.get("parentSession") or record.metadata.get("parent_session")
    return said | {"timestamp": _stamp(_micro(record.created_at))} | ({"parentSession": above} if above else {})


def _apart(nodes: tuple[Node, ...]) -> set[DialogId]:
    """Give the dialogs of sub-agents, and those that were forked from them."""
    found: set[DialogId] = set()
    for node in nodes:
        if node.relation == "subagent" or node.parent_id in found:
            found.add(node.dialog_id)
    return found


def _read(store: Store, session_id: SessionId) -> _Tree:
    """Read where everything stands; of the bodies the times and the ids that messages and imported entries have of their own."""
    tree = _Tree()
    nodes = store.nodes(session_id)
    apart = _apart(nodes)
    ends: dict[Handle, Handle | None] = {}  # what is not written is stood for by what came before it
    keys: set[str] = {_NAME_ID}
    begun = _micro(
        store.session(session_id).created_at
    )  # the time of what was recorded without one, as readers take it
    for node in nodes:
        if node.dialog_id in apart:
            continue
        span = next((span for span in reversed(node.ranges) if len(span)), None)
        before = None if span is None else Handle(span.dialog, span.stop - 1)
        for seq, body in store.bodies(node.dialog_id):
            place, entry = Handle(node.dialog_id, seq), decode_entry(body)
            parent = ends.get(before, before) if before is not None else None
            before = place
            if _made_up(entry):
                ends[place] = parent
                continue
            key = _key(entry, place, keys)
            keys.add(key)
            tree.add(_Link(place, parent, _micro(_at(entry)) or begun, key))
    return tree


def _made_up(entry: Entry) -> bool:
    """Tell whether an import made an entry from the file as a whole, as it will again."""
    return isinstance(entry, Toolset) and entry.source is None and all(tool.stub for tool in entry.tools)


def _key(entry: Entry, place: Handle, taken: set[str]) -> str:
    source = entry.source
    own = source.record if source is not None and source.format == NAME else ""
    return own if own and own not in taken else str(place)


def _at(entry: Entry) -> float:
    return entry.message.timestamp if isinstance(entry, MessageEntry) else entry.at


def _micro(at: float) -> int:
    return round(at * 1_000_000)


def _stamp(at: int) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).replace(microsecond=at % 1_000_000).isoformat()


def _record(  # noqa: PLR0911 - one for each type of record
    store: Store, entry: Entry, link: _Link, done: Mapping[Handle, str]
) -> dict[str, Any]:
    """Give an entry as a record, without its ids and its time."""
    match entry:
        case MessageEntry():
            return _spoken(store, entry.message, link)
        case ModelChange():
            return {"type": "model_change", "provider": entry.provider, "modelId": entry.model}
        case ModeChange(mode="thinking"):
            return {"type": "thinking_level_change", "thinkingLevel": entry.value}
        case BranchSummary():
            left = None if entry.left is None else done.get(Handle(entry.left.dialog, entry.left.seq))
            return {"type": "branch_summary", "summary": entry.summary, "fromId": left or "root"}
        case Label() if (target := done.get(Handle(entry.target.dialog, entry.target.seq))) is not None:
            return {"type": "label", "targetId": target, "label": entry.label}
        case Compaction() if _is_summary(entry):
            return _compacted(entry, done)
        case Custom():
            return _custom(entry)
        case _:
            data = entry.model_dump(mode="json", exclude={"kind", "at", "source"})
            return {"type": "custom", "customType": f"{OURS}.{entry.kind}", "data": data}


def _custom(entry: Custom) -> dict[str, Any]:
    """Give an extension's record; one of pi's own, of a kind that its reader did not know, as it was."""
    match entry:
        case Custom(source=Source(format="pi"), data=Mapping() as whole) if (
            entry.custom_type == f"pi/{whole.get('type')}"
        ):
            return dict(_plain(whole))
        case _:
            return {"type": "custom", "customType": entry.custom_type, "data": _plain(entry.data)}


def _plain(value: object) -> Any:  # noqa: ANN401 - any JSON value
    return Custom(custom_type="x", data=value, at=0.0).model_dump(mode="json").get("data")


def _spoken(store: Store, message: Message, link: _Link) -> dict[str, Any]:
    kept = FrozenDict({name: value for name, value in message.metadata.items() if name != "dialog_id"})
    whole = hydrate(message, lambda digest: store.blob(BlobId(digest))).model_copy(update={"metadata": kept})
    said = written(whole, link.key, link.at / 1_000_000)
    if said is None:
        return {"type": "custom", "customType": f"{OURS}.message", "data": whole.to_dict()}
    if said["role"] != "custom":
        return {"type": "message", "message": said}
    return {name: value for name, value in said.items() if name != "role"} | {"type": "custom_message"}


def _is_summary(entry: Entry) -> bool:
    """Tell whether a compaction is one that the form has: a text, and a first entry that was kept, or none."""
    return isinstance(entry, Compaction) and any(isinstance(piece, Derived) and piece.text for piece in entry.pieces)


def _compacted(entry: Compaction, done: Mapping[Handle, str]) -> dict[str, Any]:
    texts = [piece.text for piece in entry.pieces if isinstance(piece, Derived)]
    first = next(index for index, piece in enumerate(entry.pieces) if isinstance(piece, Derived))
    kept = [piece for piece in entry.pieces[first:] if isinstance(piece, Run)]
    said: dict[str, Any] = {"type": "compaction", "summary": "\n\n".join(texts), "tokensBefore": entry.tokens_before}
    said["firstKeptEntryId"] = done.get(Handle(kept[0].dialog, kept[0].start), "") if kept else ""
    details = (entry.__pydantic_extra__ or {}).get("details")
    return said | ({} if details is None else {"details": _plain(details)})
