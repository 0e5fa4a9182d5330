"""Work beside the event loop: bounded by the cores, its own affair, waited for once it was begun, and never begun when it was given up before."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio import CapacityLimiter, to_thread

from palaver.testing.forked import forked
from palaver.tools.aside import aside, places
from palaver.tools.portal import run_sync

WAIT = 60


class Held:
    """Work that begins, stands still until it may go on, and then has written."""

    def __init__(self) -> None:
        """Begin with nothing begun."""
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


async def by_scope(work: Held) -> None:
    """Cancel it as anyio does."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aside, work)
        await work.has_begun()
        tasks.cancel_scope.cancel()
        assert not work.done
        work.go_on.set()


async def by_cancel(work: Held) -> None:
    """Cancel the task itself, again and again."""
    task = asyncio.create_task(aside(work))
    await work.has_begun()
    for _ in range(3):
        task.cancel()
        await anyio.wait_all_tasks_blocked()
        assert not task.done()
        assert places().borrowed_tokens == 1  # the thread works: its place is taken
    await go_on_later(work)
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_timeout(work: Held) -> None:
    """Let the time of asyncio run out: an error for the waiter, and no cancellation is left over."""

    async def too_long() -> None:
        async with asyncio.timeout(None) as until:
            task.append(until)
            await aside(work)

    task: list[asyncio.Timeout] = []
    waiting = asyncio.create_task(too_long())
    await work.has_begun()
    task[0].reschedule(asyncio.get_running_loop().time())
    await go_on_later(work)
    with pytest.raises(TimeoutError):
        await waiting
    assert waiting.cancelling() == 0


async def by_wait_for(work: Held) -> None:
    """Cancel what waits for it with `wait_for`."""
    task = asyncio.create_task(asyncio.wait_for(aside(work), WAIT))
    await work.has_begun()
    task.cancel()
    await go_on_later(work)
    with pytest.raises(asyncio.CancelledError):
        await task


async def go_on_later(work: Held) -> None:
    """Let it go on when the cancellation has come as far as it comes."""
    await anyio.wait_all_tasks_blocked()
    assert not work.done
    work.go_on.set()


@pytest.mark.parametrize("cancelled", [by_scope, by_cancel, by_timeout, by_wait_for])
def test_what_was_begun_is_waited_for_however_the_waiter_is_cancelled(
    cancelled: Callable[[Held], Awaitable[None]],
) -> None:
    """Nothing goes on behind the waiter's back: what it writes is written when the cancellation comes out, and its place is free again."""
    work = Held()

    async def main() -> None:
        await cancelled(work)
        assert work.done == ["written"]
        assert places().borrowed_tokens == 0

    anyio.run(main)


def test_work_that_was_not_begun_when_it_was_given_up_is_never_begun() -> None:
    """A task that is cancelled while every place is taken ends at once, and the place that comes free goes to the next."""
    work, late, next_one = Held(), Held(), Held()
    next_one.go_on.set()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(places().total_tokens)):
                tasks.start_soon(aside, work)
            await anyio.wait_all_tasks_blocked()
            task = asyncio.create_task(aside(late))
            tasks.start_soon(aside, next_one)
            await anyio.wait_all_tasks_blocked()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not next_one.begun.is_set()
            work.go_on.set()
        assert next_one.done
        assert not late.begun.is_set()

    anyio.run(main)


def test_no_more_is_done_at_once_than_there_are_places() -> None:
    """A thread a core and a few that wait: twice as many works at once take turns."""
    most = 0
    working = 0
    lock = threading.Lock()

    def work(all_there: threading.Barrier) -> None:
        nonlocal most, working
        with lock:
            working += 1
            most = max(most, working)
        all_there.wait(WAIT)  # so many are at work at once …
        with lock:
            working -= 1

    async def main() -> int:
        bound = int(places().total_tokens)
        barrier = threading.Barrier(bound)
        async with anyio.create_task_group() as tasks:
            for _ in range(2 * bound):
                tasks.start_soon(aside, lambda: work(barrier))
        return bound

    assert most == anyio.run(main)  # … and never more


def test_the_programs_own_threads_and_the_plans_do_not_wait_for_each_other() -> None:
    """Blocking calls in all of anyio's threads stop no plan; plans in all their places stop no blocking call."""
    theirs, ours = Held(), Held()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(to_thread.current_default_thread_limiter().total_tokens)):
                tasks.start_soon(to_thread.run_sync, theirs)
            await theirs.has_begun()
            assert await aside(lambda: "planned") == "planned"
            theirs.go_on.set()
        async with anyio.create_task_group() as tasks:
            for _ in range(int(places().total_tokens)):
                tasks.start_soon(aside, ours)
            await ours.has_begun()
            assert await to_thread.run_sync(lambda: "called") == "called"
            ours.go_on.set()

    anyio.run(main)


