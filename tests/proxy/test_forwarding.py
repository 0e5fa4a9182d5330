"""The proxy between the vendors' SDKs and the strict stand-ins: what passes, and what does not."""

from __future__ import annotations

import gzip
import json
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socket import create_server
from urllib.parse import urlsplit

import pytest

from palaver import Session, SqliteStore
from palaver.browsing.calls import call_row, calls
from palaver.browsing.seen import sent as saw
from palaver.cli.outcome import Exit
from palaver.proxy.forwarding import HOST
from palaver.testing import strict
from palaver.testing.strict import StrictServer
from tests.cli.commands import run
from tests.proxy.running import KEY, Wire, bodies, proxy, says, upstream
from tests.proxy.talks import TALKS

TURNS = 20


@pytest.mark.parametrize("api", TALKS)
def test_twenty_calls_pass_byte_for_byte(tmp_path: Path, api: str) -> None:
    """A conversation of 20 calls, every other one streamed: the bodies of requests and answers are the same on both sides of the proxy.

    The calls are recorded in one dialog with the exact requests, the answers and their usage, and no key is in any file of the store.
    """
    make, talk = TALKS[api]
    with make() as server, Wire(_port(server)) as behind, proxy(tmp_path, _at(behind)) as running:
        with Wire(running.port) as before:
            ask = talk(_at(before))
            said: list[str] = []
            for turn in range(TURNS):
                server.answers(f"answer {turn}")
                said.append(f"question {turn}")
                said.append(ask(said, turn % 2 == 0))
        assert not server.refused
        assert running.end() == ""
    requests = _all(before.sent)
    assert requests == _all(behind.sent)
    assert len(requests) == TURNS
    assert _all(before.got) == _all(behind.got)
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        (dialog,) = Session.open(store, record.session_id).dialogs
        assert [message.text_content() for message in dialog.messages] == said
        assert [call.request().data for call in dialog.calls] == requests
        assert all((usage := call.usage()) and usage.invoke_cost.total_tokens for call in dialog.calls)
        assert dialog.calls[3].view().exchanges
        rows = [call_row(call) for call in calls(dialog)]
        assert [(row["call"], row["recorded"], row["bytes"]) for row in rows] == [
            (number, True, len(body)) for number, body in enumerate(requests, 1)
        ]
        assert all(row["read"] and row["written"] and row["reproducible"] for row in rows)
        assert [shown.data for call in dialog.calls if (shown := saw(call).request)] == requests
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


