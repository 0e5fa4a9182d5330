"""Answers of each API as its server would send them, whole or cut into a stream at any places."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
Cut = Callable[[str], list[str]]

__all__ = ["STREAMS", "WHOLES", "Json", "contents", "cutting"]

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=30)
IDS = st.from_regex(r"[a-z0-9]{4,8}", fullmatch=True)
ARGUMENTS = st.sampled_from(
    ['{"command": "ls"}', '{"b": 1, "a": [true, null]}', "{}", '{"path": "\\ud83d\\ude00 ü"}', '{"cut']
)


def contents() -> st.SearchStrategy[Json]:
    """Give what an answer says, in words of no API: thoughts, texts and calls."""
    call = st.fixed_dictionaries({"id": IDS, "name": st.sampled_from(["bash", "read"]), "arguments": ARGUMENTS})
    return st.fixed_dictionaries(
        {
            "thought": st.none() | TEXTS,
            "text": st.none() | TEXTS,
            "calls": st.lists(call, max_size=3, unique_by=lambda made: made["id"]),
            "usage": st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
        }
    )


@st.composite
def cutting(draw: st.DrawFn) -> Cut:
    """Give a way to cut texts: anywhere, also between the halves of a character beyond the basic plane."""
    random = draw(st.randoms(use_true_random=False))

    def cut(text: str) -> list[str]:
        units = text.encode("utf-16-le")
        pieces, at = [], 0
        while at < len(units):
            size = 2 * random.randint(1, 6)
            pieces.append(units[at : at + size].decode("utf-16-le", "surrogatepass"))
            at += size
        return pieces

    return cut


# --- OpenAI chat completions ---------------------------------------------------------------------------------------------


def chat_whole(said: Json) -> Json:
    """Write a chat completion."""
    message: Json = {"role": "assistant", "content": said["text"], "refusal": None}
    if said["thought"]:
        message["reasoning_content"] = said["thought"]
    if said["calls"]:
        message["tool_calls"] = [_function(call) for call in said["calls"]]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said["calls"] else "stop"}
    return {"id": "chatcmpl-1", "model": "m-2026", "choices": [choice], "usage": _chat_usage(said)}


def _function(call: Json) -> Json:
    return {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}


def _chat_usage(said: Json) -> Json:
    read, cached, written = said["usage"]
    return {
        "prompt_tokens": read + cached,
        "completion_tokens": written,
        "total_tokens": read + cached + written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def chat_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Write its chunks, calls interleaved, with the usage in a last chunk without choices."""

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {
            "id": "chatcmpl-1",
            "model": "m-2026",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        }

    yield chunk({"role": "assistant", "content": ""})
    for piece in cut(said["thought"] or ""):
        yield chunk({"reasoning_content": piece})
    for piece in cut(said["text"] or ""):
        yield chunk({"content": piece})
    queues = []
    for index, call in enumerate(said["calls"]):
        head = {
            "index": index,
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": ""},
        }
        queues.append([head, *({"index": index, "function": {"arguments": piece}} for piece in cut(call["arguments"]))])
    while any(queues):
        yield chunk({"tool_calls": [queue.pop(0) for queue in queues if queue]})
    yield chunk({}, "tool_calls" if said["calls"] else "stop")
    yield {"id": "chatcmpl-1", "model": "m-2026", "choices": [], "usage": _chat_usage(said)}


# --- OpenAI responses ----------------------------------------------------------------------------------------------------


def responses_whole(said: Json) -> Json:
    """Write a response."""
    return {
        "id": "resp_1",
        "model": "m-2026",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": list(_items(said)),
        "usage": _responses_usage(said),
    }


