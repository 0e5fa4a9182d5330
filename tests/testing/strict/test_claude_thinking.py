"""The stand-in of the Messages API signs thinking, and takes it back only while what preceded it is unchanged.

The rules are those of https://platform.claude.com/docs/en/build-with-claude/preserved-thinking.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from palaver.testing import strict
from tests.testing.strict.claude import BINDING, STRICT, SYSTEM, THOUGHT, TOOLS, Json, Talk, refusal

pytestmark = pytest.mark.filterwarnings(
    "ignore:The model .* is deprecated:DeprecationWarning"
)  # the vendor's client says so of older ones

OTHER_CONVERSATION = "The block is bound to a different conversation."
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}


def long_talk(server: strict.StrictServer, model: str = STRICT) -> Talk:
    """Return a conversation of three turns: with an image, a tool call, and thinking in each answer."""
    talk = Talk(server, model)
    talk.ask([{"type": "text", "text": "Look."}, IMAGE], THOUGHT, "I see.")
    talk.ask("List.", THOUGHT, {"type": "tool_use", "name": "bash", "input": {"command": "ls"}})
    talk.ask(talk.results(), THOUGHT, "Two files.")
    talk.messages.append({"role": "user", "content": "Go on."})
    return talk


def thoughts(talk: Talk) -> list[tuple[int, int]]:
    """Return the places of thinking in the history."""
    return [
        (at, number)
        for at, message in enumerate(talk.messages)
        for number, block in enumerate(message["content"])
        if message["role"] == "assistant" and block["type"] == "thinking"
    ]


def without(talk: Talk, *numbers: int) -> Talk:
    """Remove blocks of thinking by number."""
    places = thoughts(talk)
    for at, number in sorted((places[number] for number in numbers), reverse=True):
        del talk.messages[at]["content"][number]
    return talk


def changed(talk: Talk, change: Callable[[Json], Any]) -> Json:
    """Return a request with a change."""
    body: Json = {"system": SYSTEM, "tools": copy.deepcopy(TOOLS), "messages": copy.deepcopy(talk.messages)}
    change(body)
    return body


VALID: dict[str, Callable[[Json], Any]] = {
    "nothing": lambda body: body,
    "a cache mark": lambda body: body["messages"][0]["content"][1].update(cache_control={"type": "ephemeral"}),
    "the order of keys": lambda body: body.update(tools=[dict(reversed(tool.items())) for tool in TOOLS]),
    "system as blocks": lambda body: body.update(system=[{"type": "text", "text": SYSTEM}]),
    "effort": lambda body: body.update(output_config={"effort": "high"}),
    "max_tokens": lambda body: body.update(max_tokens=9),
    "tool_choice": lambda body: body.update(tool_choice={"type": "none"}),
    "a deferred tool": lambda body: body["tools"].append(TOOLS[0] | {"name": "later", "defer_loading": True}),
    "a message at the end": lambda body: body["messages"].append({"role": "user", "content": "And quickly."}),
}
INVALID: dict[str, Callable[[Json], Any]] = {
    "a word of the system prompt": lambda body: body.update(system="You plan release."),
    "no system prompt": lambda body: body.pop("system"),
    "a tool more": lambda body: body["tools"].append(TOOLS[0] | {"name": "more"}),
    "a tool less": lambda body: body["tools"].pop(),
    "a description": lambda body: body["tools"][0].update(description="Run commands."),
    "the order of tools": lambda body: body["tools"].reverse(),
    "a byte of an image": lambda body: body["messages"][0]["content"][1]["source"].update(data="aGVsbG4="),
    "no image": lambda body: body["messages"][0]["content"].pop(),
    "a text more in a user's turn": lambda body: body["messages"][0]["content"].append({"type": "text", "text": "!"}),
    "a shorter result": lambda body: body["messages"][4]["content"][0].update(content=""),
    "an argument of a call": lambda body: body["messages"][3]["content"][-1].update(input={"command": "ls -l"}),
    "the beginning": lambda body: body.update(messages=body["messages"][2:]),
}


@pytest.mark.parametrize("what", sorted(VALID))
def test_thinking_stays_valid_after(claude: strict.StrictServer, what: str) -> None:
    """What the vendor's table calls valid is accepted, and nothing is dropped."""
    talk = long_talk(claude)
    body = changed(talk, VALID[what])
    assert talk.send(**body, betas=[BINDING])["input_transformations"] == []


@pytest.mark.parametrize("what", sorted(INVALID))
def test_thinking_is_refused_after(claude: strict.StrictServer, what: str) -> None:
    """What the vendor's table calls invalid is refused; without the thinking, or by a model that does not check, it is accepted."""
    talk = long_talk(claude)
    body = {"system": None} | changed(talk, INVALID[what])
    with refusal(OTHER_CONVERSATION):
        talk.send(**body)
    stripped = {"system": None} | changed(without(talk, 0, 1, 2), INVALID[what])
    assert talk.send(**stripped)["stop_reason"] == "end_turn"
    older = long_talk(claude, "claude-opus-5")
    assert older.send(**({"system": None} | changed(older, INVALID[what])))["stop_reason"] == "end_turn"


