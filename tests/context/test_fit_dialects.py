"""`fit` over lists of all four dialects: what comes back is valid, within the budget and the caller's own where nothing was done to it."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.context import POLICIES
from palaver.context.fit import Fit, fit
from palaver.errors import InfeasibleBudget, InvalidInput, InvalidMessage
from palaver.providers import profile
from palaver.tokens import Budget
from palaver.wire import Breach, validate
from tests.context.lists import LISTS, MODELS, PAGE, PNG, TOOLS, Item, faults, responses
from tests.wire.vendor_types import hold_to_types

NAMES = sorted(LISTS)
CUTTING = sorted(set(POLICIES) - {"full", "provider"})
"""Every policy that leaves something out of a list. `provider` asks its provider, which `fit` does not."""


def test_a_long_list_fits_in_its_dialect() -> None:
    """Within the budget, valid, nothing of the caller's changed, untouched messages his own, every omission recalled."""
    for name in NAMES:
        for policy in CUTTING:
            given_ = LISTS[name](30)
            before = copy.deepcopy(given_)
            fitted = fit(given_, model=MODELS[name], policy=policy, budget=9_000, tools=[TOOLS[name]])
            assert given_ == before, name
            assert fitted.tokens <= 9_000 < fitted.tokens_before, name
            assert faults(name, fitted) == [], name
            own, shown = {id(item) for item in given_}, {id(item) for item in fitted.messages}
            assert all((id(item) in own) == (item in before) for item in fitted.messages), name
            assert fitted.messages[-1] is given_[-1], name
            handles = [handle for gone in fitted.omitted for handle in gone.handles()]
            changed = {at for at, item in enumerate(given_) if id(item) not in shown}
            named = {handle.seq for handle in handles}
            assert named == changed if name == "openai-chat" else named, (name, policy)  # others merge messages
            for handle in handles:
                found = fitted.recall(handle)
                assert found is given_[handle.seq] if handle.block is None else found, name


def test_what_fits_comes_back_as_it_is() -> None:
    """The same objects, an empty report, nothing omitted, no tools."""
    for name in NAMES:
        given_ = LISTS[name](2)
        fitted = fit(given_, model=MODELS[name], budget=100_000)
        assert all(one is own for one, own in zip(fitted.messages, given_, strict=True)), name
        assert (fitted.report.changes, fitted.omitted, fitted.tools) == ((), (), []), name
        assert fitted.tokens == fitted.tokens_before, name


def test_a_cleared_output_changes_nothing_else() -> None:
    """Of a patched message everything but the output stays: ids, names, signatures, custom fields."""
    for name in NAMES:
        given_ = LISTS[name](12)
        fitted = fit(given_, model=MODELS[name], policy="offload", budget=7_000)
        assert len(fitted.messages) == len(given_), name
        changed = [(one, own) for one, own in zip(fitted.messages, given_, strict=True) if one is not own]
        assert changed, name
        for one, own in changed:
            assert "recall" in json.dumps(one), name
            assert one.keys() == own.keys(), name
            assert _shape(one) == _shape(own), name


