"""One transcript of Claude Code, mirrored record by record into dialogs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from palaver.errors import Conflict
from palaver.formats.claude_code.messages import NAME, compact_summary, entries_of, is_prompt, parent_of
from palaver.ids import DialogId, SessionId, derive_dialog_id, now
from palaver.integrations.keyed import annotate, append, create, create_fork, spans_of
from palaver.log import (
    Compaction,
    Custom,
    Derived,
    Entry,
    Handle,
    MessageEntry,
    ModelChange,
    Node,
    Omitted,
    Run,
    Source,
    Span,
    apart,
    messages_in,
    path_to,
)
from palaver.store import Store
from palaver.view import Reason, fold

FRAMEWORK = "claude-agent-sdk"
"""The metadata key with which sessions and dialogs name their transcript."""

SUMMARY = f"{FRAMEWORK}/summary"
"""The entry with the SDK's summary of a transcript, written after each batch of records."""

DELETED = f"{FRAMEWORK}/deleted"
"""The entry that ends the transcript of a deleted sub-agent."""


class MirroredRecord(NamedTuple):
    """A mirrored record.

    Attributes:
        ordinal: Its number in the transcript.
        text: Its JSON.
        place: Its entry.
    """

    ordinal: int
    text: str
    place: Handle


class Summary(NamedTuple):
    """The SDK's summary of a transcript.

    Attributes:
        at: When it was written, in seconds since 1970-01-01 UTC.
        data: The SDK's own data.
    """

    at: float
    data: dict[str, Any]


def lanes_of(store: Store, session_id: SessionId, only: str | None = None) -> dict[str, list[Node]]:
    """Return the dialogs of each transcript of a session by its subpath; the main one has an empty name. Deleted transcripts are omitted.

    Args:
        store: The store.
        session_id: The session.
        only: Return only the transcript of this subpath.
    """
    lanes: dict[tuple[str, int], list[Node]] = {}
    for node in store.nodes(session_id):
        subpath, generation = _lane(node)
        if generation >= 0 and only in {None, subpath}:
            lanes.setdefault((subpath, generation), []).append(node)
    newest = {subpath: lanes[subpath, generation] for subpath, generation in sorted(lanes)}  # the last generation stays
    return {
        subpath: nodes for subpath, nodes in newest.items() if not any(_newest(store, node, DELETED) for node in nodes)
    }


def _lane(node: Node) -> tuple[str, int]:
    """Return the subpath of a dialog's transcript and its generation; the generation is -1 for a dialog of palaver's own."""
    about = node.metadata.get(FRAMEWORK)
    if not isinstance(about, Mapping):
        return "", -1
    return str(about.get("subpath", "")), int(about.get("generation", 0))


def _newest(store: Store, node: Node, wanted: str) -> tuple[float, dict[str, Any]] | None:
    """Return the newest entry of one of our kinds after the last record of a dialog, with its time."""
    for header in store.headers(node.dialog_id, reverse=True):
        fields = json.loads(store.body(node.dialog_id, header.seq))
        if fields.get("custom_type") == wanted:
            return header.at, fields
        if "raw" in fields:
            return None
    return None


def newest_summary(store: Store, nodes: Sequence[Node]) -> Summary | None:
    """Return the SDK's newest summary of a transcript, or None."""
    summaries = [
        Summary(entry[0], json.loads(entry[1]["data"])) for node in nodes if (entry := _newest(store, node, SUMMARY))
    ]
    return max(summaries, key=lambda summary: summary.at, default=None)


