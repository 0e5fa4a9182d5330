"""Running a function in a process of its own: one that hangs is killed, and one that dies takes nobody with it.

A thread cannot be stopped; a process can. The child is spawned, never forked (a fork copies locks that other threads hold), leads a process
group so that what it starts is killed with it, and ends by itself when this process does. Function and arguments cross by name and by value:
both must be importable from a module, and the module of a script is imported again, so that it needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import io
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import FunctionType
from typing import Any, ClassVar, TypeAlias

from palaver.messages import FunctionCall
from palaver.tools import words
from palaver.tools.binding import Implementation, check_importable
from palaver.tools.context import CallContext, Progress
from palaver.tools.replies import Reply, reply_of
from palaver.tools.threads import in_thread

__all__ = ["Job", "in_process"]

_KEPT_OUTPUT = 2_000
_READ = 65_536
_GRACE_SECONDS = 0.5  # for a child that has answered, to write out its files
_SPAWN = multiprocessing.get_context("spawn")

Listener: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What the child does: the call, and what makes a reply of its result."""

    name: str
    work: Callable[[], Any]
    seen: FunctionCall
    processor: Callable[[Any, FunctionCall], Any] | None
    max_bytes: int


async def in_process(job: Job, listener: Listener | None) -> tuple[bool, Reply]:
    """Do a job in a child process, and give whether the child lived to answer, and its reply.

    A cancelled waiter kills the child and what it started.
    """
    try:
        packed = _packed(job)
    except Exception as error:  # noqa: BLE001 - pickling runs code of the arguments' own
        return True, Reply(
            f"{job.name!r} was not run: its call cannot cross to another process. {words.raised(error)}", is_error=True
        )
    child = _Child(job.name, packed, listener)
    try:
        return await in_thread(child.run)
    finally:
        child.kill()


# --- what crosses ------------------------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Sends functions by where they stand, since a decorator put a tool in the place of the function itself."""

    def reducer_override(self, obj: Any) -> Any:  # noqa: ANN401 - any object
        if isinstance(obj, FunctionType) and obj not in {_imported, _context}:
            check_importable(obj)
            return _imported, (obj.__module__, obj.__qualname__)
        if isinstance(obj, CallContext):
            return _context, (obj.call_id, obj.tool)
        return NotImplemented


def _packed(job: Job) -> bytes:
    buffer = io.BytesIO()
    parts = (job.name, job.work, job.seen, job.processor, job.max_bytes)
    _Pickler(buffer).dump(parts)
    return buffer.getvalue()


def _imported(module: str, qualname: str) -> Implementation:
    found: Any = importlib.import_module(module)
    for step in qualname.split("."):
        found = inspect.getattr_static(found, step) if isinstance(found, type) else getattr(found, step)
    found = getattr(found, "__func__", found) if isinstance(found, staticmethod | classmethod) else found
    implementation: Implementation = getattr(found, "function", None) or found
    return implementation


def _context(call_id: str, tool: str) -> CallContext:
    """Give a function in the child a context whose progress goes to the parent."""
    return CallContext(call_id=call_id, tool=tool, on_progress=_Parent.told)


# --- this side ---------------------------------------------------------------------------------------------------------


