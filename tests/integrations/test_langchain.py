"""Agents of LangChain with palaver's middleware: requests fit and are valid, the state stays whole, what is left out comes back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from palaver import Session
from palaver.errors import InvalidInput
from palaver.store import Store

agents = pytest.importorskip("langchain.agents", reason="langchain is not installed: ./run integrations")
middlewares = pytest.importorskip("langchain.agents.middleware")
models = pytest.importorskip("langchain_core.language_models.chat_models")
outputs = pytest.importorskip("langchain_core.outputs")
said = pytest.importorskip("langchain_core.messages")
adapter = pytest.importorskip("palaver.integrations.langchain")
savers = pytest.importorskip("palaver.integrations.langgraph")

BUDGET = 4_000


class Scripted(models.BaseChatModel):  # type: ignore[misc, name-defined] # unknown where LangChain is missing
    """A model that says what a list has, and keeps each request."""

    script: list[Any]
    requests: list[Any] = []  # noqa: RUF012 - a field
    offered: list[Any] = []  # noqa: RUF012 - a field
    model_name: str = "gpt-5"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:  # noqa: ANN401 - LangChain's
        """Keep the tools."""
        self.offered.append([tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in tools])
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - LangChain's
        self.requests.append(messages)
        answer = self.script[len(self.requests) - 1]
        answer = answer(messages) if callable(answer) else answer
        return outputs.ChatResult(generations=[outputs.ChatGeneration(message=answer)])


def read_file(number: int) -> str:
    """Read a file."""
    return f"File {number} says: " + "grey weather. " * 200


def asks(number: int, name: str = "read_file", **args: Any) -> Any:  # noqa: ANN401 - a message
    """Return an answer that calls a tool."""
    return said.AIMessage("", tool_calls=[{"id": f"c{number}", "name": name, "args": args or {"number": number}}])


def recalls(messages: list[Any]) -> Any:  # noqa: ANN401 - a message
    """Return an answer that recalls the first output, which the record of the request names as left out."""
    record = next(str(message.content) for message in messages if "recall " in str(message.content))
    dialog = record.partition("recall ")[2].partition(":")[0]
    return asks(999, "recall", handle=f"{dialog}:2")


def built(model: Any, store: Store, *more: Any) -> Any:  # noqa: ANN401 - an agent
    """Return an agent with its conversations in a store."""
    ours = adapter.PalaverMiddleware(budget=BUDGET)
    return agents.create_agent(
        model,
        [read_file],
        system_prompt="Read.",
        middleware=[*more, ours],
        checkpointer=savers.PalaverCheckpointSaver(store),
    )


def is_valid(request: list[Any]) -> bool:
    """Return whether each call has its result directly after it, and each result its call."""
    open_calls: list[str] = []
    for message in request:
        if message.type == "tool":
            open_calls.remove(message.tool_call_id)
        elif open_calls:
            return False
        if message.type == "ai":
            open_calls = [call["id"] for call in message.tool_calls]
    return not open_calls


CONFIG: Any = {"configurable": {"thread_id": "talk"}}


@pytest.mark.parametrize("waits", [False, True])
def test_requests_are_small_and_the_state_is_whole(store: Store, waits: bool) -> None:
    """Over thirty calls each request fits and pairs calls with results (langchain 38867, 39261); no message leaves the state (34282)."""
    rounds = 30
    model = Scripted(script=[*(asks(number) for number in range(rounds)), said.AIMessage("Done.")])
    agent = built(model, store)
    given = {"messages": [said.HumanMessage("Read all files.")]}
    state = asyncio.run(agent.ainvoke(given, CONFIG)) if waits else agent.invoke(given, CONFIG)
    assert len(state["messages"]) == 2 * rounds + 2
    assert [message.content for message in state["messages"] if message.type == "tool"] == list(
        map(read_file, range(rounds))
    )
    assert len(model.requests) == rounds + 1
    assert all(map(is_valid, model.requests))
    assert all(request[0].content == "Read." for request in model.requests)
    assert all("Read all files." in str([message.content for message in request]) for request in model.requests)
    sizes = [sum(len(str(message.content)) for message in request) for request in model.requests]
    assert max(sizes) < 5 * BUDGET < sum(len(read_file(number)) for number in range(rounds))
    assert len(Session.open(store, "talk").root.messages) == 2 * rounds + 2


def test_what_is_left_out_comes_back(store: Store) -> None:
    """The tools that recall are offered once something is left out, and answer from the state."""
    model = Scripted(
        script=[
            *map(asks, range(12)),
            recalls,
            asks(998, "search_history", query="File 1 says"),
            said.AIMessage("Done."),
        ]
    )
    state = built(model, store).invoke({"messages": [said.HumanMessage("Read all files.")]}, CONFIG)
    assert model.offered[0] == ["read_file"]
    assert model.offered[12] == ["read_file", "recall", "search_history"]
    recalled, found = (message.content for message in state["messages"][-4:] if message.type == "tool")
    assert "File 0 says" in recalled
    assert "File 1 says" in found


def test_a_budget_is_needed_where_nobody_knows_the_window() -> None:
    """A model that neither palaver nor LangChain knows is refused with what to do; LangChain's profile is enough."""
    model = Scripted(script=[said.AIMessage("Hello.")], model_name="homemade")
    agent = agents.create_agent(model, [], middleware=[adapter.PalaverMiddleware()])
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        agent.invoke({"messages": [said.HumanMessage("Hello")]})
    model.profile = {"max_input_tokens": 8_000}
    assert agent.invoke({"messages": [said.HumanMessage("Hello")]})["messages"][-1].content == "Hello."


@pytest.mark.parametrize(
    "change",
    [lambda known: known[-1:], lambda known: [said.HumanMessage("Mind."), *known]],
    ids=["left out", "put before"],
)
def test_middleware_that_trims_before_it_is_refused(store: Store, change: Any) -> None:  # noqa: ANN401 - a function
    """Handles count the state's messages: middleware that takes some away before, or puts others before them, is named as the fault."""

    class Changes(middlewares.AgentMiddleware):  # type: ignore[misc, name-defined] # unknown where LangChain is missing
        def wrap_model_call(self, request: Any, handler: Any) -> Any:  # noqa: ANN401 - LangChain's
            return handler(request.override(messages=change(request.messages)))

    model = Scripted(script=[asks(0), said.AIMessage("Done.")])
    with pytest.raises(InvalidInput, match="Put PalaverMiddleware first"):
        built(model, store, Changes()).invoke({"messages": [said.HumanMessage("Read.")]}, CONFIG)
