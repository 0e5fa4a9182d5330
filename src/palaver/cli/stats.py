"""palaver stats: how much there is, and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import output
from palaver.ids import SessionId
from palaver.log import MessageEntry, decode_entry
from palaver.messages import ToolCallContent
from palaver.store import Store
from palaver.store.finding import find_session


def run(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="A session; default: the whole store.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> int:
    """Count sessions, dialogs, entries, messages and bytes; calls by tool; recorded tokens and dollars by model."""
    with opened(store) as source:
        ids = (
            [record.session_id for record in source.sessions()]
            if session is None
            else [find_session(source, session).record.session_id]
        )
        facts = _facts(source, ids)
    if json:
        print_json(facts)
        return Exit.OK
    console = output()
    for name, value in facts.items():
        if isinstance(value, dict):
            console.print(f"{name}:")
            for key, one in value.items():
                console.print(f"  {key:<28} {_shown(one)}")
        else:
            console.print(f"{name:<10} {_shown(value)}")
    return Exit.OK


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items() if one)
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _facts(store: Store, ids: Sequence[SessionId]) -> dict[str, object]:
    totals: Counter[str] = Counter(sessions=len(ids), dialogs=0, entries=0, messages=0, bytes=0)
    kinds: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    models: dict[str, dict[str, float]] = {}
    for session_id in ids:
        for node in store.nodes(session_id):
            last = store.last(node.dialog_id)
            totals.update(dialogs=1, entries=last.seq + 1, messages=last.number, bytes=last.total)
            for _, body in store.bodies(node.dialog_id):
                entry = decode_entry(body)
                kinds[entry.kind] += 1
                if isinstance(entry, MessageEntry):
                    tools.update(block.name for block in entry.message.contents if isinstance(block, ToolCallContent))
                    _add(models, entry)
    return {**totals, "kinds": dict(kinds.most_common()), "tools": dict(tools.most_common(20)), "models": models}


def _add(models: dict[str, dict[str, float]], entry: MessageEntry) -> None:
    usage = entry.message.usage
    if not usage:
        return
    row = models.setdefault(entry.message.model or "unknown", {})
    figures = {
        "responses": 1,
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "dollars": usage.cost.total,
    }
    for name, value in figures.items():
        row[name] = row.get(name, 0) + value
