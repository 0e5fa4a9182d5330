"""Repo maps in an agent's turns: what a model saw of one is given back to the byte, whatever became of the disk."""

from __future__ import annotations

from pathlib import Path

from palaver import Prompt, RepoMap, repo_map_tools
from palaver.agent import Agent, ProviderInvoker
from palaver.context.presets import Aider
from palaver.log import Compaction, Derived
from palaver.messages import ToolResultContent
from palaver.models import ScriptedProvider
from tests.agent.helper import MODEL, calling, entries, scripted
from tests.repomap.made_up import SHOP, written


def emptied(folder: Path) -> None:
    """Delete all that a folder holds."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()


def test_what_the_tool_gave_is_in_the_log(tmp_path: Path) -> None:
    """A model asks for a map, for what is said in its dialog; later requests hold the same text, and past ones come back without the disk."""
    shop = written(tmp_path, SHOP)
    script = [calling("repo_map", tokens=100, mentioned=["shelf.py"]), "Thanks.", "Again."]
    agent, provider = scripted(script, tools=repo_map_tools(RepoMap(shop)))
    agent.receive("Mend `pay`.")
    agent.respond()
    dialog = agent.current_dialog
    (said,) = [
        block.text()
        for message in dialog.messages
        for block in message.contents
        if isinstance(block, ToolResultContent)
    ]
    assert "│def lonely():" in said
    emptied(shop)
    agent.receive("And now?")
    agent.respond()
    assert said.splitlines()[1] in str(provider.requests[-1].body)
    for past, sent in zip(dialog.invocations, provider.requests, strict=True):
        assert past.request().body == sent.body


def test_a_folder_that_is_gone_is_told_to_the_model(tmp_path: Path) -> None:
    """A tool that has nothing to look at any more answers with an error; the turn goes on."""
    shop = written(tmp_path / "shop", SHOP)
    repo_map = RepoMap(shop)
    shop.rename(tmp_path / "away")
    agent, _ = scripted([calling("repo_map"), "I see."], tools=repo_map_tools(repo_map))
    agent.receive("Mend it.")
    assert agent.respond().text_content() == "I see."
    (said,) = [
        block
        for message in agent.current_dialog.messages
        for block in message.contents
        if isinstance(block, ToolResultContent)
    ]
    assert said.is_error
    assert "cannot be mapped" in said.text()


def test_what_the_preset_drew_is_given_back(tmp_path: Path) -> None:
    """Requests with a map beside a record are reproduced to the byte after the repository is gone; between two folds the map stays."""
    shop = written(tmp_path, SHOP)
    by = Aider(MODEL, 9_000, repo_map=shop, map_tokens=200, history=1_200)
    agent, provider = scripted(lambda _: "An answer of some length. " * 60, context_manager=by)
    for number in range(12):
        agent.receive(f"Question {number} about `ShoppingBasket`. " + "It is long. " * 40)
        agent.respond()
        if number == 9:
            emptied(shop)
    bodies = [str(sent.body) for sent in provider.requests]
    assert any("Map of 6 files" in body for body in bodies)
    assert "Map of 6 files" in bodies[-1]
    for past, sent in zip(agent.current_dialog.invocations, provider.requests, strict=True):
        assert past.request().body == sent.body


def test_an_agent_s_requests_begin_with_a_map_that_is_recorded(tmp_path: Path) -> None:
    """The first request has a map; the call has its figures and gives it back to the byte. A process that goes on sends the same, whatever the disk says."""
    shop = written(tmp_path, SHOP)
    by = Aider(MODEL, 9_000, repo_map=RepoMap(shop), map_tokens=60)
    agent, provider = scripted(["One.", "Two."], context_manager=by)
    agent.receive("Mend `ShoppingBasket`.")
    agent.respond()
    dialog = agent.current_dialog
    (first,) = dialog.invocations
    assert first.decision is not None
    assert first.decision["repo map"]["why"] == "first words"
    emptied(shop)
    written(shop, {"other.py": "class Other:\n    pass\n"})
    other = Aider(MODEL, 9_000, repo_map=RepoMap(shop), map_tokens=60)
    later = ScriptedProvider(["Two."], profile="openai-chat")
    system = Prompt(path="tester/system", prompt="You are tested.")
    going_on = Agent("tester", system, MODEL, ProviderInvoker(later), context_manager=other).adopt("main", dialog)
    going_on.receive("And now?")
    going_on.respond()
    requests = [*provider.requests, *later.requests]
    before, after = (sent.body["messages"] for sent in requests)
    assert "class ShoppingBasket" in str(before[1])
    assert after[: len(before)] == before
    calls = going_on.current_dialog.invocations
    assert [call.decision is None for call in calls] == [False, True]
    assert [call.request().body for call in calls] == [sent.body for sent in requests]


def test_a_map_beside_a_record_is_committed_with_it(tmp_path: Path) -> None:
    """The fold at which a map was drawn is an entry of the log, the map in it; the call has its figures, and the next calls none until more is folded."""
    shop = written(tmp_path, SHOP)
    by = Aider(MODEL, 9_000, repo_map=RepoMap(shop), map_tokens=200, history=1_200)
    agent, _ = scripted(lambda _: "An answer of some length. " * 60, context_manager=by)
    for number in range(6):
        agent.receive(f"Question {number} about `ShoppingBasket`. " + "It is long. " * 40)
        agent.respond()
    dialog = agent.current_dialog
    committed = [entry for entry in entries(dialog) if isinstance(entry, Compaction)]
    drawn = [call.decision["repo map"]["why"] for call in dialog.invocations if call.decision]
    assert drawn == ["first words", *["fold"] * len(committed)]
    assert committed
    for entry in committed:
        assert [piece.label for piece in entry.pieces if isinstance(piece, Derived)] == ["record", "repo map"]
    emptied(shop)
    assert "class ShoppingBasket" in str([block for exchange in dialog.view().exchanges for block in exchange.blocks()])
