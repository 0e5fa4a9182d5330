"""Instructions and tools that change while a conversation runs, against the stand-ins through the vendors' clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import Agent, Session
from palaver.context.meter import Meter
from palaver.errors import InvalidRequest
from palaver.log import Instructions, Section, Toolset, ToolSpec
from palaver.messages import AssistantMessage, TextContent, ToolMessage, ToolResultContent
from palaver.providers import Provider, collect, connect_model, profile
from palaver.session import Dialog
from palaver.testing import strict
from palaver.tokens import counter
from palaver.wire import Call, Request, broken_at, compile  # noqa: A004 - the word for it

SCHEMA = {"type": "object", "properties": {}}
BASH = ToolSpec(name="bash", description="Run a command.", parameters=SCHEMA)
READ = ToolSpec(name="read", description="Read a file.", parameters=SCHEMA)
THOUGHT = {"type": "thinking", "thinking": "hm"}
REASONING = {"type": "reasoning"}

TAKES = (
    "claude-fable-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5",
    "claude-opus-4-8",
)
"""Models that take instructions among the messages."""


@pytest.fixture
def responses() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Responses API."""
    with strict.openai_responses() as server:
        yield server


def instructed(*texts: str) -> Instructions:
    """Return instructions with a section for each text."""
    return Instructions(sections=tuple(Section(name=f"part {number}", text=text) for number, text in enumerate(texts)))


def begun(*tools: ToolSpec) -> Dialog:
    """Return a dialog with instructions and tools."""
    dialog = Session.create().root
    dialog.record(instructed("Be brief."), Toolset(tools=tools))
    return dialog


def adapter(kind: str, server: strict.StrictServer) -> Provider:
    """Return the adapter over the vendor's client for a stand-in."""
    return connect_model(f"{kind}/any", base_url=server.url, api_key="key")[0]


def ask(dialog: Dialog, provider: Provider, model: str, said: str = "", **fields: Any) -> Request:  # noqa: ANN401
    """Say something, ask a model through the vendor's client, and append its answer."""
    if said:
        dialog.put_text(said)
    request = dialog.request(provider.profile_for(model), model, **fields)

    async def asked() -> None:
        async with aclosing(provider.stream(request)) as events:
            dialog.append(await collect(events))
        await provider.aclose()

    anyio.run(asked)
    return request


def notes(request: Request, *about: str) -> list[str]:
    """Return what the report says about these."""
    return [change.why for change in request.report if change.what in about]


def of_role(request: Request, role: str) -> list[Any]:
    """Return the contents of the messages of a role."""
    field = request.profile.conversation
    return [item["content"] for item in request.body[field] if item.get("role") == role]


# --- instructions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", TAKES)
def test_new_instructions_keep_thinking(claude: strict.StrictServer, model: str) -> None:
    """«system changed x strict»: changed instructions are a system message after the user's words; what was sent before and all thinking stay."""
    thinking = {} if model != "claude-opus-4-8" else {"parameters": {"thinking": {"type": "adaptive"}}}
    claude.answers(*[(THOUGHT, "Done.")] * 4)
    dialog = begun(BASH)
    first = ask(dialog, adapter("anthropic", claude), model, "One.", **thinking)
    dialog.record(instructed("Be brief.", "Answer in French."))
    second = ask(dialog, adapter("anthropic", claude), model, "Two.", **thinking)
    dialog.record(instructed("Answer in Latin."))
    third = ask(dialog, adapter("anthropic", claude), model, "Three.", **thinking)
    fourth = ask(dialog, adapter("anthropic", claude), model, "Four.", **thinking)
    assert [broken_at(*pair) for pair in ((first, second), (second, third), (third, fourth))] == [None] * 3
    added, replaced = of_role(fourth, "system")
    assert [block["text"] for block in added] == ["Answer in French."]
    assert [block["text"] for block in replaced] == [
        "The instructions that follow replace all earlier instructions.",
        "Answer in Latin.",
    ]
    assert len([why for why in notes(fourth, "instructions") if "inside" in why]) == 2
    assert str(fourth.data).count('"signature"') == 3
    assert not claude.refused
    assert not claude.dropped


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-sonnet-4-5"])
def test_older_models_get_new_instructions_at_the_top(claude: strict.StrictServer, model: str) -> None:
    """A model that takes no system messages has the newest instructions in the field; the report says what that costs, once."""
    claude.answers(*[(THOUGHT, "Done.")] * 4)
    dialog = begun(BASH)
    ask(dialog, adapter("anthropic", claude), model, "One.")
    dialog.record(instructed("Answer in French."))
    second = ask(dialog, adapter("anthropic", claude), model, "Two.")
    third = ask(dialog, adapter("anthropic", claude), model, "Three.")
    assert [block["text"] for block in second.body["system"]] == ["Answer in French."]
    assert ["cached again" in why for why in notes(second, "instructions")] == [True]
    assert notes(third, "instructions") == []
    assert not claude.refused


