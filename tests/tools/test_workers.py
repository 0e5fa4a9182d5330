"""Threads beside the event loop, and the event loop of synchronous calls."""

import asyncio
import subprocess
import sys
import threading

import anyio
import pytest
from anyio import CapacityLimiter, to_thread

from palaver.testing.store_laws.backend import forked
from palaver.tools.portal import run_sync
from palaver.tools.workers import run_in_worker, worker_limiter

WAIT = 60


class Held:
    """Work that begins, stands still until it may go on, and then has written."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.done: list[str] = []

    def __call__(self) -> str:
        """Work."""
        self.begun.set()
        assert self.go_on.wait(WAIT)
        self.done.append("written")
        return "done"

    async def has_begun(self) -> None:
        """Wait until it has."""
        await to_thread.run_sync(self.begun.wait, limiter=CapacityLimiter(1))


def test_work_that_began_is_waited_for() -> None:
    """Cancelled by a scope and, again and again, by its task: what it writes is written when the waiter ends, and its place is free again."""
    work, scoped = Held(), Held()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_in_worker, scoped)
            await scoped.has_begun()
            tasks.cancel_scope.cancel()
            scoped.go_on.set()
        assert scoped.done == ["written"]
        task = asyncio.create_task(run_in_worker(work))
        await work.has_begun()
        for _ in range(3):
            task.cancel()
            await anyio.wait_all_tasks_blocked()
            assert not task.done()
            assert worker_limiter().borrowed_tokens == 1  # the thread works: its place is taken
        work.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.done == ["written"]
        assert worker_limiter().borrowed_tokens == 0

    anyio.run(main)


def test_work_cancelled_before_it_began_never_runs() -> None:
    """A task that is cancelled while every place is taken ends at once, and the free place goes to the next."""
    work, late, next_one = Held(), Held(), Held()
    next_one.go_on.set()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(worker_limiter().total_tokens)):
                tasks.start_soon(run_in_worker, work)
            await anyio.wait_all_tasks_blocked()
            task = asyncio.create_task(run_in_worker(late))
            tasks.start_soon(run_in_worker, next_one)
            await anyio.wait_all_tasks_blocked()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not next_one.begun.is_set()
            assert await to_thread.run_sync(lambda: "called") == "called"  # the program's own threads are free
            work.go_on.set()
        assert next_one.done
        assert not late.begun.is_set()

    anyio.run(main)


def test_nested_work_never_waits_for_a_place() -> None:
    """Work in every place at once that calls synchronously what needs a worker: the loop goes on."""

    async def main() -> None:
        all_there = threading.Barrier(int(worker_limiter().total_tokens))

        def work() -> None:
            all_there.wait(WAIT)
            assert run_sync(lambda: run_in_worker(threading.get_ident)) != threading.get_ident()

        async with anyio.create_task_group() as tasks:
            for _ in range(all_there.parties):
                tasks.start_soon(run_in_worker, work)

    run_sync(main)


# --- synchronous calls -------------------------------------------------------------------------------------------------


async def ident() -> int:
    """Return the thread of the loop."""
    return threading.get_ident()


def test_synchronous_calls_share_one_loop() -> None:
    """Whichever thread calls, and also inside a running loop (a notebook); what is raised is raised to the caller."""

    async def fail() -> None:
        raise StopIteration("mine")

    async def notebook() -> int:
        return run_sync(ident)

    first = run_sync(ident)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(run_sync(ident)))
    thread.start()
    thread.join(WAIT)
    assert first == found[0] == anyio.run(notebook) != threading.get_ident()
    with pytest.raises(RuntimeError, match="StopIteration"):
        run_sync(fail)


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    """Threads stay in the parent: a child that is forked off while every place is taken begins anew."""
    work = Held()

    def child() -> None:
        assert run_sync(lambda: run_in_worker(lambda: "worked")) == "worked"

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(worker_limiter().total_tokens)):
                tasks.start_soon(run_in_worker, work)
            await work.has_begun()
            assert forked(child) == 0
            work.go_on.set()

    run_sync(main)


INTERRUPTED = """
import os, signal, threading, time
from palaver.tools.portal import run_sync
async def blocked():
    for delay in (0.2, 0.4, 0.6):
        threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(60)
async def again():
    return "again"
try:
    run_sync(blocked)
except KeyboardInterrupt:
    print(run_sync(again), flush=True)
os._exit(0)
"""


def test_ctrl_c_ends_a_synchronous_call() -> None:
    """A call that blocks the loop is left behind at the third time, and the next has a new loop."""
    program = [sys.executable, "-c", INTERRUPTED]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=WAIT, check=False)
    assert (ended.stdout, ended.returncode) == ("again\n", 0), ended.stderr
