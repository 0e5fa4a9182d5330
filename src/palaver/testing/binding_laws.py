"""Laws 15 and 16 against the stand-ins: random histories, in which each request must be accepted as it is.

A history has turns with thinking, calls, tools that the server runs, paused and mixed turns, blocks of no known kind; changes of instructions and tools;
policies for one request, and committed compactions that are undone; forks, and switches of model and provider, there and back.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from hypothesis import strategies as st

from palaver.errors import InfeasibleBudget, InvalidInput, InvalidRequest, NotFound
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.messages import ImageContent, TextContent, ToolMessage, ToolResultContent, UserMessage
from palaver.session import Dialog, Session
from palaver.store import MemoryStore, Store
from palaver.testing import strict
from palaver.wire import Request

__all__ = ["BindingFault", "BindingStep", "HistorySide", "Play", "binding_steps"]

Json = dict[str, Any]

_TOOLS: Final = tuple(
    ToolSpec(name=name, description=f"The tool {name}.", parameters={"type": "object", "properties": {}})
    for name in ("bash", "read", "write")
)
_ROUNDS: Final = 4
"""The most answers of one turn."""

_TRIES: Final = 3
"""The most answers of one request whose thinking is tried."""

_OK: Final = 200
_SERVED: Final = ("search", "pause", "mixed")
_OPTIONS: Final[Mapping[str, Json]] = {"effort": {"max_tokens": 2_000, "tool_choice": "none"}, "note": {"cache": False}}

KINDS: Final = (
    "turn", "turn", "turn", "turn", "turn", "show", "instructions", "tools", "search", "policy", "policy", "commit", "undo", "fork", "window",
    "parent", "model", "model", "side", "effort", "note",
)  # fmt: skip
ANSWERS: Final = ("say", "say", "call", "calls", "late", "search", "pause", "mixed", "redacted", "novel", "silent")


@dataclass(frozen=True)
class BindingStep:
    """A step of a history.

    Attributes:
        kind: What happens.
        number: Chooses between variants: the words, the tools, the model, the policy.
        answers: The kinds of the answers, where the step asks.
        size: The length of the words.
    """

    kind: str
    number: int = 0
    answers: tuple[str, ...] = ("say",)
    size: int = 20


def binding_steps(most: int = 12) -> st.SearchStrategy[list[BindingStep]]:
    """Return any history of so many steps."""
    step = st.builds(
        BindingStep,
        kind=st.sampled_from(KINDS),
        number=st.integers(0, 16),
        answers=st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=3).map(tuple),
        size=st.sampled_from([5, 20, 400, 2_000]),
    )
    return st.lists(step, min_size=2, max_size=most)


@dataclass(frozen=True)
class BindingFault:
    """A request that the stand-in did not accept as it is, or a loss without a note."""

    what: str
    api: str
    model: str
    text: str
    step: int


class HistorySide(Protocol):
    """A provider in a history: its stand-in, what models say there, and how an answer is found again in a request.

    Attributes:
        api: The name of its profile.
        server: Its stand-in.
        models: The models that a history uses.
        offered: The tool that the server runs, as a call names it; empty for none.
        headers: The headers of every request.
    """

    api: str
    server: strict.StrictServer
    models: Sequence[str]
    offered: str
    headers: Mapping[str, str]

    def path(self, model: str) -> str:
        """Return the path of requests to a model."""
        ...

    def said(self, kind: str, tag: str, *, resumed: bool) -> list[Json | str]:
        """Return the content of an answer of a kind; one that is resumed begins with what the server's tool found."""
        ...

    def content(self, answer: Json) -> list[Json]:
        """Return the blocks of an answer."""
        ...

    def calls(self, answer: Json) -> list[str]:
        """Return the ids of the calls that are ours to run."""
        ...

    def waits(self, answer: Json) -> bool:
        """Return whether the turn is paused."""
        ...

    def thinks(self, block: Json) -> bool:
        """Return whether a block is bound content."""
        ...

    def matched(self, body: Json, answer: Sequence[Json]) -> tuple[int, list[Json]] | None:
        """Return where an answer is in a request, with the blocks that are there; None where it is not."""
        ...

    def restored(self, body: Json, at: int, answer: Sequence[Json]) -> Json:
        """Return the request with the whole answer at that place."""
        ...

    def concerns(self, dropped: Json, at: int) -> bool:
        """Return whether a report of the server is about that place."""
        ...