@pytest.mark.parametrize("model", ["gpt-6.2-sol", "gpt-6.1-sol", "gpt-5.6-sol", "gpt-5"])
def test_new_instructions_keep_reasoning(responses: strict.StrictServer, model: str) -> None:
    """«tools/format/input edit x GPT-6.2»: changed instructions are an item where they came; what was sent before and all reasoning stay."""
    responses.answers(*[(REASONING, "Done.")] * 4)
    dialog = begun(BASH)
    include = {"parameters": {"include": ["reasoning.encrypted_content"]}}
    first = ask(dialog, adapter("openai-responses", responses), model, "One.", **include)
    dialog.record(instructed("Answer in French."))
    second = ask(dialog, adapter("openai-responses", responses), model, "Two.", **include)
    third = ask(dialog, adapter("openai-responses", responses), model, "Three.", **include)
    assert [broken_at(first, second), broken_at(second, third)] == [None, None]
    newest = of_role(third, "developer" if model.startswith("gpt-6.2") else "system")[-1]
    assert [part["text"] for part in newest] == [
        "The instructions that follow replace all earlier instructions.",
        "Answer in French.",
    ]
    assert [item["type"] for item in third.body["input"]].count("reasoning") == 2
    assert not responses.refused
    assert not responses.dropped


def test_changes_wait_for_words_of_the_user(claude: strict.StrictServer) -> None:
    """«system message after assistant text»: a change goes after results and after the user's words, never after the assistant's: there it waits, with a note."""
    claude.answers(
        (THOUGHT, {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}), *[(THOUGHT, "Done.")] * 2
    )
    model = "claude-fable-5-2"
    dialog = begun(BASH)
    first = ask(dialog, adapter("anthropic", claude), model, "One.")
    dialog.append(ToolMessage.from_result(ToolResultContent(id="toolu_1", name="bash", content="done")))
    dialog.record(instructed("Answer in French."))
    second = ask(dialog, adapter("anthropic", claude), model)
    dialog.record(instructed("Answer in Latin."))
    waiting = dialog.request("anthropic", model, then="And now?")
    third = ask(dialog, adapter("anthropic", claude), model, "Two.")
    assert [broken_at(first, second), broken_at(second, third)] == [None, None]
    assert [message["role"] for message in third.body["messages"]] == [
        "user",
        "assistant",
        "user",
        "system",
        "assistant",
        "user",
        "system",
    ]
    assert waiting.body["messages"] == third.body["messages"][:-2] + waiting.body["messages"][-2:]
    with pytest.raises(InvalidRequest):
        dialog.request("anthropic", model)
    history = compile(dialog.view(), profile("anthropic", model), Call(model=model), lambda _: b"")
    assert not notes(history, "instructions")[-1].startswith("not sent")
    dialog.record(instructed("Answer in Greek."))
    history = compile(dialog.view(), profile("anthropic", model), Call(model=model), lambda _: b"")
    assert notes(history, "instructions")[-1].startswith("not sent")
    assert not claude.refused
    assert not claude.dropped


def test_recorded_calls_keep_their_settings(claude: strict.StrictServer) -> None:
    """G4: a call is reproduced byte for byte after further changes and after a compaction."""
    claude.answers(*[(THOUGHT, "word " * 300)] * 4)
    model = "claude-fable-5-2"
    dialog = begun(BASH)
    ask(dialog, adapter("anthropic", claude), model, "One.")
    dialog.record(instructed("Answer in French."))
    ask(dialog, adapter("anthropic", claude), model, "Two.")
    request = dialog.request("anthropic", model, then="Three.")
    dialog.calls.record(request)
    dialog.record(instructed("Answer in Latin."), Toolset(tools=(READ,)))
    ask(dialog, adapter("anthropic", claude), model, "Three.")
    assert dialog.calls[-1].request().data == request.data
    dialog.compaction.preview("palaver", 600).approve()
    assert dialog.calls[-1].request().data == request.data


