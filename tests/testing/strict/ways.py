"""One conversation with a stand-in in three ways: requests of a dialog, turns of an agent, and `fit` over a list, each through the vendor's client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

import anthropic
import anyio
import openai
import pytest
from google import genai

from palaver.agent import Agent
from palaver.context.fit import Fit, fit
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    words_of,
)
from palaver.providers import Provider, collect, connect_provider
from palaver.providers.registry import APIS
from palaver.session import Dialog, Session
from palaver.testing import strict
from palaver.tools import Function, tool
from palaver.wire import Request

Json = dict[str, Any]
Answer = strict.NextAnswer | Sequence[Json | str] | str

OUTPUT: Final = "out " * 500
_NAMES: Final = {"openai": "openai-chat", "google": "gemini", "google-interactions": "gemini-interactions"}
GOES_ON: Final = frozenset({"pause", "compaction", "continue"})


@tool
def bash(command: str = "") -> str:
    """Run a command."""
    del command
    return OUTPUT


@tool
def read(path: str = "") -> str:
    """Read a file."""
    del path
    return OUTPUT


class Way(ABC):
    """A conversation.

    Attributes:
        server: The stand-in.
        api: The prefix of its model strings.
        model: The model of the next request.
        system: The instructions.
        tools: The tools.
        call: Options of every request.
        key: The key of the client.
        client: Further options of the client.
        drops: Whether a loop with `fit` asks Anthropic to drop the thinking that does not fit.
    """

    def __init__(self, server: strict.StrictServer, api: str, model: str, **call: Any) -> None:  # noqa: ANN401 - of a request
        self.server, self.api, self.model, self.call = server, api, model, call
        self.system = "Be brief."
        self.tools: tuple[Function, ...] = (bash,)
        self.key = "key"
        self.client: Json = {}
        self.drops = False

    def turn(self, said: str, *answers: Answer, **call: Any) -> list[Json]:  # noqa: ANN401 - of a request
        """Say something, or show a `picture`, ask until the model has answered, run its calls, and return the requests that were sent."""
        self.server.answers(*answers)
        before = len(self.server.served)
        self._turn(said, call.pop("picture", b""), self.call | call)
        return [served.asked.body for served in self.server.served[before:]]

    @abstractmethod
    def _turn(self, said: str, picture: bytes, call: Json) -> None: ...

    @property
    @abstractmethod
    def notes(self) -> list[str]:
        """What was left out or changed in the newest request, in words."""

    @property
    def options(self) -> Json:
        """The options of a client of the stand-in."""
        field = "api_base" if self.api == "litellm" else "base_url"
        google = self.api.startswith("google")
        place: Json = {"http_options": {"base_url": self.server.url}} if google else {field: self.server.url}
        return {"api_key": self.key, **self.client, **place}


class DialogWay(Way):
    """Requests of a dialog."""

    def __init__(self, server: strict.StrictServer, api: str, model: str, **call: Any) -> None:  # noqa: ANN401 - of a request
        super().__init__(server, api, model, **call)
        self.dialog: Dialog = Session.create().root
        self.request: Request | None = None

    def _turn(self, said: str, picture: bytes, call: Json) -> None:
        self._settle()
        self.dialog.append(shown(said, picture))
        anyio.run(self._asked, call)

    def _settle(self) -> None:
        specs: tuple[ToolSpec, ...] = tuple(function.spec for function in self.tools)
        instructions = Instructions(sections=(Section(name="role", text=self.system),))
        view = self.dialog.view()
        if [words_of(block.content) for block in view.system] != [self.system]:
            self.dialog.record(instructions)
        if view.tools != specs:
            self.dialog.record(Toolset(tools=specs))

    async def _asked(self, call: Json) -> None:
        provider = connect_provider(self.api, **self.options)
        try:
            for _ in range(6):
                answer = await self._answer(provider, call)
                calls = answer.tool_calls()
                results = [ToolResultContent(id=made.id, name=made.name, content=OUTPUT) for made in calls]
                if results:
                    self.dialog.append(ToolMessage.from_results(results))
                elif answer.stop_reason not in GOES_ON:
                    return
        finally:
            await provider.aclose()

    def asked(self, **call: Any) -> None:  # noqa: ANN401 - of a request
        """Ask without saying anything."""
        anyio.run(self._asked, call)

    async def _answer(self, provider: Provider, call: Json) -> AssistantMessage:
        self.request = self.dialog.request(provider.profile_for(self.model), self.model, **call)
        answer = await collect(provider.stream(self.request))
        self.dialog.append(answer)
        return answer

    @property
    def sent(self) -> Request:
        """The newest request."""
        assert self.request is not None
        return self.request

    @property
    def notes(self) -> list[str]:
        """What was left out or changed in the newest request, in words."""
        assert self.sent.view is not None
        gone = [omission.reason.value for omission in self.sent.view.omissions]
        gone += [change.reason.value for made in self.sent.view.exchanges for change in made.changes.values()]
        return [f"{change.what}: {change.why}" for change in self.sent.report] + gone


class AgentWay(DialogWay):
    """Turns of an agent."""

    def _turn(self, said: str, picture: bytes, call: Json) -> None:
        async def answered(agent: Agent) -> None:
            if picture:
                self.dialog.append(shown(said, picture))
            await agent.arespond("" if picture else said)

        self._with_agent(answered, call)

    def compact(self) -> None:
        """Let the provider compact the conversation."""

        async def compacted(agent: Agent) -> None:
            await agent.acompact()

        self._with_agent(compacted, {"policy": "provider"})

    def _with_agent(self, act: Callable[[Agent], Awaitable[None]], call: Json) -> None:
        call |= call.pop("parameters", {})
        options = {own: call.pop(name) for name, own in _OPTIONS.items() if name in call}

        async def acted() -> None:
            provider = connect_provider(self.api, **self.options)
            agent = Agent("tester", self.system, self.model, provider, tools=self.tools, model_args=call, **options)
            try:
                await act(agent.adopt("main", self.dialog))
            finally:
                await provider.aclose()

        anyio.run(acted)

    @property
    def sent(self) -> Request:
        """The newest request."""
        return self.dialog.calls[-1].request()


_OPTIONS: Final = {"budget": "budget", "policy": "context_manager"}


def shown(said: str, picture: bytes) -> UserMessage:
    """Return a message with a text, and a picture where there is one."""
    pictures = [ImageContent(images=[picture])] if picture else []
    return UserMessage(contents=(TextContent(content=said), *pictures))


class FitWay(Way):
    """A loop of the caller's own over a list, with `fit` before each request."""

    def __init__(self, server: strict.StrictServer, api: str, model: str, **call: Any) -> None:  # noqa: ANN401 - of a request
        super().__init__(server, api, model, **call)
        self.messages: list[Json] = []
        self.fitted: Fit | None = None
        self.served: list[Json] = []

    def _turn(self, said: str, picture: bytes, call: Json) -> None:
        self.messages = [*self.messages, self._said(said, picture)]
        for _ in range(6):
            body = self._answer(dict(call))
            self.messages = [*self.messages, *self._items(body)]
            results = self._results(body)
            self.messages = [*self.messages, *results]
            if not results and body.get("stop_reason") != "pause_turn":
                return

    def _answer(self, call: Json) -> Json:
        name = _NAMES.get(self.api, self.api)
        tools = [dict(APIS[name].dialect.declare(function.spec)) for function in self.tools]
        options = {name: call.pop(name) for name in ("budget", "policy") if name in call}
        tools += self.served
        self.fitted = fit(self.messages, model=self.model, system=self.system, tools=tools, dialect=name, **options)
        self._send(self.fitted, [*tools, *self.fitted.tools], call)
        return self.server.served[-1].body

    def _send(self, fitted: Fit, tools: list[Any], call: Json) -> None:
        with ExitStack() as stack:
            if self.api == "anthropic":
                client = stack.enter_context(anthropic.Anthropic(**self.options, max_retries=0))
                fields = {"max_tokens": 2_048, "system": fitted.system, "messages": fitted.messages, "tools": tools}
                net = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
                asked: Json = {"thinking": net, "betas": ["thinking-binding-controls-2026-08-01"]} if self.drops else {}
                client.beta.messages.create(model=self.model, **fields | asked | call)
            elif self.api == "openai-responses":
                other = stack.enter_context(openai.OpenAI(**self.options, max_retries=0))
                fields = {"input": fitted.messages, "tools": tools, "store": False, "instructions": fitted.system}
                other.responses.create(model=self.model, **fields | call)
            elif self.api == "openai":
                options = {key: value for key, value in self.options.items() if key != "server"}
                other = stack.enter_context(openai.OpenAI(**options, max_retries=0))
                messages = [{"role": "system", "content": fitted.system}, *fitted.messages]
                other.chat.completions.create(model=self.model, messages=messages, tools=tools, **call)
            else:
                google = genai.Client(**self.options)
                stack.callback(google.close)
                if self.api == "google":
                    config: Any = {"system_instruction": fitted.system, "tools": tools, **call}
                    google.models.generate_content(model=self.model, contents=fitted.messages, config=config)
                else:
                    fields = {"system_instruction": fitted.system, "tools": tools, "store": False}
                    google.interactions.create(model=self.model, input=fitted.messages, **fields | call)

    def _said(self, text: str, picture: bytes) -> Json:
        if picture:
            source = {"type": "base64", "media_type": "image/png", "data": b64encode(picture).decode()}
            return {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "source": source}]}
        if self.api == "google":
            return {"role": "user", "parts": [{"text": text}]}
        if self.api == "google-interactions":
            return {"type": "user_input", "content": [{"type": "text", "text": text}]}
        return {"role": "user", "content": text}

    def _items(self, body: Json) -> list[Json]:
        """Return an answer as items of the list."""
        match self.api:
            case "anthropic":
                return [{"role": "assistant", "content": body["content"]}]
            case "openai-responses":
                return list(body["output"])
            case "openai":
                return [body["choices"][0]["message"]]
            case "google":
                return [body["candidates"][0]["content"]]
            case _:
                return list(body["steps"])

    def _results(self, body: Json) -> list[Json]:
        """Return the results of the calls of an answer."""
        match self.api:
            case "anthropic":
                calls = [block for block in body["content"] if block["type"] == "tool_use"]
                results = [{"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT} for call in calls]
                return [{"role": "user", "content": results}] if results else []
            case "openai-responses":
                ids = [item["call_id"] for item in body["output"] if item["type"] == "function_call"]
                return [{"type": "function_call_output", "call_id": name, "output": OUTPUT} for name in ids]
            case "openai":
                calls = body["choices"][0]["message"].get("tool_calls") or []
                return [{"role": "tool", "tool_call_id": call["id"], "content": OUTPUT} for call in calls]
            case "google":
                parts = body["candidates"][0]["content"]["parts"]
                made = [part["functionCall"] for part in parts if "functionCall" in part]
                same = [{key: call[key] for key in ("id", "name") if key in call} for call in made]
                answers = [{**named, "response": {"output": OUTPUT}} for named in same]
                return [{"role": "user", "parts": [{"functionResponse": answer} for answer in answers]}] if made else []
            case _:
                calls = [step for step in body["steps"] if step["type"] == "function_call"]
                return [
                    {"type": "function_result", "call_id": call["id"], "name": call["name"], "result": OUTPUT}
                    for call in calls
                ]

    @property
    def notes(self) -> list[str]:
        """What was left out or changed in the newest list, in words."""
        assert self.fitted is not None
        report = [f"{change.what}: {change.why}" for change in self.fitted.report]
        return report + [omission.reason.value for omission in self.fitted.omitted]


def ways(*kinds: str) -> pytest.MarkDecorator:
    """Run a test in these ways; by default in all."""
    return pytest.mark.parametrize("way", kinds or tuple(_KINDS), indirect=True)


def made(kind: str, server: strict.StrictServer, api: str, model: str, **call: Any) -> Way:  # noqa: ANN401 - of a request
    """Return a conversation in one of the ways."""
    return _KINDS[kind](server, api, model, **call)


_KINDS: Final[Mapping[str, type[Way]]] = {"request": DialogWay, "agent": AgentWay, "fit": FitWay}


def accepted(server: strict.StrictServer, *reasons: str) -> None:
    """Require that the server refused nothing, and dropped only for these reasons."""
    assert [served.message for served in server.refused] == []
    assert {dropped["reason"] for dropped in server.dropped} == set(reasons)
