"""Seed 003, «Messages»: every block of code it shows, run with what its prose implies, and what it says of the session (A33)."""

from pathlib import Path
from typing import get_args

import pytest

from palaver import (
    AudioContent,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    ImageContent,
    Role,
    SystemMessage,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.lllm import AgentMessage, LLMMessage
from tests.seeds.ported import run

MP3 = b"ID3\x04\0\0\0\0\0\0"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"

FACTORIES = """
image = ImageContent.from_file(png)   # reads bytes from disk
linked = ImageContent.from_url(url)     # wraps a URL string
sound = AudioContent.from_file(mp3)          # reads bytes from disk
encoded = AudioContent.from_base64(data)        # wraps a pre-encoded base64 string
msg = UserMessage.with_audio("Transcribe this", [Path("clip.mp3").read_bytes()])
hello = UserMessage.text("hello")
two = UserMessage.with_images("describe this", [img1, img2])
both = ToolMessage.from_results([result1, result2])
single = ToolMessage.from_result(result1)
brief = SystemMessage.text("You are a helpful assistant.")
"""


def test_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read, addresses and base64 are wrapped; each message has its class, and the blocks in order."""
    monkeypatch.chdir(tmp_path)
    Path("a.png").write_bytes(PNG)
    Path("clip.mp3").write_bytes(MP3)
    data, url = AudioContent(audio=[MP3]).to_base64()[0][0], "https://example.com/a.png"
    results = {f"result{n}": ToolResultContent(id=f"c{n}", content=str(n)) for n in (1, 2)}
    names = {"png": "a.png", "mp3": "clip.mp3", "data": data, "url": url, "img1": PNG, "img2": PNG, "Path": Path}
    kinds = {kind.__name__: kind for kind in (ImageContent, AudioContent, UserMessage, ToolMessage, SystemMessage)}
    made = run(FACTORIES, **kinds, **names, **results)
    assert made["image"].to_base64()[0][1] == "image/png"
    assert made["linked"].to_base64() == [(url, "")]
    assert made["sound"].to_base64() == made["encoded"].to_base64() == [(data, "audio/mpeg")]
    assert [block.type for block in made["msg"].contents] == ["text", "audio"]
    assert made["hello"].text_content() == "hello"
    assert [block.type for block in made["two"].contents] == ["text", "image"]
    assert len(made["two"].contents[1].images) == 2
    assert [block.id for block in made["both"].contents] == ["c1", "c2"]
    assert made["single"].contents == (results["result1"],)
    assert made["brief"].role is Role.SYSTEM


def test_session_only_messages_are_apart() -> None:
    """R216: four classes are sent to a model, and three more are messages of a session."""
    session_only = {CustomMessage, BranchSummaryMessage, CompactionSummaryMessage}
    assert len(get_args(LLMMessage)) == 4
    assert set(get_args(AgentMessage)) - set(get_args(LLMMessage)) == session_only
