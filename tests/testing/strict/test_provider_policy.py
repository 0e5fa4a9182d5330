"""The policy `provider` against stand-ins that compact: from a threshold on, whole and streamed, and what becomes of the block."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import anthropic
import anyio
import openai
import pytest

from palaver import fit
from palaver.agent import Agent
from palaver.context.triggers import Idle
from palaver.errors import AgentFailure, InvalidInput
from palaver.log import Handle
from palaver.messages import Content
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.providers.scripted import ScriptedProvider
from palaver.session import Dialog, Session
from palaver.testing import strict
from palaver.wire import Request

Json = dict[str, Any]
CLAUDE, GPT = "claude-fable-5-1", "gpt-6.2-sol"
LIMIT: Final = 80_000
pytestmark = pytest.mark.filterwarnings("ignore:The window of")
LONG: Final = "word " * 200


def many(value: object) -> int:
    """Count as if each character were a long text, so that few words reach a threshold."""
    return len(str(value)) * 20


class Vendor:
    """A stand-in, with the vendor's own client."""

    def __init__(self, api: str, *, streamed: bool = False) -> None:
        self.api, self.streamed = api, streamed
        self.model = CLAUDE if api == "anthropic" else GPT
        self.server = strict.anthropic(tokens=many) if api == "anthropic" else strict.openai_responses(tokens=many)
        self.kept: Json = {"type": "thinking", "thinking": "hm"} if api == "anthropic" else {"type": "reasoning"}

    def send(self, request: Request) -> Any:  # noqa: ANN401 - the client's own answer
        """Send a request, and return the answer as the client does."""
        said = {name: value for name, value in request.items() if name != "stream"}
        if self.api == "anthropic":
            with anthropic.Anthropic(base_url=self.server.url, api_key="key", max_retries=0) as client:
                if not self.streamed:
                    return client.beta.messages.create(**request)
                with client.beta.messages.stream(**said) as stream:
                    return stream.get_final_message()
        with openai.OpenAI(base_url=self.server.url, api_key="key", max_retries=0) as other:
            if not self.streamed:
                return other.responses.create(**request)
            with other.responses.stream(**said) as events:
                return events.get_final_response()

    def ask(self, dialog: Dialog, said: str, answer: str = "", **call: Any) -> Request:  # noqa: ANN401 - of a request
        """Say something, get the answer, and append it."""
        self.server.answers([self.kept, answer or f"Answer to {said[:6]}."])
        dialog.put_text(f"{said} {LONG}")
        request = dialog.request(self.api, self.model, policy="provider", budget=LIMIT, **call)
        dialog.append(self.send(request))
        return request

    def opening(self, request: Request) -> str:
        """Return the kind of the first block or item of a request's conversation."""
        items = request.body["messages" if self.api == "anthropic" else "input"]
        first = next(item for item in items if item.get("role") != "developer")
        return str(first["content"][0]["type"] if self.api == "anthropic" else first["type"])


@pytest.fixture(params=["anthropic", "anthropic streamed", "openai-responses", "openai-responses streamed"])
def vendor(request: pytest.FixtureRequest) -> Iterator[Vendor]:
    """Return a running stand-in and its client."""
    api, _, streamed = request.param.partition(" ")
    made = Vendor(api, streamed=bool(streamed))
    with made.server:
        yield made


def talked(vendor: Vendor, most: int = 8) -> tuple[Dialog, list[Request]]:
    """Return a dialog up to the first request that begins with a compaction, and its requests."""
    dialog, requests = Session.create().root, []
    dialog.put_text("Plan releases.", role="system")
    for number in range(most):
        requests.append(vendor.ask(dialog, f"Say {number}."))
        if vendor.opening(requests[-1]) == "compaction":
            return dialog, requests
    raise AssertionError("no request begins with a compaction")


def blocks(dialog: Dialog) -> list[tuple[Handle, Content]]:
    """Return the compactions in the log, each with its place."""
    return [
        (block.origin, block.content)
        for exchange in dialog.view().exchanges
        for block in exchange.blocks()
        if block.content.type == "compaction" and block.origin is not None
    ]


# --- at a threshold ------------------------------------------------------------------------------------------------------


