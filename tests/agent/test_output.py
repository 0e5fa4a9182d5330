"""What an agent answers with, and what it says to somebody who uses it for the first time."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, TypeAdapter

from palaver import Agent, Dialog, MemoryStore, Prompt, ScriptedProvider, Session, ToolReply
from palaver.agent import Answer, ProviderInvoker
from palaver.errors import InvalidInput, InvalidMessage, PalaverError, ParseError, RepairFailed
from palaver.messages import encode

MODEL = "gpt-4o-mini"


class Order(BaseModel):
    """What a clerk extracts."""

    item: str
    count: int = 1


@dataclass
class Address:
    """Where it goes."""

    town: str


def test_output_has_the_type_it_was_asked_for() -> None:
    """A model, a dataclass, another type, an adapter of one; without any, the text. The schema is in the provider's own field."""
    asked = (
        (Order, '{"item": "lamp"}', Order(item="lamp")),
        (Address, '{"town": "Ulm"}', Address("Ulm")),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (TypeAdapter(dict[str, int]), '{"a": 1}', {"a": 1}),
        (None, "lamps", "lamps"),
    )
    for output, said, wanted in asked:
        provider = ScriptedProvider([said])
        kind = cast("type[Any] | None", output)
        answer = Agent("clerk", "Extract the order.", MODEL, provider, output=kind).respond("A lamp.")
        assert (answer.output, answer.content) == (wanted, said), output
        assert ("response_format" in provider.requests[0].body) == (output is not None), output


def test_output_that_does_not_fit_is_repaired() -> None:
    """The model reads what was wrong; when no repair is left, there is an error and no output."""
    answers = ["A lamp!", '{"count": 2}', '{"item": "lamp", "count": 2}']
    clerk = Agent("clerk", "Extract the order.", MODEL, ScriptedProvider(answers), output=Order)
    session = clerk.respond("Two lamps.", return_session=True)
    assert session.delivery is not None
    assert (session.delivery.output, session.exception_retries_count) == (Order(item="lamp", count=2), 2)
    clerk = Agent("clerk", "Extract.", MODEL, ScriptedProvider(["no"]), output=Order, max_exception_retry=0)
    with pytest.raises(RepairFailed, match="not JSON"):
        clerk.respond("Two lamps.")


def test_output_counts_before_a_format_of_the_prompt() -> None:
    """`Agent(output=...)` says what the program gets; without it that is the text, whatever the prompt reads from it."""
    prompt = Prompt("shop/clerk", "Extract.", format=Address)
    script = ['{"item": "lamp"}', '{"town": "Ulm"}']
    clerk = Agent("clerk", prompt, MODEL, ScriptedProvider(script[:1]), output=Order)
    assert clerk.respond("A lamp.").output == Order(item="lamp")
    plain = Agent("clerk", prompt, MODEL, ScriptedProvider(script[1:])).respond("To Ulm.")
    assert (plain.output, dict(plain.parsed)) == ('{"town": "Ulm"}', {"town": "Ulm"})


def test_answer_is_the_message_of_the_dialog() -> None:
    """Equal, stored alike, and the same after a copy or a pickle; its output is read once."""
    clerk = Agent("clerk", "Extract.", MODEL, ScriptedProvider(['{"item": "lamp"}']), output=Order)
    answer = clerk.respond("A lamp.")
    stored = clerk.current_dialog.messages[-1]
    assert type(stored) is not Answer
    assert answer == stored
    assert stored == answer
    assert encode(answer) == encode(stored)
    assert answer.output is answer.output
    assert answer.model_copy(update={"content": '{"item": "key"}'}).output == Order(item="key")
    assert pickle.loads(pickle.dumps(answer)).output == answer.output  # noqa: S301 - our own
    assert type(clerk.current_dialog.fork().append(answer)) is not None


def test_output_is_read_again_in_a_later_process() -> None:
    """The answer that was durable before its process died has its output in the next one."""
    store = MemoryStore()
    Agent("clerk", "Extract.", MODEL, ScriptedProvider(['{"item": "lamp"}']), store=store, output=Order).respond(
        "A lamp."
    )
    later = Agent("clerk", "Extract.", MODEL, ScriptedProvider([]), store=store, output=Order)
    assert later.resume("clerk_main").respond().output == Order(item="lamp")


