"""The recorder: in which dialog a call is recorded, and how."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from palaver import Session, SqliteStore
from palaver.errors import InvalidMessage
from palaver.proxy.answers import CLIENT_LEFT, MOST_KEPT, AnswerCopy
from palaver.proxy.recorder import ProxiedCall, Recorder
from palaver.session import Dialog

Item: TypeAlias = dict[str, Any]

SYSTEM, OTHER = "You write code.", "You search."
KEY = "sk-recorded-0123456789-ABCDEFGHIJ"


def user(text: str) -> Item:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def said(text: str, *calls: str) -> Item:
    """Return an answer of the model."""
    made = [{"type": "function", "id": call, "function": {"name": "look", "arguments": '{"at": 1}'}} for call in calls]
    return {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}


def result(call: str, text: str) -> Item:
    """Return a result of a call."""
    return {"role": "tool", "tool_call_id": call, "content": text}


class Client:
    """Sends requests of chat completions to a recorder, and answers them."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.recorder = Recorder(store)

    def begin(
        self, *messages: Item, system: str = SYSTEM, session: str = "", keys: frozenset[str] = frozenset()
    ) -> ProxiedCall:
        """Record a request."""
        body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages]}
        call = ProxiedCall("openai-chat", json.dumps(body).encode(), session=session, keys=keys)
        self.recorder.begin(call)
        return call

    def end(self, call: ProxiedCall, answer: Item) -> None:
        """Record its answer."""
        choice = {"index": 0, "message": answer, "finish_reason": "tool_calls" if "tool_calls" in answer else "stop"}
        body = json.dumps({"id": "x", "model": "m", "choices": [choice]}).encode()
        self.recorder.end(call, AnswerCopy(200, {"content-type": "application/json"}, body))

    def ask(
        self,
        *messages: Item,
        answer: Item,
        system: str = SYSTEM,
        session: str = "",
        keys: frozenset[str] = frozenset(),
    ) -> ProxiedCall:
        """Record a request and its answer."""
        call = self.begin(*messages, system=system, session=session, keys=keys)
        self.end(call, answer)
        return call

    @property
    def session(self) -> Session:
        """The only session."""
        (record,) = Session.list(self.store)
        return Session.open(self.store, record.session_id)

    @property
    def dialogs(self) -> list[Dialog]:
        """The dialogs of the only session."""
        return list(self.session.dialogs)


def texts(dialog: Dialog) -> list[str]:
    """Return what is said in a dialog."""
    return [
        message.text_content() or ",".join(call.name for call in message.tool_calls()) for message in dialog.messages
    ]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Return a client over a new store."""
    with SqliteStore(tmp_path / "store.db") as store:
        yield Client(store)


def test_longer_request_continues_its_dialog(client: Client) -> None:
    """A request that repeats what was said and adds to it goes on in the same dialog, each message once; all calls are exact."""
    talk = [user("go")]
    calls = [client.ask(*talk, answer=said("", "c1"))]
    talk += [said("", "c1"), result("c1", "found")]
    calls.append(client.ask(*talk, answer=said("done ")))
    talk += [{**said("done"), "refusal": None}, user("thanks")]  # as a client writes it back
    calls.append(client.ask(*talk, answer=said("bye")))
    (dialog,) = client.dialogs
    assert texts(dialog) == ["go", "look", "found", "done ", "thanks", "bye"]
    assert [call.request().data for call in dialog.calls] == [call.body for call in calls]
    assert [call.request().fields["messages"] for call in dialog.calls] == [
        json.loads(call.body)["messages"] for call in calls
    ]


def test_rewritten_prefix_is_a_fork(client: Client) -> None:
    """A request whose earlier messages differ branches off after the last one that does not, and shares what comes before."""
    client.ask(user("one"), answer=said("1"))
    client.ask(user("one"), said("1"), user("two"), answer=said("2"))
    client.ask(user("one"), said("1"), user("other"), answer=said("3"))
    first, fork = client.dialogs
    assert texts(first) == ["one", "1", "two", "2"]
    assert texts(fork) == ["one", "1", "other", "3"]
    assert (fork.parent, fork.opened.node.relation) == (first, "fork")
    client.ask(user("one"), said("1"), user("two"), said("2"), user("on"), answer=said("4"))
    assert texts(client.dialogs[0])[-1] == "4"


def test_same_request_again_is_a_retry_or_a_fork(client: Client) -> None:
    """A request that got no answer is asked again in its dialog; one that got an answer, or still waits for it, branches off."""
    left = client.begin(user("one"))
    client.recorder.end(left, AnswerCopy(0, {}, b"", CLIENT_LEFT))
    client.ask(user("one"), answer=said("1"))
    assert [texts(dialog) for dialog in client.dialogs] == [["one", "1"]]
    client.ask(user("one"), answer=said("again"))
    waiting = client.begin(user("two"))
    client.ask(user("two"), answer=said("second"))
    client.end(waiting, said("first"))
    assert [texts(dialog) for dialog in client.dialogs] == [
        ["one", "1"],
        ["one", "again"],
        ["two", "first"],
        ["two", "second"],
    ]


def test_subagents_are_told_apart_by_their_instructions(client: Client) -> None:
    """A conversation with other instructions, begun while an agent waits for its tools, is a sub-agent's dialog; both go on in their own."""
    client.ask(user("go"), answer=said("", "c1"))
    client.ask(user("go"), system=OTHER, answer=said("found"))
    client.ask(user("go"), said("", "c1"), result("c1", "found"), answer=said("done"))
    client.ask(user("go"), said("found"), user("more"), system=OTHER, answer=said("nothing"))
    main, sub = client.dialogs
    assert texts(main) == ["go", "look", "found", "done"]
    assert texts(sub) == ["go", "found", "more", "nothing"]
    assert (sub.opened.node.parent_id, sub.opened.node.relation) == (main.dialog_id, "subagent")
    client.ask(user("later"), system=OTHER, answer=said("x"))
    assert client.dialogs[2].opened.node.parent_id is None


