"""Work that takes long, in a process of its own: it reports how far it is, can be killed at any time, and ends with the server.

The process gets its job as a line of JSON and answers in lines of JSON. It ends when its standard input does: the kernel closes that however the
server ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from hashlib import sha256
from inspect import signature
from pathlib import Path
from secrets import token_hex
from subprocess import PIPE, Popen
from types import MappingProxyType
from typing import Any, TypeAlias

import anyio

from palaver.browsing.secrets import secrets
from palaver.context import POLICIES
from palaver.errors import InvalidInput, NotFound, PalaverError
from palaver.explorer.answers import proposal
from palaver.explorer.api import Source, as_data, as_json
from palaver.explorer.page import Chosen, page
from palaver.ids import DialogId
from palaver.log.redaction import PatternRedactor
from palaver.session import Session, searchable
from palaver.store import open_store
from palaver.tools.workers import hand_over, run_in_thread
from palaver.transcripts import redacted_copy, write_file

__all__ = ["JOBS", "Tell", "Work", "Works", "export", "index", "main", "vanishing_folder", "whatif"]

Tell: TypeAlias = Callable[[int, int | None, str], None]
"""Says how much is done, of how much, and what is at hand."""

_PROCESSES = 2
_REMEMBERED = 32
"""Works whose last line can still be read, and whose result is the answer to the same question."""

_STEP = 500
"""Entries that are indexed between two reports."""


# --- what can be done -----------------------------------------------------------------------------------------------------------------


def whatif(url: str, tell: Tell, *, dialog: str, call: int | None, policy: str, budget: int | None) -> Any:  # noqa: ANN401 - JSON values
    """Return what a policy would have made of a call, or would make of the next; nothing is written.

    Args:
        url: The store.
        tell: Is told how far it is.
        dialog: The dialog.
        call: The call's number; None for the next call.
        policy: The policy's name.
        budget: The tokens that a request may occupy; None for the policy's own budget.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget.
    """
    with closing(open_store(url, create=False, read_only=True)) as store:
        tell(0, 2, "reading the session")
        dialog_id = DialogId(dialog)
        found = Session.open(store, store.node(dialog_id).session_id).dialog(dialog_id)
        tell(1, 2, f"composing with {policy}")
        return proposal(found, call, policy, budget)


def index(url: str, tell: Tell) -> Any:  # noqa: ANN401 - a JSON value
    """Bring the search index up to date, and return how many entries were added."""
    with closing(open_store(url, create=False)) as store:
        lag, done = store.index_lag(), 0
        tell(0, lag, "indexing")
        while step := store.index(searchable, limit=_STEP):
            done += step
            tell(done, max(lag, done), "indexing")
        return {"indexed": done}


def export(url: str, tell: Tell, *, chosen: Sequence[Any], target: str | None) -> Any:  # noqa: ANN401 - JSON values
    """Write the page of a session, a call or a comparison without secrets; without a target only return which secrets it would leave out."""
    with closing(open_store(url, create=False, read_only=True)) as store:
        tell(0, 2, "looking for secrets")
        redactor, what = PatternRedactor(), Chosen(*chosen)
        hidden = list(secrets(store, what.session, redactor))
        if target is None:
            return {"secrets": hidden}
        tell(1, 2, "writing the file")
        shown = redacted_copy(store, what.session, redactor) if hidden else store
        return {"bytes": write_file(Path(target), page(shown, what))}


JOBS: Mapping[str, Callable[..., Any]] = MappingProxyType({"whatif": whatif, "index": index, "export": export})
"""What can be done, by name: a function of the store's address, of what is told, and of the words of the job."""

_WORDS = {name: signature(work).parameters.keys() - {"url", "tell"} for name, work in JOBS.items()}
_WORDS["export"] = {"session", "dialog", "call", "a", "b", "review"}
"""The words of each job."""


# --- the process ----------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Do the job that standard input names, in a process that does nothing else."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a policy prints is no answer
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()

    def write(row: Mapping[str, object]) -> None:
        out.write(as_json(row) + b"\n")
        out.flush()

    try:
        work = JOBS[job.pop("do")]
        url = job.pop("url")
        result = work(url, lambda done, of, what: write({"done": done, "of": of, "what": what}), **job)
        write({"result": result})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        if not isinstance(error, PalaverError):
            traceback.print_exc(file=sys.stderr)
        write(as_data(error))


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from palaver.explorer.work import main; main()"
"""With the paths of this process: `-m` would import from the working folder, which may be anybody's."""


# --- the server's side ----------------------------------------------------------------------------------------------------------------