class Lane:
    """One transcript: its dialogs, and this process's position in them.

    A record goes to the dialog of its parent record. If the user had already spoken after that parent, the record is a rewind and begins a fork.
    A record that is not a message goes to the dialog of the newest record.

    Attributes:
        count: The number of its records.
        summary: The SDK's summary of it.
    """

    def __init__(self, store: Store, session_id: SessionId, subpath: str) -> None:
        """Create the transcript; nothing is read yet."""
        self._store = store
        self._session = session_id
        self._subpath = subpath
        self._forget(0)

    def _forget(self, generation: int) -> None:
        self._generation = generation
        self._read: dict[DialogId, int] = {}
        self._places: dict[str, Handle] = {}
        self._asked: dict[DialogId, int] = {}
        self._models: dict[DialogId, str] = {}
        self._here: DialogId | None = None
        self._newest = -1
        self.count = 0
        self.summary: Summary | None = None

    # --- reading ----------------------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Read what other processes mirrored since the last call."""
        nodes = lanes_of(self._store, self._session, self._subpath).get(self._subpath, ())
        if not nodes:
            known = [_lane(node) for node in self._store.nodes(self._session)]
            before = [generation for subpath, generation in known if subpath == self._subpath]
            self._forget(1 + max(before, default=-1))
            return
        generation = _lane(nodes[0])[1]
        if generation != self._generation:
            self._forget(generation)
        for node in nodes:
            for record in self.records(node.dialog_id, self._read.get(node.dialog_id, 0)):
                self._note(json.loads(record.text), record)

    def records(self, dialog_id: DialogId, start: int = 0) -> Iterator[MirroredRecord]:
        """Yield the records of a dialog's own entries from `start` on, and remember the position."""
        for seq, body in self._store.bodies(dialog_id, start):
            fields = json.loads(body)
            self._read[dialog_id] = seq + 1
            if isinstance(text := fields.get("raw"), str):
                yield MirroredRecord(int(fields["source"]["ordinal"]), text, Handle(dialog_id, seq))
            elif fields.get("kind") == "model_change":
                self._models[dialog_id] = fields["model"]
            elif fields.get("custom_type") == SUMMARY:
                self.summary = Summary(fields["at"], json.loads(fields["data"]))

    def _note(self, value: Mapping[str, object], record: MirroredRecord) -> None:
        if isinstance(uuid := value.get("uuid"), str):
            self._places[uuid] = record.place
        if is_prompt(value):
            self._asked[record.place.dialog] = record.place.seq
        self.count = max(self.count, record.ordinal + 1)
        if record.ordinal > self._newest:
            self._newest, self._here = record.ordinal, record.place.dialog

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def mirror(self, values: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """Write the records whose ids are new, and return them."""
        fresh = []
        for value in values:
            uuid = value.get("uuid")
            if not isinstance(uuid, str) or uuid not in self._places:
                self._write(value)
                fresh.append(value)
        return fresh

    def _write(self, value: Mapping[str, object]) -> None:
        home = self._home(value)
        known, last = self._read.get(home, 0), self._store.last(home)
        if last.seq + 1 != known:  # another process wrote meanwhile, perhaps this same record
            raise Conflict(home, known - 1, last.seq)
        text = json.dumps(value, separators=(",", ":"))  # ASCII: any JSON string survives
        summary = compact_summary(value)
        if summary is None:
            first, *rest = entries_of(value, self.count)
            entries = [*self._model(home, first), first.model_copy(update={"raw": text}), *rest]
            *_, place = append(self._store, home, *entries, head=last.turn_head)
        else:
            entry = _compaction(self._store, home, summary, entries_of(value, self.count)[0].source)
            place = annotate(self._store, home, entry.model_copy(update={"raw": text}))
        self._read[place.dialog] = place.seq + 1
        self._note(value, MirroredRecord(self.count, text, place))

    def _model(self, home: DialogId, entry: Entry) -> Iterator[Entry]:
        """Yield a change of the model, if it changes."""
        model = entry.message.model if isinstance(entry, MessageEntry) else None
        if model and self._models.get(home) != model:
            self._models[home] = model
            yield ModelChange(model=model, provider="anthropic" if model.startswith("claude") else "", at=entry.at)

    def _home(self, value: Mapping[str, object]) -> DialogId:
        """Return the dialog of a record; a rewind creates one."""
        here = self._here or self._first()
        parent = parent_of(value)
        above = self._places.get(parent) if parent else None
        if parent is None or (parent and above is None):
            return here
        if above is None:
            return self._fork(here, ()) if is_prompt(value) and self._asked else here
        if is_prompt(value) and self._asked.get(above.dialog, -1) > above.seq:
            return self._fork(above.dialog, path_to(self._store, above))
        return above.dialog

    def _about(self) -> dict[str, object]:
        return {FRAMEWORK: {"subpath": self._subpath, "generation": self._generation}}

    def _first(self) -> DialogId:
        """Create the transcript's first dialog. Its id is derived, so only one of two writers creates it."""
        made = derive_dialog_id(self._session, self._subpath, str(self._generation))
        main = lanes_of(self._store, self._session, "").get("") if self._subpath else None
        node = Node(
            dialog_id=made,
            session_id=self._session,
            owner=self._subpath or NAME,
            parent_id=main[0].dialog_id if main else None,
            created_at=now(),
            relation="subagent" if self._subpath else "root",
            metadata=self._about(),
        )
        create(self._store, node)
        if not self._subpath or self._store.session(self._session).root is None:
            self._store.update_session(self._session, root=made)
        return made

    def _fork(self, parent: DialogId, spans: tuple[Span, ...]) -> DialogId:
        child = create_fork(self._store, parent, spans, self._about())
        if not self._subpath:
            self._store.update_session(self._session, root=child.dialog_id)
        return child.dialog_id

    def _annotate(self, entry: Entry) -> None:
        if self._here is not None:
            place = annotate(self._store, self._here, entry)
            self._read[self._here] = max(self._read.get(self._here, 0), place.seq + 1)

    def summarize(self, data: Mapping[str, object]) -> None:
        """Write the SDK's summary of the transcript."""
        entry = Custom(custom_type=SUMMARY, data=json.dumps(data))
        self._annotate(entry)
        self.summary = Summary(entry.at, dict(data))

    def delete(self) -> None:
        """End the transcript: the next record begins another one under its name."""
        self._annotate(Custom(custom_type=DELETED))


def _compaction(store: Store, dialog_id: DialogId, summary: str, source: Source | None) -> Compaction:
    """Return the checkpoint of a compaction in Claude Code: the state in force, and the summary."""
    state = fold(store, dialog_id).state
    gone = apart(spans_of(store, dialog_id), state)
    derived = Derived(text=summary, label="summary", sources=tuple(map(Run.of, gone)))
    omitted = [
        Omitted(run=run, reason=Reason.COMPACTED, by=NAME, messages=messages_in(store, [span]))
        for run, span in zip(map(Run.of, gone), gone, strict=True)
    ]
    return Compaction(
        base=store.last(dialog_id).seq,
        pieces=(*map(Run.of, state), derived),
        omitted=tuple(omitted),
        policy=NAME,
        foreign=True,
        source=source,
    )
