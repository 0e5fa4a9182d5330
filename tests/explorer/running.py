"""The explorer for tests: `palaver open` in a child, and a page that asks it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from palaver import Session, SqliteStore
from tests.cli.commands import PROGRAM


def stocked(path: Path, messages: int = 4) -> str:
    """Write a store with one session of short messages, and return the id of its dialog."""
    with SqliteStore(path) as store:
        dialog = Session.create(store, "talk").root
        for number in range(messages):
            dialog.put_text(f"message {number} " + "word " * 20, role=("user", "assistant")[number % 2])
        return dialog.dialog_id


class Page:
    """A page of the explorer, as a browser has it."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)/#token=([\w-]+)&to=(.*)", address)
        assert found is not None, address
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

    def work(self, **job: object) -> Iterator[dict[str, Any]]:
        """Start work, and yield its lines."""
        name = json.loads(self.ask("POST", "/api/work", job).read())["id"]
        for line in self.ask("GET", f"/api/work/{name}"):
            yield {"id": name, **json.loads(line)}


@contextmanager
def explorer(*words: object) -> Iterator[tuple[subprocess.Popen[str], Page]]:
    """Run `palaver open` without a browser, and yield the process and a page that is logged in."""
    command = [*PROGRAM, "open", *map(str, words), "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()
            page = Page(json.loads(line)["url"])
            with page.open:
                page.login()
                yield process, page
        finally:
            process.kill()
