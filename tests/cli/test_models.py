"""`palaver models`: the table of what models accept, and the vendors' lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from palaver.browsing.models import models
from palaver.cli.models import COLUMNS
from palaver.providers import profile
from tests.cli.commands import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "models.md"
ANSWERS: dict[str, dict[str, Any]] = {
    "/v1/models?limit=1000": {
        "data": [{"id": "claude-opus-9", "capabilities": {"thinking": {"types": {"adaptive": {"supported": True}}}}}],
        "has_more": True,
        "last_id": "claude-opus-9",
    },
    "/v1/models?limit=1000&after_id=claude-opus-9": {"data": [{"id": "claude-opus-8"}], "has_more": False},
    "/v1/openai/models": {
        "object": "list",
        "data": [{"id": "gpt-9", "object": "model", "created": 0, "owned_by": "o"}],
    },
}


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the vendors' lists on loopback, and keep the user's data in a folder of the test."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(ANSWERS.get(self.path, {"error": {"message": "not found"}})).encode()
            self.send_response(200 if self.path in ANSWERS else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for name in ("HOME", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path))
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def page_table() -> str:
    """Return the table of the page, from the commands' columns."""
    rows = [[show(row) for show in COLUMNS.values()] for row in models()]
    lines = [list(COLUMNS), ["---"] * len(COLUMNS), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_page_has_the_table(request: pytest.FixtureRequest) -> None:
    """The table of the page about models is palaver's; `--update-examples` writes it."""
    page = PAGE.read_text(encoding="utf-8")
    made = re.sub(r"(?s)(?<=<!-- models -->\n).*(?=<!-- end -->)", lambda _: page_table(), page)
    if request.config.getoption("update_examples", default=False):
        PAGE.write_text(made, encoding="utf-8")
    else:
        assert page == made


def test_table_lists_rows_with_their_sources() -> None:
    """Each row has where it was read; a model alone has what holds for it."""
    rows = [json.loads(line) for line in run("models", "--json").out.splitlines()]
    assert {row["maker"] for row in rows} == {"anthropic", "google", "openai"}
    assert all(row["source"].startswith("https://") for row in rows)
    alone = json.loads(run("models", "us.anthropic.claude-sonnet-5-5-v1:0", "--json").out)
    assert (alone["thinking"], alone["forced"], alone["bound"]) == (["adaptive", "between_tools"], False, True)
    assert "claude-fable/mythos 5.2+" in run("models").out


def test_refresh_writes_what_vendors_list(lists: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vendors whose key is set are asked, page by page; the others are named. What they say is in the user's own table."""
    ran = run("models", "refresh")
    assert (ran.code, ran.out.count("skipped")) == (0, 3)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", lists)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{lists}/v1/openai")
    ran = run("models", "refresh")
    assert (ran.code, ran.out.splitlines()[:2]) == (
        0,
        ["anthropic: 2 models, 1 with what they accept", "openai: 1 model, 0 with what they accept"],
    )
    assert "claude-opus-9 (yours)" in run("models").out
    assert profile("anthropic", "claude-opus-9").reasoning.thinks == "always"


def test_refresh_goes_on_after_a_vendor_fails(lists: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that cannot be read is reported, and the others are written."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{lists}/nowhere")
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{lists}/v1/openai")
    ran = run("models", "refresh", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 1
    assert [key for row in rows for key in row if key in {"failed", "skipped", "described", "written"}] == [
        "failed",
        "described",
        "skipped",
        "written",
    ]
