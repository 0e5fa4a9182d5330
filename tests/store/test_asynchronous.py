"""The store for asyncio: outcomes of one's own, one flush for many, and cancellation that leaves nothing unsettled."""

import asyncio
import os
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from palaver.errors import Conflict, IllegalEntry, StoreClosed, StoreFull, UnknownSession
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import Draft, Header, Node
from palaver.store import MemoryStore, SessionRecord, SourceRecord, SqliteStore, Store
from palaver.store.asynchronous import AsyncStore
from palaver.store.sqlite.connections import reading
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import ILLEGAL, label, words

CALLERS = 64


class GatedStore(SqliteStore):
    """A store whose appends wait at a gate: what happens while a write is under way can then be arranged."""

    def __init__(self, path: Path) -> None:
        """Open it with the gate open."""
        super().__init__(path)
        self.gate = Event()
        self.gate.set()
        self.reached = Event()
        self.blocks = 0

    def append(self, dialog_id: DialogId, drafts: Any, turn_head: int) -> tuple[Header, ...]:  # noqa: ANN401 - as inherited
        """Wait at the gate, then append."""
        self.reached.set()
        self.gate.wait()
        return super().append(dialog_id, drafts, turn_head)

    def together(self) -> Any:  # noqa: ANN401 - as inherited
        """Count the blocks."""
        self.blocks += 1
        return super().together()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GatedStore]:
    """Give a store with a gate."""
    store = GatedStore(tmp_path / "store.db")
    yield store
    store.gate.set()
    store.close()