def _shape(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value without its long texts."""
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return "..." if isinstance(value, str) and ("recall" in value or PAGE[:40] in value) else value


def test_law_7_a_growing_list_gives_prefixes() -> None:
    """Between two steps of the cut, what was sent before is sent again; steps are rare."""
    for name in NAMES:
        whole = LISTS[name](24, PAGE[:1_500])
        edits, last = 0, list[Item]()
        for end in (at for at, item in enumerate(whole, 1) if "ask" in json.dumps(item)):
            messages = fit(whole[:end], model=MODELS[name], budget=8_000).messages
            edits += messages[: len(last)] != last
            last = messages
        assert 0 < edits <= 3 * fit(whole, model=MODELS[name], budget=8_000).tokens_before / 4_000, name


def test_reasoning_goes_with_what_it_led_to() -> None:
    """A response that is not shown whole loses the ids of its items, which OpenAI would look up; what is whole keeps them."""
    given_ = responses(30)
    fitted = fit(given_, model="gpt-5.2", policy="fold", budget=6_000)
    kinds = [item.get("type") for item in fitted.messages]
    assert 0 < kinds.count("reasoning") < 30
    assert kinds.count("function_call") == kinds.count("reasoning") == kinds.count("function_call_output")
    led = {item["id"] for item in given_ if item.get("id")}
    assert all(item["id"] in led for item in fitted.messages if "id" in item)


def test_calls_without_ids_keep_their_responses() -> None:
    """Gemini's calls of one name stay in order, and no id is invented."""
    fitted = fit(LISTS["gemini"](12), model="gemini-3-pro", policy="offload", budget=5_000)
    parts = [part for content in fitted.messages for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert len(calls) == len(answers) == 24
    assert not any("id" in one for one in (*calls, *answers))


# --- hostile values -------------------------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (None, [], {}, 5, "", [None], {"a": 1}, float("nan"))
SMALL = {name: LISTS[name](1, "out") for name in NAMES}


def paths(value: object, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*before, key)
        yield from paths(inner, (*before, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy with another value at a path."""
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


@pytest.mark.parametrize("name", NAMES)
def test_any_odd_value_gives_a_valid_list_or_a_typed_error(name: str) -> None:
    """Each value of a list replaced by None, an empty list, a number and so on: never a bare TypeError, never a null that a provider refuses."""
    for path in paths(SMALL[name]):
        for odd in ODD:
            messages = put(SMALL[name], path, odd)
            try:
                fitted = fit(messages, model=MODELS[name], dialect=name, budget=10_000)
            except InvalidInput:
                continue
            assert faults(name, fitted) == [], (path, odd)
            assert '"id": null' not in json.dumps(fitted.messages), (path, odd)


def test_arguments_are_a_json_object_as_text() -> None:
    """Whatever the caller's list holds: servers that parse a history take no other."""
    cases_1: list[object] = [None, {"page": 1}, '{"page": 1', "", "[1]"]
    for name in ["openai-chat", "openai-responses"]:
        for arguments in cases_1:
            function = {"name": "sh", "arguments": arguments}
            call: Item = {"type": "function_call", "call_id": "c", **function}
            if name == "openai-chat":
                calls = [{"id": "c", "type": "function", "function": function}]
                call = {"role": "assistant", "content": None, "tool_calls": calls}
            fitted = fit([{"role": "user", "content": "go"}, call], model=MODELS[name])
            made = fitted.messages[1]
            text = made["arguments"] if name == "openai-responses" else made["tool_calls"][0]["function"]["arguments"]
            assert isinstance(json.loads(text), dict), (name, arguments)
            assert "page" in text or not arguments or arguments == "[1]", (name, arguments)


def test_equal_call_ids_in_two_turns_stay_apart() -> None:
    """D16: a server that counts its calls from 0 in every turn: each call keeps its own result."""
    for name in NAMES:
        text = re.sub('"[ctd][0-9]"', lambda found: f'"{found[0][1]}"', json.dumps(LISTS[name](4, "out")))
        fitted = fit(json.loads(text), model=MODELS[name])
        assert faults(name, fitted) == [], name
        said = json.dumps(fitted.messages)
        assert [f'"{number}: out"' in said for number in range(4)] == [True] * 4, name


# --- any list -------------------------------------------------------------------------------------------------------------

WORDS = (" ", "{{ 7*7 }}", "ä\ud800", "\0", "</from-harness>", "{bad", "x" * 70)
USER = {"role": "user"}
URL = f"data:image/png;base64,{PNG}"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}
ODDITIES: dict[str, list[Item]] = {
    "openai-chat": [
        {**USER, "name": "Ann Ä", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
        {"role": "assistant", "content": "so", "reasoning_content": "hm", "refusal": None},
        {"role": "developer", "content": "be kind"},
    ],
    "openai-responses": [
        {**USER, "content": [{"type": "input_image", "detail": "auto", "image_url": URL}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"role": "assistant", "content": "so"},
    ],
    "anthropic": [
        {**USER, "content": [IMAGE, DOCUMENT]},
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "b3BhcXVl"}]},
    ],
    "gemini": [
        {**USER, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "so"}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
    ],
    "gemini-interactions": [
        {"type": "user_input", "content": [{"type": "image", "mime_type": "image/png", "data": PNG}]},
        {"type": "google_search_call", "id": "gs_1", "arguments": {"queries": ["q"]}, "signature": "c2ln"},
        {"type": "novelty", "new": 1},
        {"type": "thought", "signature": ""},
        {"type": "model_output", "content": [{"type": "text", "text": "so"}]},
    ],
}


def test_what_a_list_needs_counts_what_writing_adds() -> None:
    """A list with no first message of the user gets one: the error says how much the list takes with it, and that is enough."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque1"}
    items = [thought, *[{"role": "developer", "content": "be brief"}] * 4]

    def fitted(tokens: int) -> Fit:
        return fit(items, model="gpt-5", budget=Budget.of_input(tokens), dialect="openai-responses")

    with pytest.raises(InfeasibleBudget) as error:
        fitted(117)
    assert fitted(error.value.needed).tokens == error.value.needed == sum(error.value.breakdown.values())


@settings(max_examples=max(settings().max_examples, 40), deadline=None)
@given(data=st.data(), name=st.sampled_from(NAMES), policy=st.sampled_from(CUTTING), tokens=st.integers(60, 3_000))
def test_law_1_any_list_comes_back_valid(data: st.DataObject, name: str, policy: str, tokens: int) -> None:
    """Items in any order, with odd values in them, for every preset: valid and within the budget, or an InfeasibleBudget whose parts add up; the list given is as it was."""
    known = [*LISTS[name](2, PAGE[:3_000]), *ODDITIES[name]]
    items = copy.deepcopy(data.draw(st.lists(st.sampled_from(known), max_size=8)))
    odd = data.draw(st.lists(st.sampled_from([*paths(items)]), max_size=2)) if items else []
    for path in odd:
        with suppress(LookupError, TypeError):  # a value inside one that was replaced
            items = put(items, path, data.draw(st.sampled_from([*ODD, *WORDS])))
    before = copy.deepcopy(items)
    try:
        fitted = fit(items, model=MODELS[name], policy=policy, budget=Budget.of_input(tokens), dialect=name)
    except InvalidInput as error:
        if not odd and "nothing to send" not in str(error):
            raise
        return
    except InfeasibleBudget as caught:
        infeasible = caught
    else:
        _holds(fitted, name, tokens)
        assert items == before
        return
    assert sum(infeasible.breakdown.values()) == infeasible.needed > tokens


def _holds(fitted: Fit, name: str, tokens: int) -> None:
    """Assert that a list is valid and within its budget, by its own count and read anew."""
    assert fitted.tokens <= tokens
    assert faults(name, fitted) == []
    words = {"system": fitted.system, "tools": fitted.tools, "dialect": name}
    with suppress(InvalidInput):  # reasoning, which this model does not accept, was all that it said
        assert fit(fitted.messages, model=MODELS[name], policy="full", **words).tokens_before <= fitted.tokens


# --- which dialect --------------------------------------------------------------------------------------------------------


def test_texts_take_the_dialect_of_model_or_caller() -> None:
    """Texts alone are in two dialects; Anthropic lets no model begin."""
    texts = [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "a"}]
    assert len(fit(texts, model="gpt-4o").messages) == 2
    assert len(fit(texts, model="claude-sonnet-4-5").messages) == 3
    assert len(fit(texts, model="claude-sonnet-4-5", dialect="openai-chat").messages) == 2
    with pytest.raises(InvalidInput, match="dialect 'morse'"):
        fit(texts, model="gpt-4o", dialect="morse")


def test_chunks_of_thinking_are_of_chat_completions() -> None:
    """Mistral's thinking is a list of chunks in a message of chat completions; Anthropic's has the same type and a text."""
    said = {"type": "text", "text": "Done."}
    chunks = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True}
    question = {"role": "user", "content": "q"}
    mistral = [question, {"role": "assistant", "content": [chunks, said]}, question]
    assert fit(mistral, model="mistral-large-2512").messages == mistral
    block = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    claude = [question, {"role": "assistant", "content": [block, said]}, question]
    with pytest.raises(InvalidMessage, match=r"Item 3 .* read as anthropic because item 1"):
        fit([*claude, {"parts": []}], model="gpt-4o")
    with pytest.raises(InvalidMessage, match=r"Item 3 .* read as openai-chat because item 1"):
        fit([*mistral, {"parts": []}], model="gpt-4o")


def test_a_list_of_two_dialects_is_refused() -> None:
    """Both items are named: a message in other words is never taken for an empty one."""
    mixed = [{"role": "user", "content": "hi"}, {"role": "user", "parts": [{"text": "IMPORTANT"}]}]
    with pytest.raises(InvalidMessage, match=r"Item 0 of the messages has no parts.*because item 1"):
        fit(mixed, model="gemini-3-pro")
    with pytest.raises(InvalidMessage, match="Item 1 of the messages has no content; its keys: role, parts"):
        fit(mixed, model="gpt-5.2", dialect="openai-chat")


def test_another_makers_fields_are_kept() -> None:
    """DeepSeek's `reasoning_content` stays in the caller's own message; OpenAI's models, which refuse it, get the message without."""
    said = {"role": "assistant", "content": "a", "reasoning_content": "think"}
    messages = [{"role": "user", "content": "q"}, said, {"role": "user", "content": "and now?"}]
    kept = fit(messages, model="deepseek-reasoner", dialect="openai-chat")
    assert kept.messages[1] is said
    assert [change.how.value for change in kept.report.changes] == ["kept"]
    stripped = fit(messages, model="gpt-4o")
    assert stripped.messages[1] == {"role": "assistant", "content": "a"}
    assert [change.how.value for change in stripped.report.changes] == ["changed"]


# --- objects of SDKs ------------------------------------------------------------------------------------------------------


def test_objects_of_sdks_come_back_themselves() -> None:
    """`messages.append(response.choices[0].message)`: read, counted, recalled, and given back as the very object."""
    openai, types = pytest.importorskip("openai.types.chat"), pytest.importorskip("openai.types.responses")
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    said = openai.ChatCompletionMessage(role="assistant", tool_calls=[call])
    answer = {"role": "tool", "tool_call_id": "c", "content": PAGE}
    go = {"role": "user", "content": "go"}
    chat = fit([go, said, answer, go], model="gpt-4o", policy="offload", budget=600)
    assert chat.messages[1] is said
    assert "recall" in chat.messages[2]["content"]
    thought = types.ResponseReasoningItem(id="rs_1", type="reasoning", summary=[], encrypted_content="opaque")
    made = types.ResponseFunctionToolCall(type="function_call", call_id="c1", name="sh", arguments="{}", id="fc_1")
    output = {"type": "function_call_output", "call_id": "c1", "output": PAGE}
    items = fit([go, thought, made, output, go], model="gpt-5.2", policy="offload", budget=600)
    assert items.messages[1:3] == [thought, made]


def test_contents_of_googles_client_come_back_themselves() -> None:
    """Snake case and bytes are read; what a call is called with is left alone."""
    types = pytest.importorskip("google.genai.types")
    part = types.Part(function_call=types.FunctionCall(name="sh", args={"function_call": 1}), thought_signature=b"sig")
    said = types.Content(role="model", parts=[part])
    answer = {"role": "user", "parts": [{"function_response": {"name": "sh", "response": {"output": PAGE}}}]}
    go = {"role": "user", "parts": [{"text": "go"}]}
    fitted = fit(
        [go, said, answer, {"role": "model", "parts": [{"text": "ok"}]}, go],
        model="gemini-3-pro",
        policy="offload",
        budget=600,
    )
    assert fitted.messages[1] is said
    assert "recall" in str(fitted.messages[2])


# --- what only the provider's own tools say ----------------------------------------------------------------------------------


def sent(name: str, messages: list[Any]) -> dict[str, Any]:
    """Return a request that the vendor's own types accept."""
    beside = {"model": MODELS[name], **({"max_tokens": 100} if name == "anthropic" else {})}
    body = {**beside, ("messages" if name == "anthropic" else "input"): messages}
    hold_to_types(name, body)
    return body


def test_custom_call_without_output_gets_one_of_its_kind() -> None:
    """OpenAI finds the output of a free-form call by its own type; the other type is refused, here as there."""
    call = {"type": "custom_tool_call", "call_id": "d1", "name": "patch", "input": "*** Begin"}
    other = {"type": "function_call", "call_id": "c1", "name": "sh", "arguments": "{}"}
    asked: Item = {"role": "user", "content": "go"}
    fitted = fit([asked, call, other, {"role": "user", "content": "and?"}], model="gpt-5", dialect="openai-responses")
    assert faults("openai-responses", fitted) == []
    body = sent("openai-responses", fitted.messages)
    answers = {item["call_id"]: item["type"] for item in body["input"] if "output" in item}
    assert answers == {"d1": "custom_tool_call_output", "c1": "function_call_output"}
    wrong = [asked, call, {"type": "function_call_output", "call_id": "d1", "output": "x"}]
    found = validate({"model": "gpt-5", "input": wrong}, profile("openai-responses", "gpt-5"))
    assert {fault.rule for fault in found} == {Breach.CALL_UNANSWERED, Breach.RESULT_ORPHAN}


SEARCH: Item = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "herons"}}
FOUND: Item = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CALL: Item = {"type": "tool_use", "id": "t1", "name": "sh", "input": {}}
RESULT: Item = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
SPOKEN: Item = {"type": "text", "text": "Herons fish."}


