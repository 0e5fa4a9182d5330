"""Appending: from a message made of text to an acknowledged, durable entry."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import apsw

from bench.measure import Row, compared, in_turn, numbers, raw, text, timed
from palaver import Dialog, Session, UserMessage
from palaver.ids import DialogId
from palaver.log import Draft, MessageEntry, draft
from palaver.store import SqliteStore
from palaver.store.asynchronous import AsyncStore

SIZE = 2_000
ROUNDS = 600
DEPTHS = (0, 1_000, 10_000, 100_000)
CALLERS = 64
EACH = 30
_FILL = 2_000


def grown(store: SqliteStore, name: str, size: int) -> Dialog:
    """Make a dialog of so many messages."""
    dialog = Session.create(store, name).root
    while (missing := size - dialog.store.last(dialog.dialog_id).seq - 1) > 0:
        dialog.append([UserMessage.text(text(200, number)) for number in range(min(missing, _FILL))])
    return dialog


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time durable appends from a synchronous caller at several lengths of the log, against a raw insert of the same bytes."""
    rows: list[Row] = []
    for depth in DEPTHS:
        if quick and depth > 10_000:
            continue
        rows.extend(_at(folder, depth, ROUNDS // 10 if quick else ROUNDS))
    return rows


def _at(folder: Path, depth: int, rounds: int) -> list[Row]:
    with closing(SqliteStore(folder / f"ours-{depth}.db")) as store, closing(raw(folder / f"raw-{depth}.db")) as plain:
        dialog = grown(store, f"log of {depth}", depth)
        texts = [text(SIZE, seed) for seed in range(32)]
        bodies = [draft(MessageEntry(message=UserMessage.text(one)))[0].body for one in texts]
        ids = numbers(depth)
        ours, limit = in_turn(
            lambda number: dialog.put_text(texts[number % 32]),
            lambda number: plain.execute("INSERT INTO rows VALUES (?, ?)", (next(ids), bodies[number % 32])),
            rounds,
        )
        ready = [draft(MessageEntry(message=UserMessage.text(one)))[0] for one in texts]
        stored, again = in_turn(
            lambda number: store.append(dialog.dialog_id, [ready[number % 32]], store.last(dialog.dialog_id).turn_head),
            lambda number: plain.execute("INSERT INTO rows VALUES (?, ?)", (next(ids), bodies[number % 32])),
            rounds,
        )
    return [
        compared(f"put_text of 2 KB, log of {depth:,} messages", ours, limit, "≤ 1.3"),
        compared(f"store.append of a ready entry, log of {depth:,}", stored, again),
    ]


def run_async(folder: Path, *, quick: bool) -> list[Row]:
    """Time 64 asynchronous callers together, each on a session of its own, against one raw synchronous inserter."""
    each = EACH // 10 if quick else EACH
    body = draft(MessageEntry(message=UserMessage.text(text(SIZE, 1))))[0]
    ours: list[float] = []
    limit: list[float] = []
    for turn in range(3):
        with closing(SqliteStore(folder / f"async-{turn}.db")) as store:
            dialogs = [Session.create(store, f"caller {number}").root.dialog_id for number in range(CALLERS)]
            ours.append(asyncio.run(_together(store, dialogs, body, each)) / (CALLERS * each))
        with closing(raw(folder / f"raw-{turn}.db")) as plain:
            limit.append(timed(partial(_alone, plain, body.body, CALLERS * each)) / (CALLERS * each))
    return [compared(f"one durable append, {CALLERS} async callers together", median(ours), median(limit), "< 1")]


def _alone(plain: apsw.Connection, body: bytes, count: int) -> None:
    for number in range(count):
        plain.execute("INSERT INTO rows VALUES (?, ?)", (number, body))


async def _together(store: SqliteStore, dialogs: list[DialogId], ready: Draft, each: int) -> float:
    """Give how long all callers take together, in seconds."""
    async with AsyncStore(store) as together:

        async def caller(dialog_id: DialogId) -> None:
            head = -1
            for _ in range(each):
                (header,) = await together.append(dialog_id, [ready], head)
                head = header.turn_head

        start = time.perf_counter()
        await asyncio.gather(*(caller(dialog_id) for dialog_id in dialogs))
        return time.perf_counter() - start
