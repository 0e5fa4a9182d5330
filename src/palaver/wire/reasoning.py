"""The third pass: what only its provider can read goes back to that provider unchanged, or not at all.

Thinking is signed or encrypted; its provider's models read it, as far as the table of models says. What came before it is the business of
:mod:`palaver.wire.binding`, when the whole request is known.
Models that continue the assistant's words get none while thinking is off: such a request may not have any, and each begins like the one before.
The artefacts of one turn go back all or none: a provider compares them with what it sent, in number and order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from palaver.messages import ThinkingContent
from palaver.wire.models import read_model
from palaver.wire.rules import decode
from palaver.wire.script import CallPart, ChangeNotes, How, Part, ProviderPart, Speech, Taken, TextPart, ThinkingPart
from palaver.wire.table import Profile, Reasoning

DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini accepts as the signature of a call or thought that it did not make (ai.google.dev/gemini-api/docs/thought-signatures)."""

_MAKERS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"anthropic|claude"), "anthropic"),
    (re.compile(r"openai"), "openai"),
    (re.compile(r"google|gemini"), "google"),
)
"""How recordings spell the makers of artefacts. A reseller (Bedrock, Azure) is not the maker: its artefacts are its own."""


def _maker(word: str) -> str:
    """Return the maker that a recording's word for a provider or model means, or an empty text."""
    return next((maker for pattern, maker in _MAKERS if pattern.match(word.lower())), "")


def maker_of(provider: str, model: str) -> str | None:
    """Return who made a model: None for a provider that resells or serves others', an empty text where neither is recorded."""
    if provider:
        return _maker(provider) or None
    return read_model(model).maker


def _reads(profile: Profile, model: str, recorded: str) -> bool:
    """Return whether a model reads what another one thought; a model that is not recorded counts as the same.

    A model whose name has no version may be of any: a provider passes over what its model does not read, without an error.
    """
    if not recorded:
        return True
    reader, maker, reaches = read_model(model), read_model(recorded), profile.reasoning.reads
    within = maker.version is None or any(reach.includes(maker) for reach in reaches)
    return maker == reader or (bool(reaches) and maker.line == reader.line and within)


# --- thinking ------------------------------------------------------------------------------------------------------------


def with_reasoning(
    script: Sequence[Speech], profile: Profile, model: str, notes: ChangeNotes, taken: Taken, *, thinks: bool
) -> Iterator[Speech]:
    """Return the script with the thinking that `model` accepts back, and without all other.

    Args:
        script: The speeches of an exchange, paired.
        profile: The provider's rules.
        model: The model that the request is for.
        notes: The changes so far.
        taken: The ids so far; those of reasoning items are added.
        thinks: Whether the request turns on Anthropic's thinking.
    """
    form = profile.reasoning.form
    for speech in script:
        if form == "steps":
            yield replace(speech, parts=tuple(_stepped(speech, profile, notes)))
            continue
        thoughts = [part for part in speech.parts if isinstance(part, ThinkingPart)]
        signs = speech.role == "assistant" and (form == "parts" or (form == "none" and profile.reasoning.signed_calls))
        if not (thoughts or signs):
            yield speech
            continue
        items = [f"item {reasoning_item(part).get('id')}" for part in thoughts] if form == "items" else []
        why = _refused(speech, thoughts, profile, model, thinks=thinks)
        if not why and (len(set(items)) < len(items) or any([item in taken for item in items])):  # noqa: C419 - all are asked
            why = "its item stands in the request already"
        for part in thoughts if why else ():
            notes.add(part.origin, "thinking", How.DROPPED, why)
        for part in () if why or form != "blocks" else _unread(speech, thoughts, profile, model):
            notes.add(part.origin, "thinking", How.KEPT, f"{_UNREAD}: the provider passes over it")
        parts: tuple[Part, ...] = tuple(part for part in speech.parts if not (why and isinstance(part, ThinkingPart)))
        if signs:
            parts = tuple(_signed(parts, speech, profile, model, notes))
        taken.added.update(() if why else items)
        yield speech if parts == speech.parts else replace(speech, parts=parts)


