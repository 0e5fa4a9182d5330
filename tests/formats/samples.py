"""Small files of every foreign format: the golden files, each with the traps of its format, and writers of others."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

GOLDEN = Path(__file__).parent.parent / "golden" / "formats"
ZSTD = 93
"""The method of zip for zstd (APPNOTE.TXT, 4.4.5)."""

STAMP = "2026-01-02T03:04:{:02d}.000Z"


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


def zipped(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive, also with zstd (method 93), which this Python does not write."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED if method == zipfile.ZIP_DEFLATED else 0) as archive:
        for name, data in files.items():
            archive.writestr(name, data if method != ZSTD else zstandard.ZstdCompressor().compress(data))
    packed = bytearray(held.getvalue())
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)) if method == ZSTD else ():
        start = 0
        for content in files.values():
            start = packed.index(mark, start)
            packed[start + at : start + at + 2] = method.to_bytes(2, "little")
            packed[start + at + 6 : start + at + 10] = zlib.crc32(content).to_bytes(4, "little")
            start += len(mark)
    return bytes(packed)


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

    def bytes(self) -> bytes:
        """Return the file."""
        return jsonl(*self.records)


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


LINES = ("claude-code", "codex", "pi", "gemini-cli", "copilot-cli", "entire")
"""The formats that are JSON lines."""

ROWS = ("llm-log", "oasst", "openhands-events", "opentelemetry", "smolagents")
"""The formats that are JSON lines, each a whole conversation or request."""

DOCUMENTS = (
    *("opencode", "tau-bench", "tau2-bench", "mini-swe-agent", "swe-agent", "openhands-llm-calls"),
    *("chat-completions", "anthropic-messages", "inspect", "longmemeval", "moatless", "cline", "openclaw-bench"),
    *("atif", "chatgpt", "claude-ai", "google-adk", "openai-responses", "gemini", "gemini-interactions", "vercel-ui"),
    *("langchain", "pydantic-ai", "agent-framework"),
)
"""The formats that are a document, or an archive of documents."""

TEXTS = ("aider", "specstory")
"""The formats that are not JSON."""

JSON = (*LINES, *ROWS, *DOCUMENTS)
KINDS = (*JSON, *TEXTS)


def sample(kind: str) -> bytes:
    """Return a small file of a format."""
    return (GOLDEN / f"{kind}.file").read_bytes()


def value_of(kind: str) -> Any:  # noqa: ANN401
    """Return the value of a small file: of JSON lines the list of records, of an archive that of documents."""
    if kind == "openhands-llm-calls":
        return series()
    lines = kind in LINES or kind in ROWS
    return [json.loads(line) for line in sample(kind).splitlines()] if lines else json.loads(sample(kind))


def packed(kind: str, value: Any) -> bytes:  # noqa: ANN401
    """Return the file of a format that holds a value."""
    if kind == "openhands-llm-calls":
        return calls(value)
    return jsonl(*value) if kind in LINES or kind in ROWS else document(value)