def run(store: Store, work: Callable[[AsyncStore], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401 - what the work gives
    """Run some work with an asynchronous face of the store."""

    async def main() -> Any:  # noqa: ANN401 - what the work gives
        async with AsyncStore(store) as face:
            return await work(face)

    return asyncio.run(main())


def said(store: Store, dialog: DialogId) -> list[bytes]:
    """Give the bodies of a dialog."""
    return [body for _seq, body in store.bodies(dialog)]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_write_has_its_face(tmp_path: Path, kind: str) -> None:
    """Each write of the store can be awaited, and gives and raises what the store gives and raises."""
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "s.db")
    session, dialog = new_session_id(), new_dialog_id()

    async def work(face: AsyncStore) -> None:
        await face.create_session(SessionRecord(session_id=session))
        assert (await face.create_dialog(Node(dialog_id=dialog, session_id=session))).order == 0
        assert (await face.append(dialog, [words(b"a")], -1))[0] == store.last(dialog)
        assert (await face.annotate(dialog, label())).seq == 1
        assert (await face.update_session(session, name="n")).name == "n"
        assert store.blob(await face.put_blob(b"x")) == b"x"
        await face.put_source(SourceRecord(identity="i", session_id=session, format="f"))
        with pytest.raises(Conflict):
            await face.append(dialog, [words()], 7)
        with pytest.raises(UnknownSession):
            await face.update_session(SessionId("f" * 32), name="n")

    run(store, work)
    assert store.source("i") is not None
    store.close()


def test_many_callers_share_a_flush(store: GatedStore) -> None:
    """Writes that wait while another is written go together, and every caller gets the header of his own entry."""
    dialogs = [begin(store).dialog for _ in range(CALLERS)]

    async def work(face: AsyncStore) -> None:
        store.gate.clear()
        first = asyncio.create_task(face.append(dialogs[0], [words(b"first")], -1))
        await asyncio.to_thread(store.reached.wait)
        rest = [asyncio.create_task(face.append(dialog, [words(dialog.encode())], -1)) for dialog in dialogs[1:]]
        await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(first, *rest)
        assert [task.result()[0].digest for task in rest] == [store.last(dialog).digest for dialog in dialogs[1:]]

    run(store, work)
    assert store.blocks == 1
    assert [said(store, dialog) for dialog in dialogs[1:]] == [[dialog.encode()] for dialog in dialogs[1:]]


def test_the_failure_of_one_is_his_alone(store: GatedStore) -> None:
    """A conflict and an illegal entry among others in the same flush are told to who made them; the others are written."""
    begun = begin(store)
    others = [begin(store).dialog for _ in range(5)]

    async def work(face: AsyncStore) -> list[Any]:
        store.gate.clear()
        writes = [face.append(begun.dialog, [words(b"wins")], -1), face.append(begun.dialog, [words(b"loses")], -1)]
        writes += [
            face.append(begun.dialog, [words(b"x"), ILLEGAL], 0),
            *(face.append(o, [words(b"o")], -1) for o in others),
        ]
        tasks = [asyncio.create_task(write) for write in writes]
        await asyncio.sleep(0)
        store.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    outcomes = run(store, work)
    assert [type(outcome) for outcome in outcomes[1:3]] == [Conflict, IllegalEntry]
    assert said(store, begun.dialog) == [b"wins"]
    assert [said(store, dialog) for dialog in others] == [[b"o"]] * 5


def test_what_does_not_fit_spoils_nothing_else(store: GatedStore) -> None:
    """On a full disk the flush falls apart into single writes: only what does not fit fails."""
    dialogs = [begin(store).dialog for _ in range(4)]
    with reading(store._pool) as connection:
        connection.pragma("max_page_count", int(str(connection.pragma("page_count"))) + 14)

    async def work(face: AsyncStore) -> list[Any]:
        bodies = (b"a", b"x" * 200_000, b"c", b"d")
        writes = (face.append(dialog, [words(body)], -1) for dialog, body in zip(dialogs, bodies, strict=True))
        return await asyncio.gather(*writes, return_exceptions=True)

    outcomes = run(store, work)
    assert [isinstance(outcome, StoreFull) for outcome in outcomes] == [False, True, False, False]
    assert [said(store, dialog) for dialog in dialogs] == [[b"a"], [], [b"c"], [b"d"]]


def test_who_is_cancelled_before_his_write_began_has_written_nothing(store: GatedStore) -> None:
    """A write that still waits is taken back, at once."""
    begun, other = begin(store), begin(store)

    async def work(face: AsyncStore) -> None:
        store.gate.clear()
        under_way = asyncio.create_task(face.append(begun.dialog, [words(b"a")], -1))
        await asyncio.to_thread(store.reached.wait)
        waiting = asyncio.create_task(face.append(other.dialog, [words(b"b")], -1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        store.gate.set()
        await under_way

    run(store, work)
    assert said(store, begun.dialog) == [b"a"]
    assert said(store, other.dialog) == []


def test_who_is_cancelled_during_his_write_learns_of_it_when_it_has_ended(store: GatedStore) -> None:
    """After the cancellation is raised nothing is written any more: the entry is there by then, however often he is cancelled."""
    begun = begin(store)
    there: list[bool] = []

    async def caller(face: AsyncStore) -> None:
        try:
            await face.append(begun.dialog, [words(b"a")], -1)
        except asyncio.CancelledError:
            there.append(said(store, begun.dialog) == [b"a"])
            raise

    async def work(face: AsyncStore) -> None:
        store.gate.clear()
        task = asyncio.create_task(caller(face))
        await asyncio.to_thread(store.reached.wait)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        store.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(store, work)
    assert there == [True]


def test_closing_waits_for_what_was_submitted(store: GatedStore) -> None:
    """What was submitted before the end is written; what comes afterwards is refused; the store itself stays open."""
    dialogs = [begin(store).dialog for _ in range(10)]

    async def main() -> None:
        face = AsyncStore(store)
        tasks = [asyncio.create_task(face.append(dialog, [words(b"a")], -1)) for dialog in dialogs]
        await asyncio.sleep(0)
        await face.aclose()
        await asyncio.gather(*tasks)
        with pytest.raises(StoreClosed):
            await face.append(dialogs[0], [words(b"b")], 0)
        await face.aclose()

    asyncio.run(main())
    assert [said(store, dialog) for dialog in dialogs] == [[b"a"]] * 10
    assert Begun(store, SessionId(""), dialogs[0]).say(b"sync")[0].seq == 1


def test_a_closed_store_is_told_to_everyone(store: GatedStore) -> None:
    """When the store itself was closed, each caller hears that."""
    begun = begin(store)

    async def work(face: AsyncStore) -> None:
        store.close()
        writes = (face.append(begun.dialog, [words()], -1) for _ in range(3))
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreClosed] * 3

    run(store, work)


def test_one_face_serves_several_loops(store: GatedStore) -> None:
    """Loops of several threads may share a face; each is woken for its own writes."""
    begun = begin(store)
    face = AsyncStore(store)
    dialogs = [begun.fork() for _ in range(4)]
    lock, heads = Lock(), list[int]()

    def loop(dialog: DialogId) -> None:
        async def work() -> None:
            head = -1
            for _ in range(5):
                head = (await face.append(dialog, [words()], head))[0].seq
            with lock:
                heads.append(head)

        asyncio.run(work())

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(loop, dialog) for dialog in dialogs))
        await face.aclose()

    asyncio.run(main())
    assert heads == [4] * 4


