"""D15, D16 and D22: content that bricks other systems, ids that return, and figures that mean something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from palaver import (
    Agent,
    AgentFailure,
    AssistantMessage,
    Budget,
    Dialog,
    ImageContent,
    Media,
    Prompt,
    ProviderInvoker,
    Request,
    ScriptedProvider,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    Usage,
    UserMessage,
    tool,
)
from palaver.context import Meter
from palaver.ids import BlobId
from palaver.messages import restore
from palaver.providers import profile
from palaver.tokens import counter
from tests.demand.ground import MODELS, Place, answers, asks, reopened, says, shown, valid
from tests.wire.ids import wire_ids
from tests.wire.pictures import png

MIB = 1_048_576


# --- D15 ----------------------------------------------------------------------------------------------------------------------


def test_content_that_is_no_text_stays_valid(place: Place) -> None:
    """D15: half a surrogate pair in arguments, as an object and as JSON; NUL and every byte in a result; empty words: valid, and recalled."""
    binary = "".join(map(chr, range(256))) + "\0\udcff"
    dialog = Dialog(owner="user", store=place.open())
    dialog.append(asks("go"))
    spelled: tuple[dict[str, Any] | str, ...] = ({"command": "echo 현\ud99c"}, '{"command": "echo 현\\ud99c"}')
    for number, args in enumerate(spelled):
        call = ToolCallContent(id=f"c{number}", name="shell", args=args)
        dialog.append([AssistantMessage(contents=(TextContent(content=""), call)), answers(f"c{number}", binary)])
    dialog.append([says("", "c2"), answers("c2", "")])
    for _ in range(3):
        for request in valid(reopened(place, dialog)).values():
            assert "현" in request.data.decode()
            assert b"\\ud99c" not in request.data.lower()
        dialog.append([says("ok"), asks("next")])
    found = reopened(place, dialog)
    (call,) = found.messages[1].tool_calls()
    assert original(found.messages[1], "command", call.args["command"]) == "echo 현\ud99c"
    result = found.recall(f"{dialog.messages.handle(2)}:0")
    assert isinstance(result, ToolResultContent)
    assert original(found.messages[2], "content", result.text()) == binary


def original(message: Any, place: str, text: str) -> str:  # noqa: ANN401 - any message
    """Return a string as it was before it was cleaned."""
    return restore(text, [change for change in message.normalized if change.place.endswith(place)])


def test_errors_do_not_feed_themselves(place: Place) -> None:
    """D15: an error and an empty answer, three times: no message is made of errors, requests do not grow, and the fourth answer stands."""
    provider = ScriptedProvider([{"error": "down"}] * 3 + ["At last."])
    prompt = Prompt(path="demand/e", prompt="Go.")
    agent = Agent("agent", prompt, MODELS["openai-chat"], ProviderInvoker(provider), store=place.open())
    agent.open("main").receive("go")
    for _ in range(3):
        with pytest.raises(AgentFailure):
            agent.respond()
        valid(agent.current_dialog.reload(), then=None)
    assert agent.respond().content == "At last."
    assert len({request.data for request in provider.requests}) == 1
    dialog = reopened(place, agent.current_dialog)
    for _ in range(3):
        dialog.append(AssistantMessage(contents=()))
        valid(dialog)
    assert shown(dialog) == ["go", "At last."]


def picture(number: int, size: int) -> ImageContent:
    """Make a picture of so many bytes, unlike every other."""
    return ImageContent(images=(Media(data=png() + number.to_bytes(1, "big") * size),))


@pytest.mark.parametrize("size", [3_750_000, 10 * MIB])
def test_a_picture_of_ten_megabytes_becomes_a_handle(place: Place, size: int) -> None:
    """D15: a picture over a provider's limit is a line with a handle there; later turns of mere text are valid, and the picture is whole."""
    dialog = Dialog(owner="user", store=place.open())
    dialog.append(UserMessage(contents=(TextContent(content="look"), picture(1, size))))
    dialog.append([says("seen"), asks("and now?")])
    found = reopened(place, dialog)
    request = found.request("anthropic", MODELS["anthropic"])
    limit = profile("anthropic", MODELS["anthropic"]).media.image_bytes
    assert limit is not None
    assert bool(request.report.lost()) is (-(-(len(png()) + size) // 3) * 4 > limit)
    assert len(request.data) <= profile("anthropic").request_bytes
    (whole,) = images(found)
    assert len(found.store.blob(found.session_id, BlobId(whole.digest))) == len(png()) + size
    assert isinstance(found.recall(f"{dialog.messages.handle(0)}:1"), ImageContent)


def test_sixty_three_pictures_leave_later_turns_valid(place: Place) -> None:
    """D15: 63 images, 101 MiB, a third of the window's tokens: every later turn of text is within bytes and tokens, and none is lost."""
    dialog = Dialog(owner="user", store=place.open())
    for number in range(63):
        dialog.append(UserMessage(contents=(TextContent(content=f"picture {number}"), picture(number, 1_682_000))))
        dialog.append(says(f"seen {number}"))
    found = reopened(place, dialog)
    model = MODELS["anthropic"]
    accepted = profile("anthropic", model)
    limits = {"max_bytes": accepted.request_bytes, "max_media": accepted.media.count}
    budget = replace(Budget.from_window(model), **limits)
    request = found.request("anthropic", model, policy="palaver", budget=budget, then="In a word, what were they?")
    assert len(request.data) <= accepted.request_bytes
    assert "what were they?" in request.data[-400:].decode()
    assert all(f"picture {number}" in request.data.decode() for number in (0, 62))
    size = Meter(counter("claude-opus-4-5")).view(found.view())
    assert size.media < Budget.from_window("claude-opus-4-5").limit, "tokens alone would never have told"
    assert sum(len(found.store.blob(found.session_id, BlobId(one.digest))) for one in images(found)) > 101 * MIB


def images(dialog: Dialog) -> list[Media]:
    """Return the pictures that a dialog's messages refer to."""
    blocks = [block for message in dialog.messages for block in message.contents]
    return [one for block in blocks if isinstance(block, ImageContent) for one in block.images]


# --- D16 ----------------------------------------------------------------------------------------------------------------------


def test_reused_call_ids_stay_apart(place: Place) -> None:
    """D16: every turn's call is `shell:0` with other arguments: each is run once and paired with its own result; ids on the wire are unique."""
    ran: list[str] = []

    @tool
    def shell(command: str) -> str:
        """Run."""
        ran.append(command)
        return f"ran {command}"

    def answer(request: Request) -> object:
        if request.body["messages"][-1]["role"] == "tool":
            return "Done."
        asked = request.body["messages"][-1]["content"]
        return {"tool_calls": [{"name": "shell", "arguments": {"command": asked}, "id": "shell:0"}]}

    prompt = Prompt(path="demand/ids", prompt="Go.", function_list=[shell])
    agent = Agent("agent", prompt, MODELS["openai-chat"], ProviderInvoker(ScriptedProvider(answer)), store=place.open())
    agent.open("main")
    for number in range(12):
        agent.receive(f"run {number}")
        agent.respond()
    assert ran == [f"run {number}" for number in range(12)]
    dialog = reopened(place, agent.current_dialog)
    for name, request in valid(dialog).items():
        made, answered = wire_ids(request)
        assert made == answered
        assert len(made) == 12
        assert len(set(made)) == 12 or profile(name).calls.unique == "turn"
        found = [request.data.index(f"ran run {number}".encode()) for number in range(12)]
        assert found == sorted(found)
        earlier = wire_ids(dialog.request(name, MODELS[name], at=dialog.view().at - 10, then="Go on."))[0]
        assert made[: len(earlier)] == earlier, "an id that was sent stays what it was"


# --- D22 ----------------------------------------------------------------------------------------------------------------------

RAW: Mapping[str, int] = {"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130}


def test_size_is_the_total_of_the_last_call(place: Place) -> None:
    """D22: usage of 12 calls, whose cache reads were added up: the context is the total that the last one told, 163,978."""
    usage = Usage({**RAW, "total": 163_978})
    assert Usage({**RAW, "totalTokens": 163_978}).total_tokens == usage.total_tokens
    assert usage.context_tokens == 163_978
    dialog = Dialog(owner="user", store=place.open())
    dialog.append([SystemMessage.text("rules " * 200), asks("words " * 128_000)])
    for number in range(11):
        dialog.append([says("", f"c{number}"), answers(f"c{number}")])
    dialog.append(says("Done.", usage=usage, model="claude-opus-4-6"))
    found = list(reopened(place, dialog).messages)
    assert found[-1].usage.context_tokens == 163_978
    valid(dialog)
