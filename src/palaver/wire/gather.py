"""The first pass: an exchange spelled out as a script.

This pass decides who speaks, as the provider sees it. Words in a user's turn that the user did not say are marked. Instructions inside the conversation stay
instructions where the provider accepts them, and become marked words elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

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
from palaver.messages.blocks import MALFORMED
from palaver.messages.value import in_order, read_object
from palaver.view import Block, Exchange, Reason, Turn, View
from palaver.wire.binding import COMPACTION
from palaver.wire.reasoning import maker_of, signature
from palaver.wire.script import (
    FAILED_SILENTLY,
    SPEAKS,
    CallPart,
    ChangeNotes,
    How,
    MediaPart,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    SpeechRole,
    TextPart,
    ThinkingPart,
    called,
    from_harness,
    left_out,
    shortened,
)
from palaver.wire.served import after_fallback, in_words
from palaver.wire.table import Profile

_SUMMARIES = frozenset({Role.BRANCH_SUMMARY, Role.COMPACTION_SUMMARY})
_TEXT_ONLY = frozenset({"system", "assistant"})
"""Roles that cannot say an image or a sound: no provider accepts one from them."""
_MARKS_ROOM = 256
"""Characters kept free for the mark around a text and for the note that it was shortened."""
DEPTH = 64
"""The most levels of arguments inside a body, which has some levels itself."""


def gather(exchange: Exchange, profile: Profile, notes: ChangeNotes, *, opens: bool = False) -> tuple[Speech, ...]:
    """Spell out an exchange as speeches, and note what changes.

    Args:
        exchange: The exchange.
        profile: The provider's rules.
        notes: The changes so far.
        opens: Whether nothing of the conversation comes before it.
    """
    return tuple(_speech(exchange, turn, profile, notes, opens=opens) for turn in exchange.turns)


def instructions(view: View, profile: Profile, notes: ChangeNotes) -> tuple[TextPart, ...]:
    """Return the instructions of a view as texts, one for each section."""
    said = _Voice(profile, notes, "system")
    return tuple(part for block in view.system for part in said.parts(block) if isinstance(part, TextPart))


def _speech(exchange: Exchange, turn: Turn, profile: Profile, notes: ChangeNotes, *, opens: bool) -> Speech:
    role = SPEAKS[turn.role]
    if role == "system" and (exchange.derived or not _takes_inside(profile)):
        role = "user"
        for block in () if exchange.derived else turn.blocks:
            why = "no place inside a conversation: sent as marked words"
            notes.add(block.origin, "instructions", How.CHANGED, why)
    if turn.name and profile.turns.name is None and turn.blocks:
        notes.add(turn.blocks[0].origin, "name", How.DROPPED, f"{turn.name!r}: there is no field for who speaks")
    said = _Voice(profile, notes, role, _mark(exchange, turn), maker_of(turn.provider, turn.model), opens)
    parts = tuple(part for block in turn.blocks for part in said.parts(block))
    if role == "assistant":
        parts = after_fallback(parts, profile.api.blocks, notes)
    return Speech(role, parts, turn.name, turn.provider, turn.model)


def _takes_inside(profile: Profile) -> bool:
    """Return whether instructions may be anywhere in the conversation.

    Some Anthropic models accept them in few places, which depend on later messages: a request would not begin like the one before it. These models get marked
    words, too.
    """
    return profile.turns.system == "message" or (profile.turns.system_inside and not profile.turns.alternate)


def _mark(exchange: Exchange, turn: Turn) -> str:
    """Return what the words of a user's turn are when the user did not say them; empty when the user did."""
    if turn.role is Role.SYSTEM:
        return "system"
    return "summary" if turn.role in _SUMMARIES else "record" if exchange.derived else ""


