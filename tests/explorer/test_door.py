"""The door: whose requests are answered, and what every response carries."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from palaver import SqliteStore
from palaver.explorer.api import Explored
from palaver.explorer.door import HEADERS, MOST_BYTES, Door
from palaver.explorer.server import application
from tests.explorer.running import stocked

HOST = "127.0.0.1:8123"
OURS = {"Origin": f"http://{HOST}"}
PATHS = ("/", "/app.js", "/api/about", "/api/login", "/api/nowhere", "/nowhere/")


@pytest.fixture
def door(tmp_path: Path) -> Door:
    """Return the door of an explorer over a small store."""
    stocked(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", read_only=True)
    return Door(application(Explored(store=store, url=str(store.path), name="store.db")), 8123)


@pytest.fixture
def page(door: Door) -> TestClient:
    """Return a client without a cookie."""
    return TestClient(door, base_url=f"http://{HOST}")


FOREIGN = [
    {"Host": "localhost:8123"},
    {"Host": "127.0.0.1"},
    {"Host": "127.0.0.1:8124"},
    {"Host": "evil.example:8123"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:8124"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    OURS | {"Sec-Fetch-Site": "cross-site"},
    OURS | {"Host": "evil.example"},
]


def test_foreign_requests_are_refused(page: TestClient, door: Door) -> None:
    """Whatever they ask, and also with the cookie; what may change something must prove where it comes from."""
    page.cookies.update(page.post("/api/login", json={"token": door.token}, headers=OURS).cookies)
    for path in PATHS:
        for headers in FOREIGN:
            for method in ("GET", "POST", "OPTIONS"):
                assert page.request(method, path, headers=headers).status_code == 403, (method, path, headers)
        assert page.post(path).status_code == page.delete(path).status_code == 403, path
    assert page.get("/api/about", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    assert page.get("/api/about", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_token_is_good_for_one_login(page: TestClient, door: Door) -> None:
    """It gives a cookie that scripts cannot read; used again it is refused, a wrong one spends nothing, and the page's files need none."""
    assert [page.get(path).status_code for path in PATHS] == [200, 200, 401, 404, 401, 404]
    for wrong in ('{"token": "x"}', '{"token": "\\ud800"}', '{"token": null}', "{}", "[]", "{"):
        assert page.post("/api/login", content=wrong, headers=OURS).status_code in {400, 403}
    answer = page.post("/api/login", json={"token": door.token}, headers=OURS)
    cookie = answer.headers["Set-Cookie"]
    assert (answer.status_code, len(cookie.partition(";")[0])) == (204, len("palaver_8123=") + 64)
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert "Expires" not in cookie
    assert page.post("/api/login", json={"token": door.token}, headers=OURS).status_code == 403
    about = page.get("/api/about").json()
    assert about["option"] == ""
    page.cookies.clear()
    assert page.get("/api/about", headers={b"Cookie": b"palaver_8123=0; palaver_8123=\xfc"}).status_code == 401


def test_every_response_has_the_headers(page: TestClient, door: Door) -> None:
    """Also errors of any kind; a method, a word or a body that has no place here is an error of its own."""
    page.cookies.update(page.post("/api/login", json={"token": door.token}, headers=OURS).cookies)
    asked = [page.request(method, path, headers=OURS) for path in PATHS for method in ("GET", "HEAD", "POST", "PUT")]
    asked += [
        page.get("/api/about?colour=red"),
        page.get("/api/dance"),
        page.post("/api/seen", content=b"{", headers=OURS),
        page.post("/api/index?force=1", headers=OURS),
        page.post("/api/seen", json={"session": "x", "messages": 1}, headers=OURS),
        page.post("/api/seen", content=b"x" * (MOST_BYTES + 1), headers=OURS),
        page.get("/", headers={"If-None-Match": page.get("/").headers["ETag"]}),
        page.get("/", headers={"Host": "evil.example"}),
    ]
    assert [answer.status_code for answer in asked[-8:]] == [400, 404, 400, 400, 400, 413, 304, 403]
    assert {answer.status_code for answer in asked if answer.request.method == "PUT"} == {405}
    for answer in asked:
        assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS), answer.request
        assert answer.headers["Cache-Control"] == ("no-cache" if "ETag" in answer.headers else "no-store")
        if answer.status_code >= 400 and answer.request.method != "HEAD":
            assert {"kind", "message", "hint"} <= set(answer.json()["error"]), answer.request
    assert page.head("/").headers["Content-Length"] == str(len(page.get("/").content))


def test_a_defect_is_told_on_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    """The client learns that there was one."""

    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ValueError("the secret path")

    answer = TestClient(Door(broken, 8123), base_url=f"http://{HOST}").get("/")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "Defect")
    assert "secret" not in answer.text
    assert "ValueError: the secret path" in capsys.readouterr().err
