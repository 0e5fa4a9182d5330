"""Images and sounds on their way to each provider, and what stands for those that it does not take."""

from palaver.messages import (
    ImageContent,
    Media,
    TextContent,
    ToolResultContent,
)
from palaver.wire import broken_at
from tests.wire.any_views import PAYLOADS
from tests.wire.pictures import gif, png
from tests.wire.scenes import BASH, Scene, at, call


def image(data: bytes) -> ImageContent:
    """Make an image block of these bytes."""
    return ImageContent(images=(Media(data=data),))


def test_r242_images_in_each_providers_words() -> None:
    """R246: bytes go as base64 with the type the bytes have, addresses as addresses; never one for the other."""
    lying = Media(media_type="image/png", data=gif())
    scene = Scene().user("what?", ImageContent(images=(lying, Media(url="https://example.org/a.png"))))
    chat = scene.request("openai-chat").body["messages"][0]["content"]
    assert chat[1]["image_url"]["url"].startswith("data:image/gif;base64,")
    assert chat[2]["image_url"]["url"] == "https://example.org/a.png"
    sources = [block["source"] for block in scene.request("anthropic").body["messages"][0]["content"][1:]]
    assert (sources[0]["media_type"], sources[1]["type"]) == ("image/gif", "url")


def test_images_over_the_limit_leave_in_steps() -> None:
    """Past the limit of 100 images, 25 go at once: of 30 further requests two begin differently, not thirty."""
    scene = Scene()
    for number in range(100):
        scene.user(image(png()), str(number)).model_says("seen")
    before = scene.request("anthropic")
    breaks = 0
    for number in range(100, 130):
        scene.user(image(png()), str(number)).model_says("seen")
        after = scene.request("anthropic")
        breaks += broken_at(before, after) is not None
        before = after
    assert breaks == 2


def test_side_of_an_image_counts_with_the_crowd() -> None:
    """An image of 5000 pixels is taken alone, and not among more than twenty."""
    scene = Scene().user("look", image(png(5000, 10)))
    assert not scene.request("anthropic").report.lost()
    for _ in range(20):
        scene.user("and", image(png()))
    (change,) = scene.request("anthropic").report.lost()
    assert change.handle == at(0, 1)


def test_media_of_a_failed_call_follow_it() -> None:
    """The result of a failed call holds text only: its image stands after it."""
    shot = ToolResultContent(id="c1", content=(TextContent("crashed"), image(gif())), is_error=True)
    blocks = (
        Scene(tools=[BASH])
        .user("go")
        .model_says(call(), results=[shot])
        .request("anthropic")
        .body["messages"][2]["content"]
    )
    assert [block["type"] for block in blocks] == ["tool_result", "text", "image"]


def test_media_with_other_bytes_are_left_out() -> None:
    """A payload that is gone, or of another length than its reference says, becomes a text with the reason."""
    (digest, data), *_ = PAYLOADS.items()
    other = Media(media_type="image/png", digest=digest, size=len(data) + 1)
    gone = Media(media_type="image/png", digest="e" * 64, size=10)
    report = Scene().user(ImageContent(images=(other, gone)), "?").request("anthropic").report
    assert [change.why.partition(":")[0] for change in report] == [
        "its bytes are not those recorded",
        "its bytes cannot be had",
    ]


def test_images_follow_results_that_hold_text_only() -> None:
    """Chat completions: the image a tool returned stands in a message after the results, and says where it comes from."""
    shot = ToolResultContent(id="a", content=(TextContent("done"), image(gif())))
    scene = Scene(tools=[BASH]).user("go").model_says(call("a"), call("b"), results=[shot, "ok"])
    messages = scene.request("openai-chat").body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert "tool call a" in messages[-1]["content"][0]["text"]
    inside = scene.request("anthropic").body["messages"][2]["content"][0]["content"]
    assert [block["type"] for block in inside] == ["text", "image"]
