"""Compare and what is not shown, in a browser: where one begins, who spoke, and what was left out, prompts first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaver import AssistantMessage, Session, SqliteStore
from palaver.session import Dialog
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at

CALLS = 6
BEFORE = 3
"""The last call before the compaction."""


def _stocked(store: SqliteStore) -> Dialog:
    dialog = Session.create(store, "talk").root
    for number in range(1, CALLS + 1):
        dialog.put_text(f"question {number} " + "word " * 400)
        dialog.calls.record(dialog.request("anthropic", "claude-opus-4-6"))
        dialog.append(AssistantMessage(content=f"answer {number} " + "word " * 400, model="claude-opus-4-6"))
        if number == BEFORE:
            dialog.compaction.commit(dialog.compaction.compose("fold", 1_200))
    return dialog


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, str]]:
    """Yield a page, and the address of its session."""
    with looked_at(tmp_path_factory.mktemp("compare"), _stocked) as (_, tab, dialog):
        yield tab, f"#/s/{dialog.session_id}"


def test_compare_begins_at_the_newest_compaction(shown: tuple[Tab, str]) -> None:
    """The calls before and after it; the first difference is chosen, each says who spoke, and the words of people can be shown alone."""
    tab, session = shown
    assert f"From call {BEFORE} to call {BEFORE + 1}." in tab.go(f"{session}/compare")
    assert _roles(tab) == {"user", "assistant", ""}
    assert tab.ask("document.querySelector('#differences .row').getAttribute('aria-selected')") == "true"
    tab.ask("document.querySelector('form input[type=checkbox]').click()")
    tab.settle()
    assert _roles(tab) == {"user"}
    assert "people=1" in tab.ask("location.hash")


def test_a_policy_is_asked_about_without_a_budget(shown: tuple[Tab, str]) -> None:
    """A blank budget is what the model takes."""
    tab, session = shown
    words = tab.go(f"{session}/compare?a={CALLS}&policy=palaver")
    tab.until("document.body.innerText.includes('At call')")
    assert "palaver shows" in tab.settle(), words


def test_what_is_not_shown_is_a_list_prompts_first(shown: tuple[Tab, str]) -> None:
    """The first row of a call is chosen; of what was left out each entry can be read, the prompts before the answers."""
    tab, session = shown
    tab.go(f"{session}/call/{CALLS}")
    assert tab.ask("document.querySelector('#blocks .row').getAttribute('aria-selected')") == "true"
    tab.ask("[...document.querySelectorAll('#blocks .row')].find((one) => one.innerText.includes('not shown')).click()")
    tab.settle()
    roles = tab.ask("[...document.querySelectorAll('#omitted .who')].map((one) => one.innerText)")
    assert roles.index("assistant") == roles.count("user") > 1
    assert "question 1" in tab.text(".recall .body:last-child")
    tab.tab_to("#omitted")
    tab.press("End")
    tab.settle()
    assert "question 1" not in tab.text(".recall .body:last-child")


def _roles(tab: Tab) -> set[str]:
    return set(tab.ask("[...document.querySelectorAll('#differences .who')].map((one) => one.innerText)"))
