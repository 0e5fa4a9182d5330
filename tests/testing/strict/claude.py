"""Asking the stand-in of the Messages API through the vendor's own client."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest

from palaver.testing import strict
from tests.clients import opened

Json = dict[str, Any]

BINDING = "thinking-binding-controls-2026-08-01"
STRICT = "claude-fable-5-1"
SYSTEM = "You plan releases."
TOOLS: list[Json] = [
    {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}},
    {"name": "read", "description": "Read a file.", "input_schema": {"type": "object", "properties": {}}},
]
THOUGHT: Json = {"type": "thinking", "thinking": "hm"}


class Talk:
    """A conversation with the stand-in, in which the history is what the server answered."""

    def __init__(self, server: strict.StrictServer, model: str = STRICT, **fields: object) -> None:
        self.server, self.model = server, model
        self.fields: dict[str, object] = {"system": SYSTEM, "tools": TOOLS} | fields
        self.messages: list[Json] = []
        self.client = opened(anthropic.Anthropic(base_url=server.url, api_key="key", max_retries=0))

    def ask(self, said: object = None, *answer: Json | str, **fields: object) -> Json:
        """Ask, and keep the question and the answer."""
        if answer:
            self.server.answers(answer)
        if said is not None:
            self.messages.append({"role": "user", "content": said})
        message = self.send(**fields)
        self.messages.append({"role": "assistant", "content": message["content"]})
        return message

    def send(self, **fields: object) -> Json:
        """Send the history with these fields in place of the usual ones, and return the answer."""
        body = {"max_tokens": 2_048, "model": self.model, "messages": self.messages} | self.fields | fields
        body = {name: value for name, value in body.items() if value is not None}
        self.client.beta.messages.create(**body)  # type: ignore[call-overload]
        return copy.deepcopy(self.server.served[-1].body)

    def results(self, **contents: object) -> list[Json]:
        """Return results for the calls of the last answer."""
        calls = [block["id"] for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        return [{"type": "tool_result", "tool_use_id": call, "content": "done"} | contents for call in calls]


@contextmanager
def refusal(text: str, status: int = 400, code: str = "") -> Iterator[None]:
    """Expect a refusal with this text, status and error code."""
    with pytest.raises(anthropic.APIStatusError) as caught:
        yield
    body = caught.value.body
    assert isinstance(body, dict)
    assert caught.value.status_code == status
    assert text in body["error"]["message"], body["error"]["message"]
    assert body["error"].get("details", {}).get("error_code", "") == code
