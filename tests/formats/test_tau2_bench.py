"""τ²-bench: both sides call tools; what the customer does with its own is a dialog of its own."""

from pathlib import Path
from typing import Any

import pytest

from palaver.log import Instructions, ModelChange, Toolset
from palaver.messages import Role, StopReason
from palaver.store.memory import MemoryStore
from tests.formats.chats import document, imported, refused, tau2, views, written
from tests.formats.transcripts import Read, read_bytes


def one_run(**changes: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write results with a single simulation."""
    results = tau2()
    results["simulations"] = [results["simulations"][0] | changes]
    return results


def read(folder: Path, results: object) -> Read:
    """Read results."""
    return read_bytes(folder, document(results))


def test_the_agent_hears_and_the_customer_acts(tmp_path: Path) -> None:
    """Words of both stand in the agent's dialog; the customer's calls and their results in its own, which shares nothing."""
    found = read(tmp_path, one_run())
    assert [message.role for message in found.said("main")] == [
        *(Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.ASSISTANT, Role.USER)
    ]
    assert [message.role for message in found.said("user")] == [Role.ASSISTANT, Role.TOOL]
    branch = found.branch("user")
    assert (branch.parent, branch.at, branch.owner, branch.relation) == ("main", 0, "user", "subagent")
    assert found.counted() == 8
    assert found.codes() == {}


def test_instructions_and_models_of_both_sides(tmp_path: Path) -> None:
    """The policy instructs the agent, the guidelines the customer; each has its model, and the tools it called."""
    found = read(tmp_path, one_run())
    for side, text, model, tool in (
        ("main", "Help politely.", "gpt-4.1", "assistant_tool"),
        ("user", "Play a customer.", "gpt-4.1-mini", "user_tool"),
    ):
        told, change = found.entries(side)[:2]
        assert isinstance(told, Instructions)
        assert [section.text for section in told.sections] == [text]
        (tools,) = [entry for entry in found.entries(side) if isinstance(entry, Toolset)]
        assert [spec.name for spec in tools.tools] == [tool]
        assert isinstance(change, ModelChange)
        assert change.model == model


def test_bundled_results_are_one_record(tmp_path: Path) -> None:
    """A message that nests several results counts once, and each result answers its call."""
    found = read(tmp_path, one_run())
    bundled = [put for put in found.puts if put.record == "3"]
    assert [put.counted for put in bundled] == [1, 0]
    assert [message.tool_results()[0].id for message in found.said() if message.role is Role.TOOL] == ["a1", "a2"]


def test_usage_cost_time_and_errors_are_kept(tmp_path: Path) -> None:
    """Usage with its dollars, the time of each message, why the model stopped, and a result's error flag."""
    found = read(tmp_path, one_run())
    words = found.said()
    assert [message.usage.cost.total for message in words if message.usage.cost.total] == [0.25, 0.5]
    assert words[1].usage.input_tokens == 90
    assert [message.timestamp - words[0].timestamp for message in words] == [0, 1, 2, 3, 3, 4, 7]
    acted, answered = found.said("user")
    assert acted.stop_reason is StopReason.TOOL_CALLS
    assert acted.usage.cost.total == 0.125
    assert answered.tool_results()[0].is_error


def test_a_customer_who_speaks_and_calls_at_once(tmp_path: Path) -> None:
    """The words go to the agent, the calls to the customer's dialog; the record counts once, its usage too."""
    results = one_run()
    results["simulations"][0]["messages"][5]["content"] = "Wait."
    found = read(tmp_path, results)
    assert [put.counted for put in found.puts if put.record == "5"] == [1, 0]
    assert [message.text_content() for message in found.said() if message.role is Role.USER][1] == "Wait."
    assert found.said("user")[0].usage.cost.total == 0
    assert found.counted() == 8


def test_a_result_without_a_requestor_goes_where_its_call_is(tmp_path: Path) -> None:
    """Who made the call tells whose result it is."""
    results = one_run()
    del results["simulations"][0]["messages"][6]["requestor"]
    assert [message.role for message in read(tmp_path, results).said("user")] == [Role.ASSISTANT, Role.TOOL]


def test_declared_tools_are_taken_as_they_are(tmp_path: Path) -> None:
    """Where the results hold declarations, the agent's tools are no stubs."""
    results = one_run()
    tool = {"type": "function", "function": {"name": "assistant_tool", "description": "D", "parameters": {}}}
    results["info"]["environment_info"]["tool_defs"] = [tool]
    found = read(tmp_path, results)
    tools = found.entries("main")[1]
    assert isinstance(tools, Toolset)
    assert [(spec.name, spec.stub, spec.description) for spec in tools.tools] == [("assistant_tool", False, "D")]


def test_the_policy_is_found_wherever_it_stands(tmp_path: Path) -> None:
    """Information that follows the simulations holds for them all the same."""
    results = tau2()
    results["info"] = results.pop("info")
    assert isinstance(read(tmp_path, results).entries("main")[0], Instructions)


def test_every_dialog_is_a_valid_history(tmp_path: Path) -> None:
    """Both dialogs of both simulations fold, and every provider takes them; a second import adds nothing."""
    store = MemoryStore()
    path = written(tmp_path, document(tau2()))
    found = imported(store, path)
    assert [one.dialogs for one in found] == [2, 2]
    assert [refused(store, view) for view in views(store, found)] == [[]] * 4
    assert [(one.entries, one.outcome) for one in imported(store, path)] == [(0, "unchanged")] * 2


@pytest.mark.parametrize("messages", [None, "many", {"role": "user"}, []])
def test_a_simulation_without_messages(tmp_path: Path, messages: object) -> None:
    """It is a conversation without words; what is no list is reported."""
    found = read(tmp_path, one_run(messages=messages))
    assert (len(found.conversations), found.counted()) == (1, 0)
    assert (found.codes()["bad_record"] == 1) == (not isinstance(messages, list | None))