def test_settings_before_the_first_answer_are_the_head(claude: strict.StrictServer) -> None:
    """What is recorded after the first question and before its answer, as an agent does, changes nothing that was kept."""
    dialog = Session.create().root
    dialog.put_text("One.")
    dialog.record(instructed("Be brief."), Toolset(tools=(BASH,)))
    request = ask(dialog, adapter("anthropic", claude), "claude-fable-5-2")
    assert [block["text"] for block in request.body["system"]] == ["Be brief."]
    assert [tool["name"] for tool in request.body["tools"]] == ["bash"]
    assert [message["role"] for message in request.body["messages"]] == ["user"]
    assert not request.report.changes


def test_parts_of_instructions_change_alone(claude: strict.StrictServer) -> None:
    """Of several parts only those that changed are said again, named by their beginnings where these tell them apart."""
    claude.answers(*["Done."] * 4)
    model = "claude-fable-5-2"
    dialog = begun()
    dialog.record(instructed("You keep a shop.", "<memory>Ann</memory>", "Be brief."))
    ask(dialog, adapter("anthropic", claude), model, "One.")
    dialog.record(instructed("You keep a shop.", "<memory>Ann, Bob</memory>", "Be brief."))
    ask(dialog, adapter("anthropic", claude), model, "Two.")
    dialog.record(instructed("You keep a shop.", "Be brief."))
    ask(dialog, adapter("anthropic", claude), model, "Three.")
    dialog.record(instructed())
    last = ask(dialog, adapter("anthropic", claude), model, "Four.")
    texts = [[block["text"] for block in content] for content in of_role(last, "system")]
    assert [words[1:] for words in texts] == [["<memory>Ann, Bob</memory>"], [], []]
    assert "<memory>Ann</memory>" in texts[0][0]
    assert "<memory>Ann, Bob</memory>" in texts[1][0]
    assert texts[2] == ["The earlier instructions no longer apply."]
    assert len(last.body["system"]) == 3


def test_forks_and_earlier_views_have_their_own_settings(claude: strict.StrictServer) -> None:
    """A fork before a change and an earlier view know nothing of it; a fork after it goes on as the dialog does."""
    claude.answers(*[(THOUGHT, "Done.")] * 5)
    model = "claude-fable-5-2"
    dialog = begun(BASH)
    first = ask(dialog, adapter("anthropic", claude), model, "One.")
    before = dialog.fork()
    earlier = dialog.opened.last.seq
    dialog.record(instructed("Answer in French."))
    second = ask(dialog, adapter("anthropic", claude), model, "Two.")
    after = dialog.fork()
    side, main = (ask(branch, adapter("anthropic", claude), model, "Three.") for branch in (before, after))
    assert broken_at(first, side) is None
    assert not of_role(side, "system")
    assert broken_at(second, main) is None
    assert len(of_role(main, "system")) == 1
    assert dialog.request("anthropic", model, at=earlier, then="Now?").body["system"] == first.body["system"]
    assert str(main.data).count('"signature"') == 2
    assert not claude.refused
    assert not claude.dropped


def test_changes_wait_while_the_provider_works(claude: strict.StrictServer) -> None:
    """Nothing but results answers a turn in which a call of the provider's own waits: a change comes after the answer that ends it."""
    search = {"type": "server_tool_use", "name": "web_search", "input": {"query": "x"}}
    claude.answers(
        (THOUGHT, search, {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}),
        ({"type": "web_search_tool_result", "content": []}, "Done."),
        "Yes.",
    )
    dialog, provider, model = begun(BASH), adapter("anthropic", claude), "claude-fable-5-2"
    fields: dict[str, Any] = {"provider_tools": {"web_search": True}}
    ask(dialog, provider, model, "One.", **fields)
    (call,) = dialog.messages[-1].tool_calls()
    dialog.append(ToolMessage.from_results([ToolResultContent(id=call.id, content="r")]))
    dialog.record(instructed("Be kind."))
    first = ask(dialog, provider, model, **fields)
    second = ask(dialog, provider, model, "Two.", **fields)
    assert "system" not in [message["role"] for message in first.body["messages"]]
    assert [message["role"] for message in second.body["messages"]][-2:] == ["user", "system"]
    assert not claude.refused


