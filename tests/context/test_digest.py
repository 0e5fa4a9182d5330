"""Digests: one output that is too large to be shown, summarised with the problem in view (R18, R323), in pieces where it must be."""

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from palaver import Dialog
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import DigestRequest
from palaver.messages import AssistantMessage, Message, ToolCallContent, ToolMessage, ToolResultContent
from palaver.session import CompactionPreview
from palaver.tokens import counter

COUNT = counter("gpt-4o")


def printed(call: str, text: str) -> list[Message]:
    """Run a command that prints this."""
    run = ToolCallContent(id=call, name="bash", args={"command": f"cat {call}"})
    result = ToolResultContent(id=call, name="bash", content=text)
    return [AssistantMessage(contents=(run,), response_id=f"r{call}"), ToolMessage.from_result(result)]


def dialog_with(*outputs: str) -> Dialog:
    """Give a dialog about a problem, with these outputs."""
    dialog = Dialog(owner="a")
    dialog.put_text("Fix the crash of the heron importer. Never edit the tests.")
    for number, text in enumerate(outputs):
        dialog.append(printed(f"c{number}", text))
    dialog.put_text("Go on.")
    return dialog


LOG = "\n".join(f"{number} heron_{number} ok" for number in range(9_000)) + "\nheron_77777 failed at importer.py:42\n"
"""An output of more than 100,000 characters, with the one line that matters at its end."""


class Reader:
    """A summariser that says what it is told to, and keeps what it was asked."""

    def __init__(self, say: Callable[[SummaryRequest], str]) -> None:
        """Take what to say."""
        self.say = say
        self.asked: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Answer."""
        self.asked.append(request)
        return SummaryAnswer(text=self.say(request), model="cheap")


def finding(request: SummaryRequest) -> str:
    """Say whether the line that matters is there."""
    found = "heron_77777 failed at importer.py:42" in request.transcript
    return "heron_77777 failed at importer.py:42" if found else "Nothing of it here."


def compacted(dialog: Dialog, reader: Reader, **words: object) -> CompactionPreview:
    """Compact by the policy that has digests."""
    look = partial(dialog.acompact, policy="swe-agent", summarizer=reader, model="gpt-4o", **words)  # type: ignore[arg-type]
    return anyio.run(look)


@pytest.mark.parametrize("input_tokens", [None, 12_000])
def test_r18_an_oversized_output_is_summarised_with_the_problem_in_view(input_tokens: int | None) -> None:
    """Read at once, or in pieces whose answers are read again: each request has the problem and fits; what matters is in the view, with its handle."""
    dialog, reader = dialog_with("small", LOG, "small too"), Reader(finding)
    preview = compacted(dialog, reader, input_tokens=input_tokens)
    assert all(isinstance(request, DigestRequest) for request in reader.asked)
    assert all(
        "heron importer" in request.prompt() and "Never edit the tests." in request.prompt() for request in reader.asked
    )
    if input_tokens is None:
        assert len(reader.asked) == 1
    else:
        assert len(reader.asked) > 3
        assert all(COUNT.text(request.prompt()) <= input_tokens for request in reader.asked)
        assert "Nothing of it here." in reader.asked[-1].transcript  # what was said of the pieces is read once more
    shown = str(preview.composed.view)
    assert "heron_77777 failed at importer.py:42" in shown
    assert "8999 heron_8999 ok" not in shown
    preview.approve()
    (result,) = [r for m in dialog.messages for r in m.tool_results() if r.text() == LOG]
    assert "heron_77777" in str(dialog.view())
    assert dialog.compose("swe-agent", model="gpt-4o").view == dialog.view()  # it is asked for once
    assert preview.attempt["summary"]["requests"] == len(reader.asked)
    assert result.text() == LOG
    dialog.undo()
    assert LOG in [r.text() for m in dialog.messages for r in m.tool_results()]


@pytest.mark.parametrize(
    "said",
    ["", "word " * 9_000, "See /made/up/one.py, /made/up/two.py, /made/up/three.py and /made/up/four.py."],
)
def test_r18_what_is_no_digest_leaves_the_preview(said: str) -> None:
    """Empty, too long, made up, or a summariser that is down: the beginning of the output stands there as before, and the turn goes on."""
    dialog = dialog_with(LOG, "small")
    bare = dialog.compact(policy="swe-agent", model="gpt-4o").composed.view
    assert compacted(dialog, Reader(lambda _: said)).composed.view == bare

    def down(request: SummaryRequest) -> str:
        raise ConnectionError(len(request.transcript))

    assert compacted(dialog, Reader(down)).composed.view == bare


def test_r18_many_pieces_are_bounded_and_others_have_no_digest() -> None:
    """A summariser that reads too little is not asked a hundred times; policies that do not digest ask nothing about one output."""
    dialog, reader = dialog_with(LOG * 4, "small"), Reader(finding)
    compacted(dialog, reader, input_tokens=3_000)
    assert len(reader.asked) <= 16
    reader = Reader(finding)
    anyio.run(partial(dialog.acompact, policy="claude-code", summarizer=reader, model="gpt-4o"))
    assert not any(isinstance(request, DigestRequest) for request in reader.asked)
