"""The third pass: what only its provider can read goes back to that provider unchanged, or not at all.

Thinking is signed or encrypted; its provider's models read it, as far as the table of models says. What came before it is the business of
:mod:`palaver.wire.binding`, when the whole request is known.
Models that continue the assistant's words get none while thinking is off: such a request may not have any, and each begins like the one before.
The artefacts of one turn go back all or none: a provider compares them with what it sent, in number and order.

Tools of a provider's own leave blocks in answers. They go back while such tools are asked for: Anthropic wants a call with its result, Gemini
its parts, OpenAI what a reasoning item led to. Otherwise they are left out: the words of the answer say what came of them.
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
from palaver.wire.table import Profile

DUMMY_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini accepts as the signature of a call or thought that it did not make (ai.google.dev/gemini-api/docs/thought-signatures)."""

_MAKERS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"anthropic|claude"), "anthropic"),
    (re.compile(r"openai"), "openai"),
    (re.compile(r"google|gemini"), "google"),
)
"""How recordings spell the makers of artefacts. A reseller (Bedrock, Azure) is not the maker: its artefacts are its own."""
_SERVER_CALL = "server_tool_use"


def _maker(word: str) -> str:
    """Return the maker that a recording's word for a provider or model means, or an empty text."""
    return next((maker for pattern, maker in _MAKERS if pattern.match(word.lower())), "")


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
        items = [f"item {reasoning_item(part).get('id')}" for part in thoughts] if form == "items" else []
        why = _refused(speech, thoughts, profile, model, thinks=thinks)
        if not why and (len(set(items)) < len(items) or any([item in taken for item in items])):  # noqa: C419 - all are asked
            why = "its item stands in the request already"
        for part in thoughts if why else ():
            notes.add(part.origin, "thinking", How.DROPPED, why)
        parts: tuple[Part, ...] = tuple(part for part in speech.parts if not (why and isinstance(part, ThinkingPart)))
        if form == "parts" and speech.role == "assistant":
            parts = tuple(_signed(parts, speech, profile, model, notes))
        taken.added.update(() if why else items)
        yield speech if parts == speech.parts else replace(speech, parts=parts)


def _refused(speech: Speech, thoughts: Sequence[ThinkingPart], profile: Profile, model: str, *, thinks: bool) -> str:
    """Return why the thinking of a turn cannot go back, or an empty text."""
    form = profile.reasoning.form
    if not thoughts:
        return ""
    if form == "none":
        return "the API takes no thinking back"
    if any(_made_by(part, speech) != profile.reasoning.maker for part in thoughts):
        return "another provider's"
    if not all(_reads(profile, model, part.content.model or speech.model) for part in thoughts):
        return "of a model whose thinking this one does not read"
    if form == "blocks" and profile.turns.assistant_last and not thinks:
        return "thinking is off, and a request that ends on the assistant's words may hold none"
    return _malformed(speech.parts, thoughts, form)


def _malformed(parts: Sequence[Part], thoughts: Sequence[ThinkingPart], form: str) -> str:
    if form == "blocks":
        if not all(part.content.signature or part.content.redacted for part in thoughts):
            return "not signed"
    elif form == "items":
        if not all(reasoning_item(part) for part in thoughts):
            return "no encrypted reasoning item is recorded with it"
        if any(isinstance(after, ThinkingPart) for part, after in pairwise(parts) if isinstance(part, ThinkingPart)):
            return "what it led to does not stand right after it"
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
    """Return a turn with the thought steps that its maker signed, and a dummy at its beginning where it has calls and none of them.

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
    call = next((part for part in kept if isinstance(part, CallPart)), None)
    if call and profile.reasoning.signed_calls and not any(isinstance(part, ThinkingPart) for part in kept):
        notes.add(
            call.origin, "thought signature", How.ADDED, "no thought of its maker is before the call, and one must be"
        )
        yield _DUMMY_STEP
    yield from kept


_DUMMY_STEP = ThinkingPart(ThinkingContent("", artefact={"type": "thought", "signature": DUMMY_SIGNATURE}))


# --- blocks of the provider's own tools ----------------------------------------------------------------------------------


def is_provider_block(kind: str, profile: Profile, provider: str) -> bool:
    """Return whether a tool of the provider that the request is for left a block of this kind."""
    return kind in profile.reasoning.blocks and _maker(provider) == profile.reasoning.maker


def with_provider_blocks(
    script: Sequence[Speech], profile: Profile, notes: ChangeNotes, *, asked: bool
) -> Iterator[Speech]:
    """Return the script with the blocks of the provider's own tools that can go back, and without the others.

    Args:
        script: The speeches of an exchange.
        profile: The provider's rules.
        notes: The changes so far.
        asked: Whether the request asks for tools of the provider's own.
    """
    for speech in script:
        blocks = [part for part in speech.parts if isinstance(part, ProviderPart)]
        gone: set[int] = set()
        whole = _answered([part for part in blocks if _sound(part)])
        for part in blocks:
            why = "" if asked else "no tool of the provider's own is asked for"
            if not why and not _sound(part):
                why = "what its provider gives every such block is not there"
            if not why and _id(part) and _id(part) not in whole:
                why = "its other half is not there"
            if why:
                gone.add(id(part))
                notes.add(part.origin, "block", How.DROPPED, f"{part.kind}: {why}")
        for thought, after in pairwise(speech.parts) if profile.reasoning.form == "items" else ():
            if isinstance(thought, ThinkingPart) and id(after) in gone:
                gone.add(id(thought))
                notes.add(thought.origin, "thinking", How.DROPPED, "what it led to is left out")
        yield replace(speech, parts=tuple(part for part in speech.parts if id(part) not in gone)) if gone else speech


def _sound(part: ProviderPart) -> bool:
    """Return whether a block has the fields that the provider asks of its kind (the types of the `anthropic` package)."""
    if part.kind == _SERVER_CALL:
        name, given = part.fields.get("name"), part.fields.get("input")
        return bool(_id(part)) and isinstance(name, str) and isinstance(given, Mapping)
    return not part.kind.endswith("_tool_result") or (bool(_id(part)) and "content" in part.fields)


def _id(part: ProviderPart) -> str:
    """Return the id that connects an Anthropic tool's call and result; empty for single blocks."""
    bound = part.kind == _SERVER_CALL or part.kind.endswith("_tool_result")
    found = part.fields.get("id" if part.kind == _SERVER_CALL else "tool_use_id")
    return found if bound and isinstance(found, str) else ""


def _answered(blocks: Sequence[ProviderPart]) -> frozenset[str]:
    """Return the ids with a call and, after it, a result."""
    called: set[str] = set()
    answered: set[str] = set()
    for part in blocks:
        if part.kind == _SERVER_CALL:
            called.add(_id(part))
        elif _id(part) in called:
            answered.add(_id(part))
    return frozenset(answered)
