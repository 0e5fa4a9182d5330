"""What a conversation may go through, as data: each scenario is played against the stand-ins in the tests, and against the APIs by `./run live`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from palaver.errors import PalaverError
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.prompts import Format
from palaver.providers import Provider, collect
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing.binding_laws import HistorySide
from palaver.tokens.pricing import rates
from palaver.wire import TRANSFORMED, Request

MAX_TOKENS: Final = 4_096
_ASSUMED: Final = (20e-6, 100e-6)
"""Dollars of a token read and written by a model without a price: twice those of the dearest model of the lists."""

_SQUARE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc0000001249444154789c63f8cfc0801561171db4120028ff3fc16eecdf61"
    "0000000049454e44ae426082"
)
"""A picture of 8 x 8 pixels."""

BASH: Final = ToolSpec(
    name="bash",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
READ: Final = ToolSpec(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
_PROMPTS: Final[Mapping[str, str]] = {
    "say": "What is 17 * 23? Answer with the number.",
    "call": "Call the tool `bash` with the command `ls`, and nothing else.",
    "search": "Search the web for the newest release of Python. Answer with its number.",
}
_LONG: Final = "Which of these words is not like the others? " + "apple pear plum " * 150
_BUDGET: Final = 700
"""In which one long message fits, and not three."""


class NotShownError(Exception):
    """The model did not do what a scenario is about."""


class BoundReachedError(Exception):
    """One call more may cost more calls or dollars than permitted."""


@dataclass
class Bounds:
    """How many calls and dollars remain."""

    calls: int
    dollars: float

    def pay(self, request: Request) -> None:
        """Subtract the most that a call can cost: all of its bytes as tokens, three bytes each, and the longest answer.

        Raises:
            BoundReachedError: It is more than what remains.
        """
        try:
            listed = rates(request.model)
            read, written = listed.cache_write, listed.output
        except PalaverError:
            read, written = _ASSUMED
        most = len(request.data) / 3 * read + MAX_TOKENS * written
        if not self.calls or most > self.dollars:
            raise BoundReachedError
        self.calls, self.dollars = self.calls - 1, self.dollars - most


@dataclass
class Talk:
    """A conversation with one API.

    Attributes:
        provider: The adapter over the vendor's client.
        model: The model of the next request.
        other: Another model of the same API.
        bounds: What remains to be spent.
        side: Its stand-in, which answers as the scenario expects it; or None, where a model answers.
    """

    provider: Provider
    model: str
    other: str
    bounds: Bounds
    side: HistorySide | None = None
    served: str = ""
    noted: int = 0
    dropped: int = 0
    dialog: Dialog = field(default_factory=lambda: Session.create(MemoryStore(), "live").root)

    async def ask(self, kind: str = "say", text: str = "", **fields: Any) -> AssistantMessage:  # noqa: ANN401 - those of a call
        """Ask for an answer of a kind: `say`, `call` or `search`."""
        self.dialog.put_text(text or _PROMPTS[kind])
        answer = await self.next(kind, **fields)
        if kind == "call" and not answer.tool_calls():
            raise NotShownError("the model called no tool")
        return answer

    async def next(self, kind: str = "say", **fields: Any) -> AssistantMessage:  # noqa: ANN401 - those of a call
        """Send the next request, and append the answer."""
        options: dict[str, Any] = {
            "max_tokens": MAX_TOKENS,
            "provider_tools": self.dialog.view().provided or {},
        } | fields
        request = self.dialog.request(self.provider.profile_for(self.model), self.model, **options)
        self.bounds.pay(request)
        if self.side is not None:
            self.side.server.answers(self.side.said(kind, str(len(self.dialog.messages)), resumed=False))
        answer = await collect(self.provider.stream(request))
        self.noted += len(request.report.lost())
        gone = answer.metadata.get(TRANSFORMED) or ()  # what the model does not read is left out by the API itself
        self.dropped += sum("prefix" in str(each.get("reason")) for each in gone)
        self.dialog.append(answer)
        return answer

    async def run(self, answer: AssistantMessage, **fields: Any) -> AssistantMessage:  # noqa: ANN401 - those of a call
        """Append the results of an answer's calls, and ask on."""
        results = [ToolResultContent(id=call.id, name=call.name, content="a.py b.py") for call in answer.tool_calls()]
        self.dialog.append(ToolMessage.from_results(results))
        return await self.next(**fields)

    def instruct(self, text: str) -> None:
        """Change the instructions."""
        self.dialog.record(Instructions(sections=(Section(name="role", text=text),)))

    def offer(self, *tools: ToolSpec) -> None:
        """Change the tools."""
        self.dialog.record(Toolset(tools=tools))


