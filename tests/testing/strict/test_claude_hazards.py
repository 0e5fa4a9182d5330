"""What a conversation with Claude may go through: nothing is refused, and nothing leaves without a note, in requests, agents' turns and loops with `fit`."""

from __future__ import annotations

import pytest

from palaver.errors import AgentFailure, InvalidRequest, ProviderError
from palaver.messages import AssistantMessage, TextContent, ThinkingContent
from palaver.prompts import Format
from palaver.session.refusals import blamed
from palaver.testing import strict
from palaver.tools import tool
from tests.testing.strict.ways import AgentWay, DialogWay, FitWay, Json, Way, accepted, bash, made, read, ways

STRICT = "claude-fable-5-1"
THOUGHT: Json = {"type": "thinking", "thinking": "hm"}
CALL: Json = {"type": "tool_use", "name": "bash", "input": {"command": "ls"}}
SEARCH: Json = {"type": "server_tool_use", "name": "web_search", "input": {"query": "herons"}}
FOUND: Json = {"type": "web_search_tool_result", "content": []}
WEB: Json = {"provider_tools": {"web_search": True}}
SAY: list[Json | str] = [THOUGHT, "Done."]
ROUND = ([THOUGHT, CALL], SAY)
LONG = "word " * 300
PICTURE = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000400000004008020000")
UNREAD = "model_binding_mismatch"
UNBOUND = "thinking: signed for other words than those before it now"


@pytest.fixture
def way(request: pytest.FixtureRequest, claude: strict.StrictServer) -> Way:
    """Return a conversation in one of the ways."""
    return made(request.param, claude, "anthropic", STRICT)


def blocks(body: Json) -> list[Json]:
    """Return the blocks of a request."""
    return [block for message in body["messages"] for block in message["content"] if not isinstance(block, str)]


def thoughts(body: Json) -> int:
    """Count the blocks of thinking in a request."""
    return sum(block["type"] == "thinking" for block in blocks(body))


def kinds(body: Json) -> list[str]:
    """Return the kinds of the blocks that the assistant said."""
    said = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    return [block["type"] for content in said for block in content]


# --- the head ------------------------------------------------------------------------------------------------------------


@tool(name="bash")
def other_bash(command: str = "") -> str:
    """Run a command in another shell."""
    return command


CHANGES: dict[str, Json] = {
    "system": {"system": "Be kind."},
    "added": {"tools": (bash, read)},
    "removed": {"tools": ()},
    "described": {"tools": (other_bash,)},
}


@pytest.mark.parametrize("change", CHANGES)
@ways()
def test_changed_settings_are_accepted(way: Way, claude: strict.StrictServer, change: str) -> None:
    """«system changed x strict», «tool added x strict», «tool removed/described anew x strict»: appended; a loop with `fit` asks to drop what does not fit."""
    way.turn("One.", *ROUND)
    before = way.system, way.tools
    vars(way).update(CHANGES[change], drops=True)
    (second,) = way.turn("Two.", SAY)
    way.system, way.tools = before
    (third,) = way.turn("Three.", SAY)
    assert (thoughts(second), thoughts(third)) == (2, 3)
    if isinstance(way, FitWay):
        accepted(claude, "prefix_binding_mismatch")
    else:
        assert [second["system"], second["tools"]] == [third["system"], third["tools"]]
        accepted(claude)


@ways("request", "agent")
def test_order_of_tools_is_the_first(way: Way, claude: strict.StrictServer) -> None:
    """«tool order changed x strict»: tools stay in the order of the first request, and thinking with them."""
    way.tools = (bash, read)
    (first, _) = way.turn("One.", *ROUND)
    way.tools = (read, bash)
    (second,) = way.turn("Two.", SAY)
    assert second["tools"] == first["tools"]
    assert thoughts(second) == 2
    accepted(claude)


TOGGLES: dict[str, Json] = {
    "schema": {"format": Format({"type": "object", "additionalProperties": {"type": "integer"}})},
    "search": WEB,
}


