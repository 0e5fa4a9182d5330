"""The stand-in of the Messages API compacts and clears as asked, and streams every kind of block."""

from __future__ import annotations

import copy

import pytest

from palaver.testing import strict
from tests.testing.strict.claude import BINDING, STRICT, SYSTEM, THOUGHT, TOOLS, Json, Talk, refusal

ON_DEMAND = "compact-2026-09-04"
THRESHOLD = "compact-2026-01-12"
EDITS = "context-management-2025-06-27"
COMPACT: Json = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]}
QUESTION: Json = {"role": "user", "content": "And now?"}


def talked(server: strict.StrictServer, model: str = STRICT) -> Talk:
    """Return a conversation of three turns with thinking."""
    talk = Talk(server, model, betas=[ON_DEMAND, BINDING])
    for said in ("One.", "Two.", "Three."):
        talk.ask(said, THOUGHT, "Well.")
    return talk


def summary(talk: Talk, messages: list[Json], **fields: object) -> Json:
    """Ask for a summary of messages, and return the answer's message."""
    answer = talk.send(messages=messages, compaction={"type": "summarize"}, **fields)
    assert answer["stop_reason"] == "compaction"
    assert answer["usage"]["input_tokens"] == 0
    return {"role": "assistant", "content": answer["content"]}


def test_failed_compaction_binds_nothing(claude: strict.StrictServer) -> None:
    """A compaction that failed counts as nothing: the thinking after it stays valid with the block and without it."""
    talk = Talk(claude, betas=[THRESHOLD, BINDING])
    talk.ask("One.", {"type": "compaction", "content": None}, THOUGHT, "Well.")
    talk.ask("Two.", THOUGHT, "Well.")
    del talk.messages[1]["content"][0]
    assert talk.ask("Three.")["input_transformations"] == []


# --- on demand -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_thinking_after_a_summary_stays_valid(claude: strict.StrictServer, kept: int) -> None:
    """The summary stands first, for the messages that it summarizes; the thinking of turns that follow directly stays valid."""
    talk = talked(claude)
    at = 6 - 2 * kept
    block = summary(talk, talk.messages[:at])
    messages = [block, *talk.messages[at:], QUESTION]
    assert talk.send(messages=messages)["input_transformations"] == []
    with refusal("'compaction' found using 'type' does not match"):
        talk.send(messages=messages, betas=[])


def test_kept_thinking_needs_what_was_summarized(claude: strict.StrictServer) -> None:
    """With other tools, with a message between, or after a summary by a model that does not check, kept thinking is refused."""
    talk = talked(claude)
    block = summary(talk, talk.messages[:4])
    messages = [block, *talk.messages[4:], QUESTION]
    stripped = copy.deepcopy(messages)
    del stripped[2]["content"][0]
    assert talk.send(messages=stripped, system="Other.")["stop_reason"] == "end_turn"
    other = summary(talk, talk.messages[:4], model="claude-opus-5")
    for fields in (
        {"system": "Other."},
        {"tools": TOOLS[:1]},
        {"messages": [block, *talk.messages[2:], QUESTION]},
        {"messages": [other, *talk.messages[4:], QUESTION]},
    ):
        with refusal("bound to a different conversation"):
            talk.send(**({"messages": messages} | fields))


def test_a_summary_is_summarized_again(claude: strict.StrictServer) -> None:
    """A second summary covers the first; kept thinking stays valid through both."""
    talk = talked(claude)
    first = summary(talk, talk.messages[:2])
    second = summary(talk, [first, *talk.messages[2:4]])
    assert talk.send(messages=[second, *talk.messages[4:], QUESTION])["input_transformations"] == []