ASKED = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {"id": "a", "object": "chat.completion", "model": "gpt-4.1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}]}  # fmt: skip
CHAT = "/v1/chat/completions"


def test_encoded_answer_and_headers_stay_as_they_are(tmp_path: Path) -> None:
    """A compressed answer passes as its bytes, with the vendor's headers, and its text is recorded; headers of one connection stay behind."""
    data, seen = gzip.compress(json.dumps(ANSWER).encode()), dict[str, str]()

    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        seen.update({name.lower(): value for name, value in handler.headers.items()})
        says(
            handler,
            200,
            data,
            ("content-encoding", "gzip"),
            ("content-type", "application/json"),
            ("x-request-id", "r1"),
            ("keep-alive", "timeout=9"),
        )

    with upstream(answer) as url, proxy(tmp_path, url) as running:
        got = running.ask(
            "POST",
            f"{CHAT}?a=%20b",
            json.dumps(ASKED).encode(),
            authorization=f"Bearer {KEY}",
            x_own="1",
            te="trailers",
        )
        assert got.body == data
        assert (got.status, got.headers["x-request-id"], got.headers["content-encoding"]) == (200, "r1", "gzip")
        assert "keep-alive" not in got.headers
        assert running.end() == ""
    assert (seen["authorization"], seen["x-own"], seen["host"]) == (f"Bearer {KEY}", "1", urlsplit(url).netloc)
    assert "te" not in seen
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        assert Session.open(store, record.session_id).root.messages[-1].text_content() == "hello"


@pytest.mark.parametrize(
    ("asked", "passed_on"),
    [
        ("gzip, lzma;q=1.0, deflate;q=0.5", "gzip, deflate;q=0.5"),
        ("lzma", "identity"),
        ("gzip,deflate", "gzip,deflate"),
    ],
)
def test_vendor_is_asked_for_encodings_that_can_be_read(tmp_path: Path, asked: str, passed_on: str) -> None:
    """A call accepts those encodings only in which its answer can be recorded."""
    seen = list[str | None]()

    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        seen.append(handler.headers["accept-encoding"])
        says(handler, 200, json.dumps(ANSWER).encode(), ("content-type", "application/json"))

    with upstream(answer) as url, proxy(tmp_path, url) as running:
        running.ask("POST", CHAT, json.dumps(ASKED).encode(), accept_encoding=asked)
    assert seen == [passed_on]


@pytest.mark.parametrize("header", ["x_claude_code_session_id", "session_id", "x_session_id", "x_session_affinity"])
def test_session_that_a_header_names_has_the_call(tmp_path: Path, header: str) -> None:
    """A call whose header names a session is recorded in the session of that name."""
    with strict.openai_chat() as server, proxy(tmp_path, server.url) as running:
        running.ask("POST", "/chat/completions", json.dumps(ASKED).encode(), **{header: "ses_1"})
        assert running.end() == ""
    with SqliteStore(running.store) as store:
        assert len(Session.open(store, "ses_1").root.calls) == 1


def test_errors_of_the_vendor_stay_as_they_are(tmp_path: Path) -> None:
    """A refusal passes unchanged and is recorded as an error; the same request again, which got no answer, continues its dialog."""
    statuses = iter((429, 401, 529))
    said = b'{"error": {"message": "slow down"}}'

    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        says(handler, next(statuses), said, ("retry-after", "7"))

    with upstream(answer) as url, proxy(tmp_path, url) as running:
        for status in (429, 401, 529):
            got = running.ask("POST", CHAT, json.dumps(ASKED).encode())
            assert (got.status, got.body, got.headers["retry-after"]) == (status, said, "7")
        assert running.end() == ""
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        dialog = Session.open(store, record.session_id).root
        kinds = [header.kind for header in store.headers(dialog.dialog_id)]
        assert kinds == ["model_change", "message", *["invocation", "error"] * 3]


def test_vendor_that_cannot_be_reached_is_a_502(tmp_path: Path) -> None:
    """Where nobody answers, the client gets an error of the proxy's own, in JSON."""
    with proxy(tmp_path, "http://127.0.0.1:9") as running:
        got = running.ask("POST", CHAT, json.dumps(ASKED).encode())
        assert got.status == 502
        assert json.loads(got.body)["error"]["type"] == "upstream_unreachable"


def test_other_hosts_and_pages_are_refused(tmp_path: Path) -> None:
    """A request that names another host, or comes from the page of another site, reaches no vendor."""
    with strict.openai_chat() as server, proxy(tmp_path, server.url) as running:
        refused = [
            {"host": "evil.example"},
            {"host": "evil.example:80"},
            {"host": "127.0.0.1.evil.example"},
            {"origin": "https://evil.example"},
        ]
        for headers in refused:
            assert running.ask("POST", "/chat/completions", json.dumps(ASKED).encode(), **headers).status == 403
        assert running.ask("POST", "http://evil.example/x", json.dumps(ASKED).encode(), host=HOST).status == 400
        assert not server.served
        got = running.ask("POST", "/chat/completions", json.dumps(ASKED).encode(), host=f"localhost:{running.port}")
        assert got.status == 200


def test_websocket_is_refused_with_a_reason(tmp_path: Path) -> None:
    """A request for a WebSocket gets the status after which Codex goes on with HTTP, and reaches no vendor."""
    with strict.openai_responses() as server, proxy(tmp_path, server.url) as running:
        got = running.ask("GET", "/responses", connection="Upgrade", upgrade="websocket", sec_websocket_version="13")
        assert (got.status, json.loads(got.body)["error"]["type"]) == (426, "websocket_refused")
        assert not server.served


def test_client_that_leaves_closes_the_vendors_stream(tmp_path: Path) -> None:
    """When a client leaves in the middle of a stream, the vendor's connection is closed, and what was seen is in the log."""
    left, first = threading.Event(), json.dumps({**ANSWER, "choices": [{"index": 0, "delta": {"content": "one "}}]})

    def answer(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        handler.wfile.write(f"data: {first}\n\n".encode())
        handler.wfile.flush()
        if handler.connection.recv(1) == b"":
            left.set()

    with upstream(answer) as url, proxy(tmp_path, url) as running:
        with closing(running.asked("POST", CHAT, json.dumps({**ASKED, "stream": True}).encode())) as connection:
            got = connection.getresponse()
            assert got.read1().startswith(b"data: ")
            got.close()
        assert left.wait(30)
        running.end()
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        dialog = Session.open(store, record.session_id).root
        assert [header.kind for header in store.headers(dialog.dialog_id)][-2:] == ["custom", "error"]


def test_proxy_that_cannot_record_forwards_and_says_so(tmp_path: Path) -> None:
    """When the store is lost, answers still pass: one line on standard error, and a header in each later answer, say that they are not recorded."""
    with strict.openai_chat() as server, proxy(tmp_path, server.url) as running:
        assert running.ask("POST", "/chat/completions", json.dumps(ASKED).encode()).status == 200
        running.store.unlink()
        for turn in range(1000):  # calls are recorded after their answers: the header comes as soon as one failed
            body = {**ASKED, "messages": [{"role": "user", "content": f"turn {turn}"}]}
            got = running.ask("POST", "/chat/completions", json.dumps(body).encode())
            assert got.status == 200
            if "palaver-not-recorded" in got.headers:
                break
        else:
            pytest.fail("No answer says that its call is not recorded.")
        assert running.end().count("Not recorded") == 1


def test_port_of_another_program_is_refused_in_words(tmp_path: Path) -> None:
    """The error names the port and what to do, without numbers of the system."""
    with create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = run("proxy", "--port", port, "--store", tmp_path / "s.db")
    assert (ran.code, ran.out) == (Exit.INPUT, "")
    assert f"Port {port} cannot be used: another program uses it. Choose another one with --port." in ran.err


def _port(server: StrictServer) -> int:
    return urlsplit(server.url).port or 0


def _at(wire: Wire) -> str:
    return f"http://127.0.0.1:{wire.port}"


def _all(streams: list[bytearray]) -> list[bytes]:
    return [body for stream in streams for body in bodies(bytes(stream))]
