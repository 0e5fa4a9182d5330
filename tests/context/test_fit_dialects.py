"""fit() over the lists of OpenAI's Responses and of Gemini, and every preset over each provider's list through the real clients."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from palaver.context import POLICIES, Fit, fit
from palaver.context.presets import PRESETS
from palaver.errors import InfeasibleBudget, InvalidInput, InvalidMessage
from palaver.tokens import Budget, counter, model_info
from palaver.wire import profile, validate
from tests.peers.server import Peer

FIXTURES = Path(__file__).parents[1] / "wire" / "fixtures"
PAGE = "\n".join(f"line {number} of some output" for number in range(200))
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}}
MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
}


def reasoning(number: int) -> dict[str, Any]:
    """What a model thought, encrypted."""
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"opaque{number}"}


def responses(turns: int) -> list[dict[str, Any]]:
    """A session of input items: reasoning, two calls at once, their outputs, words."""
    items: list[dict[str, Any]] = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "go"}]
    for number in range(turns):
        calls = [
            {"type": "function_call", "call_id": f"c{number}{each}", "name": "sh", "arguments": '{"cmd": "ls"}'}
            for each in "ab"
        ]
        outputs = [{"type": "function_call_output", "call_id": call["call_id"], "output": PAGE} for call in calls]
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"done {number}"}]}
        items += [reasoning(number), *calls, *outputs, said, {"role": "user", "content": f"ask {number}"}]
    return items


def contents(turns: int) -> list[dict[str, Any]]:
    """A session of contents: a signed call without an id and one more, their responses, words."""
    found: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "go"}]}]
    for number in range(turns):
        call = {"functionCall": {"name": "sh", "args": {"cmd": "ls"}}}
        answer = {"functionResponse": {"name": "sh", "response": {"output": PAGE}}}
        found += [
            {"role": "model", "parts": [call | {"thoughtSignature": "c2ln"}, call]},
            {"role": "user", "parts": [answer, answer]},
            {"role": "model", "parts": [{"text": f"done {number}"}]},
            {"role": "user", "parts": [{"text": f"ask {number}"}]},
        ]
    return found


def chat(turns: int) -> list[dict[str, Any]]:
    """A session as chat completions have it."""
    found: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "sh", "arguments": '{"cmd": "ls"}'}}
        found += [
            {"role": "user", "content": f"ask {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": PAGE * 2},
        ]
    return [*found, {"role": "user", "content": "ask last"}]


def claude(turns: int) -> list[dict[str, Any]]:
    """A session as Anthropic's interface has it."""
    found: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"t{number}", "name": "sh", "input": {"cmd": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": PAGE * 2}
        found += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [*found[:-1], {**found[-1], "content": [*found[-1]["content"], {"type": "text", "text": "ask last"}]}]


LISTS: Mapping[str, Callable[[int], list[dict[str, Any]]]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic": claude,
    "gemini": contents,
}


def body(name: str, fitted: Fit) -> dict[str, Any]:
    """Give the request with a list."""
    tool = {"name": "sh", "description": "run"}
    if name == "openai-responses":
        items = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in fitted.messages]
        more = {"instructions": fitted.system} if fitted.system else {}
        return {"model": MODELS[name], "input": items, "store": False, **more}
    if name == "gemini":
        said = {"systemInstruction": {"parts": [{"text": fitted.system}]}} if fitted.system else {}
        declared = [{"functionDeclarations": [tool | {"parameters": SCHEMA}]}]
        return {"contents": [_content(one) for one in fitted.messages], "tools": declared, **said}
    messages = {"model": MODELS[name], "messages": fitted.messages}
    if name == "openai-chat":
        return messages
    more = {"system": fitted.system} if fitted.system else {}
    return {**messages, "max_tokens": 100, "tools": [tool | {"input_schema": SCHEMA}], **more}


def _content(content: Any) -> dict[str, Any]:  # noqa: ANN401 - a dict, or an object of the SDK
    said = json.dumps(content) if isinstance(content, dict) else content.model_dump_json()
    written: dict[str, Any] = json.loads(
        genai.types.Content.model_validate_json(said).model_dump_json(by_alias=True, exclude_none=True)
    )
    return written