def _refused(speech: Speech, thoughts: Sequence[ThinkingPart], profile: Profile, model: str, *, thinks: bool) -> str:
    """Return why the thinking of a turn cannot go back, or an empty text."""
    form = profile.reasoning.form
    if not thoughts:
        return ""
    if form in {"none", "fields"}:
        silent = "the API takes no thinking back"
        return silent if form == "none" else _refused_field(speech, thoughts, profile.reasoning, model)
    if any(_made_by(part, speech) != profile.reasoning.maker for part in thoughts):
        return "another provider's"
    if form != "blocks" and any(_unread(speech, thoughts, profile, model)):
        return _UNREAD
    if form == "blocks" and profile.turns.assistant_last and not thinks:
        return "thinking is off, and a request that ends on the assistant's words may hold none"
    return _malformed(speech.parts, thoughts, form, profile.api.blocks.led_to)


_UNREAD = "of a model whose thinking this one does not read"


def _unread(speech: Speech, thoughts: Sequence[ThinkingPart], profile: Profile, model: str) -> Iterator[ThinkingPart]:
    """Yield the thinking that the model does not read.

    Anthropic passes over it, whatever model is asked, and a later model may read it: it goes back all the same, so that what is thought next is bound to it,
    too (platform.claude.com/docs/en/build-with-claude/preserved-thinking, «switching models»; docs.aws.amazon.com/bedrock, «thinking block binding»).
    """
    return (part for part in thoughts if not _reads(profile, model, part.content.model or speech.model))


def _refused_field(speech: Speech, thoughts: Sequence[ThinkingPart], rules: Reasoning, model: str) -> str:
    """Return why reasoning cannot go back in a field of its message: it goes to its model and family, and where nobody recorded whose it is."""
    for part in thoughts:
        said = part.content
        recorded = said.model or speech.model
        words = [word.lower() for word in (said.provider or speech.provider, recorded) if word]
        same = bool(recorded) and read_model(recorded) == read_model(model)
        if words and not same and rules.family is not None and not any(rules.family.search(word) for word in words):
            return "another provider's"
        if rules.same_model and recorded and not same:
            return "another model's"
        if not (said.artefact.get(rules.field) if rules.field == "reasoning_details" else said.content):
            return "its provider kept it to itself"
    return "its turn breaks off after it" if isinstance(speech.parts[-1], ThinkingPart) else ""


def _malformed(
    parts: Sequence[Part], thoughts: Sequence[ThinkingPart], form: str, led_to: re.Pattern[str] | None
) -> str:
    if form == "blocks":
        if not all(part.content.signature or part.content.redacted for part in thoughts):
            return "not signed"
    elif form == "items":
        if not all(reasoning_item(part) for part in thoughts):
            return "no encrypted reasoning item is recorded with it"
        if any(isinstance(after, ThinkingPart) for part, after in pairwise(parts) if isinstance(part, ThinkingPart)):
            return "what it led to does not stand right after it"
        led = (
            after
            for part, after in pairwise(parts)
            if isinstance(part, ThinkingPart) and isinstance(after, ProviderPart)
        )
        if led_to is not None and not all(led_to.fullmatch(after.kind) for after in led):
            return "it is not known to lead to what follows it"
    elif not all(thought_signature(part) for part in thoughts):
        return "not signed"
    return "its turn breaks off after it" if isinstance(parts[-1], ThinkingPart) else ""


def _made_by(part: ThinkingPart, speech: Speech) -> str:
    """Return the maker of an artefact: as recorded, else by its form. Only Anthropic signs or redacts a block of its own (R200)."""
    said = part.content
    if said.provider or speech.provider:
        return _maker(said.provider or speech.provider)
    if said.artefact.get("type") == "reasoning":
        return "openai"
    if signature(said.artefact):
        return "google"
    model = read_model(said.model or speech.model).maker
    return model or ("anthropic" if said.signature or said.redacted else "")


# --- OpenAI's items ------------------------------------------------------------------------------------------------------

_ITEM_ID = re.compile(r"rs[a-zA-Z0-9_-]{0,62}")
"""The id of a reasoning item («Expected an ID that begins with 'rs'»); it has at most 64 characters."""


