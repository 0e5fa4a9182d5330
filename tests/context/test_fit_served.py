"""`fit` keeps what only its provider reads: the stand-in of the Messages API refuses nothing of a loop over a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from palaver.context.fit import Fit, fit
from palaver.testing import strict
from tests.wire.talks import CALL, FOUND, SEARCH, STRICT, THOUGHT, Json, accepted

TOOLS: list[Json] = [
    {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}},
    {"type": "web_search_20250305", "name": "web_search"},
]
NOVEL: Json = {"type": "novelty", "tag": "x"}


class Loop:
    """A loop of the caller's own over a list of messages, with `fit` before each request."""

    def __init__(self, server: strict.StrictServer, budget: int = 100_000) -> None:
        self.server, self.budget = server, budget
        self.messages: list[Any] = []
        self.fitted: Fit

    def ask(self, content: object, *answer: Json | str) -> Json:
        """Append content of the user, if there is any, fit, ask, and append the answer."""
        if content:
            self.messages.append({"role": "user", "content": content})
        self.server.answers(answer)
        self.fitted = fit(self.messages, model=STRICT, budget=self.budget, tools=TOOLS)
        with anthropic.Anthropic(base_url=self.server.url, api_key="key", max_retries=0) as client:
            tools = [*TOOLS, *self.fitted.tools]
            client.messages.create(model=STRICT, max_tokens=2_048, messages=self.fitted.messages, tools=tools)
        said: Json = self.server.served[-1].body
        self.messages = [*self.messages, {"role": "assistant", "content": said["content"]}]
        return said

    def results(self) -> list[Json]:
        """Return results for the calls of the newest answer."""
        calls = [block["id"] for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        return [{"type": "tool_result", "tool_use_id": call, "content": "done"} for call in calls]


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server


def test_unknown_blocks_stay_the_callers_own(claude: strict.StrictServer) -> None:
    """`fit` returns the caller's own items, with blocks of kinds that nobody knows yet."""
    loop = Loop(claude)
    loop.ask("Go.", THOUGHT, NOVEL, THOUGHT, "Done.")
    before = loop.messages[1]
    loop.ask("And?", "Well.")
    assert loop.messages[1] is before
    assert list(loop.fitted.report) == []
    accepted(claude)


def test_a_paused_turn_stays_last(claude: strict.StrictServer) -> None:
    """«pause_turn tail without its server_tool_use»: a list that ends on a paused turn is sent as it is."""
    loop = Loop(claude)
    loop.ask("Search.", THOUGHT, SEARCH)
    loop.ask(None, FOUND, THOUGHT, "Herons.")
    assert [message["role"] for message in claude.served[1].asked.body["messages"]] == ["user", "assistant"]
    loop.ask("And?", "Well.")
    accepted(claude)


def test_words_beside_the_results_of_a_mixed_turn_stay(claude: strict.StrictServer) -> None:
    """«mixed turn, user text beside results»: user text beside the results of a mixed turn is refused: `fit` keeps the words, and leaves out the server's call with a note."""
    loop = Loop(claude)
    loop.ask("Go.", THOUGHT, SEARCH, CALL)
    words = {"type": "text", "text": "Also this."}
    loop.ask([*loop.results(), words], THOUGHT, "Herons.")
    assert [block["type"] for block in loop.fitted.messages[1]["content"]] == ["thinking", "tool_use"]
    assert loop.fitted.messages[2]["content"][-1] == words
    assert len(loop.fitted.report)
    accepted(claude)


def test_rounds_with_tools_of_the_server_are_cut_whole(claude: strict.StrictServer) -> None:
    """«cut inside tool round, any Claude»: a cut inside a tool round is refused: whole rounds leave, with the calls that the server ran in them."""
    loop = Loop(claude, budget=2_500)
    for number in range(6):
        loop.ask(f"{number}: " + "word " * 200, THOUGHT, SEARCH, FOUND, CALL)
        loop.ask(loop.results(), THOUGHT, NOVEL, "answer " * 100)
    assert loop.fitted.omitted
    accepted(claude)