@pytest.mark.parametrize("toggle", TOGGLES)
@ways("request", "agent")
def test_what_is_for_one_call_costs_that_call(way: Way, claude: strict.StrictServer, toggle: str) -> None:
    """«schema-in-words added to system one call x strict», «provider tool toggled for one call x strict»: thinking leaves it with notes, and is back after it."""
    way.turn("One.", *ROUND)
    (second,) = way.turn("Two.", [THOUGHT, "{}"], **TOGGLES[toggle])
    assert thoughts(second) == 0
    assert way.notes.count(UNBOUND) == 2
    (third,) = way.turn("Three.", SAY)
    assert thoughts(third) == 2
    assert way.notes.count(UNBOUND) == 1
    accepted(claude)


# --- what is free --------------------------------------------------------------------------------------------------------


@ways()
def test_cache_marks_and_parameters_are_free(way: Way, claude: strict.StrictServer) -> None:
    """«cache_control moved», «effort/max_tokens/tool_choice changed»: all thinking stays."""
    way.turn("One.", *ROUND)
    effort: Json = {"output_config": {"effort": "low"}}
    changed: Json = {"parameters": effort, "tool_choice": "none", "cache_ttl": {"messages": "1h"}}
    if isinstance(way, FitWay):
        marked = {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}}
        way.messages[0] = {"role": "user", "content": [marked]}
        changed = {**effort, "tool_choice": {"type": "none"}}
    (second,) = way.turn("Two.", SAY, max_tokens=3_000, **changed)
    (third,) = way.turn("Three.", SAY)
    said = second["max_tokens"], second["tool_choice"]["type"], second["output_config"]["effort"]
    assert said == (3_000, "none", "low")
    assert (thoughts(second), thoughts(third)) == (2, 3)
    accepted(claude)


@pytest.mark.parametrize("system", ["Be brief.", "Be kind."])
@ways()
def test_forks_keep_thinking(way: Way, claude: strict.StrictServer, system: str) -> None:
    """«fork, identical prefix», «fork, new system x strict»: both sides keep their thinking."""
    way.turn("One.", *ROUND)
    if isinstance(way, DialogWay):
        before = way.dialog
        way.dialog, way.system = before.fork(), system
        (fork,) = way.turn("Two.", SAY)
        way.dialog, way.system = before, "Be brief."
    else:
        assert isinstance(way, FitWay)
        trunk = list(way.messages)
        (fork,) = way.turn("Two.", SAY)
        way.messages = trunk
    (last,) = way.turn("Two.", SAY)
    assert thoughts(fork) == thoughts(last) == 2
    accepted(claude)


# --- cuts ----------------------------------------------------------------------------------------------------------------


@ways()
def test_cuts_and_what_comes_back(way: Way, claude: strict.StrictServer) -> None:
    """«leading history cut x strict», «cut, then stripped thinking restored x strict», «cut inside tool round, any Claude»: whole rounds leave, with notes."""
    kept = []
    for number in range(6):
        kept.append(thoughts(way.turn(f"{number} {LONG}", *ROUND, budget=3_500)[-1]))
        assert {"folded", "shortened"} & {*way.notes} or kept[-1] == 2 * number + 1
    assert 0 < sum(kept[3:]) < 27
    way.drops = True  # a larger budget is a change that `fit` cannot see
    if isinstance(way, AgentWay):
        way.dialog.compaction.undo()
    (last,) = way.turn("All.", SAY, budget=100_000)
    assert 0 < thoughts(last) < 12 or isinstance(way, FitWay)
    accepted(claude, *["prefix_binding_mismatch"] * isinstance(way, FitWay))


