"""fit(): a list of dicts in, a valid list in the same dialect out, nothing lost and nothing of the caller's changed."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from palaver.context import POLICIES, ContextManager, fit
from palaver.context.presets import Letta
from palaver.errors import InfeasibleBudget, InvalidHandle, InvalidInput, InvalidMessage, UnknownHandle
from palaver.messages import ToolResultContent, UserMessage
from palaver.tokens import Budget
from palaver.wire import profile, validate

PAGE = "\n".join(f"line {number} of some output" for number in range(400))
SCHEMA = {"type": "object", "properties": {"cmd": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "sh", "description": "run", "parameters": SCHEMA}}
CLAUDE_TOOL = {"name": "sh", "description": "run", "input_schema": SCHEMA}


def chat(turns: int, length: int = 4_000) -> list[dict[str, Any]]:
    """A session as chat completions have it."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}]
    for number in range(turns):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "sh", "arguments": '{"cmd": "ls"}'}}
        messages += [
            {"role": "user", "content": f"ask {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": PAGE[:length]},
            {"role": "assistant", "content": f"done {number}"},
        ]
    return [*messages, {"role": "user", "content": "the newest ask"}]


def claude(turns: int, length: int = 4_000) -> list[dict[str, Any]]:
    """A session as Anthropic's interface has it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(turns):
        use = {"type": "tool_use", "id": f"t{number}", "name": "sh", "input": {"cmd": "ls"}}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "hm"}, use]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": PAGE[:length]}],
            },
        ]
    return messages


def check(messages: list[Any], name: str, model: str, system: object = None) -> None:
    """Hold a list to the strict validator of its provider."""
    body: dict[str, Any] = {"model": model, "messages": messages}
    if name == "anthropic":
        body |= {"max_tokens": 1, "tools": [CLAUDE_TOOL]} | ({"system": system} if system else {})
    history = messages[-1]["role"] == "assistant"
    assert validate(body, profile(name, model), as_history=history) == ()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"full"}))
def test_a_long_list_fits_and_untouched_messages_are_the_callers_own(name: str) -> None:
    """Within the budget, valid, every message that stayed as it was is the very object; the list given is as it was."""
    given_, before = chat(40), copy.deepcopy(chat(40))
    found = fit(given_, model="gpt-4o", policy=name, budget=12_000, tools=[CHAT_TOOL])
    assert given_ == before
    assert found.tokens <= Budget.parse(12_000, "gpt-4o").for_input < found.tokens_before
    check(found.messages, "openai-chat", "gpt-4o")
    own = {id(message) for message in given_}
    assert all((id(message) in own) == (message in before) for message in found.messages)
    assert found.messages[0] is given_[0]
    assert found.messages[-1] is given_[-1]


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"full"}))
def test_anthropics_lists_come_back_in_their_own_dialect(name: str) -> None:
    """Roles alternate, results stand first, instructions stay beside the list as they were given."""
    system = [{"type": "text", "text": "be brief"}]
    given_ = claude(40)
    found = fit(given_, model="claude-sonnet-4-5", policy=name, budget=12_000, system=system, tools=[CLAUDE_TOOL])
    check(found.messages, "anthropic", "claude-sonnet-4-5", found.system)
    assert found.system is system
    assert found.tokens < found.tokens_before
    assert found.messages[-1] is given_[-1]


def test_what_fits_comes_back_as_it_is() -> None:
    """Nothing to do: the same messages, an empty report, nothing omitted."""
    given_ = chat(3)
    found = fit(given_, model="gpt-4o")
    assert [id(message) for message in found.messages] == [id(message) for message in given_]
    assert (found.report.changes, found.omitted) == ((), ())
    assert found.tokens == found.tokens_before


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"full"}))
def test_an_image_that_left_a_result_is_named_listed_and_brought_back(name: str) -> None:
    """Whatever the policy: the line says what kind it was, `omitted` and the report have the handle, and the handle gives the result with its image."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}
    given_ = claude(1)
    given_[-1]["content"][0]["content"] = [{"type": "text", "text": PAGE * 5}, image]
    given_ += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    found = fit(given_, model="claude-sonnet-4-5", policy=name, budget=1_500, tools=[CLAUDE_TOOL])
    assert found.tokens <= 1_500
    left = {gone.handle for gone in found.omitted}
    results = [part for m in found.messages for part in m["content"] if isinstance(part, dict)]
    (shown,) = [str(part["content"]) for part in results if part["type"] == "tool_result"] or [""]
    if not shown:  # the whole message left, and is the caller's own
        places = [place for gone in found.omitted for place in gone.handles()]
        assert given_[2] in [found.recall(place) for place in places]
        return
    assert "image/png" in shown
    (handle,) = {handle for handle in left if handle is not None and handle.block is not None}
    assert [change.handle for change in found.report.changes if change.what == "image"] == [handle]
    whole = found.recall(handle)
    assert isinstance(whole, ToolResultContent)
    assert whole.text() == PAGE * 5
    assert not isinstance(whole.content, str)
    assert [part.type for part in whole.content] == ["text", "image"]


