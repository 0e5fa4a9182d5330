"""The laws of a store's life: transactions, closing, other handles, other threads, other processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import pytest

from palaver.errors import Conflict, InvalidInput, NotFound, StoreError
from palaver.ids import BlobId, new_dialog_id, new_session_id
from palaver.log import Node
from palaver.store.protocol import Capability, Durability, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import (
    ILLEGAL,
    NOBODY,
    NOWHERE,
    Backend,
    Begun,
    LawGroup,
    begin,
    forked,
    label,
    needs,
    words,
)


def _every_method(store: Store) -> list[Callable[[], object]]:
    return [
        lambda: store.create_session(SessionRecord(session_id=NOBODY)),
        lambda: store.session(NOBODY),
        store.sessions,
        lambda: store.update_session(NOBODY, name="x"),
        lambda: store.create_dialog(Node(dialog_id=NOWHERE, session_id=NOBODY)),
        lambda: store.node(NOWHERE),
        lambda: store.nodes(NOBODY),
        lambda: store.resolve(NOWHERE),
        lambda: store.append(NOWHERE, (), -1),
        lambda: store.annotate(NOWHERE, label()),
        lambda: store.last(NOWHERE),
        lambda: store.header(NOWHERE, 0),
        lambda: store.headers(NOWHERE),
        lambda: store.bodies(NOWHERE),
        lambda: store.body(NOWHERE, 0),
        lambda: store.put_blob(NOBODY, b""),
        lambda: store.blob(NOBODY, BlobId("0" * 64)),
        lambda: store.has_blob(NOBODY, BlobId("0" * 64)),
        lambda: store.put_source(SourceRecord(identity="i", session_id=NOBODY, format="f")),
        lambda: store.source("i"),
        lambda: store.sources(NOBODY),
        lambda: store.index(lambda _kind, _body: ""),
        store.index_lag,
        lambda: store.search("x"),
        lambda: store.verify(NOWHERE),
        lambda: store.transaction().__enter__(),
    ]


class LifeLaws(LawGroup):
    """The laws of the store as a whole."""

    def test_it_is_a_store(self, store: Store) -> None:
        """The store has every method of the protocol and declares its capabilities."""
        assert isinstance(store, Store)
        assert isinstance(store.durability, Durability)
        assert (store.durability is not Durability.MEMORY) == (Capability.DURABLE in store.capabilities)

    def test_no_law_is_overridden(self) -> None:
        """A backend overrides only the fixture `backend`; missing capabilities are skipped by name."""
        kinds = type(self).__mro__
        for number, kind in enumerate(kinds):
            laws = {name for above in kinds[number + 1 :] for name in vars(above) if name.startswith("test_")}
            assert not laws & vars(kind).keys(), f"{kind.__name__} overrides a law"

    def test_closed_store_refuses_every_method(self, store: Store) -> None:
        """A closed store refuses every method; closing it again is allowed."""
        store.close()
        store.close()
        for use in _every_method(store):
            with pytest.raises(StoreError) as told:
                use()
            assert told.value.reason == "closed"

    def test_with_block_closes_the_store(self, store: Store) -> None:
        """`with store as same` lends the store and closes it at the end."""
        with store as same:
            assert same.index_lag() == store.index_lag()
        with pytest.raises(StoreError, match="closed"):
            store.index_lag()

    def test_law_4_acknowledged_writes_survive_reopening(self, begun: Begun, backend: Backend) -> None:
        """After reopening, the store has every acknowledged write and nothing else."""
        needs(begun.store, Capability.DURABLE)
        begun.say(b"a", b"b")
        begun.store.annotate(begun.dialog, label())
        blob = begun.store.put_blob(begun.session, b"payload")
        begun.store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=blob))
        begun.fork()
        with pytest.raises(InvalidInput):
            begun.store.append(begun.dialog, [words(), ILLEGAL], 1)
        before = begun.everything()
        begun.store.close()
        again = backend.open()
        assert Begun(again, begun.session, begun.dialog).everything() == before
        assert again.blob(begun.session, blob) == b"payload"
        again.close()

    def test_law_5_two_handles_see_each_other(self, begun: Begun, backend: Backend) -> None:
        """A second handle, also one opened by address, reads writes of the first at once, and gets a conflict for a moved head."""
        needs(begun.store, Capability.SHARED)
        other = Begun(backend.open(), begun.session, begun.dialog)
        begun.say(b"a")
        assert other.store.last(begun.dialog).seq == 0
        other.say(b"b")
        with pytest.raises(Conflict):
            begun.store.append(begun.dialog, [words(b"c")], 0)
        third = backend.open_url(begun.store.url)
        assert begun.everything() == other.everything() == Begun(third, begun.session, begun.dialog).everything()
        third.close()
        other.store.close()
        assert begun.say(b"d")[0].seq == 2  # noqa: PLR2004

    def test_forked_child_opens_anew(self, begun: Begun) -> None:
        """Parent and child both continue with the store they had; each reads what the other wrote, and nothing is lost."""
        needs(begun.store, Capability.SHARED)
        begun.say(b"before")

        def child() -> None:
            assert begun.said() == [b"before"]
            begun.say(b"child")
            begun.store.close()

        assert forked(child) == 0, "the child failed; its own report is above"
        assert begun.said() == [b"before", b"child"]
        begun.say(b"parent")
        assert begun.store.verify(begun.dialog) == ()

    def test_child_outlives_its_parents_handle(self, begun: Begun, backend: Backend) -> None:
        """Writes of a child after the parent closed are stored: no file was deleted."""
        needs(begun.store, Capability.SHARED)
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
                os._exit(1)
            os._exit(0)
        os.read(begun_in_child[0], 1)
        begun.store.close()
        os.write(go_on[1], b"1")
        assert os.waitpid(child, 0)[1] == 0
        for end in (*begun_in_child, *go_on):
            os.close(end)
        again = backend.open()
        assert Begun(again, begun.session, begun.dialog).said() == [b"before", b"child 1", b"child 2"]
        again.close()

    def test_fork_in_a_transaction_is_the_parents(self, begun: Begun) -> None:
        """A child that was forked inside a transaction can neither use nor end it; the parent commits it."""
        needs(begun.store, Capability.SHARED)

        def child() -> None:
            with pytest.raises(StoreError, match="forked"):
                begun.say(b"child")

        with begun.store.transaction():
            begun.say(b"parent")
            assert forked(child) == 0
        assert begun.said() == [b"parent"]
        assert begun.store.verify(begun.dialog) == ()

    # --- transactions -----------------------------------------------------------------------------------------------------------

    def test_transaction_commits_every_kind_of_write(self, begun: Begun, backend: Backend) -> None:
        """Writes of every kind, also large ones, are visible inside the block and stored at its end."""
        payload = bytes(16_000_000)
        with begun.store.transaction():
            session = new_session_id()
            dialog = new_dialog_id(session)
            begun.store.create_session(SessionRecord(session_id=session))
            begun.store.create_dialog(Node(dialog_id=dialog, session_id=session))
            begun.say(b"a", dialog=dialog)
            blob = begun.store.put_blob(session, payload)
            assert begun.store.last(dialog).seq == 0
            assert begun.store.blob(session, blob) == payload
        assert begun.store.body(dialog, 0) == backend.stored(dialog, 0) == b"a"

    def test_transaction_that_raises_is_undone(self, begun: Begun) -> None:
        """An error that leaves the block undoes all of it, and the caller's own error is raised."""
        begun.say(b"a")
        before = begun.everything()
        blobs: list[BlobId] = []

        def fail() -> None:
            with begun.store.transaction():
                begun.say(b"b")
                blobs.append(begun.store.put_blob(begun.session, b"payload"))
                begun.fork()
                begun.store.create_session(SessionRecord(session_id=new_session_id(begun.session)))
                begun.store.update_session(begun.session, name="changed")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert begun.everything() == before
        assert not begun.store.has_blob(begun.session, blobs[0])
        assert begun.say(b"next")[0].seq == 1

    def test_transaction_spans_sessions(self, begun: Begun) -> None:
        """Writes to several sessions are one step, whatever their ids."""
        needs(begun.store, Capability.SPANNING)
        others = [begin(begun.store, f"{number:04x}") for number in range(0, 1 << 16, 1 << 13)]

        def write(*, fails: bool) -> None:
            with begun.store.transaction():
                for other in (begun, *others):
                    other.say(b"a")
                if fails:
                    raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            write(fails=True)
        assert not any(other.said() for other in (begun, *others))
        write(fails=False)
        assert all(other.said() == [b"a"] for other in (begun, *others))

    def test_failed_write_inside_is_undone_alone(self, begun: Begun) -> None:
        """Writes before and after a refused write are stored; the same applies to an inner block."""
        with begun.store.transaction():
            begun.say(b"a")
            with pytest.raises(Conflict):
                begun.store.append(begun.dialog, [words()], 7)
            with pytest.raises(InvalidInput):
                begun.store.append(begun.dialog, [words(b"x"), ILLEGAL], 0)
            with suppress(ZeroDivisionError), begun.store.transaction():
                begun.say(b"undone")
                raise ZeroDivisionError
            with begun.store.transaction():
                begun.say(b"b")
        assert begun.said() == [b"a", b"b"]

    def test_nobody_else_sees_an_open_transaction(self, begun: Begun, backend: Backend) -> None:
        """Another handle reads the old state until the block ends."""
        needs(begun.store, Capability.SHARED)
        other = backend.open()
        with begun.store.transaction():
            begun.say(b"a")
            assert other.last(begun.dialog).seq == -1
        assert other.last(begun.dialog).seq == 0
        other.close()

    def test_in_transaction_is_of_the_thread(self, begun: Begun) -> None:
        """True inside a block and an inner one that raised, in the thread that opened it and in no other."""
        seen = [begun.store.in_transaction]

        def look() -> None:
            seen.append(begun.store.in_transaction)

        with begun.store.transaction():
            with suppress(ZeroDivisionError), begun.store.transaction():
                look()
                raise ZeroDivisionError
            look()
            thread = Thread(target=look)
            thread.start()
            thread.join()
        look()
        assert seen == [False, True, True, False, False]

    def test_lock_keeps_others_out(self, begun: Begun) -> None:
        """Blocks with the same lock run one at a time, so that look-up and creation create once."""
        inside, made = Event(), list[str]()

        def open_or_create() -> None:
            with begun.store.transaction(lock="session:n"):
                if not made:
                    inside.wait(0.05)
                    made.append("here")

        threads = [Thread(target=open_or_create) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == ["here"]

    def test_lock_lasts_until_all_is_written(self, store: Store) -> None:
        """A lock of an inner block ends with the outer one: whoever waits for it sees what was written."""
        waited = Event()

        def open_or_create() -> None:
            with store.transaction():
                with store.transaction(lock="session:n"):
                    if not any(store.sessions(name="n")):
                        store.create_session(SessionRecord(session_id=new_session_id(), name="n"))
                waited.wait(0.05)

        threads = [Thread(target=open_or_create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(list(store.sessions(name="n"))) == 1

    def test_other_threads_write_afterwards(self, begun: Begun) -> None:
        """A writer of another thread waits for the end of the block if necessary, and then writes."""
        elsewhere = begin(begun.store)
        thread = Thread(target=elsewhere.say, args=(b"other",))
        with begun.store.transaction():
            thread.start()
            begun.say(b"a", b"b")
        thread.join()
        assert elsewhere.said() == [b"other"]
        assert begun.said() == [b"a", b"b"]

    def test_unknown_names_inside_a_transaction(self, begun: Begun) -> None:
        """A read that finds nothing does not spoil the block."""
        with begun.store.transaction():
            with pytest.raises(NotFound):
                begun.store.node(NOWHERE)
            begun.say(b"a")
        assert begun.said() == [b"a"]