def test_main_dialog_is_the_one_that_goes_on(client: Client) -> None:
    """A session shows the conversation that went on last: not a question for a title before it, not a sub-agent, and a fork once it goes on."""
    client.ask(user("title?"), system=OTHER, answer=said("A title"))
    client.ask(user("go"), answer=said("1"))
    assert texts(client.session.root) == ["title?", "A title"]
    client.ask(user("go"), said("1"), user("two"), answer=said("", "c1"))
    client.ask(user("sub"), system="Search.", answer=said("s"))
    client.ask(user("sub"), said("s"), user("more"), system="Search.", answer=said("t"))
    assert texts(client.session.root)[:2] == ["go", "1"]
    client.ask(user("go"), said("1"), user("other"), answer=said("3"))
    assert texts(client.session.root)[-1] == "look"
    client.ask(user("go"), said("1"), user("other"), said("3"), user("on"), answer=said("4"))
    assert texts(client.session.root)[-1] == "4"


def test_changed_instructions_continue_the_dialog(client: Client) -> None:
    """Where an answer of the model is shared, other instructions are those in force from there on."""
    client.ask(user("one"), answer=said("1"))
    client.ask(user("one"), said("1"), user("two"), system=OTHER, answer=said("2"))
    (dialog,) = client.dialogs
    systems = ["".join(getattr(block.content, "content", "") for block in call.view().system) for call in dialog.calls]
    assert systems == [SYSTEM, OTHER]


def test_another_process_continues_the_dialog(client: Client) -> None:
    """A proxy that starts again goes on in the dialogs of a named session, and forks from them."""
    client.ask(user("one"), answer=said("1"), session="named")
    client.ask(user("one"), said("1"), user("two"), answer=said("2"), session="named")
    again = Client(client.store)
    again.ask(user("one"), said("1"), user("two"), said("2"), user("three"), answer=said("3"), session="named")
    again.ask(user("one"), said("1"), user("other"), answer=said("4"), session="named")
    assert [texts(dialog) for dialog in again.dialogs] == [
        ["one", "1", "two", "2", "three", "3"],
        ["one", "1", "other", "4"],
    ]
    assert [len(dialog.calls) for dialog in again.dialogs] == [3, 2]


def test_another_writer_is_read_first(client: Client) -> None:
    """Where another program continued the dialog, nothing of it is lost: the call goes on after it, or branches off."""
    client.ask(user("one"), answer=said("1"), session="named")
    client.session.root.put_text("from elsewhere")
    client.ask(user("one"), said("1"), user("two"), answer=said("2"), session="named")
    assert [texts(dialog) for dialog in client.dialogs] == [["one", "1", "from elsewhere"], ["one", "1", "two", "2"]]


def test_answer_after_another_writer_is_on_a_branch(client: Client) -> None:
    """Where another program continues the dialog while the vendor answers, the answer is on a branch after its call, and the next request follows it."""
    waiting = client.begin(user("one"), session="named")
    client.session.root.put_text("from elsewhere")
    client.end(waiting, said("1"))
    client.ask(user("one"), said("1"), user("two"), answer=said("2"), session="named")
    main, branch = client.dialogs
    assert texts(main) == ["one", "from elsewhere"]
    assert texts(branch) == ["one", "1", "two", "2"]
    assert branch.calls[0].request().data == waiting.body


