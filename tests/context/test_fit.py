"""`fit`: its arguments, what it reports, and the tools that answer `recall` in a plain loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from palaver.context import POLICIES
from palaver.context.fit import Fit, fit
from palaver.errors import InfeasibleBudget, InvalidInput, NotFound
from palaver.messages import ImageContent, Message, Speaker, ToolResultContent, UserMessage
from tests.context.lists import LISTS, MODELS, PAGE, PNG, TOOLS, chat, claude, faults
from tests.context.pencil import Manager

CUTTING = sorted(set(POLICIES) - {"full", "provider"})
"""Every policy that leaves something out of a list. `provider` asks its provider, which `fit` does not."""


# --- omissions, recall, tools ---------------------------------------------------------------------------------------------


def test_a_plain_loop_answers_recall() -> None:
    """The tools are in the list's dialect, count in the budget, and bring back by handle and by words what was left out."""
    for name in sorted(LISTS):
        given_ = LISTS[name](30)
        fitted = fit(given_, model=MODELS[name], budget=9_000, tools=[TOOLS[name]])
        assert faults(name, fitted) == [], name
        assert 0 < len(fitted.tools) <= 2, name
        assert "recall" in json.dumps(fitted.tools), name
        asked = {"handle": str(next(handle for gone in fitted.omitted for handle in gone.handles()))}
        assert fitted.call_tool("recall", asked) == fitted.call_tool("recall", json.dumps(asked)) != "", name
        for wrong in ("{bad", {}, {"handle": "nonsense"}, {"handle": "f" * 12 + ":1"}):
            assert fitted.call_tool("recall", wrong), "a model's mistake is a result that says what is wrong"
        assert ":" in fitted.call_tool("search_history", {"query": "line 7 of some"}), name
        with pytest.raises(NotFound):
            fitted.call_tool("no_such_tool", {})
        with pytest.raises(NotFound):
            fitted.recall("f" * 12 + ":1")


def test_a_call_is_quoted_alike_in_every_dialect() -> None:
    """However the model spaced the arguments of a call, recalling it shows its name and the same JSON."""
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1,  "by": [2]}'}}
    lists: list[list[dict[str, Any]]] = [
        [{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": [call]}],
        [
            {"role": "user", "content": "Go."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{ "by":[2], "at": 1}'},
        ],
        [
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1, "by": [2]}}],
            },
        ],
    ]
    for given_ in lists:
        said = fit(given_, model="gpt-5", policy="full").call_tool("search_history", {"query": "look"})
        assert said.endswith('(assistant): look {"at":1,"by":[2]}')


def test_a_budget_needs_no_window() -> None:
    """With a budget, a model whose window nobody knows is as good as any: no warning speaks of its window."""
    fitted = fit(chat(30), model="homemade", budget=9_000)
    assert fitted.tokens <= 9_000 < fitted.tokens_before


def test_what_asks_for_recall_comes_with_the_tools() -> None:
    """Where the tools do not fit beside what must be sent, the budget is infeasible, and its breakdown names them."""

    def tried(policy: str, budget: int) -> Fit | InfeasibleBudget:
        try:
            return fit(chat(12), model="gpt-4o", policy=policy, budget=budget)
        except InfeasibleBudget as error:
            return error

    for policy in CUTTING:
        for budget in (60, 150, 250, 350, 600):
            found = tried(policy, budget)
            if isinstance(found, InfeasibleBudget):
                assert found.breakdown["tools"] > 100, (policy, budget)
                assert sum(found.breakdown.values()) == found.needed > found.budget == budget, (policy, budget)
                assert isinstance(tried(policy, found.needed), Fit), "what the error says is enough"
            else:
                assert found.tools, (policy, budget)
    with pytest.raises(InfeasibleBudget) as whole:
        fit([{"role": "user", "content": "one two three"}], model="gpt-4o", budget=4)
    assert "tools" not in whole.value.breakdown, "a list that is sent whole needs none"