@ways()
def test_shortened_results_unbind_what_follows(way: Way, claude: strict.StrictServer) -> None:
    """«policy shortens old tool_result x strict»: what was thought after it leaves with notes; what is thought from then on stays."""
    shortened = kept = 0
    for number in range(7):
        body = way.turn(f"{number}", *ROUND, budget=3_500)[-1]
        results = [len(str(block["content"])) for block in blocks(body) if block["type"] == "tool_result"]
        shortened += min(results) < 1_000
        kept += thoughts(body) if shortened else 0
        assert thoughts(body) == 2 * number + 1 or {UNBOUND, "unbound"} & {*way.notes} or "folded" in way.notes
    assert shortened
    assert kept
    accepted(claude)


@ways()
def test_pictures_that_leave_unbind_what_follows(way: Way, claude: strict.StrictServer) -> None:
    """«oldest image omitted x strict»: what was thought after it leaves with notes."""
    budget = {"max_tokens": 50_000, "max_media": 1}
    for number in range(3):
        way.turn(f"{number}", SAY, picture=PICTURE + bytes([number]), budget=budget)
    (body,) = way.turn("Go.", SAY, budget=budget)
    assert [block["type"] for block in blocks(body)].count("image") == 1
    assert {UNBOUND, "unbound"} & {*way.notes}
    accepted(claude)


@ways()
def test_a_gap_in_the_middle_is_closed(way: Way, claude: strict.StrictServer) -> None:
    """«thinking gap in middle x strict»: where the thinking of one answer is set aside, that of later ones leaves with notes."""
    for number in range(4):
        way.turn(f"{number}", SAY)
    if isinstance(way, FitWay):
        del way.messages[3]["content"][0]
        way.drops = True
        way.turn("Go.", SAY)
        accepted(claude, "prefix_binding_mismatch")
        return
    assert isinstance(way, DialogWay)
    answers = [place for place, message in way.dialog.messages.placed() if isinstance(message, AssistantMessage)]
    way.dialog.marks.quarantine(f"{answers[1]}:0")
    (body,) = way.turn("Go.", SAY)
    assert thoughts(body) == 1
    assert way.notes.count(UNBOUND) == 2
    way.dialog.marks.lift(f"{answers[1]}:0")
    (body,) = way.turn("Go on.", SAY)
    assert thoughts(body) == 4
    accepted(claude)


# --- models --------------------------------------------------------------------------------------------------------------


@ways()
def test_a_later_model_reads_thinking(way: Way, claude: strict.StrictServer) -> None:
    """«Opus 5 → Fable 5.1»: it is sent again, and read."""
    way.model = "claude-opus-5"
    way.turn("One.", *ROUND)
    way.model = STRICT
    (body,) = way.turn("Two.", SAY)
    assert thoughts(body) == 2
    accepted(claude)


@ways()
def test_unread_thinking_is_there_for_its_maker(way: Way, claude: strict.StrictServer) -> None:
    """«Fable 5.2 → Opus 5.5»: it is sent with a note, the API passes over it, and its maker reads it again."""
    way.model = "claude-fable-5-2"
    way.turn("One.", *ROUND)
    way.model = "claude-opus-5-5"
    (second,) = way.turn("Two.", SAY)
    assert sum("passes over it" in note for note in way.notes) == 2 or isinstance(way, FitWay)
    accepted(claude, UNREAD)
    claude.forget()
    way.model = "claude-fable-5-2"
    (third,) = way.turn("Three.", SAY)
    assert (thoughts(second), thoughts(third)) == (2, 3)
    accepted(claude)


@ways()
def test_another_account_reads_no_thinking(way: Way) -> None:
    """«Sonnet 5.5 block, other account»: accepted, and what the API left out is recorded with the call."""
    with strict.anthropic(accounts={"key": "one", "other": "two"}) as server:
        way.server, way.model, way.drops = server, "claude-sonnet-5-5", True
        way.turn("One.", *ROUND)
        way.key = "other"
        way.turn("Two.", SAY)
        accepted(server, "organization_binding_mismatch")
        if isinstance(way, AgentWay):
            assert [gone.by for gone in way.dialog.calls[-1].left_out()] == [
                "anthropic: organization_binding_mismatch"
            ] * 2
        elif isinstance(way, FitWay):
            assert len(server.served[-1].body["input_transformations"]) == 2


