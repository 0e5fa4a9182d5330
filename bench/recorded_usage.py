"""What providers reported in recorded sessions, beside the messages they reported on.

A step is one model call of a conversation: the messages that were added since the call before, and how large the provider
said the request was. Calls whose request is not a continuation of the one before (after a compaction, a rewind, an error)
begin a new run of steps. The readers here know just enough of six formats for that; importing sessions is done elsewhere.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from palaver.messages import (
    AssistantMessage,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    from_anthropic_dict,
    from_chat_dict,
)

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One model call.

    Attributes:
        reported: Tokens the provider says it read, cached ones included.
        added: The messages of this request that the one before did not have; the whole request in the first step of a run.
        hidden: Tokens that were added and are not in ``added``: reasoning that is not recorded, but sent back.
    """

    reported: int
    added: tuple[Message, ...]
    hidden: int = 0


@dataclass
class Run:
    """A row of calls, each continuing the one before.

    Attributes:
        source: The file.
        model: The model.
        tools: The tool schemas, where they are recorded.
        whole: Whether the first request is recorded whole, so that sizes can be compared and not only growth.
        steps: The calls.
    """

    source: str
    model: str
    tools: tuple[Record, ...] = ()
    whole: bool = False
    steps: list[Step] = field(default_factory=list)


def runs(root: Path) -> Iterator[Run]:
    """Return every run of every file under the folder of recorded sessions that has usage figures."""
    for kind, read in READERS.items():
        for path in sorted((root / kind).glob("*.zst")):
            for run in read(path):
                if len(run.steps) > 1 or (run.whole and run.steps):
                    yield run


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read()


def _lines(path: Path) -> Iterator[Record]:
    for line in _bytes(path).split(b"\n"):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # two records on one line, in two of the files
                continue


class _Recorder:
    """Collects steps into runs."""

    def __init__(self, source: Path, model: str = "") -> None:
        self.source = f"{source.parent.name}/{source.name}"
        self.model = model
        self.runs: list[Run] = []
        self.run: Run | None = None
        self.added: list[Message] = []
        self.hidden = 0

    def add(self, *messages: Message) -> None:
        self.added.extend(messages)

    def cut(self) -> None:
        """End the run: what follows does not continue what was."""
        self.run = None
        self.added.clear()
        self.hidden = 0

    def call(self, reported: int, model: str = "") -> None:
        """Note a call whose request ends with what was added so far."""
        model = model or self.model
        if self.run is None or self.run.model != model:
            self.run = Run(self.source, model)
            self.runs.append(self.run)
        self.run.steps.append(Step(reported, tuple(self.added), self.hidden))
        self.added.clear()
        self.hidden = 0


# --- whole requests -------------------------------------------------------------------------------------------------------


def openhands_llm_calls(path: Path) -> Iterator[Run]:
    """Snapshots of every request of a session, tools and all (Claude through a proxy)."""
    run, before = Run("", ""), 0
    with tarfile.open(fileobj=io.BytesIO(_bytes(path))) as archive:
        for name in sorted(archive.getnames()):
            member = archive.extractfile(name)
            snapshot = json.loads(member.read()) if member else {}
            messages, response = snapshot["messages"], snapshot["response"]
            if len(messages) <= before or not run.steps:
                yield run
                tools = snapshot.get("tools") or snapshot["kwargs"].get("tools") or ()
                run, before = Run(f"{path.parent.name}/{path.name}", response["model"], tuple(tools), whole=True), 0
            added = tuple(from_chat_dict(_plain(message)) for message in messages[before:])
            run.steps.append(Step(response["usage"]["prompt_tokens"], added))
            before = len(messages)
    yield run


def _plain(message: Record) -> Record:
    """Drop keys with nothing in them, which old recordings have."""
    return {key: value for key, value in message.items() if value is not None}


def mini_swe_agent(path: Path) -> Iterator[Run]:
    """A list of chat messages with the usage of each response (DeepSeek). The one tool's schema is not recorded."""
    session = json.loads(_bytes(path))
    recorder = _Recorder(path, session["info"]["config"]["model"]["model_name"])
    for message in session["messages"]:
        if message["role"] not in {"system", "user", "assistant", "tool"}:
            continue
        if message["role"] == "assistant":
            recorder.call(message["extra"]["response"]["usage"]["prompt_tokens"])
            recorder.add(*_with_reasoning(message))
        else:
            recorder.add(from_chat_dict({"role": message["role"], "content": message["content"], **_paired(message)}))
    yield from recorder.runs


