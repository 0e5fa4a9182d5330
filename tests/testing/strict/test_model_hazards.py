"""What models refuse, against the stand-ins: every request is accepted as it was compiled, or refused before it is sent, and only where it would be."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from palaver import Session
from palaver.errors import InvalidRequest
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.providers import Provider, collect, connect_model, profile
from palaver.session import Dialog
from palaver.testing import strict
from palaver.testing.strict.claude.models import MODELS as CLAUDES
from palaver.testing.strict.openai.models import MODELS as GPTS
from palaver.wire import Call, How, Request, compile, validate  # noqa: A004 - the word for it
from palaver.wire.models import ModelTable, read_model

BASH = ToolSpec(name="bash", description="Run a command.", parameters={"type": "object", "properties": {}})
THOUGHT = {"type": "thinking", "thinking": "hm"}
REASONING = {"type": "reasoning"}


def begun(*tools: ToolSpec) -> Dialog:
    """Return a dialog with instructions and one question."""
    dialog = Session.create().root
    dialog.record(Instructions(sections=(Section(name="role", text="Be brief."),)), Toolset(tools=tools))
    dialog.put_text("Hi.")
    return dialog


def ask(dialog: Dialog, provider: Provider, model: str, **fields: Any) -> Request:  # noqa: ANN401 - fields of a call
    """Ask a model through the vendor's client, and append its answer."""
    request = dialog.request(provider.profile_for(model), model, **fields)

    async def asked() -> None:
        dialog.append(await collect(provider.stream(request)))
        await provider.aclose()

    anyio.run(asked)
    return request


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server


@pytest.fixture
def responses() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Responses API."""
    with strict.openai_responses() as server:
        yield server


def adapter(kind: str, server: strict.StrictServer) -> Provider:
    """Return the adapter over the vendor's client for a stand-in."""
    return connect_model(f"{kind}/any", base_url=server.url, api_key="key")[0]


# --- the tables ----------------------------------------------------------------------------------------------------------


def reads(table: ModelTable, model: str, maker: str) -> bool:
    """Return whether a model reads the thinking of another by palaver's table."""
    return read_model(model) == read_model(maker) or any(
        reach.includes(read_model(maker)) for reach in table.row(model).reads
    )


def test_both_readings_of_the_pages_agree() -> None:
    """The stand-ins have tables of their own, from the same pages: each column of each model is the same."""
    from palaver.providers.anthropic.models import MODELS as CLAUDE_TABLE  # noqa: PLC0415 - under the name of the other
    from palaver.providers.openai_chat.models import MODELS as GPT_TABLE  # noqa: PLC0415 - the same

    for name, model in CLAUDES.items():
        row = CLAUDE_TABLE.row(name)
        mine = (str(row.thinks), row.bound, row.forced, row.sampling != "no", row.prefill, row.system_inside)
        theirs = (model.default, model.checks != "never", model.forced, model.sampling, model.prefill, model.system)
        assert (frozenset(row.thinking), row.quiet_effort, mine) == (model.types, model.disabled_up_to, theirs), name
        assert [reads(CLAUDE_TABLE, name, maker) for maker in CLAUDES] == [model.reads_from(maker) for maker in CLAUDES]
    for name, gpt in GPTS.items():
        row = GPT_TABLE.row(name)
        assert (row.bound, row.functions) == (gpt.preserved, gpt.chat_tools), name
        assert not row.efforts or row.efforts == gpt.efforts, name
        same = [other.family == gpt.family for other in GPTS.values() if gpt.family and other.family]
        assert same == [reads(GPT_TABLE, name, other.name) for other in GPTS.values() if gpt.family and other.family]


# --- heads ---------------------------------------------------------------------------------------------------------------

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"type": "adaptive"},
    {"type": "disabled"},
    {"type": "between_tools"},
    {"type": "enabled", "budget_tokens": 1_024},
)


def judged(server: strict.StrictServer, path: str, request: Request, headers: dict[str, str]) -> tuple[bool, str]:
    """Return whether palaver's checks and the stand-in agree about a request, and what the stand-in says."""
    served = server.ask(path, json.loads(request.data), {**headers, **request.headers})
    return (not validate(request.body, request.profile)) == (served.status == 200), served.message


