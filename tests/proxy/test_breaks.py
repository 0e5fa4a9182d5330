"""Streams that break off, through the command: what the client gets, and what is in the log."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from palaver import Session, SqliteStore
from palaver.errors import NotFound
from palaver.messages import Message
from palaver.testing.strict import NextAnswer
from tests.proxy.running import command, place, says, upstream
from tests.proxy.talks import TALKS

CHAT = "/v1/chat/completions"
ASKED = json.dumps({"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()


def kinds(store: SqliteStore, session: str) -> list[str]:
    """Return the kinds of the entries of the only dialog of a session."""
    (dialog,) = Session.open(store, session).dialogs
    return [header.kind for header in store.headers(dialog.dialog_id)]


@pytest.mark.parametrize(
    ("api", "cut", "kept"),
    [
        ("openai-chat", 2, "custom"),
        ("openai-chat", 5, "message"),  # all was said, but the stream did not end
        ("openai-responses", 6, "custom"),
        ("anthropic", 5, "custom"),
        ("gemini", 5, "custom"),
    ],
)
def test_stream_that_breaks_off_is_the_vendors_error(tmp_path: Path, api: str, cut: int, kept: str) -> None:
    """Where the vendor's connection breaks, the SDK raises the same as without the proxy; the log has an error, and what came, whole or in part."""
    make, talk = TALKS[api]
    raised = []
    with make() as server, command(tmp_path, "--to", place(server), "--session", "cut") as running:
        for url in (place(server), running.url):
            server.answers(NextAnswer(("one two ", "three four ", "five six "), cut=cut))
            with pytest.raises(Exception, match=r".") as failed:  # whichever the SDK's transport raises
                talk(url)(["count"], True)
            raised.append((failed.type, str(failed.value)))
        assert running.end() == ""
        assert not server.refused
    assert raised[0] == raised[1]
    with SqliteStore(running.store) as store:
        assert kinds(store, "cut")[-3:] == ["invocation", kept, "error"]
        dialog = Session.open(store, "cut").root
        came: Any = dialog.recall(f"{dialog.dialog_id}:{dialog.opened.last.seq - 1}")
        message = came.message if kept == "message" else Message.from_dict(came.data["message"])
        assert message.text_content().startswith("one")


def test_killed_proxy_leaves_the_request(tmp_path: Path) -> None:
    """When the command is killed in a stream, the client's connection breaks, and the log has the request; the next run answers it in the same dialog."""
    answer = {"id": "a", "object": "chat.completion.chunk", "model": "m"}
    begun = {**answer, "choices": [{"index": 0, "delta": {"content": "one "}}]}
    ended = {**answer, "choices": [{"index": 0, "delta": {"content": "two"}, "finish_reason": "stop"}]}
    over = Event()

    def hang(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(f"data: {json.dumps(begun)}\n\n".encode())
        over.wait(60)

    def go_on(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        said = "".join(f"data: {json.dumps(event)}\n\n" for event in (begun, ended))
        says(handler, 200, said.encode(), ("content-type", "text/event-stream"))

    with upstream(hang) as url, command(tmp_path, "--to", url, "--session", "mine") as running:
        with closing(running.asked("POST", CHAT, ASKED)) as connection:
            got = connection.getresponse()
            assert got.read1().startswith(b"data: ")
            while not _recorded(running.store):
                pass
            running.kill()
            with pytest.raises((HTTPException, OSError)):
                got.read()
        over.set()
    with SqliteStore(running.store) as store:
        assert kinds(store, "mine") == ["model_change", "message", "invocation"]
    with upstream(go_on) as url, command(tmp_path, "--to", url, "--session", "mine") as running:
        assert running.ask("POST", CHAT, ASKED).status == 200
        assert running.end() == ""
    with SqliteStore(running.store) as store:
        assert kinds(store, "mine") == ["model_change", "message", "invocation", "invocation", "message"]
        assert Session.open(store, "mine").root.messages[-1].text_content() == "one two"


def _recorded(path: Path) -> bool:
    with SqliteStore(path) as store:
        try:
            return len(Session.open(store, "mine").root.calls) > 0
        except NotFound:
            return False
