"""Forking and opening: what must not depend on the length of the log."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import apsw

from bench.appends import grown
from bench.measure import Row, compared, in_turn, numbers, raw, text
from palaver import Agent, Prompt, ScriptedProvider, Session, UserMessage
from palaver.agent.turn import read_turn
from palaver.log import MessageEntry, Run, decode_entry, draft
from palaver.store import SqliteStore
from palaver.view import Drop, Plan, View, apply, checkpoint, fold, held

MESSAGES = 100_000
SHOWN = 50


def run_fork(folder: Path, *, quick: bool) -> list[Row]:
    """Time the fork of a long dialog against two raw inserts."""
    size = MESSAGES // 10 if quick else MESSAGES
    with closing(SqliteStore(folder / "ours.db")) as store, closing(raw(folder / "raw.db")) as plain:
        dialog = grown(store, "long", size)
        ids = numbers()
        body = b"x" * 300

        def two(_number: int) -> None:
            for _ in range(2):
                plain.execute("INSERT INTO rows VALUES (?, ?)", (next(ids), body))

        whole, limit = in_turn(lambda _number: dialog.fork(), two, 100)
        window, again = in_turn(lambda _number: dialog.fork(last_n=10, first_k=2), two, 100)
    return [
        compared(f"fork of {size:,} messages, against 2 raw inserts", whole, limit, "≤ 1"),
        compared(f"fork(last_n=10, first_k=2) of {size:,}", window, again, "≤ 1"),
    ]


def run_open(folder: Path, *, quick: bool) -> list[Row]:
    """Time opening a long session for a view of 50 messages, against open, read and decode of those rows; and its memory.

    A view reads bodies when they are first shown; `loaded` reads them all. The limits decode their rows into dictionaries, and into messages.
    """
    rows: list[Row] = []
    for size in (1_000, 10_000, MESSAGES):
        if quick and size == MESSAGES:
            continue
        path = folder / f"ours-{size}.db"
        session_id = _prepared(path, size)
        plain = folder / f"raw-{size}.db"
        _plain(plain, size)

        def opened(_number: int, path: Path = path, session_id: str = session_id) -> View:
            with closing(SqliteStore(path)) as store:
                return Session.open(store, session_id).root.view()

        def loaded(_number: int, path: Path = path, session_id: str = session_id) -> View:
            with closing(SqliteStore(path)) as store:
                view = Session.open(store, session_id).root.view()
                view.load()
                return view

        def dicts(_number: int, plain: Path = plain) -> list[object]:
            return [json.loads(body) for body in _read(plain, "rows")]

        def messages(_number: int, plain: Path = plain) -> list[object]:
            return [decode_entry(body) for body in _read(plain, "entries")]

        assert sum(len(exchange.turns) for exchange in loaded(0).exchanges) == SHOWN
        tracemalloc.start()
        loaded(0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        what = f"open {size:,} messages, view of {SHOWN}"
        rows += [
            compared(what, *in_turn(opened, dicts, 30), "≤ 2.5"),
            compared(f"{what}, all bodies read", *in_turn(loaded, dicts, 30)),
            compared(f"{what}, all bodies read; limit decodes into messages", *in_turn(loaded, messages, 30), "≤ 2.5"),
            Row(f"  its memory at the most, log of {size:,}", f"{peak / 1024:,.0f} KiB", "", "", "flat"),
        ]
    return rows


def _read(plain: Path, table: str) -> list[bytes]:
    with closing(apsw.Connection(str(plain))) as connection:
        query = f"SELECT body FROM {table} ORDER BY id DESC LIMIT ?"  # noqa: S608 - one of two
        return [body for (body,) in connection.execute(query, (SHOWN,))]


def run_take_up(folder: Path, *, quick: bool) -> list[Row]:
    """Time what an agent reads of a long log that it takes up, and a turn, against the same on a log of a thousand entries."""
    size = MESSAGES // 10 if quick else MESSAGES
    with ExitStack() as open_until_the_end:
        logs = []
        for length in (size, 1_000):
            path = folder / f"taken-{length}.db"
            session_id = _prepared(path, length)
            store = open_until_the_end.enter_context(closing(SqliteStore(path)))
            logs.append((store, session_id))

        def stands(number: int, which: int) -> object:
            del number
            store, session_id = logs[which]
            return read_turn(store, Session.open(store, session_id).root.dialog_id)

        def turn(number: int, which: int) -> object:
            store, session_id = logs[which]
            provider = ScriptedProvider([f"answer {number}"])
            agent = Agent("clerk", Prompt(path="clerk", prompt="You answer."), "gpt-4o-mini", provider, store=store)
            agent.resume(session_id)
            agent.receive(f"question {number}")
            return agent.respond()

        first = in_turn(partial(stands, which=0), partial(stands, which=1), 200)
        whole = in_turn(partial(turn, which=0), partial(turn, which=1), 40)
    what = f"{size:,} entries, view of {SHOWN}, against 1,000"
    return [
        compared(f"where a turn stands that nobody began, log of {what}", *first, "≤ 1.5"),
        compared(f"a turn of an agent that takes up a log of {what}", *whole, "≤ 1.5"),
    ]


def _prepared(path: Path, size: int) -> str:
    """Make a session of so many messages whose newest checkpoint leaves 50 in the view."""
    with closing(SqliteStore(path)) as store:
        dialog = grown(store, "long", size)
        view = fold(store, dialog.dialog_id)
        small = apply(
            view, Plan(policy="bench", drops=tuple(Drop(index=index) for index in range(len(view.exchanges) - SHOWN)))
        )
        spans = held(store, dialog.dialog_id, view.at)
        entry = checkpoint(small, spans, policy="bench", tokens_before=2, tokens_after=1)
        assert sum(isinstance(piece, Run) for piece in entry.pieces) == 1
        dialog.record(entry, beside=True)
        return dialog.session_id


def _plain(path: Path, size: int) -> None:
    """Put the same messages into two plain tables, as dictionaries and as entries, for the limits."""
    with closing(raw(path)) as connection, connection:
        connection.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, body BLOB)")
        for number in range(size):
            message = UserMessage.text(text(200, number % 2_000))
            body = json.dumps(message.to_dict()).encode()
            connection.execute("INSERT INTO rows VALUES (?, ?)", (number, body))
            entry = draft(MessageEntry(message=message))[0].body
            connection.execute("INSERT INTO entries VALUES (?, ?)", (number, entry))
