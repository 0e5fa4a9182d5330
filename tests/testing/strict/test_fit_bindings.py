"""Laws 15 and 16 for `fit` in a loop over a plain list, and for the turns of an agent, against the stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import anthropic
import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from palaver import Agent, Session, tool
from palaver.context.fit import Fit, fit
from palaver.errors import InfeasibleBudget
from palaver.providers import AnthropicProvider
from palaver.testing import strict
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide
from tests import laws
from tests.clients import opened

Json = dict[str, Any]
Step = tuple[str, int]

TOOL: Final = {"name": "bash", "description": "Run.", "input_schema": {"type": "object", "properties": {}}}
FUNCTION: Final = {"name": "bash", "description": "Run.", "parameters": {"type": "object", "properties": {}}}


class Loop:
    """A loop over a list in an API's form."""

    def __init__(self, side: AnthropicSide | ResponsesSide | ChatSide, model: str) -> None:
        self.side, self.model = side, model
        self.messages: list[Json] = []
        self.made = 0
        self.answers: list[list[Json]] = []
        self.dialect = "openai-chat" if side.api == "openai" else side.api

    def run(self, steps: list[Step], budget: int) -> None:
        """Ask, answer calls, and ask again; each request must be accepted as it is."""
        for kind, size in steps:
            self.made += 1
            self.messages.append(self.words(f"{self.made}: " + "word " * size))
            for said in (kind, "call", "say"):
                try:
                    fitted = fit(self.messages, model=self.model, budget=budget, dialect=self.dialect)
                except InfeasibleBudget:
                    return
                calls = self.ask(fitted, said)
                if not calls:
                    break
                self.messages += self.results(calls, "result " * size)

    def ask(self, fitted: Fit, kind: str) -> list[str]:
        """Send what was fitted; return the calls of the answer."""
        self.made += 1
        self.side.server.answers(self.side.said(kind, str(self.made), resumed=False))
        body = self.body(fitted)
        served = self.side.server.ask(self.side.path(self.model), body, self.side.headers)
        assert served.status == 200, served.message
        assert not [dropped for dropped in served.dropped if "prefix" in dropped["reason"]]
        for answer in self.answers[-3:]:
            self.check_kept(body, answer)
        self.answers.append(self.side.content(served.body))
        self.messages += self.said(served.body)
        return self.side.calls(served.body)

    def check_kept(self, body: Json, answer: list[Json]) -> None:
        """Check that the server would not have accepted an answer's thinking where the request lacks it."""
        place = self.side.matched(body, answer)
        if place is None or all(block in place[1] or not self.side.thinks(block) for block in answer):
            return
        whole = self.side.restored(body, place[0], answer)
        served = self.side.server.ask(self.side.path(self.model), whole, self.side.headers)
        refused = served.status != 200 or any(self.side.concerns(dropped, place[0]) for dropped in served.dropped)
        assert refused, f"item {place[0]} could have its thinking"

    def words(self, text: str) -> Json:
        """Return a message of the user."""
        if isinstance(self.side, GeminiSide):
            return {"role": "user", "parts": [{"text": text}]}
        return {"role": "user", "content": text}

    def results(self, calls: list[str], text: str) -> list[Json]:
        """Return the results of calls."""
        if isinstance(self.side, AnthropicSide):
            content = [{"type": "tool_result", "tool_use_id": call, "content": text} for call in calls]
            return [{"role": "user", "content": content}]
        if isinstance(self.side, ResponsesSide):
            return [{"type": "function_call_output", "call_id": call, "output": text} for call in calls]
        if isinstance(self.side, GeminiSide):
            answers = [{"id": call, "name": "bash", "response": {"output": text}} for call in calls]
            return [{"role": "user", "parts": [{"functionResponse": answer} for answer in answers]}]
        return [{"role": "tool", "tool_call_id": call, "content": text} for call in calls]

    def said(self, answer: Json) -> list[Json]:
        """Return an answer as items of the list."""
        if isinstance(self.side, AnthropicSide):
            return [{"role": "assistant", "content": answer["content"]}]
        if isinstance(self.side, ResponsesSide):
            return list(answer["output"])
        return [
            answer["candidates"][0]["content"] if isinstance(self.side, GeminiSide) else answer["choices"][0]["message"]
        ]

    def body(self, fitted: Fit) -> Json:
        """Return a request with what was fitted, and the tools that recall the rest."""
        said = fitted.messages
        if isinstance(self.side, AnthropicSide):
            tools = [TOOL, *fitted.tools]
            return {"model": self.model, "max_tokens": 99, "system": "Be brief.", "tools": tools, "messages": said}
        if isinstance(self.side, ResponsesSide):
            tools = [{"type": "function"} | FUNCTION, *fitted.tools]
            return {"model": self.model, "input": said, "tools": tools, "store": False}
        if isinstance(self.side, GeminiSide):
            return {"contents": said, "tools": [{"functionDeclarations": [FUNCTION]}, *fitted.tools]}
        tools = [{"type": "function", "function": FUNCTION}, *fitted.tools]
        return {"model": self.model, "messages": said, "tools": tools}


