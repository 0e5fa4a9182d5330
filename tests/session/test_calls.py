"""Law 6: what a model saw at any past call is given back to the byte, whatever became of the dialog since."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import InfeasibleBudget, InvalidInput, NotReproducible
from palaver.log import Invocation
from palaver.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
)
from palaver.prompts import Format
from palaver.providers import APIS
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.wire import Request

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
    "gemini-interactions": "gemini-3.6-flash",
}
POLICIES = (None, "palaver", "claude-code", "opencode")


def work(dialog: Dialog, number: int, size: int = 3_000) -> None:
    """Let the model think, call a tool and get a long answer."""
    thought = ThinkingContent(content=f"step {number}", signature=f"sig-{number}")
    call = ToolCallContent(id=f"call_{number}", name="read_file", args={"path": f"src/{number}.py"})
    dialog.append(AssistantMessage(contents=(thought, TextContent(f"I read {number}."), call), model="claude-opus-4-6"))
    text = f"line {number} of the file\n" * (size // 20)
    dialog.append(ToolMessage.from_result(ToolResultContent(id=call.id, name=call.name, content=text)))


def ask(dialog: Dialog, name: str, policy: str | None, budget: int) -> tuple[Request, int] | None:
    """Record a call as an agent would, and give what was sent and the number of its entry; None where the budget cannot hold it."""
    try:
        request = dialog.request(
            name, MODELS[name], policy=policy, budget=None if policy is None else budget, max_tokens=500
        )
    except InfeasibleBudget:
        return None
    return request, dialog.calls.record(request).seq


def assert_given_back(store: Store, dialog: Dialog, sent: list[tuple[Request, int]]) -> None:
    """Assert that another process finds every call, with the same view and the same bytes."""
    again = Session.open(store, dialog.session_id).dialog(dialog.dialog_id)
    calls = again.calls

    assert [call.handle.seq for call in calls] == [seq for _, seq in sent]
    for call, (request, _) in zip(calls, sent, strict=True):
        assert call.request().data == request.data
        assert request.view is not None
        assert call.view() == request.view
        assert call.sent["digest"] == request.digest


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["work", "ask", "commit", "undo"]),
            st.sampled_from(sorted(APIS)),
            st.sampled_from(POLICIES),
            st.sampled_from([900, 2_500, 9_000]),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_law_6_every_past_call_is_given_back_to_the_byte(
    every_store: Store, steps: list[tuple[str, str, str | None, int]]
) -> None:
    """Any profile, policy and budget, commits and undoing between the calls: later processes compile the very same requests."""
    dialog = Dialog(owner="coder", store=every_store)
    dialog.put_text("Be brief.", role="system")
    dialog.put_text("Find the fault. You must never push.")
    sent: list[tuple[Request, int]] = []
    for number, (what, name, policy, budget) in enumerate(steps):
        if what == "work":
            work(dialog, number)
        elif what == "ask":
            dialog.put_text(f"And {number}?")
        elif what == "commit":
            committed(dialog, budget)
        elif dialog.view().policies:
            undone(dialog)
        found = ask(dialog, name, policy, budget)
        sent += [] if found is None else [found]

    assert_given_back(every_store, dialog, sent)


def committed(dialog: Dialog, budget: int) -> None:
    """Make the view smaller for good, where it can be."""
    try:
        dialog.compaction.commit(dialog.compaction.compose("palaver", budget))
    except (InfeasibleBudget, InvalidInput):
        return


def undone(dialog: Dialog) -> None:
    """Take the newest commit back, where there is one."""
    try:
        dialog.compaction.undo()
    except InvalidInput:
        return


def test_a_call_costs_what_changed_since_the_one_before(store: Store) -> None:
    """The record of a call late in a long dialog is hardly larger than that of an early one; few begin anew."""
    dialog = Dialog(owner="coder", store=store)
    dialog.put_text("go")
    sizes = []
    for number in range(70):
        work(dialog, number, 400)
        request = dialog.request("anthropic", MODELS["anthropic"], policy="palaver", budget=6_000)
        seq = dialog.calls.record(request).seq
        sizes.append(dialog.store.header(dialog.dialog_id, seq).size)
    differences = [size for index, size in enumerate(sizes) if index % 33]
    assert sorted(differences)[len(differences) // 2] < 2_500
    anew = [size for size in differences if size > 3 * max(sizes[1:4])]
    assert len(anew) < len(sizes) // 5
    assert anew[-1] < 1.2 * anew[0]


def test_a_fork_knows_the_calls_before_it(store: Store) -> None:
    """The calls that a fork inherited are its own, and the parent's later ones are not."""
    dialog = Dialog(owner="coder", store=store)
    dialog.put_text("go")
    first = dialog.request("openai-chat", "gpt-4o")
    dialog.calls.record(first)
    child = dialog.fork()
    dialog.calls.record(dialog.request("openai-chat", "gpt-4o"))
    child.put_text("and now")
    own = child.request("openai-chat", "gpt-4o")
    child.calls.record(own)

    assert [call.request().data for call in child.calls] == [first.data, own.data]