def test_a_summary_goes_back_first_and_unchanged(claude: strict.StrictServer) -> None:
    """A block behind its messages, twice, or edited is refused with the code that says so."""
    talk = talked(claude)
    block = summary(talk, talk.messages)
    for code, messages in (
        ("compaction_block_misplaced", [*talk.messages, block, QUESTION]),
        ("compaction_block_ambiguous", [block, block, QUESTION]),
    ):
        with refusal("compaction", code=code):
            talk.send(messages=messages)
    edits = {
        "compaction_content_mismatch": {"content": "Other."},
        "compaction_signature_invalid": {"signature": "c2ln"},
        "compaction_tool_changes_mismatch": {"tool_changes": []},
    }
    for code, edit in edits.items():
        edited = {"role": "assistant", "content": [block["content"][0] | edit]}
        with refusal("messages.0.content.0", code=code):
            talk.send(messages=[edited, QUESTION])
    nulls = {"role": "assistant", "content": [block["content"][0] | {"citations": None}]}
    with refusal("compaction.citations: Extra inputs are not permitted"):
        talk.send(messages=[nulls, QUESTION])


def test_a_summary_is_asked_alone(claude: strict.StrictServer) -> None:
    """The parameter needs its beta, a complete turn, and no parameters that would do nothing."""
    talk = talked(claude)
    compaction = {"type": "summarize"}
    with refusal(f"requires anthropic-beta: {ON_DEMAND}"):
        talk.send(compaction=compaction, betas=[])
    for fields in (
        {"stop_sequences": ["x"]},
        {"context_management": COMPACT, "betas": [ON_DEMAND, THRESHOLD]},
        {"tool_choice": {"type": "any"}, "model": "claude-opus-5"},
    ):
        with refusal("compaction: cannot be combined with"):
            talk.send(compaction=compaction, **fields)
    talk.ask("Go.", THOUGHT, {"type": "tool_use", "name": "bash"})
    with refusal("`tool_use` ids were found without", code="compaction_incomplete_turn"):
        talk.send(compaction=compaction)
    claude.answers(strict.NextAnswer(stop="max_tokens"))
    assert talk.send(messages=talk.messages[:2], compaction=compaction)["content"] == []


# --- at a threshold ------------------------------------------------------------------------------------------------------


def large(server: strict.StrictServer, **fields: object) -> Talk:
    """Return a conversation above the threshold."""
    talk = Talk(server, STRICT, betas=[THRESHOLD, BINDING], context_management=COMPACT, **fields)
    talk.messages = [{"role": "user", "content": "word " * 50_000}]
    return talk


def test_a_threshold_compacts_and_begins_anew(claude: strict.StrictServer) -> None:
    """Above the threshold the answer begins with a block; what precedes it may go, and thinking is bound from there on."""
    talk = large(claude)
    answer = talk.ask(None, THOUGHT, "Well.")
    assert [block["type"] for block in answer["content"]] == ["compaction", "thinking", "text"]
    assert [entry["type"] for entry in answer["usage"]["iterations"]] == ["compaction", "message"]
    for messages in ([*talk.messages, QUESTION], [talk.messages[1], QUESTION]):
        assert talk.send(messages=messages)["input_transformations"] == []
    edited = copy.deepcopy(talk.messages[1])
    edited["content"][0]["content"] = "Other."
    with refusal("Invalid `encrypted_content` in `compaction` block"):
        talk.send(messages=[edited, QUESTION])
    failed = {"role": "assistant", "content": [{"type": "compaction", "content": None}, *talk.messages[1]["content"]]}
    talk.send(messages=[*talk.messages[:1], failed, QUESTION])
    with refusal("compaction.content: String should have at least 1 character"):
        empty = {"role": "assistant", "content": [{"type": "compaction", "content": ""}]}
        talk.send(messages=[*talk.messages[:1], empty, QUESTION])


def test_a_pause_after_compaction(claude: strict.StrictServer) -> None:
    """The answer has the block alone, with its own stop reason, and the next request goes on."""
    talk = large(claude)
    edit = COMPACT["edits"][0] | {"pause_after_compaction": True}
    answer = talk.ask(None, context_management={"edits": [edit]})
    assert (answer["stop_reason"], len(answer["content"])) == ("compaction", 1)
    assert talk.send()["stop_reason"] == "end_turn"


def test_edits_need_betas_and_order(claude: strict.StrictServer) -> None:
    """Each edit has its beta, its fields, and its place."""
    talk = Talk(claude, messages=[QUESTION])
    thinking, tools = {"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}
    talk.send(context_management={"edits": [thinking, tools]}, betas=[EDITS])
    with refusal("must be the first edit"):
        talk.send(context_management={"edits": [tools, thinking]}, betas=[EDITS])
    with refusal("context_management.edits.0: Extra inputs are not permitted"):
        talk.send(context_management={"edits": [thinking]}, betas=[THRESHOLD])
    with refusal("should be greater than or equal to 50000"):
        low = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 10}}
        talk.send(context_management={"edits": [low]}, betas=[THRESHOLD])


