"""The screens, in a browser: by keyboard alone, each at an address of its own, fit for everybody, and small however long a session is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver import Session, SqliteStore
from palaver.messages import AssistantMessage, Message, TextContent, ToolCallContent, UserMessage
from palaver.session import Dialog, searchable
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at, story

AXE = Path(__file__).parents[1] / "peers" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS = ((1280, 800, False), (640, 400, True), (640, 800, False))
"""As on a desk; at 200 %, in the dark; 40 em wide."""
ROWS = 30_000
CODE = """@cached
def name(of: int) -> str:  # a note
    return f"{of}" if of else None
"""
SCREENS = {
    "store": ["#/", "#/?q=answer", "#/sessions", "#/sessions?q=none", "#/costs", "#/costs?by=session&model=o"],
    "reading": ["", "?e=10", "/log", "/log?e=10", "/cost"],
    "calls": ["/call/2", "/call/2?e=1", "/call/2?wire=1", "/call/99"],
    "comparing": ["/compare", "/compare?a=1&b=2", "/compare?a=2&policy=palaver&budget=1500"],
    "elsewhere": ["#/s/code", "#/s/none", "#/?find=answer", "#/nowhere"],
}
"""Addresses; those of a session without it."""


def _stocked(store: SqliteStore) -> tuple[Dialog, Dialog]:
    dialog = story(store)
    store.index(searchable)
    long = Session.create(store, "long").root
    long.append([Message(role=("user", "assistant")[number % 2], content=f"{number}") for number in range(ROWS)])
    Session.create(store, "short").root.put_text("Hello?")
    edit = {"path": "a.py", "old_string": f"{CODE}1", "new_string": f"{CODE}2"}
    said = (TextContent(f"```python\n{CODE}\n```"), ToolCallContent(id="e", name="Edit", args=edit))
    Session.create(store, "code").root.append([UserMessage(content="Write."), AssistantMessage(contents=said)])
    return dialog, long


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Dialog, Dialog]]:
    """Yield a page, and the dialogs of its sessions: one with all there is, a long one."""
    with looked_at(tmp_path_factory.mktemp("screens"), _stocked) as (_, tab, (dialog, long)):
        yield tab, dialog, long


def test_sessions_are_read_by_keyboard_alone(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """From the list to an entry and back, by search as well; loaded again, each address shows the same."""
    tab, dialog, _ = shown
    session = f"#/s/{dialog.session_id}"
    tab.go("#/sessions?q=talk")
    tab.tab_to("#sessions")
    tab.press("ArrowDown", "ArrowUp")
    _same_again(tab, "#/sessions")
    tab.tab_to("#sessions")
    tab.press("Enter")
    _same_again(tab, session, "question 0 said")
    _follow(tab, "log")
    _same_again(tab, f"{session}/log")
    for keys, place in {"nn": 7, "N": 1, "e": 10, "c": 12, "C": -1}.items():
        before = _chosen(tab)
        tab.press(*keys)
        tab.settle()
        assert _chosen(tab) == (before if place < 0 else place), keys
    tab.tab_to("#entries")
    tab.press("Home", "ArrowDown", "PageDown", "ArrowUp", "End")
    _same_again(tab, f"{session}/log", "the end said")
    tab.press("/", *"answer")
    tab.until("document.querySelectorAll('#hits .row').length === 2")
    tab.press("ArrowDown", "Enter")
    _same_again(tab, session, "answer")
    tab.press("u", "?")
    assert "next or previous prompt" in tab.settle()
    tab.press("Escape")
    assert "next or previous prompt" not in tab.settle()
    _same_again(tab, "#/sessions", "Sessions")
    tab.go(f"{session}?find=answer")
    cleared = "field.value = '', field.dispatchEvent(new Event('input', { bubbles: true }))"
    tab.ask(f"((field) => ({cleared}))(document.querySelector('dialog input'))")
    tab.until("!location.hash.includes('find')")
    assert "Words or their beginnings" in tab.settle(), "who clears the words goes on searching"
    tab.press("Escape")
    assert "Words or their beginnings" not in tab.settle()


def test_calls_are_compared_by_keyboard_alone(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """From a session to what a model saw, to the last difference and to what it cost; each has its address."""
    tab, dialog, _ = shown
    session = f"#/s/{dialog.session_id}"
    tab.go(session)
    _follow(tab, "call")
    tab.press("]")
    tab.settle()
    tab.tab_to("#blocks")
    tab.press("Home", "ArrowDown")
    _same_again(tab, f"{session}/call/2", "Not shown", "question 0 said")
    tab.press("[")
    tab.settle()
    _same_again(tab, f"{session}/call/1")
    tab.press("u")
    tab.settle()
    _same_again(tab, session)
    _follow(tab, "compare")
    tab.tab_to("[name=a]")
    tab.press("1")
    tab.tab_to("[name=b]")
    tab.press("2", "Enter")
    _same_again(tab, f"{session}/compare", "1 block entered")
    tab.tab_to("#differences")
    tab.press("Home")
    tab.settle()
    assert "new since" in tab.text(".body")
    _follow(tab, "cost")
    _same_again(tab, f"{session}/cost", "2 calls")


def test_compare_begins_with_the_last_calls(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """Opened without words it compares the last two calls, and its form takes any whole budget; with fewer calls it says what can be chosen."""
    tab, dialog, _ = shown
    assert "Choose two calls" in tab.go("#/s/short/compare")
    session = f"#/s/{dialog.session_id}"
    assert "From call 1 to call 2." in tab.go(f"{session}/compare")
    tab.tab_to("[name=policy]")
    tab.press(*"palaver")
    tab.tab_to("[name=budget]")
    tab.press(*"50000", "Enter")
    tab.until("location.hash.includes('budget=50000')")
    tab.until("document.body.innerText.includes('At call 1: palaver in 50,000 tokens')")


def test_a_short_id_in_an_address_is_found(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """Every screen shows by the first digits of a session's id, or its name, and of a dialog's, what it shows by the whole ones."""
    tab, dialog, long = shown
    words = f"d={dialog.dialog_id}"
    for screen, more in {"": "", "/log": "", "/call/2": "", "/compare": "&a=1&b=2", "/cost": ""}.items():
        whole = _timeless(tab.go(f"#/s/{dialog.session_id}{screen}?{words}{more}"))
        for name in (dialog.session_id[:8], "talk"):
            short = tab.go(f"#/s/{name}{screen}?{words[:14]}{more}")
            assert _timeless(short) == whole, (name, screen)
    assert "long" in tab.go(f"#/s/{long.session_id[:6]}")


def _chosen(tab: Tab) -> int:
    found = tab.ask("document.getElementById('entries').getAttribute('aria-activedescendant')")
    return -1 if found is None else int(found.partition("-")[2])


def _follow(tab: Tab, screen: str) -> None:
    """Follow the link to a screen of the session."""
    tab.tab_to(f"nav a[href*={screen}]")
    tab.press("Enter")
    tab.settle()


def _same_again(tab: Tab, address: str, *words: str) -> None:
    """Check what is shown, and that the address alone shows it."""
    before = tab.settle()
    assert tab.ask("location.hash").startswith(address), (tab.ask("location.hash"), before)
    assert all(each in before for each in words), (words, before)
    assert _timeless(tab.reload()) == _timeless(before)


def _timeless(text: str) -> str:
    return re.sub(r"just now|\d+ min ago", "", text)


@pytest.mark.parametrize("screens", SCREENS)
def test_screens_are_fit_for_everybody(shown: tuple[Tab, Dialog, Dialog], screens: str) -> None:
    """No rule of axe-core is broken, nothing is wider than the window and nothing moves, whatever the window is like."""
    tab, dialog, _ = shown
    if not AXE.is_file():
        pytest.skip("no axe-core: tests/peers/node_modules is not there (./run test installs it)")
    tab.ask(f"{AXE.read_text(encoding='utf-8')}; 0")
    for route in SCREENS[screens]:
        assert "defect" not in tab.go(route if route.startswith("#") else f"#/s/{dialog.session_id}{route}")
        judged(tab, route)


def test_layers_are_fit_for_everybody(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """The same of the layers over a screen."""
    tab, _, _ = shown
    if not AXE.is_file():
        pytest.skip("no axe-core: tests/peers/node_modules is not there (./run test installs it)")
    tab.ask(f"{AXE.read_text(encoding='utf-8')}; 0")
    tab.go("#/nowhere")
    for key in "/?":
        tab.press(key)
        tab.settle()
        judged(tab, key)
        tab.press("Escape")


def judged(tab: Tab, what: str) -> None:
    """Check what is shown with axe-core, which is in the page, in windows of each kind."""
    for width, height, dark in LOOKS:
        tab.look(width, height, dark=dark)
        broken = tab.ask(
            "axe.run().then((found) => found.violations.map((one) => [one.id, one.nodes[0].html, one.help]))"
        )
        assert broken == [], (what, width, dark)
        assert tab.ask("document.documentElement.scrollWidth") <= width, what
        assert tab.ask("document.getAnimations().length") == 0, what


def test_a_long_session_is_few_nodes(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """Of 30,000 rows those in sight are in the page, wherever the reader is; the address of any leads to it."""
    tab, _, long = shown
    tab.look(1280, 800)
    tab.go(f"#/s/{long.session_id}/log?e={long.dialog_id}:{ROWS // 2}")
    assert f"{ROWS // 2 + 1}\n" in tab.reload()
    tab.tab_to("#entries")
    for key in ("PageDown", "End", "PageUp", "Home", "n"):
        tab.press(key)
        tab.settle()
        assert tab.ask("document.querySelectorAll('*').length") <= 2_000
    assert _chosen(tab) == 2


def test_entry_says_when_it_was_in_view(shown: tuple[Tab, Dialog, Dialog]) -> None:
    """In the log, a button asks at which calls the selected entry was in view, and shows what changed that."""
    tab, dialog, _ = shown
    tab.go(f"#/s/{dialog.session_id}/log")
    tab.tab_to("#entries")
    tab.press("Home")
    tab.settle()
    tab.ask("document.querySelector('section[aria-label=Entry] button').click()")
    tab.settle()
    assert "in view, whole; calls 1 to " in tab.text(".life")
