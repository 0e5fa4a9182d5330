"""Import a file of another agent as sessions, in one pass over the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from palaver.erasure.erase import ERASED_MARK
from palaver.errors import Erased, InvalidInput, UnsupportedTranscript
from palaver.formats import (
    FORMATS,
    Branch,
    Conversation,
    Event,
    Loss,
    Match,
    Put,
    ReadLimits,
    SourceFile,
    TranscriptFormat,
    matches,
    open_source,
)
from palaver.formats.claude_code import AGENT_FILE, about_agent
from palaver.ids import BlobId, DialogId, SessionId, new_session_id, now
from palaver.log import count_messages
from palaver.log.redaction import Redactor, redact_json
from palaver.messages import freeze
from palaver.messages.usage import InvokeCost
from palaver.store.erasing import Erasing, source_name
from palaver.store.memory import MemoryStore
from palaver.store.metadata import change_metadata
from palaver.store.protocol import ARCHIVE, EXPORTED, USAGE, SessionRecord, SourceRecord, Store
from palaver.store.redacting import redacted_entry, redacting
from palaver.transcripts.landing import Landing
from palaver.transcripts.sources import is_kept, keep, source_digest
from palaver.transfer.bundle import import_bundle_file, is_bundle
from palaver.transfer.places import Places

_STEP = 512  # events per transaction: other writers wait meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The result of importing one conversation.

    Attributes:
        path: The file.
        format: The format of the file.
        session_id: The session.
        name: The session's name.
        dialogs: The number of dialogs in the session.
        entries: The number of entries that this import wrote; 0 if all existed.
        records: The number of the format's own message records in the file; 0 for an unchanged session of a database, which is not read.
        messages: The number of messages, with the fragments of a response merged. Those that a rewritten file repeats count once.
        main: The dialog to continue with.
        outcome: `new`, `grown`, `unchanged` or `rewritten`.
        part: Whether the file is that of a sub-agent, and its content joined the session that it belongs to.
        losses: Content that could not be imported completely, or was repaired, each with its place.
    """

    path: Path
    format: str
    session_id: SessionId
    name: str
    dialogs: int
    entries: int
    records: int
    messages: int
    main: DialogId | None
    outcome: str
    losses: tuple[Loss, ...]
    part: bool = False


class _ArchivedError(InvalidInput):
    """A conversation's session is in an archive, and its file has changed."""