def test_every_omission_is_recalled_from_the_callers_list() -> None:
    """A handle counts the caller's list; recall gives his own message, or the whole text of a block."""
    given_ = chat(40)
    dropped = fit(given_, model="gpt-4o", budget=9_000)
    handles = [handle for gone in dropped.omitted for handle in gone.handles()]
    assert handles
    assert all(dropped.recall(handle) is given_[handle.seq] for handle in handles)
    aside = fit(given_, model="gpt-4o", policy="offload", budget=40_000)
    reference = next(m["content"] for m in aside.messages if "set aside" in str(m["content"]))
    handle = reference.split("recall ")[1].split("]")[0]
    assert aside.recall(handle) == PAGE[:4_000]
    with pytest.raises(UnknownHandle):
        dropped.recall(str(handles[0]).split(":")[0] + ":9999")
    with pytest.raises(UnknownHandle):
        dropped.recall("f" * 12 + ":1")
    with pytest.raises(InvalidHandle):
        dropped.recall("no handle")


def test_an_infeasible_budget_is_typed_and_its_breakdown_is_true() -> None:
    """What must be sent is named with its tokens, which add up; with exactly that budget it fits."""
    given_ = chat(5)
    with pytest.raises(InfeasibleBudget) as caught:
        fit(given_, model="gpt-4o", budget=Budget.of_input(20), tools=[CHAT_TOOL])
    error = caught.value
    assert set(error.breakdown) == {"request", "instructions", "tools", "newest user message"}
    assert sum(error.breakdown.values()) == error.needed > error.budget == 20
    assert fit(given_, model="gpt-4o", budget=Budget.of_input(error.needed), tools=[CHAT_TOOL]).tokens <= error.needed
    with pytest.raises(InfeasibleBudget):
        fit(given_, model="gpt-4o", policy="full", budget=4_000)


def test_what_is_pinned_stays() -> None:
    """A pinned message is there as the caller's own, whatever else goes; one outside the list is refused."""
    given_ = chat(40)
    found = fit(given_, model="gpt-4o", budget=9_000, pinned=[5])
    assert any(message is given_[5] for message in found.messages)
    with pytest.raises(InvalidInput, match="pinned"):
        fit(given_, model="gpt-4o", pinned=[9_999])


def test_what_is_broken_is_repaired_and_reported() -> None:
    """A result without its call, a call without a result, an empty answer, a lone surrogate: a valid list, each named in the report."""
    call = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    given_: list[dict[str, Any]] = [
        {"role": "user", "content": "a\ud99cb"},
        {"role": "tool", "tool_call_id": "nowhere", "content": "orphan"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "go on"},
    ]
    found = fit(given_, model="gpt-4o")
    check(found.messages, "openai-chat", "gpt-4o")
    json.dumps(found.messages, ensure_ascii=False).encode()
    told = "\n".join(map(str, found.report))
    for word in ("surrogates", "its call is not there", "it says nothing", "its call has none in the list"):
        assert word in told