def test_a_cancelled_waiter_needs_none_of_the_programs_threads() -> None:
    """Also when every one of anyio's threads is taken, it ends with the work that it waits for."""
    theirs, work = Held(), Held()

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(to_thread.current_default_thread_limiter().total_tokens)):
                tasks.start_soon(to_thread.run_sync, theirs)
            await by_cancel(work)
            assert work.done
            theirs.go_on.set()

    anyio.run(main)


def test_work_that_waits_for_work_in_the_same_loop_never_waits_for_a_place() -> None:
    """A policy that asks an agent of its own, synchronously, in every place at once: the loop of synchronous calls goes on."""

    async def main() -> None:
        all_there = threading.Barrier(int(places().total_tokens))

        def work() -> None:
            all_there.wait(WAIT)
            assert run_sync(lambda: aside(threading.get_ident)) != threading.get_ident()

        async with anyio.create_task_group() as tasks:
            for _ in range(all_there.parties):
                tasks.start_soon(aside, work)

    run_sync(main)


def test_each_loop_has_places_of_its_own() -> None:
    """What bounds it belongs to one loop, as anyio's limiters do; a loop keeps it."""

    async def main() -> tuple[object, object]:
        return places(), places()

    (first, again), (other, _) = anyio.run(main), anyio.run(main)
    assert first is again
    assert first is not other


@pytest.mark.parametrize(
    "fault", [StopIteration("x"), StopAsyncIteration("x"), ValueError("x"), SystemExit(3), asyncio.CancelledError("x")]
)
def test_what_it_raises_is_raised_where_it_is_waited_for(fault: BaseException) -> None:
    """An error of any kind: also what no future of a loop takes, on which the waiter would wait for ever, and no coroutine lets out as it is."""

    def work() -> None:
        raise fault

    async def main() -> None:
        with pytest.raises((type(fault), RuntimeError)) as raised:
            await aside(work)
        assert fault in {raised.value, raised.value.__cause__}

    anyio.run(main)


def test_where_no_thread_can_be_had_that_is_said_and_nothing_is_taken() -> None:
    """The error itself, not one of a group; the place is free, and the next work is done."""

    async def main() -> None:
        before = threading.stack_size(1 << 46)  # more than there is
        try:
            with pytest.raises(RuntimeError, match="new thread"):
                await aside(lambda: "worked")
        finally:
            threading.stack_size(before)
        assert places().borrowed_tokens == 0
        assert await aside(lambda: "worked") == "worked"

    anyio.run(main)


def test_the_variables_of_the_context_are_seen_and_nothing_of_them_comes_back() -> None:
    """A tracer's span is the current one beside the loop, too; what is set there stays there."""
    variable = contextvars.ContextVar("variable", default="none")

    def work() -> str:
        seen = variable.get()
        variable.set("inner")
        return seen

    async def main() -> None:
        variable.set("outer")
        assert await aside(work) == "outer"
        assert variable.get() == "outer"

    anyio.run(main)


def test_a_forked_child_works_beside_a_loop_of_its_own() -> None:
    """Threads stay in the parent: a child that is forked off while every place is taken begins anew."""
    work = Held()

    def child() -> None:
        assert run_sync(lambda: aside(lambda: "worked")) == "worked"

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(int(places().total_tokens)):
                tasks.start_soon(aside, work)
            await work.has_begun()
            assert forked(child) == 0
            work.go_on.set()

    anyio.run(main)


def test_a_loop_that_is_closed_while_a_thread_works_leaves_a_process_that_ends() -> None:
    """What was begun comes to its end, nobody is told, and the interpreter does not wait for a thread that nobody stops."""
    program = """
import asyncio, threading
from palaver.tools.aside import aside
begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
def work():
    begun.set()
    go_on.wait(60)
    done.set()
async def main():
    task = asyncio.ensure_future(aside(work))
    while not begun.is_set():
        await asyncio.sleep(0)
    return task
loop = asyncio.new_event_loop()
task = loop.run_until_complete(main())
loop.close()
go_on.set()
assert done.wait(60)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT, check=False)
    assert ended.returncode == 0, ended.stderr