def test_output_of_a_tool_that_ends_the_turn() -> None:
    """What such a tool returns is the answer: it fits, or reading it says that it does not."""

    def order(item: str) -> ToolReply:
        """Order it."""
        return ToolReply(item, terminate=True)

    for returned in ('{"item": "lamp"}', "lamp"):
        script = ScriptedProvider([{"tool_calls": [{"name": "order", "arguments": {"item": returned}}]}])
        answer = Agent("clerk", "Order.", MODEL, script, tools=[order], output=Order).respond("A lamp.")
        if returned == "lamp":
            with pytest.raises(ParseError):
                _ = answer.output
        else:
            assert answer.output == Order(item="lamp")


def test_nothing_new_to_answer_is_said() -> None:
    """With no dialog, with an empty one, and after an answer; nothing is made, asked or written."""
    provider = ScriptedProvider(["Yes.", "Good."])
    agent = Agent("clerk", "You sell.", MODEL, provider)
    for begin in (lambda: None, lambda: agent.open("shop"), lambda: agent.respond("Hello?")):
        begin()
        for call in (agent.respond, lambda: list(agent.stream())):
            with pytest.raises(InvalidInput, match="nothing new to answer"):
                call()
    assert (list(agent.dialogs), len(provider.requests), len(agent.current_dialog.messages)) == (["shop"], 1, 3)
    agent.receive("Well?")
    assert agent.respond().content == "Good."


def test_an_agent_without_dialogs_names_what_to_resume() -> None:
    """After a crash `respond()` alone cannot know the session; the error says how to open it."""
    provider = ScriptedProvider(["Yes."])
    store = MemoryStore()
    Agent("clerk", "You sell.", MODEL, provider, store=store).receive("Hello?")
    agent = Agent("clerk", "You sell.", MODEL, provider, store=store)
    with pytest.raises(InvalidInput, match=r'resume\("clerk_main"\)'):
        agent.respond()
    assert agent.resume("clerk_main").respond().content == "Yes."


def test_first_wrong_step_is_named(tmp_path: Path) -> None:
    """One clear error for each, where the mistake is made."""

    def agent(invoker: object = None, model: object = MODEL, prompt: object = "You help.", **options: Any) -> Agent:  # noqa: ANN401 - options
        return Agent("a", cast("str", prompt), cast("str", model), cast("ProviderInvoker", invoker), **options)

    script = ScriptedProvider([])
    steps: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: agent(model="gpt-4o"), "'gpt-4o' does not name a model and its provider.*openai/gpt-4o"),
        (lambda: agent(script, model=4), "model is 4"),
        (lambda: agent(script, store=4), "store is 4"),
        (lambda: Agent(cast("str", 4), "You help.", MODEL, script), "name is 4"),
        (lambda: Session.open(tmp_path / "x.db", "", create=True), "session is ''"),
        (lambda: Session.create().root.request("openai", MODEL, top_k=4), "no field 'top_k'.*parameters="),
        (lambda: Session.create().root.request("openai", cast("str", None)), "model is None"),
        (lambda: Session.create().root.request(cast("str", None), MODEL), "profile is None"),
        (lambda: Session.create().root.request("openai", MODEL, temperature="hot"), "temperature is 'hot'"),
        (lambda: Session.create().root.request("openai", MODEL, provider_tools=["web_search"]), "provider_tools is"),
        (
            lambda: Session.create().root.request("openai", MODEL, tool_choice={"type": "any"}),
            "tool_choice is.*parameters=",
        ),
        (lambda: Session.create().root.request("openai", MODEL, recall=cast("bool", "no")), "recall is 'no'"),
        (lambda: agent("openai"), "llm_invoker is 'openai'.*openai/gpt-5"),
        (lambda: agent(script, output="Order"), "'Order'.*neither a type nor a JSON schema"),
        (lambda: agent(script).respond(cast("str", 3)), "input is 3"),
        (
            lambda: Dialog("a", store=cast("MemoryStore", "x.db")),
            r"store is 'x.db'.*Session.open\('x.db', 'a', create=True\)",
        ),
    )
    for step, words in steps:
        with pytest.raises(InvalidInput, match=words):
            step()
    for folder in (tmp_path, str(tmp_path)):
        with pytest.raises(InvalidMessage, match="is a directory"):
            Session.create().root.put_image(folder)
    assert issubclass(InvalidMessage, PalaverError)
