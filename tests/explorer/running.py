"""The explorer for tests: `palaver open` in a child, and a page that asks it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, TypeVar

import pytest

from palaver import Session, SqliteStore
from palaver.messages import AssistantMessage, ThinkingContent, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Dialog
from palaver.store import Durability
from tests.cli.commands import PROGRAM
from tests.explorer.browser import Tab, browser

T = TypeVar("T")


def stocked(path: Path, messages: int = 4) -> str:
    """Write a store with one session of short messages, and return the id of its dialog."""
    with SqliteStore(path) as store:
        dialog = Session.create(store, "talk").root
        for number in range(messages):
            dialog.put_text(f"message {number} " + "word " * 20, role=("user", "assistant")[number % 2])
        return dialog.dialog_id


def story(store: SqliteStore, said: str = "said", name: str = "talk", small: int = 1_500) -> Dialog:
    """Write a session with all that screens show, `said` in every text and `name` in every name, and return its first dialog.

    It has instructions, a tool, a call of it that failed, recorded calls, the second in a small budget, a compaction and a fork.
    """
    session = Session.create(store, name, owner=name, subject=name, workdir=f"/home/{name}")
    dialog = session.root
    dialog.put_text(f"instructions {said}", role="system")
    for number, budget in enumerate((100_000, small)):
        dialog.put_text(f"question {number} {said} " + "word " * 900)
        tool = {
            "name": "look",
            "description": said,
            "parameters": {"type": "object", "properties": {"at": {"description": name}}},
        }
        dialog.calls.record(
            dialog.request("anthropic", "claude-opus-4-6", tools=[tool], policy="palaver", budget=budget)
        )
        called = ToolCallContent(id=f"{number}{name}", name=name, args={"at": said})
        dialog.append(
            AssistantMessage(
                contents=(ThinkingContent(content=said), called), model=name, usage={"input_tokens": 7 + number}
            )
        )
        dialog.append(
            ToolMessage.from_result(ToolResultContent(id=called.id, content=f"result {said}", is_error=number == 1))
        )
        dialog.append(AssistantMessage(content=f"answer {number} {said}", model=name))
    dialog.compaction.commit(dialog.compaction.compose("palaver", small))
    dialog.fork().put_text(f"in the fork {said}")
    dialog.put_text(f"the end {said}")
    return dialog


@contextmanager
def looked_at(
    folder: Path, stock: Callable[[SqliteStore], T], *words: str
) -> Iterator[tuple[subprocess.Popen[str], Tab, T]]:
    """Fill a store in a folder, open the explorer on it in a browser, `words` after the command, and yield the server, the page and what was filled in."""
    with browser(folder / "chromium") as tab, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        with SqliteStore(folder / "store.db", Durability.NORMAL) as store:
            filled = stock(store)
        with explorer("--store", folder / "store.db", *words, login=False) as (process, page):
            tab.open(page.address)
            yield process, tab, filled


class Page:
    """A page of the explorer, as a browser has it."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/#token=([\w-]+)&to=(.*)", address)
        assert found is not None, address
        self.address = address
        self.host, self.token, self.to = found.groups()
        self.cookie = ""
        self.open = ExitStack()

    def login(self) -> None:
        """Change the token for the cookie."""
        answer = self.ask("POST", "/api/login", {"token": self.token})
        assert answer.status == 204
        self.cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]

    def ask(self, method: str, path: str, body: object = None) -> HTTPResponse:
        """Send a request from this page, and return its answer, whose body can be read."""
        connection = self.open.enter_context(closing(HTTPConnection(self.host, timeout=60)))
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return self.open.enter_context(connection.getresponse())

    def get(self, path: str) -> Any:  # noqa: ANN401 - a JSON value
        """Return a JSON value."""
        return json.loads(self.ask("GET", path).read())

    def lines(self, path: str, method: str = "GET") -> Iterator[Any]:
        """Yield the JSON values of an answer, as they come."""
        return map(json.loads, self.ask(method, path))


@contextmanager
def explorer(*words: object, login: bool = True) -> Iterator[tuple[subprocess.Popen[str], Page]]:
    """Run `palaver open` without a browser, and yield the process and a page that is logged in, if no browser will."""
    command = [*PROGRAM, "open", *map(str, words), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()
            page = Page(json.loads(line)["url"])
            with page.open:
                if login:
                    page.login()
                yield process, page
        finally:
            process.kill()