def test_a_loop_that_went_away_does_not_stop_the_others(store: GatedStore) -> None:
    """A caller whose loop was closed in the middle is not told any more; the writer goes on for the others."""
    begun = begin(store)
    face = AsyncStore(store)
    store.gate.clear()

    async def leave() -> None:
        task = asyncio.create_task(face.append(begun.dialog, [words(b"left")], -1))
        await asyncio.to_thread(store.reached.wait)
        loop = asyncio.get_running_loop()
        task.cancel()
        loop.call_soon(loop.stop)

    loop = asyncio.new_event_loop()
    with pytest.raises(RuntimeError, match="stopped before"):
        loop.run_until_complete(asyncio.wait_for(_forever(leave), None))
    store.gate.set()

    async def stay() -> None:
        await face.append(begun.fork(), [words(b"stays")], -1)
        await face.aclose()

    asyncio.run(stay())
    assert said(store, begun.dialog) == [b"left"]
    _drain(loop)


async def _forever(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await work()
    await asyncio.Event().wait()


def _drain(loop: asyncio.AbstractEventLoop) -> None:
    """End the tasks of a loop that was stopped, so that nothing of it is left."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def test_a_forked_child_writes_with_a_thread_of_its_own(tmp_path: Path) -> None:
    """The writer thread stays in the parent; a child that goes on with the face gets one of its own, and repeats nothing."""
    store = SqliteStore(tmp_path / "store.db")
    begun = begin(store)
    face = AsyncStore(store)

    async def write(body: bytes) -> None:
        await face.append(begun.dialog, [words(body)], store.last(begun.dialog).turn_head)

    asyncio.run(write(b"parent"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, about just this: a fork beside a thread
        child = os.fork()
    if child == 0:
        try:
            asyncio.run(write(b"child"))
            asyncio.run(face.aclose())
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(write(b"parent again"))
    asyncio.run(face.aclose())
    assert said(store, begun.dialog) == [b"parent", b"child", b"parent again"]
    store.close()


def test_a_draft_may_be_any_sequence(store: GatedStore) -> None:
    """The drafts are taken when the write is submitted: changing the list afterwards changes nothing."""
    begun = begin(store)

    async def work(face: AsyncStore) -> None:
        drafts: list[Draft] = [words(b"a")]
        store.gate.clear()
        task = asyncio.create_task(face.append(begun.dialog, drafts, -1))
        await asyncio.to_thread(store.reached.wait)
        drafts.append(words(b"b"))
        store.gate.set()
        await task

    run(store, work)
    assert said(store, begun.dialog) == [b"a"]