LOOPS: Final[Mapping[str, Callable[[], Loop]]] = {
    "claude": lambda: Loop(AnthropicSide(), "claude-fable-5-1"),
    "older claude": lambda: Loop(AnthropicSide(), "claude-opus-4-6"),
    "responses": lambda: Loop(ResponsesSide(), "gpt-6-sol"),
    "newest responses": lambda: Loop(ResponsesSide(), "gpt-6.2-sol"),
    "gemini": lambda: Loop(GeminiSide(), "gemini-3.6-flash"),
    "chat": lambda: Loop(ChatSide(), "gpt-5.2"),
    "deepseek": lambda: Loop(ChatSide("deepseek-v4", server="deepseek"), "deepseek-v4"),
    "kimi": lambda: Loop(ChatSide("kimi-k3", server="kimi"), "kimi-k3"),
    "mistral": lambda: Loop(ChatSide("mistral-large", server="mistral"), "mistral-large"),
}

_SOAK: Final = 1_000
_EXAMPLES: Final = settings().max_examples


@pytest.mark.filterwarnings("ignore:The window of")
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_with_fit_is_accepted(name: str) -> None:
    """Laws 15 and 16: what `fit` makes of a growing list is accepted at every cut, and no thinking is dropped by the server."""
    kinds = st.sampled_from(["say", "call", "calls", "late", "silent", "redacted"])
    requests = 0

    @settings(
        max_examples=_EXAMPLES // 2 if _EXAMPLES >= _SOAK else max(_EXAMPLES // 8, 5),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        deadline=None,
    )
    @given(
        steps=st.lists(st.tuples(kinds, st.sampled_from([5, 100, 400])), min_size=2, max_size=10),
        budget=st.integers(300, 3_000),
    )
    # one large output makes a cut deeper for a single request
    @example(steps=[("say", 400), ("say", 400), ("call", 400), ("say", 5)], budget=2_350)
    @example(steps=[("call", 400), ("silent", 5), ("call", 400), ("late", 100), ("say", 400)], budget=2_973)
    # the user's large message, which its turn had to show, made it deeper, and the next turn goes back
    @example(steps=[("calls", 400), ("say", 400), ("call", 400), ("late", 100)], budget=2_542)
    # an output that is shortened by now made it deeper, in the middle of the answers with the present cut
    @example(
        steps=[
            *[("silent", 5), ("calls", 100), ("call", 100), ("calls", 100), ("say", 5)],
            *[("call", 100), ("call", 400), ("say", 5), ("redacted", 5)],
        ],
        budget=2_181,
    )
    def law(steps: list[Step], budget: int) -> None:
        nonlocal requests
        loop = LOOPS[name]()
        try:
            loop.run(steps, budget)
        finally:
            requests += loop.side.server.count

    law()
    laws.checked(requests)


# --- objects of the vendor's client ----------------------------------------------------------------------------------------

