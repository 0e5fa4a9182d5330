"""One conversation of an agent through every client: the same log, and requests that every provider takes.

The vendors' own clients speak to the peer server, which others wrote (tests/peers/fixtures/conversation.json is what it answers). Between
the two stands a relay that keeps the bytes: the server's own journal has each request as the server understood it.

Two logs are the same when they have the same entries in the same order, told as in `LOG`. What differs is set aside, and this is all of it:

- ids (entries, messages, responses) and times; ids of calls are told by the names of their tools;
- the order in which results of one answer arrived: they are sorted by their calls;
- usage, cost, the model's and the provider's name, and what an adapter puts into a message's metadata;
- signatures and encrypted copies of thinking; the words of the thinking stay;
- of a provider's error its status and its wording; the kind of error stays;
- what an invocation and a compaction hold, for both depend on the model that counts; that they stand there stays.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from palaver import Dialog, Prompt, tool
from palaver.agent import Agent, Asking, ProviderInvoker
from palaver.ids import new_session_id
from palaver.log import Entry, decode_entry
from palaver.log.entries import CallStarted, Custom, ErrorEntry, MessageEntry, TurnEnded
from palaver.messages import Content, ImageContent, Message, Role, TextContent, ThinkingContent, ToolCallContent, thaw
from palaver.messages import ToolResultContent as Result
from palaver.providers import Provider, profile
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.providers.gemini.client import GoogleProvider
from palaver.providers.litellm import LiteLLMProvider
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.wire.rules import validate
from tests.peers.relay import relaying
from tests.peers.server import Peer
from tests.wire.pictures import png
from tests.wire.vendor_types import hold_to_types

pytestmark = [
    pytest.mark.peer,
    pytest.mark.filterwarnings(
        "ignore:.*is not a valid FinishReason"
    ),  # the server says FUNCTION_CALL; Google does not
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession"),  # of google-genai, from aiohttp
]

FIXTURES = Path(__file__).parent / "peers" / "fixtures" / "conversation.json"
PAGE = "The robin sings in winter too. " * 400

# --- the conversation -----------------------------------------------------------------------------------------------------------


class Bird(BaseModel):
    """A bird that was seen."""

    name: str
    latin: str


class Books:
    """Two books, each of which is opened only while the other is open: calls of one answer run side by side, or not at all."""

    def __init__(self) -> None:
        self.open = (anyio.Event(), anyio.Event())

    async def guide(self, bird: str) -> str:
        """Read the field guide."""
        await self._both(0)
        return f"{bird}: Erithacus rubecula. {PAGE}"

    async def atlas(self, bird: str, region: str) -> str:
        """Read the atlas."""
        await self._both(1)
        raise LookupError(f"no page of {region} has a {bird}")

    async def _both(self, mine: int) -> None:
        self.open[mine].set()
        with anyio.fail_after(30):
            await self.open[1 - mine].wait()


LOG = """
system: You keep the log of a bird watcher.
user: Which bird is in the picture? [image]
turn_started
custom palaver.call
toolset
model_change
invocation
assistant: [thinking: A red breast, a thin bill.] A robin.
turn_ended final
user: Look it up in both books.
turn_started
custom palaver.call
invocation
tool_call: [thinking: Two books, so two calls.] I look. [guide {"bird": "robin"}] [atlas {"bird": "robin", "region": "north"}] [almanac {}]
tool: [almanac failed: There is no tool 'almanac'. The tools are: guide, atlas.]
call_started guide
call_started atlas
tool: [guide: robin: Erithacus rubecula. …]
tool: [atlas failed: LookupError: no page of north has a robin]
invocation
assistant: Erithacus rubecula, says the guide; the atlas has no page.
turn_ended final
user: Give the bird as JSON.
turn_started
custom palaver.call
toolset
invocation
refused: It is a robin, Erithacus rubecula. // Error: The answer is not JSON: Expecting value: line 1 column 1 (char 0). Please fix.
invocation
assistant: {"name": "robin", "latin": "Erithacus rubecula"}
turn_ended final
user: Which birds have we seen?
turn_started
custom palaver.call
toolset
invocation
error ContextOverflow
compaction
invocation
assistant: One robin.
turn_ended final
"""
STATUSES = [200, 200, 200, 200, 200, 400, 200]
"""What the server answers to the seven requests: the picture, the calls, the results, the format, the repair, the overflow, the smaller view."""


async def converse(provider: Provider, model: str, *, streamed: bool) -> Dialog:
    """Hold the conversation: four questions, of which one needs tools, one a repair and one a smaller view."""
    books = Books()
    tools = [tool(books.guide), tool(books.atlas)]
    system = Prompt(path="watcher", prompt="You keep the log of a bird watcher.", function_list=tools)
    question = Prompt(path="watcher/bird", prompt="Give the bird as JSON.", format=Bird)
    agent = Agent("watcher", system, model, ProviderInvoker(provider), model_args={"max_tokens": 4_096})
    agent.open("log")
    agent.receive_image(png(), "Which bird is in the picture?")
    await answer(agent, streamed=streamed)
    agent.receive("Look it up in both books.")
    await answer(agent, streamed=streamed)
    agent.receive_prompt(question)
    assert (await answer(agent, streamed=streamed)).parsed == {"name": "robin", "latin": "Erithacus rubecula"}
    agent.receive("Which birds have we seen?")
    assert (await answer(agent, streamed=streamed)).content == "One robin."
    await provider.aclose()
    return agent.current_dialog


async def answer(agent: Agent, *, streamed: bool) -> Message:
    """Have the agent answer, in pieces or whole."""
    if not streamed:
        return await agent.arespond()
    asked = [event.request async for event in agent.stream() if isinstance(event, Asking)]
    assert all(request.body.get("stream", True) for request in asked)
    assert agent.last_call is not None
    assert agent.last_call.delivery is not None
    return agent.last_call.delivery


# --- the ways -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A client, and what it speaks.

    Attributes:
        provider: Makes the provider that asks a server at an address.
        model: The model, as the agent spells it.
        speaks: The profile of what arrives at the server.
        as_compiled: Whether that is what palaver compiled; LiteLLM compiles anew.
        loses: What of the conversation cannot go back to it, in the words of a report.
    """

    provider: Callable[[str], Provider]
    model: str
    speaks: str
    as_compiled: bool = True
    loses: frozenset[str] = frozenset()


