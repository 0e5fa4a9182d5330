"""palaver calls and view --call: model calls as they were, to the byte, and what two of them saw differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver import Session
from palaver.cli.outcome import Exit
from palaver.log import ErrorEntry, Invocation, Toolset, ToolSpec
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.wire import Request
from tests.cli.commands import Palaver, run


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, list[Request]]:
    """Return a store with a session of three calls, and the requests that were sent: the third one sees an output offloaded."""
    path = tmp_path / "s.db"
    sent = []
    with Session.create(path, "calls") as session:
        dialog = session.root
        dialog.put_text("Be brief.", role="system")
        dialog.record(Toolset(tools=(ToolSpec(name="read"),)))
        dialog.put_text("What is in there?")
        sent.append(dialog.request("anthropic", "claude-opus-4-6"))
        dialog.calls.record(sent[-1])
        dialog.append(AssistantMessage(contents=(ToolCallContent(id="c1", name="read", args={"path": "a"}),)))
        long = ToolResultContent(id="c1", name="read", content="a line of the file\n" * 900)
        dialog.append(ToolMessage.from_result(long))
        sent.append(dialog.request("anthropic", "claude-opus-4-6"))
        dialog.calls.record(sent[-1])
        dialog.append(AssistantMessage(content="Lines."))
        dialog.put_text("And now?")
        dialog.record(Toolset(tools=(ToolSpec(name="read"), ToolSpec(name="write"))))
        sent.append(dialog.request("anthropic", "claude-opus-4-6", policy="offload", budget=1_500))
        dialog.calls.record(sent[-1])
    return path, sent


def test_law_6_a_call_is_printed_to_the_byte(recorded: tuple[Path, list[Request]]) -> None:
    """What comes out is what was sent, whatever was said and offloaded since."""
    path, sent = recorded
    for number, request in enumerate(sent, 1):
        assert run("view", "calls", "--store", path, "--call", number).out.encode() == request.data + b"\n"


def test_what_two_calls_saw_differently(recorded: tuple[Path, list[Request]]) -> None:
    """From the first call to the second the prefix holds; in the third an output is offloaded and a tool declared: it breaks."""
    path, _ = recorded
    on = run("calls", "calls", 1, 2, "--store", path, "--json").row()
    assert [one["why"] for one in on["entered"]] == ["new since", "new since"]
    assert (on["left"], on["changed"], on["prefix"]["broken"]) == ([], [], None)
    off = run("calls", "calls", 2, 3, "--store", path, "--json").row()
    assert [one["why"] for one in off["changed"]] in (["offloaded"], ["shortened"])
    assert off["tools"] == ["+write"]
    assert off["prefix"]["broken"] is not None
    text = run("calls", "calls", 2, 3, "--store", path).out
    assert ("+ tool write" in text, "then breaks" in text) == (True, True)


def test_compared_backwards_later_entries_are_said_after(recorded: tuple[Path, list[Request]]) -> None:
    """What only the first of two calls saw, because it was said since, is called so."""
    path, _ = recorded
    back = run("calls", "calls", 2, 1, "--store", path, "--json").row()
    assert [one["why"] for one in back["left"]] == ["said after the second call"] * 2


def test_call_that_failed_is_marked(recorded: tuple[Path, list[Request]]) -> None:
    """A call after which only an error is recorded is listed as failed; one that was answered after an error is not."""
    path, _ = recorded
    with Session.open(path, "calls") as session:
        dialog = session.root
        dialog.record(ErrorEntry(error="ProviderError", data={"message": "overloaded"}))
        dialog.calls.record(dialog.request("anthropic", "claude-opus-4-6"))
        dialog.record(ErrorEntry(error="ProviderError"))
        dialog.append(AssistantMessage(content="Yes."))
    rows = run("calls", "calls", "--store", path, "--json").rows()
    assert [row["failed"] for row in rows] == ["", "", "ProviderError", ""]
    listed = run("calls", "calls", "--store", path).out.splitlines()
    assert ["failed" in line for line in listed if "claude-opus" in line] == [False, False, True, False]


def test_what_cannot_be_given_back_says_why(recorded: tuple[Path, list[Request]]) -> None:
    """A number that is none, a call of another program, and options that would change the past end with a word and a code."""
    path, _ = recorded
    assert run("view", "calls", "--store", path, "--call", 1, "--budget", 100).code == Exit.USAGE
    with Session.open(path, "calls") as session:
        session.root.record(Invocation(model="gpt-4o", manifest={"temperature": 1}))
    for number, said in ((9, "4 calls"), (4, "Another program")):
        ran = run("view", "calls", "--store", path, "--call", number)
        assert (ran.code, said in ran.err) == (Exit.MISSING, True), number
    rows = run("calls", "calls", "--store", path, "--json").rows()
    assert [(row["call"], row["reproducible"]) for row in rows] == [(1, True), (2, True), (3, True), (4, False)]


def test_calls_of_an_import_are_reconstructed(stocked: Palaver) -> None:
    """Each response is a call with what it used and cost; its view is what was said before it, also where two are compared."""
    rows = stocked("calls", "talk", "--json").rows()
    assert [row["call"] for row in rows] == [1, 2, 3, 4]
    assert "4 calls, reconstructed from the responses." in stocked("calls", "talk").out
    first, last = (stocked("view", "talk", "--call", number) for number in (1, 4))
    assert "Please look at" in first.out
    assert "I look." not in first.out
    assert "Another question instead." in last.out
    assert "Another answer." not in last.out
    assert "Reconstructed" in first.err
    assert "`palaver view talk --call 1` shows one" in stocked("calls", "talk", 1).err
    compared = stocked("calls", "talk", 1, 2)
    assert compared.out.startswith("Reconstructed from what was said before each response:\n+ ")
    assert "I look.  (new since)" in compared.out
