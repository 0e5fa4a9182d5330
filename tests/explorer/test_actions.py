"""Acting from the page: off unless the user lets it, by POST alone, each action with a question or an undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from palaver import Prompt, Session, SqliteStore
from palaver.agent import Agent
from palaver.agent.approvals import waiting_calls
from palaver.cli.outcome import Exit
from palaver.explorer.api import Explored
from palaver.explorer.door import Door
from palaver.explorer.server import application
from palaver.session import Dialog
from palaver.tools import tool
from tests.agent.helper import both, scripted
from tests.cli.commands import Palaver, run, talk
from tests.explorer.browser import Tab
from tests.explorer.running import looked_at
from tests.explorer.test_door import FOREIGN, HOST, OURS
from tests.explorer.test_hostile import HOSTILE
from tests.explorer.test_screens import AXE, judged

ACTIONS = ("fork", "label", "pin", "unpin", "approve", "deny")
LARGE = 100_000_000


@tool(needs_approval=True)
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


def asking(store: SqliteStore, *payees: str, said: str = "Pay them now.") -> Agent:
    """Return an agent that waits for a decision about calls that pay."""
    prompt = Prompt(path="bank", prompt="Pay.", function_list=[pay])
    agent, _ = scripted([both(*(("pay", {"to": to}) for to in payees)), "Done."], prompt, store=store)
    agent.respond(said, return_session=True)
    return agent


def stocked(store: SqliteStore) -> Dialog:
    """Write a session in which two calls wait, and return its dialog."""
    return asking(store, "ann", "bob").current_dialog


# --- the server -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[SqliteStore]:
    """Yield a new store."""
    with SqliteStore(tmp_path / "store.db") as store:
        yield store


def served(store: SqliteStore, *, writes: bool = True) -> TestClient:
    """Return a page that is logged in to an explorer over a store."""
    reader = SqliteStore(store.path, read_only=True)
    source = Explored(store=reader, url=str(store.path), name="store.db", writer=store if writes else None)
    door = Door(application(source), 8123)
    page = TestClient(door, base_url=f"http://{HOST}", headers=OURS)
    page.cookies.update(page.post("/api/login", json={"token": door.token}).cookies)
    return page


def test_a_page_that_only_reads_changes_nothing(writer: SqliteStore) -> None:
    """Every action is refused in plain words, and the page is told from the start; nobody acts by GET."""
    dialog = stocked(writer)
    page, before = served(writer, writes=False), writer.last(dialog.dialog_id)
    assert page.get("/api/about").json()["writes"] is False
    for action in ACTIONS:
        path = f"/api/dialogs/{dialog.dialog_id}/{action}"
        answer = page.post(path, json={"handle": f"{dialog.dialog_id}:0"})
        assert (answer.status_code, answer.json()["error"]["message"]) == (403, "This page only reads the store.")
        for method in ("GET", "HEAD", "PUT"):
            assert served(writer).request(method, path).status_code == 405, (method, action)
    assert writer.last(dialog.dialog_id) == before
    assert len(writer.nodes(dialog.session_id)) == 1


def test_foreign_actions_are_refused(writer: SqliteStore) -> None:
    """Of another origin, without the cookie, as a form sends it, or too large: nothing is written."""
    dialog = stocked(writer)
    page, path = served(writer), f"/api/dialogs/{dialog.dialog_id}/label"
    said = {"handle": f"{dialog.dialog_id}:0", "label": "mine"}
    assert page.get("/api/about").json()["writes"] is True
    for headers in FOREIGN:
        assert page.post(path, json=said, headers=headers).status_code == 403, headers
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""):
        answer = page.post(path, content=b'{"handle": "x", "label": "y"}', headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (415, "Refused"), kind
    pieces = (b" " * 1_000_000 for _ in range(LARGE // 1_000_000))
    assert page.post(path, content=pieces, headers={"Content-Type": "application/json"}).status_code == 413
    page.cookies.clear()
    assert page.post(path, json=said).status_code == 401
    assert dialog.session.labels == {}


def test_wrong_actions_say_what_is_wrong(writer: SqliteStore) -> None:
    """Unknown, of another dialog, no text, too long, twice, erased: an error of its kind, and nothing is written."""
    dialog, other = stocked(writer), Session.create(writer, "other").root
    other.put_text("Hello?")
    page, here = served(writer), f"/api/dialogs/{dialog.dialog_id}"
    first = f"{dialog.dialog_id}:0"
    wrong = [
        ("fork", {"handle": f"{dialog.dialog_id}:999"}, 404),
        ("fork", {"handle": f"{other.dialog_id}:0"}, 404),
        ("fork", {"handle": "nonsense"}, 400),
        ("fork", {"handle": 1}, 400),
        ("fork", {}, 400),
        ("fork", {"handle": first, "force": "1"}, 400),
        ("label", {"handle": first, "label": "x" * 201}, 400),
        ("label", {"handle": first, "label": None}, 400),
        ("unpin", {"handle": first}, 400),
        ("approve", {"call": "none"}, 409),
        ("deny", {"call": ["none"]}, 400),
    ]
    before = writer.last(dialog.dialog_id)
    for action, said, status in wrong:
        answer = page.post(f"{here}/{action}", json=said)
        assert (answer.status_code, bool(answer.json()["error"]["message"])) == (status, True), (action, said)
    assert page.post(f"{here}/fork?handle={first}", json={"handle": first}).status_code == 400
    assert page.post(f"/api/dialogs/{'0' * 32}/fork", json={"handle": first}).status_code == 404
    assert writer.last(dialog.dialog_id) == before
    dialog.session.erase()
    for action, said in (("fork", {"handle": first}), ("label", {"handle": first, "label": "x"})):
        answer = page.post(f"{here}/{action}", json=said)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (410, "Erased")
    assert page.post(f"{here}/approve", json={"call": "x"}).status_code == 410


def test_a_call_is_decided_once(writer: SqliteStore) -> None:
    """The second decision is a conflict that says what was decided by whom; so is one about a call that does not wait any more."""
    agent = asking(writer, "ann", "bob")
    dialog = agent.current_dialog
    one, two = (call.call.id for call in waiting_calls(writer))
    page, path = served(writer), f"/api/dialogs/{dialog.dialog_id}"
    rows = page.get(f"/api/sessions/{dialog.session_id}/waiting").json()["rows"]
    assert [(row["call"], row["tool"], row["arguments"]) for row in rows] == [
        (one, "pay", {"to": "ann"}),
        (two, "pay", {"to": "bob"}),
    ]
    assert page.post(f"{path}/approve", json={"call": one}).status_code == 200
    for action in ("approve", "deny"):
        answer = page.post(f"{path}/{action}", json={"call": one})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "Conflict")
        assert "has a decision by" in answer.json()["error"]["message"]
    assert page.post(f"{path}/deny", json={"call": two, "reason": "No."}).status_code == 200
    assert page.get(f"/api/sessions/{dialog.session_id}/waiting").json()["rows"] == []
    agent.respond(return_session=True)
    answer = page.post(f"{path}/approve", json={"call": two})
    assert (answer.status_code, "does not wait" in answer.json()["error"]["message"]) == (409, True)


def test_marks_are_taken_back(writer: SqliteStore) -> None:
    """A label, a pin and their opposites are entries, which the lists of the page show; a fork begins after the entry and leaves the main dialog."""
    dialog = stocked(writer)
    page, path = served(writer), f"/api/dialogs/{dialog.dialog_id}"
    said = _prompt(page, dialog)
    assert page.post(f"{path}/label", json={"handle": said, "label": HOSTILE[:200]}).json() == {"before": ""}
    assert page.post(f"{path}/label", json={"handle": said, "label": "two"}).json() == {"before": HOSTILE[:200]}
    assert page.post(f"{path}/pin", json={"handle": said}).status_code == 200
    marks = page.get(f"{path}/marks").json()
    assert (marks["labels"], marks["pins"]) == ({said: "two"}, [said])
    page.post(f"{path}/label", json={"handle": said, "label": ""})
    page.post(f"{path}/unpin", json={"handle": said})
    marks = page.get(f"{path}/marks").json()
    assert (marks["labels"], marks["pins"]) == ({}, [])
    made = page.post(f"{path}/fork", json={"handle": said}).json()["dialog"]
    child = dialog.session.dialog(made)
    assert [message.role.value for message in child.messages] == ["system", "user"]
    assert (child.parent, child.session.root.dialog_id) == (dialog, dialog.dialog_id)


def test_writing_needs_a_store_that_can_be_written(palaver: Palaver) -> None:
    """A transcript, which is not kept, is refused at the start; a store that may only be read, at the latest when something is written."""
    ran = run("open", palaver.file("talk.jsonl", talk()), "--write", "--no-browser")
    assert (ran.code, "import it first" in ran.err) == (Exit.USAGE, True)
    with SqliteStore(palaver.store) as store:
        dialog = stocked(store)
    with closing(SqliteStore(palaver.store, read_only=True)) as store:
        answer = served(store).post(f"/api/dialogs/{dialog.dialog_id}/fork", json={"handle": f"{dialog.dialog_id}:0"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "StoreError")
        assert "read-only" in answer.json()["error"]["message"]


def _prompt(page: TestClient, dialog: Dialog) -> str:
    """Return the handle of the first prompt, as the page knows it."""
    _, *parts = map(json.loads, page.get(f"/api/dialogs/{dialog.dialog_id}/entries").text.splitlines())
    return next(str(row["handle"]) for part in parts for row in part if row["role"] == "user")


# --- the page ---------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Tab, Dialog]]:
    """Yield a page that may write, and the dialog of a session with hostile texts in which calls wait."""

    def stock(store: SqliteStore) -> Dialog:
        dialog = asking(store, HOSTILE, "bob", "eve", said=HOSTILE).current_dialog
        dialog.marks.label(dialog.messages.handle(1), HOSTILE[:200])
        return dialog

    with looked_at(tmp_path_factory.mktemp("actions"), stock, "--write") as (_, tab, dialog):
        yield tab, dialog


def test_entries_are_marked_by_keyboard_alone(shown: tuple[Tab, Dialog]) -> None:
    """A label, a pin and their undo, and a fork after its question, which Escape refuses; no key reaches the page under a question."""
    tab, dialog = shown
    _log(tab, dialog, "n")
    _press(tab, tab.text(".acts button:nth-of-type(2)"))
    tab.ask("document.activeElement.select()")
    tab.press(*"late?", "Enter")
    tab.until("document.querySelector('.row[aria-selected=true] .told')?.textContent === 'late?'")
    assert "labelled." in tab.text("header [role=status]")
    _press(tab, "Undo")
    tab.until("document.querySelector('.row[aria-selected=true] .told')?.textContent.startsWith('<script>')")
    _press(tab, "Pin")
    tab.until("document.querySelector('.row[aria-selected=true]')?.innerText.includes('pinned')")
    _press(tab, "Undo")
    tab.until("!document.querySelector('.row[aria-selected=true]').innerText.includes('pinned')")
    address = tab.ask("location.href")
    _press(tab, "Fork here …")
    tab.press("u", "/", "Escape")
    tab.settle()
    assert (tab.ask("location.href"), tab.ask("document.querySelectorAll('dialog').length")) == (address, 0)
    _press(tab, "Fork here …")
    _press(tab, "Fork")
    tab.until(f"!location.hash.includes({dialog.dialog_id!r})")
    assert "fork after entry" in tab.settle()
    assert "Forked after entry" in tab.text("header")
    assert tab.told == []


def test_a_decision_is_asked_and_made_once(shown: tuple[Tab, Dialog]) -> None:
    """The question has the tool, all arguments and who waits, and begins at Cancel; on a page that comes late it says who decided what."""
    tab, dialog = shown
    late = tab.open(tab.ask("location.href").partition("#")[0] + f"#/s/{dialog.session_id}")
    _press(tab, "Approve …")
    words = tab.text("dialog")
    assert all(each in words for each in ("Approve pay?", "tester", "<script>alert(1)</script>", "[U+202E]"))
    assert tab.ask("document.activeElement.innerText") == "Cancel"
    first = tab.open(tab.ask("location.href"))
    _press(tab, "Approve …")
    _press(tab, "Approve")
    tab.until("document.querySelectorAll('.waiting li').length === 2")
    assert "pay approved." in tab.text("header")
    tab.turn(late)
    _press(tab, "Approve")
    tab.until("document.querySelector('dialog [role=alert]') !== null")
    assert "has a decision by" in tab.text("dialog [role=alert]")
    tab.press("Escape")
    tab.turn(first)
    _press(tab, "Deny …")
    tab.tab_to("[name=reason]")
    tab.press(*"no", "Enter")
    tab.until("document.querySelectorAll('.waiting li').length === 1")
    assert not [each for each in tab.told if "status of 409" not in each]


def test_questions_are_fit_for_everybody(shown: tuple[Tab, Dialog]) -> None:
    """No rule of axe-core is broken and nothing is wider than the window, with each question open."""
    tab, dialog = shown
    if not AXE.is_file():
        pytest.skip("no axe-core: tests/peers/node_modules is not there (./run test installs it)")
    tab.open(tab.ask("location.href").partition("#")[0] + f"#/s/{dialog.session_id}/log")
    tab.ask(f"{AXE.read_text(encoding='utf-8')}; 0")
    tab.press("n")
    for question in ("", "Fork here …", tab.text(".acts button:nth-of-type(2)"), "Approve …", "Deny …"):
        if question:
            _press(tab, question)
        judged(tab, question)
        tab.press("Escape")
    tab.go(f"{tab.ask('location.hash').replace('/log', '')}")
    assert "Entry 1" in tab.text(".acts")
    judged(tab, "reading")


def test_a_page_that_only_reads_has_no_actions(tmp_path: Path) -> None:
    """Nothing on it offers any, though a call waits and an entry is selected."""
    with looked_at(tmp_path, stocked) as (_, tab, dialog):
        _log(tab, dialog)
        assert tab.ask("document.querySelectorAll('.acts, .bar.waiting, .question').length") == 0
        assert not set(BUTTONS) & set(tab.ask("[...document.querySelectorAll('button')].map((one) => one.innerText)"))


BUTTONS = ("Fork here …", "Label …", "Pin", "Approve …", "Deny …", "Undo")


def _log(tab: Tab, dialog: Dialog, *keys: str) -> None:
    """Go to the log of a dialog, and press keys."""
    tab.go(f"#/s/{dialog.session_id}/log?d={dialog.dialog_id}")
    tab.press(*keys)
    tab.settle()


def _press(tab: Tab, words: str) -> None:
    """Go to the button with these words by Tab, and press Enter."""
    tab.settle()
    for _ in range(200):
        if tab.ask("document.activeElement.innerText") == words:
            break
        tab.press("Tab")
    else:
        raise AssertionError(f"Tab does not lead to {words}: {tab.text()}")
    tab.press("Enter")
    tab.settle()
