"""Copies: everything, exactly, from any store into any other, or nothing; what differs is told."""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pytest

from palaver.errors import Erased, InvalidInput
from palaver.ids import DialogId
from palaver.log import Header, next_header
from palaver.store import MemoryStore, Store
from palaver.store.erasing import Erasing, Gone, Placed, source_name
from palaver.store.protocol import Copyable
from palaver.testing.store_laws import Backend, Begun, begin
from palaver.testing.store_laws.backend import calls, label, words
from palaver.testing.store_laws.erasing import erases
from palaver.transfer.copies import copy_store
from tests.store.golden import write
from tests.stores import fingerprint

Make = Callable[[str], Backend]
ON_SQLITE = pytest.mark.parametrize("kind", ["sqlite"])
"""For what does not depend on the store that is copied into."""


@pytest.mark.parametrize(("source", "target"), [("memory", "sqlite"), ("sqlite", "postgres"), ("postgres", "memory")])
def test_copy_is_equal(make: Make, source: str, target: str) -> None:
    """From any store into any other: every session, node, header, body, payload and source comes back equal."""
    here, there = make(source).open(), make(target).open()
    write(here)
    copied = copy_store(here, there)
    assert copied.equal
    assert (copied.sessions, copied.dialogs, copied.entries, copied.blobs, copied.others) == (2, 2, 9, 1, 0)
    assert copied.written == copied.entries
    assert fingerprint(here) == fingerprint(there)
    assert there.index_lag() == 9
    begin(there)
    again = copy_store(here, there)
    assert (again.written, again.others, again.equal) == (0, 1, True)
    here.close()
    there.close()


def test_copy_that_was_cut_off_shows_nothing(store: Store) -> None:
    """Whatever write it was cut off at, the target is as it was, payloads included; the next copy writes all of it."""

    class CutError(Exception):
        pass

    class Cutting(MemoryStore):
        """Return so many bodies and then fails, as a machine does."""

        left = 0

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            for pair in super().bodies(dialog_id, start, stop):
                if self.left == 0:
                    raise CutError
                self.left -= 1
                yield pair

    here = Cutting()
    begun = begin(here)
    for _ in range(3):
        begun.say(*(b"x" * 2_000_000 for _ in range(4)))
        begun.fork()
    begun.say(here.put_blob(begun.session, b"picture").encode())
    before = fingerprint(store)
    for here.left in (1, 5, 7):
        with pytest.raises(CutError):
            copy_store(here, store)
        assert fingerprint(store) == before
    here.left = -1
    copied = copy_store(here, store)
    assert (copied.equal, copied.written == copied.entries) == (True, True)


@ON_SQLITE
def test_grown_store_is_copied_on(store: Store) -> None:
    """What was appended, forked, renamed, trashed or erased since the last copy is there after the next; the source's erasures are told."""
    here = MemoryStore()
    begun, other = begin(here), begin(here)
    begun.say(b"a")
    assert copy_store(here, store).written == 1
    begun.say(b"b")
    here.annotate(begun.dialog, label())
    child = begun.fork()
    begun.say(b"c", dialog=child)
    here.update_session(begun.session, name="new", trashed_at=9.0, root=child)
    copied = copy_store(here, store)
    assert (copied.equal, copied.written) == (True, 3)
    with here.erasing() as eraser:
        eraser.remove_dialogs([other.dialog])
        eraser.remove_session(other.session)
        eraser.remember([("session", other.session), ("session", "f" * 32)], Gone(3.0, "r"))
    (told,) = copy_store(here, store).differences
    assert other.session in told
    assert cast("Erasing", store).gone("session", "f" * 32) == Gone(3.0, "r")


@ON_SQLITE
def test_target_that_went_on_is_told_and_left_alone(store: Store) -> None:
    """A dialog that was continued in the target is a difference; nothing is undone."""
    here = MemoryStore()
    begun = begin(here)
    begun.say(b"a")
    with pytest.raises(InvalidInput):
        copy_store(here, here)
    copy_store(here, store)
    there = Begun(store, begun.session, begun.dialog)
    there.say(b"there")
    assert any("differs in the target" in one for one in copy_store(here, store).differences)
    begun.say(b"here", b"more")
    assert not copy_store(here, store).equal
    assert there.said() == [b"a", b"there"]


@ON_SQLITE
def test_damage_on_either_side_is_told(backend: Backend, store: Store) -> None:
    """A changed byte in a body of the target is told with its place; one of the source is not copied as if it were sound."""
    begun = begin(store)
    begun.say(b"one", b"two")
    there = MemoryStore()
    copy_store(store, there)
    backend.damage(begun.dialog, 1)
    (told,) = copy_store(there, store).differences
    assert f"dialog {begun.dialog}, its bodies" in told
    assert not copy_store(store, MemoryStore()).equal


# --- what a store gives for it ----------------------------------------------------------------------------------------------------


def test_entries_are_taken_as_they_are_or_not_at_all(store: Store) -> None:
    """Also kinds that nobody may append; what does not follow, or whose body is another, is refused with all that was given."""
    begun = begin(store)
    first = next_header(calls("c1", "c2"))
    fields = {"role": "later", "number": 7, "open_calls": ("c2",), "calls": ("x",), "response": "q", "at": 9.0}
    sized = {"seq": 1, "size": 7, "total": first.total + 7, "digest": next_header(words(b"erased!")).digest}
    second = first._replace(kind="tombstone", **fields, **sized)  # type: ignore[arg-type]
    take: Callable[[DialogId, Sequence[tuple[Header, bytes]]], None] = cast("Copyable", store).take_entries
    for wrong in ({"seq": 5}, {"total": 1}, {"size": 1}, {"digest": b"0"}):
        with pytest.raises(InvalidInput):
            take(begun.dialog, [(first, b"calling"), (second._replace(**wrong), b"erased!")])
    assert store.last(begun.dialog).seq == -1
    take(begun.dialog, [(first, b"calling"), (second, b"erased!")])
    assert list(store.headers(begun.dialog)) == [first, second]
    assert store.verify(begun.dialog) == ()
    assert begun.say(b"next")[0].seq == 2


@ON_SQLITE
def test_copy_takes_erasures_and_brings_nothing_back(begun: Begun) -> None:
    """A copy has the tombstones and remembers what was erased; what either store has erased it reports instead of copying."""
    store = erases(begun.store)
    begun.say(b"one", b"two")
    other = begin(store)
    other.say(b"elsewhere")
    target = MemoryStore()
    with store.erasing() as eraser:
        eraser.put_in_place(begun.dialog, [Placed(0, "message", b"x")])
        eraser.remember([("source", source_name("i"))], Gone(5.0, "receipt"))
    assert copy_store(store, target).equal
    assert [body for _seq, body in target.bodies(begun.dialog)] == [b"x", b"two"]
    assert list(target.all_gone()) == list(store.all_gone())
    for one, place in ((begun, target), (other, store)):
        with erases(place).erasing() as eraser:
            eraser.remove_dialogs([one.dialog])
            eraser.remove_session(one.session)
            eraser.remember([("dialog", one.dialog), ("session", one.session)], Gone(5.0, "receipt"))
    copied = copy_store(store, target)
    for one in (begun, other):
        assert any(one.session in line and "erased" in line for line in copied.differences)
    with pytest.raises(Erased):
        target.session(begun.session)
    assert [body for _seq, body in target.bodies(DialogId(other.dialog))] == [b"elsewhere"]
