"""What governs a dialog, and blocks: a prompt that a block took back governs nothing, is written on nothing, and meanwhile governs for its thread alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from palaver import MemoryStore, Message, Prompt, Runtime, Session, SqliteStore, Store
from palaver.log import Handle, MessageEntry, entry_at
from palaver.session import Dialog
from palaver.store import Durability
from tests.open_blocks import OpenBlocks
from tests.session.test_stores_without_blocks import older
from tests.stores import KINDS, empty_store
from tests.threads import WAIT

PATHS = st.sampled_from(["p0", "p1", "p2"])


def runtime() -> Runtime:
    """Give a runtime with three prompts."""
    made = Runtime()
    for number in range(3):
        made.register_prompt(Prompt(path=f"p{number}", prompt=f"Say {number}."))
    return made


def governs(dialog: Dialog) -> str | None:
    """Give the path of what governs, None for a text or nothing."""
    top = dialog.top_prompt
    return None if top is None or top.is_temporary else top.path


def stamped(dialog: Dialog) -> str | None:
    """Say something, and give the path that is written on it."""
    dialog.append(Message(role="user", content="said"))
    entry = entry_at(dialog.store, Handle(dialog.dialog_id, dialog.spans[-1].stop - 1))
    assert isinstance(entry, MessageEntry)
    return entry.prompt


class PromptMachine(RuleBasedStateMachine):
    """A history: the model is a stack, what is sure and on it what each open block has made of it."""

    def opened(self) -> Store:
        """Give an empty store."""
        raise NotImplementedError

    def __init__(self) -> None:
        """Begin a conversation."""
        super().__init__()
        self.store = self.opened()
        self.waits = isinstance(self.store, MemoryStore)
        self.dialog = Session.create(self.store, "s", owner="a", runtime=runtime()).root
        self.stack: list[str | None] = [None]
        self.open = OpenBlocks(self.store)
        self.pool = ThreadPoolExecutor(1)

    @rule(path=PATHS)
    def put(self, path: str) -> None:
        """A prompt is put."""
        self.dialog.put_prompt(path)
        self.stack[-1] = path

    @rule()
    def text(self) -> None:
        """A text is put: nothing governs."""
        self.dialog.put_text("x")
        self.stack[-1] = None

    @rule(path=PATHS)
    def by_hand(self, path: str) -> None:
        """A program says what is to govern; that is no entry, and no block takes it back."""
        self.dialog.top_prompt = self.dialog.runtime.get_prompt(path)
        self.stack = [path for _ in self.stack]

    @rule()
    def says(self) -> None:
        """What is written on a message is what governs."""
        assert stamped(self.dialog) == self.stack[-1]

    @rule()
    def reload(self) -> None:
        """Looking at the store changes nothing: nobody else wrote."""
        self.dialog.reload()

    @precondition(lambda self: len(self.open) < 2)
    @rule()
    def begins(self) -> None:
        """A block begins, perhaps within another one."""
        self.open.begin()
        self.stack.append(self.stack[-1])

    @precondition(lambda self: self.open)
    @rule()
    def ends(self) -> None:
        """A block ends."""
        self.open.end()
        self.stack[-2:] = [self.stack[-1]]

    @precondition(lambda self: self.open)
    @rule()
    def raises(self) -> None:
        """A block raises."""
        self.open.fail()
        self.stack.pop()

    @precondition(lambda self: not (self.waits and self.open))
    @rule()
    def elsewhere(self) -> None:
        """For another thread what is sure governs."""
        assert self.pool.submit(governs, self.dialog).result(WAIT) == self.stack[0]

    @invariant()
    def here(self) -> None:
        """For this thread what it put governs, and for a fork the same."""
        assert governs(self.dialog) == self.stack[-1]

    @rule()
    def forks(self) -> None:
        """A fork begins with what governs here."""
        assert governs(self.dialog.fork()) == self.stack[-1]

    def teardown(self) -> None:
        """End what is open."""
        while self.open:
            self.raises()
        self.here()
        self.pool.shutdown()
        self.store.close()


FEW = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck), deadline=None)


def test_any_history_in_memory() -> None:
    """What governs is a function of what was put and stands."""

    class Machine(PromptMachine):
        def opened(self) -> Store:
            return MemoryStore()

    run_state_machine_as_test(Machine, settings=settings(FEW, max_examples=max(settings().max_examples // 8, 6)))


def test_any_history_in_a_file() -> None:
    """The same over SQLite, where other threads read while a block is open."""

    class Machine(PromptMachine):
        def opened(self) -> Store:
            self.folder = TemporaryDirectory(prefix="palaver-prompts-")
            return SqliteStore(Path(self.folder.name) / "s.db", Durability.NORMAL)

        def teardown(self) -> None:
            super().teardown()
            self.folder.cleanup()

    run_state_machine_as_test(Machine, settings=settings(FEW, max_examples=max(settings().max_examples // 12, 5)))


@pytest.fixture(params=[*KINDS, "older"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind, and one that does not say which threads are inside a block."""
    if request.param == "older":
        yield older()
    else:
        yield from empty_store(request, tmp_path)


def test_a_prompt_that_was_taken_back_is_written_on_nothing(store: Store) -> None:
    """The prompt before governs, for this object, for one that looked in the block, and in the log; also where another writer has the number now."""
    dialog = Session.create(store, "s", runtime=runtime()).root
    dialog.put_prompt("p0")
    looked = Session.open(dialog.session_id, store, runtime=dialog.runtime).root
    with suppress(ZeroDivisionError), store.together():
        dialog.put_prompt("p1")
        assert governs(dialog) == "p1"
        raise ZeroDivisionError
    Session.open(dialog.session_id, store, runtime=Runtime()).root.put_text("another's")
    dialog.reload()
    assert (governs(dialog), stamped(dialog)) == ("p0", "p0")
    assert governs(looked.reload()) == "p0"
    assert governs(Session.open(dialog.session_id, store, runtime=dialog.runtime).root) == "p0"


@pytest.mark.parametrize("store", KINDS, indirect=True)
def test_what_a_look_in_a_block_read_off_the_log_is_not_kept(store: Store) -> None:
    """An object that reads in a block what governs reads it again behind it."""
    dialog = Session.create(store, "s", runtime=runtime()).root
    dialog.put_prompt("p0")
    looked = Session.open(dialog.session_id, store, runtime=dialog.runtime).root
    with suppress(ZeroDivisionError), store.together():
        dialog.put_prompt("p1")
        assert governs(looked.reload()) == "p1"
        raise ZeroDivisionError
    assert (governs(looked), governs(looked.fork()), stamped(looked)) == ("p0", "p0", "p0")


@pytest.mark.parametrize("store", KINDS, indirect=True)
def test_a_prompt_of_another_thread_that_follows_a_block_that_raised_governs(store: Store) -> None:
    """The block's thread has not looked since: what another one puts under the same number governs for both."""
    dialog = Session.create(store, "s", runtime=runtime()).root
    dialog.put_prompt("p0")
    with suppress(ZeroDivisionError), store.together():
        dialog.put_prompt("p1")
        raise ZeroDivisionError
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: dialog.reload().put_prompt("p2")).result(WAIT)
        assert pool.submit(governs, dialog).result(WAIT) == "p2"
    assert (governs(dialog), stamped(dialog)) == ("p2", "p2")
