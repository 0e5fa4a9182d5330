"""D17: one session goes from provider to provider every turn, over random logs."""

from __future__ import annotations

import base64
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import (
    AssistantMessage,
    Dialog,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    UserMessage,
)
from palaver.log import Handle
from palaver.providers import APIS
from tests.demand.ground import MODELS, answers, asks, bodies, valid
from tests.wire.pictures import png

ORDER = ("openai-responses", "anthropic", "gemini", "gemini-interactions", "openai-chat")
ARTEFACT = re.compile(r'"(?:signature|encrypted_content|thoughtSignature)":\s*"([^"]+)"')
DUMMY = "skip_thought_signature_validator"


def _artefacts(body: str) -> list[str]:
    """Return the artefacts in a body, in order, without the placeholder that Google names."""
    return [one for one in ARTEFACT.findall(body) if one != DUMMY]


_KINDS = st.sampled_from(["plain", "calls", "failed", "open", "picture"])


def _native(name: str, number: int, kind: str) -> tuple[AssistantMessage, str]:
    """Make an answer as it comes from a provider, with an artefact of its own."""
    seal = base64.b64encode(f"{name} {number}".encode()).decode()
    call: tuple[Any, ...] = ()
    if kind != "plain":
        artefact = {"thoughtSignature": seal} if name == "gemini" else {}
        call = (ToolCallContent(id="call_x|fc_y", name="guide", args={"bird": "robin"}, artefact=artefact),)
    thoughts = {
        "openai-responses": ThinkingContent(
            provider="openai",
            artefact={"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": seal},
        ),
        "anthropic": ThinkingContent(content="Hm.", signature=seal, provider="anthropic"),
        "gemini": ThinkingContent(content="Hm.", provider="google", artefact={"thoughtSignature": seal}),
        "gemini-interactions": ThinkingContent(
            "Hm.", provider="google", artefact={"type": "thought", "signature": seal}
        ),
    }
    thought = (thoughts[name],) if name in thoughts else ()
    provider = APIS[name].maker
    said = AssistantMessage(
        contents=(*thought, TextContent(content=f"answer {number}"), *call),
        model=MODELS[name],
        response_id=f"r{number}",
    )
    return said.model_copy(update={"provider": provider}), seal if thought else ""


_TURNS = st.lists(st.tuples(st.sampled_from(ORDER), _KINDS), min_size=1, max_size=8)


@settings(max_examples=max(6, settings().max_examples // 16))
@given(turns=_TURNS, forked=st.integers(0, 8))
def test_any_order_of_providers_over_any_log(turns: list[tuple[str, str]], forked: int) -> None:
    """D17: whoever answered and whoever is asked next: valid, one's own artefacts all there to the byte, nobody else's, the rest told."""
    dialog = Dialog(owner="watcher")
    seals: dict[str, list[str]] = {name: [] for name in ORDER}
    for number, (name, kind) in enumerate(turns):
        said, seal = _native(name, number, kind)
        shown = (ImageContent(images=(Media(data=png(3 + number, 3)),)),) if kind == "picture" else ()
        dialog.append(UserMessage(contents=(TextContent(content=f"Round {number}."), *shown)))
        dialog.append(said)
        if kind not in {"plain", "open"}:
            dialog.append(answers("call_x|fc_y", f"result {number}", failed=kind == "failed"))
        seals[name] += [seal] if seal else []
        if number == forked:
            dialog = dialog.fork()
    dialog.append(asks("and now?"))
    log = bodies(dialog)
    for name, request in valid(dialog, then=None).items():
        found = list(dict.fromkeys(_artefacts(request.data.decode())))
        assert found == seals[name]
        dropped = [change.handle for change in request.report if change.what == "thinking"]
        others = [
            handle
            for handle in _thoughts(dialog)
            if not _seal_at(dialog, handle) or _seal_at(dialog, handle) not in found
        ]
        assert dropped == others
    assert bodies(dialog) == log


def _thoughts(dialog: Dialog) -> list[Handle]:
    blocks = [block for exchange in dialog.view().exchanges for block in exchange.blocks()]
    return [block.origin for block in blocks if isinstance(block.content, ThinkingContent) and block.origin]


def _seal_at(dialog: Dialog, handle: Handle) -> str:
    thought = dialog.recall(handle)
    assert isinstance(thought, ThinkingContent)
    return str(
        next(filter(None, map(thought.artefact.get, ("encrypted_content", "thoughtSignature", "signature"))), "")
        or thought.signature
    )
