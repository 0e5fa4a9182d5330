"""Appending: from a message made of text to an acknowledged, durable entry."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from bench.measure import Row, compared, in_turn, numbers, raw, text
from palaver import Dialog, Session, UserMessage
from palaver.log import MessageEntry, draft
from palaver.store import KeyFolder, SqliteStore

SIZE = 2_000
ROUNDS = 600
DEPTHS = (0, 1_000, 10_000, 100_000)
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
    rows.append(_encrypted(folder, ROUNDS // 10 if quick else ROUNDS))
    return rows


def _encrypted(folder: Path, rounds: int) -> Row:
    """Time the appends of an encrypted store against those of a plain one."""
    keys = KeyFolder(folder / "keys", passphrase="bench")  # noqa: S106 - of keys that are thrown away
    with (
        closing(SqliteStore(folder / "encrypted.db", keys=keys)) as sealed,
        closing(SqliteStore(folder / "plain.db")) as plain,
    ):
        dialogs = [grown(store, "log", 0) for store in (sealed, plain)]
        texts = [text(SIZE, seed) for seed in range(32)]
        ours, limit = in_turn(partial(_put, dialogs[0], texts), partial(_put, dialogs[1], texts), rounds)
    return compared("put_text of 2 KB, encrypted, against a plain store", ours, limit, "≤ 1.3")


def _put(dialog: Dialog, texts: list[str], number: int) -> None:
    dialog.put_text(texts[number % 32])


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
        said = [UserMessage.text(one) for one in texts]
        messages, inserts = in_turn(
            lambda number: dialog.append(said[number % 32]),
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
        compared(f"append of a message of 2 KB, log of {depth:,}", messages, inserts),
        compared(f"store.append of a ready entry, log of {depth:,}", stored, again),
    ]