def faults(name: str, fitted: Fit) -> list[str]:
    """Give what the provider would refuse."""
    last = fitted.messages[-1]
    kind = last.get("type", "") if isinstance(last, dict) else last.type
    history = (last.get("role") if isinstance(last, dict) else "") in {"assistant", "model"} or kind.endswith("_call")
    return [
        str(fault)
        for fault in validate(
            body(name, fitted), profile(name, MODELS[name]), as_history=history or kind == "reasoning"
        )
    ]


@pytest.mark.parametrize("name", ["openai-responses", "gemini"])
def test_a_long_list_fits_in_its_own_dialect(name: str) -> None:
    """Within the budget, valid, in the dialect it came in, with the caller's own objects where nothing was done, and his list as it was."""
    given = LISTS[name](20)
    before = copy.deepcopy(given)
    fitted = fit(given, model=MODELS[name], policy="offload", budget=9_000)
    assert given == before
    assert fitted.tokens <= 9_000 < fitted.tokens_before
    assert faults(name, fitted) == []
    assert fitted.messages[-1] is given[-1]
    own = {id(one) for one in given}
    assert sum(id(one) in own for one in fitted.messages) >= 10
    assert any("recall" in json.dumps(one) for one in fitted.messages if id(one) not in own)
    for gone in fitted.omitted:
        assert all(fitted.recall(handle) in given for handle in gone.handles())


@pytest.mark.parametrize("name", ["openai-responses", "gemini"])
def test_what_fits_comes_back_as_it_is(name: str) -> None:
    """Every item is the caller's own object, in its place, and the report is empty."""
    given = LISTS[name](2)
    fitted = fit(given, model=MODELS[name], budget=100_000)
    assert all(one is own for one, own in zip(fitted.messages, given, strict=True))
    assert fitted.report.changes == ()
    assert faults(name, fitted) == []


def test_reasoning_goes_with_the_calls_it_led_to() -> None:
    """Of each response that is shown its reasoning item stands before its calls as it was given, and of one that is not, neither does."""
    fitted = fit(responses(30), model="gpt-5.2", policy="fold", budget=6_000)
    kinds = [item.get("type") for item in fitted.messages]
    assert 0 < kinds.count("reasoning") < 30
    assert kinds.count("function_call") == 2 * kinds.count("reasoning") == kinds.count("function_call_output")
    assert all(kinds[at + 1] == "function_call" for at, kind in enumerate(kinds) if kind == "reasoning")


def answered(number: int, *, sealed: int = 80, length: int = 400, plain: bool = False) -> list[dict[str, Any]]:
    """A response as OpenAI gives it, every item with its id, and what its calls gave; reasoning is found by its id unless it is sealed.

    Args:
        number: Which of the responses it is.
        sealed: How many characters of encrypted content the reasoning brings.
        length: How many characters each call gave.
        plain: Whether it has no reasoning.
    """
    opaque = {"encrypted_content": "b3BhcXVl" * (sealed // 8)} if sealed else {}
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], **opaque}
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"c{number}", "name": "sh", "arguments": "{}"}
    more = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"d{number}", "name": "patch", "input": "*"}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "phase": "commentary"}
    text = {"type": "output_text", "text": f"step {number}", "annotations": []}
    return [
        *([] if plain else [thought]),
        said | {"content": [text]},
        call,
        {"type": "function_call_output", "call_id": f"c{number}", "output": PAGE[:length]},
        more,
        {"type": "custom_tool_call_output", "call_id": f"d{number}", "output": PAGE[:length]},
    ]


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("sealed", [80, 0])
def test_reasoning_that_the_provider_keeps_stays_where_it_is(policy: str, sealed: int) -> None:
    """Nothing says that nothing is stored: a list with room comes back as it is, reasoning and references found by their ids too."""
    items = [{"role": "user", "content": "go"}, *answered(1, sealed=sealed), *answered(2, sealed=sealed)]
    items += [{"role": "user", "content": "and?"}, {"type": "item_reference", "id": "rs_3"}]
    items += [{"type": "item_reference", "id": "msg_3"}, {"role": "user", "content": "go on"}]
    fitted = fit(items, model="gpt-5.2", policy=policy, budget=100_000)
    assert all(one is own for one, own in zip(fitted.messages, items, strict=True))
    assert fitted.report.changes == ()


