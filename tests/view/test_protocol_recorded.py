"""Whose words the user's messages of recorded runs are: runs that put all outputs into them, and runs that put none."""

import json

import pytest
import zstandard

from palaver import Dialog
from palaver.messages import Speaker
from tests.recorded import Recording, recordings

TASK = "We're currently solving the following"


@pytest.mark.parametrize("recording", recordings("swe_agent"))
def test_of_a_recorded_run_of_swe_agent_the_tasks_are_the_users_and_the_outputs_a_tools(recording: Recording) -> None:
    """The task, and the demonstration's before it, are the user's; whatever else stands in his messages came from the machine."""
    with recording.path.open("rb") as file:
        history = json.loads(zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(file).read())["history"]
    dialog, said = Dialog(owner="agent"), list[str]()
    for message in history:
        text, role = message["content"] or "", message["role"]
        if role in {"user", "assistant"} and text.strip():
            dialog.put_text(text, role=role)
            said.append(text)
    speakers = [exchange.turns[0].blocks[0].speaker for exchange in dialog.view().exchanges]
    by = [(speaker, text) for speaker, text in zip(speakers, said, strict=True) if speaker is not Speaker.MODEL]
    assert by
    assert {text.startswith(TASK) for speaker, text in by if speaker is Speaker.HUMAN} == {True}
    assert {text.startswith(TASK) for speaker, text in by if speaker is Speaker.TOOL} <= {False}
