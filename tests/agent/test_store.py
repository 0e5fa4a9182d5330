"""Where an agent's dialogs lie."""

from __future__ import annotations

from pathlib import Path

from palaver import Agent, Prompt, ProviderInvoker, ScriptedProvider


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