def _paired(message: Record) -> Record:
    return {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}


def _with_reasoning(message: Record) -> Iterator[Message]:
    """Return an assistant message with its reasoning, which DeepSeek wants back while tools are used."""
    said = message["extra"]["response"]["choices"][0]["message"]
    answer = from_chat_dict(_plain({key: said.get(key) for key in ("role", "content", "tool_calls")}))
    thought = said.get("reasoning_content")
    yield (
        answer.model_copy(update={"contents": (ThinkingContent(content=thought), *answer.contents)})
        if thought
        else answer
    )


# --- growth ---------------------------------------------------------------------------------------------------------------


def tau2_bench(path: Path) -> Iterator[Run]:
    """Customer service dialogs with the usage of each response (GPT-4.1); policy and tools are not recorded as sent."""
    results = json.loads(_bytes(path))
    for simulation in results["simulations"]:
        recorder = _Recorder(path, results["info"]["agent_info"]["llm"])
        for message in simulation["messages"]:
            if message.get("requestor") == "user" or (message["role"] == "user" and message.get("tool_calls")):
                continue  # the customer's own tools: the agent does not see them
            if message["role"] == "assistant" and message.get("usage"):
                recorder.call(message["usage"]["prompt_tokens"])
            recorder.add(_tau2(message))
        yield from recorder.runs


def _tau2(message: Record) -> Message:
    if message["role"] == "tool":
        return ToolMessage(contents=(ToolResultContent(id=message["id"], content=message["content"] or ""),))
    calls = (ToolCallContent(id=c["id"], name=c["name"], args=c["arguments"]) for c in message.get("tool_calls") or ())
    text = (TextContent(content=message["content"]),) if message["content"] else ()
    return Message(role=message["role"], contents=(*text, *calls))


def pi(path: Path) -> Iterator[Run]:
    """A coding session (Claude Sonnet 4.5, no thinking); instructions and tools are not recorded."""
    recorder = _Recorder(path)
    for record in _lines(path):
        message = record.get("message") or {}
        if record["type"] in {"compaction", "model_change"} or message.get("role") == "bashExecution":
            recorder.cut()
        if record["type"] != "message" or message["role"] == "bashExecution":
            continue
        if message["role"] == "assistant":
            usage = message["usage"]
            reported = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
            if not reported or message.get("stopReason") in {"error", "aborted"}:
                recorder.cut()
                continue
            recorder.call(reported, message["model"])
        recorder.add(_pi(message))
    yield from recorder.runs


def _pi(message: Record) -> Message:
    content = (
        message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
    )
    if message["role"] == "toolResult":
        return from_anthropic_dict(
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": message["toolCallId"], "content": _pi_parts(content)}
                ],
            }
        )
    return from_anthropic_dict({"role": message["role"], "content": _pi_parts(content)})