@pytest.mark.parametrize("name", ["previous_response_id", "conversation"])
def test_conversation_kept_by_the_vendor_is_continued(client: Client, name: str) -> None:
    """A request of Responses that names the answer or the conversation before it, and repeats nothing, goes on in that dialog."""
    for number in (1, 2):
        kept: Item = {"conversation": {"id": "conv_1"}} if name == "conversation" else {}
        kept |= {name: "resp_1"} if number == 2 and not kept else {}
        body = {"model": "gpt-5", "input": f"question {number}", **kept}
        call = ProxiedCall("openai-responses", json.dumps(body).encode())
        client.recorder.begin(call)
        text = {"type": "output_text", "text": f"answer {number}", "annotations": []}
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
        answer = {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "model": "gpt-5",
            "output": [item],
        }
        client.recorder.end(call, AnswerCopy(200, {}, json.dumps(answer).encode()))
    (dialog,) = client.dialogs
    assert texts(dialog) == ["question 1", "answer 1", "question 2", "answer 2"]


def test_tools_in_the_conversation_are_known(client: Client) -> None:
    """The tools of a request are those of its field and those that an item of Responses adds; Codex sends all in such an item, in groups."""
    group = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [group]}
    asked = {"role": "user", "content": "go"}
    for items, tools in (([added, asked], []), ([asked, added], [{"type": "function", "name": "look"}])):
        body = {"model": "gpt-5", "input": items, "tools": tools}
        client.recorder.begin(ProxiedCall("openai-responses", json.dumps(body).encode()))
    assert [[tool.name for tool in dialog.view().tools] for dialog in client.dialogs] == [["exec"], ["look", "exec"]]


def test_marks_and_thinking_make_no_fork(client: Client) -> None:
    """Cache marks that move, and thinking that a client leaves out, do not make it another conversation."""
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]}
    ]
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    for turn in range(3):
        body = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": messages}
        call = ProxiedCall("anthropic", json.dumps(body).encode())
        client.recorder.begin(call)
        content = [thought, {"type": "text", "text": f"answer {turn}"}]
        answer = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "end_turn",
            "content": content,
            "usage": {},
        }
        client.recorder.end(call, AnswerCopy(200, {}, json.dumps(answer).encode()))
        messages = [json.loads(json.dumps(message)) for message in messages]
        messages[-1]["content"][0].pop("cache_control")
        asked = {"type": "text", "text": f"question {turn}", "cache_control": {"type": "ephemeral"}}
        messages += [{"role": "assistant", "content": content[1:]}, {"role": "user", "content": [asked]}]
    (dialog,) = client.dialogs
    assert texts(dialog) == ["go", "answer 0", "question 0", "answer 1", "question 1", "answer 2"]


def test_keys_are_nowhere_in_the_store(client: Client, tmp_path: Path) -> None:
    """A key that a request uses is taken out of all that is written, also where the model reads it; the request then says that it was redacted."""
    call = client.begin(user(f"my key is {KEY}"), keys=frozenset({KEY}))
    client.end(call, said(f"you said {KEY}"))
    client.ask(user(f"my key is {KEY}"), said(f"you said {KEY}"), user("so"), answer=said("yes"), keys=frozenset({KEY}))
    (dialog,) = client.dialogs
    assert texts(dialog)[:2] == ["my key is [redacted:key]", "you said [redacted:key]"]
    client.store.close()
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.iterdir())


BROKEN = (
    b"",
    b"[]",
    b"{",
    b'{"model": "m"}',
    b'{"messages": 3}',
    b'{"messages": [1]}',
    b"\xff",
    b'{"messages": [{"role": 1}]}',
)


@pytest.mark.parametrize("api", ["openai-chat", "openai-responses", "anthropic", "gemini", "gemini-interactions"])
def test_body_that_is_no_request_is_not_recorded(client: Client, api: str) -> None:
    """A body that is not a request of its API is refused with a reason, and nothing is written."""
    for body in BROKEN:
        with pytest.raises(InvalidMessage):
            client.recorder.begin(ProxiedCall(api, body))
    assert not Session.list(client.store)


def test_compressed_request_is_recorded_as_its_text(client: Client) -> None:
    """A request with a content encoding is recorded as the text it encodes; one that is damaged, or whose encoding is not known, is refused."""
    body = json.dumps({"model": "m", "messages": [user("go")]}).encode()
    client.recorder.begin(ProxiedCall("openai-chat", gzip.compress(body), encoding="gzip"))
    assert client.dialogs[0].calls[0].request().data == body
    with pytest.raises(InvalidMessage):
        client.recorder.begin(ProxiedCall("openai-chat", body, encoding="gzip"))
    with pytest.raises(InvalidMessage, match="encoded as lzma"):
        client.recorder.begin(ProxiedCall("openai-chat", body, encoding="lzma"))
    with pytest.raises(InvalidMessage, match="larger than 64 MB"):
        client.recorder.begin(ProxiedCall("openai-chat", gzip.compress(b" " * (MOST_KEPT + 1)), encoding="gzip"))
