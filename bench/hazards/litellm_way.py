"""How LiteLLM's documentation does it: `completion` with a list of messages and a loop over the calls; `responses` where nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import litellm
from litellm.utils import trim_messages

from bench.hazards.plays import Ask, Fact

PACKAGES = ("litellm",)
litellm.drop_params = True  # "drop any params that the model does not take"
_SEARCH = {"type": "web_search_20250305", "name": "web_search"}


class Talk:
    """A list of messages."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Begin."""
        self._urls = urls
        self._history: list[Any] = []

    async def ask(self, ask: Ask) -> None:
        """Ask."""
        self._history.append({"role": "user", "content": ask.text})
        going = True
        while going:
            going = await (self._complete(ask) if ask.stored else self._respond(ask))

    async def _complete(self, ask: Ask) -> bool:
        api, name = ask.to
        model = f"{api}/{name}"
        if ask.keep is not None:
            self._history = trim_messages(self._history, model, max_tokens=1_300)
        if api == "openai" and any(not isinstance(each, dict) for each in self._history):
            model = f"{api}/responses/{name}"  # the bridge, for a history with other models' thinking
        messages = [{"role": "system", "content": ask.instructions}, *self._history]
        place = {"api_base": self._urls[api]}
        answer: Any = await litellm.acompletion(model, messages, stream=ask.stream, **place, **_options(ask))
        if ask.stream:
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=messages)
        message = answer.choices[0].message
        self._history.append(message)
        tools = {tool.__name__: tool for tool in ask.tools}
        calls = [call for call in message.tool_calls or () if call.function.name in tools]
        for call in calls:
            done = tools[call.function.name](**json.loads(call.function.arguments))
            self._history.append({"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": done})
        return bool(calls) or (message.provider_specific_fields or {}).get("stop_reason") == "pause_turn"

    async def _respond(self, ask: Ask) -> bool:
        answer: Any = await litellm.aresponses(
            input=self._history,
            model="/".join(ask.to),
            instructions=ask.instructions,
            tools=[{"type": "function", **_declared(tool)} for tool in ask.tools],
            store=False,
            include=["reasoning.encrypted_content"],
            api_base=self._urls[ask.to[0]],
        )
        self._history += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        tools = {tool.__name__: tool for tool in ask.tools}
        for call in calls:
            done = tools[call.name](**json.loads(call.arguments))
            self._history.append({"type": "function_call_output", "call_id": call.call_id, "output": done})
        return bool(calls)


def _options(ask: Ask) -> dict[str, Any]:
    tools: list[Any] = [{"type": "function", "function": _declared(tool)} for tool in ask.tools]
    options = {
        "tools": tools + [_SEARCH] * ask.search,
        "temperature": ask.temperature,
        "response_format": Fact if ask.schema else None,
        "reasoning_effort": "medium" if ask.to[0] == "anthropic" else None,
        "context_management": {"edits": [{"type": "compact_20260112"}]} if ask.compact else None,
    }
    return {name: value for name, value in options.items() if value not in (None, [])}


def _declared(tool: Any) -> dict[str, Any]:  # noqa: ANN401 - a function
    names = [name for name in tool.__annotations__ if name != "return"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    return {"name": tool.__name__, "description": tool.__doc__, "parameters": schema}
