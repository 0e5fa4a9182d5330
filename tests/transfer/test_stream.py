"""Streams: a session in any form of its records is the same session, and what is not such a form is a typed error."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Session
from palaver.errors import Conflict, InvalidInput
from palaver.log import Label, Node, Place, UnknownEntry
from palaver.messages import ImageContent, TextContent, UserMessage
from palaver.store import MemoryStore, Store
from palaver.store.protocol import SourceRecord
from palaver.testing.logs import model, result, user
from palaver.transfer.files import sealed, unsealed
from palaver.transfer.landing import ReplayLogWarning, land
from palaver.transfer.records import EntryRecord, Record, from_json, from_line, to_json, to_line
from palaver.transfer.writer import stream
from tests.stores import fingerprint

_PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def grown() -> Session:
    """Return a session with a fork, a window, a picture, a tombstone, a kind of a later version, an empty dialog and a source."""
    session = Session.create(MemoryStore(), "grown", metadata={"entry": [1, {"seq": None}]})
    root = session.root
    root.append([user("secret"), model("", "a"), result("a"), model("done")])
    root.append(UserMessage(contents=(TextContent('see ,"entry":{} \u2028'), ImageContent(images=(_PNG,)))))
    root.record(Label(target=Place(dialog=root.dialog_id, seq=1), label="start"), beside=True)
    fork = root.fork(last_n=2)
    fork.record(UnknownEntry.model_validate({"kind": "of tomorrow", "at": 1.0, "entry": {"seq": 1}}), beside=True)
    fork.append(user("elsewhere"))
    fork.fork()
    session.erase(entries=[root.messages.handle(0)])
    index = session.store.put_blob(session.session_id, b'{"version":1,"dialogs":{}}')
    about = SourceRecord(identity="x", session_id=session.session_id, format="codex", index=index)
    session.store.put_source(about)
    return session


_SESSION = grown()
_RECORDS = list(stream(_SESSION.store, _SESSION.session_id))
_FORMS = {
    "as it is": lambda record: record,
    "a line": lambda record: from_line(to_line(record)),
    "a sealed line": lambda record: from_line(unsealed(sealed(to_line(record))) or b""),
    "JSON": lambda record: from_json(json.loads(json.dumps(to_json(record)))),
}


@pytest.mark.parametrize("form", _FORMS)
def test_stream_in_any_form_lands_as_the_session(form: str, store: Store) -> None:
    """In a store of each kind, the session gives the same records again; landing them twice changes nothing."""
    landed = land(map(_FORMS[form], _RECORDS), store, whole=True)
    assert (landed.dialogs, landed.added, landed.entries) == (
        3,
        3,
        len([r for r in _RECORDS if type(r) is EntryRecord]),
    )
    again = list(stream(store, landed.session_id))
    assert list(map(to_json, again)) == list(map(to_json, _RECORDS))
    before = fingerprint(store)
    assert land(again, store, exists="grow")[2:] == (0, 0)
    assert fingerprint(store) == before
    with pytest.raises(InvalidInput, match="exists"):
        land(again, store)


def test_exact_stream_lands_with_its_headers(store: Store) -> None:
    """Also those of tombstones and of unknown kinds; trash and times are mirrored; another history is refused, and nothing is written."""
    _SESSION.store.update_session(_SESSION.session_id, trashed_at=5.0)
    exact = list(stream(_SESSION.store, _SESSION.session_id, exact=True))
    land(exact, store, exists="mirror")
    _SESSION.store.update_session(_SESSION.session_id, trashed_at=None)
    copy = stream(store, _SESSION.session_id, exact=True)
    assert [r for r in copy if type(r) is EntryRecord] == [r for r in exact if type(r) is EntryRecord]
    assert store.session(_SESSION.session_id).trashed_at == 5.0
    before = fingerprint(store)
    other = [
        replace(r, body=r.body.replace(b"done", b"gone"), header=None) if type(r) is EntryRecord else r for r in exact
    ]
    with pytest.raises(Conflict, match="differs"):
        land(other, store, exists="grow")
    assert fingerprint(store) == before


@given(st.data())
def test_stream_with_gaps_keeps_numbers(data: st.DataObject) -> None:
    """Whatever entries and dialogs are lost, the others are where they were."""
    kept: list[Record] = []
    present = True
    for record in _RECORDS[1:]:
        present = data.draw(st.booleans()) if isinstance(record, Node) else present
        lost = isinstance(record, EntryRecord) and data.draw(st.booleans())
        kept += [record] if present and not lost else []
    store = MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReplayLogWarning)
        land([_RECORDS[0], *kept], store, gaps=True)
    written = list(stream(store, _SESSION.session_id))
    assert [record for record in kept if isinstance(record, EntryRecord) and record not in written] == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"palaver": 2, "session": {}},
        {"palaver": 1, "session": {}},
        {"palaver": 1, "session": {"session_id": "a"}, "more": 1},
        {"dialog": {"ranges": [[1]]}},
        {"dialog": {"dialog_id": "a", "session_id": "b", "ranges": [["a", 0, "1"]]}},
        {"seq": "1", "turn": True, "entry": {}},
        {"seq": 1, "turn": 1, "entry": {}},
        {"blob": "0" * 64, "data": "eA=="},
        {"blob": "0" * 64, "data": "!"},
        {"source": {"identity": "x"}},
    ],
)
def test_what_is_no_record_is_refused(value: object) -> None:
    """An unknown or missing field, another type, a payload of another digest: a typed error, from JSON and from a line."""
    with pytest.raises(InvalidInput):
        from_json(value)
    with pytest.raises(InvalidInput):
        from_line(json.dumps(value, separators=(",", ":")).encode())


@given(st.integers(0, len(_RECORDS) - 1), st.data())
def test_flipped_bit_of_a_line_is_found(number: int, data: st.DataObject) -> None:
    """D20: a line with a flipped bit, or cut anywhere, is not unsealed."""
    line = bytearray(sealed(to_line(_RECORDS[number])))
    place = data.draw(st.integers(0, len(line) - 1))
    assert unsealed(bytes(line[:place])) is None
    line[place] ^= 1 << data.draw(st.integers(0, 7))
    assert unsealed(bytes(line)) is None
