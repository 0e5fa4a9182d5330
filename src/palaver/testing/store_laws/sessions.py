"""The laws of sessions and of the sources they came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from random import Random
from typing import Any

import pytest

from palaver.errors import InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import Node
from palaver.store.protocol import ARCHIVE, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import NOBODY, NOWHERE, Begun, LawGroup, label


def _record(name: str = "", **values: Any) -> SessionRecord:  # noqa: ANN401 - each field has a type of its own
    return SessionRecord(session_id=new_session_id(), name=name, **values)


class SessionLaws(LawGroup):
    """The laws of sessions and sources."""

    def test_session_comes_back_as_written(self, store: Store) -> None:
        """Every field comes back with any value."""
        record = _record(
            "名前 'n' \x00",
            tenant="t",
            subject="s",
            workdir="/w",
            created_at=2.5,
            updated_at=2.0,
            trashed_at=3.0,
            root=DialogId("a" * 32),
            metadata={"a": [1, {"b": None}], "ü": "你", "n": 1.5, "t": True},
        )
        store.create_session(record)
        assert store.session(record.session_id) == replace(record, updated_at=2.5)

    def test_session_and_root_are_one_step(self, store: Store) -> None:
        """A session is written with its root, or neither is."""
        record = _record("n")
        root = Node(dialog_id=new_dialog_id(record.session_id), session_id=record.session_id)
        with pytest.raises(InvalidInput):
            store.create_session(record, replace(root, dialog_id=DialogId("no id")))
        assert list(store.sessions()) == []
        store.create_session(record, root)
        assert store.session(record.session_id).root == root.dialog_id
        assert [node.dialog_id for node in store.nodes(record.session_id)] == [root.dialog_id]

    def test_taken_session_id_is_refused(self, store: Store) -> None:
        """The second session with an id is refused and the first stays as it was."""
        record = _record("first")
        store.create_session(record)
        with pytest.raises(InvalidInput):
            store.create_session(replace(record, name="second"))
        assert store.session(record.session_id).name == "first"

    def test_unknown_session_is_not_found(self, store: Store) -> None:
        """Every method with an unknown session raises when it is called."""
        for use in (store.session, store.update_session, store.nodes, store.sources):
            with pytest.raises(NotFound) as told:
                use(NOBODY)
            assert (told.value.what, told.value.name) == ("session", NOBODY)
        with pytest.raises(NotFound):
            store.put_source(SourceRecord(identity="i", session_id=NOBODY, format="f"))
        assert store.source("i") is None

    def test_what_no_store_can_hold_is_refused(self, store: Store) -> None:
        """A lone surrogate, a time that is not a number, or metadata that is not JSON raises InvalidInput, and nothing changes."""
        wrong: tuple[dict[str, Any], ...] = (
            {"name": "\ud800"},
            {"workdir": "/\udc80"},
            {"created_at": float("nan")},
            *({"metadata": {"a": value}} for value in (object(), float("nan"), {1, 2}, ["\ud800"])),
        )
        for values in wrong:
            with pytest.raises(InvalidInput):
                store.create_session(_record(**values))
        assert list(store.sessions()) == []

    def test_lists_filter_exactly(self, store: Store) -> None:
        """Tenant, name and subject match exactly and together; the trash is a separate list."""
        wanted, same, other, trashed = (
            _record("n", subject="s", tenant="t", created_at=4.0),
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
        assert ids(tenant="t") == ids(name="n", subject="s") == [wanted.session_id]
        assert ids(trashed=True) == ids(trashed=True, name="n") == [trashed.session_id]
        assert ids(name="%") == ids(subject="") == []

    def test_archived_sessions_are_listed_alone(self, store: Store) -> None:
        """Only sessions whose metadata says where their archive is, and not the word in another place of it."""
        about = {ARCHIVE: {"address": "file:///a", "sha256": "", "bytes": 1, "entries": 1, "at": 1.0}}
        older, newer, trashed = (
            _record(metadata=about, created_at=2.0),
            _record("n", metadata={"k": 1, **about}, created_at=3.0),
            _record(metadata=about, trashed_at=9.0),
        )
        for record in (older, newer, trashed, _record(), _record(metadata={"k": f'"{ARCHIVE}":', "l": [ARCHIVE]})):
            store.create_session(record)

        def ids(**filters: Any) -> list[SessionId]:  # noqa: ANN401 - passed on
            return [record.session_id for record in store.sessions(archived=True, **filters)]

        assert ids() == [newer.session_id, older.session_id]
        assert ids(limit=1) == ids(name="n") == [newer.session_id]
        assert ids(trashed=True) == [trashed.session_id]

    def test_pages_are_the_list(self, store: Store) -> None:
        """Pages of any size add up to the list, newest activity first, for any times of entries and dialogs."""
        chance = Random(7)  # noqa: S311 - times, no secrets
        dialogs: list[DialogId] = []
        for number in range(12):
            record = _record("n", subject="s", created_at=float(number % 5))
            node = Node(dialog_id=new_dialog_id(record.session_id), session_id=record.session_id)
            store.create_session(record, node)
            dialogs.append(node.dialog_id)
        for _ in range(40):
            store.annotate(chance.choice(dialogs), label(at=float(chance.randrange(9))))
        everything = list(store.sessions())
        order = [(record.updated_at, record.session_id) for record in everything]
        assert order == sorted(order, reverse=True)
        filters: tuple[dict[str, Any], ...] = ({}, {"name": "n"}, {"subject": "s"}, {"tenant": ""})
        for size in (1, 5, 12):
            for chosen in filters:
                records: list[SessionRecord] = []
                while page := list(store.sessions(limit=size, after=records[-1] if records else None, **chosen)):
                    records += page
                assert records == everything
        assert [list(store.sessions(limit=limit)) for limit in (0, 3, 10**30)] == [[], everything[:3], everything]

    def test_activity_never_goes_back(self, begun: Begun) -> None:
        """Entries and dialogs move it to their own time, if that is later; a change of the record, an undone entry and an old one do not."""
        store, session = begun.store, begun.session
        assert store.update_session(session, name="x").updated_at == 1.0
        store.annotate(begun.dialog, label(at=5.0))
        assert store.session(session).updated_at == 5.0  # noqa: PLR2004
        store.annotate(begun.fork(), label(at=2.0))
        assert store.session(session).updated_at == 5.0  # noqa: PLR2004
        store.create_dialog(replace(store.node(begun.dialog), dialog_id=new_dialog_id(session), created_at=6.0))
        assert store.session(session).updated_at == 6.0  # noqa: PLR2004

        def undone() -> None:
            with store.transaction():
                store.annotate(begun.dialog, label(at=9.0))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            undone()
        assert store.session(session).updated_at == 6.0  # noqa: PLR2004

    def test_first_digits_name_sessions(self, store: Store) -> None:
        """The result is limited, ordered by id, and excludes the trash; a prefix that is not digits raises InvalidInput."""
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

    def test_changes_are_kept(self, begun: Begun) -> None:
        """Each changeable field changes alone; any other field refuses the whole call."""
        store, session = begun.store, begun.session
        changes: dict[str, Any] = {
            "name": "new",
            "subject": "who",
            "workdir": "/x",
            "metadata": {"k": [1]},
            "root": NOWHERE,
            "trashed_at": 7.0,
        }
        for name, value in changes.items():
            expected = replace(store.session(session), **{name: value})
            assert store.update_session(session, **{name: value}) == expected == store.session(session)
        assert store.update_session(session, trashed_at=None).trashed_at is None
        for field in ("created_at", "updated_at", "tenant", "nonsense"):
            with pytest.raises(InvalidInput):
                store.update_session(session, **{field: 1.0, "name": "refused"})
        assert store.session(session).name == "new"

    def test_law_3_records_cannot_change_the_store(self, store: Store) -> None:
        """Records are deeply frozen, and do not share the caller's dict."""
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

    def test_source_is_written_and_replaced(self, begun: Begun) -> None:
        """A source comes back as last written; one that was never imported is None."""
        assert begun.store.source("claude-code:1'\"") is None
        first = SourceRecord(identity="claude-code:1'\"", session_id=begun.session, format="claude-code")
        begun.store.put_source(first)
        blob = BlobId("c" * 64)
        second = replace(first, path="/tmp/ü", digest="d", raw=blob, index=blob, imported_at=2.0)  # noqa: S108 - no file of ours
        begun.store.put_source(second)
        assert begun.store.source(first.identity) == second
        assert begun.store.sources(begun.session) == (second,)

    def test_sources_come_by_identity(self, begun: Begun) -> None:
        """A session returns only its own sources, sorted."""
        other = _record()
        begun.store.create_session(other)
        mine = [SourceRecord(identity=name, session_id=begun.session, format="f") for name in ("b", "a", "ä", "Z")]
        for source in (*mine, SourceRecord(identity="c", session_id=other.session_id, format="f")):
            begun.store.put_source(source)
        assert list(begun.store.sources(begun.session)) == sorted(mine, key=lambda source: source.identity)
