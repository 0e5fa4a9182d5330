"""The stand-in of the Messages API checks models, fields, roles, pairs, and the places of system messages."""

from __future__ import annotations

import pytest

from palaver.testing import strict
from tests.testing.strict.claude import STRICT, THOUGHT, TOOLS, Json, Talk, refusal

pytestmark = pytest.mark.filterwarnings(
    "ignore:The model .* is deprecated:DeprecationWarning"
)  # the vendor's client says so of older ones

CALL: Json = {"type": "tool_use", "name": "bash"}
SEARCH: Json = {"type": "server_tool_use", "name": "web_search", "input": {"query": "q"}}
FOUND: Json = {"type": "web_search_tool_result", "content": []}
WEB: Json = {"type": "web_search_20260318", "name": "web_search"}
CODE: Json = {"type": "code_execution_20260120", "name": "code_execution"}
QUESTION: Json = {"role": "user", "content": "Hi."}
INLINE = "inline-tools-2026-09-15"
CLEAR_AT = "mid-conversation-system-clear-at-2026-08-21"

# --- models --------------------------------------------------------------------------------------------------------------

NEVER_FORCED = ["claude-fable-5-2", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5"]
FORCED = ["claude-haiku-5-5", "claude-fable-5", "claude-opus-5", "claude-sonnet-5", "claude-opus-4-8"]


@pytest.mark.parametrize("model", NEVER_FORCED + FORCED)
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "bash"}])
def test_the_newest_models_cannot_be_forced(claude: strict.StrictServer, model: str, choice: Json) -> None:
    """A forced tool is refused by the newest models, and accepted by others that think adaptively."""
    talk = Talk(claude, model, thinking={"type": "adaptive"}, messages=[{"role": "user", "content": "Hi."}])
    if model in FORCED:
        talk.send(tool_choice=choice)
        return
    with refusal('tool_choice: type "tool" and "any" are not supported for this model.'):
        talk.send(tool_choice=choice)


def test_a_manual_budget_forbids_force(claude: strict.StrictServer) -> None:
    """With a manual budget only `auto` and `none` are accepted."""
    budget = {"type": "enabled", "budget_tokens": 1_024}
    talk = Talk(claude, "claude-opus-4-5", thinking=budget, messages=[{"role": "user", "content": "Hi."}])
    talk.send(tool_choice={"type": "auto"})
    with refusal("Thinking may not be enabled when tool_choice forces tool use."):
        talk.send(tool_choice={"type": "any"})


TYPES = {
    "claude-fable-5-2": {"adaptive"},
    "claude-opus-5-5": {"adaptive"},
    "claude-sonnet-5-5": {"adaptive", "between_tools"},
    "claude-haiku-5-5": {"adaptive", "disabled"},
    "claude-opus-5": {"adaptive", "disabled"},
    "claude-sonnet-5": {"adaptive", "disabled"},
    "claude-opus-4-7": {"adaptive", "disabled"},
    "claude-opus-4-6": {"adaptive", "enabled", "disabled"},
    "claude-haiku-4-5": {"enabled", "disabled"},
}


@pytest.mark.filterwarnings("ignore:Using Claude")
@pytest.mark.parametrize("model", TYPES)
def test_the_list_of_models_is_what_is_refused(claude: strict.StrictServer, model: str) -> None:
    """A value of `thinking.type` is refused exactly where `GET /v1/models` says so."""
    talk = Talk(claude, model, messages=[{"role": "user", "content": "Hi."}])
    info = talk.client.beta.models.retrieve(model).to_dict(mode="json")
    accepted = {kind for kind, value in info["capabilities"]["thinking"]["types"].items() if value["supported"]}  # type: ignore[index]
    assert accepted == TYPES[model]
    for kind in ("adaptive", "enabled", "disabled", "between_tools"):
        thinking = {"type": kind} | ({"budget_tokens": 1_024} if kind == "enabled" else {})
        if kind in accepted:
            talk.send(thinking=thinking)
            continue
        text = (
            "adaptive thinking is not supported" if kind == "adaptive" else f'"thinking.type.{kind}" is not supported'
        )
        with refusal(text):
            talk.send(thinking=thinking)
    assert model in {listed.id for listed in talk.client.beta.models.list()}


