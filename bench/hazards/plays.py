"""The hazards, the servers that they are played against, and the verdict: what the servers saw, not what a library says."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from unittest.mock import patch

import anyio
from pydantic import BaseModel

from palaver.testing import strict
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide

Json = dict[str, Any]

_PATIENCE: Final = 60.0
"""Seconds after which a library is given up in one hazard."""
_CLAUDE, _GPT, _DEEPSEEK = ("anthropic", "claude-opus-5-5"), ("openai", "gpt-6-sol"), ("deepseek", "deepseek-v4-pro")


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def read(path: str) -> str:
    """Read a file."""
    return f"words of {path}"


class Fact(BaseModel):
    """An answer in a schema."""

    name: str
    number: int


class NoWayError(Exception):
    """A library has no public way to do this."""


@dataclass(frozen=True)
class Ask:
    """What a user asks, of which model, with which settings.

    Attributes:
        text: The words.
        to: The API and the model.
        instructions: The instructions in force.
        tools: The functions that are offered.
        schema: Whether the answer is a `Fact`.
        temperature: The temperature, or None for the default.
        keep: How many exchanges before this one the library is to keep; None for all.
        stream: Whether the answer is streamed.
        search: Whether the provider's web search is offered.
        compact: Whether the provider compacts the conversation.
        stored: Whether the provider may store the conversation.
    """

    text: str = "Go on."
    to: tuple[str, str] = _CLAUDE
    instructions: str = "Be brief."
    tools: tuple[Any, ...] = (bash,)
    schema: bool = False
    temperature: float | None = None
    keep: int | None = None
    stream: bool = False
    search: bool = False
    compact: bool = False
    stored: bool = True


class Conversation(Protocol):
    """One conversation in a library."""

    async def ask(self, ask: Ask) -> None:
        """Ask, let the library run the tools that are called, and keep the history as its documentation says."""
        ...


@dataclass(frozen=True)
class Hazard:
    """A hazard: what it is in a line, what is asked, and the kinds of the answers."""

    name: str
    line: str
    asks: Sequence[Ask]
    kinds: Sequence[str] = ("call", "say")


_LONG: Final = "Which of these words is not like the others? " + "apple pear plum " * 150
_FILES: Final = Ask("What is in the folder?")
_TO_GPT: Final = Ask(to=_GPT)
_CUT: Final = (*[Ask(_LONG, tools=())] * 3, *[Ask(_LONG, tools=(), keep=1)] * 2)
_COMPACTED: Final = (Ask(_LONG, compact=True, stream=True), Ask(compact=True, stream=True))
HAZARDS: Final = (
    Hazard("instructions", "Claude has thought, and then the instructions change.", (_FILES, Ask(instructions="Be kind."))),
    Hazard("tools", "Claude has thought, and then there is one more tool.", (_FILES, Ask(tools=(bash, read)))),
    Hazard("cut", "Claude has thought, and then the library cuts the oldest turns.", _CUT, ("say",) * len(_CUT)),
    Hazard("switch", "A conversation moves from Claude to GPT and back.", (_FILES, _TO_GPT, Ask("And now?")), ("call", "say") * 2),
    Hazard("schema", "The answer must fit a schema, and Claude refuses forced tools.", (_FILES, Ask(schema=True)), ("call", "say", "fact")),
    Hazard("temperature", "A temperature is set, and the API refuses it.", (replace(_FILES, temperature=0.0), Ask(temperature=0.0))),
    Hazard("pause", "Claude pauses its turn while a tool of the provider works.", (replace(_FILES, search=True), Ask(search=True)), ("pause", "say")),
    Hazard("compaction", "The API compacts the conversation in a stream.", _COMPACTED, ("compact", "say")),
    Hazard("reasoning", "GPT reasons in encrypted items, and nothing is stored.", tuple(replace(ask, to=_GPT, stored=False) for ask in (_FILES, Ask()))),
    Hazard("default API", "GPT takes tools only in Responses, and the library chooses the API.", (replace(_FILES, to=("openai", "gpt-5.6-sol")),)),
    Hazard("reasoning_content", "DeepSeek wants its reasoning back with the calls.", (replace(_FILES, to=_DEEPSEEK), Ask(to=_DEEPSEEK))),
    Hazard("signatures", "Gemini wants the signatures of its calls back.", (replace(_FILES, to=("gemini", "gemini-3.6-flash")),), ("call", "call", "say")),
)  # fmt: skip
"""The hazards, in the order of the table. Each library knows the models."""


class _BothApis:
    """OpenAI's two APIs under one address, so that a library uses its default."""

    def __init__(self) -> None:
        self._apis = (strict.openai_chat().api, strict.openai_responses().api)

    def reply(self, asked: strict.HttpRequest, script: Any) -> Any:  # noqa: ANN401 - what an API takes and returns
        return self._apis["completions" not in asked.path].reply(asked, script)

    def error(self, status: int, message: str) -> Json:
        return self._apis[0].error(status, message)


