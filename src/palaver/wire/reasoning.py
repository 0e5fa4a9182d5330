"""The third pass: what models thought goes back to the model that thought it, unchanged, or not at all.

Signed and encrypted thinking is opaque, and belongs to one provider, one family of models and, with Anthropic, to the words that stood
before it. The artefacts of one turn go back all or none: a provider compares them with what it sent, in number and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, TypeAlias

from palaver.wire.check.media import decode
from palaver.wire.pairing import Taken
from palaver.wire.parts import CallPart, Part, Speech, TextPart, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.request import How, Notes

__all__ = [
    "DUMMY_SIGNATURE",
    "family",
    "maker_of",
    "reasoning_item",
    "signature",
    "thought_signature",
    "with_reasoning",
]

DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini takes in place of the signature of a call that it did not make (ai.google.dev/gemini-api/docs/thought-signatures)."""

_Maker: TypeAlias = Literal["anthropic", "openai", "google"]

_MAKER_OF_FORM: Mapping[str, _Maker] = MappingProxyType({"blocks": "anthropic", "items": "openai", "parts": "google"})
_MAKERS: Sequence[tuple[re.Pattern[str], _Maker]] = (
    (re.compile(r"anthropic|claude"), "anthropic"),
    (re.compile(r"openai"), "openai"),
    (re.compile(r"google|gemini"), "google"),
)
"""How recordings spell the makers of artefacts. Another seller of the same model (Bedrock, Azure) is not its maker: its artefacts are its own."""

# What names the day, the seller or the place of a model and not the model: us.anthropic.claude-x-20250929-v1:0, models/gemini-y.
_AROUND = re.compile(
    r"^(?:[a-z]+/)*(?:(?:[a-z]{2,6}\.)?anthropic\.)?|(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|-v\d+(?::\d+)?)+$"
)


def family(model: str) -> str:
    """Give the name of a model without its date, seller and place: models with the same one read each other's artefacts."""
    return _AROUND.sub("", model.lower())


def maker_of(provider: str) -> str:
    """Give the maker of artefacts that a recording's word for a provider means, or an empty text."""
    return next((maker for pattern, maker in _MAKERS if pattern.match(provider.lower())), "")


def with_reasoning(
    script: Sequence[Speech], profile: Profile, model: str, notes: Notes, sent: Taken | None = None
) -> tuple[Speech, ...]:
    """Give the script with the thinking that `model` takes back, and without all other.

    Args:
        script: The script, paired.
        profile: The provider's rules.
        model: The model that the request is for.
        notes: Where changes are taken down.
        sent: The ids of the reasoning items that stand before it; none when not given.
    """
    form = profile.reasoning.form
    sent = sent or Taken(frozenset())
    out: list[Speech] = []
    for speech in script:
        thoughts = [part for part in speech.parts if isinstance(part, ThinkingPart)]
        items = [reasoning_item(part).get("id") for part in thoughts] if form == "items" else []
        why = _refused(speech, thoughts, form, model) or _sent_before(items, sent)
        for part in thoughts if why else ():
            notes.add(part.origin, "thinking", How.DROPPED, why)
        parts: tuple[Part, ...] = tuple(part for part in speech.parts if not (why and isinstance(part, ThinkingPart)))
        if form == "parts" and speech.role == "assistant":
            parts = tuple(_signed(parts, speech, profile, model, notes))
        for item in () if why else items:
            sent.add(item)
        out.append(speech if parts == speech.parts else replace(speech, parts=parts))
    return tuple(out)


def _sent_before(items: Sequence[object], sent: Taken) -> str:
    before = [item in sent for item in items]
    return "its item stands in the request already" if len(set(items)) < len(items) or any(before) else ""


def _refused(speech: Speech, thoughts: Sequence[ThinkingPart], form: str, model: str) -> str:
    """Give the reason why the thinking of a turn cannot go back, or an empty text."""
    if not thoughts:
        return ""
    if form == "none":
        return "the API takes no thinking back"
    if any(_maker(part, speech) != _MAKER_OF_FORM[form] for part in thoughts):
        return "another provider's"
    if any(family(part.content.model or speech.model) != family(model) for part in thoughts):
        return "another model's"
    if form == "blocks" and speech.stale:
        return "signed for words before it that have been edited since"
    return _malformed(speech.parts, thoughts, form)