@pytest.mark.parametrize("policy", ["palaver", "scheduled"])
def test_what_reasoning_led_to_loses_its_id_with_it(policy: str) -> None:
    """Reasoning of finished turns leaves, and all that it led to stays as it is but for the ids, which is told; the rest is untouched."""
    items = [{"role": "user", "content": "go"}]
    for number in range(10):
        items += [*answered(number, sealed=6_000), {"role": "user", "content": f"ask {number}"}]
    items += answered(10)
    fitted = fit(items, model="gpt-5.2", policy=policy, budget=8_000)
    own = {id(one) for one in items}
    apart = [one for one in fitted.messages if id(one) not in own and "id" not in one and "output" not in one]
    known = [{key: value for key, value in one.items() if key != "id"} for one in items if "id" in one]
    assert len(apart) >= 9
    assert all(one in known for one in apart)
    assert sum(change.what == "id" for change in fitted.report.changes) == len(apart)
    last = [one for one in fitted.messages[-6:] if "id" in one]
    assert [id(one) for one in last] == [id(one) for one in items[-6:] if "id" in one]
    assert faults("openai-responses", fitted) == []


def test_a_reference_goes_with_the_reasoning_before_it() -> None:
    """Reasoning that cannot stay takes the reference behind it along, which is nothing without its id; the report says so."""
    thought = reasoning(1) | {"id": "no id of reasoning"}
    items = [{"role": "user", "content": "go"}, thought, {"type": "item_reference", "id": "msg_1"}]
    items += [{"role": "user", "content": "and?"}]
    fitted = fit(items, model="gpt-5.2")
    assert fitted.messages == [items[0], items[3]]
    told = [(change.what, change.handle.seq) for change in fitted.report.changes if change.handle]
    assert told == [("message", 1), ("message", 2)]


