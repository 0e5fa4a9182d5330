"""Gemini's Interactions through the vendor's client: what palaver sends, the stand-in accepts."""

from __future__ import annotations

import anyio
import pytest

from palaver import Session, fit
from palaver.messages import ToolMessage, ToolResultContent, thaw
from palaver.providers import Provider, collect, connect_model
from palaver.session import Dialog
from palaver.testing import strict
from palaver.wire import Request

MODEL = "gemini-3.6-flash"
THOUGHT = {"type": "thought", "summary": [{"type": "text", "text": "hm"}]}
CALL = {"type": "function_call", "name": "bash", "arguments": {"command": "ls"}}


def sent(server: strict.StrictServer, steps: object, model: str = MODEL) -> str:
    """Send steps, and return why they are refused, or an empty text."""
    body = {"model": model, "store": False, "input": steps}
    served = server.ask("/v1beta/interactions", body, {"x-goog-api-key": "key"})
    return "" if served.status == 200 else served.message


async def turn(provider: Provider, dialog: Dialog, number: int, server: strict.StrictServer) -> None:
    """Ask, run the call of the answer, and ask again; every second turn is streamed."""
    dialog.put_text(f"Go {number}. " + "word " * 200)
    server.answers(
        (THOUGHT, "I look.", CALL, CALL),
        ({"type": "thought"}, {"type": "google_search_call", "arguments": {"queries": ["x"]}}, f"Done {number}."),
    )
    for _ in range(2):
        request: Request = dialog.request(
            provider.profile_for(MODEL), MODEL, provider_tools={"web_search": True}, stream=bool(number % 2)
        )
        answer = await collect(provider.stream(request))
        dialog.append(answer)
        for call in answer.tool_calls():
            result = ToolResultContent(id=call.id, name=call.name, content="out " * 300)
            dialog.append(ToolMessage.from_result(result))


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
def test_steps_are_accepted_after_cuts_forks_and_switches() -> None:
    """Hazard 59 («thought step dropped: missing_thought_signature»): no request is refused, whatever a policy, a fork or `fit` leaves out."""

    async def talk(dialog: Dialog, server: strict.StrictServer) -> None:
        options = {"base_url": server.url}
        provider, _ = connect_model(f"google-interactions/{MODEL}", api_key="key", http_options=options)
        try:
            for number in range(6):
                await turn(provider, dialog, number, server)
        finally:
            await provider.aclose()

    with strict.interactions() as server, Session.create(":memory:", "steps") as session:
        dialog = session.root
        anyio.run(talk, dialog, server)
        dialog.put_text("And now?")
        for policy in ("palaver", "fold", "claude-code", "offload"):
            request = dialog.request("gemini-interactions", MODEL, policy=policy, budget=1_500)
            assert sent(server, thaw(request.body)["input"]) == "", policy
        steps = thaw(dialog.request("gemini-interactions", MODEL).body)["input"]
        assert sent(server, steps, "gemini-4-argon") == ""
        for budget in (700, 1_500, 2_500):
            assert sent(server, fit(steps, model=MODEL, budget=budget).messages) == "", budget
        assert server.refused == []
