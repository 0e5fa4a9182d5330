"""palaver calls: the model calls of a dialog, and what two of them saw differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated

from typer import Argument, BadParameter

from palaver.browsing.calls import ModelCallRow, call_at, call_row, calls
from palaver.browsing.differences import CallsRow, calls_row
from palaver.cli.location import located
from palaver.cli.options import JsonOption, SessionArgument, StoreOption
from palaver.cli.terminal import emit, money, paged, print_rows, say
from palaver.plurals import counted

_WIDTH = 96
"""Characters of a block that a line shows."""


def run(
    session: SessionArgument,
    first: Annotated[int | None, Argument(metavar="N", min=1, help="Compare this call …")] = None,
    second: Annotated[int | None, Argument(metavar="M", min=1, help="… with this one.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the model calls of a session, numbered as for `view --call N`; with two numbers, compare what these saw.

    Calls that palaver made are recorded. Those of an imported session are reconstructed from its responses.
    """
    with located(session, store) as (_, dialog, _, _), paged(data=json):
        known = calls(dialog)
        if first is not None:
            if second is None:
                raise BadParameter(
                    f"name two calls to compare; `palaver view {session} --call {first}` shows one.", param_hint="M"
                )
            row = calls_row(dialog, call_at(known, first), call_at(known, second))
            if not (json or row["recorded"]):
                say("Reconstructed from what was said before each response:")
            emit(json, row, *_lines(row))
            return
        rows = list(map(call_row, known))
        if rows:
            print_rows(json, rows, _COLUMNS, drop=("entry", "when (UTC)", "cached", "cost"))
        if not json:
            how = "" if not rows else ", recorded" if rows[0]["recorded"] else ", reconstructed from the responses"
            say(f"{counted(len(rows), 'call')}{how}.")


def _figure(number: int) -> str:
    return f"{number:,}" if number else ""


_COLUMNS: Mapping[str, Callable[[ModelCallRow], str]] = {
    "call": lambda row: str(row["call"]),
    "when (UTC)": lambda row: datetime.fromtimestamp(row["at"], UTC).strftime("%Y-%m-%d %H:%M:%S") if row["at"] else "",
    "model": lambda row: row["model"],
    "read": lambda row: _figure(row["read"]),
    "cached": lambda row: _figure(row["cached"]),
    "written": lambda row: "failed" if row.get("failed") else _figure(row["written"]),
    "cost": lambda row: money(row["dollars"], estimated=row["estimated"]),
    "entry": lambda row: row["entry"],
}


def _lines(row: CallsRow) -> Iterator[str]:
    prefix = row["prefix"]
    if not (row["entered"] or row["left"] or row["changed"] or row["tools"] or prefix["broken"]):
        yield "Both calls saw the same."
    for sign, blocks in (("+", row["entered"]), ("-", row["left"]), ("~", row["changed"])):
        for block in blocks:
            yield f"{sign} {block['place'] or ''}  {_cut(block['after'] or block['before'] or '')}  ({block['why']})"
    for tool in row["tools"]:
        yield f"{tool[0]} tool {tool[1:]}"
    if prefix["broken"] is None:
        yield "The second request begins with the whole first: the cached prefix holds."
    else:
        yield f"The cached prefix holds for {counted(prefix['kept'], 'part')} of the request, then breaks:"
        yield f"  - {_cut(prefix['broken'])}"
        yield f"  + {_cut(prefix['instead'] or 'nothing')}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
