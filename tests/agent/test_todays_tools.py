"""Tools of today in an agent's turn: deferred, called by code, with free text, and those whose declaration is the provider's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from palaver.agent import Agent, Decision, ProviderInvoker
from palaver.errors import DecisionNeeded
from palaver.messages import ImageContent, Media
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.testing import strict
from palaver.tools import Function, tool
from tests.clients import opened
from tests.wire.pictures import png
from tests.wire.talks import STRICT, THOUGHT, accepted

Json = dict[str, Any]

REASONED: Json = {"type": "reasoning"}
GPT = "gpt-6.2-sol"
RAN: list[Any] = []


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server


@pytest.fixture
def gpt() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Responses API."""
    with strict.openai_responses() as server:
        yield server


def of_claude(server: strict.StrictServer, *tools: Function, model: str = STRICT, **options: Any) -> Agent:  # noqa: ANN401
    """Return an agent of the stand-in of the Messages API."""
    RAN.clear()
    provider = AnthropicProvider(base_url=server.url, api_key="key")
    return Agent("tester", "Be brief.", model, ProviderInvoker(opened(provider)), tools=tools, **options).open("main")


def of_gpt(server: strict.StrictServer, *tools: Function, model: str = GPT, **options: Any) -> Agent:  # noqa: ANN401
    """Return an agent of the stand-in of the Responses API."""
    RAN.clear()
    provider = OpenAIProvider(api="responses", base_url=server.url, api_key="key")
    return Agent("tester", "Be brief.", model, ProviderInvoker(opened(provider)), tools=tools, **options).open("main")


def body(server: strict.StrictServer, number: int = -1) -> Json:
    """Return the body of a request that was served."""
    sent: Json = server.served[number].asked.body
    return sent


@tool(deferred=True)
def weather(city: str) -> str:
    """Report the weather."""
    RAN.append(city)
    return "rain"


@tool(callers=["code"])
def prices(stock: str) -> str:
    """Return a price."""
    RAN.append(stock)
    return "17"


@tool(format={"syntax": "regex", "definition": "[a-z ]+"})
def query(sql: str) -> str:
    """Run a query."""
    RAN.append(sql)
    return "3 rows"


@tool(native="bash")
def terminal(command: str = "", *, restart: bool = False) -> str:
    """Run a command."""
    RAN.append("restart" if restart else command)
    return "done"


@tool(native="computer_use")
def screen(action: str, coordinate: list[int] | None = None) -> str:
    """Use the screen."""
    RAN.append((action, coordinate))
    return "clicked"


@tool(native="computer_use")
def desktop(actions: list[Json]) -> list[Any]:
    """Use the screen, one action after another."""
    RAN.append([action["type"] for action in actions])
    if not actions:
        raise OSError("no screen")
    return ["It beeps.", ImageContent([Media(data=png(), media_type="image/png")])]


@tool(native="shell")
def shell(commands: list[str], timeout_ms: int | None = None) -> str:
    """Run commands."""
    RAN.append((commands, timeout_ms))
    return "a.txt"


@tool(native="apply_patch")
def patch(type: str, path: str, diff: str = "") -> str:  # noqa: A002 - the provider's word
    """Change a file."""
    if not diff:
        raise OSError(path)
    RAN.append((type, path, diff))
    return "written"


@tool(group={"crm": "Customers and their tickets."}, deferred=True)
def customer(number: int) -> str:
    """Look up a customer."""
    RAN.append(number)
    return "Ann"


SEARCHED: Json = {"type": "server_tool_use", "name": "tool_search_tool_bm25", "input": {"query": "weather"}}
REFERENCE: Json = {"type": "tool_reference", "tool_name": "weather"}
DISCOVERED: Json = {
    "type": "tool_search_tool_result",
    "content": {"type": "tool_search_tool_search_result", "tool_references": [REFERENCE]},
}


