"""What a conversation says, piece by piece: texts, thinking, calls, results and images; and what of it another one lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from palaver import messages as says
from palaver import read_messages

KINDS = ("text", "thinking", "call", "result", "image")
"""What is compared."""

_PARTS = {"anthropic": "messages", "openai-responses": "input", "gemini": "contents"}
_BY: Mapping[type, str] = {says.AssistantMessage: "model", says.ToolMessage: "tool", says.UserMessage: "human"}
_SPOKEN = frozenset({says.Speaker.HUMAN, says.Speaker.MODEL, says.Speaker.SUMMARY})


class Piece(NamedTuple):
    """One thing that was said or done: its kind (of `KINDS`), what it says, and who says it: `model`, `human` or `tool`."""

    kind: str
    value: str
    by: str


def of_request(body: Mapping[str, Any], dialect: str) -> list[Piece]:
    """Return the pieces of a request's conversation, what the harness says in the user's role included."""
    items = [item for item in body[_PARTS[dialect]] if item.get("type") != "additional_tools"]
    return list(of_messages(read_messages(items, dialect)))


def of_messages(messages: Iterable[says.Message]) -> Iterable[Piece]:
    """Yield the pieces of messages, except what the harness says."""
    for message in messages:
        by = _BY.get(type(message), "")
        if by and (by != "human" or message.speaker in _SPOKEN):
            yield from _of_blocks(message.contents, by)


def _of_blocks(blocks: Iterable[object], by: str) -> Iterable[Piece]:
    for block in blocks:
        match block:
            case says.TextContent(content=text) if text:
                yield Piece("text", text, by)
            case says.ThinkingContent():
                sealed = block.signature or block.redacted or block.artefact.get("encrypted_content") or ""
                yield Piece("thinking", f"{block.content}\n{sealed}", by)
            case says.ToolCallContent():
                yield Piece("call", f"{block.name} {says.canonical_json(dict(block.args)).decode()}", by)
            case says.ToolResultContent():
                yield from _of_result(block, by)
            case says.ImageContent():
                yield from (Piece("image", image.digest or str(image.url), by) for image in block.images)


def _of_result(block: says.ToolResultContent, by: str) -> Iterable[Piece]:
    inside = [] if isinstance(block.content, str) else block.content
    images = [piece for piece in _of_blocks(inside, by) if piece.kind == "image"]
    if block.text() or not images:  # agents have words of their own for a result that is only an image
        yield Piece("result", block.text(), by)
    yield from images


def missing(wanted: Iterable[Piece], there: Iterable[Piece]) -> list[Piece]:
    """Return the wanted pieces that are not there in the wanted order, kind by kind."""
    given, asked = list(there), list(wanted)
    lost: list[Piece] = []
    for kind in KINDS:
        values = [piece.value for piece in given if piece.kind == kind]
        for piece in (piece for piece in asked if piece.kind == kind):
            if piece.value in values:
                del values[: values.index(piece.value) + 1]
            else:
                lost.append(piece)
    return lost


def summary(wanted: Sequence[Piece], lost: Sequence[Piece]) -> str:
    """Return `exact`, or how many of each kind are there."""
    total, gone = (Counter(piece.kind for piece in each) for each in (wanted, lost))
    return ", ".join(f"{kind} {total[kind] - gone[kind]} of {total[kind]}" for kind in KINDS if gone[kind]) or "exact"
