"""Answers of Anthropic's Messages API (platform.claude.com/docs/en/api/messages, and …/build-with-claude/streaming)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from palaver.messages import APITypes, AssistantMessage, Content, ToolCallContent, UnknownContent, freeze
from palaver.messages.roles import WAITS
from palaver.providers.anthropic.blocks import CALLS
from palaver.providers.provider import Event
from palaver.providers.reader import AnswerReader, Json, as_json, items, kept, mapping, text
from palaver.view.blocks import CARRIED
from palaver.wire import Request
from palaver.wire.served import FALLBACK


class AnthropicAnswer(AnswerReader):
    """Reads a message, or the events of its stream.

    Blocks keep their order and what makes them valid in the next request: the signature of thinking, the data of redacted thinking, the
    id of a call. Blocks of all other kinds are kept whole.
    """

    _api = APITypes.COMPLETION

    def __init__(self, request: Request, provider: str) -> None:
        """Begin to read the answer to a request."""
        super().__init__(request, provider)
        self._open: dict[int, Json] = {}
        self._citations: dict[int, list[Json]] = {}
        self._inputs: dict[int, str] = {}
        self._signer = self._model

    def _whole(self, data: Json) -> Iterator[Event]:
        self._judge(data)
        if not isinstance(data.get("content"), list | tuple):
            raise self.broken("The answer has no content.")
        self._header(data)
        for index, block in enumerate(items(data["content"])):
            yield from self._begin(index, block)
            if block.get("type") == "tool_use":
                yield from self._call(index, arguments=as_json(block.get("input")))
        self._footer(data)
        yield from self._used(data.get("usage"))

    def _piece(self, data: Json) -> Iterator[Event]:
        self._judge(data)
        kind, index = text(data.get("type")), data.get("index")
        if kind == "message_start":
            message = mapping(data.get("message"))
            self._header(message)
            yield from self._used(message.get("usage"))
        elif kind == "message_delta":
            self._footer({**kept(data, "type", "delta", "usage"), **mapping(data.get("delta"))})
            usage = mapping(data.get("usage"))
            # a null at the end does not take back a figure of the beginning
            yield from self._used({key: value for key, value in usage.items() if value is not None})
        elif kind.startswith("content_block_"):
            if not isinstance(index, int):
                raise self.broken("A piece of a block has no index.")
            yield from self._of_block(kind, index, data)

    def _of_block(self, kind: str, index: int, data: Json) -> Iterator[Event]:
        if kind == "content_block_start":
            yield from self._begin(index, mapping(data.get("content_block")))
        elif index not in self._open:
            raise self.broken("A piece belongs to a block that has not begun.")
        elif kind == "content_block_delta":
            yield from self._more(index, mapping(data.get("delta")))
        else:
            yield from self._finish(index)

    def _begin(self, index: int, block: Json) -> Iterator[Event]:
        """Read a block, or the start of a streamed one."""
        kind = text(block.get("type"))
        self._open[index] = block
        owner = {"provider": "anthropic", "model": self._signer}
        if kind == "text":
            yield from self._text(index, text(block.get("text")), **kept(block, "text"))
        elif kind == "thinking":
            yield from self._thinking(index, text(block.get("thinking")), text(block.get("signature")), **owner)
        elif kind == "redacted_thinking":
            yield from self._thinking(index, "", redacted=text(block.get("data")), **owner)
        elif kind == "tool_use":
            more = kept(block, "id", "name", "input")
            yield from self._call(index, text(block.get("id")), text(block.get("name")), **more)
        elif not self._streamed:
            yield from self._unknown(index, block)
        if kind == FALLBACK:
            self._signer = text(mapping(block.get("to")).get("model")) or self._signer

    def _more(self, index: int, delta: Json) -> Iterator[Event]:
        kind = text(delta.get("type"))
        if kind == "text_delta":
            yield from self._text(index, text(delta.get("text")))
        elif kind == "thinking_delta":
            yield from self._thinking(index, text(delta.get("thinking")))
        elif kind == "signature_delta":
            yield from self._thinking(index, "", text(delta.get("signature")))
        elif kind == "citations_delta":
            self._citations.setdefault(index, []).append(mapping(delta.get("citation")))
        elif kind == "compaction_delta":
            self._open[index] = {
                **self._open[index],
                **{name: value for name, value in delta.items() if name != "type"},
            }
        elif kind == "input_json_delta":
            piece = text(delta.get("partial_json"))
            if self._open[index].get("type") == "tool_use":
                yield from self._call(index, arguments=piece)
            else:
                self._inputs[index] = self._inputs.get(index, "") + piece

    def _finish(self, index: int) -> Iterator[Event]:
        block = self._open[index]
        if index in self._citations:
            yield from self._text(index, "", citations=self._citations[index])
        elif block.get("type") not in {"text", "thinking", "redacted_thinking", "tool_use"}:
            yield from self._unknown(index, self._with_input(index, block))

    def _with_input(self, index: int, block: Json) -> Json:
        """Return a block of one of Anthropic's own tools with its streamed input."""
        try:
            return {**block, "input": json.loads(self._inputs[index])} if self._inputs.get(index) else block
        except ValueError:
            return {**block, "input": self._inputs[index]}

    def _contents(self, contents: tuple[Content, ...]) -> tuple[Content, ...]:
        """Return the blocks; the calls of a model before the fallback to another are kept as they came, and are none to run."""
        contents = tuple(self._member(block) for block in contents)
        last = max((at for at, block in enumerate(contents) if block.type == FALLBACK), default=0)
        return tuple(
            UnknownContent(type="tool_use", id=block.id, name=block.name, input=block.args)
            if at < last and isinstance(block, ToolCallContent)
            else block
            for at, block in enumerate(contents)
        )

    def _member(self, block: Content) -> Content:
        """Return a call of a member of a toolset as one of the tool that runs them all, with the member as its `action`."""
        ours = (
            self._names.get(str(block.model_extra.get("toolset_name"))) if isinstance(block, ToolCallContent) else None
        )
        if ours is None or not isinstance(block, ToolCallContent):
            return block
        args = block.args if block.error else freeze({"action": block.name, **block.args}, "args")
        return block.model_copy(
            update={"name": ours, "args": args, "raw_args": block.raw_args if block.error else None}
        )

    def _told(self, message: AssistantMessage) -> dict[str, Any]:
        """Return whether a tool of Anthropic's still runs: its result is not there, or its code called a tool of the caller's."""
        made = {str(block.model_extra.get("id")) for block in message.contents if block.type in CALLS}
        done = {
            str(block.model_extra.get("tool_use_id"))
            for block in message.contents
            if block.type.endswith("_tool_result")
        }
        code = [mapping(call.model_extra.get("caller")).get("tool_id") for call in message.tool_calls()]
        return {WAITS: True} if made - done or any(code) else {}

    def _judge(self, data: Json) -> None:
        """Raise the error that the answer reports in place of a message."""
        error = mapping(data.get("error"))
        if data.get("type") == "error" or error:
            raise self.failed(error, data)

    def _header(self, message: Json) -> None:
        self._response_id = text(message.get("id")) or self._response_id
        self._served_by(message.get("model"))
        self._kept(message)

    def _footer(self, said: Json) -> None:
        self._stop = text(said.get("stop_reason")) or self._stop
        self._kept(said)

    def _kept(self, said: Json) -> None:
        """Keep what the answer says about itself, and what the next request repeats."""
        self._metadata |= kept(said, "stop_reason", "content", "id", "model", "role", "usage")
        container = text(mapping(said.get("container")).get("id"))
        token = text(mapping(said.get("stop_details")).get("fallback_credit_token"))
        if repeats := kept({"container": container, "fallback_credit_token": token}):
            self._metadata[CARRIED] = repeats


READER = AnthropicAnswer
