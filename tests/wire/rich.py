"""A rich request of each provider, compiled: what the cases of its validator spoil."""

from typing import Any

from palaver.log import ToolSpec
from palaver.messages import ImageContent, Media, TextContent, ThinkingContent, ToolResultContent, thaw
from palaver.prompts import Format
from tests.wire.histories import CLAUDE, CODEX, GEMINI
from tests.wire.pictures import png
from tests.wire.scenes import BASH, Scene, call

SHOT = ToolSpec(name="shot", parameters={"type": "object", "properties": {}})
BIRD = Format({"title": "Bird", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
ITEM = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
THOUGHTS = {
    "anthropic": (ThinkingContent(content="Look.", signature="c2lnbmVk"), CLAUDE),
    "openai-responses": (ThinkingContent(artefact={**ITEM, "id": "rs_1"}), CODEX),
    "gemini": (ThinkingContent(content="Look.", artefact={"thoughtSignature": "AAAA"}), GEMINI),
    "openai-chat": (ThinkingContent(content="Look."), CODEX),
}


def rich(name: str, model: str = "", *, prefill: bool = False, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Compile a conversation with everything that a provider takes; it ends on the assistant's words with `prefill`."""
    image = ImageContent(images=(Media(data=png()), Media(url="https://example.org/a.png")))
    shot = ToolResultContent(id="c2", content=(TextContent("The screen."), ImageContent(images=(Media(data=png()),))))
    failed = ToolResultContent(id="c3", content="no such file", is_error=True)
    thought, by = THOUGHTS[name]
    scene = Scene(system=["Be careful.", "Files are in src."], tools=[BASH, SHOT]).user("What is it?", image)
    scene.model_says(thought, "I look.", call("c1", command="ls"), call("c2", "shot"), results=["a.py", shot], by=by)
    scene.model_says(call("c3", command="cat x"), results=[failed], by=by).model_says("A heron.", by=by)
    scene = scene if prefill else scene.user("Sure?")
    body: dict[str, Any] = thaw(scene.request(name, model=model, **({"format": BIRD} | fields)).body)
    return body
