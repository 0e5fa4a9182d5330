"""Random histories of memory: blocks that raise, other threads, other objects, another process and forks; what memory gives is what the log says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from palaver import ArchivalMemory, CoreMemory, Dialog, Files, MemoryStore, Session, SqliteStore, Store
from palaver.errors import Conflict, NotFound
from palaver.store import Capability, Durability
from palaver.store.postgres import PostgresStore
from tests import postgres
from tests.open_blocks import OpenBlocks
from tests.store.postgres_backend import emptied
from tests.threads import WAIT

T = TypeVar("T")

NAMES = st.sampled_from(["a", "b", "c"])
WORDS = st.sampled_from(["tea", "milk", "ROLLED", "kept", "x" * 50])
WHO = st.sampled_from(["one", "same", "other"])


@dataclass
class Held:
    """What memory holds: the model."""

    blocks: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    passages: list[str] = field(default_factory=list)


class Memory:
    """The three kinds of memory in a dialog, each with its own object."""

    def __init__(self, dialog: Dialog) -> None:
        """Open them."""
        self.core, self.files, self.archive = CoreMemory(dialog), Files(dialog), ArchivalMemory(dialog)

    def held(self) -> Held:
        """Read all of it."""
        return Held(
            {block.label: block.value for block in self.core.blocks},
            {file.path: file.text for file in self.files.list()},
            [passage.text for passage in reversed(self.archive.passages())],
        )


@dataclass
class Fork:
    """A fork, how many blocks were open when it was made, and what its memory holds."""

    depth: int
    dialog: Dialog
    memory: Memory
    held: Held


class MemoryMachine(RuleBasedStateMachine):
    """A history; a subclass says where it lies. The model is a stack: what is sure, and on it what each open block has made of it."""

    def opened(self) -> Store:
        """Give a handle of the store."""
        raise NotImplementedError

    def __init__(self) -> None:
        """Begin a conversation; another process opens it, too."""
        super().__init__()
        self.store = self.opened()
        shared = Capability.SHARED in self.store.capabilities
        self.far = self.opened() if shared else self.store
        self.shared = shared
        self.session = session = Session.create(self.store, "s", owner="a")
        self.dialog = session.root
        self.dialog.put_text("first")
        there = Session.open(session.session_id, self.far).root
        self.who = {"one": Memory(self.dialog), "same": Memory(self.dialog), "other": Memory(there)}
        self.there = there
        self.stack = [Held()]
        self.open = OpenBlocks(self.store)
        self.forks: list[Fork] = []
        self.stale: Held | None = None  # the memory where another process went on with the turn
        self.pool = ThreadPoolExecutor(1)

    def elsewhere(self, look: Callable[[], T]) -> T:
        """Have another thread look, and wait for it."""
        return self.pool.submit(look).result(WAIT)

    @property
    def now(self) -> Held:
        """What this thread is to see."""
        return self.stack[-1]

    # --- writing --------------------------------------------------------------------------------------------------------------------

    def writer(self, who: str) -> Memory:
        """Give somebody who may write now: while a block is open, only its own thread, here."""
        return self.who["one" if self.open and who == "other" else who]

    @rule(who=WHO, name=NAMES, word=WORDS)
    def block(self, who: str, name: str, word: str) -> None:
        """A block of core memory is made, or added to: what is written is made of what stands, and of nothing else."""
        core, before = self.writer(who).core, self.now.blocks.get(name)
        made = core.create(name, word) if before is None else core.append(name, word)
        self.now.blocks[name] = word if before is None else f"{before}\n{word}"
        assert made.value == self.now.blocks[name]

    @rule(who=WHO, name=NAMES, word=WORDS)
    def file(self, who: str, name: str, word: str) -> None:
        """A file is added to."""
        made = self.writer(who).files.append(name, word)
        self.now.files[name] = self.now.files.get(name, "") + word
        assert made.text == self.now.files[name]

    @rule(who=WHO, name=NAMES)
    def gone(self, who: str, name: str) -> None:
        """A file is taken away, where there is one."""
        files = self.writer(who).files
        if self.now.files.pop(name, None) is None:
            with suppress(NotFound):
                files.delete(name)
                raise AssertionError(name)
        else:
            files.delete(name)

    @rule(who=WHO, word=WORDS)
    def passage(self, who: str, word: str) -> None:
        """A passage is put in, perhaps in a block, and found."""
        archive = self.writer(who).archive
        asyncio.run(archive.ainsert(word))
        self.now.passages.append(word)
        assert asyncio.run(archive.asearch(word, limit=1))[0].text == word

    @rule(name=NAMES)
    def said(self, name: str) -> None:
        """The conversation goes on."""
        try:
            self.dialog.put_text(name)
        except Conflict:
            assert self.stale is not None
            self.dialog.reload()
            self.stale = None

    @rule(count=st.integers(1, 8))
    def beside(self, count: int) -> None:
        """Something else is written beside the turn, so that notes stand far apart."""
        for _ in range(count):
            self.dialog.label(self.dialog.messages.handle(0), "x")

    @precondition(lambda self: not self.open)
    @rule(name=NAMES)
    def said_there(self, name: str) -> None:
        """Another process goes on with the conversation, behind what the dialog knows."""
        assert self.dialog.spans
        self.there.reload().put_text(name)
        if self.stale is None:
            self.stale = deepcopy(self.now)

    # --- blocks ---------------------------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.open) < 2)
    @rule()
    def begins(self) -> None:
        """A block begins, perhaps within another one."""
        self.open.begin()
        self.stack.append(deepcopy(self.now))

    @precondition(lambda self: self.open)
    @rule()
    def ends(self) -> None:
        """A block ends: what it wrote is there, for all where no other is open."""
        self.open.end()
        self.stack[-2:] = [self.now]
        for fork in self.forks:
            fork.depth = min(fork.depth, len(self.open))

    @precondition(lambda self: self.open)
    @rule()
    def raises(self) -> None:
        """A block raises: nothing of what it wrote is anywhere."""
        self.open.fail()
        self.stack.pop()
        if self.stale is not None:  # what the dialog wrote in the block is gone: it looks anew, and knows all
            self.reloaded()
        self.forks = [fork for fork in self.forks if fork.depth <= len(self.open)]

    # --- looking --------------------------------------------------------------------------------------------------------------------

    @rule(who=WHO)
    def look(self, who: str) -> None:
        """Whoever looks in this thread sees what it wrote; another process what is sure."""
        assert self.who[who].held() == (self.stack[0] if who == "other" and self.shared else self.now)

    @precondition(lambda self: self.shared or not self.open)
    @rule(who=WHO)
    def look_elsewhere(self, who: str) -> None:
        """Another thread sees what is sure, through the same objects."""
        assert self.elsewhere(self.who[who].held) == self.stack[0]

    @precondition(lambda self: len(self.forks) < 4)
    @rule(name=NAMES, word=WORDS)
    def forked(self, name: str, word: str) -> None:
        """A fork has the memory that there was when it was made, or where the turn stands that it goes on from; then each side has its own."""
        made = self.dialog.fork()
        child = Memory(made)
        held = deepcopy(self.now if self.stale is None else self.stale)
        assert child.held() == held
        child.files.append(name, word)
        held.files[name] = held.files.get(name, "") + word
        self.forks.append(Fork(len(self.open), made, child, held))

    @precondition(lambda self: not self.open and self.now.files)
    @rule(name=NAMES)
    def erased(self, name: str) -> None:
        """What a file said last is erased: what new objects read then is what old ones are held to, here and in forks."""
        for entry in self.who["one"].files.history(name)[-1:]:
            self.session.erase(entries=[entry.handle], thorough=False)
            self.reloaded()
            self.stack = [Memory(self.dialog).held()]
            for fork in self.forks:
                fork.held = Memory(fork.dialog).held()
            assert entry not in self.who["other"].files.history(name)

    @rule()
    def reloaded(self) -> None:
        """The dialog takes note of what others wrote."""
        self.dialog.reload()
        self.stale = None

    @invariant()
    def as_the_log_says(self) -> None:
        """New objects give what old ones give: what is kept between readings changes none."""
        assert Memory(self.dialog).held() == self.now
        for fork in self.forks:
            assert fork.memory.held() == fork.held

    def teardown(self) -> None:
        """End what is open."""
        while self.open:
            self.ends()
        for who in self.who:
            self.look(who)
        self.pool.shutdown()
        for store in {id(each): each for each in (self.store, self.far)}.values():
            store.close()


def histories(share: int, least: int) -> settings:
    """Give so large a share of the usual number of histories: few here, many in soak."""
    return settings(
        max_examples=max(settings().max_examples // share, least),
        stateful_step_count=20,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


def test_any_history_in_memory() -> None:
    """What memory gives is a function of the log, over the reference store."""

    class Machine(MemoryMachine):
        def opened(self) -> Store:
            return MemoryStore()

    run_state_machine_as_test(Machine, settings=histories(4, 8))


def test_any_history_in_a_file() -> None:
    """The same over SQLite."""

    class Machine(MemoryMachine):
        folder: TemporaryDirectory[str] | None = None

        def opened(self) -> Store:
            self.folder = self.folder or TemporaryDirectory(prefix="palaver-memory-")
            return SqliteStore(Path(self.folder.name) / "s.db", Durability.NORMAL)

        def teardown(self) -> None:
            super().teardown()
            if self.folder is not None:
                self.folder.cleanup()

    run_state_machine_as_test(Machine, settings=histories(10, 4))


def test_any_history_on_a_server(postgres_server: postgres.Server) -> None:
    """The same over PostgreSQL."""

    class Machine(MemoryMachine):
        url = ""

        def opened(self) -> Store:
            self.url = self.url or emptied(postgres_server)
            return PostgresStore(self.url)

    run_state_machine_as_test(Machine, settings=histories(25, 3))
