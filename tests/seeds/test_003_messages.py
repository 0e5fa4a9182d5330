"""Seed 003, «Messages»: every block of code it shows, run with what its prose implies, and what it says of the session (A33)."""

import inspect
import re
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from palaver import (
    AssistantMessage,
    AudioContent,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageContent,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
    lllm,
)
from palaver.lllm import AgentMessage, BaseMessage, LLMMessage, StopReason, UsageCost
from tests.seeds.ported import run

MP3 = b"ID3\x04\0\0\0\0\0\0"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"

DECLARATIONS = """
class TextContent:
    type: Literal["text"] = "text"
    content: str = ""

class ThinkingContent:
    type: Literal["thinking"] = "thinking"
    content: str = ""
    signature: str = ""    # opaque token required by Anthropic to re-submit thinking blocks

class ToolCallContent:
    type: Literal["tool_call"] = "tool_call"
    id: str = ""
    name: str = ""
    kind: ToolKind | None = None   # optional hint for UIs
    args: dict[str, Any] = {}

class ToolResultContent:
    type: Literal["tool_result"] = "tool_result"
    id: str = ""              # matches the tool_call id
    content: str = ""
    is_error: bool = False
    metadata: dict[str, Any] = {}
    terminate: bool = False   # hint: skip follow-up LLM call

class ImageContent:
    type: Literal["image"] = "image"
    images: list[str | Image.Image | bytes] = []

class AudioContent:
    type: Literal["audio"] = "audio"
    audio: list[bytes | str] = []
"""

ROLE = """
class Role(Enum):
    SYSTEM           = "system"
    USER             = "user"
    ASSISTANT        = "assistant"
    TOOL             = "tool"
    CUSTOM           = "custom"
    BRANCH_SUMMARY   = "branch_summary"
    COMPACTION_SUMMARY = "compaction_summary"
"""

USAGE = """
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

class UsageCost:
    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0
"""

IMAGES = """
one = ImageContent.from_file(path)   # reads bytes from disk
two = ImageContent.from_url(url)     # wraps a URL string
"""

AUDIO = """
one = AudioContent.from_file(path)          # reads bytes from disk
two = AudioContent.from_base64(data)        # wraps a pre-encoded base64 string
"""

WITH_AUDIO = """
msg = UserMessage.with_audio("Transcribe this", [Path("clip.mp3").read_bytes()])
"""

USER = """
one = UserMessage.text("hello")
two = UserMessage.with_images("describe this", [img1, img2])
"""

TOOL = """
one = ToolMessage.from_results([result1, result2])
two = ToolMessage.from_result(result)
"""

SYSTEM = """
one = SystemMessage.text("You are a helpful assistant.")
"""


def declared(source: str) -> dict[str, dict[str, object]]:
    """Return the fields that the declarations of a block give defaults for, by class."""
    names: dict[str, Any] = {"Literal": Literal, "Any": Any, "ToolKind": str, "Enum": object}
    names["Image"] = type("Image", (), {"Image": object})
    space = run(source, **names)
    return {
        name: {field: value for field, value in vars(kind).items() if not field.startswith("_")}
        for name, kind in space.items()
        if inspect.isclass(kind) and kind.__module__ == "snippet"
    }


def test_content_types_have_the_declared_defaults() -> None:
    """A content block made of nothing has every field of its declaration, with that default; no default is shared and mutable."""
    for name, fields in declared(DECLARATIONS).items():
        block = getattr(lllm, name)()
        for field, default in fields.items():
            found = getattr(block, field)
            plain = dict(found) if isinstance(default, dict) else list(found) if isinstance(default, list) else found
            assert plain == default, (name, field)
            if isinstance(default, dict):
                with pytest.raises(TypeError):
                    found["x"] = 1


def test_the_roles_of_the_enumeration() -> None:
    """Every member is there with its value."""
    for name, value in declared(ROLE)["Role"].items():
        assert Role[name].value == value


def test_usage_defaults() -> None:
    """Usage and its cost begin at zero, and the nested default is not shared."""
    for name, defaults in declared(USAGE).items():
        made = getattr(lllm, name)()
        for field, default in defaults.items():
            assert getattr(made, field) == default
    assert Usage().cost == UsageCost()


def test_factories_of_images_and_audio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read, addresses and base64 are wrapped."""
    image, sound = tmp_path / "a.png", tmp_path / "clip.mp3"
    image.write_bytes(PNG)
    sound.write_bytes(MP3)
    made = run(IMAGES, ImageContent=ImageContent, path=image, url="https://example.com/a.png")
    assert made["one"].to_base64()[0][1] == "image/png"
    assert made["two"].to_base64() == [("https://example.com/a.png", "")]
    encoded = AudioContent(audio=[MP3]).to_base64()[0][0]
    made = run(AUDIO, AudioContent=AudioContent, path=sound, data=encoded)
    assert made["one"].to_base64() == made["two"].to_base64() == [(encoded, "audio/mpeg")]
    monkeypatch.chdir(tmp_path)
    made = run(WITH_AUDIO, UserMessage=UserMessage, Path=Path)
    assert [block.type for block in made["msg"].contents] == ["text", "audio"]


def test_factories_of_messages() -> None:
    """Each makes a message of its class, with the blocks in order."""
    made = run(USER, UserMessage=UserMessage, img1=PNG, img2=PNG)
    assert made["one"].text_content() == "hello"
    assert [block.type for block in made["two"].contents] == ["text", "image"]
    assert len(made["two"].contents[1].images) == 2
    results = {f"result{n}": ToolResultContent(id=f"c{n}", content=str(n)) for n in ("", 1, 2)}
    made = run(TOOL, ToolMessage=ToolMessage, **results)
    assert [block.id for block in made["one"].contents] == ["c1", "c2"]
    assert made["two"].contents == (results["result"],)
    assert run(SYSTEM, SystemMessage=lllm.SystemMessage)["one"].role is Role.SYSTEM


def test_what_every_message_has() -> None:
    """An id and a time are made; an answer joins its texts and gives calls and thinking; usage and stop reason are its own."""
    one, two = UserMessage.text("a"), UserMessage.text("a")
    assert isinstance(one, BaseMessage)
    assert one.id != two.id
    assert isinstance(one.timestamp, float)
    call = ToolCallContent(id="c1", name="f")
    blocks = (ThinkingContent(content="t"), TextContent("a"), call, TextContent("b"))
    message = AssistantMessage(contents=blocks, stop_reason=StopReason.TOOL_CALLS)
    assert (message.text_content(), message.tool_calls(), message.thinking()) == ("ab", [call], [blocks[0]])
    assert (message.usage.input_tokens, message.error) == (0, "")


def test_session_only_messages_are_apart() -> None:
    """R216: four classes are sent to a model, and three more are messages of a session."""
    session_only = {CustomMessage, BranchSummaryMessage, CompactionSummaryMessage}
    assert len(get_args(LLMMessage)) == 4
    assert set(get_args(AgentMessage)) - set(get_args(LLMMessage)) == session_only


def test_the_blocks_are_those_of_the_page() -> None:
    """Every name that the page declares or calls is in `palaver.lllm`."""
    blocks = (DECLARATIONS, ROLE, USAGE, IMAGES, AUDIO, WITH_AUDIO, USER, TOOL, SYSTEM)
    names = {name for block in blocks for name in re.findall(r"\b[A-Z][a-z]\w+(?:Content|Message)\b", block)}
    assert all(hasattr(lllm, name) for name in names)