class _Voice(NamedTuple):
    """Whose blocks are spelled out, and for whom.

    Attributes:
        profile: The provider's rules.
        notes: The changes so far.
        role: Who speaks.
        mark: What the words of a user's turn are when the user did not say them, or empty.
        maker: Who made the model that speaks; empty where that is not recorded, None where it is another's server.
        opens: Whether nothing of the conversation comes before it.
    """

    profile: Profile
    notes: ChangeNotes
    role: SpeechRole
    mark: str = ""
    maker: str | None = ""
    opens: bool = False

    @property
    def ours(self) -> bool:
        """Whether the provider that the request is for may have said it."""
        return self.role == "assistant" and self.maker in {"", self.profile.reasoning.maker}

    def carried(self, content: Content) -> Mapping[str, Any]:
        """Return the provider's own fields of a block that go back with it."""
        extra = content.model_extra or {}
        return (
            thaw({name: extra[name] for name in self.profile.api.blocks.carried if name in extra}) if self.ours else {}
        )

    def parts(self, block: Block) -> Iterator[Part]:
        """Return the parts of a block: none for one that says nothing or cannot be said."""
        return _READERS.get(type(block.content), _unknown)(self, block, block.content)

    def fitted(self, text: str, origin: Handle | None) -> str:
        """Return a text, cut at the end where it has more characters than the provider accepts."""
        room = self.profile.turns.text_characters - _MARKS_ROOM
        if len(text) <= room:
            return text
        self.notes.add(origin, "text", How.CHANGED, f"longer than {self.profile.turns.text_characters:,} characters")
        return text[:room] + shortened(len(text) - room, origin)

    def kind(self, block: Block) -> str:
        """Return what a block of a user's turn is when the user did not say it, or an empty text."""
        summary = "summary" if block.speaker is Speaker.SUMMARY else ""
        return (block.derived or self.mark or summary) if self.role == "user" else ""


def _text(voice: _Voice, block: Block, content: TextContent) -> Iterator[Part]:
    if not content.content.strip():
        voice.notes.add(block.origin, "text", How.DROPPED, "it says nothing, and providers refuse empty texts")
        return
    if block.reason is Reason.UNPAIRED:
        voice.notes.add(block.origin, "tool result", How.CHANGED, "its call is not there: shown as text")
    text = voice.fitted(content.content, block.origin)
    if kind := voice.kind(block):
        yield TextPart(from_harness(kind, text), block.origin)
        return
    extra = content.model_extra or {}
    phase = extra.get("phase")
    phase = phase if isinstance(phase, str) else ""
    yield TextPart(text, block.origin, signature(extra), phase, voice.carried(content))


def _media(voice: _Voice, block: Block, content: ImageContent | AudioContent) -> Iterator[Part]:
    listed = content.images if isinstance(content, ImageContent) else content.audio
    kind: Literal["image", "audio"] = "image" if isinstance(content, ImageContent) else "audio"
    for number, media in enumerate(listed, 1):
        if voice.role in _TEXT_ONLY:
            why = f"no {kind} can stand in {voice.role} words"
            voice.notes.add(block.origin, kind, How.REPLACED, why)
            yield TextPart(left_out(kind, why, block.origin), block.origin)
        else:
            yield MediaPart(kind, media, block.origin, number, len(listed))


def _thinking(voice: _Voice, block: Block, content: ThinkingContent) -> Iterator[Part]:
    if voice.role == "assistant":
        yield ThinkingPart(content, block.origin)
    else:
        voice.notes.add(block.origin, "thinking", How.DROPPED, f"no thinking can stand in {voice.role} words")


# --- calls and results ---------------------------------------------------------------------------------------------------


def _call(voice: _Voice, block: Block, content: ToolCallContent) -> Iterator[Part]:
    if voice.role == "assistant":
        args, raw = _arguments(content, voice, block.origin)
        yield CallPart(content.id, content.name, args, raw, content.artefact, block.origin, voice.carried(content))
        return
    voice.notes.add(block.origin, "tool call", How.REPLACED, f"no tool call can stand in {voice.role} words")
    yield TextPart(voice.fitted(called(content.name, content.arguments), block.origin), block.origin)