def test_a_deferred_tool_is_found_and_run(claude: strict.StrictServer) -> None:
    """`defer_loading` and a search go with each request; the call that follows the search runs, and its history is valid."""
    agent = of_claude(claude, weather)
    asked = {"type": "tool_use", "name": "weather", "input": {"city": "Bern"}}
    claude.answers([THOUGHT, SEARCHED, DISCOVERED, THOUGHT, asked], [THOUGHT, "Rain."])
    assert agent.respond("And today?").content == "Rain."
    assert RAN == ["Bern"]
    declared, search = body(claude)["tools"]
    assert declared["defer_loading"]
    assert search["type"] == "tool_search_tool_bm25_20251119"
    kinds = [block["type"] for block in body(claude)["messages"][1]["content"]]
    assert kinds == ["thinking", "server_tool_use", "tool_search_tool_result", "thinking", "tool_use"]
    accepted(claude)


def test_a_deferred_tool_of_responses_is_found_and_run(gpt: strict.StrictServer) -> None:
    """The search and what it loaded go back as they came, and the call that follows runs."""
    agent = of_gpt(gpt, weather)
    search = {
        "type": "tool_search_call",
        "arguments": {"paths": ["weather"]},
        "execution": "server",
        "status": "completed",
    }
    loaded = {"type": "tool_search_output", "execution": "server", "status": "completed", "tools": []}
    call = {"type": "function_call", "name": "weather", "arguments": '{"city": "Bern"}'}
    gpt.answers([REASONED, search, loaded, call], "Rain.")
    assert agent.respond("And today?").content == "Rain."
    assert RAN == ["Bern"]
    declared, searching = body(gpt)["tools"]
    assert declared["defer_loading"]
    assert searching == {"type": "tool_search"}
    accepted(gpt)


def test_tools_of_a_group_are_declared_together(gpt: strict.StrictServer) -> None:
    """A group of tools is a `namespace` for Responses; its calls run, and go back with it. Elsewhere each is declared alone, with a note."""
    agent = of_gpt(gpt, customer, query, customer.extend(name="ticket"))
    call = {"type": "function_call", "name": "customer", "namespace": "crm", "arguments": '{"number": 7}'}
    gpt.answers([REASONED, call], "Ann.")
    assert agent.respond("Who is it?").content == "Ann."
    assert RAN == [7]
    group, single, _ = body(gpt)["tools"]
    assert (group["type"], group["name"], group["description"]) == ("namespace", "crm", "Customers and their tickets.")
    assert [(each["name"], each["defer_loading"]) for each in group["tools"]] == [("customer", True), ("ticket", True)]
    assert single["name"] == "query"
    assert next(item for item in body(gpt)["input"] if item["type"] == "function_call")["namespace"] == "crm"
    accepted(gpt)
    for api, model in (("openai-responses", "gpt-5"), ("anthropic", STRICT)):
        request = agent.current_dialog.request(api, model, then="Go on.")
        assert "namespace" not in str(request.body["tools"])
        assert any("without its group" in change.why for change in request.report)
        request.check()


def test_a_tool_is_declared_plainly_where_none_is_deferred(claude: strict.StrictServer) -> None:
    """A model without a search gets the whole declaration, and the report says so; a history with a search goes on there."""
    agent = of_claude(claude, weather)
    asked = {"type": "tool_use", "name": "weather", "input": {"city": "Bern"}}
    claude.answers([THOUGHT, SEARCHED, DISCOVERED, THOUGHT, asked], [THOUGHT, "Rain."])
    agent.respond("And today?")
    dialog = agent.current_dialog
    for name, model in (
        ("openai-chat", "gpt-4o"),
        ("openai-responses", "gpt-5"),
        ("gemini", "gemini-3-pro"),
        ("anthropic", "claude-opus-4-1"),
    ):
        request = dialog.request(name, model, then="Go on.")
        assert "defer" not in str(request.body["tools"])
        assert any("cannot search" in change.why for change in request.report)
        request.check()
    for fork in (dialog.fork(), dialog.fork(2, 0)):
        fork.request("anthropic", STRICT, then="Go on.").check()


