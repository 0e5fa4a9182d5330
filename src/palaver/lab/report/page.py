"""The page: what the report says, put into one HTML file. Everything that comes from a session goes in as data or escaped."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from palaver.lab.entrants import short_names
from palaver.lab.results import PolicyRow, Run, Score, Table
from palaver.lab.scores import COMPARED, DEFAULT, EVIDENCE_FRONT, FRONT, SCORES
from palaver.plurals import counted

__all__ = ["named", "page"]

_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("bill", "bill", "money"),
    ("regret", "regret", ".2f"),
    ("hits", "hits", ".2f"),
    ("stability", "stability", ".2f"),
    ("tokens", "tokens", ",.0f"),
    ("frr", "FRR", ".3f"),
    ("frr_recall", "+ lookup", ".3f"),
    ("evidence", "evidence", ".3f"),
    ("evidence_bill", "bill by evidence", "money"),
    ("artifacts", "files F1", ".2f"),
    ("constraints", "rules", ".2f"),
    ("failures", "failures", ".2f"),
)
_INTERVALS = frozenset(COMPARED)
_SOME = 20
"""Problems of one kind that the page lists; the folder of the run has all."""


def named(row: PolicyRow, run: Run, names: Mapping[str, str] | None = None) -> str:
    """Give the name of a policy, with its stand-in where there are several.

    Args:
        row: The policy.
        run: The run.
        names: What policies are called here; their own names unless given.
    """
    name = row.policy if names is None else names[row.policy]
    return f"{name} [{row.stand_in}]" if len(run.stand_ins) > 1 else name


def page(table: Table, data: Mapping[str, Any], bundle: str) -> str:
    """Give the page.

    Args:
        table: The policies over all sessions.
        data: What its script draws, as JSON values.
        bundle: The JavaScript that draws charts.
    """
    run = table.run
    title = f"{counted(len(run.policies), 'policy')} on {counted(table.sessions, 'recorded session')}"
    money = "dollars" if run.currency == "USD" else run.currency
    summary = f"{run.model}, window {run.window or 0:,}" + (f", budget {run.budget:,}" if run.budget else "")
    packed = base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode()
    parts = {
        "title": escape(title),
        "front": escape(FRONT),
        "evidence_front": escape(EVIDENCE_FRONT),
        "paired": "".join(_paired(table)),
        "style": _resource("page.css"),
        "summary": escape(f"{summary}; bills a session in {money}; palaver {run.version}."),
        "table": "".join(_table(table)),
        "problems": "".join(_problems(table)),
        "meanings": "".join(_meanings()),
        "data": packed,
        "bundle": _closed(bundle),
        "script": _resource("page.js"),
    }
    return re.sub(r"%(\w+)%", lambda found: parts[found[1]], _resource("page.html"))


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _closed(script: str) -> str:
    """Give a script that cannot end its element."""
    return script.replace("</script", "<\\/script")


def _table(table: Table) -> Iterator[str]:
    titles = (*(title for _, title, _ in _COLUMNS), "cuts", "infeasible", "laws broken")
    yield from _head("Each policy over all sessions", titles)
    for row in table.rows:
        kind = "best" if row.best or row.best_evidence else "bad" if row.status != "ok" or row.broken else ""
        remark = f" ({row.remark})" if row.remark else ""
        yield from _begun(row, table, kind, f"{'* ' if row.best else ''}{'# ' if row.best_evidence else ''}", remark)
        for name, _, form in _COLUMNS:
            yield f"<td>{_cell(row.scores.get(name), form, table.run, interval=name in _INTERVALS)}</td>"
        yield f"<td>{row.cuts:,}</td><td>{row.infeasible:,}</td><td>{row.broken:,}</td></tr>"
    yield _END


def _paired(table: Table) -> Iterator[str]:
    """Give the table of differences from the default policy; nothing where there is none."""
    rows = [row for row in table.rows if row.differences]
    if not rows:
        return
    titles = {name: title for name, title, _ in _COLUMNS}
    yield "<h3>" + escape(f"Less {DEFAULT}, session by session") + "</h3>"
    yield from _head(
        f"Each policy less {DEFAULT}", (*(titles[name] for name in COMPARED), "better in", "better in, by evidence")
    )
    for row in rows:
        yield from _begun(row, table, "", "", "")
        for name in COMPARED:
            form = "money" if "bill" in name else ".3f"
            yield f"<td>{_cell(row.differences.get(name), form, table.run, interval=True, sign='+')}</td>"
        yield from (f"<td>{'-' if share is None else f'{share:.0%}'}</td>" for share in (row.beats, row.beats_evidence))
        yield "</tr>"
    yield _END
    yield f'<p class="note">{escape(_PAIRED)}</p>'


_PAIRED = (
    "Over the sessions that both came to the end of, each with itself; brackets hold 95 of 100 resamplings of those. Better in: of resamplings, those "
    f"in which the policy beats {DEFAULT} in bill and FRR; by evidence, in bill and content."
)
_END = "</tbody></table></div>"


def _head(caption: str, titles: Sequence[str]) -> Iterator[str]:
    """Begin a table of policies, which can be scrolled from the keyboard where it is wider than the page."""
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}"><table>'
    yield f'<caption class="unseen">{escape(caption)}</caption><thead><tr><th scope="col" class="name">policy</th>'
    yield from (f'<th scope="col">{escape(title)}</th>' for title in titles)
    yield "</tr></thead><tbody>"


def _begun(row: PolicyRow, table: Table, kind: str, marks: str, remark: str) -> Iterator[str]:
    """Begin the line of a policy."""
    whole = escape(row.policy, quote=True)
    name = named(row, table.run, short_names(table.run.policies))
    yield f'<tr class="{kind}" data-policy="{whole}"><th scope="row" class="name" title="{whole}">{marks}'
    yield f"<span>{escape(name)}</span>{escape(remark)}</th>"


def _cell(score: Score | None, form: str, run: Run, *, interval: bool, sign: str = "") -> str:
    if score is None or score.value is None:
        return "-"
    form = sign + ((".3f" if run.currency == "USD" else ",.0f") if form == "money" else form)
    said = format(score.value, form)
    if interval and score.low is not None and score.high is not None:
        said += f" <small>[{format(score.low, form)}, {format(score.high, form)}]</small>"
    return said


def _problems(table: Table) -> Iterator[str]:
    for text in table.run.assumptions:
        yield f"<p>{escape(text)}</p>"
    kinds = Counter(problem.kind for problem in table.problems)
    if not kinds:
        yield "<p>Nothing was missing, and nothing failed.</p>"
    for kind, count in sorted(kinds.items()):
        yield f"<details><summary>{escape(kind)}: {count:,}</summary><ul>"
        for problem in [one for one in table.problems if one.kind == kind][:_SOME]:
            place = [problem.policy, PurePath(problem.source).name, problem.session, f"call {problem.call}"]
            where = ", ".join(one for one in place if one and one != "call 0")
            yield f"<li>{escape(f'{where}: ' if where else '')}{escape(problem.text)}</li>"
        yield f"<li>{count - _SOME:,} more</li></ul></details>" if count > _SOME else "</ul></details>"


def _meanings() -> Iterator[str]:
    yield "<dl>"
    yield from (f"<dt>{escape(name)}</dt><dd>{escape(what)}</dd>" for name, (what, _) in SCORES.items())
    yield "</dl>"
