"""Items of OpenAI's own tools go back as they came, with what they need; the stand-in of the Responses API refuses and withholds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from palaver.log import Toolset
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.providers.openai_responses.items import called
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing import strict
from palaver.wire import Request
from palaver.wire.script import CallPart
from tests.wire.scenes import BASH
from tests.wire.talks import accepted

Json = dict[str, Any]
MODEL = "gpt-6-sol"
THINK: Json = {"type": "reasoning"}
CALL: Json = {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}'}


@pytest.fixture
def server() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Responses API."""
    with strict.openai_responses() as running:
        yield running


def begun() -> Dialog:
    """Return a dialog with a tool."""
    dialog = Session.create(MemoryStore(), "talk").root
    dialog.record(Toolset(tools=(BASH,)))
    return dialog


def ask(
    server: strict.StrictServer,
    dialog: Dialog,
    text: str = "",
    *answer: Json | str,
    model: str = MODEL,
    **call: Any,  # noqa: ANN401 - of a call
) -> Request:
    """Say something, send the request through the client, and append the answer."""
    if text:
        dialog.put_text(text)
    if answer:
        server.answers(answer)
    request = dialog.request("openai-responses", model, **call)
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
        dialog.append(client.responses.create(**request))
    return request


def plain(item: Json) -> Json:
    """Return an item without its id, and without fields that say nothing."""
    return {key: value for key, value in item.items() if key != "id" and value is not None}


def kinds(request: Request) -> list[str]:
    """Return the types of the items of a request."""
    return [item["type"] for item in request.body["input"]]


VERBATIM: dict[str, list[Json]] = {
    "MCP": [
        {"type": "mcp_list_tools", "server_label": "birds", "tools": []},
        {"type": "mcp_call", "name": "find", "server_label": "birds", "arguments": "{}", "output": "A heron."},
    ],
    "an image": [{"type": "image_generation_call", "status": "completed", "result": "aGVyb24="}],
    "code": [
        {"type": "code_interpreter_call", "status": "completed", "container_id": "cntr_1", "code": "1", "outputs": None}
    ],
    "a search of the web": [
        {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "herons"}}
    ],
    "a search of tools": [
        {"type": "tool_search_call", "arguments": {}, "execution": "server", "status": "completed"},
        {"type": "tool_search_output", "tools": [], "execution": "server", "status": "completed"},
    ],
    "a compaction": [{"type": "compaction"}],
}


@pytest.mark.parametrize("name", sorted(VERBATIM))
def test_items_go_back_as_they_came(server: strict.StrictServer, name: str) -> None:
    """«reasoning without following item»: items of the provider's own tools go back verbatim with `store: false`, and with the reasoning that led to them."""
    dialog, items = begun(), VERBATIM[name]
    lead = [] if name == "a compaction" else [THINK]
    ask(server, dialog, "Go.", *lead, *items, "Done.")
    request = ask(server, dialog, "And?", "Well.")
    sent = [item for item in thaw(request.body)["input"] if item["type"] not in {"message", "reasoning"}]
    came = [item for item in server.served[0].body["output"] if item["type"] not in {"message", "reasoning"}]
    assert list(map(plain, sent)) == list(map(plain, came))
    assert [change for change in request.report.lost() if change.what != "conversation"] == []
    accepted(server)


def test_calls_keep_caller_namespace_and_program(server: strict.StrictServer) -> None:
    """function_call keeps `caller` and `namespace`, outputs repeat `caller`, and the program's `fingerprint` round-trips."""
    dialog = begun()
    program = {"type": "program", "code": "bash()", "call_id": "prog_1"}
    caller = {"type": "program", "caller_id": "prog_1"}
    ask(server, dialog, "Go.", THINK, program, CALL | {"caller": caller, "namespace": "shell"})
    (call,) = dialog.messages[-1].tool_calls()
    dialog.append(ToolMessage.from_results([ToolResultContent(id=call.id, content="a.py")]))
    request = ask(server, dialog, "", "Done.")
    sent, output = request.body["input"][-2:]
    assert (sent["caller"], sent["namespace"], output["caller"]) == (caller, "shell", caller)
    ask(server, dialog, "And?", "Well.")
    accepted(server)


def test_free_text_calls_go_back_as_their_items(server: strict.StrictServer) -> None:
    """A custom_tool_call goes back with its text, and is answered by an output of its kind."""
    dialog = begun()
    ask(server, dialog, "Go.", THINK, {"type": "custom_tool_call", "name": "sql", "input": "select 1"})
    (call,) = dialog.messages[-1].tool_calls()
    assert (call.name, call.args["input"]) == ("sql", "select 1")
    dialog.append(ToolMessage.from_results([ToolResultContent(id=call.id, content="1")]))
    request = ask(server, dialog, "", "Done.")
    assert kinds(request)[-2:] == ["custom_tool_call", "custom_tool_call_output"]
    assert request.body["input"][-2]["input"] == "select 1"
    accepted(server)


SHELL: Json = {"type": "shell_call", "action": {"commands": ["ls"]}}


