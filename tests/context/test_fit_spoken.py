"""fit() over what a model said aloud: chat completions take it back by the id of the recording."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.context import POLICIES, Fit, fit
from palaver.wire import profile, validate

MODEL = "gpt-4o-audio-preview"
ASK, MORE = {"role": "user", "content": "hi"}, {"role": "user", "content": "What did you just say?"}


def spoken(**more: object) -> dict[str, Any]:
    """An answer that the model spoke."""
    return {"role": "assistant", "content": None, "audio": {"id": "audio_1", **more}}


def faults(fitted: Fit) -> list[str]:
    """Give what the provider would refuse."""
    body = {"model": MODEL, "messages": fitted.messages}
    return [str(fault) for fault in validate(body, profile("openai-chat", MODEL))]


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("said", [spoken(), {"role": "assistant", "audio": {"id": "audio_1"}}])
def test_a_spoken_answer_is_no_empty_message(policy: str, said: dict[str, Any]) -> None:
    """With room it comes back as the caller's own, and nothing is said of it."""
    items = [ASK, said, MORE]
    fitted = fit(items, model=MODEL, policy=policy, budget=20_000)
    assert all(one is own for one, own in zip(fitted.messages, items, strict=True))
    assert (fitted.report.changes, fitted.omitted, faults(fitted)) == ((), (), [])


def test_an_answer_with_its_sound_goes_back_by_its_id() -> None:
    """What a response says beside the id is refused in a request: it is left out, told, and its words count as much as the words."""
    words = "A heron is a bird. " * 20
    said = spoken(data="UklGRg==", transcript=words, expires_at=1)
    fitted = fit([ASK, said, MORE], model=MODEL)
    assert fitted.messages == [ASK, spoken(), MORE]
    assert [change.what for change in fitted.report.changes] == ["message"]
    assert faults(fitted) == []
    written = {"role": "assistant", "content": words}
    assert fitted.tokens_before == fit([ASK, written, MORE], model=MODEL).tokens
    assert fitted.recall("78ee4552cca0:1:0") == words


def test_calls_and_words_stay_beside_what_was_spoken() -> None:
    """A message that is written anew keeps its words, its calls and the id of the recording."""
    call = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    said = spoken(expires_at=1) | {"content": "One moment.", "tool_calls": [call]}
    fitted = fit([ASK, said, answer], model=MODEL)
    assert fitted.messages == [ASK, said | {"audio": {"id": "audio_1"}}, answer]
    assert faults(fitted) == []


@pytest.mark.parametrize("audio", [{}, {"id": ""}, {"id": 5}, {"transcript": "words"}, None, "audio_1"])
def test_sound_that_nothing_finds_is_an_empty_message(audio: object) -> None:
    """Without an id there is nothing to send back; the report says that the message said nothing."""
    fitted = fit([ASK, {"role": "assistant", "content": None, "audio": audio}, MORE], model=MODEL)
    assert fitted.messages == [ASK, MORE]
    assert [change.what for change in fitted.report.changes] == ["message"]


def test_a_spoken_answer_that_leaves_is_an_omission() -> None:
    """One that does not fit is left out with a handle that brings it back, for the budget's sake and for no other reason."""
    items = [ASK, spoken(), MORE]
    fitted = fit(items, model=MODEL, policy="default", budget=15)
    assert fitted.messages == [MORE]
    assert any(fitted.recall(handle) is items[1] for gone in fitted.omitted for handle in gone.handles())
    assert fitted.report.changes == ()