CHAT = frozenset({"thinking", "failure"})
"""Chat completions have no place for thinking, and none for saying that a tool failed: its words say it."""

WAYS: Mapping[str, Way] = {
    "openai, chat": Way(
        lambda url: OpenAIProvider(base_url=f"{url}/v1", api_key="none"), "gpt-5.2", "openai-chat", loses=CHAT
    ),
    "openai, responses": Way(
        lambda url: OpenAIProvider(api="responses", base_url=f"{url}/v1", api_key="none"),
        "gpt-5.2",
        "openai-responses",
        loses=frozenset({"failure"}),
    ),
    "anthropic": Way(lambda url: AnthropicProvider(base_url=url, api_key="none"), "claude-opus-4-6", "anthropic"),
    "google": Way(
        lambda url: GoogleProvider(api_key="none", http_options={"base_url": url, "api_version": "v1beta"}),
        "gemini-2.5-pro",
        "gemini",
        loses=frozenset({"thinking"}),  # the server does not sign it
    ),
    "litellm, openai": Way(
        lambda url: LiteLLMProvider(api_base=f"{url}/v1", api_key="none"),
        "openai/gpt-5.2",
        "openai-chat",
        as_compiled=False,
        loses=CHAT,
    ),
    "litellm, anthropic": Way(
        lambda url: LiteLLMProvider(api_base=url, api_key="none"),
        "anthropic/claude-opus-4-6",
        "anthropic",
        as_compiled=False,
        loses=CHAT,
    ),
}
CASES = [
    pytest.param((way, streamed), id=f"{way}, {'streamed' if streamed else 'whole'}")
    for number, way in enumerate(WAYS)
    for streamed in ((True, False) if way in {"openai, chat", "anthropic"} else (number % 2 == 0,))
]
"""Every way once, streamed or whole by turns; two of them both ways."""


@dataclass(frozen=True)
class Held:
    """A conversation that was held.

    Attributes:
        way: How.
        dialog: What the agent has of it.
        sent: The bodies that were sent, oldest first.
        journal: What the server says it got, oldest first.
    """

    way: Way
    dialog: Dialog
    sent: tuple[dict[str, Any], ...]
    journal: tuple[dict[str, Any], ...]


