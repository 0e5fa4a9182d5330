"""The first lines that a user types, in three programs. mypy and pyright strict read this file; nothing runs it."""

from dataclasses import dataclass
from typing import Any, assert_type

from openai import OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import BaseModel, TypeAdapter

import palaver
from palaver import Agent, Answer, Message, Session, tool


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


def in_anybodys_loop(
    client: OpenAI, messages: list[ChatCompletionMessageParam], my_tools: list[ChatCompletionToolUnionParam]
) -> None:
    """`fit` makes the list fit; what it returns goes to the client."""
    fitted = palaver.fit(messages, model="gpt-5", budget=50_000)
    reply = client.chat.completions.create(model="gpt-5", messages=fitted.messages, tools=my_tools + fitted.tools)
    assert_type(reply, ChatCompletion)
    assert_type(fitted.messages, list[Any])
    assert_type(fitted.tools, list[Any])


def a_durable_list(client: OpenAI) -> None:
    """Append what the provider gave, send what the dialog gives."""
    chat = Session.open("chats.db", "support", create=True).root
    chat.append({"role": "user", "content": "Which tests fail?"})
    reply = client.chat.completions.create(**chat.request("openai", "gpt-5", tools=[tail]), stream=False)
    assert_type(reply, ChatCompletion)
    said = chat.append(reply)
    assert_type(said, Message)
    assert_type(said.content, str | list[dict[str, Any]] | None)
    assert_type(chat.session, Session)
    with client.chat.completions.stream(**chat.request("openai", "gpt-5")) as stream:
        assert_type(chat.append(stream.get_final_completion()), Message)


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