class Work:
    """A job on its way.

    Attributes:
        job: The words of the job.
        last: The last line: how far it is, in the end its result or error.
        over: Whether no line will follow.
    """

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.job = job
        self.last = as_json({"done": 0, "of": None, "what": "waiting"})
        self.over = False
        self._scope = anyio.CancelScope()
        self._changed = anyio.Event()

    @property
    def answers(self) -> bool:
        """Whether the same question needs no further work: it is being done, or has a result that cannot change."""
        return not self.over or (self.job["do"] == "whatif" and self.last.startswith(b'{"result":'))

    def cancel(self) -> None:
        """Kill the process; what it wrote to the store is whole."""
        self._scope.cancel()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the last line whenever it changes, to the end."""
        shown = b""
        while True:
            changed = self._changed
            if self.last is not shown:
                shown = self.last
                yield shown + b"\n"
            if self.over and self.last is shown:
                return
            await changed.wait()

    async def run(self, url: str, places: anyio.CapacityLimiter) -> None:
        """Do the job when there is a place for a process."""
        said = "ended without an answer"
        try:
            with self._scope:
                async with places:
                    self._say(as_json({"done": 0, "of": None, "what": "starting"}))
                    await self._run(as_json({**self.job, "url": url}) + b"\n")
        except OSError as error:
            said = f"could not begin: {error.strerror}"
        finally:
            said = "was cancelled" if self._scope.cancel_called else said
            ended = {"error": {"kind": "Ended", "message": f"The work {said}.", "hint": "Start it again."}}
            self._say(as_json(ended) if self.last.startswith(b'{"done":') else self.last)
            self.over = True

    async def _run(self, job: bytes) -> None:
        process, say = _started(), hand_over(self._say)

        def read() -> None:
            with suppress(BrokenPipeError), process:  # a process that ended is told nothing
                assert process.stdin is not None  # noqa: S101 - both are pipes
                assert process.stdout is not None  # noqa: S101
                process.stdin.write(job)
                process.stdin.flush()
                for line in process.stdout:
                    say(line.rstrip(b"\n"))

        try:
            await run_in_thread(read)
        finally:
            process.kill()

    def _say(self, line: bytes) -> None:
        if not self.over:
            self.last, changed, self._changed = line, self._changed, anyio.Event()
            changed.set()


def _started() -> Popen[bytes]:
    """Start a process that waits for its job; no signal of the terminal reaches it."""
    command = [sys.executable, "-P", "-c", _PROGRAM, *map(str, sys.path)]
    return Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)  # noqa: S603 - our own program


class Works:
    """The work of one server, at most two processes at once."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._works: dict[str, Work] = {}
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._places = anyio.CapacityLimiter(_PROCESSES)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do work inside the block; at its end every process is killed."""
        with self._stack:
            async with anyio.create_task_group() as self._group:
                yield
                self._group.cancel_scope.cancel()

    def job(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """Return the job that a request asks for, with what its result depends on. Reads the store.

        Raises:
            InvalidInput: There is no such work, or a word of it is wrong.
            NotFound: There is no such dialog, entry or policy.
        """
        do = said.get("do")
        known = _WORDS.get(do) if isinstance(do, str) else None
        if known is None:
            raise InvalidInput(f"do is {do!r}.", hint=f"It is one of: {', '.join(JOBS)}.")
        if unknown := said.keys() - known - {"do"}:
            raise InvalidInput(f"The work {do} has no {', '.join(sorted(unknown))}.")
        if do == "index":
            return {"do": do}
        if do == "export":
            return {"do": do, **self._export(said)}
        dialog, policy = said.get("dialog"), said.get("policy")
        if not isinstance(dialog, str) or not isinstance(policy, str):
            raise InvalidInput("dialog and policy are words.")
        if policy not in POLICIES:
            raise NotFound(policy, what="policy", hint=f"Policies: {', '.join(POLICIES)}.")
        head = self._source.store.last(DialogId(dialog)).seq
        words = {"dialog": dialog, "call": _whole(said, "call"), "policy": policy, "budget": _whole(said, "budget")}
        return {"do": do, **words, "head": head}

    def _export(self, said: Mapping[str, Any]) -> dict[str, Any]:
        session, dialog = said.get("session"), said.get("dialog")
        if not isinstance(session, str) or not isinstance(dialog, str):
            raise InvalidInput("session and dialog are words.")
        if self._source.store.node(DialogId(dialog)).session_id != session:
            raise NotFound(dialog, what="dialog of this session")
        call, *two = (_whole(said, name) for name in ("call", "a", "b"))
        chosen = [session, dialog, call, two if all(two) else None]
        if said.get("review"):
            return {"chosen": chosen, "target": None}
        self._folder = self._folder or self._stack.enter_context(vanishing_folder())
        return {"chosen": chosen, "target": str(self._folder / f"{token_hex(16)}.html")}

    def written(self, name: str) -> Path:
        """Return the file that a work wrote.

        Raises:
            NotFound: It wrote none.
        """
        target = Path(self.find(name).job.get("target") or "")
        if not target.is_file():
            raise NotFound(name, what="file", hint="Export it again.")
        return target

    def start(self, job: Mapping[str, Any]) -> str:
        """Start a job, unless the same one is being done or has a result; return its id, which is that of the question."""
        name = sha256(as_json(job)).hexdigest()[:32]
        work = self._works.pop(name, None)
        if work is None or not work.answers:
            work = Work({word: value for word, value in job.items() if word != "head"})
            self._group.start_soon(work.run, self._source.url, self._places)
        self._works[name] = work  # the newest last
        over = [known for known, each in self._works.items() if each.over]
        for known in over[:-_REMEMBERED]:
            del self._works[known]
        return name

    def find(self, name: str) -> Work:
        """Return a work by its id.

        Raises:
            NotFound: It is not known any more.
        """
        if name not in self._works:
            raise NotFound(name, what="work", hint="Start it again.")
        return self._works[name]


def _whole(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    if value is not None and (type(value) is not int or not 0 <= value < 2**53):
        raise InvalidInput(f"{name} is {value!r}, not a whole number.")
    return value


# --- files that are not kept ---------------------------------------------------------------------------------------------------------


_KEEPER = """
import os, shutil, sys, time
sys.stdin.buffer.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.05)
"""


@contextmanager
def vanishing_folder() -> Iterator[Path]:
    """Yield a new folder that is deleted when the block or this process ends, however it ends.

    Another process deletes it when the pipe to this one closes, as the kernel does also for one that is killed.
    """
    folder = tempfile.mkdtemp(prefix="palaver-open-")
    command = [sys.executable, "-I", "-S", "-c", _KEEPER, folder]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
    ):
        yield Path(folder)
