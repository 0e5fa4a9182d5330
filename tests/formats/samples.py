"""Small files of every foreign format, each with the traps of its format."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STAMP = "2026-01-02T03:04:{:02d}.000Z"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def jsonl(*records: object) -> bytes:
    """Return records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def document(value: object) -> bytes:
    """Return a JSON document."""
    return json.dumps(value).encode()


def tar(files: Mapping[str, object]) -> bytes:
    """Return an archive; a file that is not bytes is a JSON document, and None a folder."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, value in files.items():
            data = value if isinstance(value, bytes) else b"" if value is None else document(value)
            about = tarfile.TarInfo(name)
            about.size, about.type = len(data), tarfile.DIRTYPE if value is None else tarfile.REGTYPE
            archive.addfile(about, io.BytesIO(data))
    return held.getvalue()


# --- Claude Code ----------------------------------------------------------------------------------------------------------


def text(words: str) -> dict[str, Any]:
    """Return a text block of Anthropic's."""
    return {"type": "text", "text": words}


def call(call_id: str, name: str = "Bash", **arguments: object) -> dict[str, Any]:
    """Return a call of Anthropic's."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "ls"}}


class Claude:
    """Writes a Claude Code session; each record follows the one before unless told otherwise."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._last: str | None = None

    def record(self, kind: str, uuid: str, *, after: str | None = "", **values: Any) -> None:  # noqa: ANN401
        """Add a record of the chain."""
        base = {
            "parentUuid": self._last if after == "" else after,
            "isSidechain": False,
            "cwd": "/home/u/project",
            "sessionId": "session-1",
            "version": "2.1.36",
            "type": kind,
            "uuid": uuid,
            "timestamp": STAMP.format((len(self.records) + 1) % 60),
        }
        self.records.append(base | values)
        self._last = uuid

    def user(self, uuid: str, content: object, **values: Any) -> None:  # noqa: ANN401
        """Add words of the user."""
        self.record("user", uuid, message={"role": "user", "content": content}, **values)

    def result(self, uuid: str, call: str, content: object = "done", **values: Any) -> None:  # noqa: ANN401
        """Add the result of a tool."""
        block = {"tool_use_id": call, "type": "tool_result", "content": content, "is_error": False}
        self.user(uuid, [block], toolUseResult={"stdout": content}, **values)

    def model(self, uuid: str, response: str, *blocks: Mapping[str, Any], output: int = 1, **values: Any) -> None:  # noqa: ANN401
        """Add a fragment of a response."""
        usage = {"input_tokens": 3, "cache_read_input_tokens": 100, "output_tokens": output}
        about = {
            "model": values.pop("model", "claude-opus-4-6"),
            "id": response,
            "type": "message",
            "role": "assistant",
        }
        message = {**about, "content": list(blocks), "stop_reason": None, "usage": usage}
        self.record("assistant", uuid, message=message, requestId="req", **values)

    def other(self, **values: Any) -> None:  # noqa: ANN401
        """Add a record that stands outside the chain."""
        self.records.append(values)

    def bytes(self) -> bytes:
        """Return the file."""
        return jsonl(*self.records)


