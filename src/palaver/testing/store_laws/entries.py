"""The laws of entries and payloads: append, annotate, reading."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from threading import Barrier, Thread
from typing import Any

import pytest

from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.ids import BlobId, DialogId
from palaver.log import NOTHING, Header, body_digest, next_header
from palaver.store.protocol import TAIL_BYTES, TAIL_ENTRIES, Copyable
from palaver.testing.store_laws.backend import (
    ILLEGAL,
    NOBODY,
    Backend,
    Begun,
    LawGroup,
    answer,
    begin,
    calls,
    label,
    words,
)

WRITERS = 4
ODD_IDS = ('call"1', "a,b", "\x1f", "ü", "run:0", "")
RANGES = [(0, None), (3, None), (2, 5), (5, 2), (7, None), (-3, 2), (0, -1), (4, 10**30), (10**30, None)]


def _write(begun: Begun, number: int, rounds: int, barrier: Barrier) -> None:
    """Append messages once all writers are ready; after a conflict, append again after the new head."""
    barrier.wait()
    for turn in range(rounds):
        written = False
        while not written:
            with suppress(Conflict):
                head = begun.store.last(begun.dialog).turn_head
                begun.store.append(begun.dialog, [words(b"%d:%d" % (number, turn))], head)
                written = True


class EntryLaws(LawGroup):
    """The laws of entries and payloads."""

    def test_headers_are_those_of_the_log(self, begun: Begun) -> None:
        """Headers are those that the legality table makes of the drafts, in order and without gaps."""
        drafts = [words(b"do"), calls(*ODD_IDS), answer(ODD_IDS[0], ODD_IDS[1]), words(b"more", kind="custom")]
        expected: list[Header] = []
        for draft in drafts:
            expected.append(next_header(draft, expected[-1] if expected else NOTHING))
        assert begun.store.append(begun.dialog, drafts[:1], -1) == (expected[0],)
        assert begun.store.append(begun.dialog, drafts[1:], 0) == tuple(expected[1:])
        assert list(begun.store.headers(begun.dialog)) == expected
        assert begun.store.last(begun.dialog) == expected[-1]
        assert begun.store.header(begun.dialog, 1).open_calls == ODD_IDS

    def test_bodies_are_kept_byte_for_byte(self, begun: Begun, backend: Backend) -> None:
        """Bodies are stored and returned byte for byte; size, total and digest of the headers match them."""
        bodies = [b"", b"\x00\xff\xfe", "ü".encode(), b"x" * 100_000]
        headers = begun.say(*bodies)
        assert list(begun.store.bodies(begun.dialog)) == list(enumerate(bodies))
        assert [begun.store.body(begun.dialog, seq) for seq in range(4)] == bodies
        assert [backend.stored(begun.dialog, seq) for seq in range(4)] == bodies
        total = 0
        for header, body in zip(headers, bodies, strict=True):
            total += len(body)
            assert (header.size, header.total, header.digest) == (len(body), total, body_digest(body))

    def test_append_is_all_or_none(self, begun: Begun) -> None:
        """An entry that may not follow undoes the earlier ones of the same call."""
        begun.say(b"a")
        before = begun.everything()
        with pytest.raises(InvalidInput):
            begun.store.append(begun.dialog, [words(b"b"), words(b"c"), ILLEGAL], 0)
        assert begun.everything() == before
        assert begun.say(b"next")[0].seq == 1

    def test_law_5_stale_head_is_a_conflict(self, begun: Begun) -> None:
        """Appending after a head that has moved raises a conflict with both numbers, before the legality check, and writes nothing."""
        begun.say(b"a", b"b")
        before = begun.everything()
        for stale in (-1, 0, 2):
            for drafts in ([words()], [], [ILLEGAL]):
                with pytest.raises(Conflict) as told:
                    begun.store.append(begun.dialog, drafts, stale)
                assert (told.value.dialog_id, told.value.expected, told.value.actual) == (begun.dialog, stale, 1)
        assert begun.store.append(begun.dialog, (), 1) == ()
        assert begun.everything() == before

    def test_draft_that_no_store_can_hold_is_refused(self, begun: Begun) -> None:
        """A time that is not a number, or a text that UTF-8 cannot encode, raises InvalidInput."""
        for draft in (words(at=float("nan")), words()._replace(response="\ud800")):
            with pytest.raises(InvalidInput):
                begun.store.append(begun.dialog, [words(), draft], -1)
        assert begun.store.last(begun.dialog) == NOTHING

    def test_annotation_leaves_the_turn_head(self, begun: Begun) -> None:
        """An annotation gets the next number and may be the first entry; the turn head does not move."""
        assert begun.store.annotate(begun.dialog, label()).seq == 0
        assert begun.store.append(begun.dialog, [words()], -1)[0].turn_head == 1
        header = begun.store.annotate(begun.dialog, label())
        assert header == next_header(label(), begun.store.header(begun.dialog, 1), turn=False)
        assert begun.store.append(begun.dialog, [words(b"b")], 1)[0].seq == 3  # noqa: PLR2004

    def test_kind_stands_where_its_rule_says(self, begun: Begun) -> None:
        """A message cannot be written with annotate, nor a label with append; nothing is written."""
        with pytest.raises(InvalidInput):
            begun.store.annotate(begun.dialog, words())
        with pytest.raises(InvalidInput):
            begun.store.append(begun.dialog, [label()], -1)
        assert begun.store.last(begun.dialog) == NOTHING

    def test_dialogs_do_not_mix(self, begun: Begun) -> None:
        """Each dialog has its own numbers, in any order of writing."""
        other = begun.fork()
        for number in range(3):
            begun.say(b"a%d" % number)
            begun.say(b"b%d" % number, dialog=other)
        assert begun.said() == [b"a0", b"a1", b"a2"]
        assert begun.said(other) == [b"b0", b"b1", b"b2"]

    def test_law_5_no_entry_of_a_thread_is_lost(self, begun: Begun) -> None:
        """If threads reload after a conflict, the log gets all their entries, each thread's in order; of two equal heads one wins."""
        rounds, barrier = 10, Barrier(WRITERS)

        threads = [Thread(target=_write, args=(begun, number, rounds, barrier)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [tuple(map(int, body.split(b":"))) for body in begun.said()]
        for number in range(WRITERS):
            assert [turn for who, turn in said if who == number] == list(range(rounds))
        assert begun.store.verify(begun.dialog) == ()

    # --- reading --------------------------------------------------------------------------------------------------------------

    def test_number_outside_of_the_log_is_not_found(self, begun: Begun) -> None:
        """A number outside the log has neither a header nor a body."""
        begun.say(b"a", b"b")
        for read in (begun.store.header, begun.store.body):
            for seq in (-1, 2, 10**30):
                with pytest.raises(NotFound) as told:
                    read(begun.dialog, seq)
                assert told.value.what == "handle"

    def test_range_is_from_start_to_before_stop(self, begun: Begun) -> None:
        """Ranges are clipped to existing entries; a negative bound is before the first entry, not counted from the end."""
        begun.say(*(b"%d" % number for number in range(7)))
        for start, stop in RANGES:
            expected = [n for n in range(7) if start <= n and (stop is None or n < stop)]
            headers = list(begun.store.headers(begun.dialog, start, stop))
            assert [header.seq for header in headers] == expected
            assert list(begun.store.headers(begun.dialog, start, stop, reverse=True)) == headers[::-1]
            assert list(begun.store.bodies(begun.dialog, start, stop)) == [(n, b"%d" % n) for n in expected]

    def test_latest_of_kind_comes_newest_first(self, begun: Begun) -> None:
        """The result equals a scan of all headers in the range for the requested kinds."""
        kinds = ["inbox", "message", "turn_started", "invocation", "custom", "pin", "turn_ended", "inbox"]
        headers = begun.mark(*kinds * 3, *["invocation"] * 600)  # more of one kind than a page has
        for start, stop in ((0, None), (2, 9), (9, 2), (-3, 20), (3, 10**30), (len(headers), None)):
            for wanted in ("inbox", "invocation", ["turn_started", "pin", "custom"], "none"):
                named = {wanted} if isinstance(wanted, str) else set(wanted)
                expected = [header for header in headers[max(start, 0) : stop] if header.kind in named]
                assert list(begun.store.latest_of_kind(begun.dialog, wanted, start, stop)) == expected[::-1]
        with pytest.raises(InvalidInput):
            begun.store.latest_of_kind(begun.dialog, "message")

    def test_long_logs_are_given_whole(self, begun: Begun) -> None:
        """Logs longer than a page come back completely, each entry once and in order, in both directions."""
        count = 1500
        begun.say(*(b"%d" % number for number in range(count)))
        assert [header.seq for header in begun.store.headers(begun.dialog)] == list(range(count))
        backwards = begun.store.headers(begun.dialog, reverse=True)
        assert [header.seq for header in backwards] == list(range(count))[::-1]
        assert list(begun.store.bodies(begun.dialog)) == [(n, b"%d" % n) for n in range(count)]

    def test_tail_is_the_newest_entries_with_their_bodies(self, begun: Begun) -> None:
        """The tail is what headers and bodies return from a number on, within the bounds of entries and bytes."""
        assert begun.store.tail(begun.dialog) == ()
        for bodies in ([b"a", b"b"], [b"x" * 100_000] * 4, [b""] * 300, [b"y" * 300_000]):
            begun.say(*bodies)
            headers = list(begun.store.headers(begun.dialog))
            least = headers[-1].total - TAIL_BYTES
            newest = headers[-TAIL_ENTRIES if begun.store.remote else -1 :]
            kept = [one for one in newest if one.total - one.size >= least or one is headers[-1]]
            for start in (0, -1, len(headers) - 1, len(headers) - 2, len(headers), 10**30):
                expected = [(one, begun.store.body(begun.dialog, one.seq)) for one in kept if one.seq >= start]
                assert list(begun.store.tail(begun.dialog, start)) == expected
        with pytest.raises(NotFound):
            begun.store.tail(DialogId("0" * 32))

    def test_write_after_a_known_header_needs_it_to_be_the_newest(self, begun: Begun) -> None:
        """With the newest header, appending and annotating write what they would write without it; with any other, nothing."""
        known = [NOTHING]
        for number in range(6):
            known.append(begun.store.append(begun.dialog, [words(b"%d" % number)], known[-1].turn_head, known[-1])[-1])
            known.append(begun.store.annotate(begun.dialog, label(), known[-1]))
            head = known[-1].turn_head
            for stale in (*known[:-1], known[-1]._replace(at=9.5), known[-1]._replace(digest=b"0" * 16)):
                with pytest.raises(Conflict):
                    begun.store.append(begun.dialog, [words(b"late")], head, stale)
                with pytest.raises(Conflict):
                    begun.store.annotate(begun.dialog, label(), stale)
        assert known[1:] == list(begun.store.headers(begun.dialog))
        assert begun.store.verify(begun.dialog) == ()

    def test_writing_does_not_disturb_a_reader(self, begun: Begun) -> None:
        """An iterator returns the entries at the time of the call, in any thread, also large bodies, while writing continues."""
        bodies = [bytes([number]) * 700_000 for number in range(4)]
        begun.say(*bodies)
        readers: list[Iterator[Any]] = [
            begun.store.headers(begun.dialog),
            begun.store.headers(begun.dialog, reverse=True),
            begun.store.bodies(begun.dialog),
        ]
        read = [[next(reader)] for reader in readers]
        begun.say(b"new")
        threads = [Thread(target=headers.extend, args=(reader,)) for headers, reader in zip(read, readers, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [len(headers) for headers in read] == [4, 4, 4]
        assert read[2] == list(enumerate(bodies))

    # --- payloads -------------------------------------------------------------------------------------------------------------

    def test_payload_comes_back(self, begun: Begun) -> None:
        """A payload of any size is stored once under its SHA-256; the store copies the bytes."""
        store, session = begun.store, begun.session
        for data in (b"", b"\x00", b"x" * 10_000, bytes(range(256)) * 20_000):
            buffer: Any = bytearray(data)
            blob = store.put_blob(session, buffer)
            buffer[:] = b"changed"
            assert blob == sha256(data).hexdigest() == store.put_blob(session, data)
            assert store.has_blob(session, blob)
            assert store.blob(session, blob) == data

    def test_missing_payload_is_not_found(self, begun: Begun) -> None:
        """A payload that is not stored, or has an impossible id, raises."""
        begun.store.put_blob(begun.session, b"")
        for blob in ("0" * 64, "", "zz", "0" * 63, "A" * 64, "\ud800"):
            assert not begun.store.has_blob(begun.session, BlobId(blob))
            with pytest.raises(NotFound):
                begun.store.blob(begun.session, BlobId(blob))

    def test_payload_belongs_to_the_session_that_put_it(self, begun: Begun) -> None:
        """Each session that put a payload has it; a copyable store lists those of a session that it names and has."""
        store, other = begun.store, begin(begun.store)
        blob, _same = (store.put_blob(session, b"both") for session in (begun.session, other.session))
        assert store.blob(begun.session, blob) == store.blob(other.session, blob) == b"both"
        if isinstance(store, Copyable):
            begun.say(*(b'{"digest":"%s"}' % name.encode() for name in (blob, blob, "0" * 64)))
            assert list(store.blob_ids(begun.session)) == [blob]
            assert list(store.blob_ids(other.session)) == []
            with pytest.raises(NotFound):
                store.blob_ids(NOBODY)