def compiled(dialog: Dialog, name: str, model: str, columns: dict[str, str] | None = None, **fields: Any) -> Request:  # noqa: ANN401
    """Compile a request without checking it."""
    return compile(dialog.view(), profile(name, model, columns), Call(model=model, **fields), lambda _: b"")


def test_claude_heads_are_refused_by_both_or_none() -> None:
    """«forced tool x Opus/Sonnet 5.5, Fable/Mythos», «forced + adaptive x Opus 5, Haiku 5.5», «temperature, version 2026-10-21, any Claude», «prefill x 4.6+»: each kind of thinking, each choice of tools, sampling in both versions of the API, for each model."""
    server, dialog = strict.anthropic(), begun(BASH)
    versions: tuple[dict[str, str], ...] = ({}, {"version": "2023-06-01"})
    product = itertools.product(CLAUDES, KINDS, ("", "bash"), (None, 0.5), versions, (False, True))
    for model, thinking, choice, temperature, version, auto in product:
        parameters = {"thinking": thinking} if thinking else {}
        fields = {"tool_choice": choice, "temperature": temperature, "max_tokens": 4_096, "auto_choice": auto}
        request = compiled(dialog, "anthropic", model, dict(version), parameters=parameters, **fields)
        headers = {"x-api-key": "key", "anthropic-version": version.get("version", "2026-10-21")}
        agreed, said = judged(server, "/v1/messages", request, headers)
        assert agreed, (model, thinking, choice, temperature, version, auto, said)
        server.forget()


def test_gpt_heads_are_refused_by_both_or_none() -> None:
    """«`instructions` every turn x GPT-6.2», «GPT-6 chat + tools»: each effort and sampling, with and without tools, in both of OpenAI's APIs, for each model."""
    headers = {"authorization": "Bearer key"}
    apis: tuple[tuple[str, str, strict.StrictServer, Callable[[str], dict[str, Any]]], ...] = (
        ("openai-chat", "/v1/chat/completions", strict.openai_chat(), lambda effort: {"reasoning_effort": effort}),
        (
            "openai-responses",
            "/v1/responses",
            strict.openai_responses(),
            lambda effort: {"reasoning": {"effort": effort}},
        ),
    )
    reasoning = [name for name, model in GPTS.items() if model.family]
    for (name, path, server, words), model, effort, tools in itertools.product(
        apis, reasoning, ("", "none", "low", "max"), ((), (BASH,))
    ):
        request = compiled(begun(*tools), name, model, temperature=0.5, parameters=words(effort) if effort else {})
        if effort and not request.profile.reasoning.efforts and effort not in GPTS[model].efforts:
            continue  # the efforts of older models are not in the table
        assert "temperature" not in request.body or GPTS[model].samples(effort or None), (name, model, effort)
        agreed, said = judged(server, path, request, headers)
        assert agreed, (name, model, effort, bool(tools), said)


def test_forced_tool_is_refused_or_left_to_the_model(claude: strict.StrictServer) -> None:
    """«forced tool x Opus/Sonnet 5.5, Fable/Mythos»: an error before anything is sent, or `auto` with a note."""
    provider = adapter("anthropic", claude)
    for model in ("claude-opus-5-5", "claude-sonnet-5-5", "claude-mythos-5-1"):
        with pytest.raises(InvalidRequest, match="auto_choice"):
            begun(BASH).request(provider.profile_for(model), model, tool_choice="required")
        request = ask(begun(BASH), provider, model, tool_choice="required", auto_choice=True)
        assert [change.what for change in request.report] == ["parameter"]
    assert not claude.refused


def test_temperature_is_left_out_with_a_note(claude: strict.StrictServer) -> None:
    """«temperature, version 2026-10-21, any Claude»: it is left out, and sent where the client names the older version."""
    provider = adapter("anthropic", claude)
    for model in ("claude-opus-5", "claude-sonnet-4-5"):
        request = ask(begun(), provider, model, temperature=0.5)
        assert [change.why for change in request.report] == ["temperature: this model takes no sampling parameters"]
    older = connect_model(
        "anthropic/any", base_url=claude.url, api_key="key", default_headers={"anthropic-version": "2023-06-01"}
    )[0]
    assert ask(begun(), older, "claude-sonnet-4-5", temperature=0.5).body["temperature"] == 0.5
    assert not claude.refused