@ways()
def test_thinking_keeps_its_place_in_a_turn(way: Way, claude: strict.StrictServer) -> None:
    """«thinking moved to message head x strict», «thinking after tool_use in one turn»: it goes back where it was."""
    late: list[Json | str] = ["I look.", THOUGHT, CALL, THOUGHT, CALL]
    (_, second) = way.turn("One.", late, SAY)
    (third,) = way.turn("Two.", SAY)
    assert kinds(second) == ["text", "thinking", "tool_use", "thinking", "tool_use"]
    assert kinds(third) == [*kinds(second), "thinking", "text"]
    accepted(claude)


@ways()
def test_unsigned_thinking_stays_out(way: Way, claude: strict.StrictServer) -> None:
    """«empty/edited signature»: without a signature, thinking leaves with a note."""
    way.turn("One.", SAY)
    if isinstance(way, DialogWay):
        way.dialog.put_text("Two.")
        thought = ThinkingContent("hm", "", provider="anthropic")
        way.dialog.append(AssistantMessage(contents=(thought, TextContent(content="Well."))))
    else:
        assert isinstance(way, FitWay)
        thought_block = {"type": "thinking", "thinking": "hm", "signature": ""}
        said = [{"role": "assistant", "content": [thought_block, {"type": "text", "text": "Well."}]}]
        way.messages += [{"role": "user", "content": "Two."}, *said]
    (body,) = way.turn("Three.", SAY)
    assert thoughts(body) == 1
    assert way.notes
    accepted(claude)


@pytest.mark.parametrize("model", [STRICT, "claude-opus-5"])
@ways("request", "agent")
def test_edited_signatures_are_set_aside(way: DialogWay, claude: strict.StrictServer, model: str) -> None:
    """«a signature tampered with»: models that check never get it; the refusal of others names the block, and without it the next request is accepted."""
    way.model = model
    way.turn("One.", SAY)
    way.dialog.put_text("Two.")
    thought = ThinkingContent("hm", "c2ln", provider="anthropic")
    way.dialog.append(AssistantMessage(contents=(thought, TextContent(content="Well."))))
    if model != STRICT:
        with pytest.raises((ProviderError, AgentFailure), match="Invalid `signature`") as caught:
            way.turn("Three.", SAY)
        place = blamed(way.dialog.store, way.sent, str(caught.value))
        assert place is not None
        assert str(place) in (caught.value.hint or str(place))
        way.dialog.marks.quarantine(place, "the signature is not valid")
        claude.forget()
        claude.script.clear()
    (body,) = way.turn("Four.", SAY)
    assert thoughts(body) == 1
    assert {UNBOUND, "quarantined"} & {*way.notes}
    assert "c2ln" in str([message.contents for message in way.dialog.messages])
    accepted(claude)


@pytest.mark.parametrize(
    ("model", "parameters"), [(STRICT, {}), ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}})]
)
@ways("request", "agent")
def test_the_safety_net_has_its_header(
    way: DialogWay, claude: strict.StrictServer, model: str, parameters: Json
) -> None:
    """«drop_block without header», «drop_block with `between_tools`»: the field has its header, and is not there where it is refused."""
    way.model = model
    way.turn("One.", *ROUND, parameters=parameters)
    (body,) = way.turn("Two.", SAY, parameters=parameters)
    assert ("block_binding" in body.get("thinking", {})) == (not parameters)
    betas = claude.served[-1].asked.headers.get("anthropic-beta", "")
    assert ("thinking-binding-controls-2026-08-01" in betas) == (not parameters)
    assert thoughts(body) == 2
    accepted(claude)


