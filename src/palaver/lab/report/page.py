"""The page of a comparison: one HTML file without network, in which a policy leads to its sessions, and a session to its calls.

It has figures, the paths of files and the ids of sessions, and nothing that was said in them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from heapq import nsmallest
from html import escape
from importlib.resources import files
from shlex import quote
from typing import Any, TypeAlias

from palaver.lab.entrants import Settings
from palaver.lab.report.picture import mark_of, picture
from palaver.lab.results import CallRow, GroupRow, PolicyRow, SessionRow, Table
from palaver.lab.scores import DEFAULT, WEIGHTS, length_of
from palaver.lab.writing import Results
from palaver.plurals import counted

_CALLS = 3
"""Calls of a session that are named: those whose views lack most, then the dearest."""

_SMALL = (520.0, 320.0)
"""The size of the picture of a group, in pixels."""

_Row: TypeAlias = PolicyRow | GroupRow
_Name: TypeAlias = tuple[str, str]


def report(table: Table, results: Results, settings: Settings) -> Iterator[bytes]:
    """Return the page of a run, piece by piece.

    Args:
        table: The comparison.
        results: The results of the run.
        settings: Its settings.
    """
    rows = [row for row in table.rows if row.sessions]
    folder = files("palaver.lab.report")
    style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    allowed = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    yield (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>palaver lab</title>\n<style>{style}</style>\n'
    ).encode()
    yield "\n".join(_body(table, rows)).encode(errors="replace")
    data = json.dumps(_data(table, results, settings, rows), separators=(",", ":")).replace("<", "\\u003c")
    yield f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</html>\n'.encode()


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# --- what is shown -----------------------------------------------------------------------------------------------------------------


def _body(table: Table, rows: Sequence[PolicyRow]) -> Iterator[str]:
    run = table.run
    budget = f", budget {run.budget:,}" if run.budget else ""
    yield "<h1>Bill against evidence</h1>"
    yield f"<p>{counted(table.sessions, 'session')}, {escape(run.model)}, window {run.window:,}{budget}. {escape(_whiskers(rows))}</p>"
    yield "<p>Over all sessions, a full mark is a policy that no other one beats in both evidence and the bill with recalls charged by evidence. Choose a mark to see its sessions.</p>"
    yield _figure(table, rows, rows, "All sessions", "")
    yield '<section id="chosen" aria-live="polite"></section>'
    for by, title in (("tool", "By tool"), ("length", "By length in tokens")):
        groups: dict[str, list[GroupRow]] = {}
        for row in table.groups:
            if row.by == by:
                groups.setdefault(row.name, []).append(row)
        if len(groups) > 1:
            figures = "\n".join(
                _figure(table, some, rows, f"{name}, {counted(max(row.sessions for row in some), 'session')}", name, by)
                for name, some in groups.items()
            )
            yield f'<h2>{title}</h2>\n<div class="charts">\n{figures}</div>'
    notes = [*run.assumptions, *([] if run.weight == "session" else [f"Weights: {WEIGHTS[run.weight]}."])]
    yield f"<h2>Assumptions</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in notes)}</ul>\n"


def _whiskers(rows: Sequence[PolicyRow]) -> str:
    compared = any(row.policy == DEFAULT for row in rows)
    what = f"the difference from {DEFAULT}, session by session" if compared else "the figure"
    return f"Lines are the intervals of {what}: they contain 95 of 100 resamplings of the sessions."


def _figure(table: Table, some: Sequence[_Row], rows: Sequence[PolicyRow], title: str, name: str, by: str = "") -> str:
    """Return a picture; its marks have the numbers of the policies in `rows`."""
    numbers = {_key(row): number for number, row in enumerate(rows)}
    best = {_key(row) for row in rows if row.best_evidence} if not by else frozenset()
    defaults = {row.stand_in: row for row in some if row.policy == DEFAULT}
    marks = [
        (numbers[_key(row)], mark)
        for row in some
        if _key(row) in numbers
        and (mark := mark_of(_called(row, table), row, defaults.get(row.stand_in), best=_key(row) in best))
    ]
    if not marks:
        return ""
    unit = "dollars" if table.run.currency == "USD" else table.run.currency
    drawn = picture(dict(marks), title=title, unit=unit, **({"size": _SMALL} if by else {}))
    return f'<figure data-by="{by}" data-name="{escape(name)}">{drawn}</figure>'


def _key(row: _Row) -> _Name:
    return row.policy, row.stand_in


def _called(row: _Row, table: Table) -> str:
    return f"{row.policy} [{row.stand_in}]" if len(table.run.stand_ins) > 1 else row.policy


# --- where a mark leads --------------------------------------------------------------------------------------------------------------


def _data(table: Table, results: Results, settings: Settings, rows: Sequence[PolicyRow]) -> Mapping[str, Any]:
    """Return what the page's script reads."""
    numbers = {_key(row): number for number, row in enumerate(rows)}
    replays: list[list[tuple[int, float, int, int, list[int]]]] = [[] for _ in rows]
    for place, key in enumerate(table.keys):
        calls: dict[_Name, list[CallRow]] = {}
        for call in results.calls(key):
            calls.setdefault((call.policy, call.stand_in), []).append(call)
        for row in results.replays(key):
            name = row.policy, row.stand_in
            if row.status == "ok" and name in numbers:
                named = nsmallest(_CALLS, calls.get(name, ()), key=_lacking)
                found = place, round(row.total, 6), row.evidence, row.references, [call.call for call in named]
                replays[numbers[name]].append(found)
    return {
        "policies": [{"name": _called(row, table), "words": _words(row, settings)} for row in rows],
        "sessions": [_session(results.session(key)) for key in table.keys],
        "replays": replays,
        "command": _command(settings),
    }


def _lacking(call: CallRow) -> tuple[int, float, int]:
    return call.evidence - call.references, -call.total, call.call


def _session(row: SessionRow) -> Mapping[str, Any]:
    return {
        "id": row.session,
        "file": row.source,
        "quoted": quote(row.source),
        "opens": f"palaver open {'--store' if row.format == 'palaver' else '--'} {quote(row.source)}",
        "tool": row.format,
        "length": length_of(row),
        "tokens": row.tokens,
        "calls": row.calls,
    }


def _command(settings: Settings) -> str:
    numbers = {"--window": settings.window, "--budget": settings.budget, "--cache": settings.lifetime}
    words = (f" {name} {value}" for name, value in numbers.items() if value is not None)
    return f"palaver lab --model {quote(settings.model)}{''.join(words)}"


def _words(row: PolicyRow, settings: Settings) -> str:
    several = f" --stand-in {row.stand_in}" if settings.stand_ins != ("fold",) else ""
    return f"--policies {quote(row.policy)}{several}"
