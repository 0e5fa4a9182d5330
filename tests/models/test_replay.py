"""A recorded conversation is played back to the requests it answered, and a request that differs is said loudly and exactly."""

import json
from pathlib import Path

import pytest

from palaver.context import DefaultContextManager
from palaver.errors import InvalidInput, ReplayDiffers, ScriptExhausted
from palaver.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.models import ReplayProvider, read_recording
from palaver.session import Dialog
from palaver.tokens import Budget
from tests.models.asking import answer

CALLS = (ToolCallContent("c1", "bash", args={"command": "ls"}), ToolCallContent("c2", "bash", args={"command": "pwd"}))
RECORDED: tuple[Message, ...] = (
    SystemMessage(content="Be brief."),
    UserMessage(content="What is here?"),
    AssistantMessage(contents=CALLS, stop_reason="tool_calls", usage={"prompt_tokens": 9, "completion_tokens": 2}),
    ToolMessage.from_results([ToolResultContent("c2", "/home"), ToolResultContent("c1", "a.py")]),
    AssistantMessage(content="One file, a.py."),
    UserMessage(content="Thanks."),
    AssistantMessage(content="You are welcome."),
)
PROFILES = ("openai-chat", "openai-responses", "anthropic", "gemini")


def dialog(*messages: Message) -> Dialog:
    """Make a dialog of messages."""
    made = Dialog(owner="tester")
    for message in messages:
        made.append(message)
    return made


@pytest.mark.parametrize("profile", PROFILES)
def test_a_recording_plays_through(profile: str) -> None:
    """Each answer is given to the request it answered, over every API, results in whatever order they came."""
    provider = ReplayProvider(RECORDED, profile=profile)  # type: ignore[arg-type]
    played = dialog()
    for message in RECORDED:
        if isinstance(message, AssistantMessage):
            given = answer(provider, played.request(provider.profile_for("m"), "m", stream=True))
            assert given == message
        played.append(message)
    assert len(provider.requests) == 3


def test_a_request_may_be_asked_again_or_begin_in_the_middle() -> None:
    """The answer follows from what a request shows, not from how many came before: retries and resumed turns find theirs."""
    request = dialog(*RECORDED[:4]).request("openai-chat", "m")
    provider = ReplayProvider(RECORDED)
    assert [answer(provider, request).content for _ in range(2)] == ["One file, a.py."] * 2


@pytest.mark.parametrize(
    ("changed", "role", "at", "expected", "found"),
    [
        ((*RECORDED[:1], UserMessage(content="What is there?")), "user", 8, "here?", "there?"),
        ((SystemMessage(content="Be long."), RECORDED[1]), "system", 3, "brief.", "long."),
        (
            (
                *RECORDED[:3],
                ToolMessage.from_results([ToolResultContent("c1", "b.py"), ToolResultContent("c2", "/home")]),
            ),
            "tool",
            3,
            "a.py",
            "b.py",
        ),
        ((*RECORDED[:5], UserMessage(content="Thanks. And?")), "user", 7, "", " And?"),
    ],
    ids=["user", "system", "result", "longer"],
)
def test_a_difference_is_named(changed: tuple[Message, ...], role: str, at: int, expected: str, found: str) -> None:
    """Whose words, in which block, after how many characters, and both sides from there on."""
    asked = dialog(*changed)
    with pytest.raises(ReplayDiffers) as caught:
        answer(ReplayProvider(RECORDED), asked.request("anthropic", "m"))
    error = caught.value
    assert (error.role, error.at, error.expected, error.found) == (role, at, expected, found)
    assert error.handle is not None
    assert error.handle.startswith(asked.dialog_id[:12])
    assert not error.retryable
    assert str(at) in error.message


def test_a_request_that_shows_too_little_differs() -> None:
    """What was recorded before the answer must have been asked."""
    with pytest.raises(ReplayDiffers, match="at its end") as caught:
        answer(
            ReplayProvider(RECORDED[1:]),
            dialog(UserMessage(content="What is here?"), *RECORDED[2:3]).request("openai-chat", "m"),
        )
    assert caught.value.role == "tool"


def test_what_a_policy_leaves_out_may_be_missing() -> None:
    """A conversation that outgrew its budget plays through: what is shown as it was recorded must still be there, in order."""
    recorded: list[Message] = []
    for number in range(8):
        recorded.append(UserMessage(content=f"question {number} {'word ' * 200}"))
        recorded.append(AssistantMessage(content=f"answer {number} {'reply ' * 200}"))
    provider, played, left_out = ReplayProvider(recorded), dialog(), 0
    policy, budget = DefaultContextManager("gpt-4o"), Budget(max_tokens=1_500)
    for message in recorded:
        if isinstance(message, AssistantMessage):
            request = played.request("openai-chat", "gpt-4o", policy=policy, budget=budget)
            left_out += len(request.view.omissions) if request.view is not None else 0
            assert answer(provider, request) == message
        played.append(message)
    assert left_out


def test_a_request_after_the_last_answer_has_none() -> None:
    """The recording ends; that is loud too."""
    with pytest.raises(ScriptExhausted):
        answer(ReplayProvider(RECORDED[:2]), dialog(*RECORDED[:2]).request("openai-chat", "m"))


def test_what_is_asked_can_be_left_unlooked_at() -> None:
    """Answers in order, for those who changed the conversation on purpose."""
    provider = ReplayProvider(RECORDED, on_difference="ignore")
    request = dialog(UserMessage(content="anything")).request("openai-chat", "m")
    assert [answer(provider, request).text_content() for _ in range(3)] == ["", "One file, a.py.", "You are welcome."]


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_a_recording_is_read_from_a_file(tmp_path: Path, *, lines: bool, own: bool) -> None:
    """A JSON list or one message a line, in palaver's form or that of chat completions."""
    told = RECORDED[1:3] if own else RECORDED[4:7]
    items = [json.dumps(message.to_dict() if own else message.to_api_dict()) for message in told]
    path = tmp_path / "recording.json"
    path.write_text("\n".join(items) if lines else f"[{','.join(items)}]", encoding="utf-8")
    read = read_recording(path)
    assert [message.text_content() for message in read] == [message.text_content() for message in told]
    assert [message.tool_calls() for message in read] == [message.tool_calls() for message in told]


@pytest.mark.parametrize(
    ("content", "says"), [("nonsense", "no JSON"), ("[7]", "no message"), ('[{"role": "nobody"}]', "no message")]
)
def test_a_wrong_recording_is_said_so(tmp_path: Path, content: str, says: str) -> None:
    """Not a traceback of a parser's."""
    path = tmp_path / "recording.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=says):
        read_recording(path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_recording(tmp_path / "none.json")