def test_thinking_is_off_up_to_an_effort(claude: strict.StrictServer) -> None:
    """Opus 5 can be asked not to think up to effort `high`."""
    talk = Talk(claude, "claude-opus-5", thinking={"type": "disabled"}, messages=[{"role": "user", "content": "Hi."}])
    assert [block["type"] for block in talk.send(output_config={"effort": "high"})["content"]] == ["text"]
    with refusal('"thinking.type.disabled" is not supported'):
        talk.send(output_config={"effort": "max"})


def test_sampling_depends_on_model_and_version(claude: strict.StrictServer) -> None:
    """The newest version of the API refuses sampling parameters for every model; an older one accepts them for older models."""
    old = {"anthropic-version": "2023-06-01"}
    for model in ("claude-opus-4-6", STRICT):
        talk = Talk(claude, model, messages=[{"role": "user", "content": "Hi."}])
        new = {"anthropic-version": "2026-10-21"}
        with refusal("temperature: Extra inputs are not permitted"):
            talk.send(extra_body={"temperature": 1}, extra_headers=new)
        if model == STRICT:
            with refusal("`temperature` is deprecated for this model."):
                talk.send(extra_body={"temperature": 0.5}, extra_headers=old)
            continue
        talk.send(extra_body={"temperature": 0.5}, extra_headers=old)


def test_prefill_is_of_the_past(claude: strict.StrictServer) -> None:
    """A request may end with the assistant's words only for models before 4.6."""
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "{"}]
    Talk(claude, "claude-opus-4-5", messages=messages).send()
    for model in ("claude-opus-4-6", STRICT):
        with refusal("This model does not support assistant message prefill."):
            Talk(claude, model, messages=messages).send()


def test_unknown_names_are_refused(claude: strict.StrictServer) -> None:
    """A model, a field, a block or a field of a block that the API does not know."""
    talk = Talk(claude, messages=[{"role": "user", "content": "Hi."}])
    with refusal("model: claude-saga-9", status=404):
        talk.send(model="claude-saga-9")
    with refusal("previous_response_id: Extra inputs are not permitted"):
        talk.send(extra_body={"previous_response_id": "r"})
    with refusal("messages.0.content.0: Input tag 'reasoning' found using 'type' does not match"):
        talk.send(messages=[{"role": "user", "content": [{"type": "reasoning"}]}])
    with refusal("messages.0.content.0.text.phase: Extra inputs are not permitted"):
        talk.send(messages=[{"role": "user", "content": [{"type": "text", "text": "Hi.", "phase": "final"}]}])
    with refusal("messages.0: `tool_use` blocks can only be in `assistant` messages"):
        talk.send(messages=[{"role": "user", "content": [CALL | {"id": "t", "input": {}}]}])


def test_values_are_checked(claude: strict.StrictServer) -> None:
    """Ids, names, arguments, types of images, and what a result holds."""
    talk = called(claude, CALL)
    call, results = talk.messages[1]["content"][-1], talk.results()
    for edit, text in (
        ({"id": "a:1"}, "tool_use.id: String should match"),
        ({"input": "{"}, "Input should be a valid dictionary"),
    ):
        with refusal(text):
            talk.send(messages=[talk.messages[0], {"role": "assistant", "content": [call | edit]}, QUESTION])
    with refusal("tool_result.content.0: Input tag 'thinking'"):
        sent(talk, talk.results(content=[THOUGHT]))
    source = {"type": "base64", "media_type": "image/bmp", "data": "aGk="}
    with refusal("media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"):
        sent(talk, [*results, {"type": "image", "source": source}])
    with refusal("tools.0.custom.name: String should match pattern"):
        sent(talk, results, tools=[TOOLS[0] | {"name": "a b"}])
    with refusal("tools: Tool names must be unique."):
        sent(talk, results, tools=[TOOLS[0], TOOLS[0]])
    screen = {"type": "computer_20251124", "name": "computer", "display_width_px": 9, "display_height_px": 9}
    talk.send(messages=[QUESTION], tools=[screen])
    with refusal("does not support tool types: computer_20251124"):
        talk.send(messages=[QUESTION], tools=[screen], model="claude-fable-5-2")
    with refusal("tool_choice may only be specified while providing tools"):
        talk.send(messages=[QUESTION], tools=None, tool_choice={"type": "auto"})


def test_empty_texts_are_refused(claude: strict.StrictServer) -> None:
    """Messages and texts say something."""
    for content in ("", [], [{"type": "text", "text": ""}], [{"type": "text", "text": " "}]):
        with refusal("messages:"):
            Talk(claude).send(messages=[{"role": "user", "content": content}])


