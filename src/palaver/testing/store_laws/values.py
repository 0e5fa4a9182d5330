"""The laws of the named values that a store keeps with its sessions (`palaver.memory.values`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from palaver.errors import Conflict, Erased, InvalidInput
from palaver.ids import SessionId
from palaver.memory.values import LARGEST, Values, shared_values
from palaver.session import Session
from palaver.store.protocol import Store
from palaver.store.redacting import redacting
from palaver.testing.store_laws.backend import Backend, LawGroup

VALUES: tuple[Any, ...] = (
    *(0, -1, 1.5, 10**40, True, False, "", "ä€😀", "\n", [], {}),
    {"z": [1, None, {"a": "b"}], "a": False, "": {"deep": [[]]}},
)
"""Values of each type of JSON."""


class ValueLaws(LawGroup):
    """What `Values` promises over a store."""

    @pytest.fixture
    def values(self, store: Store) -> Values:
        """Return the values of a session."""
        return Values(Session.create(store, "mine", metadata={"other": [1]}))

    def test_values_come_back(self, values: Values) -> None:
        """Any JSON value but None comes back equal and of the same type, alone and in the list, which is sorted by key."""
        for number, value in enumerate(VALUES):
            values.set(f"k{number:02}", value)
        expected = {f"k{number:02}": value for number, value in enumerate(VALUES)}
        assert list(values.list().items()) == list(expected.items())
        assert [type(values.get(key)) for key in expected] == [type(value) for value in VALUES]
        assert values.list("k1") == {key: value for key, value in expected.items() if key.startswith("k1")}
        assert (values.get("absent"), values.get("absent", 7)) == (None, 7)
        assert values.store.session(values.session_id).metadata["other"] == [1]

    def test_copies_cannot_change_the_store(self, values: Values) -> None:
        """Neither what was passed nor what was returned is shared."""
        mine = {"a": [1]}
        values.set("k", mine)
        mine["a"].append(2)
        values.get("k")["a"].append(3)
        assert values.get("k") == {"a": [1]}

    def test_loser_of_a_race_gets_conflict(self, values: Values) -> None:
        """`expect` compares values as JSON: None expects none, 1 is not true, the order of keys does not count; the loser writes nothing."""
        values.set("k", {"a": 1, "b": [2]}, expect=None)
        values.set("k", 1, expect={"b": [2], "a": 1})
        for wrong in (None, 2, True, "1", [1]):
            with pytest.raises(Conflict):
                values.set("k", "lost", expect=wrong)
            with pytest.raises(Conflict):
                values.delete("k", expect=wrong)
        assert values.get("k") == 1
        values.delete("k", expect=1)
        values.delete("k")
        assert values.list() == {}

    def test_concurrent_increments_all_count(self, backend: Backend, store: Store, values: Values) -> None:
        """Threads with handles of their own that repeat after a conflict lose no increment, and writers of other keys lose no key."""

        def count(number: int) -> None:
            handle = backend.open()
            own = Values(Session(handle, values.session_id))
            own.set(f"of {number}", number)
            for _ in range(5):
                done = False
                while not done:
                    known = own.get("count")
                    try:
                        own.set("count", (known or 0) + 1, expect=known)
                        done = True
                    except Conflict:
                        continue
            if handle is not store:  # that in memory is one
                handle.close()

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(count, range(3)))
        assert values.list() == {"count": 15, "of 0": 0, "of 1": 1, "of 2": 2}
        assert store.session(values.session_id).metadata["other"] == [1]

    def test_undone_transaction_writes_nothing(self, values: Values) -> None:
        """A value that was set inside a transaction that failed was never there."""

        def undone() -> None:
            with values.store.transaction():
                values.set("k", 1)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            undone()
        assert values.get("k") is None

    def test_wrong_values_are_refused(self, values: Values) -> None:
        """What is not JSON, too large, None, or has no usable key raises InvalidInput, and nothing is written."""
        for key, value in (
            *((1, 1), ("", 1), ("k" * 201, 1), ("k\0", 1), ("k", None), ("k", float("nan")), ("k", [float("inf")])),
            *(("k", ["a\0"]), ("k", {"\ud800": 1}), ("k", {1: 2}), ("k", object()), ("k", "x" * LARGEST)),
        ):
            with pytest.raises(InvalidInput):
                values.set(key, value)  # type: ignore[arg-type] # some are wrong on purpose
        with pytest.raises(InvalidInput):
            values.set("k", 1, expect=object())
        assert values.list() == {}
        for key in "abcd":
            values.set(key, "x" * (LARGEST - 100))
        with pytest.raises(InvalidInput, match="together"):
            values.set("e", "x" * (LARGEST - 100))
        assert "".join(values.list()) == "abcd"

    def test_shared_values_are_one(self, store: Store) -> None:
        """The values of a name are the same for all who ask for them, apart from those of other names and of sessions."""
        shared_values(store).set("k", 1)
        shared_values(store, "other").set("k", 2)
        assert (shared_values(store).get("k"), shared_values(store, "other").get("k")) == (1, 2)
        room = shared_values(store)
        Session.open(store, room.session_id).delete()
        with pytest.raises(InvalidInput, match="trash"):
            shared_values(store)

    def test_values_are_erased_with_their_session(self, store: Store, values: Values) -> None:
        """After the erasure of the session reading and writing raise Erased."""
        values.set("k", 1)
        Session.open(store, values.session_id).erase()
        with pytest.raises(Erased):
            values.get("k")
        with pytest.raises(Erased):
            values.set("k", 1)

    def test_values_are_redacted(self, store: Store) -> None:
        """A redacting store keeps secrets out of values, also those that only their key betrays."""
        secret = "ghp_" + "a1B2c3D4e5F6" * 3
        session = Session.create(redacting(store, redact=True), "mine")
        values = Values(session)
        values.set("password", "hunter2hunter2")
        values.set("note", [f"use {secret}"])
        assert values.list() == {"note": ["use [redacted:github-token]"], "password": "[redacted:named-secret]"}

    def test_unknown_session_has_no_values(self, store: Store) -> None:
        """Reading or writing the values of a session that does not exist raises NotFound."""
        values = Values(Session(store, SessionId("f" * 32)))
        for use in (values.list, lambda: values.set("k", 1)):
            with pytest.raises(LookupError):
                use()
