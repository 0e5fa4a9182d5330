"""OpenAI's Responses API: its routes, and its answers, whole or as events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from palaver.testing.strict.openai.fields import (
    CALLS,
    KINDS,
    ResponsesRequest,
    check_fields,
    error_body,
    input_items,
    refuse,
)
from palaver.testing.strict.openai.items import check_items, item_id
from palaver.testing.strict.openai.models import MODELS, model_named
from palaver.testing.strict.openai.reasoning import ItemPrefix, compacted, encrypted, walk
from palaver.testing.strict.seal import Json, Seal, canonical
from palaver.testing.strict.server import HttpRequest, NextAnswer, Reply, Script

__all__ = ["ResponsesApi"]

_CHARACTERS_PER_TOKEN: Final = 4
_USUAL: Final = NextAnswer(({"type": "reasoning"}, "Well."))
_ENDED: Final = {"max_output_tokens": "incomplete", "content_filter": "incomplete", "failed": "failed"}
_DEFAULTS: Final[Mapping[str, Json]] = {
    "reasoning": {"summary": []},
    "function_call": {"arguments": "{}", "status": "completed"},
    "custom_tool_call": {"input": ""},
    "shell_call": {"status": "completed"},
    "apply_patch_call": {"status": "completed"},
    "computer_call": {"pending_safety_checks": [], "status": "completed"},
    "web_search_call": {"status": "completed"},
    "mcp_call": {"status": "completed"},
    "mcp_list_tools": {"tools": []},
}


def tokens_of(value: object) -> int:
    """Return a rough number of tokens of a JSON value."""
    return len(canonical(value)) // _CHARACTERS_PER_TOKEN


class ResponsesApi:
    """The Responses API and the list of models."""

    def __init__(
        self,
        *,
        key: str = "strict",
        organizations: Mapping[str, str] | None = None,
        tokens: Callable[[object], int] = tokens_of,
    ) -> None:
        """Make the API.

        Args:
            key: The key of its encryption. Servers with the same key read each other's items.
            organizations: Names of organizations by API key; other keys belong to one organization.
            tokens: Counts the tokens of a JSON value; thresholds are compared with its result.
        """
        self._seal = Seal(key)
        self._organizations = dict(organizations or {})
        self._tokens = tokens
        self._serial = 0
        self._lock = threading.Lock()

    def error(self, status: int, message: str) -> Json:
        """Return the body of an error."""
        return error_body(status, message)

    def reply(self, asked: HttpRequest, script: Script) -> Reply:
        """Return the answer to a request."""
        path = asked.path.partition("?")[0].removeprefix("/v1")
        key = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if not key:
            refuse("You didn't provide an API key.", status=401)
        if path == "/models":
            return Reply({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        if path not in ("/responses", "/responses/compact") or asked.method != "POST":
            refuse(f"Invalid URL ({asked.method} {asked.path})", status=404)
        subject = self._subject(asked, key)
        check_fields(subject)
        check_items(subject)
        prefix = walk(subject)
        with self._lock:
            self._serial += 1
            serial = f"{self._serial:06d}"
        if path.endswith("compact"):
            return Reply(self._window(subject, prefix, serial))
        return self._answered(subject, prefix, script, asked, serial)

    def _subject(self, asked: HttpRequest, key: str) -> ResponsesRequest:
        name = asked.body.get("model")
        model = model_named(str(name))
        if model is None:
            refuse(
                f"The model `{name}` does not exist or you do not have access to it.",
                None,
                "model_not_found",
                status=404,
            )
        items = input_items(asked.body)
        return ResponsesRequest(asked.body, items, model, self._organizations.get(key, "default"), self._seal)

    def _answered(
        self, subject: ResponsesRequest, prefix: ItemPrefix, script: Script, asked: HttpRequest, serial: str
    ) -> Reply:
        items, body = subject.items, subject.body
        report = list(prefix.report)
        size = self._tokens([body.get("instructions"), body.get("tools"), items])
        if items and items[-1]["type"] == "compaction_trigger":
            answer, due = NextAnswer(({"type": "compaction"},)), False
        else:
            answer, due = script.next(asked, _USUAL), _compaction_due(body, size)
        content = [{"type": "compaction"}, *answer.content] if due else list(answer.content)
        output = _OutputWriter(subject, prefix, serial).write(content)
        status = _ENDED.get(answer.stop, answer.stop or "completed")
        reason = {"reason": answer.stop} if status == "incomplete" else None
        response: Json = {
            "id": f"resp_{serial}",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": status,
            "model": body["model"],
            "output": output,
            "incomplete_details": reason,
            "error": None,
            "instructions": body.get("instructions"),
            "metadata": {},
            "parallel_tool_calls": True,
            "tools": body.get("tools") or [],
            "tool_choice": body.get("tool_choice") or "auto",
            "store": body.get("store", True),
            "input_transformations": report,
            "usage": self._usage(size, output),
        } | dict(answer.fields)
        stream = list(_events(response)) if body.get("stream") else None
        return Reply(response, stream, report, answer.cut)

    def _usage(self, size: int, output: object) -> Json:
        made = self._tokens(output)
        return {
            "input_tokens": size,
            "output_tokens": made,
            "total_tokens": size + made,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }

    def _window(self, subject: ResponsesRequest, prefix: ItemPrefix, serial: str) -> Json:
        """Return the compacted window: the user's messages, and the item."""
        kept = [item for item in subject.items if item["type"] == "message" and item["role"] == "user"]
        item = {
            "type": "compaction",
            "id": item_id("compaction", serial),
            "encrypted_content": compacted(subject, prefix),
        }
        usage = self._usage(self._tokens(subject.items), item)
        return {
            "id": f"resp_{serial}",
            "object": "response.compaction",
            "created_at": 1_790_000_000,
            "output": [*kept, item],
            "usage": usage,
        }