def test_a_call_that_another_program_recorded_says_so(store: Store) -> None:
    """Without a manifest of ours, or by another compiler, the error says whose doing it is, and gives what there is."""
    dialog = Dialog(owner="coder", store=store)
    dialog.put_text("go")
    dialog.record(Invocation(model="gpt-4o", manifest={"temperature": 0}), beside=True)
    dialog.calls.record(dialog.request("openai-chat", "gpt-4o"))
    foreign, own = dialog.calls
    assert (foreign.model, foreign.reproducible, foreign.number) == ("gpt-4o", False, 1)
    with pytest.raises(NotReproducible, match="Another program"):
        foreign.view()
    older = {**own.entry.manifest, "request": {**own.sent, "compiler": 0, "digest": "0" * 64}}
    dialog.record(Invocation(model="gpt-4o", manifest=older), beside=True)
    with pytest.raises(NotReproducible, match="Version 0 of the compiler") as caught:
        dialog.calls[2].request()
    assert isinstance(caught.value.request, Request)
    assert dialog.calls[2].view() == own.view()


def test_a_request_of_another_dialog_is_refused(store: Store) -> None:
    """A call is recorded where it is made: nothing is written otherwise."""
    dialog, other = Dialog(owner="a", store=store), Dialog(owner="b", store=store)
    other.put_text("go")
    with pytest.raises(InvalidInput, match="not compiled from a view"):
        dialog.calls.record(other.request("openai-chat", "gpt-4o"))
    assert len(dialog.calls) == 0


def test_a_format_is_given_back_whatever_its_order() -> None:
    """A schema's members lose their order in the store; the request that asks for the format is the same to the byte."""
    schema = {
        "type": "object",
        "properties": {"ward": {"type": "string"}, "bed": {"type": "integer"}, "also": {"type": "string"}},
        "required": ["ward", "bed"],
    }
    for name, model in MODELS.items():
        dialog = Dialog("nurse")
        dialog.put_text("Where is the ward?")
        sent = dialog.request(name, model, format=Format(schema, "place"), max_tokens=500)
        dialog.calls.record(sent)
        assert dialog.calls[0].request().digest == sent.digest, name


def test_text_for_a_missing_result_is_true_and_stays() -> None:
    """An open call's text does not say that the conversation went on, and once it went on, what was sent is sent again."""
    dialog = Session.create().root
    dialog.append({"role": "user", "content": "Pay."})
    pay = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    dialog.append({"role": "assistant", "content": None, "tool_calls": [pay]})
    waiting = dialog.request("openai", "gpt-5")["messages"]
    assert waiting[-1]["role"] == "tool"
    assert "went on" not in waiting[-1]["content"]
    assert "waiting" in waiting[-1]["content"]
    dialog.append({"role": "user", "content": "Something else."})
    assert dialog.request("openai", "gpt-5")["messages"][:-1] == waiting