# --- pairs ---------------------------------------------------------------------------------------------------------------


def called(server: strict.StrictServer, *content: Json | str, **fields: object) -> Talk:
    """Return a conversation that waits for results."""
    talk = Talk(server, STRICT, **fields)
    talk.ask("Go.", THOUGHT, *content)
    return talk


def sent(talk: Talk, content: object, **fields: object) -> Json:
    """Send a next message of the user."""
    return talk.send(messages=[*talk.messages, {"role": "user", "content": content}], **fields)


def test_calls_have_results_next(claude: strict.StrictServer) -> None:
    """Each call has one result in the next message, before any text."""
    talk = called(claude, CALL, CALL)
    first, second = talk.results()
    assert sent(talk, [first, second, {"type": "text", "text": "!"}])["stop_reason"] == "end_turn"
    missing = "`tool_use` ids were found without `tool_result` blocks immediately after"
    for content in ([first], "Go on.", [{"type": "text", "text": "!"}, first, second]):
        with refusal(missing):
            sent(talk, content)
    with refusal(missing):
        talk.send()
    with refusal("each tool_use must have a single result"):
        sent(talk, [first, second, first])
    with refusal("unexpected `tool_use_id` found in `tool_result` blocks: t9"):
        sent(talk, [first, second, first | {"tool_use_id": "t9"}])


def test_a_cut_inside_a_round_is_refused(claude: strict.StrictServer) -> None:
    """A history may not begin with results, nor with the assistant."""
    talk = called(claude, CALL)
    talk.ask(talk.results(), "Done.")
    talk.messages.append({"role": "user", "content": "And?"})
    with refusal("unexpected `tool_use_id` found"):
        talk.send(messages=talk.messages[2:])
    with refusal('first message must use the "user" role'):
        talk.send(messages=talk.messages[3:])


def test_a_toolset_is_named_in_both(claude: strict.StrictServer) -> None:
    """A call from a toolset and its result have the same `toolset_name`."""
    talk = called(claude, CALL | {"toolset_name": "browser"})
    sent(talk, talk.results(toolset_name="browser"))
    with refusal("`toolset_name` of the `tool_result` must be that of its `tool_use`"):
        sent(talk, talk.results())


# --- tools that the server runs ------------------------------------------------------------------------------------------


def test_a_paused_turn_goes_on(claude: strict.StrictServer) -> None:
    """A paused turn is resumed by sending it back; the result comes at the beginning of the next answer."""
    talk = Talk(claude, tools=[WEB])
    assert talk.ask("Search.", THOUGHT, SEARCH)["stop_reason"] == "pause_turn"
    with refusal("but no `web_search` tool was provided"):
        talk.send(tools=TOOLS)
    with refusal("was found without a corresponding `web_search_tool_result` block"):
        sent(talk, "And?")
    talk.ask(None, FOUND, THOUGHT, "Found.")
    assert talk.messages[2]["content"][0]["tool_use_id"] == talk.messages[1]["content"][1]["id"]
    sent(talk, "And?")
    with refusal("unexpected `tool_use_id` found in `web_search_tool_result` blocks"):
        talk.send(messages=[talk.messages[0], talk.messages[2], {"role": "user", "content": "And?"}])


def test_a_mixed_turn_takes_results_only(claude: strict.StrictServer) -> None:
    """Where a server tool waits beside a client tool, the next message has results only, and the tools stay."""
    tools = [*TOOLS, WEB]
    talk = called(claude, SEARCH, CALL, tools=tools)
    assert talk.messages[-1]["content"][-1]["type"] == "tool_use"
    with refusal("`web_search` tool use with id"):
        sent(talk, [*talk.results(), {"type": "text", "text": "Also this."}])
    with refusal("but no `web_search` tool was provided"):
        sent(talk, talk.results(), tools=TOOLS)
    talk.ask(talk.results(), FOUND, THOUGHT, "Found.")
    sent(talk, "Also this.")


