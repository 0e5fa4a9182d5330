"""R147: invokers by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from palaver import Agent, Prompt
from palaver.agent import Invoker, ProviderInvoker, build_invoker, register_invoker
from palaver.errors import InvalidInput, NotFound
from palaver.messages import AssistantMessage, UserMessage
from palaver.models import ScriptedProvider
from tests.agent.helper import MODEL


def answered(invoker: Invoker) -> str:
    """Answer one message."""
    agent = Agent("a", Prompt(path="a/s", prompt="Go."), MODEL, invoker).open("main")
    agent.receive("go")
    return str(agent.respond().content)


def test_a_script_is_named_or_given(tmp_path: Path) -> None:
    """`scripted` takes a file, as the command line does, or the answers themselves."""
    path = tmp_path / "script.json"
    path.write_text('["from a file"]', encoding="utf-8")
    assert answered(build_invoker({"invoker": "scripted", "file": str(path)})) == "from a file"
    assert answered(build_invoker({"invoker": "scripted", "script": ["given"], "chunk": 2})) == "given"


def test_a_recording_is_played_back() -> None:
    """`replay` gives the recorded answers to the recorded requests."""
    recording = [
        UserMessage.text("go"),
        AssistantMessage(contents=({"type": "text", "content": "as it was"},)),
    ]
    assert (
        answered(build_invoker({"invoker": "replay", "recording": recording, "on_difference": "ignore"})) == "as it was"
    )


@pytest.mark.parametrize(("retry", "attempts"), [(None, None), (2, 3), ({"attempts": 4, "base": 0.1}, 4)])
def test_retries_are_configured_with_the_invoker(retry: object, attempts: int | None) -> None:
    """A number of retries, the figures of a policy, or none."""
    config: dict[str, Any] = {"invoker": "scripted"} | ({} if retry is None else {"retry": retry})
    invoker = build_invoker(config)
    assert isinstance(invoker, ProviderInvoker)
    assert (None if invoker.retry is None else invoker.retry.attempts) == attempts


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("openai", {"api_key": "k"}),
        ("openai-responses", {"api_key": "k"}),
        ("anthropic", {"api_key": "k"}),
        ("google", {"api_key": "k"}),
    ],
)
def test_the_adapters_are_there(name: str, options: Mapping[str, str]) -> None:
    """Each name gives an invoker over its adapter; nothing is asked for that."""
    invoker = build_invoker({"invoker": name, **options})
    assert isinstance(invoker, ProviderInvoker)
    assert invoker.provider.profile_for("m").name.startswith(name.partition("-")[0][:6].replace("google", "gemini"))


def test_what_is_not_known_is_said() -> None:
    """An unknown name is a KeyError with what is close; an option that the adapter does not take is the caller's mistake."""
    with pytest.raises(NotFound, match="anthropic"):
        build_invoker("antropic")
    with pytest.raises(KeyError):
        build_invoker({"invoker": "nobody"})
    with pytest.raises(InvalidInput, match="shoe_size"):
        build_invoker({"invoker": "scripted", "shoe_size": 44})
    with pytest.raises(InvalidInput):
        build_invoker({"file": "x"})


def test_others_can_be_named() -> None:
    """`register_invoker` adds a name for whatever asks a model."""
    made: list[Mapping[str, Any]] = []

    def build(config: Mapping[str, Any]) -> Invoker:
        made.append(config)
        return ProviderInvoker(ScriptedProvider(["mine"]))

    assert register_invoker("mine-for-a-test", build) is build
    assert answered(build_invoker({"invoker": "mine-for-a-test", "key": 1})) == "mine"
    assert made == [{"key": 1}]