@ways("request", "agent")
def test_a_forced_tool_is_left_to_the_model(way: Way, claude: strict.StrictServer) -> None:
    """«forced tool x Opus/Sonnet 5.5, Fable/Mythos»: refused before anything is sent, or `auto` with a note; «forced + adaptive x Opus 5, Haiku 5.5»: sent."""
    for model in (STRICT, "claude-opus-5-5"):
        way.model = model
        with pytest.raises(InvalidRequest, match="auto_choice"):
            way.turn("One.", tool_choice="required")
        (body,) = way.turn("Two.", SAY, tool_choice="required", auto_choice=True)
        assert body["tool_choice"] == {"type": "auto"}
        assert "parameter: tool_choice: this model may not be forced, and chooses by itself" in way.notes
    for model in ("claude-opus-5", "claude-haiku-5-5"):
        way.model = model
        (body,) = way.turn("One.", SAY, tool_choice="required")
        assert body["tool_choice"] == {"type": "any"}
    assert {dropped["reason"] for dropped in claude.dropped} <= {UNREAD}
    assert not claude.refused


@ways("request", "agent")
def test_sampling_is_left_out(way: Way, claude: strict.StrictServer) -> None:
    """«temperature, version 2026-10-21, any Claude»: left out with a note, and sent under the older version."""
    way.model = "claude-sonnet-4-5"
    (body,) = way.turn("One.", SAY, temperature=0.5)
    assert "temperature" not in body
    assert "parameter: temperature: this model takes no sampling parameters" in way.notes
    way.client = {"default_headers": {"anthropic-version": "2023-06-01"}}
    (body,) = way.turn("Two.", SAY, temperature=0.5)
    assert body["temperature"] == 0.5
    accepted(claude)


@ways("request", "agent")
def test_words_of_the_assistant_end_no_request(way: DialogWay, claude: strict.StrictServer) -> None:
    """«prefill x 4.6+»: refused before anything is sent; with a user's turn it is accepted."""
    way.turn("One.", SAY)
    way.dialog.put_text("The answer is", role="assistant")
    with pytest.raises(InvalidRequest, match="prefill"):
        way.dialog.request("anthropic", STRICT)
    if isinstance(way, AgentWay):
        assert way.turn("") == []
    way.turn("Go on.", SAY)
    accepted(claude)


# --- tools of the server -------------------------------------------------------------------------------------------------


@ways()
def test_paused_and_mixed_turns_go_on(way: Way, claude: strict.StrictServer) -> None:
    """«pause_turn tail without its server_tool_use», «mixed turn, user text beside results»: verbatim, with results only; later without its note."""
    if isinstance(way, FitWay):
        way.served = [{"type": "web_search_20250305", "name": "web_search"}]
    else:
        way.call = WEB
    (_, second) = way.turn("Search.", [THOUGHT, "I look.", SEARCH], [FOUND, THOUGHT, "Herons."])
    assert kinds(second) == ["thinking", "text", "server_tool_use"]
    (_, mixed) = way.turn("Both.", [THOUGHT, SEARCH, CALL], [FOUND, THOUGHT, "Herons."])
    assert [block["type"] for block in mixed["messages"][-1]["content"]] == ["tool_result"]
    (last,) = way.turn("And?", SAY)
    assert kinds(last).count("server_tool_use") == kinds(last).count("web_search_tool_result") == 2
    assert (kinds(last).count("thinking"), [note for note in way.notes if "block" in note]) == (4, [])
    accepted(claude)


@ways()
def test_calls_of_a_missing_tool_stay_out(way: Way, claude: strict.StrictServer) -> None:
    """«server tool missing on next call»: the call that nobody answered leaves with a note, and the rest goes on."""
    asked: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    said: list[Json] = [
        {"role": "user", "content": "Search."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, asked]},
    ]
    if isinstance(way, FitWay):
        way.messages += said
    else:
        assert isinstance(way, DialogWay)
        way.dialog.put_text("Search.")
        way.dialog.append({"type": "message", "model": STRICT, "stop_reason": "pause_turn", **said[1]})
    (body,) = way.turn("Never mind.", SAY)
    assert kinds(body) == ["text"]
    assert way.notes
    accepted(claude)


