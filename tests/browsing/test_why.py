"""Why: the runs of calls in whose view an entry was are those of the recorded views, and what left says by what."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import MemoryStore, Session
from palaver.browsing.calls import calls
from palaver.browsing.why import in_view, why
from palaver.errors import InfeasibleBudget, NotFound
from palaver.log import Handle
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import Dialog
from palaver.view import held

MODEL = "claude-opus-4-6"


def asked(dialog: Dialog, number: int, size: int = 400) -> None:
    """Append a question, and a recorded call that reads a file and answers."""
    dialog.put_text(f"Question {number}?")
    dialog.calls.record(dialog.request("anthropic", MODEL))
    call = ToolCallContent(id=f"c{number}", name="read", args={"path": f"{number}.py"})
    dialog.append(AssistantMessage(contents=(call,), model=MODEL))
    dialog.append(
        ToolMessage.from_result(ToolResultContent(id=call.id, name="read", content=f"line {number}\n" * size))
    )
    dialog.calls.record(dialog.request("anthropic", MODEL))
    dialog.append(AssistantMessage(content=f"Answer {number}.", model=MODEL))


def committed(dialog: Dialog, policy: str, budget: int) -> None:
    """Make the view smaller for good, where it can be."""
    try:
        made = dialog.compaction.compose(policy, budget, model=MODEL)
    except InfeasibleBudget:
        return
    if made.after.total < made.before.total:
        dialog.compaction.commit(made)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.sampled_from(["ask", "fork", "palaver", "fold", "offload"]), min_size=1, max_size=7))
def test_calls_with_an_entry_are_those_whose_view_finds_it(steps: list[str]) -> None:
    """For every entry and every recorded call: the call is in the runs exactly if its view, as it was recorded, shows the entry."""
    dialog = Session.create(MemoryStore(), "why").root
    asked(dialog, 0)
    for number, step in enumerate(steps, start=1):
        if step == "ask":
            asked(dialog, number)
        elif step == "fork":
            dialog = dialog.fork()
        else:
            committed(dialog, step, 1_500)
    known = calls(dialog)
    views = [call.view() for call in dialog.calls]
    for span in held(dialog.store, dialog.dialog_id, None):
        for seq in range(span.start, span.stop):
            runs = in_view(why(dialog, Handle(span.dialog, seq), known))
            seen = {number for first, last in runs for number in range(first, last + 1)}
            assert seen == {
                n for n, view in enumerate(views, start=1) if view.find(Handle(span.dialog, seq)) is not None
            }


def test_what_left_says_when_and_what_still_says_it() -> None:
    """A question that a record repeats, a result whose handle it has, an answer of which it has nothing; the responses after; where a handle is named."""
    dialog = Session.create(MemoryStore(), "why").root
    for number in range(6):
        asked(dialog, number, 900)
    committed(dialog, "fold", 6_000)
    asked(dialog, 7)
    question, result = Handle(dialog.dialog_id, 0), Handle(dialog.dialog_id, 3)
    dialog.append(AssistantMessage(contents=(ToolCallContent(id="r", name="recall", args={"handle": str(result)}),)))
    row = why(dialog, question, calls(dialog))
    assert [(step["shown"], step["calls"]) for step in row["steps"]] == [("whole", (1, 12)), ("no", (13, 14))]
    assert (row["steps"][1]["kind"], row["left"]) == ("compaction", row["steps"][1]["since"])
    assert row["steps"][1]["still"] == [{"what": "record", "how": "word for word"}]
    assert [action["calls"] for action in row["after"]] == [["read"], [], ["recall"]]
    row = why(dialog, result, calls(dialog))
    assert [still["how"] for still in row["steps"][1]["still"]] == ["by handle"]
    assert row["named"] == [str(Handle(dialog.dialog_id, dialog.store.last(dialog.dialog_id).seq))]
    row = why(dialog, Handle(dialog.dialog_id, 5), calls(dialog))
    assert [still["how"] for still in row["steps"][1]["still"]] == ["made from it"]
    with pytest.raises(NotFound):
        why(dialog, Handle(dialog.fork().dialog_id, 0), calls(dialog))