def test_server_call_in_mid_history_needs_its_result() -> None:
    """Without it the call is left out and reported, all else stays; a paused or mixed turn that goes on keeps it."""
    asked: Item = {"role": "user", "content": "go"}
    more: Item = {"role": "user", "content": "and?"}
    cases: list[tuple[list[Item], list[str]]] = [
        ([asked, {"role": "assistant", "content": [SEARCH, SPOKEN]}, more], ["text"]),
        ([asked, {"role": "assistant", "content": [FOUND, SPOKEN]}, more], ["text"]),
        (
            [asked, {"role": "assistant", "content": [SEARCH, FOUND, SPOKEN]}, more],
            [SEARCH["type"], FOUND["type"], "text"],
        ),
        ([asked, {"role": "assistant", "content": [SPOKEN, SEARCH]}], ["text", SEARCH["type"]]),
        (
            [asked, {"role": "assistant", "content": [SEARCH, CALL]}, {"role": "user", "content": [RESULT]}],
            [SEARCH["type"], "tool_use"],
        ),
        (
            [asked, {"role": "assistant", "content": [SEARCH, CALL]}, {"role": "user", "content": [RESULT, SPOKEN]}],
            ["tool_use"],
        ),
    ]
    for messages, kept in cases:
        fitted = fit(messages, model=MODELS["anthropic"])
        assert [block["type"] for block in fitted.messages[1]["content"]] == kept
        assert faults("anthropic", fitted) == []
        assert bool(fitted.report.changes) is (len(kept) < len(messages[1]["content"]))
        sent("anthropic", fitted.messages)


