"""Any history of a store, made step by step in the reference in memory too: what either returns or refuses, the other does.

Two handles write to the same store, are closed and opened again, fork dialogs, fail on purpose, and write blocks that are undone. At the end the
whole stores are equal. The reference itself is held to the laws of stores, and the rules of its headers to a walk in `tests/log`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Draft, Node, Span
from palaver.store import MemoryStore, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws import Backend
from tests.postgres import Server
from tests.store.backends import SqliteBackend
from tests.store.postgres_backend import PostgresBackend
from tests.stores import fingerprint

WORDS = ("apple", "pear", "foo_bar", "你好")
HANDLES, TIMES, NAMES = st.integers(0, 1), st.integers(0, 9).map(float), st.sampled_from(["n", "m"])
ANY_KIND = st.sampled_from(["message", "call_started", "turn_started", "turn_ended", "label", "compaction", "custom"])


class UndoneError(Exception):
    """Leaves a block on purpose."""


@st.composite
def drafts(draw: st.DrawFn, kinds: st.SearchStrategy[str] = ANY_KIND) -> Draft:
    """Any draft, also one that may not follow."""
    kind = draw(kinds)
    role = draw(st.sampled_from(["user", "assistant", "tool"])) if kind == "message" else ""
    ids = tuple(draw(st.lists(st.sampled_from("ab"), unique=True, max_size=2)))
    opens = ids if role == "assistant" else ()
    answers = ids if role == "tool" or kind == "call_started" else ()
    response = draw(st.sampled_from(["", "r1", "r2"])) if role == "assistant" else ""
    body = f"{draw(st.sampled_from(WORDS))} {draw(st.integers(0, 99))}".encode()
    return Draft(kind, role, int(kind == "message"), opens, answers, response, draw(TIMES), body)


MESSAGES = st.lists(drafts(st.just("message")), min_size=1, max_size=4)


class StoreMachine(RuleBasedStateMachine):
    """A random history; a subclass says where its store lies."""

    sessions: Bundle[str] = Bundle("sessions")
    dialogs: Bundle[str] = Bundle("dialogs")

    def place(self) -> Backend:
        """Return the place of an empty store."""
        raise NotImplementedError("say where the store lies")

    def __init__(self) -> None:
        """Open the store twice."""
        super().__init__()
        self.reference = MemoryStore()
        self.backend = self.place()
        self.handles = [self.backend.open(), self.backend.open()]
        self.names: list[str] = []

    def both(self, handle: int, use: Callable[[Store], Any]) -> Any:  # noqa: ANN401 - what the use returns
        """Use the reference and a handle in the same way, and return what both return; or raise what both raise."""
        told, raised = list[Any](), None
        for store in (self.reference, self.handles[handle]):
            try:
                told.append(use(store))
            except (Conflict, InvalidInput) as error:
                raised = error
                told.append((type(error), getattr(error, "expected", None), getattr(error, "actual", None)))
        assert told[0] == told[1]
        if raised is not None:
            raise raised
        return told[0]

    def named(self) -> str:
        """Return a new name."""
        self.names.append(str(len(self.names)))
        return self.names[-1]

    # --- writing ----------------------------------------------------------------------------------------------------------------

    @initialize(target=sessions)
    def first_session(self) -> Any:  # noqa: ANN401 - what a bundle takes
        """Begin with a session."""
        return self.new_session(0, "n", 0.0)

    @initialize(target=dialogs)
    def first_dialog(self) -> Any:  # noqa: ANN401 - what a bundle takes
        """Begin with a dialog."""
        return self.new_dialog(1, self.new_session(1, "m", 1.0), 2.0)

    @rule(target=sessions, handle=HANDLES, name=NAMES, at=TIMES)
    def new_session(self, handle: int, name: str, at: float) -> str:
        """Make a session."""
        session = SessionId(derive_id("session", self.named()))
        record = SessionRecord(session_id=session, name=name, created_at=at)
        self.both(handle, lambda store: store.create_session(record))
        return session

    @rule(handle=HANDLES, session=sessions, name=NAMES, trash=st.sampled_from([None, None, 1.0]))
    def change_session(self, handle: int, session: str, name: str, trash: float | None) -> None:
        """Rename a session, and put it into the trash or take it out."""
        self.both(handle, lambda store: store.update_session(SessionId(session), name=name, trashed_at=trash))

    @rule(target=dialogs, handle=HANDLES, session=sessions, at=TIMES)
    def new_dialog(self, handle: int, session: str, at: float) -> str:
        """Make the root of a tree."""
        home = SessionId(session)
        node = Node(dialog_id=derive_dialog_id(home, self.named()), session_id=home, created_at=at)
        return str(self.both(handle, lambda store: store.create_dialog(node)).dialog_id)

    @rule(target=dialogs, handle=HANDLES, parent=dialogs, cut=st.integers(-1, 5), at=TIMES)
    def fork(self, handle: int, parent: str, cut: int, at: float) -> str:
        """Share what an ancestor holds, up to some entry; a range beyond that is refused."""
        above = self.reference.node(DialogId(parent))
        node = replace(
            above,
            dialog_id=derive_dialog_id(above.session_id, self.named()),
            parent_id=above.dialog_id,
            ranges=(*above.ranges, Span(above.dialog_id, 0, cut)),
            created_at=at,
        )
        with suppress(InvalidInput):
            return str(self.both(handle, lambda store: store.create_dialog(node)).dialog_id)
        return parent

    @rule(handle=HANDLES, dialog=dialogs, batch=MESSAGES | st.lists(drafts(), max_size=3), late=st.integers(-5, 1))
    def append(self, handle: int, dialog: str, batch: list[Draft], late: int = 0) -> None:
        """Append a batch; a writer that comes too late is told, and one illegal draft undoes them all."""
        head = self.reference.last(DialogId(dialog)).turn_head - max(late, 0)
        with suppress(Conflict, InvalidInput):
            self.both(handle, lambda store: store.append(DialogId(dialog), batch, head))

    @rule(handle=HANDLES, dialog=dialogs, draft=drafts())
    def annotate(self, handle: int, dialog: str, draft: Draft) -> None:
        """Put an entry beside the turn, if its kind may stand there."""
        with suppress(InvalidInput):
            self.both(handle, lambda store: store.annotate(DialogId(dialog), draft))

    @rule(handle=HANDLES, dialog=dialogs, batch=MESSAGES, undone=st.booleans())
    def block(self, handle: int, dialog: str, batch: list[Draft], undone: bool) -> None:
        """Write several things together; when the block raises, none of them is there."""
        with suppress(UndoneError), self.reference.transaction(), self.handles[handle].transaction():
            for _ in range(2):
                self.append(handle, dialog, batch)
            if undone:
                raise UndoneError

    @rule(handle=HANDLES, session=sessions, data=st.binary(max_size=8))
    def put_blob(self, handle: int, session: str, data: bytes) -> None:
        """Store a payload."""
        self.both(handle, lambda store: store.put_blob(SessionId(session), data))

    @rule(handle=HANDLES, session=sessions, identity=NAMES, digest=st.sampled_from(["", "d"]))
    def put_source(self, handle: int, session: str, identity: str, digest: str) -> None:
        """Write or replace a source."""
        record = SourceRecord(identity=identity, session_id=SessionId(session), format="f", digest=digest)
        self.both(handle, lambda store: store.put_source(record))

    @rule(handle=HANDLES)
    def reopen(self, handle: int) -> None:
        """Close a handle and open it again."""
        self.handles[handle].close()
        self.handles[handle] = self.backend.open()

    # --- reading ----------------------------------------------------------------------------------------------------------------

    @rule(handle=HANDLES, dialog=dialogs, start=st.integers(-1, 6), stop=st.none() | st.integers(-1, 6))
    def read(self, handle: int, dialog: str, start: int, stop: int | None) -> None:
        """Read a range, either way."""
        name = DialogId(dialog)
        self.both(handle, lambda store: list(store.bodies(name, start, stop)))
        self.both(handle, lambda store: list(store.headers(name, start, stop)))
        self.both(handle, lambda store: list(store.headers(name, start, stop, reverse=True)))

    @rule(handle=HANDLES, limit=st.none() | st.integers(0, 3), word=st.sampled_from(WORDS))
    def search(self, handle: int, limit: int | None, word: str) -> None:
        """Index some entries, or all, and look for a word; which are indexed first is a store's own choice."""
        self.both(handle, lambda store: (store.index(lambda _kind, body: body.decode(), limit), store.index_lag()))
        if self.reference.index_lag() == 0:
            self.both(handle, lambda store: {hit.handle for hit in store.search(word, limit=1000)})

    @rule(handle=HANDLES, trashed=st.booleans(), name=st.none() | NAMES)
    def list_sessions(self, handle: int, trashed: bool, name: str | None) -> None:
        """List sessions in the order of their activity."""
        self.both(handle, lambda store: [one.session_id for one in store.sessions(name=name, trashed=trashed)])

    def teardown(self) -> None:
        """Compare the whole store with the reference, through every handle, and close them."""
        for store in self.handles:
            assert fingerprint(store) == fingerprint(self.reference)
            for record in store.sessions():
                assert not any(store.verify(node.dialog_id) for node in store.nodes(record.session_id))
            store.close()


# A step opens files and flushes them, or asks a server, so there are fewer histories: some seconds here, hundreds of histories in soak.
_USUAL = settings().max_examples


def test_laws_3_5_any_history_in_a_file(quick_path: Path) -> None:
    """One file, two handles."""
    numbers = count()

    class SqliteMachine(StoreMachine):
        def place(self) -> Backend:
            return SqliteBackend(quick_path / f"{next(numbers)}.db")

    run_state_machine_as_test(SqliteMachine, settings=settings(max_examples=max(1, _USUAL // 6)))


def test_laws_3_5_any_history_in_a_server(postgres_server: Server) -> None:
    """The same over a server."""

    class PostgresMachine(StoreMachine):
        def place(self) -> Backend:
            return PostgresBackend(postgres_server)

    run_state_machine_as_test(PostgresMachine, settings=settings(max_examples=max(1, _USUAL // 16)))
