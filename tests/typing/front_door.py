"""The first lines that a user types, in three programs. mypy and pyright strict read this file; nothing runs it."""

from dataclasses import dataclass
from typing import Any, Protocol, assert_type

from pydantic import BaseModel, TypeAdapter

import palaver
from palaver import Agent, Answer, Message, Session, tool


class Completion(Protocol):
    """What an SDK's client returns."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as JSON values."""
        ...


class Completions(Protocol):
    """`client.chat.completions` of an SDK."""

    def create(self, *, model: str, messages: Any, tools: Any = ..., **options: Any) -> Completion:  # noqa: ANN401 - as the SDK
        """Ask the model."""
        ...


class Chat(Protocol):
    """`client.chat` of an SDK."""

    @property
    def completions(self) -> Completions:
        """Return the interface."""
        ...


class Client(Protocol):
    """The client of an SDK."""

    @property
    def chat(self) -> Chat:
        """Return the interfaces."""
        ...


class Order(BaseModel):
    """What a clerk extracts."""

    item: str
    count: int = 1


@dataclass
class Address:
    """A dataclass does as well."""

    town: str


@tool
def tail(page: int) -> str:
    """Read a page of the log."""
    return f"page {page}"


def in_anybodys_loop(client: Client, messages: list[dict[str, Any]], my_tools: list[dict[str, Any]]) -> None:
    """`fit` makes the list fit; what it returns goes to the client."""
    fitted = palaver.fit(messages, model="gpt-5", budget=50_000)
    client.chat.completions.create(model="gpt-5", messages=fitted.messages, tools=my_tools + fitted.tools)
    assert_type(fitted.messages, list[Any])
    assert_type(fitted.tools, list[dict[str, Any]])


def a_durable_list(client: Client) -> None:
    """Append what the provider gave, send what the dialog gives."""
    chat = Session.open("chats.db", "support", create=True).root
    chat.append({"role": "user", "content": "Which tests fail?"})
    reply = client.chat.completions.create(**chat.request("openai", "gpt-5", tools=[tail]))
    said = chat.append(reply)
    assert_type(said, Message)
    assert_type(said.content, str | list[dict[str, Any]] | None)
    assert_type(chat.session, Session)


def an_agent(text: str) -> None:
    """An agent answers with a message; its output has the type that it was asked for."""
    agent = Agent("watcher", "You watch the host.", model="openai/gpt-5-mini", tools=[tail], store="ops.db")
    assert_type(agent, Agent[str])
    assert_type(agent.open("night", resume=True, first="What broke?"), Agent[str])
    assert_type(agent.respond("What broke?").content, str | list[dict[str, Any]] | None)
    assert_type(agent.respond("What broke?").output, str)
    clerk = Agent("clerk", "Extract the order.", model="openai/gpt-5-mini", output=Order)
    assert_type(clerk.respond(text), Answer[Order])
    assert_type(clerk.respond(text).output, Order)
    assert_type(Agent("clerk", "Extract.", model="openai/gpt-5-mini", output=Address).respond(text).output, Address)
    assert_type(Agent("clerk", "Extract.", model="openai/gpt-5-mini", output=list[int]).respond(text).output, list[int])
    either = TypeAdapter[Order | Address](Order | Address)
    assert_type(
        Agent("clerk", "Extract.", model="openai/gpt-5-mini", output=either).respond(text).output, Order | Address
    )


async def an_agent_in_a_loop(agent: Agent, clerk: Agent[Order]) -> None:
    """The same, awaited; an agent without a parameter answers with text."""
    assert_type((await agent.arespond("Hello?")).output, str)
    assert_type((await clerk.arespond("Two lamps.")).output, Order)