def test_code_calls_a_tool_and_waits_for_results_only(claude: strict.StrictServer) -> None:
    """A call by code runs; the next turn has its result alone, with the caller and the container."""
    agent = of_claude(claude, prices)
    code = {"type": "server_tool_use", "name": "code_execution", "input": {"code": "prices()"}}
    asked = {
        "type": "tool_use",
        "name": "prices",
        "input": {"stock": "X"},
        "caller": {"type": "code_execution_20250825"},
    }
    done = {
        "type": "code_execution_tool_result",
        "content": {"type": "code_execution_result", "stdout": "17", "stderr": "", "return_code": 0, "content": []},
    }

    def answer(sent: strict.HttpRequest) -> strict.NextAnswer:
        if len(sent.body["messages"]) == 1:
            agent.receive("Also Y.")
            return strict.NextAnswer([THOUGHT, code, asked])
        return strict.NextAnswer([done, THOUGHT, "17."])

    claude.script.otherwise = answer
    assert agent.respond("What is it worth?").text_content() == "17."
    assert RAN == ["X"]
    declared, running = body(claude)["tools"]
    assert declared["allowed_callers"] == [running["type"]] == ["code_execution_20250825"]
    assert [block["type"] for block in body(claude)["messages"][-1]["content"]] == ["tool_result"]
    assert body(claude)["container"]
    accepted(claude)


def test_a_program_of_responses_calls_a_tool(gpt: strict.StrictServer) -> None:
    """A call by a program runs, and its output names the program."""
    agent = of_gpt(gpt, prices)
    program = {"type": "program", "call_id": "call_p", "code": "await tools.prices()"}
    call = {
        "type": "function_call",
        "name": "prices",
        "arguments": '{"stock": "X"}',
        "caller": {"type": "program", "caller_id": "call_p"},
    }
    gpt.answers([REASONED, program, call], ["17."])
    assert agent.respond("What is it worth?").text_content() == "17."
    assert RAN == ["X"]
    declared, programs = body(gpt)["tools"]
    assert declared["allowed_callers"] == ["programmatic"]
    assert programs == {"type": "programmatic_tool_calling"}
    assert body(gpt)["input"][-1]["caller"] == {"type": "program", "caller_id": "call_p"}
    accepted(gpt)


def test_free_text_is_the_one_argument_of_a_tool(gpt: strict.StrictServer) -> None:
    """A tool with a format is `custom` for Responses and a function elsewhere; the text comes as its argument."""
    agent = of_gpt(gpt, query)
    gpt.answers([REASONED, {"type": "custom_tool_call", "name": "query", "input": "select all"}], "Three.")
    assert agent.respond("How many?", args={"tool_choice": "query"}).content == "Three."
    assert RAN == ["select all"]
    (declared,) = body(gpt)["tools"]
    assert declared["format"] == {"type": "grammar", "syntax": "regex", "definition": "[a-z ]+"}
    assert body(gpt)["tool_choice"] == {"type": "custom", "name": "query"}
    assert body(gpt)["input"][-1]["type"] == "custom_tool_call_output"
    accepted(gpt)
    request = agent.current_dialog.request("anthropic", "claude-opus-4-8", then="Go on.")
    assert list(request.body["tools"][0]["input_schema"]["properties"]) == ["sql"]


def test_a_function_runs_the_calls_of_the_providers_own_tool(claude: strict.StrictServer) -> None:
    """`bash` is declared as Anthropic's, under its name, and as a function elsewhere; approval is asked for like that of any tool."""
    agent = of_claude(claude, terminal.extend(needs_approval=True))
    claude.answers([THOUGHT, {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}], [THOUGHT, "Done."])
    with pytest.raises(DecisionNeeded) as waits:
        agent.respond("List.")
    (call,) = waits.value.calls
    assert (call.name, RAN) == ("terminal", [])
    agent.approve(call.id)
    assert agent.respond().content == "Done."
    assert RAN == ["ls"]
    assert body(claude)["tools"][0]["type"] == "bash_20250124"
    accepted(claude)
    request = agent.current_dialog.request("openai-responses", GPT, then="Go on.")
    assert [(item["type"], item["name"]) for item in request.body["tools"]] == [("function", "terminal")]


