"""A block of one thread, and the others that use the same object of a dialog: what the block wrote is its own until it ends, whoever looks meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from palaver import Dialog, Session, Store
from palaver.errors import Conflict, StoreBusy
from palaver.session.carried.replay import read_log
from palaver.store import Capability
from palaver.view import fold
from tests.stores import KINDS, empty_store
from tests.threads import WAIT, at_once

T = TypeVar("T")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind."""
    yield from empty_store(request, tmp_path)


class Elsewhere:
    """Other threads. In a block one is waited for where the store lets it read; else it has begun, and reads when the block has ended."""

    def __init__(self, store: Store) -> None:
        """Begin none yet."""
        self._waits = Capability.SHARED in store.capabilities
        self._pool = ThreadPoolExecutor(8)

    def reads(self, look: Callable[[], T]) -> Future[T]:
        """Have one look at something while this thread is in a block."""
        begun = threading.Event()

        def looked() -> T:
            begun.set()
            return look()

        answer = self._pool.submit(looked)
        assert begun.wait(WAIT)
        if self._waits:
            answer.result(WAIT)
        return answer

    def does(self, work: Callable[[], T]) -> T:
        """Have one do something, and wait for it."""
        return self._pool.submit(work).result(WAIT)


@pytest.fixture
def elsewhere(store: Store) -> Elsewhere:
    """Give other threads."""
    return Elsewhere(store)


def begun(store: Store, log_base: Path | None = None) -> Dialog:
    """Give a dialog that was looked at."""
    dialog = Session.create(store, "s", log_base=log_base).root
    dialog.put_text("first")
    dialog.view()
    return dialog


def texts(dialog: Dialog) -> list[str]:
    """Give what was said."""
    return [message.text_content() for message in dialog.messages]


def called(dialog: Dialog) -> None:
    """Record a call, as an agent does before it asks a model."""
    dialog.record_call(dialog.request("openai-chat", "gpt-4o"))


def whole(dialog: Dialog) -> None:
    """Insist that the view is a fresh fold's, and that every call is given back to the byte."""
    assert dialog.view() == fold(dialog.store, dialog.dialog_id)
    assert [call.request().digest for call in dialog.invocations] == [
        call.sent["digest"] for call in dialog.invocations
    ]


def in_a_block(dialog: Dialog, elsewhere: Elsewhere, *, raises: bool) -> Future[list[str]]:
    """Write twice in a block, with another thread that reads after each write; give what it read last."""
    seen: list[Future[list[str]]] = []
    with suppress(ZeroDivisionError), dialog.store.together():
        for number in (1, 2):
            dialog.put_text(f"block {number}")
            elsewhere.reads(dialog.view)
            seen.append(elsewhere.reads(lambda: texts(dialog)))
            called(dialog)
            assert texts(dialog)[1:] == [f"block {each}" for each in range(1, number + 1)]
        if raises:
            raise ZeroDivisionError
    return seen[-1]


OUTCOMES = {False: ["first", "block 1", "block 2"], True: ["first"]}


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("first", ["own", "other"])
def test_a_reader_in_another_thread_changes_nothing_for_a_block(
    store: Store, elsewhere: Elsewhere, first: str, *, raises: bool
) -> None:
    """The block goes on writing; behind its end each thread knows what there is, whichever looks first, and both write without a Conflict."""
    dialog = begun(store)
    in_a_block(dialog, elsewhere, raises=raises)
    said = list(OUTCOMES[raises])

    def own() -> None:
        dialog.put_text("own")
        called(dialog)
        whole(dialog)

    def others() -> None:
        dialog.put_text("other")
        called(dialog)
        whole(dialog)

    for _ in range(3):
        for who in (first, "other" if first == "own" else "own"):
            own() if who == "own" else elsewhere.does(others)
            said.append(who)
            assert texts(dialog) == said
    assert elsewhere.does(lambda: texts(dialog)) == said
    whole(dialog)


@pytest.mark.parametrize("raises", [False, True])
def test_another_thread_reads_what_is_sure(store: Store, elsewhere: Elsewhere, *, raises: bool) -> None:
    """Nothing of a block that is open; where the store makes it wait for the end, what the block has left."""
    dialog = begun(store)
    read = in_a_block(dialog, elsewhere, raises=raises).result(WAIT)
    assert read == (["first"] if Capability.SHARED in store.capabilities else OUTCOMES[raises])
    assert texts(dialog) == OUTCOMES[raises]