def test_calls_of_geminis_without_ids_keep_their_responses() -> None:
    """Two calls of one name and no ids, of which a response is shortened: as many responses as calls, in order, and no id is made up."""
    fitted = fit(contents(12), model="gemini-3-pro", policy="offload", budget=3_500)
    parts = [part for content in fitted.messages for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert len(calls) == len(answers) > 0
    assert not any("id" in one for one in (*calls, *answers))
    assert any("recall" in str(answer["response"]) for answer in answers)
    assert all(part["thoughtSignature"] == "c2ln" for part in parts if "thoughtSignature" in part)


def test_the_objects_of_the_clients_come_back_themselves() -> None:
    """OpenAI's output items and Google's contents are read, and those that nothing was done to are given back as the very objects."""
    items: list[Any] = [
        {"role": "user", "content": "go"},
        ResponseReasoningItem(id="rs_1", type="reasoning", summary=[], encrypted_content="opaque"),
        ResponseFunctionToolCall(type="function_call", call_id="c1", name="sh", arguments="{}", id="fc_1"),
        {"type": "function_call_output", "call_id": "c1", "output": PAGE},
        {"role": "user", "content": "and now?"},
    ]
    fitted = fit(items, model="gpt-5.2", policy="offload", budget=400)
    assert [one for one in fitted.messages if not isinstance(one, dict)] == items[1:3]
    assert faults("openai-responses", fitted) == []

    part = genai.types.Part(
        function_call=genai.types.FunctionCall(name="sh", args={"function_call": 1}), thought_signature=b"sig"
    )
    said = [
        genai.types.Content(role="user", parts=[genai.types.Part(text="go")]),
        genai.types.Content(role="model", parts=[part]),
        {"role": "user", "parts": [{"function_response": {"name": "sh", "response": {"output": PAGE}}}]},
        {"role": "user", "parts": [genai.types.Part(text="and now?")]},
    ]
    fit_them = fit(said, model="gemini-3-pro", policy="offload", budget=400)
    assert fit_them.messages[:2] == said[:2]
    assert fit_them.messages[1] is said[1]
    assert "recall" in str(fit_them.messages[2])
    assert faults("gemini", fit_them) == []


def test_a_tool_with_free_input_keeps_its_kind() -> None:
    """A custom tool's call and output stay what they are when the output is shortened."""
    items: list[dict[str, Any]] = [
        {"role": "user", "content": "go"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": PAGE},
        {"role": "user", "content": "and now?"},
    ]
    fitted = fit(items, model="gpt-5.2", policy="offload", budget=400)
    assert fitted.messages[1] is items[1]
    assert fitted.messages[2]["type"] == "custom_tool_call_output"
    assert "recall" in fitted.messages[2]["output"]


@pytest.mark.parametrize("role", ["developer", "system"])
@pytest.mark.parametrize("call", [{"call_id": "", "name": "sh"}, {"call_id": "c", "name": "no name"}])
def test_instructions_in_a_list_survive_its_being_written_anew(role: str, call: dict[str, Any]) -> None:
    """Where the whole list has to be written as it is sent, what stood in front of it stands there still, in its role."""
    said = {"role": role, "content": "Never touch main."}
    items = [said, {"type": "function_call", "arguments": "{}", **call}, {"role": "user", "content": "hi"}]
    fitted = fit(items, model="gpt-5.2", budget=20_000)
    assert any("written anew" in change.why for change in fitted.report.changes)
    assert fitted.messages[0] == said
    assert fitted.system is None
    assert faults("openai-responses", fitted) == []


def test_a_list_of_two_dialects_is_refused() -> None:
    """A message whose words stand where the list's dialect has none is named, and never taken for an empty one."""
    mixed = [{"role": "user", "content": "hi"}, {"role": "user", "parts": [{"text": "IMPORTANT"}]}]
    with pytest.raises(InvalidMessage, match="Item 0 of the messages has no parts"):
        fit(mixed, model="gemini-3-pro")
    with pytest.raises(InvalidMessage, match="Item 1 of the messages has no content"):
        fit(mixed, model="gpt-5.2", dialect_name="openai-responses")


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        ([{"type": "function", "name": "sh", "parameters": SCHEMA}], "openai-responses"),
        ([{"functionDeclarations": [{"name": "sh", "parameters": SCHEMA}, {"name": "ls"}]}], "gemini"),
        ([{"type": "function", "function": {"name": "sh", "parameters": SCHEMA}}], "openai-chat"),
        ([{"type": "custom", "custom": {"name": "sh", "description": "word " * 20}}], "openai-chat"),
        ([{"type": "custom", "name": "sh", "description": "word " * 20}], "openai-responses"),
    ],
)
def test_tools_are_counted_in_every_dialect(tools: list[dict[str, Any]], name: str) -> None:
    """The schemas take room, wherever their interface writes them."""
    given = LISTS[name](1)
    assert fit(given, model=MODELS[name], tools=tools).tokens > fit(given, model=MODELS[name]).tokens + 10


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_grammar_takes_its_room(name: str) -> None:
    """What a custom tool is called with counts as many tokens as its grammar has, and one that is too large is infeasible."""
    grammar = "start: item+\n" + "\n".join(f"rule_{number}: WORD number_{number}" for number in range(500))
    said = {"syntax": "lark", "definition": grammar}
    tool = (
        {"type": "custom", "custom": {"name": "sh", "format": {"type": "grammar", "grammar": said}}}
        if name == "openai-chat"
        else {"type": "custom", "name": "sh", "format": {"type": "grammar", **said}}
    )
    given, size = LISTS[name](1), counter(MODELS[name]).text(grammar)
    assert fit(given, model=MODELS[name], tools=[tool]).tokens >= fit(given, model=MODELS[name]).tokens + size
    with pytest.raises(InfeasibleBudget) as caught:
        fit(given, model=MODELS[name], tools=[tool], budget=size)
    assert caught.value.breakdown["tools"] >= size


