"""Histories that providers did take: recorded conversations of other agents break no rule."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from palaver.wire.check import validate
from palaver.wire.profiles import PROFILES
from tests.recorded import Recording, recordings


def read(path: Path) -> Any:  # noqa: ANN401 — whatever JSON holds
    """Read a compressed JSON file."""
    with path.open("rb") as packed:
        return json.load(io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), encoding="utf-8"))


@pytest.mark.parametrize("recording", recordings("tau_bench"))
def test_conversations_that_were_held_are_taken(recording: Recording) -> None:
    """Chat histories with tool calls, as they went to OpenAI's API turn by turn, validate as histories."""
    for conversation in read(recording.path):
        body = {"model": "gpt-4o", "messages": conversation["traj"]}
        assert validate(body, PROFILES["openai-chat"], as_history=True) == ()