def _malformed(parts: Sequence[Part], thoughts: Sequence[ThinkingPart], form: str) -> str:
    if form == "blocks":
        if not all(part.content.signature or part.content.redacted for part in thoughts):
            return "not signed"
        if any(_is_after_call(parts, part) for part in thoughts):
            return "it stands after a tool call of its turn"
    elif form == "items":
        if not all(reasoning_item(part) for part in thoughts):
            return "no encrypted reasoning item is recorded with it"
        if any(isinstance(after, ThinkingPart) for part, after in pairwise(parts) if isinstance(part, ThinkingPart)):
            return "what it led to does not stand right after it"
    elif not all(thought_signature(part) for part in thoughts):
        return "not signed"
    return "its turn breaks off after it" if isinstance(parts[-1], ThinkingPart) else ""


def _is_after_call(parts: Sequence[Part], part: ThinkingPart) -> bool:
    return any(isinstance(earlier, CallPart) for earlier in parts[: parts.index(part)])


def _maker(part: ThinkingPart, speech: Speech) -> str:
    """Name the maker of an artefact: as it was recorded, or else by its form."""
    word = part.content.provider or speech.provider
    if word:
        return maker_of(word)
    if part.content.artefact.get("type") == "reasoning":
        return "openai"
    if signature(part.content.artefact):
        return "google"
    return next((maker for pattern, maker in _MAKERS if pattern.match(family(speech.model))), "")


def reasoning_item(part: ThinkingPart) -> dict[str, object]:
    """Give OpenAI's reasoning item as it is sent back, or an empty one where the recorded one is not whole.

    An item goes back with its id, its summary and its encrypted content; without the latter it is only found at a provider that
    stored it (github.com/microsoft/agent-framework-go/pull/784 lists the answers to each mistake).
    """
    artefact = part.content.artefact
    encrypted, item_id, summary = (artefact.get(key) for key in ("encrypted_content", "id", "summary"))
    if not (isinstance(encrypted, str) and encrypted and isinstance(item_id, str) and _ITEM_ID.fullmatch(item_id)):
        return {}
    texts = [piece for piece in summary if _is_summary(piece)] if isinstance(summary, list) else []
    return {"type": "reasoning", "id": item_id, "summary": texts, "encrypted_content": encrypted}


_ITEM_ID = re.compile(r"rs[a-zA-Z0-9_-]{0,62}")
"""The form of a reasoning item's id: it begins with `rs` («Expected an ID that begins with 'rs'») and has at most 64 characters."""


def _is_summary(piece: object) -> bool:
    return isinstance(piece, Mapping) and piece.get("type") == "summary_text" and isinstance(piece.get("text"), str)


def signature(artefact: Mapping[str, object]) -> str:
    """Give the thought signature in an artefact of Gemini's, in either spelling, or an empty text; it is bytes in base64."""
    found = artefact.get("thoughtSignature") or artefact.get("thought_signature")
    return found if isinstance(found, str) and decode(found) else ""


def thought_signature(part: ThinkingPart) -> str:
    """Give the signature of Gemini's on a thought, or an empty text."""
    return signature(part.content.artefact) or signature({"thoughtSignature": part.content.signature})


def _signed(parts: Sequence[Part], speech: Speech, profile: Profile, model: str, notes: Notes) -> Iterator[Part]:
    """Give a turn for Gemini with the signatures of this model, and a dummy on the first call where one must stand."""
    ours = _by_this_model(speech, model)
    first = True
    for part in parts:
        if isinstance(part, TextPart):
            if part.signature and not ours:
                notes.add(part.origin, "thought signature", How.DROPPED, "another model's")
            yield part if ours else replace(part, signature="")
        elif isinstance(part, CallPart):
            sent = signature(part.artefact) if ours else ""
            if signature(part.artefact) and not sent:
                notes.add(part.origin, "thought signature", How.DROPPED, "another model's")
            if first and not sent and profile.reasoning.signed_calls:
                notes.add(
                    part.origin,
                    "thought signature",
                    How.ADDED,
                    "the call has none of this model, and one must stand there",
                )
                sent = DUMMY_SIGNATURE
            first = False
            yield replace(part, artefact={"thoughtSignature": sent} if sent else {})
        else:
            yield part


def _by_this_model(speech: Speech, model: str) -> bool:
    word = (speech.provider or family(speech.model)).lower()
    known = next((maker for pattern, maker in _MAKERS if pattern.match(word)), "")
    return known in {"google", ""} and family(speech.model) == family(model)