def test_changes_keep_their_place_in_a_window() -> None:
    """In a branch with two parts of the dialog before it, a change comes where it came, not after what the branch adds."""
    dialog = begun(BASH)
    for said in ("One.", "Two."):
        dialog.put_text(said)
        dialog.append(AssistantMessage(contents=(TextContent(content="Done."),)))
    dialog.record(instructed("Be kind."))
    branch = dialog.fork(last_n=1)
    sent = []
    for said in ("Three.", "Four."):
        branch.put_text(said)
        sent.append(branch.request("anthropic", "claude-fable-5-2"))
        branch.append(AssistantMessage(contents=(TextContent(content="Done."),)))
    assert [message["role"] for message in sent[0].body["messages"]][-2:] == ["user", "system"]
    assert broken_at(*sent) is None


@pytest.mark.parametrize("committed", [True, False])
def test_a_cut_moves_changes_to_the_top(claude: strict.StrictServer, *, committed: bool) -> None:
    """What was changed before a cut is in the head after it; what changes later is inside again."""
    claude.answers(*[(THOUGHT, "word " * 200)] * 8)
    model = "claude-fable-5-2"
    dialog = begun(BASH)
    room = {} if committed else {"policy": "palaver", "budget": 800}
    ask(dialog, adapter("anthropic", claude), model, "One.")
    dialog.record(instructed("Answer in French."))
    for said in ("Two.", "Three.", "Four."):
        ask(dialog, adapter("anthropic", claude), model, said, **room)
    if committed:
        dialog.compaction.preview("palaver", 800).approve()
        assert not dialog.view().earlier
    cut = ask(dialog, adapter("anthropic", claude), model, "Five.", **room)
    assert [block["text"] for block in cut.body["system"]] == ["Answer in French."]
    dialog.record(instructed("Answer in Latin."))
    then = ask(dialog, adapter("anthropic", claude), model, "Six.")
    assert [block["text"] for block in then.body["system"]] == (["Answer in French."] if committed else ["Be brief."])
    assert of_role(then, "system")[-1][-1]["text"] == "Answer in Latin."
    assert not claude.refused
    assert not claude.dropped


def test_a_change_follows_to_another_provider(claude: strict.StrictServer, responses: strict.StrictServer) -> None:
    """A switch of provider writes the same changes in the other's form, and at the top where the other takes none inside."""
    claude.answers(*[(THOUGHT, "Done.")] * 2)
    responses.answers((REASONING, "Done."))
    dialog = begun(BASH)
    ask(dialog, adapter("anthropic", claude), "claude-fable-5-2", "One.")
    dialog.record(instructed("Answer in French."))
    second = ask(dialog, adapter("anthropic", claude), "claude-fable-5-2", "Two.")
    other = ask(dialog, adapter("openai-responses", responses), "gpt-6.2-sol", "Three.")
    back = ask(dialog, adapter("anthropic", claude), "claude-fable-5-2", "Four.")
    assert of_role(other, "developer")[0][0]["text"] == "Be brief."
    assert of_role(other, "developer")[1][-1]["text"] == "Answer in French."
    assert broken_at(second, back) is None
    plain = dialog.request("gemini", "gemini-3-pro", then="Five.")
    assert plain.body["systemInstruction"]["parts"] == [{"text": "Answer in French."}]
    assert not claude.refused
    assert not responses.refused
    assert not claude.dropped
    assert not responses.dropped


# --- tools ---------------------------------------------------------------------------------------------------------------

GREP = ToolSpec(name="grep", description="Find words.", parameters=SCHEMA)


def kinds(request: Request) -> list[list[tuple[str, str]]]:
    """Return the changes of tools in each system message: the kind and the name of the tool."""
    named = ([(block["type"], block["tool"]) for block in blocks] for blocks in of_role(request, "system"))
    return [[(kind, (tool.get("definition") or tool)["name"]) for kind, tool in pairs] for pairs in named]