def _pi_parts(content: list[Record]) -> list[Record]:
    parts: list[Record] = []
    for part in content:
        if part["type"] == "toolCall":
            parts.append({"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["arguments"]})
        elif part["type"] == "image":
            source = {"type": "base64", "media_type": part["mimeType"], "data": part["data"]}
            parts.append({"type": "image", "source": source})
        elif part["type"] == "text":
            parts.append({"type": "text", "text": part["text"]})
    return parts


def claude_code(path: Path) -> Iterator[Run]:
    """Coding sessions (Claude). Reminders the program slips in are not recorded, thinking only in part.

    A run is a row of responses with nothing but tool results between them and no thinking in them.
    """
    recorder = _Recorder(path)
    responses: dict[str, list[Record]] = {}
    order: list[Record] = []
    for record in _lines(path):
        if record["type"] == "assistant" and not record.get("isSidechain"):
            key = record["message"]["id"]
            if key not in responses:
                order.append(record)
            responses.setdefault(key, []).append(record)
        elif record["type"] == "user" and not record.get("isSidechain"):
            order.append(record)
        elif record["type"] == "system":
            order.append({"type": "cut"})
    for record in order:
        _claude_code(record, responses, recorder)
    yield from recorder.runs


def _claude_code(record: Record, responses: Mapping[str, list[Record]], recorder: _Recorder) -> None:
    if record["type"] == "cut" or (record["type"] == "user" and not _only_results(record["message"]["content"])):
        recorder.cut()
        return
    if record["type"] == "user":
        recorder.add(from_anthropic_dict({"role": "user", "content": record["message"]["content"]}))
        return
    lines = responses[record["message"]["id"]]
    content = [block for line in lines for block in line["message"]["content"]]
    usage = lines[-1]["message"]["usage"]
    reported = sum(usage.get(key) or 0 for key in _READ_BY_ANTHROPIC)
    if not reported or any("thinking" in block["type"] for block in content):
        recorder.cut()
        return
    recorder.call(reported, record["message"]["model"])
    recorder.add(from_anthropic_dict({"role": "assistant", "content": content}))


_READ_BY_ANTHROPIC = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _only_results(content: object) -> bool:
    return isinstance(content, list) and all(block["type"] == "tool_result" for block in content)


def codex(path: Path) -> Iterator[Run]:
    """Coding sessions (GPT-5.x). Instructions and most tools are not recorded, nor the text of reasoning, which is sent back.

    A usage event follows the response and the results of its calls.
    """
    recorder = _Recorder(path)
    model, seen = "", 0
    collected: list[Message] = []  # since the last usage event: an answer and the results of its calls
    for record in _lines(path):
        payload = record.get("payload") or {}
        kind = payload.get("type")
        if record["type"] in {"turn_context", "compacted"} or kind in _UNCOUNTED:
            model = payload.get("model", model)
            recorder.cut()
            collected.clear()
        elif record["type"] == "response_item":
            collected.extend(_codex(payload))
        elif kind == "token_count" and payload.get("info"):
            usage, total = payload["info"]["last_token_usage"], payload["info"]["total_token_usage"]["total_tokens"]
            if total != seen:  # some events are repeated
                recorder.call(usage["input_tokens"], model)
                recorder.add(*collected)
                recorder.hidden = usage["reasoning_output_tokens"]
                collected.clear()
            seen = total
    yield from recorder.runs


_UNCOUNTED = frozenset(
    {"tool_search_call", "tool_search_output", "web_search_call", "turn_aborted", "context_compacted"}
)


def _codex(item: Record) -> Iterator[Message]:
    """Read one response item; reasoning is left to the usage figures."""
    match item["type"]:
        case "message":
            role = Role.SYSTEM if item["role"] == "developer" else Role(item["role"])
            yield Message(
                role=role, contents=tuple(TextContent(content=part.get("text", "")) for part in item["content"])
            )
        case "function_call" | "custom_tool_call":
            raw = item.get("arguments") or item.get("input")
            yield AssistantMessage(contents=(ToolCallContent(id=item["call_id"], name=item["name"], raw_args=raw),))
        case "function_call_output" | "custom_tool_call_output":
            output = item["output"] if isinstance(item["output"], str) else json.dumps(item["output"])
            yield ToolMessage(contents=(ToolResultContent(id=item["call_id"], content=output),))
        case _:
            return


def gemini_cli(path: Path) -> Iterator[Run]:
    """Coding sessions (Gemini 2.5); instructions and tools are not recorded, thoughts are not sent back."""
    session = json.loads(_bytes(path))
    recorder = _Recorder(path)
    for message in session["messages"] if isinstance(session, dict) else ():
        if message["type"] == "user":
            recorder.add(UserMessage(contents=(TextContent(content=_gemini_text(message["content"])),)))
        tokens = message.get("tokens") or {}
        if message["type"] != "gemini":
            continue
        if not tokens.get("input"):
            recorder.cut()
            continue
        recorder.call(tokens["input"], message["model"])
        recorder.add(*_gemini(message))
    yield from recorder.runs


def _gemini_text(content: object) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)  # type: ignore[attr-defined]


def _gemini(message: Record) -> Iterator[Message]:
    calls = message.get("toolCalls") or ()
    text = _gemini_text(message["content"])
    blocks = [TextContent(content=text)] if text else []
    yield AssistantMessage(
        contents=(*blocks, *(ToolCallContent(id=c["id"], name=c["name"], args=c["args"]) for c in calls))
    )
    for call in calls:
        for result in call.get("result") or ():
            response = (result.get("functionResponse") or {}).get("response") or {}
            yield ToolMessage(contents=(ToolResultContent(id=call["id"], content=_output(response)),))


def _output(response: Record) -> str:
    output = response.get("output")
    return output if isinstance(output, str) else json.dumps(response, ensure_ascii=False)


READERS: Mapping[str, Callable[[Path], Iterator[Run]]] = {
    "openhands_llm_calls": openhands_llm_calls,
    "mini_swe_agent": mini_swe_agent,
    "tau2_bench": tau2_bench,
    "pi": pi,
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli,
}
