"""Gemini's Interactions through the vendor's client: what palaver sends, the stand-in accepts."""

from __future__ import annotations

from contextlib import aclosing

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
SEARCH = {"type": "google_search_call", "arguments": {"queries": ["x"]}}
FOUND = {"type": "google_search_result", "result": [{"title": "T", "url": "https://example.org"}]}
NOVEL = {"type": "novelty", "pieces": [1, {"deep": None}], "text": "new"}
ORACLE = ({"type": "oracle_call", "id": "o1", "asks": 1}, {"type": "oracle_result", "call_id": "o1", "says": [2]})
WEB = {"web_search": True}


def sent(server: strict.StrictServer, steps: object, model: str = MODEL) -> str:
    """Send steps, and return why they are refused, or an empty text."""
    body = {"model": model, "store": False, "input": steps}
    served = server.ask("/v1beta/interactions", body, {"x-goog-api-key": "key"})
    return "" if served.status == 200 else served.message


def connected(server: strict.StrictServer) -> Provider:
    """Return a provider that asks the stand-in over the vendor's client."""
    options = {"base_url": server.url}
    return connect_model(f"google-interactions/{MODEL}", api_key="key", http_options=options)[0]


async def turn(provider: Provider, dialog: Dialog, number: int, server: strict.StrictServer) -> None:
    """Ask, run the call of the answer, and ask again; every second turn is streamed."""
    dialog.put_text(f"Go {number}. " + "word " * 200)
    server.answers(
        (THOUGHT, "I look.", CALL, CALL),
        ({"type": "thought"}, SEARCH, FOUND, NOVEL, f"Done {number}."),
    )
    for _ in range(2):
        request: Request = dialog.request(
            provider.profile_for(MODEL), MODEL, provider_tools=WEB, stream=bool(number % 2)
        )
        answer = await collect(provider.stream(request))
        dialog.append(answer)
        for call in answer.tool_calls():
            result = ToolResultContent(id=call.id, name=call.name, content="out " * 300)
            dialog.append(ToolMessage.from_result(result))


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
def test_steps_are_accepted_after_cuts_forks_and_switches() -> None:
    """«Interactions: thought step dropped»: no request is refused, whatever a policy, a fork or `fit` leaves out."""

    async def talk(dialog: Dialog, server: strict.StrictServer) -> None:
        async with aclosing(connected(server)) as provider:
            for number in range(6):
                await turn(provider, dialog, number, server)

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


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
@pytest.mark.parametrize("stream", [False, True])
def test_steps_of_unknown_kinds_go_back_to_their_api(*, stream: bool) -> None:
    """They go back as they came, streamed or not; the same maker's other API and other providers get their words, with a note."""

    async def talk(dialog: Dialog, server: strict.StrictServer) -> None:
        async with aclosing(connected(server)) as provider:
            for text in ("Go.", "And?"):
                dialog.put_text(text)
                request = dialog.request(provider.profile_for(MODEL), MODEL, stream=stream)
                assert request.report.lost() == ()
                dialog.append(await collect(provider.stream(request)))

    with strict.interactions() as server:
        dialog = Dialog("assistant")
        server.answers(({"type": "thought"}, NOVEL, *ORACLE, "Well."))
        anyio.run(talk, dialog, server)
        first, second = server.served
    assert second.asked.body["input"][1:-1] == first.body["steps"]
    for api, model in (("gemini", MODEL), ("openai-responses", "gpt-6.2-sol"), ("anthropic", "claude-opus-5")):
        other = dialog.request(api, model, then="Now you.")
        left = [change.why.partition(":")[0] for change in other.report.lost() if change.what == "block"]
        assert left == ["novelty", "oracle_call", "oracle_result"], api
        assert "oracle" not in str(other.body)
        assert "new" in str(other.body)


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
def test_half_a_pair_of_a_google_tool_stays_behind() -> None:
    """A search whose result never came (a stream cut in the middle) is left out with a note, and so is a result whose call has another's id."""

    async def talk(dialog: Dialog, server: strict.StrictServer) -> None:
        async with aclosing(connected(server)) as provider:
            for text in ("Search.", "Again.", "On.", "More."):
                dialog.put_text(text)
                request = dialog.request(provider.profile_for(MODEL), MODEL, provider_tools=WEB)
                dialog.append(await collect(provider.stream(request)))

    with strict.interactions() as server:
        dialog = Dialog("assistant")
        named = {**SEARCH, "id": "g1"}
        server.answers(({"type": "thought"}, SEARCH))
        server.answers(*(({"type": "thought"}, named, FOUND, "Found."),) * 2)
        anyio.run(talk, dialog, server)
        assert server.refused == []
    request = dialog.request("gemini-interactions", MODEL, provider_tools=WEB, then="Last.")
    left = [change.why for change in request.report.lost()]
    assert [why for why in left if why.startswith("google_search")] == [
        "google_search_call: its other half is not there",
        "google_search_call: its item stands in the request already",
        "google_search_result: its call is left out",
    ]