@pytest.mark.parametrize("model", TAKES)
def test_changed_tools_keep_thinking(claude: strict.StrictServer, model: str) -> None:
    """«tool added x strict», «tool removed/described anew x strict»: tools are added, withdrawn and described anew in system messages; the list and all thinking stay."""
    thinking = {} if model != "claude-opus-4-8" else {"parameters": {"thinking": {"type": "adaptive"}}}
    claude.answers(*[(THOUGHT, "Done.")] * 5)
    dialog = begun(BASH)
    requests = [ask(dialog, adapter("anthropic", claude), model, "Go.", **thinking)]
    anew = BASH.model_copy(update={"description": "Run one command."})
    for tools in ((BASH, READ), (READ, BASH), (READ,), (anew,)):
        dialog.record(Toolset(tools=tools))
        requests.append(ask(dialog, adapter("anthropic", claude), model, "Go.", **thinking))
    assert [broken_at(*pair) for pair in pairwise(requests)] == [None] * 4
    assert kinds(requests[-1]) == [
        [("tool_addition", "read")],
        [("tool_removal", "bash")],
        [("tool_removal", "read"), ("tool_addition", "bash")],
    ]
    assert [tool["name"] for tool in requests[-1].body["tools"]] == ["bash"]
    assert all("inside" in why for why in notes(requests[-1], "tools"))
    assert str(requests[-1].data).count('"signature"') == 4
    assert not claude.refused
    assert not claude.dropped


def test_deferred_tools_keep_thinking(claude: strict.StrictServer) -> None:
    """«deferred unreferenced tool added x strict»: it is no prefix until a search shows it: one more is declared in the list, and thinking stays; what is shown and then changed unbinds what follows."""
    searched = (
        {"type": "server_tool_use", "name": "tool_search_tool_bm25", "input": {"query": "find"}},
        {
            "type": "tool_search_tool_result",
            "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "find"}],
            },
        },
    )
    claude.answers((THOUGHT, "Done."), (*searched, "Found."), *[(THOUGHT, "Done.")] * 3)
    model = "claude-fable-5-2"
    tools = [
        BASH,
        *(ToolSpec(name=name, description="Find.", parameters=SCHEMA, deferred=True) for name in ("find", "count")),
    ]
    dialog = begun(*tools[:2])
    for said in ("One.", "Two.", "Three."):
        ask(dialog, adapter("anthropic", claude), model, said)
    dialog.record(Toolset(tools=tuple(tools)))
    fourth = ask(dialog, adapter("anthropic", claude), model, "Four.")
    assert str(fourth.data).count('"signature"') == 2
    assert notes(fourth, "tools") == []
    dialog.record(Toolset(tools=(BASH, tools[1].model_copy(update={"description": "Look."}), tools[2])))
    fifth = ask(dialog, adapter("anthropic", claude), model, "Five.")
    assert str(fifth.data).count('"signature"') == 1
    assert len(notes(fifth, "thinking")) == 2
    assert not claude.refused
    assert not claude.dropped


def test_tools_of_older_models_change_at_the_top(claude: strict.StrictServer) -> None:
    """Where the model takes no changes inside, or the list was empty, the list changes: thinking leaves models that check, and the report counts it."""
    claude.answers(*[(THOUGHT, "Done.")] * 4)
    for model, first, lost in (("claude-sonnet-5", (BASH,), False), ("claude-fable-5-2", (), True)):
        dialog = begun(*first)
        ask(dialog, adapter("anthropic", claude), model, "One.")
        dialog.record(Toolset(tools=(BASH, READ)))
        second = ask(dialog, adapter("anthropic", claude), model, "Two.")
        assert [tool["name"] for tool in second.body["tools"]] == ["bash", "read"]
        assert ["1 answer leaves" in why for why in notes(second, "tools")] == [lost]
        assert ("signature" in str(second.data)) != lost
    assert not claude.refused
    assert not claude.dropped


def test_changed_tools_keep_reasoning(responses: strict.StrictServer) -> None:
    """«tools/format/input edit x GPT-6.2»: tools are added as an item and withdrawn by the choice; the list and all reasoning stay."""
    responses.answers(*[(REASONING, "Done.")] * 6)
    model, include = "gpt-6.2-sol", {"parameters": {"include": ["reasoning.encrypted_content"]}}
    dialog = begun(BASH)
    requests = [ask(dialog, adapter("openai-responses", responses), model, "Go.", **include)]
    for tools in ((BASH, READ), (READ,), (READ, GREP), (READ, GREP, BASH)):
        dialog.record(Toolset(tools=tools))
        requests.append(ask(dialog, adapter("openai-responses", responses), model, "Go.", **include))
    assert [broken_at(*pair) for pair in pairwise(requests)] == [None] * 4
    choices = [request.body.get("tool_choice", {}).get("tools", ()) for request in requests]
    assert [[tool["name"] for tool in listed] for listed in choices] == [[], [], ["read"], ["read", "grep"], []]
    assert [item["type"] for item in requests[-1].body["input"]].count("reasoning") == 4
    forced = dialog.request("openai-responses", model, then="Go.", tool_choice="grep")
    assert forced.body["tool_choice"] == {"type": "function", "name": "grep"}
    anew = GREP.model_copy(update={"description": "Find one word."})
    dialog.record(Toolset(tools=(anew,)))
    last = ask(dialog, adapter("openai-responses", responses), model, "Go.", **include)
    assert [tool["description"] for tool in last.body["tools"]] == ["Find one word."]
    assert "5 answers" in notes(last, "tools")[0]
    assert not responses.refused
    assert not responses.dropped


