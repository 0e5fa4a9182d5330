"""Costs, in a browser: the figures of `palaver cost`, and what leads from them to what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest

from palaver import AssistantMessage, Session, SqliteStore
from palaver.browsing.costs import By, CostReport, report
from palaver.browsing.sessions import NO_FILTERS, Filters
from palaver.browsing.spent import CAUSES, Costs
from palaver.errors import InvalidInput
from palaver.explorer.api import Explored
from palaver.explorer.work import costs
from palaver.session import Dialog
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at
from tests.explorer.test_work import source

DAY = 1_767_225_600.0
"""2026-01-01."""
MODELS = ("claude-opus-4-6", "claude-haiku-4-5")
NARROWED: tuple[dict[str, str], ...] = (
    {},
    {"since": "2026-01-02"},
    {"until": "2026-01-01"},
    {"model": "haiku"},
    {"folder": "first"},
    {"tool": "x"},
)
CELLS = """[...document.querySelectorAll('.costs .card:nth-child(2) tbody tr')].map(
  (row) => [...row.children].map((cell) => cell.textContent))"""


def _stocked(store: SqliteStore) -> list[Dialog]:
    dialogs = [Session.create(store, name, workdir=f"/home/mara/{name}").root for name in ("first", "second", "quiet")]
    for days, (dialog, model) in enumerate(zip(dialogs, MODELS, strict=False)):
        for number, cached in enumerate((0, 20_000, 5_000)):  # the third reads anew what the second had left
            dialog.put_text(f"question {number}")
            usage = {"input_tokens": 0, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 20_000}
            at = DAY + days * 86_400 + number
            dialog.append(AssistantMessage(content=f"answer {number}", model=model, usage=usage, timestamp=at))
    dialogs[2].put_text("Hello?")
    return dialogs


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Path, list[Dialog]]]:
    """Yield a page, the folder of its store, and the dialogs."""
    folder = tmp_path_factory.mktemp("costs")
    with looked_at(folder, _stocked) as (_, tab, dialogs):
        yield tab, folder, dialogs


def _reported(folder: Path, by: By, filters: Filters = NO_FILTERS) -> CostReport:
    with SqliteStore(folder / "store.db") as store:
        return report(Costs(store, folder), store.sessions(), by, filters)


def _answered(stored: Path, **words: str) -> dict[str, Any]:
    with closing(source(stored / "store.db").store) as store:
        *_, last = costs(Explored(store=store, url="", name=""), **words)
    result: dict[str, Any] = json.loads(json.dumps(last["result"]))
    return result


@pytest.mark.parametrize("narrowed", NARROWED)
def test_costs_are_the_rows_of_the_terminal(shown: tuple[Tab, Path, list[Dialog]], narrowed: dict[str, str]) -> None:
    """By each way and with each filter, the page is answered the rows, the total and the breaks that the command prints."""
    _, folder, _ = shown
    result = _answered(folder, by=",".join(get_args(By)), **narrowed)
    for by in get_args(By):
        made = _reported(folder, by, Filters(**narrowed))
        expected = {"rows": made.rows, "total": made.total, "breaks": made.breaks}
        said = {"rows": result["rows"][by], "total": result["total"], "breaks": result["breaks"]}
        assert said == json.loads(json.dumps(expected))


def test_costs_refuse_what_is_no_way_or_day(shown: tuple[Tab, Path, list[Dialog]]) -> None:
    """An error names the word, and what it could be."""
    _, folder, _ = shown
    with pytest.raises(InvalidInput, match="'year', only by day"):
        _answered(folder, by="day,year")
    with pytest.raises(InvalidInput, match="since is 'x'"):
        _answered(folder, since="x")


def test_costs_are_drawn_and_lead_on(shown: tuple[Tab, Path, list[Dialog]]) -> None:
    """A row leads to its own costs, narrowed; a break to the answer that read anew; the filters are in the address."""
    tab, folder, dialogs = shown
    tab.go("#/costs?by=model")
    tab.until("document.querySelector('.costs table') !== null")
    words = tab.settle()
    made = _reported(folder, "model")
    assert [row[0] for row in tab.ask(CELLS)] == [row["key"] for row in made.rows] == list(MODELS)
    assert f"~${made.total['dollars'] or 0:.2f}" in words
    (cause,) = made.total["breaks"]
    assert CAUSES[cause["cause"]] in words
    tab.ask("document.querySelector('.costs .card:nth-child(2) tbody a').click()")
    tab.until("document.querySelector('.costs')?.ariaBusy === 'false'")
    assert [row[0] for row in tab.ask(CELLS)] == ["2026-01-01"]
    tab.settle()
    assert tab.ask("location.hash") == "#/costs?by=day&model=claude-opus-4-6"
    assert "2026-01-02" not in tab.reload()
    tab.until("document.querySelector('.costs .card:last-child td a') !== null")
    tab.ask("document.querySelector('.costs .card:last-child td a').click()")
    assert "answer 2" in tab.settle()
    assert tab.ask("location.hash").startswith(f"#/s/{dialogs[0].session_id}?")
    assert "e=" in tab.ask("location.hash")
    tab.go("#/costs?model=none")
    tab.until("document.body.innerText.includes('No call has these words')")
    assert "Costs are not added up by year" in tab.go("#/costs?by=year")
