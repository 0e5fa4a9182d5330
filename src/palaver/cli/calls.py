"""palaver calls and palaver diff-calls: the model calls of a dialog, and what two of them saw differently."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.errors import NotFound
from palaver.ids import DialogId
from palaver.messages import Content, thaw
from palaver.messages.said import words_of
from palaver.plurals import counted
from palaver.session import CallDifference, Difference, Invocations, ModelCall, Session, compare

_WIDTH = 96
"""Characters of a block that a line shows."""


def run(
    session: SessionArgument, dialog: DialogOption = None, store: StoreOption = None, json: JsonOption = False
) -> int:
    """List the model calls of a dialog, each with the number that `view --call` and `diff-calls` take."""
    with opened(store) as source:
        found = Session.open(session, source)
        calls = invocations(found, dialog_of(found, dialog))
        if json:
            for call in calls:
                print_json(_row(call))
            return Exit.OK
        table = Table(box=None, pad_edge=False)
        for name in ("call", "when (UTC)", "model", "for", "request", "entry"):
            table.add_column(name, justify="right" if name == "call" else "left", no_wrap=True)
        for call in calls:
            sent = call.sent
            request = (
                f"{sent['digest'][:12]} {counted(sent['bytes'], 'byte')}" if sent else "recorded by another program"
            )
            table.add_row(
                str(call.number),
                datetime.fromtimestamp(call.at, UTC).strftime("%Y-%m-%d %H:%M:%S"),
                call.model,
                sent.get("profile", ""),
                request,
                str(call.handle),
            )
        output().print(table)
    return Exit.OK


def diff(
    session: SessionArgument,
    first: Annotated[int, typer.Argument(metavar="N", min=1, help="The number of a call, as `calls` lists it.")],
    second: Annotated[int, typer.Argument(metavar="M", min=1, help="The number of another call.")],
    dialog: DialogOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Say what the second call saw that the first did not, what it no longer saw and why, and where the provider's cache broke."""
    with opened(store) as source:
        found = Session.open(session, source)
        calls = invocations(found, dialog_of(found, dialog))
        found_difference = compare(numbered(calls, first), numbered(calls, second))
        if json:
            print_json(_data(found_difference))
        else:
            _print(found_difference)
    return Exit.OK


def invocations(session: Session, dialog_id: DialogId) -> Invocations:
    """Give the model calls of a dialog."""
    return session.dialog(dialog_id).invocations


def numbered(calls: Invocations, number: int) -> ModelCall:
    """Give a call by its number.

    Raises:
        NotFound: There is none of this number.
    """
    if number > len(calls):
        count = (
            f"The dialog has {counted(len(calls), 'recorded call')}."
            if len(calls)
            else "No call was recorded in this dialog."
        )
        raise NotFound(str(number), what="call", hint=f"{count} `palaver calls` lists them.")
    return calls[number - 1]


def _row(call: ModelCall) -> dict[str, Any]:
    return {
        "call": call.number,
        "at": call.at,
        "model": call.model,
        "entry": str(call.handle),
        "reproducible": call.reproducible,
        **{name: call.sent[name] for name in ("profile", "digest", "bytes", "compiler") if name in call.sent},
        **({} if call.decision is None else {"decision": thaw(call.decision)}),
    }


def _data(found: CallDifference) -> dict[str, Any]:
    return {
        **{name: [_difference(one) for one in getattr(found, name)] for name in ("entered", "left", "changed")},
        "tools": found.tools,
        "prefix": {
            "kept": found.kept,
            "broken": None if found.broken is None else found.broken.decode(),
            "instead": found.unit.decode() or None,
        },
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "place": None if one.place is None else str(one.place),
        "before": None if one.before is None else _words(one.before),
        "after": None if one.after is None else _words(one.after),
        "why": one.why,
    }


def _print(found: CallDifference) -> None:
    console = output()
    if not found:
        console.print("Both calls saw the same.")
    for sign, differences in (("+", found.entered), ("-", found.left), ("~", found.changed)):
        for one in differences:
            shown = one.after or one.before
            place = "" if one.place is None else f"{one.place}  "
            console.print(f"{sign} {place}{_line(shown)}  ({one.why})", soft_wrap=True)
    for tool in found.tools:
        console.print(f"{tool[0]} tool {tool[1:]}")
    if found.broken is None:
        console.print(
            f"The second request begins with the whole first ({counted(found.kept, 'unit')}): the cached prefix holds."
        )
    else:
        console.print(f"The cached prefix holds for {counted(found.kept, 'unit')}, then breaks:")
        console.print(f"  - {_cut(found.broken.decode())}", soft_wrap=True)
        console.print(f"  + {_cut(found.unit.decode()) or 'nothing'}", soft_wrap=True)


def _line(content: Content | None) -> str:
    return "" if content is None else _cut(_words(content))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _words(content: Content) -> str:
    return words_of(content) or f"[{content.type}]"
