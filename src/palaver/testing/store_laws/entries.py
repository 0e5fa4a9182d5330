"""The laws of entries: append, annotate, and reading."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Barrier, Thread
from typing import Any

import pytest

from palaver.errors import Conflict, IllegalEntry, InvalidInput, StoreDamaged, UnknownDialog, UnknownHandle
from palaver.ids import DialogId
from palaver.log import HOLDING, NOTHING, SOUGHT, Draft, Header, body_digest, next_header
from palaver.store.protocol import Capability
from palaver.testing.store_laws.backend import ILLEGAL, Backend, Begun, LawGroup, answer, calls, label, needs, words

WRITERS = 4
ODD_IDS = ('call"1', "a,b", "\x1f", "ü", "run:0", "")


class AppendLaws(LawGroup):
    """What `append` and `annotate` promise."""

    def test_headers_are_those_of_the_log(self, begun: Begun) -> None:
        """What is written is what the legality table makes of the drafts, in their order and without gaps."""
        drafts = [words(b"do"), calls(*ODD_IDS), answer(ODD_IDS[0], ODD_IDS[1]), words(b"more", kind="custom")]
        expected: list[Header] = []
        for draft in drafts:
            expected.append(next_header(draft, expected[-1] if expected else NOTHING))
        assert begun.store.append(begun.dialog, drafts[:1], -1) == (expected[0],)
        assert begun.store.append(begun.dialog, drafts[1:], 0) == tuple(expected[1:])
        assert list(begun.store.headers(begun.dialog)) == expected
        assert begun.store.last(begun.dialog) == expected[-1]
        assert begun.store.header(begun.dialog, 1).open_calls == ODD_IDS

    def test_what_is_written_is_what_was_given(self, begun: Begun, backend: Backend) -> None:
        """Bodies are kept byte for byte, and so they lie where the store keeps them."""
        bodies = [b"", b"\x00\xff\xfe", "ü".encode(), b"x" * 100_000]
        begun.say(*bodies)
        assert list(begun.store.bodies(begun.dialog)) == list(enumerate(bodies))
        assert [begun.store.body(begun.dialog, seq) for seq in range(4)] == bodies
        assert [backend.stored(begun.dialog, seq) for seq in range(4)] == bodies

    def test_all_or_none(self, begun: Begun) -> None:
        """One entry that may not follow undoes those before it in the same call."""
        begun.say(b"a")
        before = begun.everything()
        with pytest.raises(IllegalEntry):
            begun.store.append(begun.dialog, [words(b"b"), words(b"c"), ILLEGAL], 0)
        assert begun.everything() == before
        assert begun.say(b"next")[0].seq == 1

    def test_the_second_of_two_writers_is_told(self, begun: Begun) -> None:
        """Whoever appends after a head that has moved gets both numbers, and has written nothing."""
        begun.say(b"a", b"b")
        before = begun.everything()
        for stale in (-1, 0, 2):
            with pytest.raises(Conflict) as told:
                begun.store.append(begun.dialog, [words()], stale)
            assert (told.value.dialog_id, told.value.expected, told.value.actual) == (begun.dialog, stale, 1)
        assert begun.everything() == before

    def test_a_conflict_is_told_before_an_illegal_entry(self, begun: Begun) -> None:
        """Legality is judged against the head that the writer meant, so a stale one comes first."""
        with pytest.raises(Conflict):
            begun.store.append(begun.dialog, [ILLEGAL], 5)

    def test_nothing_to_append_only_compares(self, begun: Begun) -> None:
        """An empty sequence writes nothing; a stale head is told all the same."""
        begun.say(b"a")
        assert begun.store.append(begun.dialog, (), 0) == ()
        with pytest.raises(Conflict):
            begun.store.append(begun.dialog, (), -1)
        assert begun.store.last(begun.dialog).seq == 0

    def test_the_drafts_may_be_changed_afterwards(self, begun: Begun) -> None:
        """The store keeps what was given, not the list it was given in."""
        drafts = [words(b"a")]
        begun.store.append(begun.dialog, drafts, -1)
        drafts.append(words(b"b"))
        assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"a"]

    @pytest.mark.parametrize("draft", [words(at=float("nan")), words()._replace(response="\ud800")])
    def test_what_no_store_can_hold_is_refused(self, begun: Begun, draft: Draft) -> None:
        """A time that is no number, or a text that no UTF-8 can hold, is the caller's mistake."""
        with pytest.raises(InvalidInput):
            begun.store.append(begun.dialog, [words(), draft], -1)
        assert begun.store.last(begun.dialog) == NOTHING

    def test_an_annotation_does_not_move_the_turn_head(self, begun: Begun) -> None:
        """It takes the next number, and the turn goes on from where it was."""
        begun.say(b"a")
        header = begun.store.annotate(begun.dialog, label())
        assert header == next_header(label(), begun.store.header(begun.dialog, 0), turn=False)
        assert (header.seq, header.turn_head) == (1, 0)
        assert begun.store.append(begun.dialog, [words(b"b")], 0)[0].seq == 2  # noqa: PLR2004

    def test_an_annotation_needs_no_turn(self, begun: Begun) -> None:
        """It may be the first entry of a dialog."""
        assert begun.store.annotate(begun.dialog, label()).seq == 0
        assert begun.store.append(begun.dialog, [words()], -1)[0].turn_head == 1

    def test_what_may_not_stand_beside_a_turn_is_refused(self, begun: Begun) -> None:
        """A message cannot be annotated, nor a label appended; nothing is written."""
        with pytest.raises(IllegalEntry):
            begun.store.annotate(begun.dialog, words())
        with pytest.raises(IllegalEntry):
            begun.store.append(begun.dialog, [label()], -1)
        assert begun.store.last(begun.dialog) == NOTHING

    def test_dialogs_do_not_mix(self, begun: Begun) -> None:
        """Each dialog has numbers of its own, in whatever order they are written."""
        other = begun.fork()
        for number in range(3):
            begun.say(b"a%d" % number)
            begun.say(b"b%d" % number, dialog=other)
        assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"a0", b"a1", b"a2"]
        assert list(begun.store.bodies(other)) == [(0, b"b0"), (1, b"b1"), (2, b"b2")]

    def test_of_threads_with_the_same_head_one_wins(self, begun: Begun) -> None:
        """The comparison and the write are one step: every other thread is told who was first."""
        barrier, outcomes = Barrier(WRITERS), list[object]()

        def write(number: int) -> None:
            barrier.wait()
            try:
                outcomes.append(begun.store.append(begun.dialog, [words(b"%d" % number)], -1))
            except Conflict as conflict:
                outcomes.append(conflict)

        threads = [Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(isinstance(outcome, tuple) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == WRITERS - 1
        assert begun.store.last(begun.dialog).seq == 0

    def test_no_entry_of_any_thread_is_lost(self, begun: Begun) -> None:
        """Threads that reload on a conflict get all that they wrote into the log, each in its own order."""
        rounds, barrier = 10, Barrier(WRITERS)

        def write(number: int) -> None:
            barrier.wait()
            for turn in range(rounds):
                draft = words(b"%d:%d" % (number, turn))
                while True:
                    try:
                        begun.store.append(begun.dialog, [draft], begun.store.last(begun.dialog).turn_head)
                    except Conflict:
                        continue
                    break

        threads = [Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [tuple(map(int, body.split(b":"))) for _seq, body in begun.store.bodies(begun.dialog)]
        for number in range(WRITERS):
            assert [turn for who, turn in said if who == number] == list(range(rounds))
        assert begun.store.verify(begun.dialog) == ()


class ReadLaws(LawGroup):
    """What `last`, `header`, `headers`, `bodies` and `body` promise."""

    def test_an_empty_dialog_has_nothing(self, begun: Begun) -> None:
        """The newest header of no entry is the one before the first."""
        assert begun.store.last(begun.dialog) == NOTHING
        assert (list(begun.store.headers(begun.dialog)), list(begun.store.bodies(begun.dialog))) == ([], [])

    @pytest.mark.parametrize("seq", [-1, 2, 10**30])
    def test_a_number_that_is_not_there_is_an_unknown_handle(self, begun: Begun, seq: int) -> None:
        """Neither header nor body is given for a number outside of the log."""
        begun.say(b"a", b"b")
        for read in (begun.store.header, begun.store.body):
            with pytest.raises(UnknownHandle):
                read(begun.dialog, seq)

    @pytest.mark.parametrize(
        ("start", "stop"),
        [(0, None), (3, None), (2, 5), (5, 2), (7, None), (-3, 2), (0, -1), (4, 10**30), (10**30, None)],
    )
    def test_a_range_is_from_start_to_before_stop(self, begun: Begun, start: int, stop: int | None) -> None:
        """Ranges clip to what is there; a negative bound is before the first entry, never counted from the end."""
        begun.say(*(b"%d" % number for number in range(7)))
        expected = [n for n in range(7) if start <= n and (stop is None or n < stop)]
        headers = list(begun.store.headers(begun.dialog, start, stop))
        assert [header.seq for header in headers] == expected
        assert list(begun.store.headers(begun.dialog, start, stop, reverse=True)) == headers[::-1]
        assert list(begun.store.bodies(begun.dialog, start, stop)) == [(n, b"%d" % n) for n in expected]

    def test_what_holds_is_given_newest_first(self, begun: Begun) -> None:
        """Of a range, the entries of the kinds that hold beyond their place, and no others; of an empty dialog none."""
        assert list(begun.store.holding(begun.dialog)) == []
        kinds = ["message", *sorted(HOLDING), "custom", "label", *sorted(HOLDING), "message"]
        headers = begun.mark(*kinds)
        for start, stop in ((0, None), (2, 5), (5, 2), (-3, 4), (3, 10**30), (len(kinds), None)):
            expected = [one for one in headers[max(start, 0) : stop] if one.kind in HOLDING]
            assert list(begun.store.holding(begun.dialog, start, stop)) == expected[::-1]
        with pytest.raises(UnknownDialog):
            begun.store.holding(DialogId("0" * 32))

    def test_what_is_looked_for_is_given_newest_first(self, begun: Begun) -> None:
        """Of a range, the entries of the kind that is asked for, as walking all headers finds them; other kinds are refused."""
        assert all(list(begun.store.of_kind(begun.dialog, kind)) == [] for kind in SOUGHT)
        kinds = ["inbox", "message", "turn_started", "invocation", "custom", "invocation", "turn_ended", "inbox"]
        headers = begun.mark(*kinds * 3, *["invocation"] * 600)  # more of one kind than a page holds
        for start, stop in ((0, None), (2, 9), (9, 2), (-3, 20), (3, 10**30), (len(headers), None)):
            for kind in SOUGHT:
                expected = [one for one in headers[max(start, 0) : stop] if one.kind == kind]
                assert list(begun.store.of_kind(begun.dialog, kind, start, stop)) == expected[::-1]
        with pytest.raises(UnknownDialog):
            begun.store.of_kind(DialogId("0" * 32), "inbox")
        with pytest.raises(InvalidInput):
            begun.store.of_kind(begun.dialog, "message")

    def test_long_logs_are_given_whole(self, begun: Begun) -> None:
        """More entries than any page holds come back, each once and in order, both ways."""
        count = 1500
        begun.say(*(b"%d" % number for number in range(count)))
        assert [header.seq for header in begun.store.headers(begun.dialog)] == list(range(count))
        backwards = begun.store.headers(begun.dialog, reverse=True)
        assert [header.seq for header in backwards] == list(range(count))[::-1]
        assert list(begun.store.bodies(begun.dialog)) == [(n, b"%d" % n) for n in range(count)]
        assert begun.store.last(begun.dialog).total == sum(len(b"%d" % n) for n in range(count))

    def test_writing_does_not_disturb_who_reads(self, begun: Begun) -> None:
        """What is given lazily is what was there at the call; appending meanwhile is no error and adds nothing to it."""
        begun.say(*(b"%d" % number for number in range(5)))
        readers: list[Iterator[Any]] = [
            begun.store.headers(begun.dialog),
            begun.store.headers(begun.dialog, reverse=True),
            begun.store.bodies(begun.dialog),
        ]
        for reader in readers:
            next(reader)
        begun.say(b"new")
        assert [len(list(reader)) for reader in readers] == [4, 4, 4]

    def test_large_bodies_are_read_beside_writers(self, begun: Begun) -> None:
        """Bodies that fill pages of their own come one after the other, and a half-read listing hinders neither writing nor closing."""
        large = [bytes([number]) * 700_000 for number in range(5)]
        begun.say(*large)
        reader = begun.store.bodies(begun.dialog)
        read = [next(reader)]
        begun.say(b"meanwhile")
        read.append(next(reader))
        begun.say(b"meanwhile")
        read += reader
        assert read == list(enumerate(large))
        assert next(begun.store.bodies(begun.dialog)) == (0, large[0])

    def test_headers_tell_of_their_bodies(self, begun: Begun) -> None:
        """Size, running total and digest of a header are those of the body beside it."""
        begun.say(b"abc", b"", b"\x00" * 50)
        total = 0
        for header, (seq, body) in zip(
            begun.store.headers(begun.dialog), begun.store.bodies(begun.dialog), strict=True
        ):
            total += len(body)
            assert (header.seq, header.size, header.total, header.digest) == (seq, len(body), total, body_digest(body))

    def test_headers_cannot_change_the_store(self, begun: Begun) -> None:
        """A header is a value."""
        given: Any = begun.say(b"a")[0]
        with pytest.raises(AttributeError):
            given.kind = "other"
        assert begun.store.last(begun.dialog).kind == "message"


class HealthLaws(LawGroup):
    """What `verify` promises, and what damage does to the rest of a log."""

    def test_a_sound_log_has_nothing_to_tell(self, begun: Begun) -> None:
        """No number is given for entries as they were written, nor for an empty dialog."""
        assert begun.store.verify(begun.dialog) == ()
        begun.say(b"a", b"", b"c")
        assert begun.store.verify(begun.dialog) == ()

    def test_damage_is_named_and_spares_its_neighbours(self, begun: Begun, backend: Backend) -> None:
        """A changed body is named; everything before and after it is read as ever, and appending goes on."""
        begun.say(*(b"body %d" % number for number in range(6)))
        backend.damage(begun.dialog, 2)
        assert begun.store.verify(begun.dialog) == (2,)
        read = dict(begun.store.bodies(begun.dialog))
        assert {seq: read[seq] for seq in (0, 1, 3, 4, 5)} == {seq: b"body %d" % seq for seq in (0, 1, 3, 4, 5)}
        assert [header.seq for header in begun.store.headers(begun.dialog)] == list(range(6))
        assert begun.say(b"next")[0].seq == 6  # noqa: PLR2004
        assert begun.store.body(begun.dialog, 6) == b"next"

    def test_a_lost_body_is_damage_and_no_unknown_handle(self, begun: Begun, backend: Backend) -> None:
        """That an entry was there is known from its header: it is named, asking for it is damage, and the others are given."""
        needs(begun.store, Capability.DURABLE)
        begun.say(b"a", b"b", b"c")
        backend.lose(begun.dialog, 1)
        assert begun.store.verify(begun.dialog) == (1,)
        with pytest.raises(StoreDamaged):
            begun.store.body(begun.dialog, 1)
        assert dict(begun.store.bodies(begun.dialog)) == {0: b"a", 2: b"c"}
        assert begun.say(b"d")[0].seq == 3  # noqa: PLR2004

    def test_dialogs_are_judged_apart(self, begun: Begun, backend: Backend) -> None:
        """Damage in one dialog is no damage in another."""
        other: DialogId = begun.fork()
        begun.say(b"a")
        begun.say(b"a", dialog=other)
        backend.damage(other, 0)
        assert begun.store.verify(begun.dialog) == ()
        assert begun.store.verify(other) == (0,)
