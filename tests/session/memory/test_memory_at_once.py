"""Memory in several threads and in blocks: nothing hangs, nobody reads what is not sure, nothing that was taken back is anywhere, and forks have all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from palaver import ArchivalMemory, CoreMemory, Dialog, Files, MemoryStore, Session, Store, open_store
from palaver.errors import Conflict, MemoryConflict, NotFound
from palaver.ids import DialogId
from palaver.log import Header
from palaver.store import Capability
from tests.session.test_stores_without_blocks import older
from tests.stores import KINDS, empty_store
from tests.threads import WAIT, at_once


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind."""
    yield from empty_store(request, tmp_path)


@pytest.fixture(params=[*KINDS, "older"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind, and one that does not say which threads are inside a block."""
    if request.param == "older":
        yield older()
    else:
        yield from empty_store(request, tmp_path)


def begun(store: Store) -> Dialog:
    """Give a dialog in which somebody said something."""
    dialog = Session.create(store, "s", owner="a").root
    dialog.put_text("first")
    return dialog


# --- what a block took back --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [0, 30])
def test_what_a_block_took_back_is_not_built_upon(any_store: Store, between: int) -> None:
    """What was read in a block that raised is read no more, and nothing is written that is made of it; however far notes stand apart."""
    dialog = begun(any_store)
    files, core = Files(dialog), CoreMemory(dialog)
    core.create("human", "v0")
    files.write("a.txt", "one")
    for _ in range(between):
        dialog.label(dialog.messages.handle(0), "x")
    with suppress(ZeroDivisionError), any_store.together():
        core.append("human", "ROLLED BACK")
        files.write("a.txt", "ROLLED BACK")
        files.write("b.txt", "ROLLED BACK")
        assert (core.get("human").value, files.read("a.txt").text) == ("v0\nROLLED BACK", "ROLLED BACK")
        raise ZeroDivisionError
    assert (core.get("human").value, [file.text for file in files.list()]) == ("v0", ["one"])
    core.append("human", "kept")
    with pytest.raises(MemoryConflict):
        files.edit("a.txt", "BACK", "forth")
    with pytest.raises(NotFound):
        files.read("b.txt")
    assert [block.value for _, block in core.history("human")] == ["v0", "v0\nkept"]
    assert [file.text for file in files.history("a.txt")] == ["one"]


def test_a_passage_under_a_number_that_was_used_before_is_found_by_its_own_words(any_store: Store) -> None:
    """The vector of a passage that was taken back is not that of another one that has its handle now."""
    archive = ArchivalMemory(begun(any_store))
    with suppress(ZeroDivisionError), any_store.together():
        taken = asyncio.run(archive.ainsert("green tea"))
        assert asyncio.run(archive.asearch("green tea"))[0].score > 0.9
        raise ZeroDivisionError
    assert archive.search("green tea") == ()
    again = archive.insert("PostgreSQL 16")
    assert again.handle == taken.handle
    assert archive.search("green tea")[0].score < 0.5
    assert archive.search("PostgreSQL 16")[0].score > 0.9


def test_a_block_within_a_block_takes_back_its_own(store: Store) -> None:
    """Of two blocks the inner one raises: what the outer one wrote before and after stands, in it and behind it."""
    files = Files(begun(store))
    with store.together():
        files.append("log", "1")
        with suppress(ZeroDivisionError), store.together():
            files.append("log", "2")
            assert files.read("log").text == "12"
            raise ZeroDivisionError
        assert files.read("log").text == "1"
        files.append("log", "3")
    assert files.read("log").text == "13"


# --- several threads ---------------------------------------------------------------------------------------------------------------


def test_a_reader_that_waits_for_a_block_does_not_keep_it_from_its_end() -> None:
    """The store in memory lets a reader wait for the end of a block: whatever the block's thread does with the same objects, it gets there."""
    waits = threading.Event()

    class Watched(MemoryStore):
        def last(self, dialog_id: DialogId) -> Header:
            if threading.current_thread().name == "reader":
                waits.set()
            return super().last(dialog_id)

    store = Watched()
    dialog = begun(store)
    core, files = CoreMemory(dialog), Files(dialog)
    core.create("human", "v0")
    read: list[tuple[str, int]] = []
    reader = threading.Thread(
        target=lambda: read.append((core.get("human").value, len(files.list()))), name="reader", daemon=True
    )

    def block() -> None:
        with store.together():
            dialog.put_text("in a block")
            reader.start()
            assert waits.wait(WAIT)
            core.append("human", "x")
            files.write("a", core.get("human").value)

    writer = threading.Thread(target=block, daemon=True)
    writer.start()
    writer.join(WAIT / 4)
    reader.join(WAIT / 4)
    assert (writer.is_alive(), reader.is_alive(), read) == (False, False, [("v0\nx", 1)])


@pytest.mark.parametrize("store", ["sqlite", "postgres"], indirect=True)
def test_other_threads_read_what_is_sure(store: Store) -> None:
    """While a block is open, other threads read through the same objects what was there before, and behind it what it left."""
    dialog = begun(store)
    core, files = CoreMemory(dialog), Files(dialog)
    core.create("human", "v0")
    with ThreadPoolExecutor(1) as pool:

        def elsewhere() -> tuple[str, list[str]]:
            return pool.submit(lambda: (core.get("human").value, [file.path for file in files.list()])).result(WAIT)

        for raises, left in ((True, ("v0", [])), (False, ("v0\nx", ["a"]))):
            with suppress(ZeroDivisionError), store.together():
                core.append("human", "x")
                files.write("a", "x")
                assert (core.get("human").value, len(files.list())) == ("v0\nx", 1)
                assert elsewhere() == ("v0", [])
                assert (core.get("human").value, len(files.list())) == ("v0\nx", 1)
                if raises:
                    raise ZeroDivisionError
            assert elsewhere() == left
            assert (core.get("human").value, [file.path for file in files.list()]) == left


def test_blocks_of_several_threads_at_once(store: Store) -> None:
    """Threads append to one block and one file in blocks of their own, half of which raise, and read between: what stands is what ended, in its order."""
    dialog = begun(store)
    core, files = CoreMemory(dialog), Files(dialog)
    core.create("log", "begun")
    files.write("log", "begun\n")

    def works(number: int, barrier: threading.Barrier) -> list[str]:
        barrier.wait()
        ended = []
        for turn in range(4):
            raises = (number + turn) % 2 == 0
            word = f"{number}-{turn}-{'TAKEN' if raises else 'kept'}"
            with suppress(ZeroDivisionError), store.together():
                core.append("log", word)
                files.append("log", f"{word}\n")
                assert core.get("log").value.endswith(word)
                assert files.read("log").text.split() == core.get("log").value.split()
                if raises:
                    raise ZeroDivisionError
            assert "TAKEN" not in core.get("log").value + files.read("log").text
            ended += [] if raises else [word]
            assert set(ended) <= set(files.read("log").text.split())
        return ended

    done = at_once(3, works)
    ended = [word for words in done for word in words]
    for seen in (core.get("log").value, files.read("log").text, Files(dialog).read("log").text):
        assert sorted(seen.split()) == sorted(["begun", *ended])
    lines = files.read("log").text.split()
    assert all(list(filter(words.__contains__, lines)) == words for words in done)


# --- forks -------------------------------------------------------------------------------------------------------------------------


def filled(dialog: Dialog) -> None:
    """Write something into each kind of memory, straight to the store."""
    Files(dialog).write("notes.md", "x")
    CoreMemory(dialog).create("human", "Ada")
    asyncio.run(ArchivalMemory(dialog).ainsert("green tea"))


def held(dialog: Dialog) -> tuple[list[str], list[str], int]:
    """Give what memory holds."""
    return (
        [file.text for file in Files(dialog).list()],
        [block.value for block in CoreMemory(dialog).blocks],
        len(ArchivalMemory(dialog)),
    )


@pytest.mark.parametrize("window", [{}, {"last_n": 1}, {"last_n": 1, "first_k": 0}])
@pytest.mark.parametrize("whose", ["its own", "another object", "another process"])
def test_a_fork_has_the_memory_that_there_was(store: Store, whose: str, window: dict[str, int]) -> None:
    """A program writes memory and forks, with nothing in between: the fork has all, whoever wrote it, and then each side has its own."""
    dialog = begun(store)
    with ExitStack() as stack:
        far = store
        if whose == "another process" and Capability.SHARED in store.capabilities:
            far = open_store(store.url)
            stack.callback(far.close)
        filled(dialog if whose == "its own" else Session.open(dialog.session_id, far).root)
    fork = dialog.fork(**window)
    assert held(fork) == (["x"], ["Ada"], 1)
    Files(dialog).write("notes.md", "SECOND")
    CoreMemory(fork).append("human", "Grace")
    assert held(dialog.fork(**window)) == (["SECOND"], ["Ada"], 1)
    assert held(fork) == (["x"], ["Ada\nGrace"], 1)
    assert held(fork.fork()) == (["x"], ["Ada\nGrace"], 1)


def test_who_lost_a_turn_goes_on_with_the_memory_of_that_turn(store: Store) -> None:
    """Another writer went on: the loser's fork has what was written beside the turn that it knows, and a reload all."""
    dialog = begun(store)
    Files(dialog).write("a", "before")
    other = Session.open(dialog.session_id, store).root
    other.put_text("of the other")
    Files(other).write("a", "behind")
    with pytest.raises(Conflict):
        dialog.put_text("mine")
    fork = dialog.fork()
    assert ([message.text_content() for message in fork.messages], Files(fork).read("a").text) == (["first"], "before")
    fork = dialog.reload().fork()
    assert ([message.text_content() for message in fork.messages], Files(fork).read("a").text) == (
        ["first", "of the other"],
        "behind",
    )


def test_a_fork_in_a_block_has_what_the_block_wrote(store: Store) -> None:
    """A fork made in a block has the block's memory, and is gone with it."""
    dialog = begun(store)
    with store.together():
        filled(dialog)
        kept = dialog.fork()
        assert held(kept) == (["x"], ["Ada"], 1)
    assert held(kept) == (["x"], ["Ada"], 1)