def test_a_custom_tool_tells_its_interface() -> None:
    """A list of texts alone is taken for that of the interface whose custom tools stand beside it."""
    words = [{"role": "user", "content": "hi"}, {"text": "no message"}]
    with pytest.raises(InvalidMessage) as caught:
        fit(words, model="claude-opus-4-6", tools=[{"type": "custom", "custom": {"name": "sh"}}])
    assert "read as that of openai-chat" in str(caught.value.hint)
    with pytest.raises(InvalidMessage) as caught:
        fit(words, model="claude-opus-4-6", tools=[{"type": "custom", "name": "sh"}])
    assert "read as that of openai-responses" in str(caught.value.hint)


# --- any list -----------------------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(["", " ", "yes", "{{ 7*7 }}", "ä\ud800", "\0", PAGE[:3_000], "</from-harness>"])
_IDS = st.sampled_from(["", "c1", "c2", "c3", "c 4"])
_ITEMS = st.one_of(
    st.builds(
        lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "system", "developer", "assistant"]), _WORDS
    ),
    st.builds(lambda c: {"type": "message", "role": "user", "content": [{"type": "input_text", "text": c}]}, _WORDS),
    st.just(
        {
            "role": "user",
            "content": [{"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}],
        }
    ),
    st.builds(
        lambda i, a: {"type": "function_call", "call_id": i, "name": "sh", "arguments": a},
        _IDS,
        st.sampled_from(["{}", '{"cmd": "ls"}', "{bad", ""]),
    ),
    st.builds(lambda i, c: {"type": "function_call_output", "call_id": i, "output": c}, _IDS, _WORDS),
    st.builds(reasoning, st.integers(0, 3)),
    st.just(
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
    ),
)
_CONTENT_PARTS = st.lists(
    st.one_of(
        st.builds(lambda t: {"text": t}, _WORDS),
        st.builds(lambda t: {"text": t, "thoughtSignature": "c2ln"}, _WORDS),
        st.just({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}),
        st.builds(lambda i: {"functionCall": ({"id": i} if i else {}) | {"name": "sh", "args": {"cmd": "ls"}}}, _IDS),
        st.builds(
            lambda i, c: {"functionResponse": ({"id": i} if i else {}) | {"name": "sh", "response": {"output": c}}},
            _IDS,
            _WORDS,
        ),
        st.just({"inlineData": {"mimeType": "image/png", "data": PNG}}),
        st.just({"executableCode": {"language": "PYTHON", "code": "1"}}),
    ),
    max_size=4,
)
_CONTENTS = st.builds(lambda r, p: {"role": r, "parts": p}, st.sampled_from(["user", "model"]), _CONTENT_PARTS)
_FEW = settings(max_examples=max(settings().max_examples // 2, 20), deadline=None)
_NAMES = st.sampled_from(sorted(set(POLICIES) - {"full"}))


@_FEW
@given(items=st.lists(_ITEMS, max_size=8), policy=_NAMES, tokens=st.integers(60, 3_000))
def test_any_list_of_responses_items_comes_back_valid(items: list[dict[str, Any]], policy: str, tokens: int) -> None:
    """Whatever the items are: a list that the strict validator takes, or an infeasible budget; the list given is as it was."""
    _comes_back_valid(items, "openai-responses", policy, tokens)


_TURNS = st.lists(
    st.one_of(
        st.builds(
            lambda sealed, length, plain, kept: (sealed, length, plain, kept),
            st.sampled_from([0, 80, 3_000]),
            st.sampled_from([8, 400, 3_000]),
            st.booleans(),
            st.frozensets(st.integers(0, 5)),
        ),
        st.sampled_from(["user", "developer", "reference"]),
    ),
    max_size=9,
)


def _numbered(turns: list[Any]) -> list[dict[str, Any]]:
    """Give the items of the turns, each with an id of its own; of a response, those that are kept, all if none is."""
    items: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, turn in enumerate(turns):
        if turn == "reference":
            items += [{"type": "item_reference", "id": f"{kind}_{number}"} for kind in ("rs", "msg")]
        elif isinstance(turn, str):
            items.append({"role": turn, "content": f"words {number}"})
        else:
            sealed, length, plain, kept = turn
            found = answered(number, sealed=sealed, length=length, plain=plain)
            items += [one for at, one in enumerate(found) if not kept or at in kept]
    return [*items, {"role": "user", "content": "and now?"}]


def _led(items: list[dict[str, Any]]) -> dict[str, str]:
    """Give the id of the reasoning before each item of the model's that has an id, an empty one for none."""
    found: dict[str, str] = {}
    thought = ""
    for item in items:
        if item.get("role", "assistant") != "assistant":
            thought = ""
        elif str(item.get("id")).startswith("rs"):
            thought = item["id"]
        elif "id" in item:
            found[item["id"]] = thought
    return found


@_FEW
@given(turns=_TURNS, policy=st.sampled_from(sorted(POLICIES)), tokens=st.integers(60, 6_000))
def test_what_has_an_id_has_its_reasoning_before_it(turns: list[Any], policy: str, tokens: int) -> None:
    """Whatever leaves: each item that comes back with its id stands behind the reasoning that it stood behind, and no other item lost it."""
    items = _numbered(turns)
    try:
        found = fit(items, model="gpt-5.2", policy=policy, budget=Budget.of_input(tokens))
    except InfeasibleBudget:
        return
    before, after = _led(items), _led(found.messages)
    assert {name: before[name] for name in after if before[name]} == {
        name: after[name] for name in after if before[name]
    }
    assert len({one["id"] for one in found.messages if "id" in one}) == sum("id" in one for one in found.messages)
    assert "store" not in str(found.report)
    there = {one.get("id") for one in found.messages}
    untold = {json.dumps({key: value for key, value in one.items() if key != "id"}): one.get("id") for one in items}
    for one in found.messages:
        lost = untold.get(json.dumps(one))
        assert not (lost and "id" not in one and before.get(lost) in there)


@_FEW
@given(items=st.lists(_CONTENTS, max_size=8), policy=_NAMES, tokens=st.integers(60, 3_000))
def test_any_list_of_contents_comes_back_valid(items: list[dict[str, Any]], policy: str, tokens: int) -> None:
    """The same for Gemini's."""
    _comes_back_valid(items, "gemini", policy, tokens)


def _comes_back_valid(items: list[dict[str, Any]], name: str, policy: str, tokens: int) -> None:
    before = copy.deepcopy(items)
    model = MODELS[name]
    try:
        found = fit(items, model=model, policy=policy, budget=Budget.of_input(tokens), dialect_name=name)
    except InfeasibleBudget as caught:
        error: InfeasibleBudget | InvalidInput = caught
    except InvalidInput as caught:
        error = caught
    else:
        _holds(found, name, tokens)
        assert items == before
        return
    if isinstance(error, InfeasibleBudget):
        assert sum(error.breakdown.values()) == error.needed > tokens
    else:
        assert "nothing to send" in str(error)


def _holds(found: Fit, name: str, tokens: int) -> None:
    """Hold what came back to the law."""
    assert found.tokens <= tokens
    assert faults(name, found) == []
    again = fit(found.messages, model=MODELS[name], policy="full", system=found.system, dialect_name=name)
    assert found.tokens == again.tokens_before, "the tokens are those of the list given back"


# --- every preset, each provider's list, the real clients ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def peer(start_peer: Callable[[Path], Peer]) -> Peer:
    """Return a server that answers anything, and has not been asked yet."""
    started = start_peer(FIXTURES)
    started.forget()
    return started


Send = Callable[[str, Mapping[str, Any]], object]


@pytest.fixture(scope="module")
def send(peer: Peer) -> Iterator[Send]:
    """Return what sends a request by its provider's client. Each is made once: that takes longer than to send with it."""
    options = genai.types.HttpOptions(base_url=peer.url, api_version="v1beta")
    with (
        openai.OpenAI(base_url=f"{peer.url}/v1", api_key="none", max_retries=0) as chat_client,
        anthropic.Anthropic(base_url=peer.url, api_key="none", max_retries=0) as claude_client,
        genai.Client(api_key="none", http_options=options) as google_client,
    ):
        makers: Mapping[str, Callable[..., object]] = {
            "openai-chat": chat_client.chat.completions.create,
            "openai-responses": chat_client.responses.create,
            "anthropic": claude_client.messages.create,
            "gemini": google_client.models.generate_content,
        }
        yield lambda name, request: makers[name](**(_for_google(request) if name == "gemini" else request))


def _for_google(request: Mapping[str, Any]) -> dict[str, Any]:
    """Give a body as Google's client takes it: all but the contents goes into its configuration."""
    said = json.dumps({key: value for key, value in request.items() if key != "contents"})
    config = genai.types.GenerateContentConfig.model_validate_json(said)
    return {"model": MODELS["gemini"], "contents": request["contents"], "config": config}


def told_apart(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a list with every page of output another one, so that none of them is seen twice."""
    page = json.dumps(PAGE)[1:-1]
    first, *rest = json.dumps(given).split(page)
    told: list[dict[str, Any]] = json.loads(
        "".join([first, *(f"page {number}: {page}{text}" for number, text in enumerate(rest))])
    )
    return told


def heard(peer: Peer) -> tuple[list[str], list[str], str]:
    """Give what the server, which reads all interfaces as one, understood of the last request: calls, answered calls, and all that was said."""
    (entry,) = peer.journal()
    peer.forget()
    assert entry["response"]["status"] == 200
    messages = entry["body"]["messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return calls, answered, "\n".join(str(message.get("content")) for message in messages)


def newest_ask(given: list[dict[str, Any]]) -> str:
    """Give the newest words of the user, by which all lists end."""
    return str(re.findall(r"ask \w+", json.dumps(given))[-1])


@pytest.mark.peer
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("preset", sorted(each.name for each in PRESETS))
def test_every_preset_makes_a_list_that_passes_through_the_real_client(
    peer: Peer, send: Send, preset: str, name: str
) -> None:
    """An over-long list of each provider's shape, its outputs all alike or all different: within the budget, valid, sent by the provider's client, and read as it was meant: each call answered, the newest ask there."""
    for given_list, budget in ((LISTS[name](16), 8_000), (told_apart(LISTS[name](8)), 5_000)):
        fitted = fit(given_list, model=MODELS[name], policy=preset, budget=budget)
        assert fitted.tokens <= budget < fitted.tokens_before
        assert faults(name, fitted) == []
        send(name, body(name, fitted))
        calls, answered, said = heard(peer)
        assert sorted(calls) == sorted(answered)
        assert newest_ask(given_list) in said
        assert all(gone.handles() for gone in fitted.omitted)
        for gone in fitted.omitted:
            assert all(fitted.recall(handle) in given_list for handle in gone.handles())


@pytest.mark.soak
@pytest.mark.peer
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("preset", sorted(each.name for each in PRESETS))
def test_every_preset_takes_a_list_over_the_window_by_its_own_budget(
    peer: Peer, send: Send, preset: str, name: str
) -> None:
    """A list that is larger than the model's window, and no budget given: the preset's own words divide the window, and what comes of it passes through the real client and is answered."""
    window = model_info(MODELS[name]).context_window
    given_list = told_apart(LISTS[name](2 + window // (2 * counter(MODELS[name]).text(PAGE))))
    fitted = fit(given_list, model=MODELS[name], policy=preset)
    assert fitted.tokens < window < fitted.tokens_before
    assert faults(name, fitted) == []
    assert newest_ask(given_list) in json.dumps(body(name, fitted))
    send(name, body(name, fitted))
    (entry,) = peer.journal()  # of what is as long as this the server keeps no words
    peer.forget()
    assert entry["response"]["status"] == 200