def test_a_refused_message_is_written_anew_and_the_rest_stays_the_callers() -> None:
    """A key that the provider does not take costs the one message its identity, and no other."""
    given_ = chat(2)
    given_[1] = {**given_[1], "made_up": 1}
    found = fit(given_, model="gpt-4o")
    check(found.messages, "openai-chat", "gpt-4o")
    assert found.messages[1] == {"role": "user", "content": "ask 0"}
    assert [message is own for message, own in zip(found.messages, given_, strict=True)].count(False) == 1
    assert "would have refused" in str(found.report.changes[0])


def test_a_growing_list_gives_prefixes_until_something_is_left_out() -> None:
    """Fitted again after each turn, a list goes on from the one before, except where more was omitted; and that is rare."""
    whole = chat(80, 1_500)
    last: tuple[list[Any], Any] | None = None
    edits = 0
    for end in range(2, len(whole), 4):
        found = fit(whole[:end], model="gpt-4o", budget=15_000)
        if last is not None and found.omitted == last[1]:
            assert found.messages[: len(last[0])] == last[0]
        elif last is not None:
            edits += 1
        last = (found.messages, found.omitted)
    assert 0 < edits < 12


def test_a_list_of_texts_takes_its_dialect_from_the_model_or_the_caller() -> None:
    """Texts alone fit both interfaces: the model decides, and a name given decides before it; an unknown name is refused."""
    texts = [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "a"}]
    assert len(fit(texts, model="gpt-4o").messages) == 2
    assert len(fit(texts, model="claude-sonnet-4-5").messages) == 3
    assert len(fit(texts, model="claude-sonnet-4-5", dialect_name="openai-chat").messages) == 2
    with pytest.raises(InvalidInput, match="dialect"):
        fit(texts, model="gpt-4o", dialect_name="morse")


def test_a_key_of_another_makers_model_is_kept_and_reported() -> None:
    """DeepSeek's `reasoning_content` stays in the caller's own message; OpenAI's models, which refuse it, do not get it."""
    said = {"role": "assistant", "content": "a", "reasoning_content": "think"}
    messages = [{"role": "user", "content": "q"}, said, {"role": "user", "content": "and now?"}]
    for model in ("deepseek-reasoner", "openrouter/deepseek/deepseek-r1", "my-own-llm"):
        found = fit(messages, model=model, dialect_name="openai-chat")
        assert found.messages[1] is said
        (change,) = found.report.changes
        assert (change.how.value, "reasoning_content" in change.why) == ("kept", True)
        assert change.handle is not None
        assert found.recall(change.handle) is said
    other = fit(messages, model="gpt-4o")
    assert other.messages[1] == {"role": "assistant", "content": "a"}
    assert [change.how.value for change in other.report.changes] == ["changed"]


def test_what_any_provider_refuses_is_put_right_for_other_makers_too() -> None:
    """Only unknown keys pass: a call without its result is repaired whoever made the model."""
    call = {"id": "c", "type": "function", "function": {"name": "no name", "arguments": "{}"}}
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "tool_calls": [call], "x": 1}]
    found = fit([*messages, {"role": "user", "content": "q"}], model="deepseek-reasoner")
    assert found.messages[2]["role"] == "tool"


def test_tokens_are_those_of_the_list_that_is_given_back() -> None:
    """What writing adds or leaves out counts: a picture nobody can read, and who speaks first."""
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = {"role": "assistant", "content": "yes " * 50}
    for messages, model in (
        ([{"role": "user", "content": [broken]}], "gpt-4o"),
        ([said, {"role": "user", "content": "go"}], "claude-sonnet-4-5"),
        (claude(20), "claude-sonnet-4-5"),
    ):
        found = fit(messages, model=model, budget=3_000)
        assert found.tokens == fit(found.messages, model=model, policy="full").tokens_before