class Play:
    """Plays a history against stand-ins, and notes each fault."""

    def __init__(
        self,
        sides: Sequence[HistorySide],
        *,
        store: Store | None = None,
        policies: Sequence[str] = ("palaver",),
        send: Callable[[HistorySide, Request], None] | None = None,
    ) -> None:
        """Begin with the first model of the first side.

        Args:
            sides: The providers.
            store: Where the history is stored. Default: in memory.
            policies: The policies.
            send: Sends a request through a client; refusals are no errors. Default: requests are handed to the server without a network.
        """
        self.sides, self.policies, self._send = sides, policies, send
        self.dialog: Dialog = Session.create(store or MemoryStore(), "laws").root
        self.dialog.record(Instructions(sections=(Section(name="role", text="Be brief."),)), Toolset(tools=_TOOLS[:2]))
        self.faults: list[BindingFault] = []
        self.requests = 0
        self._side, self._model, self._step = 0, sides[0].models[0], 0
        self._call: Json = {}
        self._made = 0
        self._answers: dict[str, list[list[Json]]] = {}

    @property
    def side(self) -> HistorySide:
        """The provider of the next request."""
        return self.sides[self._side]

    def play(self, steps: Sequence[BindingStep]) -> list[BindingFault]:
        """Play the steps, and return the faults. The history ends with a refusal."""
        for self._step, step in enumerate(steps):
            if self.faults:
                break
            self._play(step)
        return self.faults

    def _play(self, step: BindingStep) -> None:
        number = step.number
        match step.kind:
            case "instructions":
                text = ("Be brief.", "Be kind.", "Be long.")[number % 3]
                self.dialog.record(Instructions(sections=(Section(name="role", text=text),)))
            case "tools":
                self.dialog.record(Toolset(tools=(_TOOLS[:2], _TOOLS, _TOOLS[1::-1], _TOOLS[:1])[number % 4]))
            case "search":
                self._call = (
                    {} if self._call or not self.side.offered else {"provider_tools": {self.side.offered: True}}
                )
            case "model":
                self._model = self.side.models[number % len(self.side.models)]
            case "side":
                self._side, self._call = number % len(self.sides), {}
                self._model = self.side.models[number // len(self.sides) % len(self.side.models)]
            case "fork" | "window" | "parent" | "commit" | "undo":
                self._branch(step)
            case "effort" | "policy" | "turn" | "show" | "note":
                self._turn(step)

    def _branch(self, step: BindingStep) -> None:
        if step.kind == "parent":
            self.dialog = self.dialog.parent or self.dialog
        elif step.kind == "fork":
            self.dialog = self.dialog.fork()
        elif step.kind == "window":
            self.dialog = self.dialog.fork(last_n=1 + step.number % 5, first_k=step.number % 2)
        elif step.kind == "undo":
            self._tried(self.dialog.compaction.undo)
        else:
            policy = self.policies[step.number % len(self.policies)]
            self._tried(lambda: self.dialog.compaction.preview(policy, self._budget(step), model=self._model).approve())

    def _tried(self, act: Callable[[], object]) -> None:
        with suppress(InfeasibleBudget, InvalidInput, NotFound):
            act()

    def _budget(self, step: BindingStep) -> int:
        return 200 + 150 * (step.number % 12)

    # --- turns -------------------------------------------------------------------------------------------------------------------

    def _turn(self, step: BindingStep) -> None:
        self._made += 1
        text = f"{self._made}: " + "word " * (step.size // 5)
        if step.kind == "show":
            self.dialog.append(
                UserMessage(contents=(TextContent(content=text), ImageContent(images=[self._picture()])))
            )
        else:
            self.dialog.put_text(text)
        options = dict(self._call) | _OPTIONS.get(step.kind, {})
        if step.kind == "policy":
            options |= {"policy": self.policies[step.number % len(self.policies)], "budget": self._budget(step)}
        kinds, resumed = list(step.answers), False
        for _ in range(_ROUNDS):
            kind = kinds.pop(0) if kinds else "say"
            if kind in _SERVED and "provider_tools" not in options:
                kind = "call"
            answer = self._ask(kind, options, resumed=resumed)
            if answer is None:
                return
            resumed = self.side.waits(answer)
            calls = self.side.calls(answer)
            if calls:
                results = [ToolResultContent(id=call, content=f"{self._made}: " + "result " * 20) for call in calls]
                self.dialog.append(ToolMessage.from_results(results))
            elif not resumed:
                return

    def _picture(self) -> bytes:
        head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", 64, 64, 8, 2, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + head + bytes([self._made % 256])

    def _ask(self, kind: str, options: Json, *, resumed: bool) -> Json | None:
        """Compile and send a request, and append the answer; None where there is none."""
        side = self.side
        self._made += 1
        try:
            request = self.dialog.request(side.api, self._model, **options)
        except InfeasibleBudget:
            return None
        except InvalidRequest as error:
            self._fault("invalid", str(error))
            return None
        side.server.answers(side.said(kind, str(self._made), resumed=resumed))
        if self._send is None:
            served = self._sent(side, request)
        else:
            self._send(side, request)
            served = side.server.served[-1]
        self.requests += 1
        if served.status != _OK:
            side.server.script.clear()
            self._fault("refused", served.message)
            return None
        self.faults += [
            BindingFault("dropped", side.api, self._model, str(dropped), self._step)
            for dropped in served.dropped
            if "prefix" in str(dropped.get("reason"))
        ]
        self._check_kept(side, request)
        self._answers.setdefault(side.api, []).append(side.content(served.body))
        self.dialog.append(served.body)
        return served.body

    def _sent(self, side: HistorySide, request: Request, body: Json | None = None) -> strict.Served:
        headers = dict(side.headers) | dict(getattr(request, "headers", {}))
        served = side.server.ask(side.path(request.model), body or json.loads(request.data), headers)
        side.server.forget()
        return served

    def _fault(self, what: str, text: str) -> None:
        self.faults.append(BindingFault(what, self.side.api, self._model, text, self._step))

    # --- what could be kept --------------------------------------------------------------------------------------------------------

    def _check_kept(self, side: HistorySide, request: Request) -> None:
        """Note bound content that the request lacks and the server would have accepted, and other blocks that it lacks without a note."""
        body: Json = json.loads(request.data)
        tries, unnoted = _TRIES, 0
        for answer in reversed(self._answers.get(side.api, [])):
            place = side.matched(body, answer)
            missing = [block for block in answer if place is not None and block not in place[1]]
            others = [block for block in missing if not side.thinks(block)]
            if place is None or not missing:
                continue
            unnoted += len(others)
            if unnoted > len(request.report.lost()):
                self._fault("lost", f"{[block.get('type') for block in others]} of item {place[0]}")
            elif not others and tries and self._accepts(side, request, side.restored(body, place[0], answer), place[0]):
                self._fault("too little", f"item {place[0]} could have its thinking")
            tries -= not others and tries > 0

    def _accepts(self, side: HistorySide, request: Request, body: Json, at: int) -> bool:
        """Return whether the server takes a request with all of an answer, and drops nothing of it."""
        served = self._sent(side, request, body)
        return served.status == _OK and not any(side.concerns(dropped, at) for dropped in served.dropped)
