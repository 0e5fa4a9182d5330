"""The laws of erasing (`palaver.store.erasing`)."""

from __future__ import annotations

from typing import cast

import pytest

from palaver.errors import Erased, UnknownDialog, UnknownHandle, UnknownSession
from palaver.ids import DialogId, SessionId, new_dialog_id
from palaver.log import Handle, Node, Span, body_digest
from palaver.store.copying import copy_store
from palaver.store.erasing import Erasing, Gone, KeptReceipt, Placed, source_name
from palaver.store.lease import Leasing, acquire
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Capability, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup, begin, needs, words

_GONE = Gone(5.0, "r1")


def erases(store: Store) -> Erasing:
    """Give the store as one that erases, or skip: a store need not."""
    if not isinstance(store, Erasing):
        pytest.skip("this store does not erase")
    return store


def _text(_kind: str, body: bytes) -> str:
    return body.decode()


class ErasingLaws(LawGroup):
    """What `erasing` and the rest of `palaver.store.erasing` promise."""

    def test_an_entry_is_overwritten_where_it_stands(self, begun: Begun) -> None:
        """Its body, digest, kind and size are those of what was put there; the sizes of all that follow agree, nothing else changed."""
        store = erases(begun.store)
        before = begun.say(*(b"number %d" % number for number in range(6)))
        with store.erasing() as eraser:
            eraser.put_in_place(
                begun.dialog, [Placed(1, "message", b"x"), Placed(4, "tombstone", b"much longer than it was")]
            )
        after = list(store.headers(begun.dialog))
        bodies = dict(store.bodies(begun.dialog))
        assert bodies == {
            0: b"number 0",
            1: b"x",
            2: b"number 2",
            3: b"number 3",
            4: b"much longer than it was",
            5: b"number 5",
        }
        total = 0
        for was, header in zip(before, after, strict=True):
            total += len(bodies[header.seq])
            kind = "tombstone" if header.seq == 4 else was.kind  # noqa: PLR2004 - as above
            size = len(bodies[header.seq])
            assert header == was._replace(kind=kind, size=size, total=total, digest=body_digest(bodies[header.seq]))
        assert store.verify(begun.dialog) == ()
        assert begun.say(b"goes on")[0].total == total + len(b"goes on")

    def test_a_lost_body_becomes_a_tombstone_too(self, backend: Backend, begun: Begun) -> None:
        """What cannot be read any more can be erased all the same."""
        needs(begun.store, Capability.DURABLE)
        store = erases(begun.store)
        begun.say(b"lost", b"kept")
        backend.lose(begun.dialog, 0)
        with store.erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"gone")])
        assert dict(store.bodies(begun.dialog)) == {0: b"gone", 1: b"kept"}
        assert store.verify(begun.dialog) == ()

    def test_an_erasure_happens_whole_or_not_at_all(self, begun: Begun) -> None:
        """What raises inside the block undoes all of it: entries, dialogs, sessions, payloads, leases and what was remembered."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        blob = store.put_blob(b"bytes")
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f"))
        store.note_file(begun.session, "/tmp/file")  # noqa: S108 - a name
        other = begin(store)
        other.say(b"there")
        store.index(_text)
        everything = (begun.everything(), other.everything())

        def failing() -> None:
            with store.erasing() as eraser:
                eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
                eraser.clear_dialog(begun.dialog)
                eraser.remove_dialogs([other.dialog])
                eraser.remove_session(other.session)
                eraser.remove_blobs([blob])
                eraser.remember([("session", other.session), ("dialog", other.dialog)], _GONE)
                eraser.keep_receipt(KeptReceipt("r1", "{}", "[]"))
                raise RuntimeError

        with pytest.raises(RuntimeError):
            failing()
        assert (begun.everything(), other.everything()) == everything
        assert (store.has_blob(blob), store.receipts(), list(store.all_gone())) == (True, (), [])
        assert store.files(begun.session) == ("/tmp/file",)  # noqa: S108 - a name
        assert [hit.handle for hit in store.search("one")] == [Handle(begun.dialog, 0)]

    def test_a_place_that_is_not_there_cannot_be_erased(self, begun: Begun) -> None:
        """An unknown entry or dialog is told, and nothing was changed."""
        store = erases(begun.store)
        begun.say(b"one")
        before = begun.everything()
        for dialog, seq, error in ((begun.dialog, 1, UnknownHandle), (new_dialog_id(), 0, UnknownDialog)):
            with pytest.raises(error), store.erasing() as eraser:
                eraser.put_in_place(dialog, [Placed(seq, "message", b"x")])
        assert begun.everything() == before

    def test_what_is_erased_is_not_found(self, begun: Begun) -> None:
        """The full-text index forgets an erased entry, and finds neither it nor its tombstone; the others stay found."""
        needs(begun.store, Capability.SEARCH)
        store = erases(begun.store)
        begun.say(b"alpha secret", b"alpha kept")
        other = begin(store)
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

    def test_what_was_removed_is_gone(self, begun: Begun) -> None:
        """A removed dialog or session answers every question with `Erased`, with its time and receipt, and is in no list."""
        store = erases(begun.store)
        begun.say(b"one")
        child = begun.fork(Span(begun.dialog, 0, 1))
        with store.erasing() as eraser:
            eraser.remove_dialogs([child])
            eraser.remember([("dialog", child)], _GONE)
        assert [node.dialog_id for node in store.nodes(begun.session)] == [begun.dialog]
        for ask in (
            store.node,
            store.last,
            lambda one: store.body(one, 0),
            lambda one: list(store.headers(one)),
            store.resolve,
        ):
            with pytest.raises(Erased) as told:
                ask(child)
            assert (told.value.what, told.value.name, told.value.at, told.value.receipt) == ("dialog", child, *_GONE)
        with pytest.raises(Erased):
            store.resolve(child[:8])
        with pytest.raises(Erased):
            begun.say(b"more", dialog=child)
        with store.erasing() as eraser:
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            eraser.remember([("dialog", begun.dialog), ("session", begun.session)], _GONE)
        assert list(store.sessions()) == []
        for question in (store.session, store.nodes, store.sources, store.files):
            with pytest.raises(Erased):
                question(begun.session)
        assert store.gone("session", begun.session) == _GONE
        assert store.gone("session", SessionId("f" * 32)) is None

    def test_nothing_brings_back_what_was_erased(self, begun: Begun) -> None:
        """A session or dialog under the id of an erased one is refused with `Erased`, even where the one that was erased is not there."""
        store = erases(begun.store)
        with store.erasing() as eraser:
            eraser.remember([("session", "e" * 32), ("dialog", "d" * 32)], _GONE)
        with pytest.raises(Erased):
            store.create_session(SessionRecord(session_id=SessionId("e" * 32)))
        with pytest.raises(Erased):
            store.create_dialog(Node(dialog_id=DialogId("d" * 32), session_id=begun.session))

    def test_an_unknown_name_is_still_unknown(self, store: Store) -> None:
        """What never was is not said to be erased."""
        erases(store)
        with pytest.raises(UnknownSession):
            store.session(SessionId("0" * 32))
        with pytest.raises(UnknownDialog):
            store.last(DialogId("0" * 32))

    def test_a_dialog_keeps_its_place_after_others_were_removed(self, begun: Begun) -> None:
        """Dialogs made later stand after those that are there, and no two have the same place."""
        store = erases(begun.store)
        second, third = begun.fork(), begun.fork()
        with store.erasing() as eraser:
            eraser.remove_dialogs([second])
        fourth = begun.fork()
        assert [node.dialog_id for node in store.nodes(begun.session)] == [begun.dialog, third, fourth]
        assert [node.order for node in store.nodes(begun.session)] == [0, 2, 3]

    def test_payloads_that_something_names_are_told(self, begun: Begun) -> None:
        """A payload counts as named by an entry, by a source, and by the list of pieces of a kept file; by nothing else."""
        store = erases(begun.store)
        by_entry, piece, index, loose = (store.put_blob(one) for one in (b"entry", b"piece", b"index", b"loose"))
        listing = store.put_blob(b'{"digest":"x","pieces":["%s"],"size":5}' % piece.encode())
        begun.say(b'{"digest":"%s"}' % by_entry.encode())
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=listing, index=index))
        blobs = {by_entry, piece, index, loose, listing}
        with store.erasing() as eraser:
            assert eraser.unnamed(blobs) == {loose}
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
            assert eraser.unnamed(blobs) == {loose, by_entry}
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            assert eraser.unnamed(blobs) == blobs
            assert eraser.unnamed(()) == frozenset()
            eraser.remove_blobs(blobs)
        assert not any(map(store.has_blob, blobs))
        assert store.source("i") is None

    def test_leases_of_what_was_erased_go_with_it(self, begun: Begun) -> None:
        """A lease whose name holds an erased id is gone; the others stay, with their tokens."""
        store = erases(begun.store)
        leasing = cast("Leasing", store)
        for name in (f"answers:{begun.session}", "other"):
            acquire(leasing, name, holder="me", seconds=60)
        with store.erasing() as eraser:
            eraser.remove_leases([begun.session])
        found: dict[str, int] = {}
        for name in (f"answers:{begun.session}", "other"):
            found[name] = leasing.change_lease(name, lambda lease, _now: lease).token
        assert found == {f"answers:{begun.session}": 0, "other": 1}

    def test_receipts_are_kept_in_order(self, backend: Backend, begun: Begun) -> None:
        """Receipts come back in the order in which they were given; what is pending of one can be written anew."""
        store = erases(begun.store)
        for number in (2, 1, 3):
            with store.erasing() as eraser:
                eraser.keep_receipt(KeptReceipt(f"r{number}", '{"nul":"\\u0000"}', "[1]"))
        with store.erasing() as eraser:
            eraser.keep_receipt(KeptReceipt("r1", "new", "[]"))
        expected = [("r2", '{"nul":"\\u0000"}', "[1]"), ("r1", "new", "[]"), ("r3", '{"nul":"\\u0000"}', "[1]")]
        assert [tuple(one) for one in store.receipts()] == expected
        if Capability.DURABLE in store.capabilities:
            again = backend.open()
            assert [tuple(one) for one in erases(again).receipts()] == expected
            again.close()

    def test_a_removed_dialog_has_no_metadata_left(self, begun: Begun) -> None:
        """A dialog that stays for its dependants keeps its place in the tree and loses its metadata."""
        store = erases(begun.store)
        made = new_dialog_id()
        store.create_dialog(Node(dialog_id=made, session_id=begun.session, metadata={"task": "secret"}, owner="o"))
        with store.erasing() as eraser:
            eraser.clear_dialog(made)
        assert (store.node(made).metadata, store.node(made).owner) == ({}, "o")

    def test_scrubbing_changes_nothing_that_is_there(self, begun: Begun) -> None:
        """After a scrub everything is as it was, and a second one finds no more to do than the first."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        store.index(_text)
        before = begun.everything()
        pending = [store.scrub(thorough=thorough) for thorough in (True, False, True)]
        assert begun.everything() == before
        assert pending[0] == pending[2]
        assert [hit.handle.seq for hit in store.search("one")] == [0]

    def test_a_copy_takes_tombstones_as_they_are(self, begun: Begun) -> None:
        """A copied store has the tombstones, and remembers what was erased: it refuses it as the first one does."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        with store.erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
            eraser.remember([("session", "e" * 32), ("source", source_name("i"))], _GONE)
        target = MemoryStore()
        assert copy_store(store, target).equal
        assert dict(target.bodies(begun.dialog)) == {0: b"x", 1: b"two"}
        assert list(target.all_gone()) == list(store.all_gone())
        with pytest.raises(Erased):
            target.create_session(SessionRecord(session_id=SessionId("e" * 32)))

    def test_a_copy_brings_nothing_back(self, begun: Begun) -> None:
        """What the target has erased is not copied into it, and what the source has erased is not taken from it: both are told."""
        store = erases(begun.store)
        begun.say(b"one", b"two")
        other = begin(store)
        other.say(b"elsewhere")
        target = MemoryStore()
        copy_store(store, target)
        with target.erasing() as eraser:
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            eraser.remember([("dialog", begun.dialog), ("session", begun.session)], _GONE)
        with store.erasing() as eraser:
            eraser.remove_dialogs([other.dialog])
            eraser.remove_session(other.session)
            eraser.remember([("dialog", other.dialog), ("session", other.session)], _GONE)
        copied = copy_store(store, target)
        assert not copied.equal
        assert any(begun.session in one and "erased" in one for one in copied.differences)
        assert any(other.session in one and "erased" in one for one in copied.differences)
        with pytest.raises(Erased):
            target.session(begun.session)
        assert dict(target.bodies(other.dialog)) == {0: b"elsewhere"}

    def test_an_append_waits_for_no_erasure(self, begun: Begun) -> None:
        """Writers that knew the dialog before an erasure go on after it: what they compare is not changed by it."""
        store = erases(begun.store)
        known = begun.say(b"one", b"two")[-1]
        with store.erasing() as eraser:
            eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x"), Placed(1, "message", b"yy")])
        assert store.append(begun.dialog, [words(b"three")], known.turn_head)[0].total == 1 + 2 + 5