async def worked(talk: Talk) -> None:
    """Begin with instructions, a tool and one round of it."""
    talk.instruct("Be brief.")
    talk.offer(BASH)
    await talk.run(await talk.ask("call"))


async def tool_round(talk: Talk) -> None:
    """Go on after a call and its result."""
    await worked(talk)
    await talk.ask()


async def streamed(talk: Talk) -> None:
    """Go on after streamed answers."""
    talk.offer(BASH)
    await talk.run(await talk.ask("call", stream=True), stream=True)
    await talk.ask(stream=True)


async def instructions_changed(talk: Talk) -> None:
    """Go on with other instructions, and then with the first again."""
    await worked(talk)
    for text in ("Be kind.", "Be brief."):
        talk.instruct(text)
        await talk.ask()


async def tools_changed(talk: Talk) -> None:
    """Go on with a tool more, and with one less."""
    await worked(talk)
    for tools in ((BASH, READ), (READ,)):
        talk.offer(*tools)
        await talk.ask()


async def history_cut(talk: Talk) -> None:
    """Go on in a small budget, and then with all of the history."""
    await worked(talk)
    await talk.ask(text=_LONG)
    await talk.ask(text=_LONG)
    await talk.ask(policy="palaver", budget=_BUDGET)
    await talk.ask()


async def forked(talk: Talk) -> None:
    """Go on in a fork, and in one with other instructions."""
    await worked(talk)
    begun = talk.dialog
    talk.dialog = begun.fork()
    await talk.ask()
    talk.dialog = begun.fork()
    talk.instruct("Be kind.")
    await talk.ask()


async def picture(talk: Talk) -> None:
    """Show a picture, and go on without it."""
    talk.dialog.append(UserMessage(contents=(TextContent(content="What is this?"), ImageContent(images=[_SQUARE]))))
    await talk.next()
    await talk.ask(text=_LONG)
    await talk.ask(policy="palaver", budget=_BUDGET)


async def forced_tool(talk: Talk) -> None:
    """Force a tool where the model takes it, and leave it to the model elsewhere."""
    talk.offer(BASH)
    answer = await talk.ask("call", tool_choice="required", auto_choice=True)
    await talk.run(answer)


async def sampling(talk: Talk) -> None:
    """Ask with a temperature."""
    await talk.ask(temperature=0.5)
    await talk.ask()


async def schema(talk: Talk) -> None:
    """Ask for an answer in a schema, in the middle of a conversation."""
    await worked(talk)
    await talk.ask(format=Format(int))
    await talk.ask()


async def other_model(talk: Talk) -> None:
    """Go on with another model of the API, and with the first again."""
    await worked(talk)
    first = talk.model
    for model in (talk.other, first):
        talk.model = model
        await talk.ask()


async def other_provider(talk: Talk) -> None:
    """Go on with what a model of another provider thought, called and said."""
    talk.offer(BASH)
    talk.dialog.put_text("List the files.")
    thought = ThinkingContent("The tool lists them.", "c2ln", provider="elsewhere")
    call = ToolCallContent("call-of-another-provider:1", "bash", args={"command": "ls"})
    talk.dialog.append(AssistantMessage(contents=(thought, call), provider="elsewhere", model="model-1"))
    await talk.run(talk.dialog.messages[-1])  # type: ignore[arg-type]  # it was just appended
    await talk.ask()


async def server_tool(talk: Talk) -> None:
    """Let the provider search the web, and go on with what it found."""
    if not talk.served:
        raise NotShownError("no tool of the server's")
    answer = await talk.ask("search", provider_tools={talk.served: True})
    if answer.stop_reason == "pause":
        await talk.next()
    await talk.ask()


@dataclass(frozen=True)
class Scenario:
    """What happens, and the most calls that it makes."""

    play: Callable[[Talk], Awaitable[None]]
    calls: int

    @property
    def name(self) -> str:
        """Its name, for a table."""
        return self.play.__name__.replace("_", " ")


SCENARIOS: Final = (
    Scenario(tool_round, 3),
    Scenario(streamed, 3),
    Scenario(instructions_changed, 4),
    Scenario(tools_changed, 4),
    Scenario(history_cut, 6),
    Scenario(forked, 4),
    Scenario(picture, 3),
    Scenario(forced_tool, 2),
    Scenario(sampling, 2),
    Scenario(schema, 4),
    Scenario(other_model, 4),
    Scenario(other_provider, 2),
    Scenario(server_tool, 3),
)
"""All scenarios."""