def _responses_usage(said: Json) -> Json:
    read, cached, written = said["usage"]
    return {"input_tokens": read + cached, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": written}


def _items(said: Json) -> Iterator[Json]:
    if said["thought"]:
        summary = [{"type": "summary_text", "text": text} for text in (said["thought"], "And more.")]
        yield {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "c2VjcmV0", "status": None}
    if said["text"]:
        part = {"type": "output_text", "text": said["text"], "annotations": []}
        yield {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [part],
            "phase": "commentary",
        }
    for call in said["calls"]:
        yield {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "status": "completed"} | {
            "name": call["name"],
            "arguments": call["arguments"],
        }


def responses_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Write its events."""
    yield {
        "type": "response.created",
        "response": {"id": "resp_1", "model": "m-2026", "status": "in_progress", "output": []},
    }
    for index, item in enumerate(_items(said)):
        at = {"output_index": index, "item_id": item["id"]}
        yield {
            "type": "response.output_item.added",
            "output_index": index,
            "item": item | {"status": "in_progress", "arguments": ""},
        }
        if item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                yield {"type": "response.reasoning_summary_part.added", **at, "summary_index": number}
                for piece in cut(part["text"]):
                    yield {
                        "type": "response.reasoning_summary_text.delta",
                        **at,
                        "summary_index": number,
                        "delta": piece,
                    }
        elif item["type"] == "message":
            for piece in cut(said["text"]):
                yield {"type": "response.output_text.delta", **at, "content_index": 0, "delta": piece}
        else:
            for piece in cut(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": responses_whole(said)}


# --- Anthropic messages --------------------------------------------------------------------------------------------------


def anthropic_whole(said: Json) -> Json:
    """Write a message."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-2026",
        "content": list(_blocks(said)),
        "stop_reason": "tool_use" if said["calls"] else "end_turn",
        "stop_sequence": None,
        "usage": _anthropic_usage(said),
    }


def _anthropic_usage(said: Json) -> Json:
    read, cached, written = said["usage"]
    return {
        "input_tokens": read,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": written,
    }


def _blocks(said: Json) -> Iterator[Json]:
    if said["thought"]:
        yield {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}
        yield {"type": "thinking", "thinking": said["thought"], "signature": "c2lnbmVk"}
    if said["text"]:
        yield {"type": "text", "text": said["text"], "citations": None}
    for call in said["calls"]:
        yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["arguments"]}


def anthropic_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Write its events: the usage is told at the beginning, and again, with nulls, at the end."""
    whole = anthropic_whole(said)
    yield {
        "type": "message_start",
        "message": whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}},
    }
    for index, block in enumerate(whole["content"]):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty.get(block["type"], {})}
        yield {"type": "ping"}
        for delta in _deltas(block, cut):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": whole["usage"]["output_tokens"], "input_tokens": None}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
        "usage": usage,
    }
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
    """Write a generation of content; arguments that are no JSON cannot stand in one."""
    return {
        "responseId": "r-1",
        "modelVersion": "m-2026",
        "candidates": [{"content": {"role": "model", "parts": list(_parts(said))}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": _gemini_usage(said),
    }


def _gemini_usage(said: Json) -> Json:
    read, cached, written = said["usage"]
    return {"promptTokenCount": read + cached, "cachedContentTokenCount": cached, "candidatesTokenCount": written}


def _parts(said: Json) -> Iterator[Json]:
    if said["thought"]:
        yield {"text": said["thought"], "thought": True}
    if said["text"]:
        yield {"text": said["text"], "thoughtSignature": "c2lnbmVk"}
    for number, call in enumerate(said["calls"]):
        signed = {"thoughtSignature": "c2lnbmVkIHRvbw=="} if number == 0 else {}
        yield {"functionCall": {"id": call["id"], "name": call["name"], "args": {"n": number}}, **signed}


def gemini_stream(said: Json, cut: Cut) -> Iterator[Json]:
    """Write it as a row of answers; a signature comes with the last piece of its part."""
    for part in _parts(said):
        pieces = cut(part["text"]) if "text" in part else [""]
        for number, piece in enumerate(pieces, start=1):
            own = {key: value for key, value in part.items() if key != "thoughtSignature" or number == len(pieces)}
            shown = own | {"text": piece} if "text" in part else own
            yield {
                "responseId": "r-1",
                "modelVersion": "m-2026",
                "candidates": [{"content": {"parts": [shown]}, "index": 0}],
            }
    end = {"candidates": [{"content": {}, "finishReason": "STOP"}], "usageMetadata": _gemini_usage(said)}
    yield {"responseId": "r-1", "modelVersion": "m-2026"} | end


WHOLES: Mapping[str, Callable[[Json], Json]] = {
    "openai-chat": chat_whole,
    "openai-responses": responses_whole,
    "anthropic": anthropic_whole,
    "gemini": gemini_whole,
}
STREAMS: Mapping[str, Callable[[Json, Cut], Iterator[Json]]] = {
    "openai-chat": chat_stream,
    "openai-responses": responses_stream,
    "anthropic": anthropic_stream,
    "gemini": gemini_stream,
}
