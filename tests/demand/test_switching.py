"""D17, live and at length: one session goes from provider to provider every turn, over the vendors' own clients and over random logs.

The peer server, which others wrote, answers; what Gemini signs it does not sign, so the relay between signs that (`_signed`).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import (
    Agent,
    AssistantMessage,
    Dialog,
    ImageContent,
    Media,
    Prompt,
    ProviderInvoker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    UserMessage,
    tool,
)
from palaver.ids import new_session_id
from palaver.log import Handle
from palaver.models import Provider
from palaver.models.anthropic import AnthropicProvider
from palaver.models.google import GoogleProvider
from palaver.models.openai import OpenAIProvider
from palaver.wire import profile, validate
from tests.demand.ground import MODELS, Place, answers, asks, bodies, reopened, valid
from tests.peers.relay import Relay, relaying
from tests.peers.server import Peer
from tests.wire.pictures import png
from tests.wire.vendor_types import hold_to_types

FIXTURES = Path(__file__).parents[1] / "peers" / "fixtures" / "switching.json"
ORDER = ("openai-responses", "anthropic", "gemini", "openai-chat")
ARTEFACT = re.compile(r'"(?:signature|encrypted_content|thoughtSignature)":\s*"([^"]+)"')
DUMMY = "skip_thought_signature_validator"
MAKERS: dict[str, Callable[[str], Provider]] = {
    "openai-chat": lambda url: OpenAIProvider(base_url=f"{url}/v1", api_key="none"),
    "openai-responses": lambda url: OpenAIProvider(api="responses", base_url=f"{url}/v1", api_key="none"),
    "anthropic": lambda url: AnthropicProvider(base_url=url, api_key="none"),
    "gemini": lambda url: GoogleProvider(api_key="none", http_options={"base_url": url, "api_version": "v1beta"}),
}
_NUMBERS = count()


def _signed(answer: bytes) -> bytes:
    """Sign an answer of Gemini's as Google does: the first call of it, or else its last text, and what was thought."""
    if b'"candidates"' not in answer:
        return answer
    text = answer.decode()
    if text.lstrip().startswith("{"):
        return json.dumps(_sign(json.loads(text))).encode()
    lines = [
        f"data: {json.dumps(_sign(json.loads(line[5:])))}" if line[:5] == "data:" else line
        for line in text.splitlines()
    ]
    return ("\n".join(lines) + "\n\n").encode()


def _sign(answer: dict[str, Any]) -> dict[str, Any]:
    for candidate in answer.get("candidates", ()):
        for part in candidate.get("content", {}).get("parts", ()):
            if "functionCall" in part or part.get("thought"):
                seal = base64.b64encode(f"sealed by the relay, {next(_NUMBERS)}".encode()).decode()
                part["thoughtSignature"] = seal
    return answer


@dataclass
class Line:
    """The connection to one provider: what was sent, and the artefacts of its answers."""

    provider: Provider
    relay: Relay
    artefacts: list[str] = field(default_factory=list)


@contextmanager
def connected(peer: Peer) -> Iterator[dict[str, Line]]:
    """Return a line to each provider."""
    with ExitStack() as stack:
        lines: dict[str, Line] = {}
        for name, maker in MAKERS.items():
            came: list[str] = []

            def seen(answer: bytes, came: list[str] = came) -> bytes:
                answer = _signed(answer)
                came += [one for one in ARTEFACT.findall(answer.decode()) if one not in came]
                return answer

            relay = stack.enter_context(relaying(peer.url, seen, x_test_id=str(new_session_id())))
            lines[name] = Line(maker(relay.url), relay, came)
        yield lines


@tool
def guide(bird: str, round: int) -> str:  # noqa: A002 - the model's word
    """Read the field guide."""
    return f"{bird}: Erithacus rubecula, page {round}"


def _agent(name: str, line: Line, dialog: Dialog) -> Agent:
    prompt = Prompt(path="demand/watcher", prompt="You keep the log of a bird watcher.", function_list=[guide])
    invoker, limit = ProviderInvoker(line.provider), {"max_tokens": 4_096}
    agent = Agent("watcher", prompt, MODELS[name], invoker, store=dialog.store, model_args=limit)
    return agent.adopt("main", dialog)


async def _answer(agent: Agent, *, streamed: bool) -> None:
    if not streamed:
        await agent.arespond()
        return
    async for _ in agent.stream():
        pass


