"""The laws of payloads that nothing names (`palaver.store.sweeping`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any, cast

import pytest

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log import NOTHING, next_header
from palaver.store.copying import Copyable
from palaver.store.erasing import FRESH, Eraser, Erasing, Placed, Stray, named_in
from palaver.store.protocol import SourceRecord
from palaver.store.sweeping import DAY, LEAST_AGE, SweepPlan, stray_payloads, sweep, sweepable
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup, words
from palaver.testing.store_laws.erasing import erases


def _names(blob: BlobId) -> bytes:
    return b'{"digest":"%s"}' % blob.encode()


class _Stepping:
    """A store that says before and behind each step of a sweep that it is there."""

    def __init__(self, store: Erasing, step: Callable[[], None]) -> None:
        for name in dir(store):  # what a store can do is looked for on the object itself since Python 3.12
            if not name.startswith("_") and not hasattr(type(self), name):
                setattr(self, name, getattr(store, name))
        self._store = store
        self._step = step

    def unnamed(self, *asked: Any) -> Any:  # noqa: ANN401 - as the store's
        self._step()
        found = self._store.unnamed(*asked)
        self._step()
        return found

    @contextmanager
    def erasing(self) -> Iterator[Eraser]:
        with self._store.erasing() as eraser:
            yield eraser
        self._step()

    def scrub(self, **_how: bool) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True)
class _World:
    """A store in which a sweep is under way.

    Attributes:
        begun: The store, and the dialog that stays.
        old: A payload that nothing names, and is to go unless somebody names it.
        moved: A payload that only an entry of `going` names.
        going: A dialog that may be erased.
        newest: The dialog whose entries were written last, which may be erased as well.
    """

    begun: Begun
    old: bytes
    moved: bytes
    going: DialogId
    newest: DialogId

    @property
    def store(self) -> Erasing:
        return erases(self.begun.store)

    def names(self, payload: bytes) -> None:
        """Let an entry name a payload that may have been put long ago, and is put only if it is not there."""
        blob = _id_of(payload)
        if not self.store.has_blob(blob):
            self.store.put_blob(payload)
        self.begun.say(_names(blob))

    def erases(self, *dialogs: DialogId) -> None:
        there = {node.dialog_id for node in self.store.nodes(self.begun.session)}
        with self.store.erasing() as eraser:
            eraser.remove_dialogs([one for one in dialogs if one in there])


def _append(world: _World) -> None:
    world.store.put_blob(world.old)
    world.names(world.old)


def _import(world: _World) -> None:
    piece, index = world.store.put_blob(world.old), world.store.put_blob(b"index of " + world.old)
    listing = world.store.put_blob(b'{"digest":"x","pieces":["%s"],"size":5}' % piece.encode())
    source = SourceRecord(identity=piece, session_id=world.begun.session, format="f", raw=listing, index=index)
    world.store.put_source(source)


def _copy(world: _World) -> None:
    target = world.begun.fork()
    body = _names(world.store.put_blob(world.old))
    cast("Copyable", world.store).take_entries(target, [(next_header(words(body), NOTHING), body)])


def _annotate(world: _World) -> None:
    world.store.put_blob(world.old)
    world.store.annotate(world.begun.dialog, words(_names(_id_of(world.old)), kind="label"))


def _move(world: _World) -> None:
    """Name what an entry named that was not read yet, and erase that one: what is only moved is never out of sight."""
    world.names(world.moved)
    world.erases(world.going)


def _again(world: _World) -> None:
    """Erase the newest entries, and write others in their place."""
    world.erases(world.newest)
    world.names(world.old)


def _overwrite(world: _World) -> None:
    with world.store.erasing() as eraser:
        eraser.put_in_place(world.begun.dialog, [Placed(0, "message", b"{}")])
    world.names(world.old)


_WRITERS: Mapping[str, Callable[[_World], None]] = {
    "an append": _append,
    "an append of what was put long ago": lambda world: world.names(world.old),
    "an annotation": _annotate,
    "an import": _import,
    "a copy": _copy,
    "a payload that moves": _move,
    "an erasure, and new entries in the old places": _again,
    "an entry that is overwritten": _overwrite,
    "a payload that is named at the end": lambda world: void(world.store.put_blob(world.old)),
    "another sweep": lambda world: void(sweep(world.store, sweepable(world.store))),
}


def void(_made: object) -> None:
    """Take what nobody needs."""


def _id_of(payload: bytes) -> BlobId:
    return BlobId(sha256(payload).hexdigest())


def _lost(begun: Begun) -> set[BlobId]:
    """Give what is named and not there."""
    store = begun.store
    named: set[BlobId] = set()
    for node in store.nodes(begun.session):
        named.update(*(named_in(body) for _, body in store.bodies(node.dialog_id)))
    for source in store.sources(begun.session):
        named |= {one for one in (source.raw, source.index) if one is not None}
        named |= named_in(store.blob(source.raw)) if source.raw is not None and store.has_blob(source.raw) else set()
    return {one for one in named if not store.has_blob(one)}


class SweepingLaws(LawGroup):
    """What `strays`, the ages of payloads and `sweep` promise."""

    def test_what_nothing_names_is_found(self, begun: Begun) -> None:
        """Payloads of entries, of sources and of lists of pieces are named; one that nothing names is told with its length, and is new."""
        store = erases(begun.store)
        by_entry, piece, index, loose = (store.put_blob(one) for one in (b"entry", b"piece", b"index", b"loose"))
        listing = store.put_blob(b'{"digest":"x","pieces":["%s"],"size":5}' % piece.encode())
        begun.say(_names(by_entry))
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=listing, index=index))
        (stray,) = stray_payloads(store)
        assert (stray.blob_id, stray.size, 0 <= stray.age < FRESH) == (loose, 5, True)
        begun.say(_names(loose))
        assert list(stray_payloads(store)) == []

    def test_a_custom_entry_names_payloads_by_whatever_key(self, begun: Begun) -> None:
        """Nobody but its maker knows what the keys of a custom entry are called: a payload that stands under any of them is named."""
        store = erases(begun.store)
        kept, loose = store.put_blob(b"kept"), store.put_blob(b"loose")
        begun.say(b'{"custom_type":"maker.file","data":{"attachment":"%s"},"kind":"custom"}' % kept.encode())
        assert [one.blob_id for one in stray_payloads(store)] == [loose]
        with store.erasing() as eraser:
            assert eraser.unnamed([kept, loose]) == {loose}

    def test_what_is_named_behind_many_entries_that_name_nothing_is_found(self, begun: Begun) -> None:
        """However many entries name nothing, before, between and behind: what is named far on is not told, and is not removed."""
        store = erases(begun.store)
        first, last, loose = (store.put_blob(one) for one in (b"first", b"last", b"loose"))
        with store.together():
            for number in range(1_300):
                begun.say({600: _names(first), 1_250: _names(last)}.get(number, b'{"kind":"message"}'))
        assert [one.blob_id for one in stray_payloads(store)] == [loose]
        with store.erasing() as eraser:
            assert eraser.unnamed([first, last, loose]) == {loose}

    def test_only_what_is_old_is_removed(self, backend: Backend, begun: Begun) -> None:
        """Of two that nothing names only the one that nobody has put for long goes; what is named stays whatever its age."""
        store = erases(begun.store)
        old, named = store.put_blob(b"old one"), store.put_blob(b"named")
        begun.say(_names(named))
        backend.age_payloads(2 * DAY)
        new = store.put_blob(b"new")
        plan = sweepable(store)
        assert [one.blob_id for one in plan.strays] == [old]
        assert [one.blob_id for one in plan.younger] == [new]
        assert plan.size == len(b"old one")
        done = sweep(store, plan)
        assert [one.blob_id for one in done.removed] == [old]
        assert [store.has_blob(one) for one in (old, named, new)] == [False, True, True]
        assert store.blob(named) == b"named"

    def test_what_is_put_again_counts_as_new(self, backend: Backend, begun: Begun) -> None:
        """A writer that puts what lies there already, and has not named it yet, is safe from a plan that was made before, and from one made now."""
        store = erases(begun.store)
        blob = store.put_blob(b"picture")
        backend.age_payloads(DAY)
        plan = sweepable(store, older_than=DAY)
        assert store.put_blob(b"picture") == blob
        assert (sweep(store, plan).kept, store.has_blob(blob)) == ((blob,), True)
        assert sweepable(store, older_than=LEAST_AGE).strays == ()

    def test_what_is_named_since_the_plan_stays(self, backend: Backend, begun: Begun) -> None:
        """An entry that names it was written after the plan: it stays, and the others go."""
        store = erases(begun.store)
        blobs = sorted(store.put_blob(b"%d" % number) for number in range(3))
        backend.age_payloads(DAY)
        plan = sweepable(store)
        begun.say(_names(blobs[1]))
        done = sweep(store, plan)
        assert (done.kept, [one.blob_id for one in done.removed]) == ((blobs[1],), [blobs[0], blobs[2]])
        assert store.blob(blobs[1]) == b"%d" % next(n for n in range(3) if store.put_blob(b"%d" % n) == blobs[1])

    @pytest.mark.parametrize("age", [0.0, -1.0, LEAST_AGE - 1, float("nan")])
    def test_what_may_be_being_written_cannot_be_asked_for(self, begun: Begun, age: float) -> None:
        """An age under an hour is refused, also in a plan that somebody made by hand; nothing is removed."""
        store = erases(begun.store)
        blob = store.put_blob(b"x")
        with pytest.raises(InvalidInput):
            sweepable(store, older_than=age)
        with pytest.raises(InvalidInput):
            sweep(store, SweepPlan(older_than=age, strays=tuple(stray_payloads(store))))
        assert store.has_blob(blob)

    def test_a_payload_of_the_future_is_not_old(self, backend: Backend, begun: Begun) -> None:
        """A clock that was wrong when it was put: it stays, and is set right by whoever puts it again."""
        store = erases(begun.store)
        blob = store.put_blob(b"x")
        backend.age_payloads(-400 * DAY)
        assert [one.blob_id for one in sweepable(store).younger] == [blob]
        store.put_blob(b"x")
        assert abs(next(stray_payloads(store)).age) < FRESH

    def test_where_a_list_of_pieces_cannot_be_read_nothing_is_removed(self, backend: Backend, begun: Begun) -> None:
        """What a spoilt list named nobody can tell: looking and removing raise, and nothing is gone."""
        store = erases(begun.store)
        piece, listing = store.put_blob(b"piece"), store.put_blob(b"no list")
        backend.age_payloads(DAY)
        plan = sweepable(store)
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=listing))
        for attempt in (lambda: sweep(store, plan), lambda: list(stray_payloads(store))):
            with pytest.raises(StoreDamaged, match="what it named"):
                attempt()
        assert store.has_blob(piece)

    @pytest.mark.parametrize("writer", _WRITERS)
    def test_whatever_is_written_at_whichever_step_stays(self, backend: Backend, begun: Begun, writer: str) -> None:
        """A sweep, and at each of its steps in turn another writer: what anything names in the end is there, and what nothing names is gone."""
        store = erases(begun.store)
        begun.say(b"first")
        for at in count():
            old, moved, loose = (b"%s %d" % (name, at) for name in (b"old", b"moved", b"loose"))
            with store.together():
                going, newest = begun.fork(), begun.fork()
                ids = [store.put_blob(one) for one in (old, moved, loose)]
                begun.say(_names(ids[1]), dialog=going)
                begun.say(b"nothing", b"nothing", dialog=newest)
            backend.age_payloads(2 * DAY)
            world = _World(begun, old, moved, going, newest)
            taken = 0

            def step(at: int = at, world: _World = world) -> None:
                nonlocal taken
                taken += 1
                if taken == at:
                    _WRITERS[writer](world)

            plan = SweepPlan(
                older_than=DAY, strays=tuple(Stray(one, 1, 2 * DAY) for one in ids)
            )  # one of them is named
            with backend.between(store, step):
                sweep(cast("Erasing", _Stepping(store, step)), plan)
            if at and taken >= at and writer == "a payload that is named at the end":
                begun.say(_names(ids[0]))
            assert _lost(begun) == set(), (writer, at)
            assert not store.has_blob(ids[2]), (writer, at)
            if at > taken:
                break
            world.erases(*(node.dialog_id for node in store.nodes(begun.session)[1:]))
        assert at >= len(["before the look", "behind it", "at the end"])

    def test_what_was_read_before_is_not_read_again(self, backend: Backend, begun: Begun) -> None:
        """With the writers kept out only what was written since the mark is read: entries, overwritten ones, and lists of pieces."""
        store = erases(begun.store)
        before, since, listed, anew = (store.put_blob(one) for one in (b"before", b"since", b"listed", b"anew"))
        begun.say(_names(before))
        backend.age_payloads(DAY)
        looked = store.unnamed([before, since, listed, anew], LEAST_AGE)
        assert looked.blob_ids == {since, listed, anew}
        begun.say(_names(since))
        listing = store.put_blob(b'{"digest":"x","pieces":["%s"],"size":5}' % listed.encode())
        store.put_source(SourceRecord(identity="i", session_id=begun.session, format="f", raw=listing))
        store.put_blob(b"anew")
        with store.erasing() as eraser:
            assert eraser.unnamed([before, since, listed, anew], LEAST_AGE, looked.mark) == {before}
            assert eraser.unnamed([before, since, listed, anew], LEAST_AGE) == frozenset()

    def test_a_store_that_only_stores_has_none(self, begun: Begun) -> None:
        """A store that cannot erase tells of none, and is not swept."""

        class Plain:
            """Nothing of a store that erases."""

        assert not isinstance(Plain(), Erasing)
        assert list(stray_payloads(Plain())) == []  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            sweepable(Plain())  # type: ignore[arg-type]
        assert begun.session
