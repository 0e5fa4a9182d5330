"""The answers of the Messages API: a scripted answer becomes a message with ids and signatures, whole or as events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from palaver.testing.strict.claude.binding import SentThinking, signed
from palaver.testing.strict.claude.context import threshold_block
from palaver.testing.strict.claude.credit import refusal_details
from palaver.testing.strict.claude.fields import BINDING, KINDS, ClaudeRequest
from palaver.testing.strict.claude.options import thinking_type
from palaver.testing.strict.claude.prefix import THOUGHTS, Prefix
from palaver.testing.strict.claude.turns import PROGRAM_ID, open_calls, runs
from palaver.testing.strict.seal import Json, digest
from palaver.testing.strict.server import NextAnswer

__all__ = ["events", "message_of"]

_CODE: Final = frozenset({"code_execution", "bash_code_execution", "text_editor_code_execution"})


@dataclass(slots=True)
class _ContentWriter:
    """Writes the blocks of one answer, each bound to what precedes it."""

    subject: ClaudeRequest
    prefix: Prefix
    present: list[str]
    waiting: list[str]
    serial: str
    out: list[Json] = field(default_factory=list)

    def write(self, content: Sequence[Json | str]) -> list[Json]:
        """Return the blocks with ids and signatures."""
        listed: list[Json] = [
            {"type": "text", "text": said} if isinstance(said, str) else dict(said) for said in content
        ]
        fallbacks = [at for at, block in enumerate(listed) if block["type"] == "fallback"]
        final = fallbacks[-1] if fallbacks else -1
        self.prefix.enter("assistant")
        before = list(self.present)
        for at, block in enumerate(listed):
            made = self._made(block)
            if made is None:
                continue
            self.out.append(made)
            if at < final and made["type"] in (*THOUGHTS, "tool_use"):
                continue  # what the next model may not see, and the next request leaves out
            if at == final:
                self.present = before
            self._follow(made)
        return self.out

    def _made(self, block: Json) -> Json | None:
        kind = block["type"]
        if kind in THOUGHTS:
            return self._thought(block)
        if kind == "compaction" and block.get("content") and not block.keys() & {"signature", "encrypted_content"}:
            return threshold_block(self.subject, block["content"])
        if kind not in KINDS and "seal" not in block:
            return block | {"seal": self.subject.seal.close("own", block)}
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            return self._call(block)
        if kind.endswith("_tool_result"):
            made = ({"tool_use_id": self.waiting[0]} if self.waiting else {}) | block
            self.waiting = [waiting for waiting in self.waiting if waiting != made["tool_use_id"]]
            return made
        return {"citations": None} | block if kind == "text" else block

    def _call(self, block: Json) -> Json:
        kind = block["type"]
        stem = {"tool_use": "toolu", "server_tool_use": "srvtoolu", "mcp_tool_use": "mcptoolu"}[kind]
        if kind == "tool_use":
            self._name_caller(block)
            stem = PROGRAM_ID if block.get("caller", {}).get("type", "direct") != "direct" else stem
        made = {"type": kind, "id": f"{stem}_{self.serial}_{len(self.out)}", "input": {}} | block
        if kind != "tool_use":
            self.waiting.append(made["id"])
        return made

    def _thought(self, block: Json) -> Json | None:
        mode = thinking_type(self.subject)
        if mode == "disabled":
            return None  # the model does not think in this request
        display = (self.subject.body.get("thinking") or {}).get("display")
        shown = display in ("summarized", "updates") or (display is None and self.subject.model.shows_thinking)
        if block["type"] == "thinking" and not shown and mode != "between_tools":
            block = block | {"thinking": ""}
        return signed(self.subject, self.prefix, block, self.present)

    def _name_caller(self, block: Json) -> None:
        """Say which code made a call, where the script says only that code did."""
        caller = block.get("caller")
        if caller and caller.get("type") != "direct" and "tool_id" not in caller:
            code = [made["id"] for made in self.out if made["type"] == "server_tool_use" and made["name"] in _CODE]
            block["caller"] = caller | {"tool_id": code[-1] if code else self.waiting[-1]}

    def _follow(self, made: Json) -> None:
        if made["type"] == "compaction":
            if made.get("content"):  # a failed one counts as nothing
                self.prefix.compact(made, self.subject.seal)
                self.prefix.enter("assistant")
                self.present = []
            return
        self.prefix.add("", made)
        if made["type"] in THOUGHTS:
            self.present.append(digest(self.prefix.thoughts[-1].signature))


def message_of(
    subject: ClaudeRequest, prefix: Prefix, binding: SentThinking, answer: NextAnswer, *, serial: str
) -> Json:
    """Return the message of an answer. The prefix is the one of the request, and grows."""
    waiting = list(open_calls(runs(subject.body["messages"])))
    content = _ContentWriter(subject, prefix, list(binding.present), waiting, serial).write(answer.content)
    message: Json = {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": subject.body["model"],
        "content": content,
        "stop_reason": answer.stop or _stop(content),
        "stop_sequence": None,
        "stop_details": None,
        "container": _container(subject, content),
    }
    fallbacks = [block for block in content if block["type"] == "fallback"]
    if fallbacks:
        message["model"] = fallbacks[-1]["to"]["model"]
    if BINDING in subject.betas:
        message["input_transformations"] = binding.report
    more = dict(answer.fields)
    if message["stop_reason"] == "refusal":
        more["stop_details"] = refusal_details(subject, more.get("stop_details"))
    return message | more


def _stop(content: Sequence[Json]) -> str:
    if any(block["type"] == "tool_use" for block in content):
        return "tool_use"
    answered = {block.get("tool_use_id") for block in content}
    waits = any(
        block["type"] in ("server_tool_use", "mcp_tool_use") and block["id"] not in answered for block in content
    )
    return "pause_turn" if waits else "end_turn"


def _container(subject: ClaudeRequest, content: Sequence[Json]) -> Json | None:
    asked = subject.body.get("container")
    name = asked.get("id") if isinstance(asked, dict) else asked
    if name is None and any(block["type"] == "server_tool_use" and block["name"] in _CODE for block in content):
        name = "container_" + subject.seal.close("container", {"account": subject.account})
    return {"id": name, "expires_at": "2026-12-31T00:00:00Z", "skills": None} if name else None


# --- events --------------------------------------------------------------------------------------------------------------


def events(message: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of a message that is streamed."""
    late = ("stop_reason", "stop_sequence", "stop_details", "container", "context_management")
    start = message | {"content": [], **dict.fromkeys(late)}
    start["usage"] = message["usage"] | {"output_tokens": 0}
    yield _event("message_start", message={key: value for key, value in start.items() if key != "context_management"})
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {name: message[name] for name in ("stop_reason", "stop_sequence", "stop_details", "container")}
    more = {"context_management": message["context_management"]} if message.get("context_management") else {}
    yield _event("message_delta", delta=delta, usage=message["usage"], **more)
    yield _event("message_stop")


def _event(name: str, **data: Any) -> tuple[str, Json]:  # noqa: ANN401 - any JSON
    return name, {"type": name, **data}


def _block_events(index: int, block: Json) -> Iterator[tuple[str, Json]]:
    start, deltas = _begun(block)
    yield _event("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _begun(block: Json) -> tuple[Json, list[Json]]:
    """Return a block as it begins, and its deltas. Blocks of other kinds arrive whole."""
    kind = block["type"]
    if kind == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
    if kind == "thinking":
        texts = [{"type": "thinking_delta", "thinking": half} for half in _halves(block["thinking"])]
        return block | {"thinking": "", "signature": ""}, [
            *texts,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        pieces = _halves(json.dumps(block["input"]))
        return block | {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    if kind == "compaction" and "signature" not in block:
        delta = {
            "type": "compaction_delta",
            "content": block["content"],
            "encrypted_content": block.get("encrypted_content"),
        }
        return {"type": kind, "content": None, "encrypted_content": None}, [delta]
    return block, []


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]
