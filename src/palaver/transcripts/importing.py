"""Importing: from a file of another agent to sessions, in one pass over the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from palaver.errors import InvalidInput, UnsupportedTranscript
from palaver.formats import matches, open_source
from palaver.formats.events import Branch, Conversation, Event, Loss, Put
from palaver.formats.registry import Format, Match
from palaver.formats.sources import Source
from palaver.ids import BlobId, DialogId, SessionId, new_session_id, now
from palaver.log.redaction import Redactor, redact_json
from palaver.session.erasure import ERASED_MARK
from palaver.store.protocol import SessionRecord, SourceRecord, Store
from palaver.store.redacting import redacted_entry
from palaver.transcripts.landing import BATCH, Landing
from palaver.transcripts.origins import PART, Origin, erased_in, origin_of
from palaver.transcripts.parts import joint
from palaver.transcripts.sources import Keeper, file_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What importing one conversation came to.

    Attributes:
        path: The file.
        format: The format it was read in.
        session_id: The session it is.
        name: The session's name.
        dialogs: How many dialogs the session has.
        entries: How many entries this import wrote; 0 when all was there.
        records: How many of the format's own message records the file holds.
        messages: How many messages they are, fragments of one response merged.
        main: The dialog to go on with.
        outcome: `new`, `grown`, `unchanged` or `rewritten`.
        losses: What could not be carried over whole, or was repaired, each with its place.
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


@dataclass(slots=True)
class _Current:
    """The conversation that is being read."""

    format: Format
    event: Conversation
    origin: Origin
    landing: Landing
    records: int = 0
    losses: list[Loss] = field(default_factory=list)


class _Kept(NamedTuple):
    """The file that is being imported: the digest of its bytes, and what keeps them and gives the blob, or None."""

    digest: str
    keep: Callable[[], BlobId | None]


class _Events:
    """What a reader tells, with a look at what comes next.

    Attributes:
        next: What comes next; None at the end.
    """

    def __init__(self, events: Iterator[Event], progress: Callable[[int], None] | None) -> None:
        """Look at the first event."""
        self._events = enumerate(events)
        self._progress = progress
        self.next: Event | None = None
        self._move()

    def _move(self) -> None:
        number, self.next = next(self._events, (1, None))
        if self._progress is not None and not number % 256:
            self._progress(number)

    def losses(self) -> Iterator[Loss]:
        """Take the losses that come next."""
        while isinstance(self.next, Loss):
            yield self.next
            self._move()

    def conversation(self) -> Conversation:
        """Take the conversation that comes next.

        Raises:
            InvalidInput: The reader begins with something else.
        """
        found = self.next
        if not isinstance(found, Conversation):
            raise InvalidInput("the reader tells of a conversation before it begins it")
        self._move()
        return found

    def within(self, most: int) -> Iterator[Branch | Put | Loss]:
        """Take what comes next of the conversation, at most so many."""
        for _ in range(most):
            found = self.next
            if found is None or isinstance(found, Conversation):
                return
            self._move()
            yield found


_STEP_EVENTS = 1024
"""How many events one durable step takes at most: while it is open, other writers wait."""


@dataclass(slots=True)
class Importer:
    """Imports files into a store.

    An import that is cut off leaves its session in the trash, marked; doing it again takes up what is there. Importing the same file again
    adds nothing, a grown file adds what is new, and a file whose earlier part was changed becomes a branch: nothing imported is ever changed.

    Attributes:
        store: Where the sessions go.
        keep_source: True to keep the file itself, compressed, in the store.
        subject: Whose data new sessions are.
        redactor: Takes secrets out of what is read, before it is written; then no source file is kept, for it holds them.
        again: True to import what was erased here, as a new session; else it is refused with `Erased`.
        progress: Called with the number of records read so far, now and then.
    """

    store: Store
    keep_source: bool = True
    subject: str = ""
    redactor: Redactor | None = None
    again: bool = False
    progress: Callable[[int], None] | None = None

    def import_path(self, path: str | Path) -> Iterator[Imported]:
        """Import a file, and give what each of its conversations came to as soon as it is done.

        Raises:
            UnsupportedTranscript: The file is in no known format; or nothing in it, or in a conversation of it, could be read: that one made
                no session, and the others are there.
            StoreError: The store failed.
        """
        unread: list[UnsupportedTranscript] = []
        found = 0
        for one in self._imported(path, unread):
            found += 1
            yield one
        for error in unread:
            if not found or error.hint:
                raise error

    def _imported(self, path: str | Path, unread: list[UnsupportedTranscript]) -> Iterator[Imported]:
        with open_source(path) as source:
            waiting: list[Loss] = []
            digest = ""
            keeping: Callable[[], BlobId | None] = _nothing_kept
            for found in matches(source):
                if isinstance(found, Loss):
                    waiting.append(found)
                    continue
                if not digest:
                    digest = file_digest(source.path)
                    if self.keep_source and self.redactor is None:
                        keeping = Keeper(self.store, source.path)
                yield from self._conversations(source, found, waiting, _Kept(digest, keeping), unread)
                waiting = []

    def _conversations(
        self, source: Source, found: Match, waiting: list[Loss], file: _Kept, unread: list[UnsupportedTranscript]
    ) -> Iterator[Imported]:
        events = _Events(found.format.read(found.source), self.progress)
        early = [*waiting, *events.losses()]
        if events.next is None:
            unread.append(_nothing_in(source.path, [loss for loss in early if loss.severity == "loss"]))
        while events.next is not None:
            try:
                done = self._conversation(source.path, found, events, early, file)
            except UnsupportedTranscript as error:
                unread.append(error)
            else:
                yield done
            early = []

    def _conversation(self, path: Path, found: Match, events: _Events, early: list[Loss], file: _Kept) -> Imported:
        """Import the conversation that comes next, in durable steps: a step that fails is undone, those before it stand."""
        current: _Current | None = None
        done: Imported | None = None
        if isinstance(events.next, Conversation) and not erased_in(
            self.store, path, found, events.next, again=self.again
        ):
            file.keep()  # outside of any step: it takes as long as the file is large
        while done is None:
            with self.store.together():
                if current is None:
                    current = self._begin(path, found, events.conversation(), file.digest)
                    current.losses.extend(early)
                if self._step(current, events):
                    self._require_something(current, path)
                    done = self._finish(current, path, file)
        return done

    def _step(self, current: _Current, events: _Events) -> bool:
        """Take as much as one durable step should hold; True when the conversation ends."""
        current.landing.written = 0
        for event in events.within(_STEP_EVENTS):
            self._take(current, event)
            if current.landing.written >= BATCH:
                break
        else:
            if events.next is None or isinstance(events.next, Conversation):
                return True
        current.landing.flush()
        return False

    def _require_something(self, current: _Current, path: Path) -> None:
        """Refuse a new conversation of which nothing was read: what this step wrote is undone, and an earlier step's is in the trash."""
        current.landing.flush()
        lasts = [self.store.last(dialog) for dialog in current.landing.places.dialogs.values()]
        unread = [loss for loss in current.losses if loss.severity == "loss" and loss.code != "torn_tail"]
        said = current.origin.known is not None or any(last.number for last in lasts)
        if not said and (unread or all(last.seq < 0 for last in lasts)):
            raise _nothing_in(path, unread)

    def _begin(self, path: Path, found: Match, event: Conversation, digest: str) -> _Current:
        origin = origin_of(self.store, path, found, event, digest, again=self.again)
        whole = joint(self.store, found.format.name, event)
        if origin.known is None:
            session_id = self._session(path, event, origin.identity) if whole is None else whole.session
            begun = SourceRecord(identity=origin.identity, session_id=session_id, format=found.format.name)
            self.store.put_source(begun)
        else:
            session_id = origin.known.session_id
        if whole is not None and whole.session != session_id:
            whole = None  # it was imported before what it belongs to, and stays a session of its own
        part = "" if whole is None else origin.identity
        landing = Landing(self.store, session_id, origin.places(self.store, part), whole, event.started_at)
        current = _Current(found.format, event, origin, landing)
        current.losses.extend(self._of_beginning(current))
        return current

    def _session(self, path: Path, event: Conversation, identity: str) -> SessionId:
        """Make the session, in the trash as long as its import is not complete."""
        session_id = new_session_id()
        self.store.create_session(
            SessionRecord(
                session_id=session_id,
                name=self._clean(
                    event.title or f"{path.name.split('.')[0]}{f' {event.ordinal}' if event.ordinal else ''}"
                ),
                subject=self.subject,
                workdir=self._clean(event.workdir),
                created_at=event.started_at or now(),
                trashed_at=now(),
                metadata={
                    **(event.metadata if self.redactor is None else redact_json(event.metadata, self.redactor)),
                    "importing": identity,
                },
            )
        )
        return session_id

    def _clean(self, text: str) -> str:
        return text if self.redactor is None else self.redactor.redact(text).text

    def _of_beginning(self, current: _Current) -> Iterator[Loss]:
        """Say what is to be said of where the conversation goes."""
        landing = current.landing
        record = self.store.session(landing.session_id)
        if ERASED_MARK in record.metadata:
            reason = "Entries of it were erased here: they stay so, and the file is not kept."
            yield Loss(place="session", reason=reason, code="erased", severity="note")
        elif self.keep_source and self.redactor is not None:
            reason = "The file is not kept, because what is imported of it is redacted."
            yield Loss(place="whole file", reason=reason, code="redacted", severity="note")
        if record.trashed_at is not None and "importing" not in record.metadata:
            yield Loss(
                place="session", reason="It was in the trash and was taken out.", code="restored", severity="note"
            )
        if landing.joint is not None and landing.joint.shown is not None:
            reason = f"What the progress of its call showed of it is dialog {landing.joint.shown[:12]}."
            yield Loss(place="whole file", reason=reason, code="beside", severity="note")
        elif landing.joint is None and current.event.part_of:
            reason = f"It belongs to session {current.event.part_of}, which was not imported before it: it is a session of its own."
            yield Loss(place="whole file", reason=reason, code="part", severity="note")

    def _take(self, current: _Current, event: Branch | Put | Loss) -> None:
        match event:
            case Branch():
                part = {} if current.landing.joint is None else {PART: current.origin.identity}
                current.landing.branch(replace(event, metadata={**event.metadata, "key": event.dialog, **part}))
            case Put():
                current.records += event.counted
                entry = event.entry if self.redactor is None else redacted_entry(event.entry, self.redactor)
                current.landing.put(event if entry is event.entry else replace(event, entry=entry))
            case Loss():
                current.losses.append(event)

    def _finish(self, current: _Current, path: Path, file: _Kept) -> Imported:
        landing = current.landing
        landing.finish()
        main = landing.places.dialogs.get(current.event.main)
        nodes = self.store.nodes(landing.session_id)
        record = self.store.session(landing.session_id)
        metadata = {key: value for key, value in record.metadata.items() if key != "importing"}
        root = main or (nodes[0].dialog_id if nodes else None)
        older = landing.shrunk or current.origin.older
        if landing.joint is not None:
            root = record.root
        if current.origin.complete and older and not landing.added:
            root = record.root  # an older copy, or a piece of one: what came with the newer one stays
        else:
            current.origin.put(self.store, current.format.name, path, landing, (file.digest, self._raw(current, file)))
        record = self.store.update_session(landing.session_id, trashed_at=None, root=root, metadata=metadata)
        return Imported(
            path=path,
            format=current.format.name,
            session_id=landing.session_id,
            name=record.name,
            dialogs=len(nodes),
            entries=landing.added,
            records=current.records,
            messages=sum(self.store.last(node.dialog_id).number for node in nodes),
            main=root,
            outcome=_outcome(current),
            losses=(*current.losses, *landing.losses),
        )

    def _raw(self, current: _Current, file: _Kept) -> BlobId | None:
        """Keep the file, unless something of its session was erased: it would bring that back."""
        if ERASED_MARK in self.store.session(current.landing.session_id).metadata:
            return None
        known = current.origin.known
        return file.keep() or (None if known is None else known.raw)


