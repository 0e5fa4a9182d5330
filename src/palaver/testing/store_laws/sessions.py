"""The laws of sessions and of the sources they came from."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import FrozenInstanceError, replace
from random import Random
from typing import Any

import pytest

from palaver.errors import InvalidInput, UnknownSession
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import Draft, Node
from palaver.store.protocol import SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import Begun, LawGroup, label

NOBODY = SessionId("f" * 32)


def _record(name: str = "", **values: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
    return SessionRecord(session_id=new_session_id(), name=name, **values)


class SessionLaws(LawGroup):
    """What `create_session`, `session`, `sessions` and `update_session` promise."""

    def test_a_session_comes_back_as_it_was_written(self, store: Store) -> None:
        """Every field comes back, whatever is in it; the time of activity is the store's to say."""
        metadata = {"a": [1, {"b": None}], "ü": "你", "n": 1.5, "t": True}
        record = _record(
            "名前 'n' \x00",
            subject="s",
            workdir="/w",
            created_at=2.5,
            updated_at=99.0,
            trashed_at=3.0,
            root=DialogId("a" * 32),
            metadata=metadata,
        )
        store.create_session(record)
        assert store.session(record.session_id) == replace(record, updated_at=2.5)

    def test_a_taken_session_id_is_refused(self, store: Store) -> None:
        """The second session with an id is refused and the first stays as it was."""
        record = _record("first")
        store.create_session(record)
        with pytest.raises(InvalidInput):
            store.create_session(replace(record, name="second"))
        assert store.session(record.session_id).name == "first"

    def test_an_unknown_session_is_said_to_be_unknown(self, store: Store) -> None:
        """Every method that names a session which is not there says so when it is called."""
        source = SourceRecord(identity="i", session_id=NOBODY, format="f")
        for use in (store.session, store.update_session, store.nodes, store.sources):
            with pytest.raises(UnknownSession):
                use(NOBODY)
        with pytest.raises(UnknownSession):
            store.put_source(source)
        assert store.source("i") is None

    def test_what_no_utf8_can_hold_is_refused(self, store: Store) -> None:
        """A lone surrogate in a text, or a time that is no number, is the caller's mistake and changes nothing."""
        for record in (_record("\ud800"), _record(workdir="/\udc80"), _record(created_at=float("nan"))):
            with pytest.raises(InvalidInput):
                store.create_session(record)
        assert list(store.sessions()) == []

    @pytest.mark.parametrize("metadata", [{"a": object()}, {"a": float("nan")}, {"a": {1, 2}}, {"a": ["\ud800"]}])
    def test_metadata_that_is_no_json_is_refused(self, store: Store, metadata: dict[str, object]) -> None:
        """Metadata is JSON in valid Unicode, or the caller's mistake."""
        with pytest.raises(InvalidInput):
            store.create_session(_record(metadata=metadata))
        assert list(store.sessions()) == []

    def test_a_session_in_the_trash_is_still_given_by_its_id(self, store: Store) -> None:
        """The trash hides a session from lists, not from who knows its id."""
        record = _record(trashed_at=5.0)
        store.create_session(record)
        assert store.session(record.session_id).trashed_at == 5.0  # noqa: PLR2004

    def test_sessions_come_newest_activity_first(self, store: Store) -> None:
        """Lists are ordered by activity, then by id, both descending."""
        records = [_record(created_at=at) for at in (3.0, 1.0, 2.0, 2.0, 2.0)]
        for record in records:
            store.create_session(record)
        expected = sorted(((r.created_at, r.session_id) for r in records), reverse=True)
        assert [(r.updated_at, r.session_id) for r in store.sessions()] == expected

    def test_lists_filter_exactly(self, store: Store) -> None:
        """Name and subject match exactly and together, names need not be unique, and the trash is a list of its own."""
        wanted, same, other, trashed = (
            _record("n", subject="s", created_at=4.0),
            _record("n", subject="t", created_at=3.0),
            _record("N", subject="s", created_at=2.0),
            _record("n", subject="s", created_at=1.0, trashed_at=9.0),
        )
        for record in (wanted, same, other, trashed):
            store.create_session(record)

        def ids(**filters: Any) -> list[SessionId]:  # noqa: ANN401 - passed on
            return [record.session_id for record in store.sessions(**filters)]

        assert ids(name="n") == [wanted.session_id, same.session_id]
        assert ids(subject="s") == [wanted.session_id, other.session_id]
        assert ids(name="n", subject="s") == [wanted.session_id]
        assert ids(trashed=True) == ids(trashed=True, name="n") == [trashed.session_id]
        assert ids(name="%") == ids(subject="") == []

    def test_a_limit_gives_the_first_ones(self, store: Store) -> None:
        """A limited list is the beginning of the whole list; a limit beyond it gives all."""
        for at in range(4):
            store.create_session(_record(created_at=float(at)))
        everything = list(store.sessions())
        for limit in (0, 1, 3, 4, 10**30):
            assert list(store.sessions(limit=limit)) == everything[:limit]

    def test_pages_are_the_list(self, store: Store) -> None:
        """Pages of any size, one after the other, are the list, whatever times entries and dialogs tell, and whichever way they went."""
        chance = Random(7)  # noqa: S311 - times, no secrets
        times = [float(chance.choice((0, 30, 59, 61, 100, 1000)) + chance.randrange(3)) for _ in range(200)]
        dialogs: list[DialogId] = []
        for _ in range(12):
            record = _record("n", subject="s", created_at=times.pop())
            store.create_session(record)
            for _ in range(2):
                node = Node(dialog_id=new_dialog_id(), session_id=record.session_id, created_at=times.pop())
                dialogs.append(store.create_dialog(node).dialog_id)
        for number, at in enumerate(times):
            draft = Draft("label", "", 0, (), (), "", at, b"")
            with store.together() if number % 3 else nullcontext():
                store.annotate(chance.choice(dialogs), draft)
            if not number % 20:
                self._pages(store)

    def _pages(self, store: Store) -> None:
        everything = list(store.sessions())
        assert [(one.updated_at, one.session_id) for one in everything] == sorted(
            ((one.updated_at, one.session_id) for one in everything), reverse=True
        )
        filters: tuple[dict[str, Any], ...] = ({}, {"name": "n"}, {"subject": "s"})
        for size in (1, 2, 5, 12):
            for chosen in filters:
                found: list[SessionRecord] = []
                while page := list(store.sessions(limit=size, after=found[-1] if found else None, **chosen)):
                    found += page
                assert found == everything

    def test_what_was_undone_leaves_the_list_as_it_was(self, begun: Begun) -> None:
        """A block that is undone leaves no trace in the order of sessions, and what comes after it is listed where it belongs."""
        store = begun.store
        other = _record(created_at=5_000.0)
        store.create_session(other)

        def undone() -> None:
            with store.together():
                store.annotate(begun.dialog, Draft("label", "", 0, (), (), "", 9_000.0, b""))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            undone()
        assert [one.session_id for one in store.sessions(limit=1)] == [other.session_id]
        store.annotate(begun.dialog, Draft("label", "", 0, (), (), "", 9_000.0, b""))
        assert [one.session_id for one in store.sessions(limit=1)] == [begun.session]

    def test_sessions_are_found_by_the_first_digits(self, store: Store) -> None:
        """So many as are wanted, in the order of their ids, none of the trash; what are no digits is the caller's mistake."""
        ids = sorted(SessionId(f"abcdef{number:026x}") for number in (1, 2, 3))
        for number, session_id in enumerate(ids):
            store.create_session(SessionRecord(session_id=session_id, trashed_at=1.0 if number == 2 else None))  # noqa: PLR2004
        assert store.sessions_beginning("abcdef") == tuple(ids[:2])
        assert store.sessions_beginning("abcdef", limit=1) == tuple(ids[:1])
        assert store.sessions_beginning(ids[0]) == (ids[0],)
        assert store.sessions_beginning("abcdee") == ()
        for wrong in ("abcde", "ABCDEF", "abcdeg", "abcde%"):
            with pytest.raises(InvalidInput):
                store.sessions_beginning(wrong)

    def test_changes_are_kept_and_given_back(self, begun: Begun) -> None:
        """Each field that may change does, alone, and nothing else with it."""
        store, session = begun.store, begun.session
        changes: dict[str, Any] = {
            "name": "new",
            "subject": "who",
            "workdir": "/x",
            "metadata": {"k": [1]},
            "root": begun.dialog,
            "trashed_at": 7.0,
        }
        for name, value in changes.items():
            expected = replace(store.session(session), **{name: value})
            assert store.update_session(session, **{name: value}) == expected == store.session(session)
        assert store.update_session(session, trashed_at=None).trashed_at is None

    @pytest.mark.parametrize("field", ["created_at", "updated_at", "nonsense"])
    def test_what_may_not_change_is_refused(self, begun: Begun, field: str) -> None:
        """A field that may not change is refused, and so is all that was asked for with it."""
        with pytest.raises(InvalidInput):
            begun.store.update_session(begun.session, **{field: 1.0, "name": "x"})
        assert begun.store.session(begun.session).name == ""

    def test_activity_moves_with_entries_and_nodes_only(self, begun: Begun) -> None:
        """A change of the record is no activity; an entry and a node are, and an old one does not turn the clock back."""
        store, session = begun.store, begun.session
        assert store.update_session(session, name="x").updated_at == 1.0
        store.annotate(begun.dialog, label(at=5.0))
        assert store.session(session).updated_at == 5.0  # noqa: PLR2004
        store.annotate(begun.fork(), label(at=2.0))
        assert store.session(session).updated_at == 5.0  # noqa: PLR2004
        store.create_dialog(replace(store.node(begun.dialog), dialog_id=DialogId("b" * 32), created_at=6.0))
        assert store.session(session).updated_at == 6.0  # noqa: PLR2004

    def test_what_is_handed_out_or_in_cannot_change_the_store(self, store: Store) -> None:
        """Records are frozen down to the last list of their metadata, and the caller's own dict stays the caller's."""
        mine: dict[str, Any] = {"a": [1, {"b": 2}]}
        record = _record(metadata=mine)
        store.create_session(record)
        mine["a"].append("later")
        given: Any = store.session(record.session_id)
        with pytest.raises(FrozenInstanceError):
            given.name = "changed"
        attempts: tuple[Callable[[], object], ...] = (
            lambda: given.metadata.update(x=1),
            lambda: given.metadata["a"].append(2),
            given.metadata["a"][1].clear,
        )
        for change in attempts:
            with pytest.raises((TypeError, AttributeError)):
                change()
        assert store.session(record.session_id).metadata == {"a": [1, {"b": 2}]}