class _Model:
    """What the models of all servers answer in one hazard."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds, self._count = deque(kinds), 0

    def servers(self) -> dict[str, strict.StrictServer]:
        """Return a server for each API."""
        made = {
            "anthropic": strict.anthropic(),
            "openai": strict.StrictServer(_BothApis(), "/v1"),
            "deepseek": strict.openai_chat(server="deepseek"),
            "gemini": strict.gemini(),
        }
        for server in made.values():
            server.script.otherwise = self._said
        return made

    def _said(self, asked: strict.HttpRequest) -> strict.NextAnswer:
        self._count += 1
        resumed = "messages" in asked.body and asked.body["messages"][-1]["role"] == "assistant"
        kind = "say" if resumed or not self._kinds else self._kinds.popleft()
        if kind == "fact":
            return strict.NextAnswer(({"type": "thinking", "thinking": "a fact"}, _fact(asked.body)))
        side = next((made for word, made in _SIDES.items() if word in asked.path), GeminiSide)()
        said = side.said(kind.replace("compact", "say"), str(self._count), resumed=resumed)
        return strict.NextAnswer([{"type": "compaction", "content": "summary"}, *said] if kind == "compact" else said)


_SIDES: Final[Mapping[str, Any]] = {"completions": ChatSide, "responses": ResponsesSide, "messages": AnthropicSide}


def _fact(body: Json) -> Json | str:
    """Return a fact: as a call where the request offers a tool for it, else in words."""
    known: Json = {"name": "pi", "number": 3}
    offered = [tool["name"] for tool in body.get("tools") or () if tool["name"] != "bash"]
    return {"type": "tool_use", "name": offered[-1], "input": known} if offered else json.dumps(known)


_ADDRESSES: Final = {
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "openai": ("OPENAI_BASE_URL",),
    "deepseek": ("DEEPSEEK_API_BASE",),
    "gemini": ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
}
"""The variables in which vendors' clients and the libraries look for an address, so that a model is named as with the vendor itself."""
_KEYS: Final = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")


async def verdict(hazard: Hazard, begin: Callable[[Mapping[str, str]], Conversation]) -> tuple[str, str]:
    """Play a hazard in a new conversation, and return the cell of the table and why: mostly what a server said when it refused."""
    with ExitStack() as stack:
        servers = _Model(hazard.kinds).servers()
        urls = {name: stack.enter_context(server).url for name, server in servers.items()}
        found = {variable: urls[api] for api, variables in _ADDRESSES.items() for variable in variables}
        stack.enter_context(patch.dict(os.environ, found | dict.fromkeys(_KEYS, "key")))
        talk = begin(urls)
        for ask in hazard.asks:
            served = servers[ask.to[0]].served
            count = len(served)
            try:
                with anyio.fail_after(_PATIENCE):
                    await talk.ask(ask)
            except NoWayError as error:
                return "no way", str(error)
            except Exception as error:  # noqa: BLE001 - whatever a library raises; the server says whether it refused
                refused = served[count:] and served[-1].message
                return ("refused", served[-1].message) if refused else ("fails", f"{type(error).__name__}: {error}")
        return _judged(hazard, servers[hazard.asks[-1].to[0]].served)


def _judged(hazard: Hazard, served: Sequence[strict.Served]) -> tuple[str, str]:
    """Return the verdict on the last request: what of the conversation the model did not get."""
    ask, (*before, last) = hazard.asks[-1], served
    sent = json.dumps(last.asked.body, ensure_ascii=False).translate(_ALPHABET)
    wanted = [("question", ask.text), ("instructions", ask.instructions)]
    wanted += [("tool", f'"{tool.__name__}"') for tool in ask.tools]
    refused = next((each.message for each in served if each.message), "")
    state = "accepted after a refusal" if refused else "accepted"
    if ask.keep is None:
        wanted += [bound for each in before for bound in _bound(each.body)]
        wanted = wanted[max((at for at, (name, _) in enumerate(wanted) if name == "compaction"), default=0) :]
    elif len(last.asked.body["messages"]) >= 2 * len(hazard.asks) - 1:
        return "nothing is cut", ""
    lost = [name for name, text in wanted if text.translate(_ALPHABET) not in sent]
    lost += ["thinking" for _ in last.dropped if ask.keep is None]  # a cut leaves no way to keep it
    return ", ".join([state, *(f"{name} lost" for name in dict.fromkeys(lost))]), refused


_ALPHABET: Final = str.maketrans("-_", "+/")
"""Some clients write bytes in the alphabet for URLs."""
_BOUND: Final = {
    "signature": "thinking",
    "thoughtSignature": "signature",
    "encrypted_content": "reasoning",
    "reasoning_content": "reasoning",
}


def _bound(body: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    """Yield what the next request must have of an answer: what it is, and its text."""
    if isinstance(body, list):
        for inner in body:
            yield from _bound(inner)
    elif isinstance(body, dict) and not body.get("thought"):
        for name, value in body.items():
            if name in _BOUND and isinstance(value, str):
                yield ("compaction" if body.get("type") == "compaction" else _BOUND[name]), value
            elif name == "id" and body.get("type") == "server_tool_use":
                yield "call", value
            elif name == "text" and value:
                yield "words", json.dumps(value)[1:-1]
            else:
                yield from _bound(value)
