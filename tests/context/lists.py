"""Lists of messages in each dialect, and the requests that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from palaver.context.fit import Fit
from palaver.providers import APIS, profile
from palaver.wire import validate

PAGE = "\n".join(f"line {number} of some output" for number in range(200))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}}

Item = dict[str, Any]


def chat(turns: int, page: str = PAGE) -> list[Item]:
    """Return a session of chat completions: asks, calls, outputs."""
    found: list[Item] = [{"role": "system", "content": "be brief"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "sh", "arguments": '{"cmd": "ls"}'}}
        found += [
            {"role": "user", "content": f"ask {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number}: {page}"},
        ]
    return [*found, {"role": "user", "content": "ask last"}]


def claude(turns: int, page: str = PAGE) -> list[Item]:
    """Return a session of Anthropic's Messages: signed thinking, calls, results beside the user's words."""
    found: list[Item] = [{"role": "user", "content": "ask first"}]
    for number in range(turns):
        thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
        use = {"type": "tool_use", "id": f"t{number}", "name": "sh", "input": {"cmd": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number}: {page}"}
        words = {"type": "text", "text": f"ask {number}"}
        found += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result, words]}]
    return [*found, {"role": "assistant", "content": "done"}, {"role": "user", "content": "ask last"}]


def responses(turns: int, page: str = PAGE) -> list[Item]:
    """Return a session of OpenAI's Responses: reasoning, two calls at once, a custom one, outputs, words, each with an id."""
    items: list[Item] = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "ask first"}]
    for number in range(turns):
        said = {"type": "output_text", "text": f"done {number}", "annotations": []}
        items += [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"opaque{number}"},
            {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "sh", "arguments": "{}"},
            {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"d{number}", "name": "patch", "input": "*"},
            {"type": "function_call_output", "call_id": f"c{number}", "output": f"{number}: {page}"},
            {"type": "custom_tool_call_output", "call_id": f"d{number}", "output": "patched"},
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [said]},
            {"role": "user", "content": f"ask {number}"},
        ]
    return [*items, {"role": "user", "content": "ask last"}]


def gemini(turns: int, page: str = PAGE) -> list[Item]:
    """Return a session of Gemini: a signed call without an id and one more, their responses, words."""
    found: list[Item] = [{"role": "user", "parts": [{"text": "ask first"}]}]
    for number in range(turns):
        call = {"functionCall": {"name": "sh", "args": {"cmd": "ls"}}}
        answer = {"functionResponse": {"name": "sh", "response": {"output": f"{number}: {page}"}}}
        found += [
            {"role": "model", "parts": [call | {"thoughtSignature": "c2ln"}, call]},
            {"role": "user", "parts": [answer, answer]},
            {"role": "model", "parts": [{"text": f"done {number}"}]},
            {"role": "user", "parts": [{"text": f"ask {number}"}]},
        ]
    return [*found, {"role": "model", "parts": [{"text": "done"}]}, {"role": "user", "parts": [{"text": "ask last"}]}]


def steps(turns: int, page: str = PAGE) -> list[Item]:
    """Return a session of Gemini's Interactions: signed thoughts, two calls at once, results, words."""
    found: list[Item] = [{"type": "user_input", "content": [{"type": "text", "text": "ask first"}]}]
    for number in range(turns):
        ids = (f"c{number}", f"d{number}")
        found += [
            {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "hm"}]},
            *({"type": "function_call", "id": each, "name": "sh", "arguments": {"cmd": "ls"}} for each in ids),
            *(
                {"type": "function_result", "call_id": each, "name": "sh", "result": f"{number}: {page}"}
                for each in ids
            ),
            {"type": "model_output", "content": [{"type": "text", "text": f"done {number}"}]},
            {"type": "user_input", "content": [{"type": "text", "text": f"ask {number}"}]},
        ]
    return [*found, {"type": "user_input", "content": [{"type": "text", "text": "ask last"}]}]


LISTS: Mapping[str, Callable[..., list[Item]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": claude,
    "gemini": gemini,
    "gemini-interactions": steps,
}

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
    "gemini-interactions": "gemini-3.6-flash",
}
KEYS = {name: profile(name).conversation for name in MODELS}

TOOLS: Mapping[str, Item] = {
    "openai-chat": {"type": "function", "function": {"name": "sh", "description": "run", "parameters": SCHEMA}},
    "openai-responses": {"type": "function", "name": "sh", "description": "run", "parameters": SCHEMA, "strict": False},
    "anthropic": {"name": "sh", "description": "run", "input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [{"name": "sh", "description": "run", "parameters": SCHEMA}]},
    "gemini-interactions": {"type": "function", "name": "sh", "description": "run", "parameters": SCHEMA},
}


def body(name: str, fitted: Fit) -> Item:
    """Return the request that sends a list, with the tools of the caller and of `fit`."""
    found: Item = {KEYS[name]: fitted.messages, "tools": [TOOLS[name], *fitted.tools]}
    if name != "gemini":
        found["model"] = MODELS[name]
    if name == "anthropic":
        found["max_tokens"] = 100
    if fitted.system:
        key = APIS[name].dialect.system
        found[key] = {"parts": [{"text": fitted.system}]} if name == "gemini" else fitted.system
    return found


def faults(name: str, fitted: Fit, model: str = "") -> list[str]:
    """Return what the provider would refuse in a list; one that ends on the model's words is a history."""
    last = fitted.messages[-1]
    said = APIS[name].dialect.by_model(last)
    found = validate(body(name, fitted), profile(name, model or MODELS[name]), as_history=said)
    return [str(fault) for fault in found]
