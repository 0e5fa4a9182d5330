"""What only its provider reads goes back to it as it came, in the order in which it takes it; the stand-in of the Messages API refuses nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaver.messages import AssistantMessage
from palaver.session import Session
from palaver.store import MemoryStore
from palaver.testing import strict
from tests.wire.talks import CALL, FOUND, SEARCH, THOUGHT, WEB, Json, Talk, accepted

ADAPTIVE = {"parameters": {"thinking": {"type": "adaptive"}}}
NOVEL = {"type": "novelty", "tag": "x"}


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server


@pytest.mark.parametrize("stream", [False, True])
def test_a_paused_turn_is_sent_back_as_it_came(claude: strict.StrictServer, stream: bool) -> None:
    """«pause_turn tail without its server_tool_use»: a `pause_turn` tail without its server_tool_use makes the model repeat the turn, which is billed again."""
    talk = Talk(claude, **WEB)
    assert talk.ask("Search.", THOUGHT, "I look.", SEARCH, stream=stream).metadata["stop_reason"] == "pause_turn"
    talk.ask("", FOUND, THOUGHT, "Herons.", stream=stream)
    assert talk.kinds == [["text"], ["thinking", "text", "server_tool_use"]]
    assert talk.losses == []
    talk.ask("And?", "Well.")
    said = talk.kinds[1]
    assert said == ["thinking", "text", "server_tool_use", "web_search_tool_result", "thinking", "text"]
    accepted(claude)


@pytest.mark.parametrize("stream", [False, True])
def test_words_wait_for_a_mixed_turn(claude: strict.StrictServer, stream: bool) -> None:
    """«mixed turn, user text beside results»: user text beside the results of a mixed turn is refused: results only, text later."""
    talk = Talk(claude, **WEB)
    talk.ask("Go.", THOUGHT, SEARCH, CALL, stream=stream)
    talk.results()
    talk.dialog.put_text("Also this.")
    talk.ask("", FOUND, THOUGHT, "Herons.", stream=stream)
    assert talk.kinds[-1] == ["tool_result"]
    assert [loss for loss in talk.losses if loss.startswith("message")]
    talk.ask("", "Well.")
    assert talk.kinds[2:] == [["tool_result"], ["web_search_tool_result", "thinking", "text"], ["text"]]
    assert talk.sent[-1]["content"][0]["text"] == "Also this."
    talk.ask("And?", "Well.")
    accepted(claude)


def test_a_paused_turn_without_its_tool_stays_valid(claude: strict.StrictServer) -> None:
    """«server tool missing on next call»: a server tool that is missing on the next call is refused; its call is left out with a note."""
    talk = Talk(claude, **WEB)
    talk.ask("Search.", THOUGHT, "I look.", SEARCH)
    talk.ask("Never mind.", "Well.", provider_tools={})
    assert talk.kinds[1] == ["text"] or talk.kinds[1] == ["thinking", "text"]
    assert [loss for loss in talk.losses if "server_tool_use" in loss]
    accepted(claude)


def test_words_end_a_paused_turn(claude: strict.StrictServer) -> None:
    """What the user says over a paused turn is answered: the call that nobody answered is left out with a note."""
    talk = Talk(claude, **WEB)
    talk.ask("Search.", THOUGHT, "I look.", SEARCH)
    talk.ask("Never mind.", THOUGHT, "Well.")
    assert talk.kinds == [["text"], ["thinking", "text"], ["text"]]
    talk.ask("And?", THOUGHT, "Well.")
    assert talk.kinds[1] == ["thinking", "text"]
    accepted(claude)


@pytest.mark.parametrize("stream", [False, True])
def test_unknown_blocks_go_back_unchanged(claude: strict.StrictServer, stream: bool) -> None:
    """An unknown block of the same provider goes back verbatim; another provider gets none, with one note each."""
    talk = Talk(claude)
    talk.ask("Go.", THOUGHT, NOVEL, THOUGHT, "Done.", stream=stream)
    talk.ask("And?", "Well.", stream=stream)
    assert talk.kinds[1] == ["thinking", "novelty", "thinking", "text"]
    assert talk.losses == []
    other = talk.dialog.request("openai-responses", "gpt-5.2")
    assert [change.what for change in other.report.lost()].count("block") == 1
    accepted(claude)


def test_searches_are_readable_elsewhere(claude: strict.StrictServer) -> None:
    """Where the blocks of a search cannot go back, titles and addresses take their place."""
    talk = Talk(claude, **WEB)
    talk.ask("Search.", THOUGHT, SEARCH, FOUND, "Herons fish.")
    talk.dialog.put_text("And?")
    for name, model in (("openai-responses", "gpt-5.2"), ("gemini", "gemini-3-pro"), ("anthropic", talk.model)):
        request = talk.dialog.request(name, model)
        assert "https://example.org" in request.data.decode()
        assert "encrypted_content" not in request.data.decode()
        assert "server_tool_use" not in request.data.decode()
    talk.ask("", "Well.", provider_tools={})
    accepted(claude)


def compacted(claude: strict.StrictServer, *, stream: bool = False) -> Talk:
    """Return a dialog that the server compacted at a threshold."""
    talk = Talk(claude)
    talk.ask("First.", THOUGHT, "One.")
    words = "word " * 60_000
    edit = {
        "context_management": {
            "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
        }
    }
    talk.ask(words, THOUGHT, "Two.", parameters=edit, stream=stream)
    return talk


@pytest.mark.parametrize("stream", [False, True])
def test_a_compaction_stands_for_what_precedes_it(claude: strict.StrictServer, stream: bool) -> None:
    """«threshold compaction block lost»: a threshold compaction block that is lost has the whole history billed, and compacted again."""
    talk = compacted(claude, stream=stream)
    talk.ask("And?", THOUGHT, "Three.")
    assert talk.kinds == [["compaction", "thinking", "text"], ["text"]]
    assert talk.sent[0]["content"][0] == claude.served[-2].body["content"][0]
    assert [change.how.value for change in talk.request.report.lost()] == ["replaced"]
    talk.ask("And?", "Four.")
    assert talk.kinds[:3] == [["compaction", "thinking", "text"], ["text"], ["thinking", "text"]]
    accepted(claude)


def test_a_compaction_on_demand_comes_first(claude: strict.StrictServer) -> None:
    """«on-demand: summarised messages left in», «on-demand: block edited/null added», «on-demand: block not first»: summarised messages left in are billed twice; the block goes back first, byte for byte, with its header."""
    talk = Talk(claude)
    talk.ask("First.", THOUGHT, "One.")
    summary = talk.ask("Summarise.", "What was.", parameters={"compaction": {"type": "summarize"}})
    assert summary.metadata["stop_reason"] == "compaction"
    talk.ask("And?", THOUGHT, "Two.")
    assert talk.kinds == [["compaction"], ["text"]]
    talk.ask("And?", "Three.")
    assert talk.kinds == [["compaction"], ["text"], ["thinking", "text"], ["text"]]
    assert "compact-2026-09-04" in talk.request.headers["anthropic-beta"]
    accepted(claude)


def test_another_provider_gets_the_original_messages(claude: strict.StrictServer) -> None:
    """«compaction block → other provider»: another provider does not know the type: it gets the original messages, or the summary where they are not there."""
    talk = compacted(claude)
    talk.dialog.put_text("And?")
    request = talk.dialog.request("openai-responses", "gpt-5.2")
    sent = request.data.decode()
    assert "First." in sent
    assert "Summary of the conversation." not in sent
    assert [change.what for change in request.report.lost()].count("block") == 1
    window = talk.dialog.fork(last_n=2, first_k=0)
    alone = window.request("openai-responses", "gpt-5.2").data.decode()
    assert "Summary of the conversation." in alone
    assert "First." not in alone


def test_calls_of_code_keep_their_container(claude: strict.StrictServer) -> None:
    """A call that code made is refused without its `caller` and the container in which the code waits."""
    talk = Talk(claude, provider_tools={"code_execution": True})
    code = {"type": "server_tool_use", "name": "code_execution", "input": {"code": "bash()"}}
    call = CALL | {"caller": {"type": "code_execution_20250825"}}
    done = {"type": "code_execution_tool_result", "content": {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0, "content": []}}  # fmt: skip
    talk.ask("Go.", THOUGHT, code, call)
    talk.results()
    talk.ask("", call, stream=True)
    talk.results()
    talk.ask("", done, THOUGHT, "One.")
    assert talk.request.body["container"].startswith("container_")
    talk.ask("And?", "Well.")
    accepted(claude)
    talk.ask("And?", "Well.", provider_tools={})
    accepted(claude)


def test_toolsets_are_named_on_call_and_result(claude: strict.StrictServer) -> None:
    """`toolset_name` is on the call and on its result."""
    talk = Talk(claude)
    talk.ask("Go.", THOUGHT, CALL | {"toolset_name": "computer"})
    talk.results()
    talk.ask("", "Well.")
    assert talk.sent[-1]["content"][0]["toolset_name"] == "computer"
    accepted(claude)


@pytest.mark.parametrize("stream", [False, True])
def test_a_fallback_ends_what_was_before_it(claude: strict.StrictServer, stream: bool) -> None:
    """«fallback turn, thinking before `fallback`»: in a fallback turn, thinking before `fallback` is refused; texts and the block itself stay."""
    talk = Talk(claude)
    fallback = {"type": "fallback", "from": {"model": talk.model}, "to": {"model": "claude-opus-4-8"}, "trigger": None}
    message = talk.ask("Go.", THOUGHT, "I wi", CALL, fallback, "Here.", stop="end_turn", stream=stream)
    assert message.tool_calls() == []
    talk.ask("And?", "Well.")
    assert talk.kinds[1] == ["text", "fallback", "text"]
    assert sorted(loss.partition(":")[0] for loss in talk.losses) == ["block", "thinking"]
    accepted(claude)


def test_a_refused_partial_is_not_sent_again(claude: strict.StrictServer) -> None:
    """«refused partial resent»: a refused partial must be discarded; the log keeps it, the view says that it left it out."""
    talk = Talk(claude)
    message = talk.ask("Go.", THOUGHT, "I wi", stop="refusal")
    assert message.text_content() == "I wi"
    talk.ask("Something else.", "Well.")
    assert talk.kinds == [["text", "text"]]
    assert [gone.reason.value for gone in talk.dialog.view().omissions] == ["failed_response"]
    accepted(claude)


def test_servers_of_tools_go_back_with_their_header(claude: strict.StrictServer) -> None:
    """MCP calls, results and listings go back while the request connects to their server."""
    servers: Json = {"parameters": {"mcp_servers": [{"type": "url", "name": "birds", "url": "https://example.org"}]}}
    talk = Talk(claude, **servers)
    listing = {"type": "mcp_tool_listing", "mcp_server_name": "birds", "tools": []}
    use = {"type": "mcp_tool_use", "name": "find", "server_name": "birds", "input": {}}
    result = {"type": "mcp_tool_result", "is_error": False, "content": [{"type": "text", "text": "A heron."}]}
    talk.ask("Go.", listing, THOUGHT, use, result, "Done.")
    talk.ask("And?", "Well.")
    assert talk.kinds[1] == ["mcp_tool_listing", "thinking", "mcp_tool_use", "mcp_tool_result", "text"]
    assert talk.losses == []
    talk.ask("And?", "Well.", parameters={})
    assert "A heron." in talk.request.data.decode()
    accepted(claude)


def test_a_cut_answer_goes_on_with_its_token() -> None:
    """CONTINUATION: the same request is sent again with the token, without the answer so far; both parts stay in the log."""
    for name, model, token, parts in (
        ("gemini", "gemini-4-argon", "continuationToken", "contents"),
        ("gemini-interactions", "gemini-4-argon", "continuation_token", "input"),
    ):
        dialog = Session.create(MemoryStore(), "s").root
        dialog.put_text("Go.")
        first = dialog.request(name, model)
        half = AssistantMessage("Half ", metadata={"next_request": {token: "abc"}}, provider="google", model=model)
        dialog.append(half)
        again = dialog.request(name, model)
        assert again.body == {**first.body, token: "abc"}
        dialog.append(AssistantMessage("of it.", provider="google", model=model))
        dialog.put_text("And?")
        after = dialog.request(name, model)
        assert token not in after.body
        assert "Half" in str(after.body[parts])


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_server_cleared_is_an_omission(claude: strict.StrictServer, stream: bool) -> None:
    """Section 3: `applied_edits` stand beside the delta of a stream; what they cleared is an omission of that call."""
    trigger = {"type": "input_tokens", "value": 1}
    clear = {"type": "clear_tool_uses_20250919", "trigger": trigger, "keep": {"type": "tool_uses", "value": 1}}
    edits = [{"type": "clear_thinking_20251015"}, clear]
    talk = Talk(claude)
    for number in range(3):
        talk.ask(f"Go {number}.", THOUGHT, CALL)
        talk.results()
        talk.ask("", THOUGHT, "Done.", parameters={"context_management": {"edits": edits}}, stream=stream)
    message = talk.dialog.messages[-1]
    (thinking, tools) = message.metadata["context_management"]["applied_edits"]
    gone = talk.request.left_out(message)
    kinds = [gone.by.removeprefix("anthropic: ") for gone in gone]
    assert kinds.count("clear_tool_uses_20250919") == tools["cleared_tool_uses"] == 2
    assert kinds.count("clear_thinking_20251015") == thinking["cleared_thinking_turns"]
    assert all(gone.handle is not None for gone in gone)
    accepted(claude)
