"""What a model saw as rows: at a recorded call, and before a response that was imported."""

from __future__ import annotations

from palaver import MemoryStore, Session
from palaver.browsing.calls import call_at, call_row, calls
from palaver.browsing.differences import calls_row
from palaver.browsing.entries import originals
from palaver.browsing.seen import instructions, omissions, seen, sent, turns
from palaver.messages import AssistantMessage
from palaver.session import Dialog
from palaver.session.calls import ModelCall


def talk(*, recorded: bool) -> Dialog:
    """Return a dialog of two calls, in the second of which the view was made smaller."""
    dialog = Session.create(MemoryStore(), "talk").root
    dialog.put_text("Be brief.", role="system")
    for budget, text in ((100_000, "word " * 3_000), (1_000, "And now?")):
        dialog.put_text(text)
        request = dialog.request("anthropic", "claude-opus-4-6", policy="palaver", budget=budget)
        if recorded:
            dialog.calls.record(request)
        dialog.append(AssistantMessage(content="Done.", model="claude-opus-4-6", usage={"input_tokens": 7}))
    return dialog


def test_what_a_recorded_call_saw_is_plain_data() -> None:
    """Instructions, turns and omissions of a call are those that were sent; every place in them leads to an original."""
    dialog = talk(recorded=True)
    call = call_at(calls(dialog), 2)
    assert isinstance(call, ModelCall)
    found = sent(call)
    said = [block for exchange in turns(found.view) for turn in exchange for block in turn["blocks"]]
    assert [block["content"] for block in instructions(found.view)] == ["Be brief."]
    assert said[-1]["content"] == "And now?"
    gone = list(omissions(found.view))
    assert gone
    for place in (*(block["handle"] for block in said if block["handle"]), *(row["place"] for row in gone)):
        assert all(one.to_dict()["found"] for one in originals(dialog.store, place))
    assert found.request is not None
    assert found.to_dict()["request"] == found.request.body
    assert [one["why"] for one in calls_row(dialog, *calls(dialog)[:2])["entered"]][-1] == "new since"


def test_calls_are_rows_whether_recorded_or_reconstructed() -> None:
    """Both kinds have a number, a model and what they used; a reconstructed one shows what was said before the response."""
    for recorded in (True, False):
        dialog = talk(recorded=recorded)
        rows = [call_row(call) for call in calls(dialog)[:2]]
        assert [(row["call"], row["recorded"], row["model"]) for row in rows] == [
            (number, recorded, "claude-opus-4-6") for number in (1, 2)
        ]
        assert [row["read"] for row in rows] == [7, 7]
    dialog = talk(recorded=False)
    before = call_at(calls(dialog), 1)
    assert not isinstance(before, ModelCall)
    ((turn,),) = seen(dialog, before=before).to_dict()["view"]
    assert turn["blocks"][0]["content"] == "word " * 3_000


def test_a_response_in_several_messages_is_one_call() -> None:
    """What reports no usage, and is followed at once by what does, is its beginning; a failed one, before which somebody speaks, is not."""
    dialog = Session.create(MemoryStore(), "talk").root
    dialog.put_text("Hello.")
    silent, whole = (
        AssistantMessage(content=text, model="m", usage=used)
        for text, used in (("", None), ("Hi.", {"input_tokens": 7}))
    )
    for message in (silent, silent, whole, whole, silent):
        dialog.append(message)
    dialog.put_text("Again.")
    dialog.append(whole)
    assert [(call.handle.seq, call_row(call)["read"]) for call in calls(dialog)] == [(1, 7), (4, 7), (5, 0), (7, 7)]
