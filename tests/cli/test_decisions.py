"""palaver approve and palaver deny: a person decides in another process than the agent's."""

from __future__ import annotations

from typing import Any

from palaver import Agent, ScriptedProvider, Session, open_store, tool
from palaver.cli.outcome import Exit
from tests.cli.commands import Palaver


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Pay back."""
    return f"refunded {amount}"


def desk(palaver: Palaver, *script: object) -> Agent:
    """Return an agent of a new process, in the session `lamp`."""
    agent = Agent("desk", "You pay.", "gpt-4o", ScriptedProvider(script), tools=[refund], store=str(palaver.store))
    return agent.open("lamp", session_name="lamp", resume=True)


def asking(palaver: Palaver, *amounts: int) -> None:
    """Have an agent wait for decisions about calls `call_1` and so on."""
    calls: list[dict[str, Any]] = [
        {"name": "refund", "id": f"call_{number}", "arguments": {"amount": amount}}
        for number, amount in enumerate(amounts, 1)
    ]
    assert desk(palaver, {"tool_calls": calls}).respond("It is broken.", return_session=True).state == "waiting"


def said(palaver: Palaver) -> list[str]:
    """Return the results of the calls after the agent has answered in a new process."""
    dialog = desk(palaver, "Done.").respond(return_session=True).dialog
    return [result.text() for message in dialog.messages for result in message.tool_results()]


def test_what_waits_is_listed_and_decided(palaver: Palaver) -> None:
    """Several calls, each by its id or its beginning; approved, with other arguments, refused with a reason."""
    asking(palaver, 5, 50, 500)
    listed = palaver("approve")
    assert [line.split()[:3] for line in listed.out.splitlines()][1:] == [
        [f"call_{number}", "refund", Session.open(open_store(str(palaver.store)), "lamp").session_id[:12]]
        for number in (1, 2, 3)
    ]
    assert [row["arguments"] for row in palaver("deny", "--json").rows()] == [
        {"amount": 5},
        {"amount": 50},
        {"amount": 500},
    ]
    assert palaver("approve", "call_1", "--by", "ann").out == "Approved: refund (call_1).\n"
    assert palaver("approve", "call_2", "--edit", '{"amount": 40}').code == Exit.OK
    row = palaver("deny", "call_3", "-s", "lamp", "--reason", "Too much.", "--json").row()
    assert (row["decision"], row["call"], row["name"]) == ("deny", "call_3", "lamp")
    assert palaver("approve").out == "No call waits for a decision.\n"
    ends = {text.splitlines()[-1].rpartition(": ")[2] for text in said(palaver)}
    assert ends == {"refunded 5", "refunded 40", "Too much."}


def test_always_decides_what_comes_later(palaver: Palaver) -> None:
    """The log has it, so the agent of another process does not ask again."""
    asking(palaver, 5)
    assert "and later calls of refund in this session" in palaver("approve", "call_1", "--always").out
    script = [{"tool_calls": [{"name": "refund", "arguments": {"amount": 6}}]}, "Both."]
    assert desk(palaver, *script).respond().content == "Both."


def test_a_deadline_is_listed(palaver: Palaver) -> None:
    """As a time, for it is to come; after it the call is not listed."""
    call: dict[str, Any] = {"name": "refund", "id": "call_1", "arguments": {"amount": 5}}
    for within, rows in ((1e-6, 0), (3600.0, 1)):
        agent = Agent(
            "desk",
            "You pay.",
            "gpt-4o",
            ScriptedProvider([{"tool_calls": [call]}]),
            tools=[refund],
            store=str(palaver.store),
            decide_within=within,
        )
        assert agent.respond("It is broken.", return_session=True).state == "waiting"
        assert len(palaver("approve", "--json").rows()) == rows
    (row,) = palaver("approve", "--json").rows()
    assert row["until"] == row["since"] + 3600
    assert " UTC  " in palaver("approve").out


def test_a_decision_can_be_changed_until_the_call_begins(palaver: Palaver) -> None:
    """The newest counts, and says that it replaces one; an id is that of its call, though another one that waits begins with it."""
    calls = [{"name": "refund", "id": name, "arguments": {"amount": 5}} for name in ("call_1", "call_10")]
    desk(palaver, {"tool_calls": calls}).respond("It is broken.", return_session=True)
    assert palaver("approve", "call_1").code == Exit.OK
    assert (
        palaver("deny", "call_1", "--reason", "Sorry.").out
        == "Refused: refund (call_1), in place of the earlier decision.\n"
    )
    assert [row["call"] for row in palaver("approve", "--json").rows()] == ["call_10"]
    assert palaver("approve", "call").out == "Approved: refund (call_10).\n"
    assert [palaver("deny", name, "--json").row()["replaces"] for name in ("call_1", "call_10")] == [True, True]
    assert palaver("deny", "call_1", "--reason", "Sorry.").code == palaver("approve", "call_10").code == Exit.OK
    first, second = said(palaver)
    assert (first.endswith("Sorry."), second.endswith("refunded 5")) == (True, True)
    assert palaver("approve", "call_1").code == Exit.MISSING


def test_wrong_decisions_are_refused(palaver: Palaver) -> None:
    """An unknown call, several that fit, arguments that are none, an erased session; nothing is written."""
    asking(palaver, 5, 6)
    assert palaver("approve", "call_9").code == Exit.MISSING
    assert "call_1 in " in palaver("approve", "call").err
    assert palaver("approve", "call_1", "call_9").code == Exit.MISSING
    assert palaver("approve", "call_1", "--edit", "5").code == Exit.USAGE
    assert palaver("approve", "--edit", "{}").code == Exit.USAGE
    assert palaver("approve", "--always").code == Exit.USAGE
    assert palaver("deny", "--reason", "No.").code == Exit.USAGE
    assert len(palaver("approve", "--json").rows()) == 2
    assert palaver("erase", "lamp", "--yes").code == Exit.OK
    assert palaver("approve", "call_1").code == Exit.MISSING
    assert palaver("approve", "-s", "lamp").code == Exit.MISSING
