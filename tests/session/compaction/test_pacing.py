"""Compacting by a preset: where it acts and down to what is its own, unless somebody says otherwise (R20)."""

from dataclasses import replace

import pytest

from palaver import Dialog
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.presets import PRESETS
from palaver.context.triggers import Overflow, Tokens, fired, grown
from palaver.messages import AssistantMessage, ToolCallContent, ToolMessage, ToolResultContent
from palaver.tokens import model_info

MODEL = "claude-sonnet-4-5"
OTHERS = sorted(each.name for each in PRESETS if each.name != "palaver")


def worked(turns: int) -> Dialog:
    """Give a dialog with answers, and calls with their results."""
    dialog = Dialog(owner="a")
    dialog.put_text("Make it fast. You must never push to main.")
    for turn in range(turns):
        call = ToolCallContent(id=f"c{turn}", name="bash", args={"command": f"pytest tests/test_{turn}.py"})
        result = ToolResultContent(id=call.id, name="bash", content=f"{turn} passed\n" + "word " * 600)
        dialog.append([AssistantMessage(contents=(call,), response_id=f"r{turn}"), ToolMessage.from_result(result)])
        dialog.put_text(f"answer {turn} " + "word " * 60, role="assistant")
        dialog.put_text(f"go {turn}")
    return dialog


@pytest.mark.parametrize("name", OTHERS)
def test_beyond_its_limit_a_preset_compacts_to_what_its_requests_would_have(name: str) -> None:
    """By hand it is the view that the preset shows by itself: the share that it leaves is that of its own window, not of half of what there is."""
    dialog = worked(40)
    policy = {"type": name, "max_tokens": 30_000}
    composed = dialog.compose(policy, model=MODEL)
    assert composed.tokens_after < composed.tokens_before * 0.9
    assert dialog.due(policy, model=MODEL)
    made = dialog.compact(policy=policy, model=MODEL)
    assert made.composed.view == composed.view
    made.approve()
    assert dialog.due(policy, model=MODEL) == ""


@pytest.mark.parametrize("name", OTHERS)
def test_below_its_limit_a_preset_compacts_as_if_that_were_reached(name: str) -> None:
    """Somebody asks for it: what it leaves is its own share of what there is."""
    dialog = worked(12)
    if name not in {"aider", "swe-agent"}:  # these act far below the window
        assert dialog.due(name, model=MODEL) == ""
    made = dialog.compact(policy=name, model=MODEL)
    assert made.worthwhile
    made.approve()


def test_letta_leaves_seven_tenths_and_ours_goes_by_half() -> None:
    """Evicting three tenths leaves seven, by hand too; `palaver` and plain policies have no limit of their own."""
    dialog = worked(20)
    made = dialog.compact(policy="letta", model=MODEL)
    assert 0.4 < made.tokens_after / made.tokens_before <= 0.72
    assert dialog.due("palaver", model=MODEL) is None
    assert dialog.due("fold", model=MODEL) is None
    assert dialog.due({"type": "scheduled", "policy": "letta"}, model=MODEL) == ""
    assert dialog.compact(policy="palaver", model=MODEL).tokens_after <= made.tokens_before / 2


def sections(dialog: Dialog, policy: str) -> tuple[str, ...]:
    """Give the sections that a summariser is asked for."""
    asked: list[tuple[str, ...]] = []

    async def listening(request: SummaryRequest) -> SummaryAnswer:
        asked.append(request.headings)
        return SummaryAnswer(text="")

    dialog.compact(policy={"type": policy, "max_tokens": 30_000}, model=MODEL, summarizer=listening)
    return asked[0]


def test_a_turn_of_which_only_the_end_stays_has_a_section_of_its_own() -> None:
    """The split turn of pi: one ask and a long way of calls; not where the cut falls before an ask, and not for other systems."""
    dialog = Dialog(owner="a")
    dialog.put_text("Make it fast. You must never push to main.")
    for turn in range(80):
        call = ToolCallContent(id=f"c{turn}", name="bash", args={"command": f"pytest tests/test_{turn}.py"})
        result = ToolResultContent(id=call.id, name="bash", content=f"{turn} passed\n" + "word " * 600)
        dialog.append([AssistantMessage(contents=(call,), response_id=f"r{turn}"), ToolMessage.from_result(result)])
    assert sections(dialog, "pi")[-1] == "Turn Context (split turn)"
    assert "Turn Context (split turn)" not in sections(dialog, "opencode")
    asked = Dialog(owner="a")
    for turn in range(80):
        asked.put_text(f"go {turn} " + "word " * 600)
    assert sections(asked, "pi")[-1] == "Critical Context"


def test_a_window_that_nobody_knows_is_no_reason_to_compact() -> None:
    """What is assumed of an unknown model elsewhere fires no share, and takes back no undo; a limit in tokens and the provider's word do."""
    dialog = worked(60)
    known, unknown = dialog.figures(model=MODEL), dialog.figures(model="my-own-model")
    assert known.window == 200_000
    assert unknown.window == 0
    assert unknown.tokens > model_info("my-own-model").context_window
    assert fired([Tokens(), Overflow()], unknown) is None
    assert fired([Tokens(limit=30_000)], unknown)
    assert fired([Tokens(), Overflow()], replace(unknown, overflow=True))
    assert not grown(replace(unknown, compacted=unknown.tokens, undone=True))
