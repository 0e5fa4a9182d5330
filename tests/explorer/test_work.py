"""Long work: how far it is, what it finds, and that it ends with its reader."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from palaver import Session, SqliteStore
from palaver.explorer.api import Explored
from palaver.explorer.server import application
from palaver.ids import DialogId
from palaver.session import Dialog
from palaver.store import open_store
from tests.explorer.browser import Tab
from tests.explorer.running import explorer, looked_at, stocked
from tests.explorer.test_page import answers

KEY = "ghp_" + "a1B2c3D4e5F6" * 3


def source(path: Path) -> Explored:
    """Return a store, opened read-only."""
    return Explored(store=open_store(str(path), create=False, read_only=True), url=str(path), name=path.name)


def lines(page: TestClient, path: str, method: str = "GET") -> list[Any]:
    """Return the values of an answer."""
    return [json.loads(line) for line in page.request(method, path).iter_lines()]


def test_work_tells_how_far_it_is(tmp_path: Path) -> None:
    """The index grows in steps; a what-if is what the policy makes of the view, or why it cannot."""
    dialog_id = stocked(tmp_path / "store.db", 1_200)
    page = TestClient(application(source(tmp_path / "store.db")))
    *steps, last = lines(page, "/api/index", "POST")
    assert last == {"result": {"indexed": 1_200}}
    assert [step["done"] for step in steps] == [0, 500, 1_000, 1_200]
    assert {step["of"] for step in steps} == {1_200}
    question = f"/api/dialogs/{dialog_id}/whatif?policy=palaver&budget="
    *steps, last = lines(page, f"{question}5000")
    assert [step["what"] for step in steps] == ["reading the session", "composing with palaver"]
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        made = Session.open(store, "talk").root.compaction.compose("palaver", 5_000)
        assert last["result"]["tokens"] == made.after.total <= 5_000
    *_, last = lines(page, f"{question}5")
    assert sum(last["error"]["breakdown"].values()) == last["error"]["needed"] > 5


def test_work_ends_when_its_reader_leaves(tmp_path: Path) -> None:
    """A process that waits for a lock does not get to the end of its patience; the store is as it was, and the work can be begun again."""
    stocked(tmp_path / "store.db")

    async def main() -> None:
        gone, heard = anyio.Event(), list[Message]()

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            heard.append(message)
            if b'"indexing"' in message.get("body", b""):
                gone.set()

        scope = {"type": "http", "method": "POST", "path": "/api/index", "query_string": b"", "headers": []}
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            await application(source(tmp_path / "store.db"))(scope, receive, send)
            other.execute("ROLLBACK")
        assert heard[-1].get("more_body"), "nobody was told that the answer is whole"

    anyio.run(main)
    page = TestClient(application(source(tmp_path / "store.db")))
    assert lines(page, "/api/index", "POST")[-1] == {"result": {"indexed": 4}}


WRONG = [
    ("GET", "/api/index", {}, "Refused"),
    ("POST", "/api/index", {"force": 1}, "InvalidInput"),
    ("GET", f"/api/dialogs/{'0' * 32}/whatif", {"policy": "palaver"}, "NotFound"),
    ("GET", "/api/dialogs/DIALOG/whatif", {}, "InvalidInput"),
    ("GET", "/api/dialogs/DIALOG/whatif", {"policy": "os:system"}, "NotFound"),
    ("GET", "/api/dialogs/DIALOG/whatif", {"policy": "palaver", "call": -1}, "InvalidInput"),
    ("GET", "/api/dialogs/DIALOG/whatif", {"policy": "palaver", "call": 3}, "NotFound"),
    ("GET", "/api/dialogs/DIALOG/whatif", {"policy": "palaver", "budget": "5.5"}, "InvalidInput"),
    ("GET", f"/api/sessions/{'0' * 32}/secrets", {}, "NotFound"),
    ("GET", f"/api/sessions/{'0' * 32}/export", {"dialog": "DIALOG"}, "NotFound"),
    ("GET", "/api/sessions/SESSION/export", {"dialog": "DIALOG", "call": 3}, "NotFound"),
]


@pytest.mark.parametrize(("method", "path", "words", "kind"), WRONG)
def test_wrong_work_is_an_error(tmp_path: Path, method: str, path: str, words: dict[str, object], kind: str) -> None:
    """It is the answer, or where something was answered its last line; never a file."""
    dialog = stocked(tmp_path / "store.db")
    looked_into = source(tmp_path / "store.db")
    named = f"{path}?{urlencode(words)}".replace("DIALOG", dialog)
    named = named.replace("SESSION", looked_into.store.node(DialogId(dialog)).session_id)
    answer = TestClient(application(looked_into)).request(method, named)
    *_, last = answer.text.splitlines()
    assert json.loads(last)["error"]["kind"] == kind
    assert answer.headers["Content-Type"].startswith("application/")


def with_a_key(store: SqliteStore) -> Dialog:
    """Write a session with a key in it."""
    dialog = Session.create(store, "talk").root
    dialog.put_text(f"use {KEY}")
    return dialog


def test_an_export_is_reviewed_and_then_sent(tmp_path: Path) -> None:
    """What would be left out is listed; the file is an attachment without it."""
    with SqliteStore(tmp_path / "store.db") as store:
        dialog = with_a_key(store)
    with explorer("--store", tmp_path / "store.db") as (_, page):
        path = f"/api/sessions/{dialog.session_id}"
        assert [row["beginning"] for row in page.lines(f"{path}/secrets")] == ["ghp_…"]
        answer = page.ask("GET", f"{path}/export?dialog={dialog.dialog_id}")
        assert answer.getheader("Content-Disposition") == 'attachment; filename="session.html"'
        (tmp_path / "session.html").write_bytes(answer.read())
    said = json.dumps(answers(tmp_path / "session.html"))
    assert ("use [" in said, KEY in said) == (True, False)


def test_the_page_downloads_an_export(tmp_path: Path) -> None:
    """Its buttons lead to the review, and from there to the file."""
    with looked_at(tmp_path, with_a_key) as (_, tab, dialog):
        tab.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "files"))
        tab.go(f"#/s/{dialog.session_id}")
        click(tab, "Export")
        tab.until("document.body.innerText.includes('1 secret will be left out')")
        click(tab, "Write the file")
        file = tmp_path / "files" / "session.html"
        while not file.is_file():
            tab.settle()  # the time-out of the test ends it
        assert file.read_text("utf-8").rstrip().endswith("</html>")
        assert tab.told == []


def click(tab: Tab, words: str) -> None:
    """Click what has these words."""
    tab.ask(f"[...document.querySelectorAll('button, a')].find((found) => found.innerText === {words!r}).click()")