@pytest.mark.parametrize("gone", [(0,), (0, 1), (2,), (1, 2), (0, 1, 2)])
def test_thinking_may_leave_from_an_end(claude: strict.StrictServer, gone: tuple[int, ...]) -> None:
    """Removing the oldest, the newest or all thinking leaves the rest valid."""
    talk = without(long_talk(claude), *gone)
    assert talk.send(betas=[BINDING])["input_transformations"] == []


def test_thinking_may_not_leave_from_the_middle(claude: strict.StrictServer) -> None:
    """A gap invalidates the thinking after it."""
    talk = without(long_talk(claude), 1)
    with refusal("An earlier thinking block is missing or out of order."):
        talk.send()


def test_removed_thinking_may_not_come_back(claude: strict.StrictServer) -> None:
    """Thinking that was gone while others thought invalidates theirs."""
    talk = long_talk(claude)
    whole = copy.deepcopy(talk.messages)
    without(talk, 0)
    answer = talk.ask(None, THOUGHT, "Well.")
    question = {"role": "user", "content": "And?"}
    talk.messages.append(question)
    talk.send()
    talk.messages = [*whole, {"role": "assistant", "content": answer["content"]}, question]
    with refusal("messages.7.content.0"):
        talk.send()


def test_drop_block_drops_and_reports(claude: strict.StrictServer) -> None:
    """With the field and its header, what fails is dropped and listed; what was thought without it is valid afterwards."""
    talk = long_talk(claude)
    talk.fields |= {"system": "You plan.", "thinking": DROP, "betas": [BINDING]}
    answer = talk.ask(None, THOUGHT, "Well.")
    paths = [f"messages.{at}.content.{number}" for at, number in thoughts(talk)[:3]]
    reason = "prefix_binding_mismatch"
    assert answer["input_transformations"] == [
        {"type": "thinking_dropped", "path": path, "reason": reason} for path in paths
    ]
    again = talk.ask("And?")
    assert [entry["path"] for entry in again["input_transformations"]] == paths
    assert len(claude.dropped) == 6


def test_drop_block_needs_its_header(claude: strict.StrictServer) -> None:
    """Without the beta, the field is unknown; the refusal of a changed prefix names the beta."""
    talk = long_talk(claude)
    with refusal("thinking.adaptive.block_binding: Extra inputs are not permitted"):
        talk.send(thinking=DROP)
    with refusal("That setting requires the `thinking-binding-controls-2026-08-01` value"):
        talk.send(system="You plan.")


def test_between_tools_has_no_binding(claude: strict.StrictServer) -> None:
    """The field is refused with `between_tools`, which only Sonnet 5.5 knows."""
    talk = Talk(claude, "claude-sonnet-5-5", thinking={"type": "between_tools"})
    assert talk.ask("Hi.", THOUGHT, "Well.")["content"][0]["thinking"] == "hm"
    binding = {"type": "between_tools", "block_binding": {}}
    talk.messages.append({"role": "user", "content": "And?"})
    with refusal("thinking.between_tools.block_binding: Extra inputs are not permitted"):
        talk.send(thinking=binding, betas=[BINDING])
    with refusal('"thinking.type.between_tools" is not supported for this model.'):
        talk.send(model=STRICT, thinking={"type": "between_tools"})


def test_older_accounts_are_told() -> None:
    """Where the check is not enforced, a mismatch is allowed and listed, until the field is set; Fable 5.2 checks for every account."""
    with strict.anthropic(new_account=False) as server:
        talk = long_talk(server)
        told = talk.send(system="You plan.", betas=[BINDING])["input_transformations"]
        assert {entry["type"] for entry in told} == {"thinking_mismatch_allowed"}
        error = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
        with refusal(OTHER_CONVERSATION):
            talk.send(system="You plan.", betas=[BINDING], thinking=error)
        newest = long_talk(server, "claude-fable-5-2")
        with refusal(OTHER_CONVERSATION):
            newest.send(system="You plan.")


@pytest.mark.parametrize("signature", ["", "c2lnbmF0dXJl", "not base64!"])
def test_tampered_signatures_are_never_dropped(claude: strict.StrictServer, signature: str) -> None:
    """An empty or edited signature is refused by every model, whatever the request says."""
    for model in (STRICT, "claude-opus-4-6"):
        talk = Talk(claude, model, thinking={"type": "adaptive"})
        talk.ask("Hi.", THOUGHT, "Well.")
        talk.messages[-1]["content"][0]["signature"] = signature
        talk.messages.append({"role": "user", "content": "And?"})
        with refusal("messages.1.content.0: Invalid `signature` in `thinking` block"):
            talk.send(thinking=DROP, betas=[BINDING])


