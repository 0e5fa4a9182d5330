"""The laws of erasing and sweeping (`palaver.store.erasing`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import BlobId, new_dialog_id, new_session_id
from palaver.log import Handle, Node, Span, body_digest
from palaver.store.erasing import (
    DAY,
    Erasing,
    Gone,
    KeptReceipt,
    NotedFile,
    Placed,
    sweep,
    sweepable,
)
from palaver.store.protocol import Capability, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import NOBODY, NOWHERE, Backend, Begun, LawGroup, begin, needs, words

_GONE = Gone(5.0, "receipt")
_FILE = NotedFile("/a/file", "d" * 64, 7)


def erases(store: Store) -> Erasing:
    """Return the store's erasing interface, or skip the law."""
    if not isinstance(store, Erasing):
        pytest.skip("this store does not erase")
    return store


def _text(_kind: str, body: bytes) -> str:
    return body.decode()


def _naming(*blobs: BlobId) -> bytes:
    return b'{"digest":[%s]}' % b",".join(b'"%s"' % blob.encode() for blob in blobs)


class ErasingLaws(LawGroup):
    """The laws of erasing."""

    def test_entry_is_overwritten_in_place(self, begun: Begun) -> None:
        """Body, digest, kind and size are those of the replacement; cumulative sizes after it agree; nothing else changes."""
        store = erases(begun.store)
        before = begun.say(*(b"number %d" % number for number in range(6)))
        with store.erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(1, "message", b"x"), Placed(4, "tombstone", b"much longer")])
        bodies = begun.said()
        assert bodies == [b"number 0", b"x", b"number 2", b"number 3", b"much longer", b"number 5"]
        total = 0
        for was, header in zip(before, store.headers(begun.dialog), strict=True):
            body = bodies[header.seq]
            total += len(body)
            kind = "tombstone" if header.seq == 4 else was.kind  # noqa: PLR2004 - as above
            assert header == was._replace(kind=kind, size=len(body), total=total, digest=body_digest(body))
        assert store.verify(begun.dialog) == ()
        assert store.append(begun.dialog, [words(b"known head")], before[-1].turn_head)[0].total == total + 10

    def test_lost_body_becomes_a_tombstone(self, backend: Backend, begun: Begun) -> None:
        """An unreadable entry can still be erased."""
        needs(begun.store, Capability.DURABLE)
        begun.say(b"lost", b"kept")
        backend.lose(begun.dialog, 0)
        with erases(begun.store).erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"gone")])
        assert begun.said() == [b"gone", b"kept"]
        assert begun.store.verify(begun.dialog) == ()

    def test_law_4_erasure_is_all_or_none(self, begun: Begun) -> None:
        """An exception inside the block undoes all of it."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        blob = store.put_blob(begun.session, b"bytes")
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f"))
        store.note_file(begun.session, _FILE)
        other = begin(store, begun.session)
        other.say(b"there")
        searched = Capability.SEARCH in store.capabilities
        if searched:
            store.index(_text)
        before = (begun.everything(), other.everything())

        def failing() -> None:
            with store.erasing() as eraser:
                eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
                eraser.clear_dialog(begun.dialog)
                eraser.remove_dialogs([other.dialog])
                eraser.remove_session(other.session)
                eraser.remove_blobs(begun.session, [blob])
                eraser.remember([("session", other.session), ("dialog", other.dialog)], _GONE)
                eraser.keep_receipt(KeptReceipt("r1", "{}", "[]"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            failing()
        assert (begun.everything(), other.everything()) == before
        assert (store.has_blob(begun.session, blob), store.receipts(), list(store.all_gone())) == (True, (), [])
        assert store.files(begun.session) == (_FILE,)
        assert not searched or [hit.handle for hit in store.search("one")] == [Handle(begun.dialog, 0)]

    def test_place_that_is_not_there_is_not_found(self, begun: Begun) -> None:
        """An unknown entry or dialog raises, and nothing changes."""
        store = erases(begun.store)
        begun.say(b"one")
        before = begun.everything()
        for dialog, seq in ((begun.dialog, 1), (NOWHERE, 0)):
            with pytest.raises(NotFound), store.erasing() as eraser:
                eraser.put_in_place(dialog, [Placed(seq, "message", b"x")])
        assert begun.everything() == before

    def test_index_forgets_what_is_erased(self, begun: Begun) -> None:
        """Search finds neither an erased entry nor its tombstone, but still finds the others."""
        needs(begun.store, Capability.SEARCH)
        store, other = erases(begun.store), begin(begun.store, begun.session)
        begun.say(b"alpha secret", b"alpha kept")
        other.say(b"alpha elsewhere")
        store.index(_text)
        with store.erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"stand in")])
            eraser.remove_dialogs([other.dialog])
        assert [hit.handle for hit in store.search("alpha")] == [Handle(begun.dialog, 1)]
        assert store.search("secret") == ()
        assert store.index_lag() == 0
        begun.say(b"alpha later")
        store.index(_text)
        assert {hit.handle.seq for hit in store.search("alpha")} == {1, 2}

    def test_index_takes_nothing_erased_meanwhile(self, begun: Begun, backend: Backend) -> None:
        """If an entry is erased while it is being indexed, the index does not get its text."""
        needs(begun.store, Capability.SHARED)
        needs(begun.store, Capability.SEARCH)
        store = erases(begun.store)
        begun.say(b"alpha secret")
        other = erases(backend.open())

        def interrupted(_kind: str, body: bytes) -> str:
            if b"secret" in body:
                with other.erasing() as eraser:
                    eraser.put_in_place(begun.dialog, [Placed(0, "message", b"stand in")])
            return body.decode()

        store.index(interrupted)
        store.index(_text)
        assert store.search("secret") == ()
        assert len(store.search("stand")) == 1
        other.close()

    def test_removed_things_are_erased_not_unknown(self, begun: Begun) -> None:
        """Every method raises `Erased`, with time and receipt, for a removed dialog or session, and no list contains it."""
        store = erases(begun.store)
        begun.say(b"one")
        child = begun.fork(Span(begun.dialog, 0, 1))
        with store.erasing() as eraser:
            eraser.remove_dialogs([child])
            eraser.remember([("dialog", child)], _GONE)
        assert [node.dialog_id for node in store.nodes(begun.session)] == [begun.dialog]
        for ask in (store.node, store.last, lambda dialog_id: store.body(dialog_id, 0), store.headers, store.resolve):
            with pytest.raises(Erased) as told:
                ask(child)
            assert (told.value.what, told.value.name, told.value.at, told.value.receipt) == ("dialog", child, *_GONE)
        for use in (lambda: store.resolve(child[:8]), lambda: begun.say(b"more", dialog=child)):
            with pytest.raises(Erased):
                use()
        with store.erasing() as eraser:
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            eraser.remember([("dialog", begun.dialog), ("session", begun.session)], _GONE)
        assert list(store.sessions()) == []
        for question in (store.session, store.nodes, store.sources, store.files):
            with pytest.raises(Erased):
                question(begun.session)
        assert store.gone("session", begun.session) == _GONE
        assert store.gone("session", NOBODY) is None
        with pytest.raises(NotFound):
            store.session(NOBODY)

    def test_nothing_brings_back_what_was_erased(self, begun: Begun) -> None:
        """A session or dialog under the id of an erased one is refused."""
        store, dialog, session = erases(begun.store), new_dialog_id(begun.session), new_session_id(begun.session)
        with store.erasing() as eraser:
            eraser.remember([("session", session), ("dialog", dialog)], _GONE)
        with pytest.raises(Erased):
            store.create_session(SessionRecord(session_id=session))
        with pytest.raises(Erased):
            store.create_dialog(Node(dialog_id=dialog, session_id=begun.session))

    def test_dialogs_keep_their_places(self, begun: Begun) -> None:
        """Dialogs created after others were removed come last; a cleared one keeps its owner and loses its metadata."""
        store = erases(begun.store)
        second, third = begun.fork(), begun.fork()
        node = Node(
            dialog_id=new_dialog_id(begun.session), session_id=begun.session, metadata={"a": "secret"}, owner="o"
        )
        store.create_dialog(node)
        with store.erasing() as eraser:
            eraser.remove_dialogs([second])
            eraser.clear_dialog(node.dialog_id)
        fifth = begun.fork()
        nodes = store.nodes(begun.session)
        assert [dialog.dialog_id for dialog in nodes] == [begun.dialog, third, node.dialog_id, fifth]
        assert [dialog.order for dialog in nodes] == [0, 2, 3, 4]
        assert (nodes[2].metadata, nodes[2].owner) == ({}, "o")

    def test_references_are_of_entries_and_sources(self, begun: Begun) -> None:
        """A payload is named by an entry, by a source, and by the list of a kept file's pieces; by nothing else."""
        store = erases(begun.store)
        put, has = partial(store.put_blob, begun.session), partial(store.has_blob, begun.session)
        by_entry, piece, index, loose = map(put, (b"entry", b"piece", b"index", b"loose"))
        listing = put(b'{"digest":"x","pieces":["%s"],"size":5}' % piece.encode())
        begun.say(_naming(by_entry))
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=listing, index=index))
        blobs = {by_entry, piece, index, loose, listing}
        with store.erasing() as eraser:
            assert eraser.unnamed(begun.session, blobs) == {loose}
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
            assert eraser.unnamed(begun.session, blobs) == {loose, by_entry}
            store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", index=index))
            assert eraser.unnamed(begun.session, blobs) == {loose, by_entry, listing, piece}
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            assert eraser.unnamed(begun.session, blobs) == blobs
            assert eraser.unnamed(begun.session, ()) == frozenset()
            eraser.remove_blobs(begun.session, blobs)
        assert not any(map(has, blobs))
        assert store.source("i") is None

    def test_payload_of_another_session_stays(self, begun: Begun) -> None:
        """A payload that two sessions put and name stays for the second when the first is erased; a copied entry names it, too."""
        store, other = erases(begun.store), begin(begun.store, begun.session)
        blob, _same = (store.put_blob(session, b"both") for session in (begun.session, other.session))
        begun.say(_naming(blob))
        taken: Any = store
        taken.take_entries(other.dialog, [(store.header(begun.dialog, 0), store.body(begun.dialog, 0))])
        for erased, last in ((begun, False), (other, True)):
            with store.erasing() as eraser:
                eraser.remove_dialogs([erased.dialog])
                unnamed = eraser.unnamed(erased.session, [blob])
                eraser.remove_blobs(erased.session, unnamed)
                assert not last or unnamed == {blob}
            assert store.has_blob(other.session, blob) is not last

    def test_receipts_are_kept_in_order(self, backend: Backend, begun: Begun) -> None:
        """Receipts come back in order; the pending work of one can be updated."""
        store = erases(begun.store)
        for number in (2, 1, 3):
            with store.erasing() as eraser:
                eraser.keep_receipt(KeptReceipt(f"r{number}", '{"nul":"\\u0000"}', "[1]"))
        with store.erasing() as eraser:
            eraser.keep_receipt(KeptReceipt("r1", "new", "[]"))
        expected = [("r2", '{"nul":"\\u0000"}', "[1]"), ("r1", "new", "[]"), ("r3", '{"nul":"\\u0000"}', "[1]")]
        assert [tuple(receipt) for receipt in store.receipts()] == expected
        if Capability.DURABLE in store.capabilities:
            again = backend.open()
            assert [tuple(receipt) for receipt in erases(again).receipts()] == expected
            again.close()

    def test_noted_files_are_those_of_the_session(self, begun: Begun) -> None:
        """A second note of a path replaces the first; a note can be removed."""
        store = erases(begun.store)
        other = begin(store)
        first, again, second = _FILE._replace(digest=""), _FILE, NotedFile("/b", "e" * 64, 9)
        for file in (first, second, again):
            store.note_file(begun.session, file)
        assert store.files(begun.session) == (again, second)
        assert store.files(other.session) == ()
        store.forget_file(begun.session, "/b")
        assert store.files(begun.session) == (again,)

    def test_scrub_changes_nothing_that_is_there(self, begun: Begun) -> None:
        """A scrub changes no data, and a second one has no more to do than the first."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        searched = Capability.SEARCH in store.capabilities
        if searched:
            store.index(_text)
        before = begun.everything()
        pending = [store.scrub(thorough=thorough) for thorough in (True, False, True)]
        assert begun.everything() == before
        assert pending[0] == pending[2]
        assert not searched or [hit.handle.seq for hit in store.search("one")] == [0]

    # --- sweeping ---------------------------------------------------------------------------------------------------------------

    def test_sweep_removes_old_unnamed_payloads(self, begun: Begun, backend: Backend) -> None:
        """A sweep removes only payloads that nothing names and that are old enough; storing one again makes it new."""
        store = erases(begun.store)
        named, old, again = (store.put_blob(begun.session, data) for data in (b"named", b"old", b"again"))
        begun.say(_naming(named))
        assert sorted(stray.size for stray in store.strays()) == [3, 5]
        assert sweepable(store) == ()
        backend.age_payloads(2 * DAY)
        store.put_blob(begun.session, b"again")
        (due,) = sweepable(store)
        assert due.size == len(b"old")
        assert due.age >= 2 * DAY
        swept = sweep(store)
        assert [(stray.blob_id, stray.size) for stray in swept.removed] == [(due.blob_id, 3)]
        assert [store.has_blob(begun.session, blob_id) for blob_id in (named, old, again)] == [True, False, True]
        assert sweep(store).removed == ()

    def test_sweep_refuses_what_may_be_written(self, store: Store) -> None:
        """A sweep refuses ages under an hour: a new payload may be about to be named."""
        for age in (0.0, 3599.0, float("nan")):
            with pytest.raises(InvalidInput):
                sweep(erases(store), older_than=age)
