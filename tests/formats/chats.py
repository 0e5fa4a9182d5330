"""Small files of the formats that are lists of messages, and what importing them comes to."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from palaver.ids import BlobId
from palaver.store.memory import MemoryStore
from palaver.transcripts import Imported, Importer
from palaver.view import View, fold
from palaver.wire import PROFILES, Call, compile, validate  # noqa: A004 - the word for it

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}


def written(folder: Path, data: bytes, name: str = "file.json") -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(data)
    return path


def imported(store: MemoryStore, path: Path) -> list[Imported]:
    """Import a file, its source aside."""
    return list(Importer(store, keep_source=False).import_path(path))


def views(store: MemoryStore, found: Sequence[Imported]) -> list[View]:
    """Fold every dialog of the sessions."""
    return [fold(store, node.dialog_id) for one in found for node in store.nodes(one.session_id)]


def refused(store: MemoryStore, view: View) -> list[str]:
    """Give what the providers would refuse of a view."""
    return [
        f"{name}: {violation}"
        for name, profile in PROFILES.items()
        for violation in validate(
            compile(view, profile, Call(model=MODELS[name]), lambda digest: store.blob(BlobId(digest))).body,
            profile,
            as_history=True,
        )
    ]


# --- messages -----------------------------------------------------------------------------------------------------------


def chat_call(call_id: str, name: str = "look", **arguments: object) -> dict[str, Any]:
    """Write a call of chat completions."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def chat() -> list[dict[str, Any]]:
    """Write a conversation of chat completions: two calls, with the same id, and their results."""
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
    """Write a conversation of Anthropic's interface."""
    return [
        {"role": "user", "content": "What is there?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"where": "here"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a stone"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A stone."}]},
    ]


# --- files --------------------------------------------------------------------------------------------------------------


def tau(count: int = 2) -> list[dict[str, Any]]:
    """Write results of τ-bench: trials of one task."""
    return [
        {"task_id": 7, "reward": 1.0, "info": {"user_cost": 0.01 * (n + 1)}, "traj": chat(), "trial": n}
        for n in range(count)
    ]


def tau2_messages() -> list[dict[str, Any]]:
    """Write a simulation in which both sides call, one of them twice at once."""

    def call(call_id: str, side: str) -> dict[str, Any]:
        return {"id": call_id, "name": f"{side}_tool", "arguments": {"n": 1}, "requestor": side}

    def result(call_id: str, side: str, content: str, *, error: bool = False) -> dict[str, Any]:
        return {"id": call_id, "role": "tool", "content": content, "requestor": side, "error": error}

    used = {"completion_tokens": 5, "prompt_tokens": 90}
    raw = {"finish_reason": "tool_calls", "message": {}}
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Hi!", "tool_calls": None, "cost": 0.0, "usage": None},
        {"role": "user", "content": "It is slow.", "tool_calls": None, "cost": 0.25, "usage": used},
        {"role": "assistant", "content": None, "tool_calls": [call("a1", "assistant"), call("a2", "assistant")]},
        {"role": "tool", "tool_messages": [result("a1", "assistant", "one"), result("a2", "assistant", "two")]},
        {"role": "assistant", "content": "Look at your phone.", "tool_calls": None, "cost": 0.5, "usage": used},
        {
            "role": "user",
            "content": None,
            "tool_calls": [call("u1", "user")],
            "usage": used,
            "cost": 0.125,
            "raw_data": raw,
        },
        result("u1", "user", "no signal", error=True),
        {"role": "user", "content": "No signal.", "tool_calls": None},
    ]
    times = {n: {"turn_idx": n, "timestamp": f"2026-01-01T00:00:{n:02d}"} for n in range(len(messages))}
    return [message | times[n] for n, message in enumerate(messages)]


def tau2() -> dict[str, Any]:
    """Write results of τ²-bench: two simulations."""
    info = {
        "agent_info": {"llm": "gpt-4.1"},
        "user_info": {"llm": "gpt-4.1-mini", "global_simulation_guidelines": "Play a customer."},
        "environment_info": {"domain_name": "telecom", "policy": "Help politely.", "tool_defs": None},
    }
    runs = [
        {"id": f"run-{n}", "task_id": "t", "trial": n, "start_time": "2026-01-01T00:00:00", "messages": tau2_messages()}
        for n in range(2)
    ]
    return {"timestamp": "2026-01-01T00:00:00", "info": info, "tasks": [{"id": "t"}], "simulations": runs}


def mini() -> dict[str, Any]:
    """Write a trajectory of mini-SWE-agent, whose last call has no result."""

    def answer(number: int) -> dict[str, Any]:
        response = {
            "id": f"resp-{number}",
            "model": "deepseek-chat",
            "choices": [{"finish_reason": "tool_calls", "message": {}}],
            "usage": {"prompt_tokens": 100 * number, "completion_tokens": 7},
        }
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
    config = {"environment": {"cwd": "/testbed"}}
    return {
        "info": {"mini_version": "2.2.7", "exit_status": "Submitted", "config": config},
        "messages": messages,
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "repo__7",
    }


TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


def snapshot(number: int, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Write a call that OpenHands logged."""
    usage = {"prompt_tokens": 10 * number, "completion_tokens": 3}
    choice = {"finish_reason": "stop", "index": 0, "message": dict(answer)}
    response = {"id": f"resp-{number}", "model": "claude", "choices": [choice], "usage": usage}
    return {
        "messages": list(messages),
        "response": response,
        "args": [],
        "kwargs": {"tools": [TOOL], "temperature": 0.5},
        "timestamp": 1700000000.0 + number,
        "cost": 0.25,
    }


def as_sent(message: Mapping[str, Any], *, mark: bool = False) -> dict[str, Any]:
    """Write a message as OpenHands sends it: text as parts, perhaps with a cache mark."""
    part = {"type": "text", "text": message["content"]} | ({"cache_control": {"type": "ephemeral"}} if mark else {})
    return {**message, "content": [part]}


def series() -> list[dict[str, Any]]:
    """Write the calls of a run: three that grow, with a moving cache mark."""
    talk: list[dict[str, Any]] = [{**one, "content": one["content"] or "I look."} for one in chat()]
    return [
        snapshot(1, [as_sent(talk[0], mark=True), as_sent(talk[1], mark=True)], talk[2]),
        snapshot(2, [as_sent(talk[0], mark=True), *map(as_sent, talk[1:3]), as_sent(talk[3], mark=True)], talk[4]),
        snapshot(3, [*map(as_sent, talk[:5]), as_sent(talk[5], mark=True)], talk[6]),
    ]


def tar(files: Sequence[object], *, folder: str = "") -> bytes:
    """Write an archive with a file for each value."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for number, value in enumerate(files):
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            about = tarfile.TarInfo(f"{folder}call-{number}.json")
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))
    return held.getvalue()


def document(value: object) -> bytes:
    """Write a JSON document."""
    return json.dumps(value).encode()


SAMPLES: dict[str, Callable[[], Any]] = {
    "tau-bench": tau,
    "tau2-bench": tau2,
    "mini-swe-agent": mini,
    "chat-completions": chat,
    "anthropic-messages": lambda: {"system": "Be brief.", "messages": anthropic(), "tools": []},
}
"""A document of each format that is one."""