def test_requests_begin_at_the_block(vendor: Vendor) -> None:
    """«threshold compaction block lost»: the provider is asked to compact at three quarters of the limit; its block is in the log, whole, and later requests begin with it."""
    dialog, requests = talked(vendor)
    vendor.ask(dialog, "Again.")
    assert not vendor.server.refused
    assert not vendor.server.dropped
    asked = requests[0].body["context_management"]
    if vendor.api == "anthropic":
        trigger = {"type": "input_tokens", "value": LIMIT * 3 // 4}
        assert asked == {"edits": [{"type": "compact_20260112", "trigger": trigger}]}
    else:
        assert list(asked) == [{"type": "compaction", "compact_threshold": LIMIT * 3 // 4}]
    (_, block), *_ = blocks(dialog)
    sent = next(
        made
        for served in vendor.server.served
        for made in served.body["content" if vendor.api == "anthropic" else "output"]
        if made["type"] == "compaction"
    )
    assert {**sent, **(block.model_extra or {})} == sent


def test_the_record_stands_before_the_block(vendor: Vendor) -> None:
    """Laws 9 and 10: what the block stands for is listed as left out and quoted in a record, and every handle resolves."""
    dialog, _ = talked(vendor)
    view = dialog.view("provider", LIMIT, model=vendor.model)
    assert [exchange.derived for exchange in view.exchanges][:1] == ["record"]
    assert "Say 0." in view.messages[1].text_content()
    gone = [handle for omission in view.omissions for handle in omission.handles()]
    assert gone
    assert all(dialog.recall(handle) for handle in gone)
    assert "Say 0." in dialog.call_tool("recall", {"handle": str(gone[0])})
    assert "Say 0." in dialog.call_tool("search_history", {"query": "Say 0"})


def test_calls_with_a_compaction_are_reproduced(vendor: Vendor) -> None:
    """Law 6: each recorded request is made again to the byte, the threshold with it, also by another process."""
    dialog, requests = talked(vendor)
    calls = Session.open(dialog.store, dialog.session_id).dialog(dialog.dialog_id).calls
    assert [call.request().data for call in calls] == [request.data for request in requests]
    assert all(call.view().compact_at == LIMIT * 3 // 4 for call in calls)


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_leaves_compacting_to_its_provider(api: str, streamed: bool) -> None:
    """An agent with the policy keeps the block, writes no compaction of its own, and no request of it is refused."""
    vendor = Vendor(api, streamed=streamed)
    with vendor.server as server:
        server.answers(*(strict.NextAnswer([vendor.kept, f"Seen {number}."]) for number in range(8)))
        dialog = anyio.run(_asked, vendor, 8)
        assert not server.refused
        assert not server.dropped
    assert blocks(dialog)
    assert not list(dialog.store.latest_of_kind(dialog.dialog_id, "compaction"))
    view = dialog.calls[-1].view()
    assert view.exchanges[0].derived == "record"
    assert view.compact_at == LIMIT * 3 // 4


async def _asked(vendor: Vendor, turns: int, *, limit: int = LIMIT, demand: bool = False) -> Dialog:
    """Return the dialog of an agent after some turns, compacted on demand before the last one or not."""
    made: AnthropicProvider | OpenAIProvider
    if vendor.api == "anthropic":
        made = AnthropicProvider(base_url=vendor.server.url, api_key="key")
    else:
        made = OpenAIProvider(base_url=vendor.server.url, api_key="key", api="responses")
    options: Json = {"stream_handler": lambda _event: None} if vendor.streamed else {}
    agent = Agent("looker", "Look.", vendor.model, made, context_manager="provider", budget=limit, **options)
    for number in range(turns):
        if demand and number == turns - 1:
            await agent.acompact()
        try:
            await agent.arespond(f"Look at {number}. {LONG}")
        except AgentFailure:  # the stream broke off
            await agent.arespond()
    await made.aclose()
    return agent.current_dialog


def test_a_stream_that_breaks_off_in_the_block(vendor: Vendor) -> None:
    """A block of which only a part came is no beginning: the request is sent again, and the whole block counts."""
    if not vendor.streamed:
        pytest.skip("whole answers do not break off")
    with vendor.server as server:
        answers = [strict.NextAnswer([vendor.kept, f"Seen {number}."]) for number in range(8)]
        answers[:0] = [strict.NextAnswer([{"type": "compaction", "content": "So far."}, "Never."], cut=3)]
        server.answers(*answers)
        dialog = anyio.run(_asked, vendor, 8)
        assert not server.refused
        assert not server.dropped
    first = [call.view().exchanges[0].derived for call in dialog.calls]
    assert first[:3] == ["", "", ""], "the broken answer begins the view"
    assert first[-1] == "record"


# --- on demand -----------------------------------------------------------------------------------------------------------

ROOM: Final = 4_000_000


def test_a_compaction_on_demand(vendor: Vendor) -> None:
    """«on-demand: summarised messages left in», «on-demand: block not first», «trigger not last x Responses»: asked between two turns, the provider returns its block alone; the next request begins with it, and has no threshold beside it."""
    dialog = Session.create().root
    dialog.put_text("Plan releases.", role="system")
    for number in range(2):
        vendor.ask(dialog, f"Say {number}.")
    vendor.server.answers([{"type": "compaction", "content": "So far."}])
    request = dialog.request(vendor.api, vendor.model, policy="provider", budget=ROOM, compact=True)
    dialog.append(vendor.send(request))
    vendor.server.script.clear()
    if vendor.api == "anthropic":
        assert request.body["compaction"] == {"type": "summarize"}
        assert "context_management" not in request.body
    else:
        assert request.body["input"][-1] == {"type": "compaction_trigger"}
    for _ in range(2):
        vendor.server.answers([vendor.kept, "Well."])
        dialog.put_text("And now?")
        request = dialog.request(vendor.api, vendor.model, policy="provider", budget=ROOM)
        dialog.append(vendor.send(request))
        assert "compaction" in request.data.decode()
        assert "Answer to" not in request.data.decode()
        assert ("context_management" in request.body) is (vendor.api != "anthropic")
    assert not vendor.server.refused
    assert not vendor.server.dropped
    assert [call.request().digest for call in dialog.calls][-1] == request.digest


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
def test_an_agent_asks_on_demand(api: str) -> None:
    """`agent.compact()` asks the provider between two turns, records the call and its block, and the next turn begins there."""
    vendor = Vendor(api)
    with vendor.server as server:
        server.script.otherwise = lambda asked: strict.NextAnswer(
            [{"type": "compaction", "content": "So far."}] if asked.body.get("compaction") else [vendor.kept, "Seen."]
        )
        dialog = anyio.run(partial(_asked, vendor, 3, limit=ROOM, demand=True))
        assert not server.refused
        assert not server.dropped
    assert len(dialog.calls) == 4
    assert len(blocks(dialog)) == 1
    assert [call.view().exchanges[0].derived for call in dialog.calls] == ["", "", "", "record"]
    sent = json.dumps(server.served[-1].asked.body)
    assert "compaction" in sent
    assert "Seen." not in sent


def test_an_agent_compacts_by_its_own_policy() -> None:
    """Under any other policy, `agent.compact()` commits its plan; in an unanswered dialog, or where nothing compacts, it refuses."""
    model = ScriptedProvider(["word " * 400] * 3)
    agent = Agent("looker", "Look.", "gpt-5.2", model, context_manager="palaver", budget=4_000)
    agent.respond("One.")
    agent.respond("Two.")
    place = agent.compact()
    assert agent.current_dialog.store.header(*place[:2]).kind == "compaction"
    agent.receive("Three.")
    with pytest.raises(InvalidInput, match="waits for an answer"):
        agent.compact()
    with pytest.raises(InvalidInput, match="compacts no conversation"):
        agent.current_dialog.request("gemini", "gemini-3.6-flash", compact=True)
    with pytest.raises(InvalidInput, match="Triggers do nothing"):
        Agent("a", "B.", "gpt-5.2", model, context_manager="provider", budget=LIMIT, triggers=[Idle(60)]).respond("Hi.")


# --- what becomes of the block -------------------------------------------------------------------------------------------


def test_a_branch_from_before_the_block_has_the_log(vendor: Vendor) -> None:
    """A fork or a rewind to before the block shows what it stood for; a branch that shares it begins with it."""
    dialog, requests = talked(vendor)
    (block, _), *_ = blocks(dialog)
    said = Handle(block.dialog, block.seq - 1)
    rewound = dialog.session.rewind(said, dialog).apply()
    short, with_block = dialog.fork(last_n=1, first_k=3), dialog.fork()
    for branch, begins in ((rewound, "text"), (short, "text"), (with_block, "compaction")):
        request = vendor.ask(branch, "And now?")
        assert vendor.opening(request) == begins or (begins == "text" and vendor.opening(request) == "message")
        shown = branch.calls[-1].view()
        assert (shown.exchanges[0].derived == "record") is (begins == "compaction")
    assert not vendor.server.refused
    assert not vendor.server.dropped
    assert vendor.opening(requests[0]) != "compaction"


@pytest.mark.parametrize(("api", "other", "name"), [
    ("anthropic", "openai-responses", "gpt-5.2"),
    ("anthropic", "gemini", "gemini-3.6-flash"),
    ("openai-responses", "anthropic", "claude-opus-4-6"),
    ("openai-responses", "openai-chat", "gpt-5.2"),
])  # fmt: skip
def test_another_model_gets_the_log(api: str, other: str, name: str) -> None:
    """«compaction block → other provider»: a model of another maker, or in an API without the block, gets what was said; back at its maker, requests begin with the block again."""
    vendor = Vendor(api)
    with vendor.server:
        dialog, _ = talked(vendor)
        dialog.put_text("What did I say?")
        request = dialog.request(other, name, policy="provider", budget=LIMIT)
        words = request.data.decode()
        assert all(f"Say {number}." in words for number in range(3))
        assert "encrypted_content" not in words
        noted = {change.what for change in request.report}
        assert "block" in noted
        assert ("compaction" in noted) is (other in {"gemini", "openai-chat"})
        dialog.append({"role": "assistant", "content": "Things."})
        assert vendor.opening(vendor.ask(dialog, "Back.")) == "compaction"
        assert not vendor.server.refused
        assert not vendor.server.dropped


def test_another_model_keeps_within_the_limit() -> None:
    """Where the log without the block is too large for another model, `palaver` makes it fit, with a record."""
    vendor = Vendor("anthropic")
    with vendor.server:
        dialog, _ = talked(vendor)
        dialog.put_text("What did I say?")
        request = dialog.request("openai-responses", "gpt-5.2", policy="provider", budget=600)
    assert "[Record of" in request.data.decode()


# --- what is asked -------------------------------------------------------------------------------------------------------


def test_what_a_model_does_not_compact_is_noted() -> None:
    """Law 14: a model that compacts nothing is not asked to, and a threshold below the provider's least is raised; both are noted."""
    dialog = Session.create().root
    dialog.put_text("Hello.")
    old = dialog.request("anthropic", "claude-haiku-4-5", policy="provider", budget=LIMIT)
    assert "context_management" not in old.body
    assert [change.what for change in old.report] == ["compaction"]
    small = dialog.request("anthropic", CLAUDE, policy="provider", budget=8_000)
    assert small.body["context_management"]["edits"][0]["trigger"]["value"] == 50_000
    assert [change.what for change in small.report] == ["compaction"]
    plain = dialog.request("anthropic", CLAUDE, policy="palaver", budget=LIMIT)
    assert "context_management" not in plain.body


def test_the_callers_own_edits_stay() -> None:
    """A caller's own context edits stand before the policy's, and a compaction that the caller asks for replaces it."""
    dialog = Session.create().root
    dialog.put_text("Hello.")

    def edits(*own: Json) -> list[str]:
        managed = {"context_management": {"edits": list(own)}}
        request = dialog.request("anthropic", CLAUDE, policy="provider", budget=LIMIT, parameters=managed)
        return [edit["type"] for edit in request.body["context_management"]["edits"]]

    clear, compact = {"type": "clear_tool_uses_20250919"}, {"type": "compact_20260112"}
    assert edits(clear) == ["clear_tool_uses_20250919", "compact_20260112"]
    assert edits(compact) == ["compact_20260112"]


def test_a_compaction_without_the_provider_is_refused() -> None:
    """Law 14: nobody gets another policy's compaction in place of the provider's."""
    dialog = Session.create().root
    dialog.put_text("Hello.")
    with pytest.raises(InvalidInput, match="asks the provider"):
        dialog.compaction.preview("provider", budget=LIMIT)


def test_fit_refuses_the_policy() -> None:
    """`fit` returns messages, and nobody would ask the provider."""
    with pytest.raises(InvalidInput, match="asks the provider to compact"):
        fit([{"role": "user", "content": "Hi."}], model="gpt-5.2", policy="provider")