@pytest.mark.parametrize("raises", [False, True])
def test_nobody_need_look_in_between(store: Store, elsewhere: Elsewhere, *, raises: bool) -> None:
    """Blocks one behind the other, and nobody looked before the last one began: what those before have left is known to all."""
    dialog = begun(store)
    for number in range(3):
        with store.together():
            dialog.put_text(f"block {number}")
            dialog.label(dialog.messages.handle(0), f"label {number}")
    with suppress(ZeroDivisionError), store.together():
        dialog.put_text("last")
        elsewhere.reads(lambda: texts(dialog))
        if raises:
            raise ZeroDivisionError
    elsewhere.does(lambda: dialog.put_text("other"))
    assert texts(dialog) == ["first", "block 0", "block 1", "block 2", *([] if raises else ["last"]), "other"]
    assert list(dialog.labels.values()) == ["label 2"]
    whole(dialog)


def test_a_thread_that_raised_and_is_gone_leaves_nothing(store: Store, elsewhere: Elsewhere) -> None:
    """What it had written is in no view and in no call of those who write in its place, and nothing is kept for it any more."""
    dialog = begun(store)

    def undone() -> None:
        with suppress(ZeroDivisionError), store.together():
            dialog.put_text("undone")
            called(dialog)
            raise ZeroDivisionError

    elsewhere.does(undone)
    for number in range(4):
        dialog.put_text(f"then {number}")
        called(dialog)
        whole(dialog)
    assert texts(dialog) == ["first", *(f"then {number}" for number in range(4))]
    assert dialog._ending.shared
    elsewhere.does(lambda: whole(dialog))


def test_what_was_opened_in_a_block_is_elsewhere_what_the_store_has_there(store: Store, elsewhere: Elsewhere) -> None:
    """An object that is made in a block that has written already: another thread sees through it what is there for that thread."""
    dialog = begun(store)
    with suppress(ZeroDivisionError), store.together():
        dialog.put_text("undone")
        other = Session.open(dialog.session_id, store).root
        assert texts(other) == ["first", "undone"]
        read = elsewhere.reads(lambda: texts(other))
        raise ZeroDivisionError
    assert read.result(WAIT) == texts(other) == ["first"]
    elsewhere.does(lambda: other.put_text("second"))
    assert texts(other) == texts(dialog.reload()) == ["first", "second"]
    whole(other)


def test_what_follows_is_told_by_whoever_looks_first(store: Store, elsewhere: Elsewhere, tmp_path: Path) -> None:
    """A replay log has nothing of an open block, and all of it when another thread was the first to find it there."""
    dialog = begun(store, tmp_path / "log")
    for raises in (True, False):
        in_a_block(dialog, elsewhere, raises=raises)
        elsewhere.does(lambda: texts(dialog))
        (carried,) = read_log(tmp_path / "log")[1]
        assert [line.body for line in carried.lines] == [body for _, body in store.bodies(dialog.dialog_id)]


def test_blocks_of_many_threads_at_once(store: Store) -> None:
    """Some commit, some raise, some only read: what was acknowledged is there, in each thread's order; what was taken back is not, in no view."""
    dialog = begun(store)

    def work(number: int, barrier: threading.Barrier) -> list[str]:
        said = []
        for turn in range(8):
            barrier.wait()
            if number == 0:
                assert dialog.view().dialog_id == dialog.dialog_id
                assert texts(dialog)[0] == "first"
                continue
            while True:
                raises = (turn + number) % 2 == 0
                try:
                    with suppress(ZeroDivisionError), store.together():
                        dialog.put_text(f"{number}.{turn}.a")
                        dialog.put_text(f"{number}.{turn}.b")
                        if raises:
                            raise ZeroDivisionError
                    break
                except (Conflict, StoreBusy):
                    dialog.reload()
            said += [] if raises else [f"{number}.{turn}.a", f"{number}.{turn}.b"]
        return said

    told = at_once(3, work)
    found = texts(dialog.reload())
    assert sorted(found) == sorted(["first", *(text for one in told for text in one)])
    for own in told:
        assert [text for text in found if text in own] == own
    whole(dialog)
