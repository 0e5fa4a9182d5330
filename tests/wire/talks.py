"""Dialogs with the stand-ins that refuse, through the vendors' own clients: each request is compiled, sent, answered, and the answer appended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import anthropic

from palaver.log import Instructions, MessageEntry, Section, Toolset, ToolSpec
from palaver.messages import Message, ToolMessage, ToolResultContent, thaw
from palaver.providers import collect
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing import strict
from palaver.wire import Request
from tests.wire.scenes import BASH

Json = dict[str, Any]

STRICT = "claude-fable-5-1"
THOUGHT: Json = {"type": "thinking", "thinking": "hm"}
SEARCH: Json = {"type": "server_tool_use", "name": "web_search", "input": {"query": "herons"}}
FOUND: Json = {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "title": "Herons", "url": "https://example.org", "encrypted_content": "x"}]}  # fmt: skip
CALL: Json = {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}
WEB: Json = {"provider_tools": {"web_search": True}}


class Talk:
    """A dialog with a stand-in.

    Attributes:
        dialog: The dialog.
        request: The newest request.
    """

    def __init__(self, server: strict.StrictServer, model: str = STRICT, *tools: ToolSpec, **call: Any) -> None:  # noqa: ANN401 - of a call
        """Begin, with options of every call."""
        self.server, self.model, self.call = server, model, call
        self.dialog: Dialog = Session.create(MemoryStore(), "talk").root
        self.dialog.record(Instructions(sections=(Section(name="role", text="Be brief."),)))
        self.dialog.record(Toolset(tools=tools or (BASH,)))
        self.request: Request

    def ask(self, text: str = "", *answer: Json | str, stream: bool = False, stop: str = "", **call: Any) -> Message:  # noqa: ANN401
        """Say something, ask, and append the answer; whole, or as it was streamed."""
        if text:
            self.dialog.put_text(text)
        if answer:
            self.server.answers(strict.NextAnswer(answer, stop=stop))
        self.request = self.dialog.request("anthropic", self.model, **({"stream": stream} | self.call | call))
        if stream:
            message = asyncio.run(self._streamed())
            self.dialog.record(MessageEntry(message=message, bound=self.request.bound_for(message)))
        else:
            self._send()
        return self.dialog.messages[-1]

    async def _streamed(self) -> Message:
        async with aclosing(AnthropicProvider(base_url=self.server.url, api_key="key")) as provider:
            return await collect(provider.stream(self.request))

    def _send(self) -> None:
        with anthropic.Anthropic(base_url=self.server.url, api_key="key", max_retries=0) as client:
            self.dialog.append(client.messages.create(**self.request))

    def results(self, text: str = "done") -> None:
        """Append results for the calls of the newest answer."""
        results = [ToolResultContent(id=call.id, content=text) for call in self.dialog.messages[-1].tool_calls()]
        self.dialog.append(ToolMessage.from_results(results))

    @property
    def sent(self) -> list[Json]:
        """The messages of the newest request."""
        said: list[Json] = thaw(self.request.body)["messages"]
        return said

    @property
    def kinds(self) -> list[list[str]]:
        """The kinds of the blocks of each message of the newest request."""
        return [[block["type"] for block in message["content"]] for message in self.sent]

    @property
    def losses(self) -> list[str]:
        """What the report of the newest request says was lost."""
        return [f"{change.what}: {change.why}" for change in self.request.report.lost()]


def accepted(server: strict.StrictServer) -> None:
    """Require that the server refused and dropped nothing."""
    assert [served.message for served in server.refused] == []
    assert server.dropped == []
