"""Seed 004, the RFC on long conversations: running summaries over several overflows, their six sections, and a log that never changes."""

import asyncio
from collections.abc import Callable
from functools import partial

from palaver import Dialog, Role, Session
from palaver.context.summary import SummaryAnswer, SummaryRequest
from palaver.session.compaction import CompactionPreview

SIX = """\
## User Intent
What the user asked for and any refinements to the original request.
## Progress
What has been accomplished so far, including successful tool calls and their key results.
## Key Decisions & Findings
Important technical decisions, discovered facts, and constraints.
## Errors & Resolutions
Any errors encountered and how they were resolved (or if they remain unresolved).
## Current State
The exact state of the work right now: what files exist, what has been modified, etc.
## Next Steps
What remains to be done to complete the task."""
LIMIT = 3_000


class Recorder:
    """Answers with numbered summaries, and keeps the requests."""

    def __init__(
        self, answer: Callable[[int], SummaryAnswer] = lambda n: SummaryAnswer(text=f"Summary {n}."), window: int = 0
    ) -> None:
        self.answer, self.window = answer, window
        self.requests: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest, /) -> SummaryAnswer:
        """Summarise."""
        self.requests.append(request)
        return self.answer(len(self.requests))


def say(dialog: Dialog, start: int, stop: int) -> None:
    """Append numbered questions and answers."""
    for number in range(start, stop):
        dialog.put_text(f"question <{number}> " + "why? " * 30)
        dialog.put_text(f"answer <{number}> " + "because. " * 30, role=Role.ASSISTANT)


def talk() -> Dialog:
    """Return a dialog that overflows a budget of 3,000 tokens."""
    dialog = Session.create().root
    say(dialog, 0, 40)
    dialog.put_text("Go on.")
    return dialog


def preview(dialog: Dialog, summarizer: Recorder, *, anew: bool = False, focus: str = "") -> CompactionPreview:
    """Preview a compaction with a summary."""
    ask = partial(dialog.compaction.apreview, summarizer, "fold", LIMIT, model="gpt-4o", anew=anew, focus=focus)
    return asyncio.run(ask())


def test_the_running_summary_goes_on() -> None:
    """A37, R267-R270, R273, R299, R315, R332: the result has the running summary; later passes, in other processes too, get it once."""
    dialog, recorder = talk(), Recorder()
    for number in (1, 2, 3):
        made = preview(dialog, recorder)
        made.approve()
        request = recorder.requests[-1]
        assert (made.summary_failed, len(recorder.requests)) == ("", number)
        assert any(f"Summary {number}." in text for text in made.inserted)
        assert request.running == (f"Summary {number - 1}." if number > 1 else "")
        assert request.prompt().count("Summary ") == (1 if number > 1 else 0)
        assert ("question <0>" in request.transcript) is (number == 1)
        dialog = Session.open(dialog.store, dialog.session_id).root
        say(dialog, 40 * number, 40 * number + 40)
        dialog.put_text("Go on.")
    said = [request.transcript for request in recorder.requests]
    assert all(sum(f"question <{number}>" in text for text in said) <= 1 for number in range(120))
    kinds = [header.kind for header in dialog.store.headers(dialog.dialog_id)]
    assert kinds.count("compaction") == 3


def test_a_summary_from_scratch_ignores_the_running_one() -> None:
    """R272: `anew` summarises again what was summarised, without the running summary."""
    dialog, recorder = talk(), Recorder()
    preview(dialog, recorder).approve()
    say(dialog, 40, 80)
    preview(dialog, recorder, anew=True)
    assert recorder.requests[1].running == ""
    assert "question <0>" in recorder.requests[1].transcript


def test_a_summary_asks_for_six_headings() -> None:
    """A40, R285-R287, R333, T15: the request asks for the six sections, each with what belongs there, in bounded length and the user's language."""
    dialog, recorder = talk(), Recorder()
    preview(dialog, recorder)
    asked = recorder.requests[0].instruction
    assert asked.endswith(SIX)
    assert f"at most {recorder.requests[0].words}" in asked
    assert "the language in which the user writes" in asked


def test_a_focus_is_in_the_request_for_a_summary() -> None:
    """R305: what a caller names as important is in what the model is asked."""
    dialog, recorder = talk(), Recorder()
    preview(dialog, recorder, focus="the question of the herons")
    assert "the question of the herons" in recorder.requests[0].prompt()


def test_a_branch_is_not_in_its_parents_summary() -> None:
    """T9: what was said on a fork is never summarised into the dialog that it left."""
    dialog, recorder = talk(), Recorder()
    dialog.fork().put_text("Only on the branch.")
    preview(dialog, recorder)
    assert "Only on the branch." not in recorder.requests[0].transcript


def test_compaction_changes_the_view_and_not_the_log() -> None:
    """C10, R278, R284, R329, R335: `messages` stay as they were; what the model sees is computed, and undone by an entry."""
    dialog = talk()
    before, whole = list(dialog.messages), dialog.view()
    made = dialog.compaction.preview("fold", LIMIT, model="gpt-4o")
    made.approve()
    assert made.worthwhile
    assert list(dialog.messages) == before
    assert len(dialog.view().exchanges) < len(whole.exchanges)
    dialog.compaction.undo()
    assert dialog.view().exchanges == whole.exchanges
