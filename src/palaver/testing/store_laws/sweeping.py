"""The laws of payloads that nothing names (`palaver.store.sweeping`)."""

from __future__ import annotations

import pytest

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import BlobId
from palaver.store.erasing import FRESH, Erasing
from palaver.store.protocol import SourceRecord
from palaver.store.sweeping import DAY, LEAST_AGE, SweepPlan, stray_payloads, sweep, sweepable
from palaver.testing.store_laws.backend import Backend, Begun, LawGroup
from palaver.testing.store_laws.erasing import erases


def _names(blob: BlobId) -> bytes:
    return b'{"digest":"%s"}' % blob.encode()


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

    def test_a_store_that_only_stores_has_none(self, begun: Begun) -> None:
        """A store that cannot erase tells of none, and is not swept."""

        class Plain:
            """Nothing of a store that erases."""

        assert not isinstance(Plain(), Erasing)
        assert list(stray_payloads(Plain())) == []  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            sweepable(Plain())  # type: ignore[arg-type]
        assert begun.session