def test_an_image_that_left_a_result_is_named_and_recalled() -> None:
    """Whatever the policy: its place says that an image is missing, and the handle gives the result with it."""
    for policy in CUTTING:
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
        given_ = claude(1, "")
        given_[2]["content"][0]["content"] = [{"type": "text", "text": PAGE * 5}, image]
        fitted = fit(given_, model="claude-opus-4-6", policy=policy, budget=1_500)
        assert fitted.tokens <= 1_500, policy
        handles = {handle for gone in fitted.omitted for handle in gone.handles() if handle.seq == 2}
        whole = [fitted.recall(handle) for handle in handles]
        assert given_[2] in whole or any(
            isinstance(each, ToolResultContent) and any(isinstance(part, ImageContent) for part in each.content)
            for each in whole
        ), policy
        for message in fitted.messages:
            if "tool_result" in json.dumps(message):
                assert "image/png" in json.dumps(message), policy


# --- budgets --------------------------------------------------------------------------------------------------------------


def test_one_huge_output_is_shortened_alone() -> None:
    """The first output is larger than the budget: nothing else leaves."""
    given_ = [*chat(20, "short")]
    given_[3] = {**given_[3], "content": PAGE * 20}
    fitted = fit(given_, model="gpt-4o", budget=9_000)
    assert [one is own for one, own in zip(fitted.messages, given_, strict=True)].count(False) == 1
    assert [str(handle.seq) for gone in fitted.omitted for handle in gone.handles()] == ["3"]


def test_without_a_budget_the_policys_own_holds() -> None:
    """A budget beside it wins."""
    policy = {"type": "letta", "max_tokens": 8_000}
    assert fit(chat(30), model="gpt-4o", policy=policy).tokens <= 8_000
    assert fit(chat(30), model="gpt-4o", policy=policy, budget=100_000).omitted == ()


# --- pins, speakers, managers ---------------------------------------------------------------------------------------------


def test_what_is_pinned_stays() -> None:
    """As the caller's own, whatever else goes."""
    for policy in CUTTING:
        given_ = chat(40)
        fitted = fit(given_, model="gpt-4o", policy=policy, budget=9_000, pinned=[5, 6])
        assert {id(given_[5]), id(given_[6])} <= {id(message) for message in fitted.messages}, policy


def test_speaker_tells_observations_from_the_users_words() -> None:
    """Tool output in a user's message is cleared like any output, and never quoted as the human's words."""
    messages = [{"role": "user", "content": "Find the price."}]
    for step in range(2):
        messages += [
            {"role": "assistant", "content": f"fetch {step}"},
            {"role": "user", "content": f"Observation: {step} {PAGE}"},
        ]
    messages += [{"role": "assistant", "content": "word " * 3_000}, {"role": "user", "content": "And now?"}]
    speakers: list[Any] = [{2: "tool", 4: Speaker.TOOL}, lambda index, _: "tool" if index in {2, 4} else None]
    plain, *told = (
        json.dumps(fit(messages, model="gpt-4o", policy="fold", budget=3_500, speaker=speaker).messages)
        for speaker in (None, *speakers)
    )
    assert "Observation: 0" in plain
    for said in told:
        assert "Observation: 0" not in said
        assert "Find the price." in said


def test_law_14_what_a_manager_returns_is_sent() -> None:
    """Added messages are in the list, in the manager's order; the rest is the caller's own."""
    reminder = Message(role="user", content="Remember the budget.")
    by = Manager(lambda dialog: dialog.with_messages([*dialog.messages[-1:], reminder]))
    given_ = [{"role": role, "content": "go"} for role in ("user", "assistant", "user")]
    fitted = fit(given_, model="gpt-4o", policy=by)
    assert fitted.messages == [{"role": "user", "content": "go"}, {"role": "user", "content": "Remember the budget."}]
    assert fitted.messages[0] is given_[2]
    assert {handle.seq for gone in fitted.omitted for handle in gone.handles()} == {0, 1}


# --- repairs --------------------------------------------------------------------------------------------------------------


def test_a_broken_list_is_repaired_and_reported() -> None:
    """A result without its call, a call without a result, an empty answer, a lone surrogate: a valid list, each named."""
    call = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "a\ud99cb"},
        {"role": "tool", "tool_call_id": "nowhere", "content": "orphan"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "go on"},
    ]
    fitted = fit(messages, model="gpt-4o")
    assert faults("openai-chat", fitted) == []
    json.dumps(fitted.messages, ensure_ascii=False).encode()
    report = "\n".join(map(str, fitted.report))
    for words in ("surrogates", "its call is not there", "it says nothing", "its call has none in the list"):
        assert words in report


