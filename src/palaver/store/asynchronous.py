"""The store for callers that must not wait for a disk: one writer thread, and one flush for all that was written at the same time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, Self, TypeVar

from palaver.errors import StoreBusy, StoreClosed, StoreError, StoreReadOnly
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Draft, Header, Node
from palaver.store.blocks import require_no_block
from palaver.store.protocol import Durability, SessionRecord, SourceRecord, Store

MOST_TOGETHER = 256
"""The most writes that share one flush."""

T = TypeVar("T")


class _Job(Generic[T]):
    """One write of one caller. Who claims it first decides: the writer does it, or the caller takes it back."""

    __slots__ = ("_claim", "error", "future", "loop", "settled", "value", "waiter", "write")

    def __init__(self, write: Callable[[], T]) -> None:
        self.write = write
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.waiter: asyncio.Future[None] | None = None
        self.settled = False
        self.value: Any = None
        self.error: BaseException | None = None
        self._claim = Lock()

    def claim(self) -> bool:
        """Give True to the first who asks."""
        return self._claim.acquire(blocking=False)

    def run(self) -> None:
        """Write, and keep how it ended."""
        self.value = self.error = None
        try:
            self.value = self.write()
        except Exception as error:  # noqa: BLE001 - it is raised again where the caller waits
            self.error = error

    def settle(self) -> None:
        """Tell the caller, in the thread of its loop."""
        self.settled = True
        if self.waiter is not None:
            if not self.waiter.done():
                self.waiter.set_result(None)
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)

    async def settlement(self) -> None:
        """Wait until it is known how it ended, whatever else cancels the caller meanwhile."""
        while not self.settled:
            self.waiter = self.loop.create_future()
            with suppress(asyncio.CancelledError):
                await self.waiter


def _commit(store: Store, jobs: Sequence[_Job[Any]]) -> None:
    """Do all the writes as one durable step; when that is impossible, each one alone, so that one cannot spoil the others."""
    if len(jobs) == 1 or store.durability is Durability.MEMORY:
        return _each(jobs)
    try:
        with store.together():
            _each(jobs)
    except (StoreBusy, StoreClosed, StoreReadOnly) as error:
        for job in jobs:
            job.value, job.error = None, error
    except StoreError:
        _each(jobs)
    return None


def _each(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        job.run()


def _deliver(jobs: Sequence[_Job[Any]]) -> None:
    """Wake each loop once."""
    for loop in dict.fromkeys(job.loop for job in jobs):
        with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, [job for job in jobs if job.loop is loop])


def _settle(jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        job.settle()


def _work(store: Store, queue: SimpleQueue[_Job[Any] | None]) -> None:
    """Take what waits, write it, tell; until None comes."""
    going = True
    while going:
        batch = [queue.get()]
        with suppress(Empty):
            while len(batch) < MOST_TOGETHER:
                batch.append(queue.get_nowait())
        going = None not in batch
        jobs = [job for job in batch if job is not None and job.claim()]
        if jobs:
            try:
                _commit(store, jobs)
            except BaseException as error:  # noqa: BLE001 - a defect of ours: the callers see it, and the thread goes on
                for job in jobs:
                    job.value, job.error = None, error
            _deliver(jobs)


class AsyncStore:
    """The writes of a store, for asyncio: each awaits its own outcome, and those that wait together share one flush.

    Inside `with store.together()` none can be made: the writer thread would wait for the block, and the block for it.

    A write that returned is as durable as the store says. One that fails (a `Conflict`, say) fails alone. A caller that is cancelled before
    its write began has written nothing; one that is cancelled later learns of it when the write has ended: nothing is written after that.

    Reads take microseconds: call them on `store` itself.

    Attributes:
        store: The store that is written to; closing it is its owner's business.
    """

    def __init__(self, store: Store) -> None:
        """Wrap a store. The writer thread starts with the first write."""
        self.store = store
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._closed = False
        self._lock = Lock()

    async def _do(self, write: Callable[[], T]) -> T:
        require_no_block(self.store, "A write through an AsyncStore")
        job = _Job(write)
        self._submit(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if not job.claim():
                await job.settlement()
            raise

    def _submit(self, job: _Job[Any]) -> None:
        if self._process != os.getpid():  # the thread, and what waits for it, stayed in the parent
            self._begin()
        with self._lock:
            if self._closed:
                raise StoreClosed("This asynchronous store was closed.", hint="Make another one.")
            if self._thread is None:
                self._thread = Thread(target=_work, args=(self.store, self._queue), name="palaver-writer", daemon=True)
                self._thread.start()
            self._queue.put(job)

    async def aclose(self) -> None:
        """Wait for what was submitted, and end the thread; the store itself stays open."""
        with self._lock:
            thread, self._thread, self._closed = self._thread, None, True
            self._queue.put(None)
        if thread is not None:
            await asyncio.to_thread(thread.join)

    async def __aenter__(self) -> Self:
        """Give itself."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close."""
        await self.aclose()

    async def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries that belong to the turn (`Store.append`)."""
        return await self._do(partial(self.store.append, dialog_id, tuple(drafts), turn_head))

    async def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry that may arrive beside a turn (`Store.annotate`)."""
        return await self._do(partial(self.store.annotate, dialog_id, draft))

    async def create_session(self, record: SessionRecord) -> None:
        """Write a new session (`Store.create_session`)."""
        return await self._do(partial(self.store.create_session, record))

    async def update_session(self, session_id: SessionId, **changes: object) -> SessionRecord:
        """Change a session (`Store.update_session`)."""
        return await self._do(partial(self.store.update_session, session_id, **changes))

    async def create_dialog(self, node: Node) -> Node:
        """Write a dialog's node (`Store.create_dialog`)."""
        return await self._do(partial(self.store.create_dialog, node))

    async def put_blob(self, data: bytes) -> BlobId:
        """Store a payload (`Store.put_blob`)."""
        return await self._do(partial(self.store.put_blob, data))

    async def put_source(self, record: SourceRecord) -> None:
        """Write what is known of a foreign conversation (`Store.put_source`)."""
        return await self._do(partial(self.store.put_source, record))