def _arguments(content: ToolCallContent, voice: _Voice, origin: Handle | None) -> tuple[Mapping[str, Any], str]:
    """Return a call's arguments as an object and, where an API takes that, as JSON text. Both are valid, even if the model wrote invalid JSON.

    A server parses the arguments of the history: anything but a JSON object makes it refuse every later request (vllm-project/vllm#43995,
    sgl-project/sglang#28035). Such a text is sent under a key of its own.
    """
    as_object = voice.profile.calls.arguments == "object"
    too_deep = as_object and levels(content.args, DEPTH) > DEPTH
    if as_object and content.raw_args is None and not (too_deep or content.changes):
        return in_order(content.args), ""  # no text is written or read
    raw = canonical_json({MALFORMED: content.arguments}).decode() if too_deep else content.json_arguments
    why = content.error or ("nested too deeply" if too_deep else "")
    if why:
        voice.notes.add(origin, "arguments", How.CHANGED, f"they stand as text under {MALFORMED!r}: {why}")
    elif any(change.root == "args" for change in content.changes):
        why = "what the model wrote holds what no text can carry, such as a lone surrogate"
        voice.notes.add(origin, "arguments", How.CHANGED, why)
        raw = canonical_json(content.args).decode()
    try:
        return read_object(raw), raw  # in the model's order where that is recorded
    except ValueError:
        raw = canonical_json(content.args).decode()
        return read_object(raw), raw


def levels(value: object, most: int) -> int:
    """Return how many levels a value has, looking no deeper than one level more than `most`."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + max((levels(item, most - 1) for item in inside), default=0) if most >= 0 else 0


def _result(voice: _Voice, block: Block, content: ToolResultContent) -> Iterator[Part]:
    """Return a result. Its metadata, and whether it ends the loop, are the program's business and stay here."""
    body = tuple(_result_body(voice, block, content))
    if content.is_error and not body:
        why = "the tool failed without a word, and a failure must say something"
        voice.notes.add(block.origin, "result", How.ADDED, why)
        body = (TextPart(FAILED_SILENTLY, block.origin),)
    yield ResultPart(content.id, content.name or "", body, content.is_error, block.origin)


def _result_body(voice: _Voice, block: Block, content: ToolResultContent) -> Iterator[TextPart | MediaPart]:
    """Return what a tool returned. An empty text in it needs no report: the result is sent."""
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
    """Return a block that palaver has no class for: unchanged for its maker, else the words in it, if there are any.

    What a provider made of a conversation is needed where that conversation is not there.
    """
    part = ProviderPart(content.type, thaw(content.model_extra or {}), block.origin)
    why = _foreign(voice, content.type)
    if not why:
        yield part
        return
    if voice.role in _TEXT_ONLY:
        voice.notes.add(block.origin, "block", How.DROPPED, f"{content.type}: {why}")
        words = _summary(voice, part) if part.kind == COMPACTION else in_words(part)
        if voice.role == "assistant" and words is not None:
            yield replace(words, text=voice.fitted(words.text, block.origin))
        return
    voice.notes.add(block.origin, "block", How.REPLACED, f"{content.type}: {why}")
    yield TextPart(left_out(f"block of type {content.type!r}", "of no known type", block.origin), block.origin)


def _foreign(voice: _Voice, kind: str) -> str:
    """Return why a block does not go back, or an empty text."""
    blocks, known = voice.profile.api.blocks, bool(voice.maker)
    if voice.role != "assistant":
        return "no provider is known to take it in these words"
    if kind in blocks.denied:
        return blocks.denied[kind]
    if voice.ours and (known or kind in blocks.known):
        return ""
    return "another provider's" if known or voice.maker is None else "nobody recorded whose it is"


def _summary(voice: _Voice, part: ProviderPart) -> TextPart | None:
    """Return what a provider made of the conversation before, where that is not in the view."""
    said = part.fields.get("content")
    if not voice.opens or not isinstance(said, str) or not said.strip():
        return None
    return TextPart(from_harness("summary", said), part.origin)


_Reader: TypeAlias = Callable[[_Voice, Block, Any], Iterator[Part]]
_READERS: Mapping[type, _Reader] = {
    TextContent: _text,
    ImageContent: _media,
    AudioContent: _media,
    ThinkingContent: _thinking,
    ToolCallContent: _call,
    ToolResultContent: _result,
}
