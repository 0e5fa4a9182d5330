"""Seed 002, «Agent Loop»: every block of code it shows, run with its import lines changed; models answer from scripts."""

from importlib.util import find_spec
from typing import Any

import pytest

from palaver import (
    Agent,
    DefaultTagParser,
    Prompt,
    ProviderInvoker,
    Role,
    ScriptedProvider,
)
from palaver.lllm import build_invoker
from tests.seeds.ported import imported, invoker, run

BLOCK_01 = """
from lllm.runtimes.native import Agent, Prompt
from lllm.runtimes.native.invokers import build_invoker

agent = Agent(
    name="writer",
    system_prompt=Prompt(path="writer/system", prompt="You write clear notes."),
    model="gpt-4o-mini",
    llm_invoker=build_invoker({"invoker": "litellm"}),
)

agent.open("draft")
agent.receive("Write a short project update.")
response = agent.respond()
"""


def test_named_dialogs_are_answered() -> None:
    """A23, R20, R79, R82, R141, R142: the one thing that is replaced is the network: where LiteLLM is asked for, a script answers."""
    assert imported(BLOCK_01) == ["Agent", "Prompt", "build_invoker"]
    asked: list[dict[str, str]] = []
    source = BLOCK_01.replace("agent = Agent(", "build_invoker = scripted\nagent = Agent(")

    def scripted(config: dict[str, str]) -> ProviderInvoker:
        asked.append(config)
        return invoker("All is well.")

    names = run(source, scripted=scripted)
    agent: Agent = names["agent"]
    assert asked == [{"invoker": "litellm"}]
    assert names["response"].content == "All is well."
    assert [message.role for message in agent.current_dialog.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT]
    assert agent.current_dialog.owner == "writer"


def test_the_real_invoker_can_be_built() -> None:
    """R147: `build_invoker({"invoker": "litellm"})` gives an invoker without asking anybody."""
    if find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    assert hasattr(build_invoker({"invoker": "litellm"}), "invoke")


BLOCK_02 = """
session = agent.respond(return_session=True)

print(session.state)
print(session.exception_retries_count)
print(session.llm_recalls_count)
print(session.cost)
print(session.delivery.content)
"""


def test_the_trace_counts_repairs_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """A24, R86, R144, R145, R237: a bad answer, then a good one: one repair, no recall, the cost of both, and only the good one in the dialog."""
    prompt = Prompt(path="w", prompt="You write.", parser=DefaultTagParser(required_xml_tags=["note"]))
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    answers = [{"text": text, "usage": usage} for text in ("bad", "<note>good</note>")]
    agent = Agent("writer", prompt, "gpt-4o-mini", invoker(*answers))
    agent.open("draft")
    agent.receive("Write.")
    session = run(BLOCK_02, agent=agent)["session"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == ["success", "1", "0"]
    assert "total_tokens=30" in printed[3]
    assert printed[4] == "<note>good</note>"
    assert session.delivery.parsed["xml_tags"] == {"note": ["good"]}
    said = [message.content for message in agent.current_dialog.messages]
    assert said == ["You write.", "Write.", "<note>good</note>"]


BLOCK_03 = """
from lllm.runtimes.native.core.dialog import DefaultContextManager

agent.context_manager = DefaultContextManager(
    model_name="gpt-4o-mini",
    max_tokens=128000,
)
"""


def test_a_context_manager_may_be_assigned() -> None:
    """A25, R95: it is in force from then on; a small dialog is not changed by it."""
    provider = ScriptedProvider(["hi"], profile="openai-chat")
    agent = Agent("writer", Prompt(path="w", prompt="You write."), "gpt-4o-mini", ProviderInvoker(provider))
    agent.open("draft")
    run(BLOCK_03, agent=agent)
    manager: Any = agent.context_manager
    assert (manager.model_name, manager.max_tokens) == ("gpt-4o-mini", 128_000)
    agent.receive("Write.")
    agent.respond()
    assert [message["content"] for message in provider.requests[0].body["messages"]] == ["You write.", "Write."]


class Recording(ProviderInvoker):
    """Keeps what each call gets."""

    async def invoke(self, dialog: Any, model: str, **facts: Any) -> Any:  # noqa: ANN401 - the facts of a call
        """Ask, and keep them."""
        self.got = {"dialog": dialog, "model": model, **facts}
        return await super().invoke(dialog, model, **facts)


def test_an_invoker_is_asked_with_everything() -> None:
    """R45, R148: the facts of the call; where nothing governs the dialog, the agent's system prompt does."""
    asked = Recording(ScriptedProvider(["<note>good</note>"], profile="openai-chat"))
    prompt = Prompt(path="w", prompt="You write.", parser=DefaultTagParser(required_xml_tags=["note"]))
    agent = Agent("writer", prompt, "gpt-4o-mini", asked, model_args={"temperature": 0.5})
    agent.open("draft").receive("Write.")
    agent.current_dialog.top_prompt = None
    assert agent.respond(metadata={"why": "a test"}).parsed["xml_tags"] == {"note": ["good"]}
    assert asked.got["prompt"] is prompt
    assert asked.got["model"] == "gpt-4o-mini"
    assert asked.got["model_args"]["temperature"] == 0.5
    assert {"dialog", "parser_args", "responder", "metadata", "api_type", "stream_handler"} <= asked.got.keys()
