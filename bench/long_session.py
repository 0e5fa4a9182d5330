"""One long session: its first view under a policy, the next one, recorded calls rebuilt, a search; and `fit` over a long list.

Each limit is what no implementation can do without: reading the headers with plain apsw, scanning the bodies for a word, or counting the tokens once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import apsw

from bench.measure import Row, compared, text, timed
from palaver import AssistantMessage, Message, Session, ToolMessage, UserMessage, fit
from palaver.context import Meter
from palaver.ids import DialogId
from palaver.messages import ToolCallContent, ToolResultContent
from palaver.session.differences import compare
from palaver.store import SqliteStore
from palaver.tokens import counter
from palaver.view import fold_messages

_ROUNDS = 10_000
"""Rounds of a call, its output and a message of the user: 30,000 entries."""

_OUTPUT = 10_000
"""Characters of an output: 100 MB in all."""

_LISTED, _LISTED_OUTPUT = 333, 3_600
"""Rounds of the list for `fit`, and characters of their outputs: 1,000 messages, some 300,000 tokens."""

_BUDGET, _MODEL = 100_000, "gpt-4o"
_BATCH = 250
_REPEATED = 7


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Make the session, then time each kind of work on it."""
    rounds = _ROUNDS // 10 if quick else _ROUNDS
    path = folder / "long.db"
    with closing(SqliteStore(path)) as store:
        root = Session.create(store, "long").root
        for start in range(0, rounds, _BATCH):
            root.append([each for at in range(start, min(start + _BATCH, rounds)) for each in _round(at, _OUTPUT)])
    what = f"{rounds * 3:,} entries, {path.stat().st_size >> 20:,} MB"
    return [*_views(path, what), *_calls(path, what), *_search(path, what, rounds), *_fits()]


def _round(number: int, size: int) -> list[Message]:
    call = ToolCallContent(id=f"c{number}", name="read", args={"path": f"src/part_{number}.py"})
    output = ToolResultContent(
        id=f"c{number}", name="read", content=f"part {number} zebra{number}\n{text(size, number % 64)}"
    )
    return [AssistantMessage(contents=(call,)), ToolMessage.from_result(output), UserMessage(f"Go on with {number}.")]


def _views(path: Path, what: str) -> Iterator[Row]:
    """Time the first view of a process that just opened the store, and the view after ten more messages."""
    first, headers = [], []
    for _ in range(_REPEATED):
        with closing(SqliteStore(path)) as store:
            dialog = Session.open(store, "long").root
            first.append(timed(lambda: dialog.view("palaver", _BUDGET, model=_MODEL).load()))  # noqa: B023 - called now
        headers.append(timed(partial(_headers, path)))
    yield compared(
        f"first view('palaver', {_BUDGET:,}), {what}; its headers read", median(first), median(headers), "≤ 0.5 s"
    )
    with closing(SqliteStore(path)) as store:
        dialog = Session.open(store, "long").root
        dialog.view("palaver", _BUDGET, model=_MODEL)
        later, again = [], []
        for number in range(_REPEATED):
            dialog.append([each for at in range(3) for each in _round(10**6 + 3 * number + at, 200)])
            dialog.append(UserMessage("And now?"))
            later.append(timed(lambda: dialog.view("palaver", _BUDGET, model=_MODEL).load()))
            again.append(timed(lambda: dialog.view("palaver", _BUDGET, model=_MODEL).load()))
    yield compared("  after ten more messages; with none", median(later), median(again), "≤ 20 ms")


def _headers(path: Path) -> int:
    """Read all header rows with plain apsw."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return sum(1 for _ in connection.execute("SELECT * FROM headers"))


def _calls(path: Path, what: str) -> Iterator[Row]:
    """Time a recorded call rebuilt, and two compared, by processes that just opened the store."""
    with closing(SqliteStore(path)) as store:
        dialog = Session.open(store, "long").root
        for number in range(2):
            dialog.append(UserMessage(f"Call {number}."))
            dialog.calls.record(dialog.request("openai-chat", _MODEL, policy="palaver", budget=_BUDGET))
            dialog.append(AssistantMessage("Done."))
    view, request, both = [], [], []
    for _ in range(_REPEATED):
        with closing(SqliteStore(path)) as store:
            calls = Session.open(store, "long").root.calls
            view.append(timed(lambda: calls[-1].view().load()))  # noqa: B023 - called now
            request.append(timed(lambda: calls[-1].request().digest))  # noqa: B023
        with closing(SqliteStore(path)) as store:
            calls = Session.open(store, "long").root.calls
            both.append(timed(lambda: compare(calls[-2], calls[-1])))  # noqa: B023
    yield compared(
        f"exact view of a recorded call, {what}; its request after it", median(view), median(request), "≤ 0.5 s"
    )
    yield compared("  two recorded calls compared; one rebuilt", median(both), median(view), "≤ 1 s")


def _search(path: Path, what: str, rounds: int) -> Iterator[Row]:
    """Time a search for a rare and for a common word, against a scan of the bodies for the rare one."""
    with closing(SqliteStore(path)) as store:
        session = Session.open(store, "long")
        assert session.search("zebra1")  # what is new is indexed by the first search
        rare = [timed(partial(session.search, f"zebra{rounds - 7 * number - 1}")) for number in range(_REPEATED)]
        common = [timed(partial(session.search, "dialog")) for _ in range(_REPEATED)]
    scan = timed(partial(_scanned, path, b"zebra7"))
    yield compared(f"search inside {what}; its bodies scanned", median(rare), scan, "≤ 30 ms")
    yield compared("  a word that stands everywhere", median(common), scan, "≤ 30 ms")


def _scanned(path: Path, word: bytes) -> int:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return sum(word in bytes(body) for (body,) in connection.execute("SELECT body FROM bodies"))


def _fits() -> Iterator[Row]:
    """Time `fit` of a list, against counting its tokens once."""
    listed = [UserMessage("Read all parts."), *(each for at in range(_LISTED) for each in _round(at, _LISTED_OUTPUT))]
    items = [message.to_api_dict() for message in listed]
    whole, fitted = [], []
    for _ in range(_REPEATED):
        whole.append(timed(lambda: Meter(counter(_MODEL)).view(fold_messages(listed, DialogId("0" * 32)))))
        fitted.append(timed(lambda: fit(items, model=_MODEL, budget=_BUDGET)))
    tokens = Meter(counter(_MODEL)).view(fold_messages(listed, DialogId("0" * 32))).total
    yield compared(
        f"fit of {len(listed):,} messages, {tokens:,} tokens; counted once", median(fitted), median(whole), "≤ 0.3 s"
    )
