"""A turn's rounds: what each costs must be what is new in it, however long the conversation before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.measure import Row, microseconds, text, timed
from palaver import AssistantMessage, Dialog, Session, ToolCallContent, ToolMessage, ToolResultContent
from palaver.store import SqliteStore
from palaver.view import fold

DEPTHS = (0, 2_000, 20_000)
ROUNDS = 100


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time the view after each of 100 tool rounds on top of conversations of several lengths, beside a fold of the whole."""
    rows: list[Row] = []
    for depth in DEPTHS:
        if quick and depth > DEPTHS[1]:
            continue
        with closing(SqliteStore(folder / f"rounds-{depth}.db")) as store:
            dialog = Session.create(store, "rounds").root
            dialog.append([message for number in range(depth // 2) for message in _round(number)])
            rows.extend(_rounds(dialog, depth))
    return rows


def _rounds(dialog: Dialog, depth: int) -> Iterator[Row]:
    dialog.view()
    said: list[float] = []
    seen: list[float] = []
    for number in range(depth, depth + ROUNDS):
        call, answer = _round(number)
        said.append(timed(lambda call=call: dialog.append(call)))  # type: ignore[misc] # bound now
        seen.append(timed(dialog.view))
        said.append(timed(lambda answer=answer: dialog.append(answer)))  # type: ignore[misc] # bound now
        seen.append(timed(dialog.view))
    whole = median(timed(lambda: fold(dialog.store, dialog.dialog_id)) for _ in range(5))
    tenth = ROUNDS // 5
    first, last = median(seen[:tenth]), median(seen[-tenth:])
    yield Row(f"view in a tool round, on {depth:,} messages", microseconds(median(seen)), aim="flat")
    yield Row("  in the last rounds, against the first", microseconds(last), microseconds(first), f"{last / first:.2f}")
    yield Row("  a fold of the whole log, against it", microseconds(whole), microseconds(median(seen)))
    yield Row("  a durable append in the same round", microseconds(median(said)))


def _round(number: int) -> tuple[AssistantMessage, ToolMessage]:
    """Return a response that calls a tool, and the tool's answer of 1 KB."""
    call = f"call_{number}"
    asked = ToolCallContent(id=call, name="read", args={"path": f"src/{number}.py"})
    return (
        AssistantMessage(contents=(asked,), response_id=f"response-{number}"),
        ToolMessage.from_result(ToolResultContent(id=call, name="read", content=text(1_000, number % 64))),
    )