def test_edits_report_what_they_cleared(claude: strict.StrictServer) -> None:
    """What the server clears is listed, and invalidates no thinking."""
    talk = Talk(claude, betas=[EDITS, BINDING])
    talk.ask("Go.", THOUGHT, {"type": "tool_use", "name": "bash"})
    for _ in range(4):
        talk.ask(talk.results(content="x" * 99), THOUGHT, {"type": "tool_use", "name": "bash"})
    talk.messages.append({"role": "user", "content": talk.results()})
    trigger = {"type": "input_tokens", "value": 1}
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919", "trigger": trigger}]
    answer = talk.send(context_management={"edits": edits})
    thinking, tools = answer["context_management"]["applied_edits"]
    assert (thinking["cleared_thinking_turns"], tools["cleared_tool_uses"]) == (4, 2)
    assert answer["input_transformations"] == []


# --- streams -------------------------------------------------------------------------------------------------------------

KINDS: list[Json | str] = [
    THOUGHT,
    {"type": "redacted_thinking"},
    "Some words.",
    {"type": "server_tool_use", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "content": []},
    {"type": "mcp_tool_use", "name": "ls", "server_name": "files", "input": {"path": "."}},
    {"type": "mcp_tool_result", "content": []},
    {"type": "compaction", "content": "What was."},
    THOUGHT,
    {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}},
    THOUGHT,
    {"type": "tool_use", "name": "bash", "input": {"command": "ls"}},
]


def test_streamed_and_whole_are_the_same(claude: strict.StrictServer) -> None:
    """The vendor's client puts the events of every kind of block together to the whole message."""
    fields: Json = {"model": STRICT, "max_tokens": 99, "system": SYSTEM, "messages": [QUESTION], "betas": [BINDING]}
    client = Talk(claude).client
    answer = strict.NextAnswer(KINDS, stop="refusal", fields={"stop_details": {"type": "refusal", "category": "bio"}})
    claude.answers(answer, answer)
    whole = client.beta.messages.create(**fields).to_dict(mode="json")
    with client.beta.messages.stream(**fields) as stream:
        streamed = stream.get_final_message().to_dict(mode="json")
    for message in (whole, streamed):
        message.pop("id")
        for block in message["content"]:  # type: ignore[attr-defined]
            for name in ("id", "tool_use_id", "signature", "data", "encrypted_content"):
                block.pop(name, None)
    assert streamed == whole


def test_a_stream_breaks_off(claude: strict.StrictServer) -> None:
    """A script can end a stream inside a block."""
    claude.answers(strict.NextAnswer([{"type": "compaction", "content": "What was."}], cut=3))
    fields: Json = {"model": STRICT, "max_tokens": 99, "messages": [QUESTION]}
    client = Talk(claude).client
    with pytest.raises(Exception, match="incomplete chunked read"), client.beta.messages.stream(**fields) as stream:
        stream.get_final_message()


def test_a_server_counts(claude: strict.StrictServer) -> None:
    """Each request is recorded with its outcome; without a network, `ask` does the same."""
    talk = Talk(claude)
    talk.ask("Hi.", "Well.")
    talk.messages.append(QUESTION)
    with refusal("max_tokens: Field required"):
        talk.send(extra_body={"max_tokens": None})
    headers = {"X-Api-Key": "key", "anthropic-version": "2026-10-21"}
    body = {"model": STRICT, "max_tokens": 9, "messages": [QUESTION]}
    assert claude.ask("/v1/messages", body, headers).status == 200
    assert claude.ask("/v1/messages", body).status == 401
    assert claude.ask("/v1/nothing", {}, headers).status == 404
    assert [served.status for served in claude.served] == [200, 400, 200, 401, 404]
    assert (claude.count, len(claude.refused)) == (5, 3)
    claude.forget()
    assert not claude.served
