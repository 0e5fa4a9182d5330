"""The first pass: a view spelt out as a script.

Here it is decided who a provider will take for the speaker. Words that a user's turn carries and the user did not say are marked
as such; instructions inside the conversation stay instructions where the provider takes them there, and are marked words elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from palaver.log import Handle
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Role,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    thaw,
)
from palaver.view import Block, Exchange, Turn, View
from palaver.wire.parts import (
    SPEAKS,
    CallPart,
    MediaPart,
    Part,
    ResultPart,
    ServedPart,
    Speech,
    SpeechRole,
    TextPart,
    ThinkingPart,
)
from palaver.wire.profiles import Profile
from palaver.wire.reasoning import signature
from palaver.wire.request import How, Notes
from palaver.wire.served import is_served
from palaver.wire.words import FAILED_SILENTLY, called, from_harness, left_out, shortened

__all__ = ["gather", "instructions"]

_SUMMARIES = frozenset({Role.BRANCH_SUMMARY, Role.COMPACTION_SUMMARY})
_TEXT_ONLY = frozenset({"system", "assistant"})
"""Who cannot say an image or a sound: no provider takes one from them."""


def gather(exchanges: Sequence[Exchange], model: str, profile: Profile, notes: Notes) -> tuple[Speech, ...]:
    """Spell out exchanges of a view, each by itself.

    Args:
        exchanges: The exchanges.
        model: The model in force in the view: who said what no model is recorded for.
        profile: The provider's rules.
        notes: Where changes are taken down.
    """
    return tuple(_speeches(exchanges, model, profile, notes))


def instructions(view: View, profile: Profile, notes: Notes) -> tuple[TextPart, ...]:
    """Spell out the instructions of a view: texts, one for each section."""
    said = _Voice(profile, notes, "system")
    return tuple(part for block in view.system for part in said.parts(block) if isinstance(part, TextPart))


def _speeches(exchanges: Sequence[Exchange], model: str, profile: Profile, notes: Notes) -> Iterator[Speech]:
    for exchange in exchanges:
        for turn in exchange.turns:
            role = _role(exchange, turn, profile)
            if role == "user" and turn.role is Role.SYSTEM and not exchange.derived:
                for block in turn.blocks:
                    notes.add(
                        block.origin,
                        "instructions",
                        How.CHANGED,
                        "no place inside a conversation: sent as marked words",
                    )
            if turn.name and profile.turns.name is None and turn.blocks:
                notes.add(
                    turn.blocks[0].origin, "name", How.DROPPED, f"{turn.name!r}: there is no field for who speaks"
                )
            said = _Voice(profile, notes, role, _mark(exchange, turn), turn.provider)
            parts = tuple(part for block in turn.blocks for part in said.parts(block))
            yield Speech(role, parts, turn.name, turn.provider, turn.model or model, stale=exchange.stale)


def _role(exchange: Exchange, turn: Turn, profile: Profile) -> SpeechRole:
    role = SPEAKS[turn.role]
    return "user" if role == "system" and (exchange.derived or not _takes_inside(profile)) else role


def _takes_inside(profile: Profile) -> bool:
    """Tell whether instructions may stand anywhere in the conversation.

    The models of Anthropic that take them inside take them in few places, and which ones depends on what is said after them: a request
    would not begin like the one before it. They get marked words like the others.
    """
    return profile.turns.system == "message" or (profile.turns.system_inside and not profile.turns.alternate)


def _mark(exchange: Exchange, turn: Turn) -> str:
    """Name what the words of a user's turn are when the user did not say them; empty when he did."""
    if turn.role is Role.SYSTEM:
        return "system"
    return "summary" if turn.role in _SUMMARIES else "record" if exchange.derived else ""


@dataclass(frozen=True, slots=True)
class _Voice:
    """Whose blocks are spelt out, and for whom.

    Attributes:
        profile: For whom.
        notes: Where changes are taken down.
        role: Who speaks.
        mark: What the words of a user's turn are when the user did not say them, or empty.
        provider: The provider whose model speaks, or empty.
    """

    profile: Profile
    notes: Notes
    role: SpeechRole
    mark: str = ""
    provider: str = ""

    def parts(self, block: Block) -> Iterator[Part]:
        """Give the parts of a block: none for one that says nothing or cannot be said."""
        yield from _READERS.get(type(block.content), _unknown)(self, block, block.content)

    def fitted(self, text: str, origin: Handle | None) -> str:
        """Give a text, its end left out where it has more characters than the provider takes."""
        room = self.profile.turns.text_characters - _MARKS_ROOM
        if len(text) <= room:
            return text
        self.notes.add(origin, "text", How.CHANGED, f"longer than {self.profile.turns.text_characters:,} characters")
        return text[:room] + shortened(len(text) - room, origin)

    def unsaid(self, block: Block) -> str:
        """Name what a block of a user's turn is when the user did not say it."""
        summary = "summary" if block.speaker is Speaker.SUMMARY else ""
        return (block.derived or self.mark or summary) if self.role == "user" else ""