def claude() -> bytes:
    """Return a session with a rewind, a sub-agent, cleared results, a compaction, a picture, modes, titles and a queued word."""
    session = Claude()
    session.other(type="summary", summary="A summary", leafUuid="x")
    session.user("u1", "Go.", permissionMode="plan")
    session.model("a1", "m1", text("I look."))
    session.model("a2", "m1", call("t1", "Task", prompt="P", subagent_type="reviewer"), call("t2"), output=9)
    session.user("s1", "P", after=None, isSidechain=True)
    session.model("s2", "ms", call("ts", "Read", path="a"), isSidechain=True)
    session.result("s3", "ts", "content", isSidechain=True)
    session.result("r1", "t1", after="a2")
    session.result("r2", "t2", "a.txt", after="a2")
    cleared = {"compactedToolIds": ["t2"], "preTokens": 90}
    session.record("system", "b0", subtype="microcompact_boundary", microcompactMetadata=cleared)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    session.user("u2", [picture, text("See."), {"type": "hologram", "depth": 3}])
    session.user("u3", "Else.", after="b0", permissionMode="default")
    session.other(type="queue-operation", operation="enqueue", content="This too.", timestamp=STAMP.format(40))
    session.record("progress", "p1", data={"type": "bash_progress", "output": "x"})
    about = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9000}}
    session.record("system", "b1", after=None, logicalParentUuid="p1", content="Compacted", **about)
    session.user("c1", "Sum.", isCompactSummary=True)
    session.user("h1", "<local-command-stdout>Bye.</local-command-stdout>", isMeta=True)
    session.model("a3", "m2", text("Done."), model="claude-haiku-4-5")
    session.model("e1", "id", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    session.other(type="custom-title", customTitle="My title", sessionId="session-1")
    return session.bytes()


# --- Codex ----------------------------------------------------------------------------------------------------------------


def codex(*records: tuple[str, Mapping[str, Any]]) -> bytes:
    """Return a rollout: its head, and records as (type, payload)."""
    head = {
        "id": "thread-1",
        "timestamp": STAMP.format(0),
        "cwd": "/home/u/project",
        "cli_version": "0.142.2",
        "model_provider": "openai",
        "base_instructions": {"text": "You are Codex."},
    }
    found = enumerate([("session_meta", head), *records])
    return jsonl(*({"timestamp": STAMP.format(n), "type": kind, "payload": dict(one)} for n, (kind, one) in found))


def item(kind: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Return a response item."""
    return "response_item", {"type": kind, **values}


def said(role: str, words: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Return a message item."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": words}], **values)


def event(kind: str, **values: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    """Return an event of the screen."""
    return "event_msg", {"type": kind, **values}


def tokens(last: int, total: int) -> tuple[str, dict[str, Any]]:
    """Return a count of tokens."""
    last_one, all_of_them = ({"input_tokens": n, "cached_input_tokens": 0, "output_tokens": 1} for n in (last, total))
    return event("token_count", info={"last_token_usage": last_one, "total_token_usage": all_of_them})


def rollout() -> bytes:
    """Return a rollout with the screen's mirror, a response of several items, a compaction and a rollback."""
    return codex(
        ("turn_context", {"model": "gpt-5.5", "effort": "low", "approval_policy": "never"}),
        said("developer", "<permissions instructions>All.</permissions instructions>"),
        said("user", "# AGENTS.md instructions for /home/u/project\n\nBe kind."),
        said("user", "Go."),
        event("user_message", message="Go."),
        item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content="gAb1" * 40),
        item("function_call", call_id="c", name="shell", arguments='{"command": "ls"}'),
        item("function_call_output", call_id="c", output="x"),
        tokens(5, 5),
        ("compacted", {"message": "", "replacement_history": [said("user", "Go.")[1], {"type": "compaction"}]}),
        said("assistant", "Done.", phase="final_answer"),
        event("thread_rolled_back", num_turns=1),
        said("user", "Else."),
        event("error", message="stream disconnected"),
    )


# --- pi -------------------------------------------------------------------------------------------------------------------


class Pi:
    """Writes a pi session; with `tree`, each entry has an id and follows the one before unless told otherwise."""

    def __init__(self, *, tree: bool = False) -> None:
        head: dict[str, Any] = {"type": "session", "id": "session-1", "timestamp": STAMP.format(0), "cwd": "/home/u"}
        flat = {"provider": "anthropic", "modelId": "claude-sonnet-4-5", "thinkingLevel": "off"}
        self.records = [head | ({"version": 3} if tree else flat)]
        self._tree = tree
        self._last: str | None = None

    def add(self, kind: str, *, key: str = "", after: str | None = "", **values: Any) -> Pi:  # noqa: ANN401
        """Add an entry."""
        record: dict[str, Any] = {"type": kind, "timestamp": STAMP.format(len(self.records))}
        if self._tree:
            record |= {"id": key, "parentId": self._last if after == "" else after}
            self._last = key
        self.records.append(record | values)
        return self

    def user(self, words: str, **where: Any) -> Pi:  # noqa: ANN401
        """Add words of the user."""
        return self.add("message", message={"role": "user", "content": [text(words)]}, **where)

    def model(self, *blocks: dict[str, Any], key: str = "", after: str | None = "", **values: Any) -> Pi:  # noqa: ANN401
        """Add a response."""
        cost = {"input": 0.1, "output": 0.2, "total": 0.3}
        usage = {"input": 3, "output": 9, "cacheRead": 100, "cacheWrite": 5, "cost": cost}
        about = {"provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage, "stopReason": "stop"}
        message = {"role": "assistant", "content": list(blocks), **about, **values}
        return self.add("message", message=message, key=key, after=after)

    def result(self, call: str, words: str, **where: Any) -> Pi:  # noqa: ANN401
        """Add the result of a tool."""
        about = {"role": "toolResult", "toolCallId": call, "toolName": "read", "details": {"lines": 3}}
        return self.add("message", message={**about, "content": [text(words)], "isError": False}, **where)

    def bytes(self) -> bytes:
        """Return the file."""
        return jsonl(*self.records)


def pi_call(call_id: str) -> dict[str, Any]:
    """Return a call of pi's."""
    return {"type": "toolCall", "id": call_id, "name": "read", "arguments": {"path": "a"}}


def pi() -> bytes:
    """Return a tree with two branches, a compaction, a label, a change of the model and an unknown entry."""
    tree = Pi(tree=True).user("One.", key="1").model(text("1"), pi_call("t"), key="2").result("t", "abc", key="3")
    tree.user("Two.", key="4").user("Rather three.", key="5", after="3")
    tree.add("model_change", key="6", provider="openai", modelId="gpt-5")
    tree.add("label", key="7", targetId="1", label="here")
    tree.add("compaction", key="8", summary="Sum.", firstKeptEntryId="5", tokensBefore=9)
    return tree.user("Four.", key="9").add("from_the_future", key="10", x=1).bytes()


# --- lists of messages ------------------------------------------------------------------------------------------------------


def chat_call(call_id: str, name: str = "look", **arguments: object) -> dict[str, Any]:
    """Return a call of chat completions."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def chat() -> list[dict[str, Any]]:
    """Return a conversation of chat completions: two calls with the same id, and their results."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is there?"},
        {"role": "assistant", "content": None, "tool_calls": [chat_call("c1", where="here")]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a stone"},
        {"role": "assistant", "content": "A stone; I look again.", "tool_calls": [chat_call("c1", where="there")]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a tree"},
        {"role": "assistant", "content": "A tree."},
    ]


def anthropic() -> list[dict[str, Any]]:
    """Return a conversation of Anthropic's interface."""
    return [
        {"role": "user", "content": "What is there?"},
        {"role": "assistant", "content": [text("I look."), call("toolu_1", "look", where="here")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a stone"}]},
        {"role": "assistant", "content": [text("A stone.")]},
    ]


def tau(count: int = 2) -> list[dict[str, Any]]:
    """Return results of τ-bench: trials of one task."""
    return [
        {"task_id": 7, "reward": 1.0, "info": {"user_cost": 0.01 * (n + 1)}, "traj": chat(), "trial": n}
        for n in range(count)
    ]


def tau2(count: int = 2) -> dict[str, Any]:
    """Return results of τ²-bench, in which both sides call, one of them twice at once."""

    def call_of(side: str, *ids: str) -> dict[str, Any]:
        calls = [{"id": one, "name": f"{side}_tool", "arguments": {"n": 1}, "requestor": side} for one in ids]
        return {"role": side, "content": None, "tool_calls": calls}

    def result_of(side: str, call_id: str, content: str, *, error: bool = False) -> dict[str, Any]:
        return {"id": call_id, "role": "tool", "content": content, "requestor": side, "error": error}

    used = {"usage": {"completion_tokens": 5, "prompt_tokens": 90}}
    acted = {"cost": 0.125, "raw_data": {"finish_reason": "tool_calls", "message": {}}}
    both = [result_of("assistant", "a1", "one"), result_of("assistant", "a2", "two")]
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Hi!", "cost": 0.0, "usage": None},
        {"role": "user", "content": "It is slow.", "cost": 0.25, **used},
        call_of("assistant", "a1", "a2"),
        {"role": "tool", "tool_messages": both},
        {"role": "assistant", "content": "Look at your phone.", "cost": 0.5, **used},
        {**call_of("user", "u1"), **used, **acted},
        result_of("user", "u1", "no signal", error=True),
        {"role": "user", "content": "No signal."},
    ]
    said_at = [{**one, "turn_idx": n, "timestamp": f"2026-01-01T00:00:{n:02d}"} for n, one in enumerate(messages)]
    info = {
        "agent_info": {"llm": "gpt-4.1"},
        "user_info": {"llm": "gpt-4.1-mini", "global_simulation_guidelines": "Play a customer."},
        "environment_info": {"domain_name": "telecom", "policy": "Help politely.", "tool_defs": None},
    }
    about = {"task_id": "t", "start_time": "2026-01-01T00:00:00", "messages": said_at}
    runs = [{"id": f"run-{n}", "trial": n, **about} for n in range(count)]
    return {"timestamp": "2026-01-01T00:00:00", "info": info, "tasks": [{"id": "t"}], "simulations": runs}


def mini() -> dict[str, Any]:
    """Return a trajectory of mini-SWE-agent whose last call has no result."""

    def answer(number: int) -> dict[str, Any]:
        usage = {"prompt_tokens": 100 * number, "completion_tokens": 7}
        choices = [{"finish_reason": "tool_calls", "message": {}}]
        response = {"id": f"resp-{number}", "model": "deepseek-chat", "choices": choices, "usage": usage}
        extra = {"actions": [], "response": response, "cost": 0.5, "timestamp": 1700000000.0 + number}
        calls = [chat_call(f"c{number}", "bash", command="ls")]
        return {"role": "assistant", "content": "I look.", "tool_calls": calls, "function_call": None, "extra": extra}

    result = {"returncode": 1, "raw_output": "a.txt", "timestamp": 1700000001.5, "exception_info": "timed out"}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Mend it."},
        answer(1),
        {"role": "tool", "tool_call_id": "c1", "content": "<output>a.txt</output>", "extra": result},
        answer(2),
        {"role": "exit", "content": "a diff", "extra": {"exit_status": "Submitted", "submission": "a diff"}},
    ]
    info = {"mini_version": "2.2.7", "exit_status": "Submitted", "config": {"environment": {"cwd": "/testbed"}}}
    about = {"trajectory_format": "mini-swe-agent-1.1", "instance_id": "repo__7"}
    return {"info": info, "messages": messages, **about}


def swe() -> dict[str, Any]:
    """Return a trajectory of SWE-agent: a demonstration, commands as text with their output in the role user, and tool calls."""
    call_of = {"tool_calls": [chat_call("c1", "bash", command="ls")], "action": "ls", "agent": "main"}
    history = [
        {"role": "system", "content": "Work in a shell.", "agent": "main"},
        {"role": "user", "content": "Here is a demonstration.", "agent": "main", "is_demo": True},
        {"role": "assistant", "content": "ls", "thought": "", "action": "ls", "agent": "main", "is_demo": True},
        {"role": "user", "content": "Issue: it fails.", "agent": "main"},
        {"role": "assistant", "content": "I look.\nls", "thought": "I look.", "action": "ls", "agent": "main"},
        {"role": "user", "content": "Issue: none\na.txt", "agent": "main", "message_type": "observation"},
        {"role": "assistant", "content": "Again.", **call_of},
        {"role": "tool", "content": "a.txt", "agent": "main", "tool_call_ids": ["c1"]},
    ]
    steps = [{"action": "ls", "observation": "a.txt", "response": "I look.\nls", "state": "{}", "thought": "I look."}]
    return {"environment": "swe_main", "trajectory": steps, "history": history, "info": {"exit_status": "submitted"}}


TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


def snapshot(number: int, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call that OpenHands logged."""
    usage = {"prompt_tokens": 10 * number, "completion_tokens": 3}
    choice = {"finish_reason": "stop", "index": 0, "message": dict(answer)}
    response = {"id": f"resp-{number}", "model": "claude", "choices": [choice], "usage": usage}
    about = {"args": [], "kwargs": {"tools": [TOOL], "temperature": 0.5}, "cost": 0.25}
    return {"messages": list(messages), "response": response, "timestamp": 1700000000.0 + number, **about}


def as_sent(message: Mapping[str, Any], *, mark: bool = False) -> dict[str, Any]:
    """Return a message as OpenHands sends it: text as parts, perhaps with a cache mark."""
    return {
        **message,
        "content": [text(message["content"]) | ({"cache_control": {"type": "ephemeral"}} if mark else {})],
    }


def series() -> list[dict[str, Any]]:
    """Return the calls of a run of OpenHands: three that grow, with a moving cache mark."""
    talk: list[dict[str, Any]] = [{**one, "content": one["content"] or "I look."} for one in chat()]
    return [
        snapshot(1, [as_sent(talk[0], mark=True), as_sent(talk[1], mark=True)], talk[2]),
        snapshot(2, [as_sent(talk[0], mark=True), *map(as_sent, talk[1:3]), as_sent(talk[3], mark=True)], talk[4]),
        snapshot(3, [*map(as_sent, talk[:5]), as_sent(talk[5], mark=True)], talk[6]),
    ]


def calls(found: Sequence[object]) -> bytes:
    """Return an archive of calls of OpenHands."""
    return tar({f"call-{number}.json": one for number, one in enumerate(found)})


VALUES: dict[str, Callable[[], Any]] = {
    "tau-bench": tau,
    "tau2-bench": tau2,
    "mini-swe-agent": mini,
    "swe-agent": swe,
    "openhands-llm-calls": series,
    "chat-completions": chat,
    "anthropic-messages": lambda: {"system": "Be brief.", "messages": anthropic(), "tools": []},
}
"""The value of a small file of each format that is a document, or an archive of documents."""

LINES: dict[str, Callable[[], bytes]] = {"claude-code": claude, "codex": rollout, "pi": pi}
"""A small file of each format that is JSON lines."""


def packed(kind: str, value: Any) -> bytes:  # noqa: ANN401
    """Return the file of a format that holds a value."""
    return calls(value) if kind == "openhands-llm-calls" else document(value)


def sample(kind: str) -> bytes:
    """Return a small file of a format."""
    return LINES[kind]() if kind in LINES else packed(kind, VALUES[kind]())


KINDS = (*LINES, *VALUES)