def _compaction_due(body: Json, size: int) -> bool:
    asked = body.get("context_management") or []
    return any(
        entry.get("type") == "compaction" and size >= entry.get("compact_threshold", size + 1) for entry in asked
    )


class _OutputWriter:
    """Writes the items of one answer."""

    def __init__(self, subject: ResponsesRequest, prefix: ItemPrefix, serial: str) -> None:
        self._subject, self._prefix, self._serial = subject, prefix, serial
        self._reasoning = ""

    def write(self, content: list[Json | str]) -> list[Json]:
        """Return the items with ids and encrypted contents."""
        out: list[Json] = []
        for number, said in enumerate(content):
            item = {"type": "message", "content": said} if isinstance(said, str) else dict(said)
            made = self._made(item, f"{self._serial}{number:02d}")
            if made is not None:
                out.append(made)
                self._prefix.add(made)
        return out

    def _made(self, item: Json, serial: str) -> Json | None:
        kind = item["type"]
        if kind == "reasoning":
            if not self._subject.model.family or (self._subject.body.get("reasoning") or {}).get("effort") == "none":
                return None
            made = (
                _DEFAULTS[kind]
                | {"id": item_id(kind, serial), "encrypted_content": encrypted(self._subject, self._prefix)}
                | item
            )
            self._reasoning = made["id"]
            return made
        if kind not in KINDS:
            return item | {"seal": self._subject.seal.close("own", item)}
        made = _DEFAULTS.get(kind, {}) | {"id": item_id(kind, serial, self._reasoning)} | item
        self._reasoning = self._reasoning if kind in (*CALLS, "program") else ""
        if kind == "message":
            return made | self._message(item)
        if kind == "compaction":
            return made | {"encrypted_content": compacted(self._subject, self._prefix)}
        if kind in CALLS or kind == "program":
            made = {"call_id": f"call_{serial}"} | made
        if kind == "program":
            made["fingerprint"] = self._subject.seal.close("program", {"code": made["code"]})
        return made

    def _message(self, item: Json) -> Json:
        content = item["content"]
        part = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
        parts = [part] if isinstance(content, str) else content
        return {"role": "assistant", "status": "completed", "content": parts}


# --- events --------------------------------------------------------------------------------------------------------------


def _events(response: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of a response that is streamed."""
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    for number, (name, data) in enumerate(_unnumbered(response, begun)):
        yield name, {"type": name, "sequence_number": number} | data


def _unnumbered(response: Json, begun: Json) -> Iterator[tuple[str, Json]]:
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item)
    name = {"incomplete": "response.incomplete", "failed": "response.failed"}.get(
        response["status"], "response.completed"
    )
    yield name, {"response": response}


def _item_events(index: int, item: Json) -> Iterator[tuple[str, Json]]:
    started, at = dict(item), {"output_index": index, "item_id": item.get("id", "")}
    kind = item["type"]
    if kind == "message":
        started |= {"content": [], "status": "in_progress"}
    elif kind == "function_call":
        started |= {"arguments": "", "status": "in_progress"}
    yield "response.output_item.added", {"output_index": index, "item": started}
    yield from _inner_events(at, item)
    yield "response.output_item.done", {"output_index": index, "item": item}


def _inner_events(at: Json, item: Json) -> Iterator[tuple[str, Json]]:
    kind = item["type"]
    if kind == "message":
        for number, part in enumerate(item["content"]):
            yield from _part_events(at | {"content_index": number}, part)
    elif kind == "function_call":
        for half in _halves(item["arguments"]):
            yield "response.function_call_arguments.delta", at | {"delta": half}
        yield "response.function_call_arguments.done", at | {"arguments": item["arguments"], "name": item["name"]}
    elif kind == "custom_tool_call":
        yield "response.custom_tool_call_input.delta", at | {"delta": item["input"]}
        yield "response.custom_tool_call_input.done", at | {"input": item["input"]}
    elif kind == "compaction":
        yield "response.compaction.compacting", at


def _part_events(at: Json, part: Json) -> Iterator[tuple[str, Json]]:
    empty: dict[str, Any] = part | ({"text": ""} if part["type"] == "output_text" else {})
    yield "response.content_part.added", at | {"part": empty}
    if part["type"] == "output_text":
        for half in _halves(part["text"]):
            yield "response.output_text.delta", at | {"delta": half, "logprobs": []}
        yield "response.output_text.done", at | {"text": part["text"], "logprobs": []}
    yield "response.content_part.done", at | {"part": part}


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]
