"""Any history of a store, checked against an oracle of plain dicts and lists that shares no code with any backend.

Two handles write to the same store (to the same handle, where stores of a kind are not shared), are closed and opened again, fork dialogs,
fail on purpose, and write blocks that are undone. After every step the answer must be the oracle's; at the end, so must the whole store::

    class MyMachine(StoreMachine):
        def place(self) -> Backend:
            return MyBackend(...)


    TestMyStore = MyMachine.TestCase
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule

from palaver.errors import Conflict, InvalidInput
from palaver.ids import BlobId, DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Draft, Node, Span
from palaver.store.protocol import Capability, SessionRecord, SourceRecord, Store
from palaver.testing.store_laws.backend import Backend
from tests.store.oracle import SEARCHED, WORDS, Branch, Written, agrees, drafts


class _UndoneError(Exception):
    """Leaves a block on purpose."""


def _undo(wanted: bool) -> None:
    if wanted:
        raise _UndoneError


HANDLES = st.integers(0, 1)


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
        self.backend = self.place()
        self.handles = [self.backend.open()]
        if Capability.SHARED in self.handles[0].capabilities:
            self.handles.append(self.backend.open())
        self.names: dict[str, str] = {}
        self.trashed: set[str] = set()
        self.made: dict[str, float] = {}
        self.branches: dict[str, Branch] = {}
        self.payloads: dict[BlobId, bytes] = {}
        self.origins: dict[str, SourceRecord] = {}

    def on(self, handle: int) -> Store:
        """Return one of the handles."""
        return self.handles[handle % len(self.handles)]

    # --- writing ----------------------------------------------------------------------------------------------------------------

    @initialize(target=sessions)
    def first_session(self) -> Any:  # noqa: ANN401 - what a bundle takes
        """Begin with a session."""
        return self.new_session(0, "n", 0)

    @initialize(target=dialogs)
    def first_dialog(self) -> Any:  # noqa: ANN401 - what a bundle takes
        """Begin with a dialog."""
        return self.new_dialog(1, self.new_session(1, "m", 1), 2)

    @rule(target=sessions, handle=HANDLES, name=st.sampled_from(["n", "m"]), at=st.integers(0, 9))
    def new_session(self, handle: int, name: str, at: int) -> str:
        """Make a session."""
        session = derive_id("session", str(len(self.names)))
        self.on(handle).create_session(SessionRecord(session_id=SessionId(session), name=name, created_at=float(at)))
        self.names[session], self.made[session] = name, float(at)
        return session

    @rule(
        handle=HANDLES, session=sessions, name=st.sampled_from(["n", "m"]), trash=st.sampled_from([False, False, True])
    )
    def change_session(self, handle: int, session: str, name: str, trash: bool) -> None:
        """Rename a session, and put it into the trash or take it out."""
        self.on(handle).update_session(SessionId(session), name=name, trashed_at=1.0 if trash else None)
        self.names[session] = name
        (self.trashed.add if trash else self.trashed.discard)(session)

    @rule(target=dialogs, handle=HANDLES, session=sessions, at=st.integers(0, 9))
    def new_dialog(self, handle: int, session: str, at: int) -> str:
        """Make the root of a tree."""
        return self._make(handle, Branch(session, float(at), []), parent=None)

    @rule(target=dialogs, handle=HANDLES, parent=dialogs, cut=st.integers(-1, 5), at=st.integers(0, 9))
    def fork(self, handle: int, parent: str, cut: int, at: int) -> Any:  # noqa: ANN401 - what a bundle takes
        """Share what an ancestor holds, up to some entry; a range beyond that is refused."""
        above = self.branches[parent]
        branch = Branch(above.session, float(at), [*above.ranges, (parent, 0, cut)])
        if 0 <= cut <= len(above.entries):
            return self._make(handle, branch, parent)
        with pytest.raises(InvalidInput):
            self._make(handle, branch, parent)
        return multiple()

    def _make(self, handle: int, branch: Branch, parent: str | None) -> str:
        dialog = derive_dialog_id(branch.session, str(len(self.branches)))
        made = self.on(handle).create_dialog(
            Node(
                dialog_id=DialogId(dialog),
                session_id=SessionId(branch.session),
                parent_id=None if parent is None else DialogId(parent),
                ranges=tuple(Span(DialogId(where), start, stop) for where, start, stop in branch.ranges),
                created_at=branch.made,
            )
        )
        assert made.order == sum(other.session == branch.session for other in self.branches.values())
        self.branches[dialog] = branch
        return dialog

    @rule(handle=HANDLES, dialog=dialogs, batch=st.lists(drafts(st.just("message")), min_size=1, max_size=4))
    def say(self, handle: int, dialog: str, batch: list[tuple[Draft, str]]) -> None:
        """Append messages, which may always follow."""
        before = len(self.branches[dialog].entries)
        self.append(handle, dialog, batch, 0)
        assert len(self.branches[dialog].entries) == before + len(batch)

    @rule(
        handle=HANDLES, dialog=dialogs, batch=st.lists(drafts(), max_size=3), late=st.sampled_from([0, 0, 0, 0, 0, 1])
    )
    def append(self, handle: int, dialog: str, batch: list[tuple[Draft, str]], late: int) -> None:
        """Append a batch; a writer that comes too late is told, and one illegal draft undoes them all."""
        branch, store = self.branches[dialog], self.on(handle)
        said = [draft for draft, _word in batch]
        if late:
            with pytest.raises(Conflict) as told:
                store.append(DialogId(dialog), said, branch.head() - late)
            assert (told.value.expected, told.value.actual) == (branch.head() - late, branch.head())
            return
        expected = Branch(branch.session, branch.made, [], list(branch.entries))
        if not self._follow(expected, batch):
            with pytest.raises(InvalidInput):
                store.append(DialogId(dialog), said, branch.head())
            return
        headers = store.append(DialogId(dialog), said, branch.head())
        first, branch.entries = len(branch.entries), expected.entries
        assert len(headers) == len(said)
        assert all(agrees(header, first + n, branch.entries[first + n]) for n, header in enumerate(headers))

    @staticmethod
    def _follow(branch: Branch, batch: list[tuple[Draft, str]]) -> bool:
        for draft, word in batch:
            entry = branch.follow(draft, word, turn=True)
            if entry is None:
                return False
            branch.entries.append(entry)
        return True

    @rule(handle=HANDLES, dialog=dialogs, drawn=drafts(st.sampled_from(["label", "compaction", "custom", "message"])))
    def annotate(self, handle: int, dialog: str, drawn: tuple[Draft, str]) -> None:
        """Put an entry beside the turn."""
        branch = self.branches[dialog]
        draft, word = drawn
        entry = None if draft.kind == "custom" else branch.follow(draft, word, turn=False)
        if draft.kind == "custom":  # which may stand anywhere
            entry = branch.follow(draft._replace(kind="label"), word, turn=False)
            entry = None if entry is None else Written(**{**vars(entry), "kind": "custom"})
        if entry is None:
            with pytest.raises(InvalidInput):
                self.on(handle).annotate(DialogId(dialog), draft)
            return
        header = self.on(handle).annotate(DialogId(dialog), draft)
        branch.entries.append(entry)
        assert agrees(header, len(branch.entries) - 1, entry)

    @rule(
        handle=HANDLES,
        dialog=dialogs,
        batch=st.lists(drafts(st.just("message")), min_size=1, max_size=2),
        undone=st.booleans(),
    )
    def block(self, handle: int, dialog: str, batch: list[tuple[Draft, str]], undone: bool) -> None:
        """Write several things together; when the block raises, none of them is there."""
        before = list(self.branches[dialog].entries)
        store = self.on(handle)
        with suppress(_UndoneError), store.transaction():
            self.append(handle, dialog, batch, 0)
            assert store.last(DialogId(dialog)).seq == len(self.branches[dialog].entries) - 1
            self.append(handle, dialog, batch, 0)
            _undo(undone)
        if undone:
            self.branches[dialog].entries = before

    @rule(handle=HANDLES, data=st.binary(max_size=8))
    def put_blob(self, handle: int, data: bytes) -> None:
        """Store a payload."""
        self.payloads[self.on(handle).put_blob(data)] = data

    @rule(handle=HANDLES, session=sessions, identity=st.sampled_from(["x", "y"]), digest=st.sampled_from(["", "d"]))
    def put_source(self, handle: int, session: str, identity: str, digest: str) -> None:
        """Write or replace a source."""
        record = SourceRecord(identity=identity, session_id=SessionId(session), format="f", digest=digest)
        self.on(handle).put_source(record)
        self.origins[identity] = record

    @rule(handle=HANDLES)
    def reopen(self, handle: int) -> None:
        """Close a handle and open it again."""
        store = self.on(handle)
        if Capability.DURABLE in store.capabilities:
            store.close()
            self.handles[handle % len(self.handles)] = self.backend.open()

    # --- reading ----------------------------------------------------------------------------------------------------------------

    @rule(
        handle=HANDLES,
        dialog=dialogs,
        start=st.integers(-1, 6),
        stop=st.none() | st.integers(-1, 6),
        back=st.booleans(),
    )
    def read(self, handle: int, dialog: str, start: int, stop: int | None, back: bool) -> None:
        """Read a range, either way."""
        store, entries = self.on(handle), self.branches[dialog].entries
        numbers = [n for n in range(len(entries)) if start <= n and (stop is None or n < stop)]
        assert list(store.bodies(DialogId(dialog), start, stop)) == [(n, entries[n].body) for n in numbers]
        headers = list(store.headers(DialogId(dialog), start, stop, reverse=back))
        assert [header.seq for header in headers] == (numbers[::-1] if back else numbers)
        assert all(agrees(header, header.seq, entries[header.seq]) for header in headers)

    @rule(handle=HANDLES, limit=st.none() | st.integers(0, 3), word=st.sampled_from(WORDS))
    def search(self, handle: int, limit: int | None, word: str) -> None:
        """Index some entries, or all, and look for a word."""
        store = self.on(handle)
        if Capability.SEARCH not in store.capabilities:
            return
        waiting = [entry for branch in self.branches.values() for entry in branch.entries if not entry.indexed]
        lag = store.index_lag()
        assert lag <= len(waiting)
        assert store.index(lambda _kind, body: body.decode(), limit) == (lag if limit is None else min(lag, limit))
        hits = {(hit.handle.dialog, hit.handle.seq) for hit in store.search(word, limit=1000)}
        holders = {
            (dialog, seq)
            for dialog, branch in self.branches.items()
            for seq, entry in enumerate(branch.entries)
            if entry.word == word and entry.kind in SEARCHED and branch.session not in self.trashed
        }
        assert hits <= holders
        if store.index_lag() == 0:
            assert hits == holders
            for entry in waiting:
                entry.indexed = True

    @rule(
        handle=HANDLES,
        trashed=st.sampled_from([False, False, True]),
        name=st.sampled_from([None, None, "n", "m"]) | st.sampled_from(["n", "m"]),
    )
    def list_sessions(self, handle: int, trashed: bool, name: str | None) -> None:
        """List sessions in the order of their activity."""
        found = [
            (record.updated_at, record.session_id) for record in self.on(handle).sessions(name=name, trashed=trashed)
        ]
        known = [
            (self._active(session), session)
            for session, named in self.names.items()
            if (session in self.trashed) == trashed and name in (None, named)
        ]
        assert found == sorted(known, reverse=True)

    def _active(self, session: str) -> float:
        times = [self.made[session]]
        for branch in self.branches.values():
            if branch.session == session:
                times += [branch.made, *(entry.at for entry in branch.entries)]
        return max(times)

    # --- the end ----------------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Compare the whole store with the oracle, through every handle, and close them."""
        for store in self.handles:
            self._compare(store)
            store.close()

    def _compare(self, store: Store) -> None:
        for session in self.names:
            mine = [dialog for dialog, branch in self.branches.items() if branch.session == session]
            assert [node.dialog_id for node in store.nodes(SessionId(session))] == mine
            sources = sorted((o for o in self.origins.values() if o.session_id == session), key=lambda o: o.identity)
            assert list(store.sources(SessionId(session))) == sources
        for dialog, branch in self.branches.items():
            node = store.node(DialogId(dialog))
            assert [(span.dialog, span.start, span.stop) for span in node.ranges] == branch.ranges
            assert [body for _seq, body in store.bodies(DialogId(dialog))] == [entry.body for entry in branch.entries]
            assert all(agrees(h, n, branch.entries[n]) for n, h in enumerate(store.headers(DialogId(dialog))))
            assert store.last(DialogId(dialog)).seq == len(branch.entries) - 1
            assert store.verify(DialogId(dialog)) == ()
        for blob, data in self.payloads.items():
            assert store.blob(blob) == data
