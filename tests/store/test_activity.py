"""When sessions were last active: what a store keeps of it, roughly, is never further off than a list can bear; verify finds what is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.ids import DialogId, SessionId, derive_id
from palaver.log import Draft, Node
from palaver.store import Durability, SessionRecord, SqliteStore
from palaver.store.postgres import PostgresStore
from palaver.store.verifying import verify_store
from tests import postgres
from tests.store.postgres_backend import connected, emptied

NOON = 1_700_000_000.0
SESSION = SessionId(derive_id("session", "one"))
DIALOGS = tuple(DialogId(derive_id("dialog", name)) for name in "ab")


Opened = SqliteStore | PostgresStore


class Place:
    """A store that can be opened several times, and whose rows can be changed behind its back."""

    def __init__(self, opened: Callable[[], Opened], changed: Callable[[str], Any]) -> None:
        self.open = opened
        self.change = changed


def on_postgres(server: postgres.Server) -> Place:
    """Give an empty schema."""
    url = emptied(server)

    def change(sql: str) -> None:
        with connected(url) as connection:
            connection.execute(sql)
        connection.close()

    return Place(lambda: PostgresStore(url, Durability.NORMAL), change)


def in_a_file(folder: Path) -> Place:
    """Give an empty file."""
    path = folder / "store.db"
    path.unlink(missing_ok=True)

    def change(sql: str) -> None:
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute(sql)

    return Place(lambda: SqliteStore(path, Durability.NORMAL), change)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Give both."""
    if request.param == "sqlite":
        yield in_a_file(tmp_path)
    else:
        yield on_postgres(request.getfixturevalue("postgres_server"))


def begin(store: Opened, at: float = NOON) -> None:
    """Make a session with two dialogs."""
    store.create_session(SessionRecord(session_id=SESSION, created_at=at))
    for dialog in DIALOGS:
        store.create_dialog(Node(dialog_id=dialog, session_id=SESSION, created_at=at))


def say(store: Opened, dialog: DialogId, *times: float) -> None:
    """Append entries of these times in one step."""
    drafts = [Draft("message", "user", 1, (), (), "", at, b"{}") for at in times]
    store.append(dialog, drafts, store.last(dialog).turn_head)


def times_off(store: Opened) -> list[str]:
    """Give what verify says of times."""
    return [f"{fault.place} {fault.code}" for fault in verify_store(store) if "activity" in fault.code]


def test_a_time_that_was_changed_is_named(place: Place) -> None:
    """A time moved behind the store's back by more than a list can bear, or lost, or of no session: its session is named; a small move is none."""
    with closing(place.open()) as store:
        begin(store)
        say(store, DIALOGS[0], NOON + 5)
        for by in ("100", "-100"):
            place.change(f"UPDATE activity SET at = {NOON} + {by}")  # noqa: S608 - words of this test
            assert times_off(store) == []
        for change in (
            f"UPDATE activity SET at = {NOON} + 300",  # noqa: S608 - words of this test
            f"UPDATE activity SET at = {NOON} - 300",  # noqa: S608
            "DELETE FROM activity",
        ):
            place.change(change)
            assert times_off(store) == [f"{SESSION} wrong_activity"]
        place.change("INSERT INTO activity SELECT session_no, 1e300 FROM sessions")
        (fault,) = (fault for fault in verify_store(store) if fault.code == "wrong_activity")
        assert "1e+300" in fault.what
        assert "2023-11-14 22:13:25" in fault.what


def test_a_time_that_is_off_is_mended_by_the_next_entries(place: Place) -> None:
    """A time in the far past or future stays until somebody who does not know it writes; then it is the entry's."""
    for off in (-86_400, 86_400):
        with closing(place.open()) as store:
            if off < 0:
                begin(store)
            place.change(f"UPDATE activity SET at = {NOON} + {off}")  # noqa: S608 - words of this test
            assert times_off(store) != []
            say(store, DIALOGS[0], NOON + 200)
            say(store, DIALOGS[0], NOON + 201)
            assert times_off(store) == []


def test_a_time_of_no_session_is_a_loose_row(place: Place) -> None:
    """A row that a lost session left is told with its number."""
    with closing(place.open()) as store:
        begin(store)
    if isinstance(store, SqliteStore):
        place.change("INSERT INTO activity VALUES (77, 1.0)")
    else:
        place.change(
            "ALTER TABLE activity DROP CONSTRAINT activity_session_no_fkey; INSERT INTO activity VALUES (77, 1.0)"
        )
    with closing(place.open()) as store:
        found = [(fault.place, fault.code) for fault in verify_store(store)]
    if not isinstance(store, SqliteStore):
        place.change(
            "DELETE FROM activity WHERE session_no = 77; ALTER TABLE activity ADD CONSTRAINT activity_session_no_fkey"
            " FOREIGN KEY (session_no) REFERENCES sessions ON DELETE CASCADE"
        )
    assert found == [("session number 77", "loose_rows")]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 1),
        st.lists(
            st.sampled_from([-4000, -100, -61, -50, 0, 31, 59, 60, 61, 100, 119, 150, 4000]), min_size=1, max_size=2
        ),
    ),
    max_size=12,
)


def never_far_off(place: Place, steps: list[tuple[int, int, list[int]]]) -> None:
    """Let three writers, each with a store and clocks of his own, append; no time is off after any step, nor when a dialog is gone."""
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(place.open())) for _ in range(3)]
        if list(stores[0].sessions()):
            with stores[0].erasing() as eraser:
                eraser.remove_dialogs([node.dialog_id for node in stores[0].nodes(SESSION)])
                eraser.remove_session(SESSION)
        begin(stores[0], NOON - 10_000)
        for writer, dialog, times in steps:
            say(stores[writer], DIALOGS[dialog], *(NOON + after for after in times))
            assert times_off(stores[2]) == []
        with stores[1].erasing() as eraser:
            eraser.remove_dialogs([DIALOGS[1]])
        assert times_off(stores[2]) == []


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_times_in_a_file_are_never_far_off(tmp_path: Path, steps: list[tuple[int, int, list[int]]]) -> None:
    """Whoever writes, with whatever clock: what SQLite keeps is no further off than a list can bear."""
    never_far_off(in_a_file(tmp_path), steps)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_times_in_postgres_are_never_far_off(
    postgres_server: postgres.Server, steps: list[tuple[int, int, list[int]]]
) -> None:
    """The same of PostgreSQL, where writers remember what they saw: also when another wrote in between, forwards and back."""
    never_far_off(on_postgres(postgres_server), steps)