def test_an_agent_that_adopts_keeps_thinking(claude: strict.StrictServer) -> None:
    """Another agent goes on with a dialog: its instructions and tools are appended, and so are they back again."""

    def look(path: str) -> str:
        """Look at a file."""
        return path

    claude.answers(*[(THOUGHT, "Done.")] * 4)
    model = "claude-fable-5-2"
    first = Agent("first", "You plan.", model, adapter("anthropic", claude), tools=[look])
    second = Agent("second", "You review.", model, adapter("anthropic", claude))
    dialog = Session.create().root
    for agent in (first, second):
        agent.adopt("work", dialog)
    for agent in (first, second, first, second):
        agent.respond("Go.")
    last = claude.served[-1].asked.body
    assert [message["role"] for message in last["messages"]].count("system") == 3
    assert str(last).count("'signature'") == 3
    assert last["system"][0]["text"] == "You plan."
    assert not claude.refused
    assert not claude.dropped


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["words", "call", "fork", "cut", "switch"]),
        st.none() | st.lists(st.sampled_from(["Be brief.", "In French.", "In Latin."]), max_size=3, unique=True),
        st.none() | st.lists(st.sampled_from([BASH, READ, GREP]), max_size=3, unique_by=lambda tool: tool.name),
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=CHANGES)
def test_requests_continue_each_other(
    steps: list[Any], claude: strict.StrictServer, responses: strict.StrictServer
) -> None:
    """Law 7 over changes of instructions and tools: without a cut each request begins with the one before, and nothing is refused or dropped."""
    dialog, before = begun(BASH), None
    apis = itertools.cycle([("anthropic", "claude-fable-5-2", claude), ("openai-responses", "gpt-6.2-sol", responses)])
    api, model, server = next(apis)
    for what, texts, tools in steps:
        if texts is not None:
            dialog.record(instructed(*texts))
        if tools is not None:
            dialog.record(Toolset(tools=tuple(tools)))
        if what == "fork":
            dialog = dialog.fork()
        if what == "switch":
            (api, model, server), before = next(apis), None
        if what == "cut" and dialog.compaction.preview("palaver", 200).worthwhile:
            dialog.compaction.preview("palaver", 200).approve()
            before = None
        thought = THOUGHT if api == "anthropic" else REASONING
        server.answers((thought, "word " * 20))
        fields = {} if api == "anthropic" else {"parameters": {"include": ["reasoning.encrypted_content"]}}
        request = ask(dialog, adapter(api, server), model, "Go on.", **fields)
        top = [why for why in notes(request, "instructions", "tools") if "at the top" in why]
        assert before is None or top or broken_at(before, request) is None
        before = request
    for server in (claude, responses):
        assert not server.refused
        assert not server.dropped


# --- the budget ----------------------------------------------------------------------------------------------------------


def test_the_budget_counts_changes_inside() -> None:
    """What is written between the exchanges counts, for models that take it there; a change at the top counts once."""
    dialog = begun(BASH)
    dialog.put_text("One.")
    dialog.put_text("Done.", role="assistant")
    meters = {
        model: Meter(counter(model)) for model in ("claude-fable-5-2", "claude-sonnet-5", "gpt-6.2-sol", "gemini-3-pro")
    }
    before = {model: meter.view(dialog.view()).total for model, meter in meters.items()}
    dialog.record(instructed("Be brief.", "word " * 500))
    for model, meter in meters.items():
        size = meter.view(dialog.view())
        inside = model in {"claude-fable-5-2", "gpt-6.2-sol"}
        assert size.total - before[model] >= 500
        assert (size.messages > 500) == inside
        assert meter.estimate(dialog.view()).total == size.total