def test_calls_from_code_keep_their_caller(claude: strict.StrictServer) -> None:
    """A call that code made goes back with its caller, its container, and results of text only."""
    program = CALL | {"caller": {"type": "code_execution_20260120"}}
    run = {"type": "server_tool_use", "name": "code_execution", "input": {"code": "bash()"}}
    tools = [*TOOLS, CODE]
    talk = Talk(claude, tools=tools)
    answer = talk.ask("Go.", THOUGHT, run, program)
    container = answer["container"]["id"]
    results = talk.results()
    sent(talk, results, container=container)
    with refusal("container_id is required when there are pending tool uses"):
        sent(talk, results)
    with refusal("container `container_x` was not found", status=404):
        sent(talk, results, container="container_x")
    with refusal("only `tool_result` blocks are permitted"):
        sent(talk, [*results, {"type": "text", "text": "!"}], container=container)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    with refusal("only `text` blocks are permitted"):
        sent(talk, talk.results(content=[image]), container=container)
    del talk.messages[1]["content"][-1]["caller"]
    with refusal("tool_use.caller: Field required"):
        sent(talk, results, container=container)


def test_blocks_of_the_server_go_back_verbatim(claude: strict.StrictServer) -> None:
    """MCP blocks, listings and blocks of no known kind are accepted as they were sent; an edited one is refused."""
    server = [{"type": "url", "url": "https://example.com", "name": "files"}]
    toolset = {"type": "mcp_toolset", "mcp_server_name": "files"}
    betas = ["mcp-client-2026-09-15"]
    talk = Talk(claude, tools=[*TOOLS, toolset], mcp_servers=server, betas=betas)
    listing = {"type": "mcp_tool_listing", "mcp_server_name": "files", "tools": []}
    use = {"type": "mcp_tool_use", "name": "ls", "server_name": "files"}
    talk.ask(
        "Go.", listing, THOUGHT, use, {"type": "mcp_tool_result", "content": []}, {"type": "novelty", "x": 1}, "Ok."
    )
    novelty = talk.messages[1]["content"][-2]
    assert set(novelty) == {"type", "x", "seal"}
    sent(talk, "And?")
    novelty["x"] = 2
    with refusal("Input tag 'novelty'"):
        sent(talk, "And?")
    novelty["x"] = 1
    with refusal("mcp_servers: Extra inputs are not permitted"):
        sent(talk, "And?", betas=[])
    with refusal("MCP server 'files' not found"):
        sent(talk, "And?", mcp_servers=None)


def test_tool_search_references_declared_tools(claude: strict.StrictServer) -> None:
    """A search shows deferred tools, which must stay; one tool is not deferred."""
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    later = TOOLS[1] | {"name": "later", "defer_loading": True}
    use = {"type": "server_tool_use", "name": "tool_search_tool_bm25"}
    found = {"type": "tool_reference", "tool_name": "later"}
    content = {"type": "tool_search_tool_search_result", "tool_references": [found]}
    talk = Talk(claude, tools=[search, later])
    talk.ask("Go.", use, {"type": "tool_search_tool_result", "content": content}, THOUGHT, CALL | {"name": "later"})
    sent(talk, talk.results())
    with refusal("Tool reference 'later' not found in available tools"):
        sent(talk, talk.results(), tools=[search])
    with refusal("bound to a different conversation"):
        sent(talk, talk.results(), tools=[search, later | {"description": "Later."}])
    with refusal("At least one tool must have defer_loading=false."):
        Talk(claude, tools=[later], messages=[{"role": "user", "content": "Hi."}]).send()


def test_a_fallback_ends_what_was_before_it(claude: strict.StrictServer) -> None:
    """Thinking, calls and unpaired server tools before the last fallback stay out; texts and the block itself stay."""
    fallback = {"type": "fallback", "from": {"model": STRICT}, "to": {"model": "claude-opus-4-8"}, "trigger": None}
    talk = Talk(claude)
    talk.ask("Go.", THOUGHT, "I wi", fallback, "Here.")
    with refusal("`thinking` blocks before the final `fallback` block must be omitted"):
        sent(talk, "And?")
    del talk.messages[1]["content"][0]
    talk.ask("And?", THOUGHT, "So.")
    sent(talk, "And?")
    del talk.messages[1]["content"][1]
    with refusal("bound to a different conversation"):
        sent(talk, "And?")


# --- system messages and tool changes ------------------------------------------------------------------------------------

NOTE: Json = {"role": "system", "content": "Be brief."}


def test_system_messages_have_their_places(claude: strict.StrictServer) -> None:
    """A system message follows the user and precedes the assistant or nothing; a run counts as one."""
    user, said = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hm."}
    for messages in ([user, NOTE], [user, NOTE, NOTE], [user, NOTE, said, user]):
        Talk(claude, messages=messages).send()
    for messages in ([NOTE, user], [user, NOTE, user], [user, said, NOTE], [user, said, NOTE, user]):
        with refusal("a system message must immediately follow"):
            Talk(claude, messages=messages).send()
    with refusal("role 'system' is not supported on this model"):
        Talk(claude, "claude-sonnet-5", messages=[user, NOTE]).send()