def test_what_writing_adds_is_part_of_the_breakdown() -> None:
    """A list that begins with the assistant's words needs a word before them: where that has no room, the budget is infeasible."""
    said = {"role": "assistant", "content": "yes"}
    messages = [said, {"role": "user", "content": "go"}]
    whole = fit(messages, model="claude-sonnet-4-5").tokens
    for tokens in range(1, whole):
        try:
            found = fit(messages, model="claude-sonnet-4-5", budget=tokens)
        except InfeasibleBudget as caught:
            needed, parts = caught.needed, sum(caught.breakdown.values())
        else:
            needed, parts = tokens + 1, tokens + 1
            assert found.tokens <= tokens
        assert parts == needed > tokens


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": " \n"}],
        [{"role": "user", "content": None}],
        [{"role": "assistant", "content": []}, {"role": "user", "content": ""}],
        [{"role": "system", "content": ""}],
    ],
)
def test_a_list_that_says_nothing_is_refused_and_no_turn_is_made_up(messages: list[Any], model: str) -> None:
    """Nothing to send is the caller's mistake, instructions beside the list or not."""
    for system in (None, "be brief"):
        with pytest.raises(InvalidInput, match="nothing to send"):
            fit(messages, model=model, system=system)


def test_instructions_alone_can_be_sent_where_they_are_messages() -> None:
    """Chat completions take a list of a system message alone; Anthropic's interface has no such list."""
    messages = [{"role": "system", "content": "be brief"}]
    assert fit(messages, model="gpt-4o").messages == messages
    with pytest.raises(InvalidInput, match="nothing to send"):
        fit(messages, model="claude-sonnet-4-5", dialect_name="anthropic")


# --- what the loops of SDKs give -------------------------------------------------------------------------------------------


class Part(BaseModel):
    """A block of a response, as Anthropic's SDK has it."""

    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    citations: list[str] | None = None


class Answer(BaseModel):
    """A response's message, as OpenAI's SDK has it."""

    role: str = "assistant"
    content: str | None = None
    refusal: str | None = None
    annotations: list[str] = []
    tool_calls: list[dict[str, Any]] | None = None


def test_the_message_objects_of_an_sdk_are_read_and_come_back_themselves() -> None:
    """`messages.append(response.choices[0].message)`: the object is counted, stays in the list, and can be recalled."""
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": '{"cmd": "ls"}'}}
    said, silent = Answer(tool_calls=[call]), Answer()
    messages = [
        {"role": "user", "content": "go"},
        said,
        {"role": "tool", "tool_call_id": "c", "content": PAGE},
        silent,
        {"role": "user", "content": "and now?"},
    ]
    found = fit(messages, model="gpt-4o")
    assert [one is other for one, other in zip(found.messages, [*messages[:3], messages[4]], strict=True)] == [True] * 4
    assert [gone.reason.value for gone in found.omitted] == ["empty"]
    assert found.recall(next(found.omitted[0].handles())) is silent
    written = fit([*messages[:2], *chat(20)[1:]], model="gpt-4o", budget=3_000).messages
    assert all(message is said or isinstance(message, dict) for message in written)


def test_the_blocks_of_an_sdk_are_read_inside_a_message() -> None:
    """`{"role": "assistant", "content": response.content}` with Anthropic's blocks: the caller's own dict where nothing changed."""
    blocks = [Part(type="text", text="hm"), Part(type="tool_use", id="t", name="sh", input={"cmd": "ls"})]
    said = {"role": "assistant", "content": blocks}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    found = fit([{"role": "user", "content": "go"}, said, answer], model="claude-sonnet-4-5")
    assert found.messages[1] is said
    assert said["content"] is blocks
    assert not found.report.changes


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("hi", "The messages are a str, not a list"),
        ({"role": "user", "content": "hi"}, "The messages are a dict, not a list"),
        (Answer(content="hi"), "The messages are a Answer, not a list"),
        (None, "The messages are a NoneType, not a list"),
        (["hi"], "Item 0 of the messages is a str, no message"),
        ([Answer], "Item 0 of the messages is a ModelMetaclass, no message"),
        ([{"role": "user", "content": "hi"}, object()], "Item 1 of the messages is a object, no message"),
        ([UserMessage(content="hi")], "Item 0 of the messages is palaver's own UserMessage. Pass its to_api_dict()"),
        ([{"role": "human", "content": "hi"}], "Item 0 of the messages: There is no role 'human'"),
        ([{"role": "user", "content": [object()]}], "Item 0 of the messages: "),
    ],
)
def test_what_is_no_message_is_named_by_its_place(messages: Any, says: str) -> None:  # noqa: ANN401 - anything
    """Never a bare TypeError: the error says which item it is, what it is, and what to pass."""
    with pytest.raises(InvalidMessage) as caught:
        fit(messages, model="gpt-4o")
    assert says in str(caught.value)


