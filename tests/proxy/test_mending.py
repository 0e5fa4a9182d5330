"""Mending: what `--mend` and `--budget` change, against servers that refuse what the vendors refuse."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from palaver import Session, SqliteStore
from palaver.errors import InvalidMessage
from palaver.log.entries import Custom
from palaver.proxy.mending import Mended, RequestMender
from palaver.proxy.recorder import MENDED
from palaver.session import Dialog
from palaver.testing import strict
from tests.proxy.running import Got, Running, proxy

Item: TypeAlias = dict[str, Any]
CLAUDE, STRICT = "/v1/messages", "claude-opus-5-5"
TOOL = {"name": "look", "description": "Look.", "input_schema": {"type": "object", "properties": {}}}


def use(call: str) -> Item:
    """Return a call."""
    return {"type": "tool_use", "id": call, "name": "look", "input": {}}


def result(call: str) -> Item:
    """Return a result."""
    return {"type": "tool_result", "tool_use_id": call, "content": "found"}


def ask(running: Running, messages: Sequence[Item], **fields: Any) -> Got:  # noqa: ANN401 - fields of a body
    """Ask the strict server through the proxy."""
    body = {"model": STRICT, "max_tokens": 2000, "tools": [TOOL], "messages": messages, **fields}
    return running.ask("POST", CLAUDE, json.dumps(body).encode(), anthropic_version="2026-10-21", x_api_key="key")


def changes(dialog: Dialog) -> list[str]:
    """Return what the log says was mended."""
    entries = (dialog.recall(f"{dialog.dialog_id}:{seq}") for seq in range(dialog.opened.last.seq + 1))
    return [
        change
        for entry in entries
        if isinstance(entry, Custom) and entry.custom_type == MENDED
        for change in entry.data["changes"]
    ]


def newest(running: Running) -> Dialog:
    """Return the only dialog of a proxy that ended."""
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        dialog = Session.open(store, record.session_id).root
        assert len(Session.open(store, record.session_id).dialogs) == 1
        dialog.calls[len(dialog.calls) - 1].request()
        return dialog


BROKEN: dict[str, list[Item]] = {
    "a result without a call": [{"role": "user", "content": [result("gone"), {"type": "text", "text": "hi"}]}],
    "a call without a result": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [use("a")]}, {"role": "user", "content": "on"}],
    "an id that is no id": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [use("a.b c")]}, {"role": "user", "content": [result("a.b c")]}],
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_refused_pairs_and_ids_are_mended(tmp_path: Path, fault: str) -> None:
    """A list whose pairs or ids the vendor refuses is accepted with `--mend`; header and log say what was changed, and the log has the client's words.

    Without it, the vendor's refusal passes. The next request, which repeats the fault, continues the same dialog.
    """
    messages = BROKEN[fault]
    with strict.anthropic() as server:
        with proxy(tmp_path / "plain", server.url) as plain:
            got = ask(plain, messages)
            assert (got.status, "palaver-mended" in got.headers) == (400, False)
        with proxy(tmp_path / "mended", server.url, mender=RequestMender(mend=True)) as running:
            server.answers("fine")
            got = ask(running, messages)
            assert got.status == 200
            assert got.headers["palaver-mended"]
            said = json.loads(got.body)["content"]
            server.answers("still fine")
            assert (
                ask(
                    running, [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": "more"}]
                ).status
                == 200
            )
            assert running.end() == ""
        dialog = newest(running)
    with SqliteStore(running.store) as store:
        dialog = Session.open(store, dialog.session_id).root
        assert len(changes(dialog)) == 2
        assert [call.request().data for call in dialog.calls] == [
            json.dumps(served.asked.body, separators=(",", ":")).encode() for served in server.served[1:]
        ]


def test_sound_requests_are_not_touched(tmp_path: Path) -> None:
    """With `--mend`, a request that the vendor accepts goes to it byte for byte, and no header says otherwise."""
    odd = b'{ "max_tokens":9,  "model":"claude-opus-5-5","messages":[{"role":"user","content":"\\u0068i"}]}'
    assert RequestMender(mend=True).mended("anthropic", odd) == Mended()
    with strict.anthropic() as server, proxy(tmp_path, server.url, mender=RequestMender(mend=True)) as running:
        got = ask(running, [{"role": "user", "content": "hi"}])
        assert (got.status, "palaver-mended" in got.headers) == (200, False)


def test_thinking_with_a_changed_prefix_is_removed(tmp_path: Path) -> None:
    """Thinking whose prefix the client changed is refused by a vendor that checks; mended, all of it leaves and nothing else, and newer thinking stays."""
    with strict.anthropic() as server, proxy(tmp_path, server.url, mender=RequestMender(mend=True)) as running:
        messages: list[Item] = [{"role": "user", "content": "one"}]
        for turn in range(3):
            server.answers([{"type": "thinking", "thinking": f"hm {turn}"}, f"answer {turn}"])
            got = ask(running, messages)
            assert (got.status, "palaver-mended" in got.headers) == (200, False)
            messages = [
                *messages,
                {"role": "assistant", "content": json.loads(got.body)["content"]},
                {"role": "user", "content": f"more {turn}"},
            ]
        messages[2] = {"role": "user", "content": "something else"}
        for turn in range(3, 5):
            server.answers([{"type": "thinking", "thinking": f"hm {turn}"}, f"answer {turn}"])
            got = ask(running, messages)
            assert got.status == 200
            assert got.headers["palaver-mended"].startswith("messages[3]: its thinking was removed")
            messages = [
                *messages,
                {"role": "assistant", "content": json.loads(got.body)["content"]},
                {"role": "user", "content": f"more {turn}"},
            ]
        assert not server.refused
        sent = server.served[-1].asked.body["messages"]
        assert [message["content"][0]["type"] == "thinking" for message in sent[1::2]] == [True, False, False, True]


def test_request_is_fitted_to_a_budget(tmp_path: Path) -> None:
    """With `--budget`, a long list is made to fit and stays valid; the log keeps all of it, and header and log give the sizes."""
    messages: list[Item] = [{"role": "user", "content": "start"}]
    for number in range(30):
        messages += [
            {"role": "assistant", "content": [use(f"c{number}")]},
            {"role": "user", "content": [{**result(f"c{number}"), "content": "word " * 300}]},
        ]
    with strict.anthropic() as server, proxy(tmp_path, server.url, mender=RequestMender(budget=4000)) as running:
        got = ask(running, messages)
        assert got.status == 200
        assert "tokens fitted to" in got.headers["palaver-mended"]
        assert len(json.dumps(server.served[0].asked.body)) < len(json.dumps(messages)) / 2
        running.end()
    with SqliteStore(running.store) as store:
        (record,) = Session.list(store)
        dialog = Session.open(store, record.session_id).root
        assert len(dialog.messages) == 62
        assert "tokens fitted to" in changes(dialog)[0]


def test_budget_that_is_too_small_is_said(tmp_path: Path) -> None:
    """Where nothing fits, the request goes as it is, and the header says so."""
    with strict.anthropic() as server, proxy(tmp_path, server.url, mender=RequestMender(budget=10)) as running:
        got = ask(running, [{"role": "user", "content": "word " * 100}])
        assert got.status == 200
        assert got.headers["palaver-mended"].startswith("nothing: A budget of 10 tokens is too small")


def test_what_is_no_json_is_not_mended() -> None:
    """A body that is not a JSON object is not mended."""
    with pytest.raises(InvalidMessage):
        RequestMender(mend=True).mended("anthropic", b"[]")