@pytest.mark.parametrize("streamed", [True, False])
def test_one_function_runs_all_members_of_a_toolset(claude: strict.StrictServer, streamed: bool) -> None:
    """The member is the function's `action`; call and result go back with the toolset, under the member's name, streamed or not."""
    agent = of_claude(claude, screen, stream_handler=(lambda _: None) if streamed else None)
    click = {"type": "tool_use", "name": "left_click", "toolset_name": "computer", "input": {"coordinate": [1, 2]}}
    claude.answers([THOUGHT, click], [THOUGHT, "Done."])
    assert agent.respond("Click.").content == "Done."
    assert RAN == [("left_click", [1, 2])]
    assert body(claude)["tools"][0]["type"] == "computer_toolset_20260801"
    call, result = body(claude)["messages"][1]["content"][-1], body(claude)["messages"][2]["content"][0]
    assert (call["name"], call["input"]) == ("left_click", {"coordinate": [1, 2]})
    assert call["toolset_name"] == result["toolset_name"] == "computer"
    accepted(claude)
    request = agent.current_dialog.request("openai-responses", GPT, then="Go on.")
    assert [item["name"] for item in request.body["input"] if item["type"] == "function_call"] == ["computer"]


def test_shell_and_patches_are_answered_in_their_own_kind(gpt: strict.StrictServer) -> None:
    """Calls of `shell` and `apply_patch` run; their outputs have the kind of the call, and say what failed."""
    agent = of_gpt(gpt, shell, patch)
    run = {"type": "shell_call", "action": {"commands": ["ls"], "timeout_ms": 5, "max_output_length": None}}
    gpt.answers(
        [REASONED, run, {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}],
        [{"type": "apply_patch_call", "operation": {"type": "create_file", "path": "a", "diff": "+x"}}],
        "Done.",
    )
    assert agent.respond("Go.").content == "Done."
    assert RAN == [(["ls"], 5), ("create_file", "a", "+x")]
    assert body(gpt)["tools"] == [{"type": "shell", "environment": {"type": "local"}}, {"type": "apply_patch"}]
    outputs = [item for item in body(gpt)["input"] if item["type"].endswith("_output")]
    assert outputs[0]["output"] == [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
    assert [output.get("status") for output in outputs] == [None, "failed", "completed"]
    accepted(gpt)
    agent.current_dialog.request("anthropic", STRICT, then="Go on.").check()


def test_a_function_uses_the_computer_of_responses(gpt: strict.StrictServer) -> None:
    """`computer` runs batches of actions and single ones; a screenshot answers, with its words after it; a failure has a blank picture."""
    agent = of_gpt(gpt, desktop)
    batch = [{"type": "click", "x": 1, "y": 2, "button": "left"}, {"type": "wait"}]
    gpt.answers(
        [REASONED, {"type": "computer_call", "actions": batch}],
        [{"type": "computer_call", "action": {"type": "screenshot"}}, {"type": "computer_call", "actions": []}],
        "Done.",
    )
    assert agent.respond("Click.").content == "Done."
    assert sorted(RAN) == [[], ["click", "wait"], ["screenshot"]]
    assert body(gpt)["tools"] == [{"type": "computer"}]
    sent = body(gpt)["input"]
    shots = [item["output"]["image_url"] for item in sent if item["type"] == "computer_call_output"]
    assert shots[0] == shots[1] != shots[2]
    words = [str(item["content"]) for item in sent if item["type"] == "message"][2:]
    assert ["beeps" in text for text in words] == [True, True, False]
    assert "no screen" in words[2]
    accepted(gpt)
    agent.current_dialog.request("anthropic", STRICT, then="Go on.").check()
    agent.current_dialog.request("gemini-interactions", "gemini-3.6-flash", then="Go on.").check()


@pytest.mark.parametrize("agreed", [True, False])
def test_a_call_that_the_provider_warns_of_waits(gpt: strict.StrictServer, agreed: bool) -> None:
    """A safety check makes a call wait for a person; the output acknowledges it, and a call that was denied did not run."""
    agent = of_gpt(gpt, desktop)
    check = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "The page may lie."}
    warned = {"type": "computer_call", "actions": [{"type": "wait"}], "pending_safety_checks": [check]}
    gpt.answers([REASONED, warned], "Done.")
    with pytest.raises(DecisionNeeded) as waits:
        agent.respond("Wait.")
    (call,) = waits.value.calls
    assert (call.name, call.artefact["pending_safety_checks"]) == ("desktop", [check])
    if agreed:
        agent.approve(call.id)
    else:
        agent.deny(call.id, "No.")
    assert agent.respond().content == "Done."
    assert len(RAN) == agreed
    (output,) = [item for item in body(gpt)["input"] if item["type"] == "computer_call_output"]
    assert output["acknowledged_safety_checks"] == [check]
    accepted(gpt)