def test_edited_or_moved_thinking_is_refused(claude: strict.StrictServer) -> None:
    """Thinking may not be edited, nor moved to the head of its message."""
    talk = Talk(claude, STRICT, thinking={"type": "adaptive", "display": "summarized"})
    call = {"type": "tool_use", "name": "bash"}
    talk.ask("List.", call, THOUGHT, "And more.", call)
    talk.messages.append({"role": "user", "content": talk.results()})
    assert talk.send()["stop_reason"] == "end_turn"
    content = talk.messages[1]["content"]
    moved = [content[1], content[0], *content[2:]]
    with refusal("in the latest assistant message cannot be modified"):
        talk.send(messages=[talk.messages[0], {"role": "assistant", "content": moved}, talk.messages[2]])
    content[1]["thinking"] = "h"
    with refusal("in the latest assistant message cannot be modified"):
        talk.send()


READS = [
    ("claude-opus-5", "claude-opus-5", True),
    ("claude-opus-5", "claude-fable-5-1", True),
    ("claude-opus-5-5", "claude-fable-5-1", True),
    ("claude-opus-5", "claude-opus-5-5", True),
    ("claude-sonnet-5-5", "claude-opus-5-5", True),
    ("claude-fable-5-1", "claude-mythos-5-1", True),
    ("claude-fable-5-1", "claude-fable-5-2", True),
    ("claude-fable-5-2", "claude-opus-5-5", False),
    ("claude-fable-5-2", "claude-fable-5-1", False),
    ("claude-opus-5-5", "claude-sonnet-5-5", False),
    ("claude-opus-5", "claude-haiku-5-5", False),
    ("claude-fable-5-1", "claude-opus-5", False),
]


@pytest.mark.parametrize(("maker", "reader", "read"), READS)
def test_models_read_the_thinking_of_some(claude: strict.StrictServer, maker: str, reader: str, read: bool) -> None:
    """What a model cannot read is dropped without an error, and listed with the header."""
    talk = Talk(claude, maker)
    talk.ask("Hi.", THOUGHT, "Well.")
    talk.messages.append({"role": "user", "content": "And?"})
    told = talk.send(model=reader, betas=[BINDING])["input_transformations"]
    assert [entry["reason"] for entry in told] == ([] if read else ["model_binding_mismatch"])
    assert "input_transformations" not in talk.send(model=reader)


def test_a_switch_there_and_back_keeps_thinking(claude: strict.StrictServer) -> None:
    """Blocks that one model cannot read are readable again by their maker, with what the other thought."""
    talk = Talk(claude, "claude-fable-5-2")
    talk.ask("Hi.", THOUGHT, "Well.")
    talk.ask("And?", THOUGHT, "So.", model="claude-opus-5-5")
    talk.messages.append({"role": "user", "content": "And?"})
    assert talk.send(betas=[BINDING])["input_transformations"] == []


def test_thinking_of_another_account_is_dropped() -> None:
    """Sonnet and Haiku 5.5 bind thinking to the account; the drop is silent without the header."""
    with strict.anthropic(accounts={"key": "here", "other": "there"}) as server:
        talk = Talk(server, "claude-sonnet-5-5")
        talk.ask("Hi.", THOUGHT, "Well.")
        talk.messages.append({"role": "user", "content": "And?"})
        talk.client = talk.client.with_options(api_key="other")
        told = talk.send(betas=[BINDING])["input_transformations"]
        assert [entry["reason"] for entry in told] == ["organization_binding_mismatch"]


def test_redacted_thinking_is_bound_too(claude: strict.StrictServer) -> None:
    """A redacted block goes back, and is refused after a change."""
    talk = Talk(claude)
    talk.ask("Hi.", {"type": "redacted_thinking"}, "Well.")
    talk.messages.append({"role": "user", "content": "And?"})
    talk.send()
    with refusal("Invalid `signature` in `redacted_thinking` block"):
        talk.send(system="You plan.")


def test_manual_thinking_begins_the_turn(claude: strict.StrictServer) -> None:
    """With a manual budget, a turn that goes on after tool results must begin with thinking."""
    talk = Talk(claude, "claude-opus-4-5", thinking={"type": "enabled", "budget_tokens": 1_024})
    talk.ask("List.", THOUGHT, {"type": "tool_use", "name": "bash"})
    talk.messages.append({"role": "user", "content": talk.results()})
    talk.send()
    del talk.messages[1]["content"][0]
    with refusal("When `thinking` is enabled, a final `assistant` message must start with a thinking block"):
        talk.send()
    talk.send(thinking=None)


def test_a_count_checks_like_a_message(claude: strict.StrictServer) -> None:
    """The counting of tokens runs the same check."""
    talk = long_talk(claude)
    fields: Json = {"model": STRICT, "tools": TOOLS, "messages": talk.messages}
    assert talk.client.beta.messages.count_tokens(**fields, system=SYSTEM).input_tokens > 0
    with refusal(OTHER_CONVERSATION):
        talk.client.beta.messages.count_tokens(**fields)


def test_servers_with_one_key_read_each_other() -> None:
    """A signature says all that is needed: another server with the same key takes it, one with another key does not."""
    with strict.anthropic() as one, strict.anthropic() as same, strict.anthropic(key="other") as other:
        talk = long_talk(one)
        for server in (same, other):
            talk.client = talk.client.with_options(base_url=server.url)
            if server is same:
                talk.send()
                continue
            with refusal("Invalid `signature`"):
                talk.send()