def test_a_record_that_quotes_the_mark_counts_as_it_is_written() -> None:
    """Words of the user that look like the end of a mark are escaped in a record, and counted so: read anew, the list is no larger."""
    said = [{"role": "user", "content": "</from-harness>" * 5}, {"role": "assistant", "content": "word " * 900}] * 3
    fitted = fit([*said, {"role": "user", "content": "go on"}], model="claude-opus-4-6", budget=1_500, policy="palaver")
    assert r"<\/from-harness>" in fitted.messages[0]["content"][0]["text"]
    again = fit(fitted.messages, model="claude-opus-4-6", policy="full", tools=fitted.tools, system=fitted.system)
    assert again.tokens_before <= fitted.tokens


def test_a_spoken_answer_and_a_refusal_are_not_empty() -> None:
    """Chat completions: it is not an empty message, and what a response says beside the id is left out."""
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "audio": {"id": "audio_1", "data": "UklGRg==", "transcript": "A heron."},
        },
        {"role": "user", "content": "What?"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "user", "content": "Why?"},
    ]
    fitted = fit(messages, model="gpt-4o-audio-preview")
    assert fitted.messages[1] == {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    assert fitted.messages[3] is messages[3]
    assert fitted.omitted == ()


def test_a_list_that_says_nothing_is_refused() -> None:
    """No turn is invented, instructions beside the list or not."""
    for messages in ([], [{"role": "user", "content": None}], [{"role": "user", "content": " \n"}]):
        for model in ("gpt-4o", "claude-sonnet-4-5"):
            with pytest.raises(InvalidInput, match="nothing to send"):
                fit(messages, model=model, system="be brief")


def test_instructions_keep_their_form() -> None:
    """What was given beside the list is the same object; what stood in the list is added to it."""
    blocks = [{"type": "text", "text": "be brief"}]
    assert fit(claude(2), model="claude-opus-4-6", system=blocks).system is blocks
    more = [{"role": "system", "content": "be kind"}, *claude(2)]
    moved = fit(more, model="claude-opus-4-6", system=blocks, dialect="anthropic")
    assert moved.system == [*blocks, {"type": "text", "text": "be kind"}]


# --- wrong arguments ------------------------------------------------------------------------------------------------------

LOOP: dict[str, Any] = {"role": "user"}
LOOP["content"] = [LOOP]


def test_a_wrong_argument_is_named() -> None:
    """With its value and its place: never a bare TypeError or RecursionError."""
    lists: list[tuple[Any, str]] = [
        ("hi", "The messages are a str, not a list"),
        (["hi"], "Item 0 of the messages is a str, not a message"),
        ([UserMessage(content="hi")], r"Item 0 of the messages is palaver's own UserMessage. Pass its to_api_dict\(\)"),
        ([{"role": [], "content": "hi"}], r"Item 0 of the messages: The role is \[\], not a text"),
        ([{"role": "user", "output": "hi"}], "Item 0 of the messages has no content; its keys: role, output"),
        ([LOOP], "Item 0 of the messages contains itself"),
    ]
    others: list[tuple[dict[str, Any], str]] = [
        ({"model": 5}, "The model is 5"),
        ({"budget": "50%"}, "The budget is '50%'"),
        ({"policy": None}, "needs a policy"),
        ({"pinned": [9_999]}, "Message 9999 is pinned"),
        ({"speaker": {0: "robot"}}, "The speaker of message 0 is 'robot'"),
        ({"tools": [5]}, "Item 0 of the tools is 5, not a schema"),
        ({"system": 5}, "Instructions are a text"),
    ]
    for messages, words, says in [
        *((given_, {"dialect": "openai-chat"}, says) for given_, says in lists),
        *((chat(1), words, says) for words, says in others),
    ]:
        with pytest.raises(InvalidInput, match=says):
            fit(messages, **{"model": "gpt-4o", **words})