@pytest.mark.parametrize("content", [{"parts": [{"text": "IMPORTANT"}]}, {"output": "IMPORTANT", "call_id": "c"}, {}])
def test_a_message_in_another_interfaces_words_is_refused_not_dropped(content: dict[str, Any]) -> None:
    """A dict without any key that holds content is not taken for an empty message: the error has its place and its keys."""
    with pytest.raises(InvalidMessage) as caught:
        fit(
            [{"role": "user", "content": "hi"}, {"role": "user", **content}],
            model="gemini-2.5-pro",
            dialect_name="openai-chat",
        )
    assert f"Item 1 of the messages has no content; its keys: {', '.join(['role', *content])}" in str(caught.value)


@pytest.mark.parametrize("budget", ["50%", 1e3, True, 0])
def test_what_is_no_budget_is_refused(budget: Any) -> None:  # noqa: ANN401 - anything
    """The error names it and the accepted forms."""
    with pytest.raises(InvalidInput, match="whole number of tokens"):
        fit(chat(1), model="gpt-4o", budget=budget)


# --- any list of dicts -----------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(["", " ", "yes", "{{ 7*7 }}", "ä\ud800", "\0", PAGE[:3_000], "</from-harness>"])
_IDS = st.sampled_from(["a", "b", "", "x" * 70, "ä ö"])
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_CALLS = st.lists(
    st.builds(
        lambda i, n, a: {"id": i, "type": "function", "function": {"name": n, "arguments": a}},
        _IDS,
        st.sampled_from(["sh", "no name", ""]),
        st.sampled_from(["{}", '{"cmd": "ls a.py"}', "{bad", ""]),
    ),
    max_size=3,
)
_CHAT_PARTS = st.lists(
    st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, _WORDS),
        st.just({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}}),
        st.just({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}),
        st.just({"type": "odd", "of": 1}),
    ),
    max_size=3,
)
_CHAT = st.one_of(
    st.builds(
        lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "system", "developer", "assistant"]), _WORDS
    ),
    st.builds(lambda c: {"role": "user", "content": c, "name": "Ann Ä"}, _CHAT_PARTS),
    st.builds(lambda c, t: {"role": "assistant", "content": c, "tool_calls": t}, st.one_of(st.none(), _WORDS), _CALLS),
    st.builds(lambda i, c: {"role": "tool", "tool_call_id": i, "content": c}, _IDS, st.one_of(_WORDS, _CHAT_PARTS)),
    st.builds(lambda c: {"role": "assistant", "content": c, "reasoning_content": "hm", "refusal": None}, _WORDS),
)
_CLAUDE_PARTS = st.lists(
    st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, _WORDS),
        st.builds(lambda i: {"type": "tool_use", "id": i, "name": "sh", "input": {"cmd": "ls"}}, _IDS),
        st.builds(lambda i, c: {"type": "tool_result", "tool_use_id": i, "content": c}, _IDS, _WORDS),
        st.just({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        st.just({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PNG}}),
        st.just({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}),
    ),
    max_size=4,
)
_CLAUDE = st.builds(
    lambda r, c: {"role": r, "content": c}, st.sampled_from(["user", "assistant"]), st.one_of(_WORDS, _CLAUDE_PARTS)
)
_FEW = settings(max_examples=max(settings().max_examples // 2, 20), deadline=None)


@_FEW
@given(
    messages=st.lists(_CHAT, max_size=8),
    name=st.sampled_from(sorted(set(POLICIES) - {"full"})),
    tokens=st.integers(60, 3_000),
)
def test_any_list_of_chat_completions_comes_back_valid(messages: list[dict[str, Any]], name: str, tokens: int) -> None:
    """Whatever the messages are: a list that the strict validator takes, or an infeasible budget; the list given is as it was."""
    _comes_back_valid(messages, "openai-chat", "gpt-4o", name, tokens)


@_FEW
@given(
    messages=st.lists(_CLAUDE, max_size=8),
    name=st.sampled_from(sorted(set(POLICIES) - {"full"})),
    tokens=st.integers(60, 3_000),
)
def test_any_list_of_anthropics_comes_back_valid(messages: list[dict[str, Any]], name: str, tokens: int) -> None:
    """The same for the other dialect."""
    _comes_back_valid(messages, "anthropic", "claude-sonnet-4-5", name, tokens)


def _comes_back_valid(messages: list[dict[str, Any]], dialect: str, model: str, name: str, tokens: int) -> None:
    before = copy.deepcopy(messages)
    try:
        found = fit(messages, model=model, policy=name, budget=Budget.of_input(tokens), dialect_name=dialect)
    except InfeasibleBudget as caught:
        error = caught
    except InvalidInput as caught:
        _says_nothing(messages, caught)
        return
    else:
        assert messages == before
        assert found.tokens <= tokens
        again = fit(found.messages, model=model, policy="full", system=found.system, dialect_name=dialect)
        assert found.tokens == again.tokens_before, "the tokens are those of the list given back"
        check(found.messages, dialect, model, found.system)
        return
    assert sum(error.breakdown.values()) == error.needed > tokens


def _says_nothing(messages: list[dict[str, Any]], error: InvalidInput) -> None:
    """Hold a refusal to what it says."""
    assert "nothing to send" in str(error)
    words = [message["content"] for message in messages if isinstance(message["content"], str)]
    assert not any(text.strip(" \0") for text in words)


def test_a_refusal_is_no_empty_message() -> None:
    """A message whose words stand in `refusal` is sent as it was given: the provider wrote it so, and takes it back."""
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "refusal": "I cannot help with that."},
        {"role": "user", "content": "Why?"},
    ]
    fitted = fit(messages, model="gpt-4o", budget=2_000)

    assert fitted.messages == messages
    assert fitted.messages[1] is messages[1]
    assert not fitted.omitted
    assert not fitted.report.changes


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "letta", "max_tokens": 8_000},
        {"type": "dynamiq", "max_token_context_length": 8_000},
        {"type": "pi", "reserve_tokens": 120_000},
        Letta("gpt-4o", max_tokens=8_000),
    ],
)
def test_without_a_budget_the_policys_own_is_kept(policy: ContextManager | Mapping[str, object]) -> None:
    """What the words of a policy say of the room counts in `fit` as it does for a dialog; a budget given beside it counts instead."""
    messages: list[dict[str, str]] = []
    for number in range(30):
        messages += [{"role": "user", "content": f"go {number}"}, {"role": "assistant", "content": "word " * 500}]
    messages.append({"role": "user", "content": "now"})
    assert fit(messages, model="gpt-4o", policy=policy).tokens <= 8_000
    assert fit(messages, model="gpt-4o", policy=policy, budget=100_000).omitted == ()


def test_the_threshold_of_a_preset_is_that_of_its_original() -> None:
    """Claude Code compacts at 167,000 of 200,000 tokens: a list of 170,000 is cut by it, and by a policy without a threshold of its own it is not."""
    messages = [{"role": role, "content": "word " * 1_000} for _ in range(68) for role in ("user", "assistant")]
    messages += [{"role": "user", "content": "word " * 1_500}]
    count = fit(messages, model="claude-sonnet-4-5", dialect_name="anthropic", policy="palaver")
    assert 167_000 < count.tokens < 178_000
    assert count.omitted == ()
    assert fit(messages, model="claude-sonnet-4-5", dialect_name="anthropic", policy="claude-code").tokens < 167_000
