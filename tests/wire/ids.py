"""The ids of calls and results in a request, however its provider spells them."""

from palaver.wire import Request

__all__ = ["wire_ids"]


def wire_ids(request: Request) -> tuple[list[str], list[str]]:
    """Return the ids of calls and of results, each in the order of the request."""
    body, name = request.body, request.profile.name
    if name == "openai-chat":
        made = [each["id"] for message in body["messages"] for each in message.get("tool_calls", ())]
        return made, [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    if name == "openai-responses":
        found = {
            kind: [item["call_id"] for item in body["input"] if item["type"] == kind]
            for kind in ("function_call", "function_call_output")
        }
        return found["function_call"], found["function_call_output"]
    if name == "anthropic":
        blocks = [block for message in body["messages"] for block in message["content"]]
        return [b["id"] for b in blocks if b["type"] == "tool_use"], [
            b["tool_use_id"] for b in blocks if b["type"] == "tool_result"
        ]
    if name == "gemini-interactions":
        steps = body["input"]
        return [step["id"] for step in steps if step["type"] == "function_call"], [
            step["call_id"] for step in steps if step["type"] == "function_result"
        ]
    parts = [part for content in body["contents"] for part in content["parts"]]
    return [p["functionCall"]["id"] for p in parts if "functionCall" in p], [
        p["functionResponse"]["id"] for p in parts if "functionResponse" in p
    ]