def require_something(path: str | Path) -> None:
    """Read a file up to its first message, and write nothing.

    Raises:
        UnsupportedTranscript: It is in no known format, or an import would find nothing in it.
    """
    losses: list[Loss] = []
    anything = False
    with open_source(path) as source:
        for found in matches(source):
            for event in (found,) if isinstance(found, Loss) else found.format.read(found.source):
                if isinstance(event, Put) and event.entry.kind == "message":
                    return
                if isinstance(event, Loss) and event.severity == "loss" and event.code != "torn_tail":
                    losses.append(event)
                anything |= isinstance(event, Put)
        if losses or not anything:
            raise _nothing_in(source.path, losses)


def _nothing_kept() -> None:
    """Keep no file."""


def _nothing_in(path: Path, losses: Sequence[Loss]) -> UnsupportedTranscript:
    """Give the error for what holds no conversation, or none of which anything could be read."""
    if not losses:
        return UnsupportedTranscript(path, "there is nothing in it")
    first = f"The first thing is at {losses[0].place}: {losses[0].reason}"
    return UnsupportedTranscript(path, "nothing in it could be read", hint=first)


def _outcome(current: _Current) -> str:
    if current.origin.known is None:
        return "new"
    if current.landing.rewritten:
        return "rewritten"
    return "grown" if current.landing.added else "unchanged"


def losses_by_code(losses: tuple[Loss, ...]) -> dict[str, int]:
    """Count losses by their code, most frequent first."""
    return dict(Counter(loss.code for loss in losses).most_common())