@ways()
def test_a_fallback_ends_what_was_before_it(way: Way, claude: strict.StrictServer) -> None:
    """«fallback turn, thinking before `fallback`»: thinking and calls before it leave with notes; texts and the block itself stay."""
    fallback = {"type": "fallback", "from": {"model": STRICT}, "to": {"model": "claude-opus-4-8"}, "trigger": None}
    way.turn("Go.", strict.NextAnswer([THOUGHT, "I wi", fallback, "Here."], stop="end_turn"))
    (body,) = way.turn("And?", SAY)
    assert kinds(body) == ["text", "fallback", "text"]
    assert [note for note in way.notes if note.startswith(("thinking", "message"))]
    accepted(claude)


@ways("request", "agent")
def test_a_refused_partial_is_discarded(way: DialogWay, claude: strict.StrictServer) -> None:
    """«refused partial resent»: what a model began before it refused stays in the log, and is not sent again."""
    answer = strict.NextAnswer([THOUGHT, "I wi"], stop="refusal")
    if isinstance(way, AgentWay):
        with pytest.raises(AgentFailure):
            way.turn("Go.", answer)
    else:
        way.turn("Go.", answer)
    (body,) = way.turn("Something else.", SAY)
    assert kinds(body) == []
    assert "failed_response" in way.notes or isinstance(way, AgentWay)
    kept = b"".join(body for _, body in way.dialog.store.bodies(way.dialog.dialog_id))
    assert b"I wi" in kept
    accepted(claude)


@ways()
def test_system_messages_wait_for_the_user(way: Way, claude: strict.StrictServer) -> None:
    """«system message after assistant text»: changed instructions come after the user's next words; `fit` moves them there with a note."""
    way.turn("One.", SAY)
    if isinstance(way, FitWay):
        way.messages += [{"role": "system", "content": "Be kind."}]
    else:
        way.system = "Be kind."
    (body,) = way.turn("Two.", SAY)
    roles = [message["role"] for message in body["messages"]]
    assert "Be kind." in str(body["messages"][roles.index("assistant") + 1 :])
    assert way.notes
    accepted(claude)


# --- compactions ---------------------------------------------------------------------------------------------------------

EDIT: Json = {
    "context_management": {
        "edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]
    }
}


@ways()
def test_a_compaction_of_the_server_is_kept(way: Way, claude: strict.StrictServer) -> None:
    """«threshold compaction block lost»: it goes back verbatim, and the server compacts once."""
    call = {**EDIT, "betas": ["compact-2026-01-12"]} if isinstance(way, FitWay) else {"parameters": EDIT}
    way.turn("First.", SAY, **call)
    way.turn("word " * 60_000, SAY, **call)
    made_block = claude.served[-1].body["content"][0]
    body: Json = {}
    for number in range(3):
        (body,) = way.turn(f"And {number}?", SAY, **call)
    (sent,) = [block for block in blocks(body) if block["type"] == "compaction"]
    assert sent == made_block
    assert thoughts(body) == (5 if isinstance(way, FitWay) else 4) - 1
    accepted(claude)


@ways()
def test_a_compaction_on_demand_stays_first(way: Way, claude: strict.StrictServer) -> None:
    """«on-demand: summarised messages left in», «on-demand: block edited/null added», «on-demand: block not first»: first, byte for byte, also after a cut."""
    way.turn("First.", SAY)
    ask: Json = {"compaction": {"type": "summarize"}}
    if isinstance(way, FitWay):
        way.call = {"betas": ["compact-2026-09-04"]}
        way.turn("Summarize.", **ask)
        way.messages = way.messages[-1:]
    elif isinstance(way, AgentWay):
        way.compact()
    else:
        assert isinstance(way, DialogWay)
        way.asked(compact=True)
    summary = claude.served[-1].body["content"]
    budget = {"budget": 2_500} if isinstance(way, FitWay) else {}
    body: Json = {}
    for number in range(5):
        (body,) = way.turn(f"{number} {LONG}", SAY, **budget)
    assert body["messages"][0]["content"][0] == summary[0]
    assert "First." not in str(body)
    accepted(claude)
