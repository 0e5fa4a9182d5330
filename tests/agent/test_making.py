"""What an agent is made of: the plain forms of its store, its model and its prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver import Agent, Prompt, ProviderInvoker, ScriptedProvider
from palaver.errors import InvalidInput, NotFound, UnknownDialog


def test_an_agent_opens_the_store_whose_address_it_is_given(tmp_path: Path) -> None:
    """A path is as good as a store; another agent at the same path takes the session up."""
    prompt = Prompt(path="store/system", prompt="You are tested.")
    first, second = (
        Agent("tester", prompt, "gpt-4o", ProviderInvoker(ScriptedProvider([said])), store=path)
        for said, path in (("One.", tmp_path / "a.db"), ("Two.", str(tmp_path / "a.db")))
    )
    first.open("main", session_name="job").respond(input="Count.")
    first.store.close()

    assert second.resume("job").respond(input="Go on.").content == "Two."
    assert [message.content for message in second.current_dialog.messages][2:] == ["One.", "Go on.", "Two."]
    second.store.close()


def test_a_provider_is_asked_as_well_as_an_invoker() -> None:
    """Who gives the provider itself gets the invoker around it."""
    provider = ScriptedProvider(["One."])
    agent = Agent("tester", Prompt(path="store/system", prompt="You are tested."), "gpt-4o", provider)

    assert isinstance(agent.llm_invoker, ProviderInvoker)
    assert agent.llm_invoker.provider is provider
    assert agent.open("main").respond(input="Count.").content == "One."


def test_a_text_in_the_place_of_a_prompt_is_told_what_it_is_taken_for() -> None:
    """The words of a prompt are no path: the error says how they are given."""
    with pytest.raises(NotFound, match=r"Prompt\(path=") as refused:
        Agent("tester", "You are tested.", "gpt-4o", ScriptedProvider([]))
    assert refused.value.name == "You are tested."


def test_slips_in_making_and_asking_are_named(tmp_path: Path) -> None:
    """One tool without its list, no model, and words where an alias belongs: each error says what to do."""
    prompt = Prompt(path="store/system", prompt="You are tested.")
    with pytest.raises(InvalidInput, match="into a list"):
        Agent("tester", prompt, "gpt-4o", ScriptedProvider(["One."]), tools=print)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="name of a model"):
        Agent("tester", prompt, None, ScriptedProvider(["One."]))  # type: ignore[arg-type]
    agent = Agent("tester", prompt, "gpt-4o", ScriptedProvider(["One."]), store=tmp_path / "a.db").open("main")
    with pytest.raises(UnknownDialog, match=r"respond\(input="):
        agent.respond("How are you?")
    agent.store.close()
