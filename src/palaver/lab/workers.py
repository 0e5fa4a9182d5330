"""Workers: tasks in processes of their own, each of which can be ended.

A policy is anybody's code: it can go on for ever, wait for ever, end its process or use up the memory. None of that can be stopped from within the
process that it happens in, so the parent watches: what a worker does has a time, and a worker that exceeds it, or that is gone, is ended for good
with all that it started, and another one takes its task up where it left off.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from time import monotonic, sleep
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from palaver.errors import PalaverError

__all__ = ["Began", "Crew", "Task", "worked"]

Began: TypeAlias = Callable[[Hashable | None], None]
"""What a task calls with a name of what it begins to do, from where on it has its time; with None where its time does not count."""

_TICK = 0.5
"""Seconds after which the caller is told that nothing has happened."""

_GRACE = 2.0
"""Seconds that a process has to be gone once its pipe is closed."""

_CONTEXT = multiprocessing.get_context(
    "spawn"
)  # a fork would take our caller's threads and locks over in whatever state they are


class Task(Protocol):
    """Something to do in a worker; it can be pickled."""

    def __call__(self, began: Began, /) -> Any:  # noqa: ANN401 - each kind of task has a result of its own
        """Do it, and give what came of it."""

    def after(self, doing: Hashable | None, why: str, /) -> Self:
        """Give the task that goes on where the worker was ended while it did this, for this reason."""


_Task = TypeVar("_Task", bound=Task)


class Crew(Generic[_Task]):
    """Does tasks of one kind, several at a time."""

    def __init__(
        self, jobs: int, limit: float | None, *, ready: Callable[[_Task], _Task], began: Began = lambda _: None
    ) -> None:
        """Name how many work, and how long one may be at a thing.

        Args:
            jobs: How many processes.
            limit: Seconds that something may take that a task says it begins to do; None for any time.
            ready: Gives a task as it is to be done now; called each time before one is handed to a worker.
            began: Told what a task says it begins to do.
        """
        self._jobs = max(jobs, 1)
        self._limit = limit
        self._ready = ready
        self._began = began
        self._workers: list[_Worker[_Task]] = []

    def results(self, tasks: Iterable[_Task]) -> Iterator[tuple[_Task, Any] | None]:
        """Do the tasks, and give each with what came of it, as they are done; None now and then.

        Raises:
            PalaverError: No process can be started; or what a task raised.
        """
        waiting = deque(tasks)
        try:
            while waiting or any(each.task is not None for each in self._workers):
                while waiting and (idle := self._idle()) is not None:
                    idle.take(self._ready(waiting.popleft()))
                yield from self._heard(waiting)
        finally:
            for each in self._workers:
                each.end()

    def _idle(self) -> _Worker[_Task] | None:
        """Give a worker that has nothing to do, a new one if there may be more; None if all are busy."""
        found = next((each for each in self._workers if each.task is None), None)
        if found is None and len(self._workers) < self._jobs:
            found = _Worker()
            self._workers.append(found)
        return found

    def _heard(self, waiting: deque[_Task]) -> Iterator[tuple[_Task, Any] | None]:
        """Hear what workers say, for a moment; what one was ended at is waiting again."""
        busy = {each.pipe: each for each in self._workers if each.task is not None}
        heard = wait(list(busy), timeout=_TICK) if busy else ()
        for pipe in heard:
            worker = busy[pipe]  # type: ignore[index]  # only pipes were waited for
            try:
                done = worker.heard()
            except (EOFError, ConnectionError):
                waiting.appendleft(self._gone(worker, worker.ended()))
                continue
            if done is not None:
                yield done
            else:
                self._began(worker.doing)
        for worker in tuple(self._workers):
            if self._limit is not None and worker.late(self._limit):
                waiting.appendleft(self._gone(worker, f"it did not come to its end in {self._limit:,g} seconds"))
        if not heard:
            yield None

    def _gone(self, worker: _Worker[_Task], why: str) -> _Task:
        """End a worker, and give what is left of its task."""
        worker.end()
        self._workers.remove(worker)
        if not worker.greeted:
            raise PalaverError(
                f"No process can be started to work in: {why}.",
                hint="A script of yours that runs the lab in several processes does so under: if __name__ == '__main__'.",
            )
        assert worker.task is not None  # noqa: S101 - only who has a task is heard
        return worker.task.after(worker.doing, why)


def worked(
    tasks: Sequence[_Task],
    jobs: int,
    limit: float | None,
    *,
    ready: Callable[[_Task], _Task] = lambda task: task,
    began: Began = lambda _: None,
) -> Iterator[tuple[_Task, Any] | None]:
    """Do tasks, by a crew where there is a bound to their time or several are to work, else in this process; as `Crew.results`."""
    if limit is None and (jobs <= 1 or len(tasks) <= 1):
        return ((task, task(began)) for task in tasks)
    return Crew(min(jobs, len(tasks)), limit, ready=ready, began=began).results(tasks)


class _Worker(Generic[_Task]):
    """A process, and what it does."""

    def __init__(self) -> None:
        self.task: _Task | None = None
        self.doing: Hashable | None = None
        self.greeted = False
        self._since = 0.0
        self.pipe, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def take(self, task: _Task) -> None:
        self.task, self.doing = task, None
        with suppress(BrokenPipeError):  # that it is gone is heard
            self.pipe.send(task)

    def heard(self) -> tuple[_Task, Any] | None:
        """Hear one thing; give the task with its result if it is done."""
        kind, said = self.pipe.recv()
        self.greeted = True
        if kind == "raised":
            raise said
        if kind == "done":
            assert self.task is not None  # noqa: S101 - nobody else says that something is done
            task, self.task, self.doing = self.task, None, None
            return task, said
        self.doing, self._since = said, monotonic()
        return None

    def late(self, limit: float) -> bool:
        return self.doing is not None and monotonic() - self._since > limit

    def ended(self) -> str:
        """Say how a process that is gone came to its end, or one that is not heard any more and is to be ended yet."""
        until = monotonic() + _GRACE
        while self._process.exitcode is None:  # `join` has no bound where the process closed what it is watched by
            if monotonic() > until:  # who closes files that are not his own closes ours
                return "it closed the pipe by which it is heard"
            sleep(_TICK / 50)
        code = self._process.exitcode or 0
        if code >= 0:
            return f"it ended its process, with code {code}"
        return f"its process was ended by {signal.Signals(-code).name}, perhaps for want of memory"

    def end(self) -> None:
        """End the process, with all that it started."""
        if hasattr(os, "killpg") and self.greeted and self._process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self.pipe.close()


# --- in the worker ------------------------------------------------------------------------------------------------------


def _work(pipe: Connection[Any, Any]) -> None:
    """Do tasks until there are no more, or nobody listens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our parent's to hear
    os.dup2(2, 1)  # what a policy prints is no part of our parent's answer, which may be JSON
    if hasattr(os, "setsid"):
        os.setsid()  # so that what a policy starts can be ended with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        pipe.send(("began", None))
        while True:
            pipe.send(_did(pipe.recv(), lambda doing: pipe.send(("began", doing))))


def _did(task: Task, began: Began) -> tuple[str, Any]:
    try:
        return "done", task(began)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the parent's, who raises it
        return "raised", _portable(error)


def _portable(error: Exception) -> Exception:
    """Give an error as it can be handed to another process."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception as why:  # noqa: BLE001 - an error of anybody's may raise anything when it is pickled
        return RuntimeError(f"{type(error).__name__}: {error} ({why})")
    return error


def _end_with_parent() -> None:
    """End this process when its parent is gone, whatever it is doing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        sys.stderr.flush()
        os._exit(1)
