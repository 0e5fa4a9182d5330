"""Answers of each API as its server sends them: whole, or as a stream cut anywhere."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
Cut = Callable[[str], list[str]]

__all__ = ["STREAMS", "WHOLES", "Json", "contents", "cutting"]

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
IDS = st.from_regex(r"[a-z0-9]{4,8}", fullmatch=True)
ARGUMENTS = ['{"command": "ls"}', '{"b": 1, "a": [true, null]}', "{}", '{"path": "\\ud83d\\ude00 ü"}', '{"cut']


def contents() -> st.SearchStrategy[Json]:
    """Return strategies for the content of an answer: a thought, a text, calls and usage, in the form of no API."""
    call = {"id": IDS, "name": st.sampled_from(["bash", "read"]), "arguments": st.sampled_from(ARGUMENTS)}
    calls = st.lists(st.fixed_dictionaries(call), max_size=3, unique_by=lambda made: made["id"])
    usage = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
    text = st.none() | TEXTS
    return st.fixed_dictionaries({"thought": text, "text": text, "calls": calls, "usage": usage})


@st.composite
def cutting(draw: st.DrawFn) -> Cut:
    """Return a function that cuts texts anywhere, also between the halves of a character beyond the basic plane."""
    random = draw(st.randoms(use_true_random=False))

    def cut(text: str) -> list[str]:
        units, pieces, at = text.encode("utf-16-le"), [], 0
        while at < len(units):
            size = 2 * random.randint(1, 6)
            pieces.append(units[at : at + size].decode("utf-16-le", "surrogatepass"))
            at += size
        return pieces

    return cut


# --- OpenAI chat completions ---------------------------------------------------------------------------------------------


def chat_whole(said: Json) -> Json:
    """Return a chat completion."""
    calls = [{"id": call["id"], "type": "function", "function": _function(call)} for call in said["calls"]]
    message = {"role": "assistant", "content": said["text"], "refusal": None, "reasoning_content": said["thought"]}
    choice = {"index": 0, "message": message | {"tool_calls": calls}, "finish_reason": _finish(said)}
    return {"id": "chatcmpl-1", "model": "m-2026", "choices": [choice], "usage": _chat_usage(said)}


def _function(call: Json) -> Json:
    return {"name": call["name"], "arguments": call["arguments"]}


def _finish(said: Json) -> str:
    return "tool_calls" if said["calls"] else "stop"


def _chat_usage(said: Json) -> Json:
    read, cached, written = said["usage"]
    total = {"prompt_tokens": read + cached, "completion_tokens": written, "total_tokens": read + cached + written}
    return total | {"prompt_tokens_details": {"cached_tokens": cached}}


def chat_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Yield its chunks: calls interleaved, the usage in a last chunk without choices."""

    def chunk(delta: Json, reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "chatcmpl-1", "model": "m-2026", "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for key, text in (("reasoning_content", said["thought"]), ("content", said["text"])):
        yield from (chunk({key: piece}) for piece in cut(text or ""))
    queues = []
    for index, call in enumerate(said["calls"]):
        head = {"index": index, "id": call["id"], "function": {"name": call["name"], "arguments": ""}}
        queues.append([head, *({"index": index, "function": {"arguments": piece}} for piece in cut(call["arguments"]))])
    for calls in zip_longest(*queues):
        yield chunk({"tool_calls": [call for call in calls if call]})
    yield chunk({}, _finish(said))
    yield {"id": "chatcmpl-1", "model": "m-2026", "choices": [], "usage": _chat_usage(said)}


# --- OpenAI responses ----------------------------------------------------------------------------------------------------


def responses_whole(said: Json) -> Json:
    """Return a response."""
    read, cached, written = said["usage"]
    usage = {"input_tokens": read + cached, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": written}
    done = {"status": "completed", "error": None, "incomplete_details": None}
    return {"id": "resp_1", "model": "m-2026", **done, "output": list(_items(said)), "usage": usage}


def _items(said: Json) -> Iterator[Json]:
    if said["thought"]:
        summary = [{"type": "summary_text", "text": text} for text in (said["thought"], "And more.")]
        yield {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0", "status": None}
    if said["text"]:
        part = {"type": "output_text", "text": said["text"], "annotations": []}
        yield {"type": "message", "id": "msg_1", "role": "assistant", "content": [part], "phase": "commentary"}
    for call in said["calls"]:
        yield {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], **_function(call)}


def responses_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Yield its events."""
    yield {"type": "response.created", "response": {"id": "resp_1", "model": "m-2026", "status": "in_progress"}}
    for index, item in enumerate(_items(said)):
        at = {"output_index": index, "item_id": item["id"]}
        yield {"type": "response.output_item.added", **at, "item": item | {"status": "in_progress", "arguments": ""}}
        if item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                more = {"type": "response.reasoning_summary_text.delta", **at, "summary_index": number}
                yield from (more | {"delta": piece} for piece in cut(part["text"]))
        elif item["type"] == "message":
            more = {"type": "response.output_text.delta", **at, "content_index": 0}
            yield from (more | {"delta": piece} for piece in cut(said["text"]))
        else:
            more = {"type": "response.function_call_arguments.delta", **at}
            yield from (more | {"delta": piece} for piece in cut(item["arguments"]))
            yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": "response.completed", "response": responses_whole(said)}


# --- Anthropic messages --------------------------------------------------------------------------------------------------


def anthropic_whole(said: Json) -> Json:
    """Return a message."""
    read, cached, written = said["usage"]
    figures = {"input_tokens": read, "cache_read_input_tokens": cached, "output_tokens": written}
    stop = {"stop_reason": "tool_use" if said["calls"] else "end_turn", "stop_sequence": None}
    own = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-2026"}
    return {**own, "content": list(_blocks(said)), **stop, "usage": figures | {"cache_creation_input_tokens": 0}}


def _blocks(said: Json) -> Iterator[Json]:
    if said["thought"]:
        yield {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}
        yield {"type": "thinking", "thinking": said["thought"], "signature": "c2lnbmVk"}
    if said["text"]:
        yield {"type": "text", "text": said["text"], "citations": None}
    for call in said["calls"]:
        yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}


def anthropic_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Yield its events: the usage at the beginning, and again, with nulls, at the end."""
    whole = anthropic_whole(said)
    start = {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": whole | start}
    for index, block in enumerate(whole["content"]):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty.get(block["type"], {})}
        yield {"type": "ping"}
        for delta in _deltas(block, cut):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": whole["usage"]["output_tokens"], "input_tokens": None}
    yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": usage}
    yield {"type": "message_stop"}


def _deltas(block: Json, cut: Cut) -> Iterator[Json]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in cut(block["text"]))
    elif block["type"] == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "tool_use":
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in cut(block["input"]))