def test_a_system_message_keeps_thinking_valid(claude: strict.StrictServer) -> None:
    """An instruction that is appended invalidates nothing; deleted or reworded, it does."""
    talk = called(claude, CALL)
    talk.messages += [{"role": "user", "content": talk.results()}, NOTE]
    talk.ask(None, THOUGHT, "So.")
    sent(talk, "And?")
    for other in ([], [NOTE | {"content": "Be long."}]):
        messages = [*talk.messages[:3], *other, *talk.messages[4:], {"role": "user", "content": "And?"}]
        with refusal("bound to a different conversation"):
            talk.send(messages=messages)


def test_turn_scoped_messages_stay(claude: strict.StrictServer) -> None:
    """`clear_at` needs its beta and texts; the cleared message stays where it was."""
    note = NOTE | {"clear_at": "next_user_message"}
    talk = Talk(claude, betas=[CLEAR_AT])
    talk.messages = [{"role": "user", "content": "Hi."}, note]
    talk.ask(None, THOUGHT, "So.")
    sent(talk, "And?")
    with refusal("messages.1.clear_at: Extra inputs are not permitted"):
        sent(talk, "And?", betas=[])
    with refusal("bound to a different conversation"):
        talk.send(messages=[talk.messages[0], NOTE, talk.messages[2], talk.messages[0]])
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "bash"}}
    with refusal("a turn-scoped system message supports text blocks only"):
        scoped = note | {"content": [removal]}
        talk.send(messages=[talk.messages[0], scoped], betas=[CLEAR_AT, INLINE])


def test_tools_change_by_appending(claude: strict.StrictServer) -> None:
    """Additions and removals need a beta and a declared or defined tool, and keep thinking valid."""
    talk = called(claude, CALL)
    talk.ask(talk.results(), THOUGHT, "So.")
    definition = {"name": "more", "description": "More.", "input_schema": {"type": "object"}}
    by_value = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
    by_name = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "bash"}}
    user = {"role": "user", "content": "And?"}
    for block, beta in ((by_value, INLINE), (by_name, INLINE), (by_name, "mid-conversation-tool-changes-2026-07-01")):
        messages = [*talk.messages, user, {"role": "system", "content": [block]}]
        talk.send(messages=messages, betas=[beta])
        with refusal("Extra inputs are not permitted"):
            talk.send(messages=messages)
    with refusal("Extra inputs are not permitted"):
        changes = [*talk.messages, user, {"role": "system", "content": [by_value]}]
        talk.send(messages=changes, betas=["mid-conversation-tool-changes-2026-07-01"])
    unknown = by_name | {"tool": {"type": "tool_reference", "name": "nothing"}}
    with refusal("is not declared in `tools`", code="tool_reference_unresolved"):
        talk.send(messages=[*talk.messages, user, {"role": "system", "content": [unknown]}], betas=[INLINE])
    other = by_value | {"tool": {"type": "tool_definition", "definition": {"type": "bash_20250124", "name": "bash"}}}
    with refusal("has another type", code="tool_name_conflict"):
        talk.send(messages=[*talk.messages, user, {"role": "system", "content": [other]}], betas=[INLINE])


def test_effort_changes_in_a_message(claude: strict.StrictServer) -> None:
    """A system message without content that sets the effort may stand anywhere, with its beta."""
    effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    messages = [effort, {"role": "user", "content": "Hi."}]
    Talk(claude, messages=messages, betas=["mid-conversation-output-config-2026-07-01"]).send()
    with refusal("messages.0.output_config: Extra inputs are not permitted"):
        Talk(claude, messages=messages).send()


def test_the_old_name_of_a_format_needs_its_beta(claude: strict.StrictServer) -> None:
    """`output_format`, as `output_config.format` was called before, is accepted with the beta of that time."""
    schema = {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
    body = {
        "model": STRICT,
        "max_tokens": 99,
        "messages": [{"role": "user", "content": "Hi."}],
        "output_format": schema,
    }
    headers = {"x-api-key": "key", "anthropic-version": "2023-06-01"}
    assert claude.ask("/v1/messages", body, headers).message == "output_format: Extra inputs are not permitted"
    assert not claude.ask("/v1/messages", body, headers | {"anthropic-beta": "structured-outputs-2025-11-13"}).message