def test_calls_go_back_without_fields_of_answers() -> None:
    """Who made a call is said in answers alone: a request with it would be refused."""
    made = {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls"]}, "created_by": "model"}
    part = CallPart(id="call_1", name="shell", args={}, raw="{}", artefact=made)
    assert "created_by" not in called(part)


@pytest.mark.parametrize("answered", [True, False])
def test_calls_of_tools_of_ours_need_their_output(server: strict.StrictServer, answered: bool) -> None:
    """A shell_call goes back with the output that the caller appended; one that nobody answered is left out with a note."""
    dialog = begun()
    ask(server, dialog, "Go.", THINK, SHELL)
    if answered:
        (call,) = [block for block in dialog.messages[-1].contents if block.type == "shell_call"]
        output = [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]
        dialog.append({"type": "shell_call_output", "call_id": call.model_extra["call_id"], "output": output})
    request = ask(server, dialog, "And?", "Done.")
    assert ("shell_call" in kinds(request)) == ("shell_call_output" in kinds(request)) == answered
    assert bool(request.report.lost()) != answered
    accepted(server)


def test_items_outlive_the_reasoning_before_them(server: strict.StrictServer) -> None:
    """«reasoning without following item», «foreign encrypted_content»: reasoning that cannot go back leaves, and what it led to gets another id, so that nothing asks for it."""
    dialog = begun()
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "herons"}}
    ask(server, dialog, "Go.", THINK, search, "Done.")
    request = ask(server, dialog, "And?", "Well.", model="gpt-5.6-luna")
    assert "reasoning" not in kinds(request)
    assert "web_search_call" in kinds(request)
    accepted(server)


def test_foreign_encrypted_content_stays_out(server: strict.StrictServer) -> None:
    """«foreign encrypted_content»: encrypted content of another maker is refused (invalid_encrypted_content): it is left out with a note."""
    dialog = begun()
    dialog.put_text("Go.")
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
    thought = ThinkingContent(provider="openrouter", artefact=item)
    dialog.append(AssistantMessage(contents=(thought, TextContent("Done.")), provider="openrouter", model=MODEL))
    request = ask(server, dialog, "And?", "Well.")
    assert [change.what for change in request.report.lost()] == ["thinking"]
    accepted(server)


def test_a_threshold_compaction_stands_for_what_precedes_it(server: strict.StrictServer) -> None:
    """«items before newest compaction dropped x Responses»: items before the newest compaction may be dropped; an item alone may end a window, whose messages stay."""
    dialog = begun()
    ask(server, dialog, "First.", THINK, "One.")
    parameters = {"context_management": [{"type": "compaction", "compact_threshold": 1}]}
    ask(server, dialog, "Second.", "Two.", parameters=parameters)
    request = ask(server, dialog, "And?", "Three.")
    assert kinds(request) == ["compaction", "message", "message"]
    assert [change.how.value for change in request.report.lost()] == ["replaced"]
    accepted(server)


def test_phases_are_kept(server: strict.StrictServer) -> None:
    """«`phase` lost»: a lost `phase` can degrade performance."""
    dialog = begun()
    ask(server, dialog, "Go.", THINK, {"type": "message", "content": "Looking.", "phase": "commentary"}, CALL)
    assert isinstance(dialog.messages[-1], Message)
    call = dialog.messages[-1].tool_calls()[0]
    dialog.append(ToolMessage.from_results([ToolResultContent(id=call.id, content="a.py")]))
    request = ask(server, dialog, "", "Done.")
    assert [item["phase"] for item in request.body["input"] if "phase" in item] == ["commentary"]
    accepted(server)


def test_a_streamed_compaction_is_whole(server: strict.StrictServer) -> None:
    """The item of a streamed compaction reaches the log with its encrypted content."""
    dialog = begun()
    dialog.put_text("Go.")
    server.answers([{"type": "compaction"}, "Done."])
    request = dialog.request("openai-responses", MODEL, stream=True)
    with openai.OpenAI(base_url=server.url, api_key="key", max_retries=0) as client:
        events: Any = client.responses.create(**request)
        pieces: list[Any] = [event.to_dict() for event in events]
    dialog.append(pieces[-1]["response"])
    assert dialog.messages[-1].contents[0].model_extra["encrypted_content"]
    ask(server, dialog, "And?", "Well.")
    accepted(server)


def test_items_of_codex_are_items_of_requests(server: strict.StrictServer) -> None:
    """Codex logs searches without ids and with a field of its own; each gets an id that requests want, and the field stays in the log."""
    search: Json = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}}
    own = {"internal_chat_message_metadata_passthrough": {"turn_id": "1"}}
    dialog = begun()
    dialog.put_text("Go.")
    contents = (UnknownContent.from_dict(search), UnknownContent.from_dict(search | own), TextContent("Done."))
    dialog.append(AssistantMessage(contents=contents, provider="openai", model=MODEL))
    request = ask(server, dialog, "And?", "Well.")
    sent = [item for item in thaw(request.body)["input"] if item["type"] == "web_search_call"]
    assert len({item["id"] for item in sent}) == 2
    assert all(item.keys() == {"id", *search} for item in sent)
    assert not server.refused
