"""The laws of a store's life: opening, closing, other handles, other threads, other processes."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest

from palaver.errors import Conflict, InvalidInput, StoreClosed
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import Node
from palaver.store.blocks import in_block, tells_blocks
from palaver.store.connect import open_store
from palaver.store.protocol import Capability, Durability, SessionRecord, SourceRecord, Store
from palaver.testing.forked import forked
from palaver.testing.store_laws.backend import ILLEGAL, Backend, Begun, LawGroup, begin, label, needs, words

_ID = "d" * 32


def _every_method(store: Store) -> list[Callable[[], object]]:
    dialog, session = DialogId(_ID), SessionId(_ID)
    return [
        lambda: store.create_session(SessionRecord(session_id=session)),
        lambda: store.session(session),
        store.sessions,
        lambda: store.update_session(session, name="x"),
        lambda: store.create_dialog(Node(dialog_id=dialog, session_id=session)),
        lambda: store.node(dialog),
        lambda: store.nodes(session),
        lambda: store.resolve(_ID),
        lambda: store.append(dialog, (), -1),
        lambda: store.annotate(dialog, label()),
        lambda: store.last(dialog),
        lambda: store.header(dialog, 0),
        lambda: store.headers(dialog),
        lambda: store.bodies(dialog),
        lambda: store.body(dialog, 0),
        lambda: store.put_blob(b""),
        lambda: store.blob(BlobId("0" * 64)),
        lambda: store.has_blob(BlobId("0" * 64)),
        lambda: store.put_source(SourceRecord(identity="i", session_id=session, format="f")),
        lambda: store.source("i"),
        lambda: store.sources(session),
        lambda: store.index(lambda _kind, _body: ""),
        store.index_lag,
        store.drop_index,
        lambda: store.search("x"),
        lambda: store.verify(dialog),
        lambda: store.together().__enter__(),
    ]


class LifeLaws(LawGroup):
    """What a store promises about itself."""

    def test_it_is_a_store(self, store: Store) -> None:
        """It has every method of the protocol and says what it can do."""
        assert isinstance(store, Store)
        assert isinstance(store.durability, Durability)
        assert all(isinstance(capability, Capability) for capability in store.capabilities)
        assert (store.durability is not Durability.MEMORY) == (Capability.DURABLE in store.capabilities)

    def test_no_law_is_overridden(self) -> None:
        """A backend gives the fixture `backend` and nothing else: what it lacks is a missing capability, skipped by name."""
        for kind in type(self).__mro__:
            if not kind.__module__.startswith(__package__ or ""):
                own = {name for name in vars(kind) if name.startswith("test_") and hasattr(LifeLaws.__mro__[0], name)}
                assert own == set(), f"{kind.__name__} overrides {sorted(own)}"

    def test_after_close_every_method_says_so(self, store: Store) -> None:
        """A closed store does nothing more; closing it again is allowed."""
        store.close()
        store.close()
        for use in _every_method(store):
            with pytest.raises(StoreClosed):
                use()

    def test_what_was_acknowledged_is_there_after_reopening(self, begun: Begun, backend: Backend) -> None:
        """Everything that returned is there when the store is opened anew, and nothing else."""
        needs(begun.store, Capability.DURABLE)
        begun.say(b"a", b"b")
        begun.store.annotate(begun.dialog, label())
        blob = begun.store.put_blob(b"payload")
        begun.store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=blob))
        begun.fork()
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is, it must leave nothing behind
            begun.store.append(begun.dialog, [words(), ILLEGAL], 1)
        before = begun.everything()
        begun.store.close()
        again = backend.open()
        assert Begun(again, begun.session, begun.dialog).everything() == before
        assert again.blob(blob) == b"payload"
        again.close()

    def test_the_address_opens_the_same_store(self, begun: Begun) -> None:
        """`url` is what `open_store` takes."""
        needs(begun.store, Capability.SHARED)
        begun.say(b"a")
        again = open_store(begun.store.url, create=False)
        assert again.last(begun.dialog) == begun.store.last(begun.dialog)
        again.close()

    def test_two_handles_see_each_other(self, begun: Begun, backend: Backend) -> None:
        """What one has written the other reads at once, and the head that it moved is a conflict for the other."""
        needs(begun.store, Capability.SHARED)
        other = Begun(backend.open(), begun.session, begun.dialog)
        begun.say(b"a")
        assert other.store.last(begun.dialog).seq == 0
        other.say(b"b")
        with pytest.raises(Conflict) as told:
            begun.store.append(begun.dialog, [words(b"c")], 0)
        assert told.value.actual == 1
        assert begun.everything() == other.everything()
        other.store.close()
        assert begun.say(b"d")[0].seq == 2  # noqa: PLR2004

    @pytest.mark.parametrize("size", [1, 700_000])
    def test_a_reader_may_take_its_time(self, begun: Begun, backend: Backend, size: int) -> None:
        """A half-read listing hinders no writer, on its own handle or another, and goes on where it was."""
        needs(begun.store, Capability.SHARED)
        other = backend.open()
        bodies = [letter * size for letter in (b"a", b"b", b"c", b"d")]
        begun.say(*bodies)
        readers = [begun.store.bodies(begun.dialog), other.bodies(begun.dialog)]
        assert [next(reader) for reader in readers] == [(0, bodies[0])] * 2
        begun.say(b"one")
        assert Begun(other, begun.session, begun.dialog).say(b"two")[0].seq == 5  # noqa: PLR2004
        begun.say(b"three")
        assert [list(reader) for reader in readers] == [list(enumerate(bodies))[1:]] * 2
        other.close()

    def test_a_forked_child_opens_anew(self, begun: Begun) -> None:
        """Parent and child both go on with the store they had; each reads what the other wrote, and nothing is lost."""
        needs(begun.store, Capability.SHARED)
        if not hasattr(os, "fork"):
            pytest.skip("this system has no fork()")
        begun.say(b"before")

        def child() -> None:
            assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before"]
            begun.say(b"child")
            begun.store.close()

        assert forked(child) == 0, "the child failed; its own report is above"
        assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before", b"child"]
        begun.say(b"parent")
        assert begun.store.verify(begun.dialog) == ()

    def test_a_child_outlives_its_parents_handle(self, begun: Begun, backend: Backend) -> None:
        """What a child writes after the parent has closed is there: no file was taken away under it."""
        needs(begun.store, Capability.SHARED)
        if not hasattr(os, "fork"):
            pytest.skip("this system has no fork()")
        begun.say(b"before")
        begun_in_child, go_on = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            try:
                begun.say(b"child 1")
                os.write(begun_in_child[1], b"1")
                os.read(go_on[0], 1)
                begun.say(b"child 2")
                begun.store.close()
            except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.read(begun_in_child[0], 1)
        begun.store.close()
        os.write(go_on[1], b"1")
        assert os.waitpid(child, 0)[1] == 0
        for end in (*begun_in_child, *go_on):
            os.close(end)
        again = backend.open()
        assert [body for _seq, body in again.bodies(begun.dialog)] == [b"before", b"child 1", b"child 2"]
        again.close()

    def test_a_listing_may_move_to_another_thread(self, begun: Begun) -> None:
        """What was begun in one thread is read to its end in another."""
        begun.say(*(b"%d" % number for number in range(5)))
        reader = begun.store.bodies(begun.dialog)
        read = [next(reader)]
        thread = Thread(target=lambda: read.extend(reader))
        thread.start()
        thread.join()
        assert [body for _seq, body in read] == [b"%d" % number for number in range(5)]


class TogetherLaws(LawGroup):
    """What `together` promises."""

    def test_what_is_written_together_is_there_afterwards(self, begun: Begun, backend: Backend) -> None:
        """Writes of every kind inside a block stand when it ends, and the block itself reads them."""
        with begun.store.together():
            session, dialog = new_session_id(), new_dialog_id()
            begun.store.create_session(SessionRecord(session_id=session))
            begun.store.create_dialog(Node(dialog_id=dialog, session_id=session))
            begun.say(b"a", dialog=dialog)
            blob = begun.store.put_blob(b"payload")
            assert begun.store.last(dialog).seq == 0
            assert begun.store.blob(blob) == b"payload"
        assert begun.store.body(dialog, 0) == backend.stored(dialog, 0) == b"a"

    def test_a_block_that_raises_is_undone(self, begun: Begun) -> None:
        """An error that leaves the block undoes all of it, and it is the caller's error that is raised."""
        begun.say(b"a")
        before = begun.everything()

        def fail() -> None:
            with begun.store.together():
                begun.say(b"b")
                blobs.append(begun.store.put_blob(b"payload"))
                begun.fork()
                begun.store.create_session(SessionRecord(session_id=new_session_id()))
                begun.store.update_session(begun.session, name="changed")
                raise ZeroDivisionError

        blobs: list[BlobId] = []
        with pytest.raises(ZeroDivisionError):
            fail()
        assert begun.everything() == before
        assert not begun.store.has_blob(blobs[0])
        assert begun.say(b"next")[0].seq == 1

    def test_a_write_that_fails_inside_fails_alone(self, begun: Begun) -> None:
        """The others stand, those before it and those after it."""
        with begun.store.together():
            begun.say(b"a")
            with pytest.raises(Conflict):
                begun.store.append(begun.dialog, [words()], 7)
            with pytest.raises(InvalidInput):
                begun.store.append(begun.dialog, [words(b"x"), ILLEGAL], 0)
            begun.say(b"b")
        assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"a", b"b"]

    def test_blocks_may_stand_in_blocks(self, begun: Begun) -> None:
        """An inner block that raises is undone alone."""

        def fail() -> None:
            with begun.store.together():
                begun.say(b"b")
                raise ZeroDivisionError

        with begun.store.together():
            begun.say(b"a")
            with pytest.raises(ZeroDivisionError):
                fail()
            begun.say(b"c")
        assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"a", b"c"]

    def test_nobody_else_sees_an_open_block(self, begun: Begun, backend: Backend) -> None:
        """Another handle reads what was there before, until the block has ended."""
        needs(begun.store, Capability.SHARED)
        other = backend.open()
        with begun.store.together():
            begun.say(b"a")
            assert other.last(begun.dialog).seq == -1
        assert other.last(begun.dialog).seq == 0
        other.close()

    def test_a_thread_is_told_that_it_is_inside_a_block(self, begun: Begun) -> None:
        """`in_block` is true inside a block, an inner one and one that raised included, in the thread that opened it and in no other; a store need not say it."""
        if not tells_blocks(begun.store):
            pytest.skip("The store does not say whether a thread is inside a block.")
        seen = [in_block(begun.store)]

        def look() -> None:
            seen.append(in_block(begun.store))

        with begun.store.together():
            with suppress(ZeroDivisionError), begun.store.together():
                look()
                raise ZeroDivisionError
            look()
            thread = Thread(target=look)
            thread.start()
            thread.join()
        look()
        assert seen == [False, True, True, False, False]

    def test_other_threads_write_afterwards(self, begun: Begun) -> None:
        """A writer of another thread waits for the end of the block, and then writes."""
        elsewhere = begin(begun.store)
        thread = Thread(target=elsewhere.say, args=(b"other",))
        with begun.store.together():
            thread.start()
            begun.say(b"a", b"b")
        thread.join()
        assert elsewhere.store.last(elsewhere.dialog).seq == 0
        assert begun.store.last(begun.dialog).seq == 1