TICKETS: Json = {"provider_tools": {"mcp": {"tickets": {"url": "https://example.org/mcp", "tools": ["close"]}}}}
MAY_I: Json = {
    "type": "mcp_approval_request",
    "server_label": "tickets",
    "name": "close",
    "arguments": '{"number": 7}',
}
CLOSED: Json = {
    "type": "mcp_call",
    "server_label": "tickets",
    "name": "close",
    "arguments": '{"number": 7}',
    "output": "closed",
}


@pytest.mark.parametrize("agreed", [True, False])
def test_a_person_decides_about_a_call_of_the_provider(gpt: strict.StrictServer, agreed: bool) -> None:
    """A request for approval waits like any call, also of another process; the decision goes back as the API wants it. Nothing runs here."""
    agent = of_gpt(gpt, weather.extend(name="tickets_close"), model_args=TICKETS)
    gpt.answers([REASONED, MAY_I], [*([CLOSED] if agreed else []), "So be it."])
    with pytest.raises(DecisionNeeded) as waits:
        agent.respond("Close it.")
    (call,) = waits.value.calls
    assert (call.name, dict(call.args)) == ("tickets_close", {"number": 7})
    if agreed:
        agent.approve(call.id)
    else:
        agent.deny(call.id, "Not mine.")
    assert agent.respond().text_content() == "So be it."
    assert RAN == []
    request, response = body(gpt)["input"][-2:]
    assert response.pop("reason", "") == ("" if agreed else "This call was not run: it was not allowed. Not mine.")
    assert response == {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": agreed}
    agent.respond("Thanks.")
    accepted(gpt)
    agent.current_dialog.request("anthropic", STRICT, then="Go on.").check()


def test_arguments_of_a_call_of_the_provider_cannot_change(gpt: strict.StrictServer) -> None:
    """The provider would run the call as the model wrote it: an edit denies it."""
    agent = of_gpt(gpt, model_args=TICKETS, approve=lambda _: Decision(decision="edit", arguments={"number": 8}))
    gpt.answers([REASONED, MAY_I], "No.")
    assert agent.respond("Close it.").content == "No."
    assert body(gpt)["input"][-1]["approve"] is False
    accepted(gpt)


def test_servers_are_declared_in_the_words_of_each_api(claude: strict.StrictServer, gpt: strict.StrictServer) -> None:
    """Url, tools and approval of an MCP server have one spelling; where nobody is asked, a server that wants approval is left out."""
    agent = of_gpt(gpt, model_args=TICKETS)
    gpt.answers([{"type": "mcp_list_tools", "server_label": "tickets", "tools": []}, CLOSED, "Closed."], "Well.")
    agent.respond("Close it.")
    assert body(gpt)["tools"] == [
        {"type": "mcp", "server_label": "tickets", "server_url": "https://example.org/mcp", "allowed_tools": ["close"]}
    ]
    agent.respond("Thanks.")
    accepted(gpt)
    agent = of_claude(claude, model_args=TICKETS)
    call = {"type": "mcp_tool_use", "name": "close", "server_name": "tickets", "input": {"number": 7}}
    claude.answers([THOUGHT, call, {"type": "mcp_tool_result", "content": [], "is_error": False}, "Closed."], "Well.")
    agent.respond("Close it.")
    agent.respond("Thanks.")
    assert [block["type"] for block in body(claude)["messages"][1]["content"]][1:3] == [
        "mcp_tool_use",
        "mcp_tool_result",
    ]
    accepted(claude)
    asks = {"mcp": {"tickets": {"url": "https://example.org/mcp", "approval": "always"}}}
    request = agent.current_dialog.request("anthropic", STRICT, then="Go on.", provider_tools=asks)
    assert "mcp_servers" not in request.body
    assert any("asks nobody" in change.why for change in request.report.lost())
