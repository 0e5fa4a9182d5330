"""mini-SWE-agent: what the harness writes beside each message, and how a run ends."""

from pathlib import Path

from palaver.log import Custom, ErrorEntry, ModelChange
from palaver.messages import Role, StopReason
from palaver.store.memory import MemoryStore
from tests.formats.chats import document, imported, mini, refused, views, written
from tests.formats.transcripts import read_bytes


def test_a_run_is_read_with_what_the_provider_said(tmp_path: Path) -> None:
    """Model, response id, usage with dollars, stop reason and time of each answer; the run's own name and folder."""
    found = read_bytes(tmp_path, document(mini()))
    (run,) = found.conversations
    assert (run.key, run.title, run.workdir, run.model) == (
        "resp-1:1700000001.000",
        "repo__7",
        "/testbed",
        "deepseek-chat",
    )
    assert run.metadata["exit_status"] == "Submitted"
    answers = [message for message in found.said() if message.role is Role.ASSISTANT]
    assert [message.response_id for message in answers] == ["resp-1", "resp-2"]
    assert [message.usage.input_tokens for message in answers] == [100, 200]
    assert [message.usage.cost.total for message in answers] == [0.5, 0.5]
    assert {message.stop_reason for message in answers} == {StopReason.TOOL_CALLS}
    assert [message.timestamp for message in answers] == [1700000001.0, 1700000002.0]
    assert [entry.model for entry in found.entries() if isinstance(entry, ModelChange)] == ["deepseek-chat"]
    assert [entry.kind for entry in found.entries()][:4] == ["message", "message", "toolset", "model_change"]
    assert found.counted() == 6
    assert found.codes() == {}


def test_the_exit_is_no_message(tmp_path: Path) -> None:
    """It counts as a record, and says how the run ended; where the harness failed, it is an error."""
    found = read_bytes(tmp_path, document(mini()))
    ending = found.entries()[-1]
    assert isinstance(ending, Custom)
    assert (ending.custom_type, ending.data["exit_status"]) == ("mini-swe-agent/exit", "Submitted")
    failed = mini()
    failed["messages"][-1]["extra"]["exception_str"] = "no network"
    failed["messages"][-1]["content"] = "no network"
    ending = read_bytes(tmp_path, document(failed)).entries()[-1]
    assert isinstance(ending, ErrorEntry)
    assert ending.error == "no network"


def test_the_call_that_submitted_has_no_result(tmp_path: Path) -> None:
    """The view shows it with a derived one, and every provider takes the history."""
    store = MemoryStore()
    path = written(tmp_path, document(mini()))
    found = imported(store, path)
    (view,) = views(store, found)
    derived = [b for e in view.exchanges for t in e.turns for b in t.blocks if b.derived]
    assert [block.content.type for block in derived] == ["tool_result"]
    assert refused(store, view) == []
    assert [one.entries for one in imported(store, path)] == [0]


def test_a_command_that_could_not_run_is_an_error(tmp_path: Path) -> None:
    """One that ended with another code than 0 is none: it did run; the code stays with the message."""
    run = mini()
    found = read_bytes(tmp_path, document(run))
    (result,) = [message for message in found.said() if message.role is Role.TOOL]
    assert result.tool_results()[0].is_error
    assert result.metadata["returncode"] == 1
    run["messages"][3]["extra"]["exception_info"] = ""
    found = read_bytes(tmp_path, document(run))
    (result,) = [message for message in found.said() if message.role is Role.TOOL]
    assert not result.tool_results()[0].is_error


def test_what_stays_in_the_source_is_named(tmp_path: Path) -> None:
    """Whatever is neither read nor kept is counted in a note."""
    (note,) = [loss for loss in read_bytes(tmp_path, document(mini())).losses if loss.code == "skipped"]
    assert all(name in note.reason for name in ("extra.response (2)", "extra.raw_output (1)", "info.config (1)"))


def test_a_run_that_goes_on_and_one_that_was_changed(tmp_path: Path) -> None:
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


def test_a_run_is_known_by_its_messages_alone(tmp_path: Path) -> None:
    """A file whose beginning holds nothing but messages is found out by what stands beside them."""
    run = mini()
    bare = {"messages": run["messages"]}
    with_format = {"messages": [{"role": "user", "content": "x" * 400_000}], "trajectory_format": "mini-swe-agent-1.1"}
    names = [
        next(iter({put.entry.source.format for put in read_bytes(tmp_path, document(one)).puts if put.entry.source}))
        for one in (bare, {"info": run["info"], **with_format})
    ]
    assert names == ["mini-swe-agent"] * 2