async def _rounds(lines: dict[str, Line], dialog: Dialog, rounds: range) -> Dialog:
    """Go from provider to provider, a turn each, every third with a picture, every second time streamed; what was written stays."""
    for number in rounds:
        name = ORDER[number % len(ORDER)]
        agent = _agent(name, lines[name], dialog)
        before = bodies(dialog.reload())
        if number % 3:
            agent.receive(f"Round {number}.")
        else:
            agent.receive_image(png(3 + number, 3), f"Round {number}.")
        await _answer(agent, streamed=bool(number // len(ORDER) % 2))
        assert bodies(dialog.reload())[: len(before)] == before
    return dialog


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:.*is not a valid FinishReason")  # the server says FUNCTION_CALL; Google does not
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
def test_d17_live_from_provider_to_provider_every_turn(place: Place, start_peer: Callable[[Path], Peer]) -> None:
    """Eight turns over four clients with calls and pictures, then a fork and four more: all valid, all native artefacts back."""
    with connected(start_peer(FIXTURES)) as lines:

        async def whole() -> tuple[Dialog, Dialog]:
            dialog = Dialog(owner="watcher", store=place.open())
            dialog.put_text("You keep the log of a bird watcher.", role="system")
            await _rounds(lines, dialog, range(8))
            fork = dialog.fork()
            await _rounds(lines, fork, range(8, 12))
            for line in lines.values():
                await line.provider.aclose()
            return dialog, fork

        dialog, fork = anyio.run(whole)
    for name, line in lines.items():
        recorded = _recorded(fork, name)
        assert len(recorded) == (0 if name == "openai-chat" else 6 if name != "gemini" else len(recorded))
        assert set(recorded) <= set(line.artefacts), "what is recorded is what the provider gave, to the byte"
        sent = [body.decode() for body in line.relay.bodies]
        assert len(sent) == 6
        for body in sent:
            _hold(name, body)
            assert _artefacts(body) == recorded[: len(_artefacts(body))], "one's own, in order, and nobody else's"
        assert len(_artefacts(sent[-1])) >= len(recorded) * 2 // 3, "all but those of the last answer are back"
    assert len(reopened(place, fork).calls) == 24
    assert len(reopened(place, dialog).messages) == 1 + 8 * 4
    valid(reopened(place, fork))


def _recorded(dialog: Dialog, name: str) -> list[str]:
    """Return the artefacts of one provider's answers as the log has them, in order."""
    found: list[str] = []
    maker = {"openai-responses": "openai", "gemini": "google"}.get(name, name)
    for message in dialog.messages:
        if message.is_assistant_side and message.provider == maker:
            found += ARTEFACT.findall(json.dumps(message.to_dict()))
    return list(dict.fromkeys(found))


def _artefacts(body: str) -> list[str]:
    """Return the artefacts in a body, in order, without the placeholder that Google names."""
    return [one for one in ARTEFACT.findall(body) if one != DUMMY]


def _hold(name: str, body: str) -> None:
    """Hold what arrived to its provider's rules and types."""
    asked = json.loads(body)
    assert validate(asked, profile(name, MODELS[name])) == ()
    hold_to_types(name, {key: value for key, value in asked.items() if not key.startswith("stream")})


# --- the same without a server: random orders over random logs -------------------------------------------------------------------

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
    }
    thought = (thoughts[name],) if name in thoughts else ()
    provider = {"gemini": "google", "anthropic": "anthropic"}.get(name, "openai")
    said = AssistantMessage(
        contents=(*thought, TextContent(content=f"answer {number}"), *call),
        model=MODELS[name],
        response_id=f"r{number}",
    )
    return said.model_copy(update={"provider": provider}), seal if thought else ""


_TURNS = st.lists(st.tuples(st.sampled_from(ORDER), _KINDS), min_size=1, max_size=8)


@settings(max_examples=max(6, settings().max_examples // 16))
@given(turns=_TURNS, forked=st.integers(0, 8))
def test_d17_any_order_of_providers_over_any_log(turns: list[tuple[str, str]], forked: int) -> None:
    """Whoever answered and whoever is asked next: valid, one's own artefacts all there to the byte, nobody else's, the rest told."""
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
        thought.artefact.get("encrypted_content") or thought.artefact.get("thoughtSignature") or thought.signature
    )