@pytest.fixture(params=CASES)
def held(request: pytest.FixtureRequest, start_peer: Callable[[Path], Peer]) -> Held:
    """Hold the conversation one way."""
    name, streamed = request.param
    way, peer, case = WAYS[name], start_peer(FIXTURES), str(new_session_id())
    with relaying(peer.url, x_test_id=case) as relay:

        async def whole() -> Dialog:
            return await converse(way.provider(relay.url), way.model, streamed=streamed)

        dialog = anyio.run(whole)
    journal = tuple(entry for entry in peer.journal() if entry["headers"].get("x-test-id") == case)
    return Held(way, dialog, tuple(map(json.loads, relay.bodies)), journal)


# --- what is told of a log --------------------------------------------------------------------------------------------------------


def told(dialog: Dialog) -> str:
    """Return the dialog's entries, a line each, without what differs from provider to provider."""
    entries = [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]
    return "\n".join(map(_line, _by_call(entries)))


def _by_call(entries: list[Entry]) -> Iterator[Entry]:
    """Return the entries; starts that stand together, and results that do, in the order of their calls: those run side by side."""
    calls: list[str] = []
    for kind, group in groupby(entries, key=_side_by_side):
        together = list(group)
        for entry in together:
            if isinstance(entry, MessageEntry):
                calls += [call.id for call in entry.message.tool_calls()]
        yield from sorted(together, key=lambda entry: calls.index(_call_id(entry))) if kind else together


def _side_by_side(entry: Entry) -> str:
    if isinstance(entry, CallStarted):
        return "start"
    return "result" if isinstance(entry, MessageEntry) and entry.message.role is Role.TOOL else ""


def _call_id(entry: Entry) -> str:
    if isinstance(entry, CallStarted):
        return entry.call_id
    assert isinstance(entry, MessageEntry)
    return entry.message.tool_results()[0].id


def _line(entry: Entry) -> str:
    match entry:
        case MessageEntry(message=message):
            return f"{message.role.value}: {_words(message)}"
        case Custom(custom_type="palaver.attempt", data=Mapping() as data):
            return f"{data['why']}: {_words(Message.from_dict(thaw(data['message'])))} // {data['repair']}"
        case CallStarted(tool=what) | TurnEnded(outcome=what) | ErrorEntry(error=what) | Custom(custom_type=what):
            return f"{entry.kind} {what}"
        case _:
            return entry.kind


def _words(message: Message) -> str:
    return " ".join(_block(block) for block in message.contents)


def _block(block: Content) -> str:
    match block:
        case TextContent(content=text):
            return text
        case ThinkingContent(content=text):
            return f"[thinking: {text}]"
        case ImageContent():
            return "[image]"
        case ToolCallContent(name=name):
            return f"[{name} {json.dumps(thaw(block.args))}]"
        case Result():
            text = block.text().replace(PAGE, "…")
            return f"[{block.name}{' failed' if block.is_error else ''}: {text}]"
        case _:
            return block.type


def test_one_log_and_valid_requests(held: Held) -> None:
    """The log has the same entries whoever is asked; what arrived breaks no rule of its provider, and no type of its own package.

    Each recorded call gives back the request that arrived; while nothing is compacted, all goes back that there is a place for. In the
    server's own journal each request was answered as it should be, and has the instructions and a result for each call.
    """
    assert told(held.dialog) == LOG.strip()
    for body in held.sent:
        asked = _of_today(body) if held.way.speaks == "anthropic" and not held.way.as_compiled else body
        assert validate(asked, profile(held.way.speaks, held.way.model.rpartition("/")[2])) == ()
        hold_to_types(held.way.speaks, {name: value for name, value in asked.items() if not name.startswith("stream")})
    calls = [call.request() for call in held.dialog.calls]
    assert len(calls) == len(held.sent)
    assert {change.what for request in calls[:-1] for change in request.report.lost()} == held.way.loses
    if held.way.as_compiled:
        assert [thaw(request.body) for request in calls] == list(held.sent)
    assert [entry["response"]["status"] for entry in held.journal] == STATUSES
    for entry in held.journal:
        read = entry["body"]["messages"]
        called = [call["id"] for message in read for call in message.get("tool_calls") or ()]
        assert [message["tool_call_id"] for message in read if message["role"] == "tool"] == called
        assert "You keep the log" in str([message for message in read if message["role"] in {"system", "developer"}])
    assert "image" in json.dumps(held.sent[0])


def _of_today(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request of LiteLLM's with the format where Anthropic's reference has it now: it still writes it as the beta had it."""
    rest = {name: value for name, value in body.items() if name != "output_format"}
    return rest | {"output_config": {"format": body["output_format"]}} if "output_format" in body else rest
