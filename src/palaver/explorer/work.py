"""Slow answers, each made in a process of its own: it delays no other answer, and ends when its reader leaves.

The process gets its question as a line of JSON on standard input and answers on standard output, which the server sends as it comes. It ends when
its standard input does: the kernel closes that however the server ends.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from io import BufferedReader
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any, cast, get_args

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from palaver.browsing.costs import By, report
from palaver.browsing.secrets import secrets
from palaver.browsing.sessions import Filters
from palaver.browsing.spent import CAUSES, Costs
from palaver.context import POLICIES
from palaver.errors import InvalidInput, NotFound, PalaverError
from palaver.explorer.answers import dialog_of, proposal
from palaver.explorer.api import LINES, Answer, Endpoint, Explored, as_data, as_json, number
from palaver.explorer.page import Chosen, page
from palaver.ids import SessionId
from palaver.log.redaction import PatternRedactor
from palaver.session import searchable
from palaver.store.connect import open_for_user
from palaver.tools.workers import run_in_thread
from palaver.transcripts import redacted_copy

_STEP = 500
"""Entries that are indexed between two reports."""

_TOLD = 20
"""Sessions that are added up between two reports."""

_ROWS = 500
"""Rows of costs that are answered, and calls that broke the cache."""

_PART = 1_000_000
"""Bytes that are read together, at most."""

_ERROR = b'{"error":'
"""How an error begins, and no page."""


# --- what can be done -----------------------------------------------------------------------------------------------------------------


def whatif(source: Explored, dialog: str, policy: str, call: str = "", budget: str = "") -> Iterator[Any]:
    """Yield how far it is, and what a policy would have made of a call, or without one would make of the next; nothing is written."""
    if policy not in POLICIES:
        raise NotFound(policy, what="policy", hint=f"Policies: {', '.join(POLICIES)}.")
    past, most = (number(word, name) if word else None for word, name in ((call, "call"), (budget, "budget")))
    yield {"done": 0, "of": 2, "what": "reading the session"}
    opened = dialog_of(source, dialog)
    yield {"done": 1, "of": 2, "what": f"composing with {policy}"}
    yield {"result": proposal(opened, past, policy, most)}


def costs(  # noqa: PLR0913, PLR0917 - the words of the address
    source: Explored,
    by: str = "day",
    since: str = "",
    until: str = "",
    tool: str = "",
    model: str = "",
    folder: str = "",
) -> Iterator[Any]:
    """Yield how far it is, and what sessions cost, as `palaver cost` says it; `by` may be several, with commas between them."""
    ways = tuple(dict.fromkeys(by.split(",")))
    if unknown := [way for way in ways if way not in get_args(By)]:
        raise InvalidInput(f"Costs are not added up by {unknown[0]!r}, only by {', '.join(get_args(By))}.")
    filters = Filters(since, until, tool, model, folder)
    records, known = list(source.store.sessions()), Costs(source.store)
    for done, record in enumerate(records):
        if done % _TOLD == 0:
            yield {"done": done, "of": len(records), "what": "adding up what sessions cost"}
        report(known, (record,), "day")
    made = {way: report(known, records, cast("By", way), filters) for way in ways}
    known.save(whole=True)
    one = made[ways[0]]
    rows = {way: each.rows[-_ROWS:] if way == "day" else each.rows[:_ROWS] for way, each in made.items()}
    counts = {"of": {way: len(each.rows) for way, each in made.items()}, "broken": len(one.breaks)}
    facts = {"total": one.total, "sessions": len(records), "unread": one.unread, "causes": CAUSES}
    yield {"result": {**facts, "rows": rows, "breaks": one.breaks[:_ROWS], **counts}}


def index(source: Explored) -> Iterator[Any]:
    """Bring the search index up to date; yield how many of how many entries were added."""
    with closing(open_for_user(source.url, create=False)) as store:
        lag, done = store.index_lag(), 0
        yield {"done": 0, "of": lag, "what": "indexing"}
        while step := store.index(searchable, limit=_STEP):
            done += step
            yield {"done": done, "of": max(lag, done), "what": "indexing"}
    yield {"result": {"indexed": done}}


def review(source: Explored, session: str) -> Iterator[Any]:
    """Yield the secrets that an export of a session leaves out."""
    yield from secrets(source.store, SessionId(session), PatternRedactor())


def export(source: Explored, session: str, dialog: str, call: str = "", a: str = "", b: str = "") -> Iterator[bytes]:
    """Yield the page of a session, a call or a comparison as one file, without secrets."""
    redactor, opened = PatternRedactor(), dialog_of(source, dialog)
    if opened.session_id != session:
        raise NotFound(dialog, what="dialog of this session")
    hidden = next(secrets(source.store, opened.session_id, redactor), None) is not None
    shown = redacted_copy(source.store, opened.session_id, redactor) if hidden else source.store
    shown_call = number(call, "call") if call else None
    two = (number(a, "a"), number(b, "b")) if a or b else None
    yield from page(shown, Chosen(opened.session_id, opened.dialog_id, shown_call, two))


WORK: tuple[Endpoint, ...] = (
    Endpoint("/api/dialogs/{dialog}/whatif", whatif),
    Endpoint("/api/sessions/{session}/secrets", review),
    Endpoint("/api/sessions/{session}/export", export, file="session.html"),
    Endpoint("/api/costs", costs),
    Endpoint("/api/index", index, method="POST"),
)
"""All slow answers. Each function returns bytes or JSON values, one a line; the last may be a result or an error."""


# --- the process ----------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer the question that standard input asks, in a process that does nothing else."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a policy prints is not part of the answer
    asked = json.loads(sys.stdin.buffer.readline())
    Thread(target=_end_with_parent, daemon=True).start()
    function = next(route.function for route in WORK if route.function.__name__ == asked["do"])
    try:
        for value in _values(function, asked["url"], asked["words"]):
            out.write(value if isinstance(value, bytes) else as_json(value) + b"\n")
            out.flush()
    except BrokenPipeError:
        os._exit(1)  # nobody reads it any more


def _values(function: Callable[..., Answer], url: str, words: Mapping[str, str]) -> Iterator[Any]:
    """Yield what a function yields, and the error that ends it; a file has no place for one."""
    value: Any = None
    try:
        with closing(open_for_user(url, create=False, read_only=True)) as store:
            for value in function(Explored(store=store, url=url, name=""), **words):
                yield value
    except Exception as error:
        if isinstance(value, bytes):
            raise
        if not isinstance(error, PalaverError):
            traceback.print_exc(file=sys.stderr)
        yield as_data(error)


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from palaver.explorer.work import main; main()"
"""With the paths of this process: `-m` would import from the working folder, which may be anybody's."""