def test_instructions_of_gpt_are_in_the_prefix(responses: strict.StrictServer) -> None:
    """«`instructions` every turn x GPT-6.2»: they are the first developer item, and reasoning goes on."""
    provider, dialog = adapter("openai-responses", responses), begun(BASH)
    for _ in range(2):
        responses.answers([REASONING, "Fine."])
        ask(dialog, provider, "gpt-6.2-sol")
        dialog.put_text("And?")
    request = ask(dialog, provider, "gpt-6.2-sol")
    assert request.body["input"][0]["role"] == "developer"
    assert sum(item["type"] == "reasoning" for item in request.body["input"]) == 2
    assert not responses.refused
    assert not responses.dropped


def test_tools_of_gpt_go_to_responses(responses: strict.StrictServer) -> None:
    """«GPT-6 chat + tools»: chat completions are refused before anything is sent, with the way out."""
    with pytest.raises(InvalidRequest, match="openai-responses"):
        begun(BASH).request("openai-chat", "gpt-6-astra")
    ask(begun(BASH), adapter("openai-responses", responses), "gpt-6-astra")
    assert connect_model("openai/gpt-6-astra", api_key="key")[0].profile_for("gpt-6-astra").name == "openai-responses"
    assert not responses.refused


# --- reading -------------------------------------------------------------------------------------------------------------


def thoughts(request: Request) -> int:
    """Count the blocks or items of thinking in a request."""
    return request.data.count(b'"type":"thinking"') + request.data.count(b'"type":"reasoning"')


def test_thinking_of_an_earlier_model_is_read(claude: strict.StrictServer) -> None:
    """«Opus 5 → Fable 5.1»: it goes, and comes along to the next models that read it."""
    provider, dialog = adapter("anthropic", claude), begun()
    for model, kept in (("claude-opus-5", 0), ("claude-fable-5-1", 1), ("claude-fable-5-2", 2)):
        claude.answers([THOUGHT, "Fine."])
        assert thoughts(ask(dialog, provider, model)) == kept, model
        dialog.put_text("And?")
    assert not claude.refused
    assert not claude.dropped


def test_thinking_that_is_not_read_comes_back(claude: strict.StrictServer) -> None:
    """«Fable 5.2 → Opus 5.5»: it is sent with a note, and what both think goes back together to the model that reads both."""
    provider, dialog = adapter("anthropic", claude), begun()
    claude.answers([THOUGHT, "Fine."], [THOUGHT, "Fine."], [THOUGHT, "Fine."])
    ask(dialog, provider, "claude-fable-5-2")
    for model, sent, unread in (("claude-opus-5-5", 1, 1), ("claude-fable-5-2", 2, 0)):
        dialog.put_text("And?")
        request = ask(dialog, provider, model)
        assert thoughts(request) == sent, model
        assert [change.how for change in request.report] == [How.KEPT] * unread
        assert [dropped["reason"] for dropped in claude.served[-1].dropped] == ["model_binding_mismatch"] * unread
    assert not claude.refused


def test_reasoning_is_read_within_one_family(responses: strict.StrictServer) -> None:
    """«GPT-5.6 → 6 reasoning»: it is left out with a note; another model of its family gets it."""
    provider, dialog = adapter("openai-responses", responses), begun()
    responses.answers([REASONING, "Fine."])
    ask(dialog, provider, "gpt-5.6-sol")
    for model, kept in (("gpt-6-sol", 0), ("gpt-5.6-luna", 1)):
        dialog.put_text("And?")
        responses.answers(["Fine."])
        request = ask(dialog, provider, model)
        assert thoughts(request) == kept, model
        assert len(request.report.lost()) == 1 - kept
    assert not responses.refused
    assert not responses.dropped
