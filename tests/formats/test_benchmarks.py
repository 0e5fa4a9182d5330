"""Trajectories of benchmarks and of their agents: τ-bench, τ²-bench, mini-SWE-agent, SWE-agent."""

from pathlib import Path
from typing import Any

from palaver.log import Custom, ErrorEntry, Instructions, ModelChange
from palaver.messages import Role, Speaker
from palaver.store.memory import MemoryStore
from tests.formats.reading import Read, imported, read_bytes, written
from tests.formats.samples import document, tau, value_of


def tau2() -> dict[str, Any]:
    """Return one simulation of τ²-bench, in which both sides call, one of them twice at once."""
    found: dict[str, Any] = value_of("tau2-bench")
    return {**found, "simulations": found["simulations"][:1]}


def mini() -> Any:  # noqa: ANN401
    """Return a trajectory of mini-SWE-agent whose last call has no result."""
    return value_of("mini-swe-agent")


def read(folder: Path, value: object) -> Read:
    """Read a document."""
    return read_bytes(folder, document(value))


# --- τ-bench --------------------------------------------------------------------------------------------------------------


def test_tau_bench_keys_tell_runs_apart(tmp_path: Path) -> None:
    """A key is the same at every reading and wherever the run stands; the very same run twice has two."""
    runs = tau(2)
    keys = [one.key for one in read(tmp_path, runs).conversations]
    assert keys[::-1] == [one.key for one in read(tmp_path, runs[::-1]).conversations]
    assert [one.key for one in read(tmp_path, [*runs, runs[0]]).conversations] == [*keys, f"{keys[0]}:2"]


def test_call_id_that_is_used_again_has_its_own_result(tmp_path: Path) -> None:
    """Two calls with one id each show their own result, and nothing is reported of them."""
    found = read(tmp_path, tau(1))
    assert [line for line in found.shown() if line.startswith("tool")] == ["tool: c1=a stone", "tool: c1=a tree"]
    assert not found.view().omissions
    assert found.codes() == {}


# --- τ²-bench -------------------------------------------------------------------------------------------------------------


def test_tau2_agent_hears_and_customer_acts(tmp_path: Path) -> None:
    """Words of both stand in the agent's dialog; the customer's calls and results in its own, which shares nothing."""
    found = read(tmp_path, tau2())
    spoken = [Role.ASSISTANT, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.ASSISTANT, Role.USER]
    assert [message.role for message in found.said("main")] == spoken
    assert [message.role for message in found.said("user")] == [Role.ASSISTANT, Role.TOOL]
    branch = found.branch("user")
    assert (branch.parent, branch.at, branch.owner, branch.relation) == ("main", 0, "user", "subagent")
    assert (found.counted(), found.codes()) == (8, {})


def test_tau2_sides_have_instructions_and_models(tmp_path: Path) -> None:
    """The policy instructs the agent, the guidelines the customer, wherever they stand in the file."""
    results = tau2()
    results["info"] = results.pop("info")
    found = read(tmp_path, results)
    sides = (("main", "Help politely.", "gpt-4.1"), ("user", "Play a customer.", "gpt-4.1-mini"))
    for side, text, model in sides:
        told, change = found.entries(side)[:2]
        assert isinstance(told, Instructions)
        assert [section.text for section in told.sections] == [text]
        assert isinstance(change, ModelChange)
        assert change.model == model


# --- mini-SWE-agent and SWE-agent -------------------------------------------------------------------------------------------


def test_mini_swe_agent_exit_is_no_message(tmp_path: Path) -> None:
    """It counts as a record and says how the run ended; where the harness failed, it is an error."""
    run = mini()
    ending = read(tmp_path, run).entries()[-1]
    assert isinstance(ending, Custom)
    assert (ending.custom_type, ending.data["exit_status"]) == ("mini-swe-agent/exit", "Submitted")
    run["messages"][-1] |= {"content": "no network", "extra": {"exception_str": "no network"}}
    ending = read(tmp_path, run).entries()[-1]
    assert isinstance(ending, ErrorEntry)
    assert ending.error == "no network"


def test_mini_swe_agent_run_that_goes_on(tmp_path: Path) -> None:
    """A longer file adds what is new; a changed message makes a branch; another run of the instance is another session."""
    store = MemoryStore()
    short = mini()
    short["messages"] = short["messages"][:4]
    (first,) = imported(store, written(tmp_path, document(short)))
    (grown,) = imported(store, written(tmp_path, document(mini()), "elsewhere.json"))
    assert (grown.session_id, grown.outcome) == (first.session_id, "grown")
    changed = mini()
    changed["messages"][1]["content"] = "Break it."
    (again,) = imported(store, written(tmp_path, document(changed)))
    assert (again.session_id, again.outcome, again.dialogs) == (first.session_id, "rewritten", 2)
    other = mini()
    other["messages"][2]["extra"]["response"]["id"] = "resp-9"
    (apart,) = imported(store, written(tmp_path, document(other)))
    assert (apart.outcome, apart.session_id == first.session_id) == ("new", False)


def text_protocol(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run of mini-SWE-agent whose commands are text, so that their output comes back in the role user."""
    for message in run["messages"]:
        message.pop("tool_calls", None)
        if message["role"] == "tool":
            message["role"] = "user"
            del message["tool_call_id"]
    return run


def test_importer_marks_observation_as_tool_output(tmp_path: Path) -> None:
    """The format says which messages of the role user are output; the task and a demonstration's beginning are the user's."""
    run = value_of("swe-agent")
    run["history"][5]["content"] = run["history"][3]["content"] + "a.txt"  # no word of a message decides who speaks
    for value in [value_of("swe-agent"), run, text_protocol(mini())]:
        heard = [message for message in read(tmp_path, value).said() if message.role is Role.USER]
        *asked, observed = heard
        assert {message.speaker for message in asked} == {Speaker.HUMAN}
        assert observed.speaker is Speaker.TOOL
        assert observed.text_content().removeprefix("<output>").removesuffix("</output>").endswith("a.txt")