class SourceLaws(LawGroup):
    """What `put_source`, `source` and `sources` promise."""

    def test_a_source_is_written_and_replaced(self, begun: Begun) -> None:
        """A source comes back as it was written last."""
        blob = BlobId("c" * 64)
        first = SourceRecord(identity="claude-code:1'\"", session_id=begun.session, format="claude-code")
        begun.store.put_source(first)
        assert begun.store.source(first.identity) == first
        second = replace(first, path="/tmp/ü", digest="d", raw=blob, index=blob, imported_at=2.0)  # noqa: S108 - no file of ours
        begun.store.put_source(second)
        assert begun.store.source(first.identity) == second
        assert begun.store.sources(begun.session) == (second,)

    def test_an_unknown_source_is_none(self, store: Store) -> None:
        """What was never imported has no source."""
        assert store.source("nothing") is None

    def test_sources_of_a_session_come_by_identity(self, begun: Begun) -> None:
        """A session gives its own sources, sorted, and no others."""
        other = _record()
        begun.store.create_session(other)
        mine = [SourceRecord(identity=name, session_id=begun.session, format="f") for name in ("b", "a", "ä", "Z")]
        theirs = SourceRecord(identity="c", session_id=other.session_id, format="f")
        for source in (*mine, theirs):
            begun.store.put_source(source)
        assert begun.store.sources(begun.session) == tuple(sorted(mine, key=lambda source: source.identity))
        assert begun.store.sources(other.session_id) == (theirs,)