def _text(voice: _Voice, block: Block, content: TextContent) -> Iterator[Part]:
    if not content.content.strip():
        voice.notes.add(block.origin, "text", How.DROPPED, "it says nothing, and providers refuse empty texts")
        return
    text = voice.fitted(content.content, block.origin)
    mark = voice.unsaid(block)
    if mark:
        yield TextPart(from_harness(mark, text), block.origin)
        return
    extra = content.model_extra or {}
    yield TextPart(text, block.origin, signature(extra), _string(extra.get("phase")))


def _media(voice: _Voice, block: Block, content: ImageContent | AudioContent) -> Iterator[Part]:
    listed = content.images if isinstance(content, ImageContent) else content.audio
    kind: Literal["image", "audio"] = "image" if isinstance(content, ImageContent) else "audio"
    for index, media in enumerate(listed):
        if voice.role in _TEXT_ONLY:
            why = f"no {kind} can stand in {voice.role} words"
            voice.notes.add(block.origin, kind, How.REPLACED, why)
            yield TextPart(left_out(kind, why, block.origin), block.origin)
        else:
            yield MediaPart(kind, media, block.origin, index + 1, len(listed))


def _thinking(voice: _Voice, block: Block, content: ThinkingContent) -> Iterator[Part]:
    if voice.role == "assistant":
        yield ThinkingPart(content, block.origin)
    else:
        voice.notes.add(block.origin, "thinking", How.DROPPED, f"no thinking can stand in {voice.role} words")


def _call(voice: _Voice, block: Block, content: ToolCallContent) -> Iterator[Part]:
    if voice.role == "assistant":
        spoilt = _spoilt(content)
        if spoilt:
            why = "what the model wrote holds what no text can carry, such as a lone surrogate"
            voice.notes.add(block.origin, "arguments", How.CHANGED, why)
        yield CallPart(
            id=content.id,
            name=content.name,
            args=content.args if spoilt else _ordered(content),
            raw=canonical_json(content.args).decode() if spoilt else content.arguments,
            error=content.error or "",
            artefact=content.artefact,
            origin=block.origin,
        )
        return
    voice.notes.add(block.origin, "tool call", How.REPLACED, f"no tool call can stand in {voice.role} words")
    yield TextPart(voice.fitted(called(content.name, content.arguments), block.origin), block.origin)


def _result(voice: _Voice, block: Block, content: ToolResultContent) -> Iterator[Part]:
    """Give a result; its metadata, and whether it ends the loop, are the program's business and stay here."""
    body = tuple(_result_body(voice, block, content))
    if content.is_error and not body:
        voice.notes.add(
            block.origin, "result", How.ADDED, "the tool failed without a word, and a failure must say something"
        )
        body = (TextPart(FAILED_SILENTLY, block.origin),)
    yield ResultPart(content.id, content.name or "", body, content.is_error, block.origin)


def _result_body(voice: _Voice, block: Block, content: ToolResultContent) -> Iterator[TextPart | MediaPart]:
    """Give what a tool gave back; an empty text in it says nothing, and needs no report: the result stands."""
    if isinstance(content.content, str):
        if content.content.strip():
            yield TextPart(voice.fitted(content.content, block.origin), block.origin)
        return
    tool = _Voice(voice.profile, voice.notes, "tool")
    for piece in content.content:
        if not (isinstance(piece, TextContent) and not piece.content.strip()):
            shown = Block(content=piece, origin=block.origin, speaker=block.speaker)
            yield from (part for part in tool.parts(shown) if isinstance(part, TextPart | MediaPart))


def _unknown(voice: _Voice, block: Block, content: Content) -> Iterator[Part]:
    if voice.role == "assistant" and is_served(content.type, voice.profile, voice.provider):
        yield ServedPart(content.type, thaw(content.model_extra or {}), block.origin)
        return
    why = f"no provider is known to take a block of type {content.type!r}"
    if voice.role in _TEXT_ONLY:
        voice.notes.add(block.origin, "block", How.DROPPED, why)
        return
    voice.notes.add(block.origin, "block", How.REPLACED, why)
    yield TextPart(left_out(f"block of type {content.type!r}", "of no known type", block.origin), block.origin)


_MARKS_ROOM = 256
"""Characters kept free for the mark around a text and for the words that say it was shortened."""

_Reader: TypeAlias = Callable[[_Voice, Block, Any], Iterator[Part]]
_READERS: Mapping[type, _Reader] = MappingProxyType(
    {
        TextContent: _text,
        ImageContent: _media,
        AudioContent: _media,
        ThinkingContent: _thinking,
        ToolCallContent: _call,
        ToolResultContent: _result,
    }
)


def _spoilt(content: ToolCallContent) -> bool:
    """Tell whether the arguments as the model wrote them escape a lone surrogate or a NUL: whoever reads that text has it again."""
    if content.raw_args is None or content.error is not None:
        return False
    return any(change.root == "args" for change in content.changes)


def _ordered(content: ToolCallContent) -> Mapping[str, Any]:
    """Give a call's arguments in the order that the model wrote them, or else in canonical order: always the same one."""
    if content.error is not None:
        return {}
    text = content.raw_args if content.raw_args is not None else canonical_json(content.args)
    read = json.loads(text) if text.strip() else {}
    return read if isinstance(read, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
