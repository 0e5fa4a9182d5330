"""Everything that a store in memory holds, and the lock that stands before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from threading import RLock

from palaver.errors import StoreClosed, UnknownDialog, UnknownHandle, UnknownSession
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import Handle, Node
from palaver.store.erasing import Gone, KeptReceipt, Thing, listed, may_name, named_in
from palaver.store.lease import Lease
from palaver.store.memory.logs import Log
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import MIN_PREFIX_DIGITS

__all__ = ["Contents", "Guard"]


class Guard:
    """The lock of a store, which refuses to be taken once the store is closed."""

    def __init__(self) -> None:
        self.open = True
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()
        if not self.open:
            self._lock.release()
            raise StoreClosed("This store was closed.", hint="Open it again.")

    def __exit__(self, *_error: object) -> None:
        self._lock.release()


@dataclass(slots=True)
class Contents:
    """Everything that a store in memory holds. Whoever asks for anything has the guard, or takes it here.

    Attributes:
        guard: The lock.
        sessions: The sessions, as they were written: without the time of their newest entry.
        logs: The dialogs, in the order in which they were made.
        blobs: The payloads.
        times: When each payload was put last, in seconds since 1970-01-01 UTC.
        sources: What is known of foreign conversations, by identity.
        leases: The leases, by name.
        gone: What was erased.
        receipts: The receipts, the oldest first.
        files: The files that sessions were written to.
    """

    guard: Guard = field(default_factory=Guard)
    sessions: dict[SessionId, SessionRecord] = field(default_factory=dict)
    logs: dict[DialogId, Log] = field(default_factory=dict)
    blobs: dict[BlobId, bytes] = field(default_factory=dict)
    times: dict[BlobId, float] = field(default_factory=dict)
    sources: dict[str, SourceRecord] = field(default_factory=dict)
    leases: dict[str, Lease] = field(default_factory=dict)
    gone: dict[tuple[Thing, str], Gone] = field(default_factory=dict)
    receipts: dict[str, KeptReceipt] = field(default_factory=dict)
    files: dict[SessionId, tuple[str, ...]] = field(default_factory=dict)

    # --- a step that may be undone ----------------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        """Give what is needed to come back to how it stands now."""
        maps = {name: dict(getattr(self, name)) for name in _MAPS}
        return Standing(maps, {one: (log, len(log.headers), len(log.texts)) for one, log in self.logs.items()})

    def go_back(self, to: Standing) -> None:
        """Come back to how it stood."""
        for name, held in to.maps.items():
            setattr(self, name, held)
        self.logs = {one: log.cut(headers, texts) for one, (log, headers, texts) in to.logs.items()}

    # --- finding ----------------------------------------------------------------------------------------------------------------

    def session(self, session_id: SessionId) -> SessionRecord:
        """Give a session as it was written.

        Raises:
            Erased: It was erased.
            UnknownSession: There is none.
        """
        found = self.sessions.get(session_id)
        if found is None:
            self.refuse_gone("session", session_id)
            raise UnknownSession(session_id)
        return found

    def dated(self, record: SessionRecord) -> SessionRecord:
        """Give a session with the time of its newest entry."""
        logs = [log for log in self.logs.values() if log.node.session_id == record.session_id]
        times = [time for log in logs for time in (log.node.created_at, *(header.at for header in log.headers[-1:]))]
        return replace(record, updated_at=max([record.created_at, *times]))

    def log(self, dialog_id: DialogId) -> Log:
        """Give a dialog.

        Raises:
            Erased: It was erased.
            UnknownDialog: There is none.
        """
        found = self.logs.get(dialog_id)
        if found is None:
            self.refuse_gone("dialog", dialog_id)
            raise UnknownDialog(dialog_id)
        return found

    def place(self, dialog_id: DialogId, seq: int) -> Log:
        """Give the dialog of an entry.

        Raises:
            UnknownHandle: It has no such entry.
        """
        log = self.log(dialog_id)
        if not 0 <= seq < len(log.headers):
            raise UnknownHandle(str(Handle(dialog_id, seq)))
        return log

    def tree(self, session_id: SessionId) -> list[Node]:
        """Give the nodes of a session."""
        self.session(session_id)
        return [log.node for log in self.logs.values() if log.node.session_id == session_id]

    # --- what was erased --------------------------------------------------------------------------------------------------------

    def erased(self, thing: Thing, name: str) -> Gone | None:
        """Tell whether something was erased; a dialog by the first digits of its id, too."""
        found = self.gone.get((thing, name))
        if found is None and thing == "dialog" and len(name) >= MIN_PREFIX_DIGITS:
            known = sorted(one for kind, one in self.gone if kind == thing and one.startswith(name))
            found = self.gone[thing, known[0]] if known else None
        return found

    def refuse_gone(self, thing: Thing, name: str) -> None:
        """Insist that something was not erased.

        Raises:
            Erased: It was.
        """
        found = self.erased(thing, name)
        if found is not None:
            raise found.error(thing, name)

    # --- payloads that nothing names --------------------------------------------------------------------------------------------

    def older(self, blob_ids: Collection[BlobId], seconds: float) -> set[BlobId]:
        """Give those payloads that nobody has put for so many seconds."""
        at = now()
        return {one for one in blob_ids if one in self.blobs and at - self.times[one] >= seconds}

    def take_named(self, left: set[BlobId], known: Mapping[DialogId, tuple[Log, int]], *, proven: bool) -> None:
        """Take what entries and sources name out of some payloads. The guard is let go of between two dialogs, for whoever holds it not yet.

        Args:
            left: The payloads.
            known: Logs whose first entries, so many, were looked at before; what is another log now is looked at whole.
            proven: Whether a payload that lists others is proven to be what it was.
        """
        with self.guard:
            logs = list(self.logs.items()) if left else []
        for dialog_id, log in logs:
            was, length = known.get(dialog_id, (log, 0))
            with self.guard:
                bodies = log.bodies[length if was is log else 0 :]
            for body in filter(may_name, bodies):
                left -= named_in(body)
        with self.guard:
            for source in self.sources.values() if left else ():
                if source.raw in self.blobs:
                    left -= listed(source.raw, self.blobs[source.raw], proven=proven)
                left -= {one for one in (source.raw, source.index) if one is not None}


_MAPS = ("sessions", "blobs", "times", "sources", "leases", "gone", "receipts", "files")
"""Everything but the logs, which are only added to and cut again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the contents stood at the beginning of a step.

    Attributes:
        maps: Copies of everything but the logs, by name.
        logs: The logs, with how many entries each had, and how many of them were indexed.
    """

    maps: Mapping[str, dict[str, object]]
    logs: Mapping[DialogId, tuple[Log, int, int]]
