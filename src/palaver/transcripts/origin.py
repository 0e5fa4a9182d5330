"""Remember an exported transcript: importing it after its tool has continued it adds to the session that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from palaver.formats import Conversation, Match, Put, matches, open_source
from palaver.ids import SessionId, now
from palaver.log import Handle, MessageEntry
from palaver.messages import ToolMessage
from palaver.store.protocol import EXPORTED, SourceRecord, Store
from palaver.transcripts.exporting import Exported
from palaver.transcripts.sources import file_digest
from palaver.transfer.places import Landed, Places
from palaver.view import Exchange
from palaver.view.exchange import Result


def remember(store: Store, session_id: SessionId, exported: Exported, path: Path) -> None:
    """Remember that a file is an export of a session, unless it is remembered already or no tool continues it.

    `Importer` then adds only what the tool appended: to the exported dialog, or to a branch of it if it was continued here, too.

    Args:
        store: The store of the session.
        session_id: The session.
        exported: The export, which was written to the file.
        path: The file.

    Raises:
        OSError: The file cannot be read.
        StoreError: The store cannot be written to.
    """
    end = exported.end
    if end is None or not any(exported.exchanges):
        return
    with open_source(path) as source:
        match = next(each for each in matches(source) if isinstance(each, Match))
        events = match.format.read(match.source)
        identity = f"{match.format.name}:{next(event.key for event in events if isinstance(event, Conversation))}"
        if store.source(identity) is not None or store.source(f"{EXPORTED}{identity}") is not None:
            return
        puts = (event for event in events if isinstance(event, Put))
        places, last = Places(), ""
        for put, place in _placed(puts, exported.exchanges):
            last = put.dialog
            places.dialogs[last] = end.dialog
            places.landed.setdefault(last, []).append(Landed(put.record, put.digest, place.dialog, place.seq))
    if last and end.seq >= 0:  # what follows the last message was exported, too
        places.landed[last][-1] = places.landed[last][-1]._replace(dialog=end.dialog, seq=end.seq)
    store.put_source(
        SourceRecord(
            identity=f"{EXPORTED}{identity}",
            session_id=session_id,
            format=match.format.name,
            path=str(path.resolve()),
            digest=file_digest(path),
            index=store.put_blob(session_id, places.encode()),
            imported_at=now(),
        )
    )


def _placed(puts: Iterable[Put], exchanges: Sequence[Exchange | None]) -> Iterator[tuple[Put, Handle]]:
    """Yield each put of an exported file with the entry that it repeats, in the order of the log. A put of no entry has the place before it."""
    first = next(place for exchange in exchanges if exchange is not None for place in exchange.entries())
    last = Handle(first.dialog, max(first.seq - 1, 0))
    results: Iterator[Result] = iter(())
    shown: Exchange | None = None
    for put in puts:
        exchange = exchanges[put.entry.source.ordinal] if put.entry.source else None
        if exchange is not None and exchange is not shown:
            shown, results = exchange, iter(exchange.results)
        place = _place(put, exchange, results)
        if place is not None and (place.dialog != last.dialog or place.seq > last.seq):
            last = place
        yield put, last


def _place(put: Put, exchange: Exchange | None, results: Iterator[Result]) -> Handle | None:
    """Return the entry of an exchange that a put repeats, or None."""
    if exchange is None or not isinstance(put.entry, MessageEntry):
        return None
    if isinstance(put.entry.message, ToolMessage):
        result = next(results, None)
        return None if result is None else Handle(*result.handle[:2])
    answers = {result.handle[:2] for result in exchange.results}
    return next((place for place in reversed([*exchange.entries()]) if place[:2] not in answers), None)