# --- the server's side ----------------------------------------------------------------------------------------------------------------


class Work(Response):
    """What a process answers, sent as it comes. When the client leaves, the process is killed; what it wrote to the store is whole."""

    def __init__(self, route: Endpoint, url: str, words: Mapping[str, str], places: anyio.CapacityLimiter) -> None:
        """Ask for work.

        Args:
            route: The work.
            url: The store.
            words: The words of the request.
            places: How many processes may run at once.
        """
        headers = {"Content-Disposition": f'attachment; filename="{route.file}"'} if route.file else {}
        super().__init__(headers=headers, media_type="text/html" if route.file else LINES)
        del self.headers["Content-Length"]  # nobody knows it yet
        self._question = as_json({"do": route.function.__name__, "url": url, "words": words}) + b"\n"
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_left, receive, group.cancel_scope)
            async with self._places:
                with _answering(self._question) as process:
                    await self._sent(process, scope, receive, send)
            group.cancel_scope.cancel()

    async def _sent(self, process: Popen[bytes], scope: Scope, receive: Receive, send: Send) -> None:
        assert isinstance(process.stdout, BufferedReader)  # noqa: S101 - a pipe
        more = partial(run_in_thread, partial(process.stdout.read1, _PART))
        part = await more()
        if part.startswith(_ERROR):
            while rest := await more():
                part += rest
            await Response(part, 400, media_type="application/json")(scope, receive, send)
            return
        if part or not await run_in_thread(process.wait):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        while part:
            await send({"type": "http.response.body", "body": part, "more_body": True})
            part = await more()
        if code := await run_in_thread(
            process.wait
        ):  # the response is cut off, so that nobody mistakes it for a whole one
            raise RuntimeError(f"{self._question.decode()} ended with exit code {code}.")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _cancel_when_left(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


@contextmanager
def _answering(question: bytes) -> Iterator[Popen[bytes]]:
    """Start a process that answers, and kill it at the end of the block; no signal of the terminal reaches it."""
    command = [sys.executable, "-P", "-c", _PROGRAM, *map(str, sys.path)]
    process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)  # noqa: S603 - our own program
    assert process.stdin is not None  # noqa: S101 - a pipe
    try:
        with suppress(BrokenPipeError):  # one that ended at once has an exit code
            process.stdin.write(question)
            process.stdin.flush()
        yield process
    finally:
        process.kill()
        Thread(target=process.__exit__, args=(None, None, None), daemon=True).start()  # it may have to wait for the end
