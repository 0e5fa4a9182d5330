"""Views written by hand, for tests of compiling: a few words make a legible one."""

from collections.abc import Iterable
from typing import Any

from palaver.ids import DialogId
from palaver.log import Handle, Span, ToolSpec
from palaver.messages import Content, Role, Speaker, TextContent, ToolCallContent, ToolResultContent
from palaver.providers import profile
from palaver.view import Block, Exchange, Turn, View
from palaver.wire import Call, Request, compile  # noqa: A004 - the word for it
from tests.wire.any_views import load

DIALOG = DialogId("d" * 32)

MODELS = {
    "openai-chat": "gpt-5.2",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
    "gemini-interactions": "gemini-3.6-flash",
}
"""A model of today for each profile."""


class Scene:
    """A view that grows by exchanges, its entries numbered from 0 on."""

    def __init__(self, *, system: Iterable[str] = (), tools: Iterable[ToolSpec] = (), model: str = "") -> None:
        """Begin with the instructions and the tools."""
        self.exchanges: list[Exchange] = []
        self.system = tuple(
            Block(content=TextContent(text), origin=Handle(DIALOG, 900, n)) for n, text in enumerate(system)
        )
        self.tools = tuple(tools)
        self.model = model
        self.seq = 0

    def user(self, *contents: Content | str, speaker: Speaker = Speaker.HUMAN, **fields: Any) -> "Scene":  # noqa: ANN401
        """Let the user speak."""
        return self._add([self._turn(Role.USER, contents, speaker, **fields)])

    def late_system(self, text: str) -> "Scene":
        """Put instructions inside the conversation."""
        return self._add([self._turn(Role.SYSTEM, (text,), Speaker.HARNESS)])

    def model_says(
        self,
        *contents: Content | str,
        results: Iterable[ToolResultContent | str] = (),
        by: tuple[str, str] = ("", ""),
    ) -> "Scene":
        """Let the model speak, `by` a provider and a model of its; its calls get these results, blocks or texts, in their order."""
        said = self._turn(Role.ASSISTANT, contents, Speaker.MODEL, provider=by[0], model=by[1])
        calls = [block.content for block in said.blocks if isinstance(block.content, ToolCallContent)]
        answers = [
            ToolResultContent(id=call.id, content=answer) if isinstance(answer, str) else answer
            for call, answer in zip(calls, results, strict=False)
        ]
        turns = [said, self._turn(Role.TOOL, tuple(answers), Speaker.TOOL)] if answers else [said]
        return self._add(turns)

    def derived(self, text: str, label: str = "record") -> "Scene":
        """Put in a text that no one said."""
        block = Block(content=TextContent(text), derived=label, speaker=Speaker.SUMMARY)
        self.exchanges.append(Exchange.of([Turn(role=Role.USER, blocks=(block,))], derived=label))
        return self

    def view(self) -> View:
        """Return the view so far."""
        return View(
            dialog_id=DIALOG,
            at=self.seq - 1,
            system=self.system,
            tools=self.tools,
            exchanges=tuple(self.exchanges),
            model=self.model,
        )

    def request(self, name: str, *, model: str = "", **fields: Any) -> Request:  # noqa: ANN401
        """Compile what there is so far, and hold it to the provider's rules."""
        called = model or MODELS[name]
        request = compile(self.view(), profile(name, called), Call(model=called, **fields), load)
        request.check(as_history=True)
        return request

    def _turn(self, role: Role, contents: Iterable[Content | str], speaker: Speaker, **fields: Any) -> Turn:  # noqa: ANN401
        blocks = tuple(
            Block(
                content=TextContent(content) if isinstance(content, str) else content,
                origin=Handle(DIALOG, self.seq, index),
                speaker=speaker,
            )
            for index, content in enumerate(contents)
        )
        self.seq += 1
        return Turn(role=role, blocks=blocks, **fields)

    def _add(self, turns: list[Turn]) -> "Scene":
        start = self.seq - len(turns)
        self.exchanges.append(Exchange.of(turns, runs=[Span(DIALOG, start, self.seq)]))
        return self


def call(call_id: str = "c1", name: str = "bash", **args: Any) -> ToolCallContent:  # noqa: ANN401
    """Make a tool call."""
    return ToolCallContent(id=call_id, name=name, args=args)


def at(seq: int, block: int = 0) -> Handle:
    """Name a block of a scene."""
    return Handle(DIALOG, seq, block)


BASH = ToolSpec(
    name="bash",
    description="Run a command.",
    parameters={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