class _Child:
    """One child process, from its start to its end. `run` blocks and belongs to one thread; `kill` may come from any."""

    def __init__(self, name: str, packed: bytes, listener: Listener | None) -> None:
        self._name = name
        self._packed = packed
        self._listener = listener
        self._unwanted = threading.Event()
        self._output: deque[bytes] = deque()
        self._pid: int | None = None
        self._lock = threading.Lock()

    def run(self) -> tuple[bool, Reply]:
        try:
            return self._run()
        except Exception as error:  # noqa: BLE001 - no process can be started, or the line to it broke: both are the call's result
            return False, Reply(f"{self._name!r} was not answered by its process. {words.raised(error)}", is_error=True)

    def _run(self) -> tuple[bool, Reply]:
        ours, theirs = _SPAWN.Pipe()
        heard, said = _SPAWN.Pipe(duplex=False)
        with ours, heard:
            with theirs, said:
                process = _SPAWN.Process(
                    target=_child, args=(theirs, said), daemon=True, name=f"palaver tool {self._name}"
                )
                process.start()
            with self._lock:
                self._pid = process.pid
            if self._unwanted.is_set():
                self.kill()
            try:
                answer = self._converse(process.sentinel, ours, heard)
            finally:
                self._end(process)
        return (True, answer) if answer else (False, Reply(self._obituary(process.exitcode), is_error=True))

    def _converse(self, sentinel: int, ours: Connection, heard: Connection) -> Reply | None:
        """Hand the job over, and listen until there is an answer or the child is dead; None for the latter."""
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.send_bytes(self._packed)
        open_lines: list[Any] = [ours, heard, sentinel]
        while True:
            ready = multiprocessing.connection.wait(open_lines)
            if heard in ready and not self._listen(heard):
                open_lines.remove(heard)
            if ours in ready:
                try:
                    said = ours.recv()
                except (EOFError, OSError):
                    return None
                if isinstance(said, Reply):
                    return said
                if self._listener is not None and isinstance(said, Progress):
                    self._listener(said)
            elif sentinel in ready and heard not in ready:
                return None

    def _listen(self, heard: Connection) -> bool:
        """Keep the end of what the child printed; False when there will be no more."""
        data = os.read(heard.fileno(), _READ)
        self._output.append(data[-_KEPT_OUTPUT:])
        while len(self._output) > 1 and sum(map(len, self._output)) - len(self._output[0]) >= _KEPT_OUTPUT:
            self._output.popleft()
        return bool(data)

    def _end(self, process: Any) -> None:  # noqa: ANN401 - the class depends on the platform
        multiprocessing.connection.wait([process.sentinel], _GRACE_SECONDS)
        self.kill()
        with self._lock:  # after it was reaped, its number may be another's
            process.join()
            self._pid = None

    def kill(self) -> None:
        """Kill the child and what it started; nothing happens when it is dead."""
        self._unwanted.set()
        with self._lock:
            if self._pid is None:
                return
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, _KILL)
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._pid, _KILL)

    def _obituary(self, exit_code: int | None) -> str:
        """Say how the process ended, and what it said last."""
        if exit_code is not None and exit_code < 0:
            how = f"was ended by signal {_signal_name(-exit_code)}"
        else:
            how = f"ended with exit code {exit_code}"
        printed = b"".join(self._output)[-_KEPT_OUTPUT:].decode(errors="replace").strip()
        last = f"\nIt printed last:\n{printed}" if printed else ""
        return f"The process of {self._name!r} {how} before it answered. What it did until then is not known.{last}"


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


# --- the other side ----------------------------------------------------------------------------------------------------


class _Parent:
    """The line to the parent, in a child process."""

    line: ClassVar[Connection | None] = None
    lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def told(cls, said: Progress | Reply) -> None:
        if cls.line is not None:
            with cls.lock:
                cls.line.send(said)


def _child(line: Connection, output: Connection) -> None:
    """Do one job, and answer."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    output.close()
    packed = line.recv_bytes()
    _Parent.line = line
    threading.Thread(target=_end_with_parent, args=(line,), daemon=True).start()
    _Parent.told(_answer(packed))


def _end_with_parent(line: Connection) -> None:
    """Wait for the line to close, which it does when the parent is gone, however it went."""
    with suppress(EOFError, OSError):
        line.recv_bytes()
    if hasattr(os, "killpg"):
        os.killpg(0, _KILL)
    os._exit(1)


def _answer(packed: bytes) -> Reply:
    try:
        _name, work, seen, processor, max_bytes = pickle.loads(packed)  # noqa: S301 - the parent wrote it, a moment ago
        value = work()
        if inspect.isawaitable(value):
            value = asyncio.run(_wait(value))
        return reply_of(processor(value, seen) if processor else value, max_bytes)
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises, SystemExit too, is its result
        return Reply(words.raised(error), is_error=True)


async def _wait(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - whatever a tool returns
    return await value
