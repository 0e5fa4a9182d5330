"""Home, in a browser: what it says of the store is what the library says, and its field searches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver import AssistantMessage, Prompt, Session, SqliteStore
from palaver.agent import Agent
from palaver.browsing.costs import report
from palaver.browsing.spent import Costs
from palaver.session import searchable
from palaver.tools import tool
from tests.agent.helper import calling, scripted
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at

PRICED = 1_000_000


def _stocked(store: SqliteStore) -> Agent:
    for number in range(3):
        dialog = Session.create(store, f"talk {number}").root
        dialog.put_text(f"question {number} about zebras")
        usage = {"input_tokens": PRICED, "cache_read_input_tokens": PRICED // 2}
        dialog.append(AssistantMessage(content="answer", model="claude-opus-4-6", usage=usage))

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    agent, _ = scripted(
        [calling("pay", amount=5)], Prompt(path="bank", prompt="Pay.", function_list=[pay]), store=store
    )
    agent.respond("pay 5 now", return_session=True)
    store.index(searchable)
    return agent


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Path]]:
    """Yield the first page of a store, and the folder of the store."""
    folder = tmp_path_factory.mktemp("home")
    with looked_at(folder, _stocked) as (_, tab, _):
        yield tab, folder


def test_home_says_what_waits_and_what_it_cost(shown: tuple[Tab, Path]) -> None:
    """The newest sessions, the call that a person must decide about, and the totals of `palaver cost`, which lead to the page of costs."""
    tab, folder = shown
    tab.go("#/")
    tab.until("document.querySelector('.figures') !== null")
    words = tab.settle()
    assert all(f"talk {number}" in words for number in range(3))
    assert "Waiting for a decision" in words
    assert "1 call" in tab.text(".waiting")
    assert "claude-opus-4-6" in words
    with SqliteStore(folder / "store.db") as store:
        total = report(Costs(store, folder), store.sessions(), "day").total
    assert all(figure in tab.text(".figures") for figure in (f"${total['dollars']:.2f}", "33%", "3", "4"))
    assert tab.ask("document.querySelectorAll('.days span').length") == 1
    tab.ask("document.querySelector('.home a[href=\"#/costs\"]').click()")
    tab.until("document.body.innerText.includes('day (UTC)')")
    tab.go("#/")
    tab.until("document.querySelector('.waiting') !== null")
    tab.ask("document.querySelector('.waiting a').click()")
    assert "pay 5 now" in tab.settle()


def test_the_field_of_home_searches(shown: tuple[Tab, Path]) -> None:
    """It has the focus; what is typed is searched at once and has an address; Enter opens the chosen hit, where it was said."""
    tab, _ = shown
    tab.go("#/")
    tab.until("document.activeElement.matches('input[type=search]')")
    tab.press(*"zebra")
    tab.until("document.querySelectorAll('#hits .row').length === 3")
    assert tab.ask("document.querySelector('#hits mark').textContent") == "zebra"
    tab.until("location.hash.includes('q=zebra')")
    assert "in view at" in tab.settle()
    assert "about zebras" in tab.reload()
    tab.press("ArrowDown", "Enter")
    assert "about zebras" in tab.settle()
    assert "e=" in tab.ask("location.hash")