def reasoning_item(part: ThinkingPart) -> dict[str, object]:
    """Return OpenAI's reasoning item as it is sent back, or an empty one where the recorded one is not whole.

    An item goes back with its id, its summary and its encrypted content. Without the latter only a provider that stored it finds it
    (github.com/microsoft/agent-framework-go/pull/784 lists the answers to each mistake).
    """
    artefact = part.content.artefact
    encrypted, item_id, summary = (artefact.get(key) for key in ("encrypted_content", "id", "summary"))
    if not (isinstance(encrypted, str) and encrypted and isinstance(item_id, str) and _ITEM_ID.fullmatch(item_id)):
        return {}
    texts = [
        piece
        for piece in (summary if isinstance(summary, list) else [])
        if isinstance(piece, Mapping) and piece.get("type") == "summary_text" and isinstance(piece.get("text"), str)
    ]
    return {"type": "reasoning", "id": item_id, "summary": texts, "encrypted_content": encrypted}


# --- Gemini's signatures -------------------------------------------------------------------------------------------------


def signature(artefact: Mapping[str, object]) -> str:
    """Return the thought signature in an artefact of Gemini's, in either spelling, or an empty text; it is bytes in base64."""
    found = artefact.get("thoughtSignature") or artefact.get("thought_signature")
    return found if isinstance(found, str) and decode(found) else ""


def thought_signature(part: ThinkingPart) -> str:
    """Return Gemini's signature of a thought, or an empty text."""
    return signature(part.content.artefact) or signature({"thoughtSignature": part.content.signature})


def _signed(parts: Sequence[Part], speech: Speech, profile: Profile, model: str, notes: ChangeNotes) -> Iterator[Part]:
    """Return a turn with the signatures of this model, and a dummy on the first call where one is required."""
    maker = _maker(speech.provider) if speech.provider else read_model(speech.model).maker
    ours = maker in {"google", ""} and _reads(profile, model, speech.model)
    first = True
    for part in parts:
        known = part.signature if isinstance(part, TextPart) else ""
        known = signature(part.artefact) if isinstance(part, CallPart) else known
        if known and not ours:
            notes.add(part.origin, "thought signature", How.DROPPED, "another model's")
        if isinstance(part, TextPart):
            yield part if ours else replace(part, signature="")
        elif isinstance(part, CallPart):
            sent = known if ours else ""
            if first and not sent and profile.reasoning.signed_calls:
                why = "the call has none of this model, and one must stand there"
                notes.add(part.origin, "thought signature", How.ADDED, why)
                sent = DUMMY_SIGNATURE
            first = False
            yield replace(part, artefact={"thoughtSignature": sent} if sent else {})
        else:
            yield part


def thought_step(part: ThinkingPart) -> dict[str, object]:
    """Return a thought step of Gemini's Interactions as it is sent back, or an empty one where the recorded one is not whole."""
    step = {key: value for key, value in part.content.artefact.items() if value is not None}
    found, summary = step.get("signature"), step.get("summary", [])
    signed = step.get("type") == "thought" and isinstance(found, str) and found
    return step if signed and isinstance(summary, list) and all(map(_is_piece, summary)) else {}


def _is_piece(piece: object) -> bool:
    """Return whether a value is a piece of content of Gemini's Interactions."""
    if not isinstance(piece, Mapping):
        return False
    kind = piece.get("type")
    return isinstance(kind, str) and bool(kind) and (kind != "text" or isinstance(piece.get("text"), str))


def _stepped(speech: Speech, profile: Profile, notes: ChangeNotes) -> Iterator[Part]:
    """Return a turn with the thought steps that its maker signed, and a dummy at its beginning where its first call comes before any.

    A step of another model of the maker is accepted; an unsigned step is refused (googleapis/js-genai#1735), and so are calls without a step before them.
    """
    kept: list[Part] = []
    for part in speech.parts:
        ours = not isinstance(part, ThinkingPart) or _made_by(part, speech) == profile.reasoning.maker
        if isinstance(part, ThinkingPart) and not (ours and thought_step(part)):
            why = "not signed for this API" if ours else "another provider's"
            notes.add(part.origin, "thinking", How.DROPPED, why)
        else:
            kept.append(part)
    first = next((part for part in kept if isinstance(part, CallPart | ThinkingPart)), None)
    if isinstance(first, CallPart) and profile.reasoning.signed_calls:
        notes.add(
            first.origin, "thought signature", How.ADDED, "no thought of its maker is before the call, and one must be"
        )
        yield _DUMMY_STEP
    yield from kept


_DUMMY_STEP = ThinkingPart(ThinkingContent("", artefact={"type": "thought", "signature": DUMMY_SIGNATURE}))