# --- Gemini --------------------------------------------------------------------------------------------------------------


def gemini_whole(said: Json) -> Json:
    """Return generated content; its arguments are always an object."""
    *_, end = gemini_stream(said, lambda text: [text])
    candidate = end["candidates"][0] | {"content": {"role": "model", "parts": list(_parts(said))}}
    return end | {"candidates": [candidate]}


def _parts(said: Json) -> Iterator[Json]:
    if said["thought"]:
        yield {"text": said["thought"], "thought": True}
    if said["text"]:
        yield {"text": said["text"], "thoughtSignature": "c2lnbmVk"}
    for number, call in enumerate(said["calls"]):
        signed = {"thoughtSignature": "c2lnbmVkIHRvbw=="} if number == 0 else {}
        yield {"functionCall": {"id": call["id"], "name": call["name"], "args": {"n": number}}, **signed}


def gemini_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Yield it as a series of answers; a signature arrives with the last piece of its part."""
    own = {"responseId": "r-1", "modelVersion": "m-2026"}
    for part in _parts(said):
        *before, last = cut(part["text"]) if "text" in part else [""]
        unsigned = {key: value for key, value in part.items() if key != "thoughtSignature"}
        for shown in (*(unsigned | {"text": piece} for piece in before), part | ({"text": last} if last else {})):
            yield own | {"candidates": [{"content": {"parts": [shown]}, "index": 0}]}
    read, cached, written = said["usage"]
    usage = {"promptTokenCount": read + cached, "cachedContentTokenCount": cached, "candidatesTokenCount": written}
    yield own | {"candidates": [{"content": {}, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


# --- Gemini's Interactions -----------------------------------------------------------------------------------------------


def interactions_whole(said: Json) -> Json:
    """Return an interaction; its arguments are always an object."""
    read, cached, written = said["usage"]
    usage = {"total_input_tokens": read + cached, "total_cached_tokens": cached, "total_output_tokens": written}
    own = {"id": "v1_1", "model": "m-2026", "status": "requires_action" if said["calls"] else "completed"}
    return own | {"steps": list(_steps(said)), "usage": usage}


def _steps(said: Json) -> Iterator[Json]:
    if said["thought"]:
        summary = [{"type": "text", "text": text} for text in (said["thought"], "And more.")]
        yield {"type": "thought", "signature": "c2lnbmVk", "summary": summary}
    if said["text"]:
        yield {"type": "model_output", "content": [{"type": "text", "text": said["text"]}]}
    for number, call in enumerate(said["calls"]):
        yield {"type": "function_call", "id": call["id"], "name": call["name"], "arguments": {"n": number}}


def interactions_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Yield its events. The end of a step may be missing, and the usage comes with the end."""
    whole = interactions_whole(said)
    head = {key: whole[key] for key in ("id", "model")}
    yield {"event_type": "interaction.created", "interaction": head | {"status": "in_progress"}}
    yield {"event_type": "interaction.status_update", "interaction_id": "v1_1", "status": "in_progress"}
    for index, step in enumerate(whole["steps"]):
        kind = step["type"]
        begun = step | {"arguments": {}} if kind == "function_call" else {"type": kind}
        yield {"event_type": "step.start", "index": index, "step": begun}
        for delta in _step_deltas(step, cut):
            yield {"event_type": "step.delta", "index": index, "delta": delta}
        if kind != "thought":
            yield {"event_type": "step.stop", "index": index}
    end = {key: value for key, value in whole.items() if key != "steps"}
    yield {"event_type": "interaction.completed", "interaction": end}


def _step_deltas(step: Json, cut: Cut) -> Iterator[Json]:
    if step["type"] == "thought":
        yield from ({"type": "thought_summary", "content": content} for content in step["summary"])
        yield {"type": "thought_signature", "signature": step["signature"]}
    elif step["type"] == "model_output":
        yield from ({"type": "text", "text": piece} for piece in cut(step["content"][0]["text"]))
    else:
        written = json.dumps(step["arguments"], separators=(",", ":"))
        yield from ({"type": "arguments_delta", "arguments": piece} for piece in cut(written))


WHOLES: Mapping[str, Callable[[Json], Json]] = {
    "openai-chat": chat_whole,
    "openai-responses": responses_whole,
    "anthropic": anthropic_whole,
    "gemini": gemini_whole,
    "gemini-interactions": interactions_whole,
}
STREAMS: Mapping[str, Callable[[Json, Cut], Iterator[Json]]] = {
    "openai-chat": chat_stream,
    "openai-responses": responses_stream,
    "anthropic": anthropic_stream,
    "gemini": gemini_stream,
    "gemini-interactions": interactions_stream,
}