def test_mixed_turn_is_answered_in_the_next() -> None:
    """The provider's result may come in its next message, after the results of the caller's tools."""
    said = [{"role": "assistant", "content": [SEARCH, CALL]}, {"role": "user", "content": [RESULT]}]
    messages = [{"role": "user", "content": "go"}, *said, {"role": "assistant", "content": [FOUND, SPOKEN]}]
    fitted = fit([*messages, {"role": "user", "content": "and?"}], model=MODELS["anthropic"])
    assert fitted.messages[:4] == messages
    assert not fitted.report.changes


SUMMARY: Mapping[str, Item] = {
    "anthropic": {"role": "assistant", "content": [{"type": "compaction", "content": "It is about herons."}]},
    "openai-responses": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
}


def test_list_that_starts_at_a_compaction_keeps_it() -> None:
    """What the provider made of the conversation before is all there is of it: it stays first and unchanged, also after cuts."""
    for name, summary in SUMMARY.items():
        for policy in ("full", "palaver", "fold"):
            rest = LISTS[name](0 if policy == "full" else 30)
            rest = [item for item in rest if item.get("role") != "developer"]
            fitted = fit([summary, *rest], model=MODELS[name], policy=policy, budget=9_000)
            assert fitted.messages[0] is summary, (name, policy)
            assert faults(name, fitted) == [], (name, policy)
            assert bool(fitted.omitted) is (policy != "full")
            if name == "anthropic":
                hold_to_types("anthropic-beta", {"model": MODELS[name], "max_tokens": 1, "messages": fitted.messages})
            else:
                sent(name, fitted.messages)


def test_newest_of_two_compactions_stays() -> None:
    """An older one is in the newer: it may leave with what it stands for."""
    older, newer = ({"type": "compaction", "id": f"cmp_{n}", "encrypted_content": "gAAAA"} for n in (1, 2))
    session = [item for item in responses(30) if item.get("role") != "developer"]
    fitted = fit([older, *session, newer, *session[-1:]], model="gpt-5", budget=2_000)
    assert newer in fitted.messages
    assert older not in fitted.messages