def _with_usage(metadata: Mapping[str, Any], cost: InvokeCost, *, fresh: bool) -> Mapping[str, Any]:
    """Add usage to the sums of a session, unless an older import stored no sums."""
    known = metadata.get(USAGE, {"tokens": 0, "cost": 0.0, "estimated": 0.0} if fresh else None)
    if not isinstance(known, Mapping):
        return metadata
    added = {"tokens": cost.total_tokens, "cost": cost.cost, "estimated": cost.estimated}
    return {**metadata, USAGE: {name: known[name] + value for name, value in added.items()}}


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return files with those of sub-agents after the others, so that each is attached to its session.

    The file that says which agent a sub-agent is belongs to the sub-agent's own and is left out.
    """
    given = list(paths)
    about = set(map(about_agent, given))
    read = (path for path in given if path not in about)
    return sorted(read, key=lambda path: (path.name.startswith(AGENT_FILE), len(path.parts)))


def _by_conversation(events: Iterable[Event]) -> Iterator[Iterator[Event]]:
    """Yield the events of each conversation, which begin with it. Losses of the whole file come before, if there are any."""
    begun = 0

    def number(event: Event) -> int:
        nonlocal begun
        begun += isinstance(event, Conversation)
        return begun

    for _, group in groupby(events, number):
        yield group


@dataclass(slots=True)
class _ImportedFile:
    """The file, or the session of a database, that is being imported.

    Attributes:
        source: The source of its bytes.
        path: The path of the file.
        digest: SHA-256 of its bytes.
        raw: The payload that lists its stored pieces; None if it is not stored.
    """

    source: SourceFile
    path: Path
    digest: str = ""
    raw: BlobId | None = None


@dataclass(slots=True)
class _Import:
    """One conversation that is being imported."""

    file: _ImportedFile
    format: str
    event: Conversation
    identity: str
    known: SourceRecord | None
    landing: Landing
    followed: bool
    losses: list[Loss] = field(default_factory=list)
    records: int = 0


@dataclass(slots=True)
class Importer:
    """Imports files into a store.

    Importing the same file again changes nothing, and a grown file adds its new records. If earlier records changed, a branch is created:
    imported entries never change. A session that was rewound here continues where it was rewound to. A new session stays in the trash until its
    import is complete, and for good if another process imported the same conversation meanwhile. Additions to a known session are one transaction.

    Attributes:
        store: The store of the sessions.
        keep_source: True to keep the file itself, compressed, in the store.
        subject: Whose data new sessions are.
        redactor: Removes secrets before anything is written. The source file, which contains them, is then not stored.
        again: True to import an erased session again, as a new session; otherwise `Erased` is raised.
        limits: How much of a file is read; None for the defaults.
        session_ids: Returns the id of a new session.
        formats: The formats that are asked first; those that packages add are asked, too.
    """

    store: Store
    keep_source: bool = True
    subject: str = ""
    redactor: Redactor | None = None
    again: bool = False
    limits: ReadLimits | None = None
    session_ids: Callable[[], SessionId] = new_session_id
    formats: Sequence[TranscriptFormat] = FORMATS

    def import_path(self, path: str | Path) -> Iterator[Imported]:
        """Import a transcript or a bundle, and yield each of its conversations as soon as it is complete.

        Raises:
            MissingFile: The file does not exist.
            UnsupportedTranscript: The file is in no known format, is a damaged bundle, or has a conversation of which nothing could be read.
                The other conversations are imported.
            Conflict: A bundle's history of a session differs from the store's.
            Erased: A conversation was imported and erased, and `again` is False.
            InvalidInput: The session of a conversation is archived, and the file has changed. The other conversations are imported.
            StoreError: The store failed.
        """
        if is_bundle(path):
            yield self._bundle(Path(path))
            return
        unread: list[InvalidInput] = []
        count = 0
        for imported in self._imported(path, unread):
            count += 1
            yield imported
        for error in unread:
            if not count or error.hint:
                raise error

    def _imported(self, path: str | Path, unread: list[InvalidInput]) -> Iterator[Imported]:
        with open_source(path, self.limits) as source:
            waiting: list[Loss] = []
            file = _ImportedFile(source, source.path)
            for match in matches(source, self.formats):
                if isinstance(match, Loss):
                    waiting.append(match)
                    continue
                file = _ImportedFile(match.source, source.path) if source.apart else file
                file.digest = file.digest or source_digest(file.source)
                if source.apart and (same := self._same(match, file)) is not None:
                    yield same
                    continue
                early, waiting = waiting, []
                any_conversation = False
                for events in _by_conversation(match.format.read(match.source)):
                    first = next(events)
                    if isinstance(first, Loss):
                        early += (first, *(event for event in events if isinstance(event, Loss)))
                        continue
                    any_conversation = True
                    try:
                        yield self._conversation(match, _begun(first), events, early, file)
                    except (UnsupportedTranscript, _ArchivedError) as error:
                        unread.append(error)
                    early = []
                if not any_conversation:
                    unread.append(_nothing_in(source.path, early))

    def _same(self, match: Match, file: _ImportedFile) -> Imported | None:
        """Return the stored session of a database if it is unchanged since its import, so that it is not read again."""
        known = self.store.source(f"{match.format.name}:{match.source.members[0].name}")
        if known is None or known.digest != file.digest or (known.raw is None and self.keep_source):
            return None
        record = self.store.session(known.session_id)
        return None if record.trashed_at else self._result(match.format.name, record, file.path, "unchanged")

    def _archived(self, match: Match, event: Conversation, identity: str, file: _ImportedFile) -> Imported | None:
        """Return the session of a conversation if it is in an archive and the file is as it was imported.

        Raises:
            _ArchivedError: It is in an archive, and the file is not.
        """
        own = self.store.source(identity)
        whole = self.store.source(f"{match.format.name}:{event.part_of}") if event.part_of else None
        for known in (own, whole):
            record = None if known is None else self.store.session(known.session_id)
            if record is not None and ARCHIVE in record.metadata:
                if own is not None and own.digest == file.digest:
                    return self._result(match.format.name, record, file.path, "unchanged")
                raise _ArchivedError(
                    f"{file.path}: session {record.session_id} is archived, and this file was not imported as it is now.",
                    hint=f"Run `palaver archive {record.session_id[:12]} --restore`, then import it again.",
                )
        return None

    def _result(
        self,
        format_name: str,
        record: SessionRecord,
        path: Path,
        outcome: str,
        **figures: Any,  # noqa: ANN401 - of an Imported
    ) -> Imported:
        nodes = self.store.nodes(record.session_id)
        about = {"dialogs": len(nodes), "entries": 0, "records": 0, "losses": (), **figures}
        return Imported(
            path=path,
            format=format_name,
            session_id=record.session_id,
            name=record.name,
            messages=count_messages(self.store, nodes),
            main=record.root,
            outcome=outcome,
            **about,
        )

    def _bundle(self, path: Path) -> Imported:
        into = self.store if self.redactor is None else redacting(self.store, self.redactor)
        done = import_bundle_file(into, path, self.limits)
        record, nodes = self.store.session(done.session_id), self.store.nodes(done.session_id)
        total = sum(self.store.last(node.dialog_id).seq + 1 for node in nodes)
        outcome = "unchanged" if not done.entries + done.added else "new" if done.added == done.dialogs else "grown"
        figures = {"dialogs": done.dialogs, "entries": done.entries, "records": total}
        return self._result("palaver-bundle", record, path, outcome, **figures)

    def _conversation(
        self, match: Match, event: Conversation, events: Iterator[Event], early: Sequence[Loss], file: _ImportedFile
    ) -> Imported:
        identity = self._own(_identity(file.path, match, event))
        if (away := self._archived(match, event, identity, file)) is not None:
            return away
        known = self._known(identity, file)
        erased = known is not None and ERASED_MARK in self.store.session(known.session_id).metadata
        keeps = self.keep_source and self.redactor is None and not erased
        there = known or self._whole(match, event)
        if keeps and there is not None and file.raw is None:
            # outside any transaction: the time depends on the size of the file
            file.raw = keep(self.store, there.session_id, file.source)
        lock = f"import {identity}"
        with ExitStack() as together:
            if known is not None or event.part_of:  # additions to a known session are one transaction
                together.enter_context(self.store.transaction(lock))
                known = self._known(identity, file)
            with self.store.transaction():
                current = self._begin(match, event, identity, known, file)
                current.losses[:0] = early
            if keeps and file.raw is None:
                file.raw = keep(self.store, current.landing.session_id, file.source)
            for first in events:
                with self.store.transaction():
                    self._land(current, chain((first,), islice(events, _STEP)))
            with self.store.transaction(lock):
                if known is None:
                    self._require_something(current)
                    other = self._known(identity, file)
                    if other is not None:  # imported meanwhile; ours stays in the trash
                        reason = "Another process imported another version of it meanwhile: import it again."
                        newer = Loss(place="whole file", reason=reason, code="meanwhile", severity="loss")
                        told = () if other.digest == file.digest else (newer,)
                        record = self.store.session(other.session_id)
                        return self._result(match.format.name, record, file.path, "unchanged", losses=told)
                return self._finish(current, erased=erased)

    def _own(self, identity: str) -> str:
        """Return the identity under which a session of this store was exported to the conversation, if one was."""
        exported = f"{EXPORTED}{identity}"
        erased = not self.again and isinstance(self.store, Erasing) and self.store.gone("source", source_name(exported))
        return exported if erased or self.store.source(exported) is not None else identity

    def _known(self, identity: str, file: _ImportedFile) -> SourceRecord | None:
        """Return the record of an earlier import: of this same file if it was rewritten later, or else the newest."""
        known = self.store.source(_earlier(identity, file.digest)) or self.store.source(identity)
        if known is None and not self.again and isinstance(self.store, Erasing):
            gone = self.store.gone("source", source_name(identity))
            if gone is not None:
                hint = "To import it again as a new session, pass `again`."
                raise Erased("session that was imported from", str(file.path), *gone, hint=hint)
        return known if known is not None and known.index is not None else None

    # --- the steps of one conversation --------------------------------------------------------------------------------------------

    def _begin(
        self, match: Match, event: Conversation, identity: str, known: SourceRecord | None, file: _ImportedFile
    ) -> _Import:
        whole = self._whole(match, event)
        places = Places()
        if known is not None:
            session_id = known.session_id
            places = Places.decode(self.store.blob(session_id, known.index)) if known.index is not None else places
        else:
            session_id = self._session(file.path, event) if whole is None else whole.session_id
        under = None if whole is None or whole.session_id != session_id else self._starter(whole, event)
        landing = Landing(self.store, session_id, places, under, event.started_at)
        followed = self.store.session(session_id).root in {None, *places.dialogs.values()}
        current = _Import(file, match.format.name, event, identity, known, landing, followed)
        if event.part_of and whole is None:
            reason = (
                f"It belongs to session {event.part_of}, which was not imported before it: it is a session of its own."
            )
            current.losses.append(Loss(place="whole file", reason=reason, code="part", severity="note"))
        if self.keep_source and self.redactor is not None:
            reason = "The file is not kept, because what is imported of it is redacted."
            current.losses.append(Loss(place="whole file", reason=reason, code="redacted", severity="note"))
        return current

    def _whole(self, match: Match, event: Conversation) -> SourceRecord | None:
        """Return the record of the conversation that one is a part of, if it was imported."""
        whole = self.store.source(f"{match.format.name}:{event.part_of}") if event.part_of else None
        return whole if whole is not None and whole.index is not None else None

    def _starter(self, whole: SourceRecord, part: Conversation) -> DialogId:
        """Return the parent dialog of a part: the one that started the sub-agent, if known, or else the session's first."""
        places = Places() if whole.index is None else Places.decode(self.store.blob(whole.session_id, whole.index))
        shown = places.dialogs.get(part.key.partition("/")[2])
        parent = None if shown is None else self.store.node(shown).parent_id
        return parent or self.store.nodes(whole.session_id)[0].dialog_id

    def _session(self, path: Path, event: Conversation) -> SessionId:
        """Create the session, in the trash until its import is complete."""
        session_id = self.session_ids()
        metadata = freeze(dict(event.metadata))  # a NUL in it must not stop the import
        metadata = metadata if self.redactor is None else redact_json(metadata, self.redactor)
        record = SessionRecord(
            session_id=session_id,
            name=self._clean(event.title) or self._file_name(path, event),
            subject=self.subject,
            workdir=self._clean(event.workdir),
            created_at=event.started_at or now(),
            trashed_at=now(),
            metadata=metadata,
        )
        self.store.create_session(record)
        return session_id

    def _file_name(self, path: Path, event: Conversation) -> str:
        """Return the name of the session of a conversation without a title."""
        return self._clean(f"{path.resolve().name.partition('.')[0]}{f' {event.ordinal}' if event.ordinal else ''}")

    def _clean(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.redact(text).text

    def _land(self, current: _Import, events: Iterable[Event]) -> None:
        """Write the content of some events."""
        landing = current.landing
        for event in events:
            match event:
                case Branch():
                    landing.branch(replace(event, metadata={**event.metadata, "key": event.dialog}))
                case Put():
                    current.records += event.counted
                    entry = event.entry if self.redactor is None else redacted_entry(event.entry, self.redactor)
                    landing.put(event if entry is event.entry else replace(event, entry=entry))
                case Loss():
                    current.losses.append(event)
        landing.flush()

    def _require_something(self, current: _Import) -> None:
        """Raise for a new conversation of which nothing was read; its session stays in the trash."""
        lasts = [self.store.last(dialog) for dialog in current.landing.places.dialogs.values()]
        unread = [loss for loss in current.losses if loss.severity == "loss" and loss.code != "torn_tail"]
        if not any(last.number for last in lasts) and (unread or all(last.seq < 0 for last in lasts)):
            raise _nothing_in(current.file.path, unread)

    def _finish(self, current: _Import, *, erased: bool) -> Imported:
        landing, file = current.landing, current.file
        landing.finish()
        if erased:
            reason = "Entries of it were erased here: they stay erased, and the file is not kept."
            current.losses.append(Loss(place="session", reason=reason, code="erased", severity="note"))
        record = self.store.session(landing.session_id)
        whole = landing.under is None
        root = landing.places.dialogs.get(current.event.main) if whole and current.followed else record.root
        name = record.name
        older = landing.shrunk or (current.known is not None and current.known.identity != current.identity)
        if older and not landing.added:
            root = record.root  # an older copy: entries of the newer one stay
        else:
            self._put_source(current, erased=erased)
            if whole and current.known is not None and name == self._file_name(Path(current.known.path), current.event):
                name = self._file_name(file.path, current.event)  # the file was renamed, too
        fresh = current.known is None and whole
        record = change_metadata(
            self.store,
            landing.session_id,
            partial(_with_usage, cost=landing.cost, fresh=fresh),
            trashed_at=record.trashed_at if current.known is not None and not landing.added else None,
            root=root or record.root,
            name=name,
        )
        outcome = "new" if current.known is None else "grown" if landing.added else "unchanged"
        return self._result(
            current.format,
            record,
            file.path,
            "rewritten" if landing.rewritten and current.known is not None else outcome,
            entries=landing.added,
            records=current.records,
            losses=(*current.losses, *landing.losses),
            part=landing.under is not None,
        )

    def _put_source(self, current: _Import, *, erased: bool) -> None:
        """Record the source of the conversation and its imported records. A rewritten file keeps its earlier record, too."""
        file, landing, known = current.file, current.landing, current.known
        if known is not None and landing.rewritten and known.digest != file.digest:
            self.store.put_source(replace(known, identity=_earlier(current.identity, known.digest)))
        raw = None if erased else file.raw
        if raw is not None and not is_kept(self.store, landing.session_id, raw):
            # another session has it, or a sweep removed pieces during a very long import
            raw = keep(self.store, landing.session_id, file.source)
        self.store.put_source(
            SourceRecord(
                identity=current.identity,
                session_id=landing.session_id,
                format=current.format,
                path=str(file.path.resolve()),
                digest=file.digest,
                raw=raw,
                index=self.store.put_blob(landing.session_id, landing.places.encode()),
                imported_at=now(),
            )
        )


def require_something(path: str | Path, limits: ReadLimits | None = None) -> None:
    """Read a transcript up to its first message, or a bundle, and write nothing.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: It is in no known format, or has nothing to import.
    """
    if is_bundle(path):
        import_bundle_file(MemoryStore(), path, limits)
        return
    losses: list[Loss] = []
    with open_source(path, limits) as source:
        for match in matches(source):
            for event in (match,) if isinstance(match, Loss) else match.format.read(match.source):
                if isinstance(event, Put) and event.entry.kind == "message":
                    return
                if isinstance(event, Loss):
                    losses.append(event)
        raise _nothing_in(source.path, losses)


def _begun(event: Event) -> Conversation:
    if not isinstance(event, Conversation):
        raise InvalidInput("The reader emits an event before it begins a conversation.")
    return event


def _identity(path: Path, match: Match, event: Conversation) -> str:
    """Return a conversation's unique name among all imports: the format's own id, or the file and its number there."""
    if event.key:
        return f"{match.format.name}:{event.key}"
    member = match.source.members[0].name
    return f"{match.format.name}:{path.resolve()}{f'#{member}' if member else ''}:{event.ordinal}"


def _earlier(identity: str, digest: str) -> str:
    """Return the name of the import of a file before it was rewritten."""
    return f"{identity}@{digest[:16]}"


def _nothing_in(path: Path, losses: Sequence[Loss]) -> UnsupportedTranscript:
    lost = [loss for loss in losses if loss.severity == "loss"]
    if not lost:
        return UnsupportedTranscript(path, "there is nothing in it")
    first = f"The first loss is at {lost[0].place}: {lost[0].reason}"
    return UnsupportedTranscript(path, "nothing in it could be read", hint=first)