THOUGHT: Final = {"type": "thinking", "thinking": "hm"}
SEARCH: Final = {"type": "server_tool_use", "name": "web_search", "input": {"query": "herons"}}
WEB: Final = {"type": "web_search_20250305", "name": "web_search"}
NULLS: Final[list[list[Json | str]]] = [
    [{"type": "compaction", "content": None}, THOUGHT, "Well."],
    [THOUGHT, {"type": "novelty", "tag": None, "inner": {"tag": None, "list": []}}, "Well."],
    [THOUGHT, SEARCH, {"type": "web_search_tool_result", "content": []}, THOUGHT, "Nothing."],
]


@pytest.mark.parametrize("keeper", ["list", "dialog"])
def test_objects_of_a_client_go_back_as_they_came(claude: strict.StrictServer, keeper: str) -> None:
    """Law 16: nulls and empty lists of an answer are in the next request, whether `fit` or a dialog gets the client's object."""
    client = opened(anthropic.Anthropic(base_url=claude.url, api_key="key", max_retries=0))
    claude.answers(*NULLS)
    messages: list[Any] = []
    dialog = Session.create().root
    for _ in range(len(NULLS) + 1):
        if keeper == "list":
            messages.append({"role": "user", "content": "Go on."})
            fitted = fit(messages, model="claude-fable-5-1", tools=[WEB])
            assert not fitted.report
            answer: Any = client.messages.create(
                model="claude-fable-5-1", max_tokens=99, messages=fitted.messages, tools=[WEB],  # type: ignore[list-item]
                extra_headers={"anthropic-beta": "compact-2026-01-12"},
            )  # fmt: skip
            messages.append({"role": "assistant", "content": answer.content})
        else:
            dialog.put_text("Go on.")
            request = dialog.request("anthropic", "claude-fable-5-1", provider_tools={"web_search": True})
            assert not request.report
            dialog.append(client.messages.create(**request))
    assert not claude.dropped


def test_a_call_that_leaves_takes_the_thinking_with_it(claude: strict.StrictServer) -> None:
    """Words next to results while a tool of the server still works: its call is left out, and the thinking of that turn, which stood after it."""
    client = opened(anthropic.Anthropic(base_url=claude.url, api_key="key", max_retries=0))
    claude.answers([THOUGHT, SEARCH, THOUGHT, {"type": "tool_use", "name": "bash", "input": {}}], "Well.")
    messages: list[Any] = [{"role": "user", "content": "Go on."}]
    for _ in range(2):
        fitted = fit(messages, model="claude-opus-5", tools=[TOOL, WEB])
        answer = client.messages.create(
            model="claude-opus-5",
            max_tokens=99,
            messages=fitted.messages,
            tools=[TOOL, WEB],  # type: ignore[list-item]
        )
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "done"}
            for block in answer.content
            if block.type == "tool_use"
        ]
        words = {"type": "text", "text": "And this."}
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [*results, words]}]
    assert len(claude.served) == 2


# --- agents --------------------------------------------------------------------------------------------------------------


@tool
def look(at: int) -> str:
    """Return a long text."""
    return f"{at}: " + "word " * 300


@pytest.mark.parametrize("model", ["claude-fable-5-1", "claude-opus-5-5"])
def test_an_agent_is_accepted_over_compactions(model: str) -> None:
    """Laws 15 and 16: over turns with calls and compactions, each request of an agent is accepted through the vendor's client."""
    with strict.anthropic() as server:
        turns = 12
        for number in range(turns):
            call = {"type": "tool_use", "name": "look", "input": {"at": number}}
            server.answers(
                [{"type": "thinking", "thinking": "hm"}, call],
                [{"type": "thinking", "thinking": "hm"}, f"Seen {number}."],
            )

        async def ask() -> None:
            provider = AnthropicProvider(base_url=server.url, api_key="key")
            agent = Agent("looker", "Look.", model=model, llm_invoker=provider, tools=[look], budget=2_500)
            for number in range(turns):
                await agent.arespond(f"Look at {number}.")
            await provider.aclose()

        anyio.run(ask)
        assert not server.refused
        assert len(server.served) == 2 * turns
        assert not server.dropped
