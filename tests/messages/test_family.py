"""One family: Message gives its members, by every door, and nothing else; and what a call used."""

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel, TypeAdapter

from palaver.errors import InvalidMessage
from palaver.messages import (
    AgentMessage,
    AssistantMessage,
    CustomMessage,
    InvokeCost,
    LLMMessage,
    Message,
    Role,
    Speaker,
    TextContent,
    ToolMessage,
    Trust,
    Usage,
    UsageCost,
    UserMessage,
    decode,
    encode,
)
from tests.messages import strategies as some


def test_a_role_has_its_class() -> None:
    """R17: Message() returns the member of the family; a word that is no role is refused, and so is saying nothing."""
    found = [type(Message(role=role, content="x")).__name__.removesuffix("Message") for role in (*Role, "developer")]
    assert " ".join(found) == ("System User Assistant Tool Assistant Custom BranchSummary CompactionSummary System")
    with pytest.raises(InvalidMessage, match="Roles are: system, user"):
        Message(role="nobody", content="x")
    for silent in (Message, UserMessage, AssistantMessage):
        with pytest.raises(InvalidMessage, match="needs content or tool calls"):
            silent()


def test_subclasses_keep_their_class() -> None:
    """A subclass with fields of its own constructs as itself, fits every field of type Message, and keeps its class in copies."""

    class Reviewed(UserMessage):
        reviewer: str = ""

    fields: dict[str, Any] = {"content": "x"}
    mine = Reviewed(reviewer="ann", **fields)
    assert type(mine.model_copy(update={"content": "y"})) is Reviewed
    stored = decode(encode(mine)[0])
    assert (type(stored), stored.model_extra) == (UserMessage, {"reviewer": "ann"})


def test_unions_tell_messages_apart() -> None:
    """R213, R214: LLMMessage and AgentMessage are unions that pydantic can read."""
    assert isinstance(Message(content="x"), LLMMessage)
    assert not isinstance(CustomMessage(), LLMMessage)
    assert isinstance(CustomMessage(), AgentMessage)
    read = TypeAdapter(list[AgentMessage]).validate_python([{"role": "custom"}, {"role": "tool", "contents": []}])
    assert [type(message) for message in read] == [CustomMessage, ToolMessage]


def test_misspelt_fields_are_refused() -> None:
    """A constructor names the close field; from_dict and copies keep what another version wrote."""
    cases: list[Any] = [Message, UserMessage, TextContent]
    for kind in cases:
        with pytest.raises(InvalidMessage, match="Did you mean 'content'"):
            kind(contnt="hi")
        later = {"type": "text", "content": "x", "contnt": "hi", "self": 1, "cls": 2}
        kept = kind.from_dict(later)
        assert kept.model_copy(update={"contnt": "ho"}).model_extra["contnt"] == "ho"
        assert {"contnt", "self", "cls"} <= kept.model_extra.keys()


def test_faults_name_place_and_reason() -> None:
    """Every finding is data: (place, fault), places as pydantic spells them."""
    with pytest.raises(InvalidMessage) as raised:
        Message(role="user", contents=[{"type": "text", "content": 7}], timestamp="soon")  # type: ignore[arg-type]
    assert [place for place, _ in raised.value.faults] == ["contents.0.text.content", "timestamp"]
    assert raised.value.__cause__ is not None


def test_content_is_text_or_parts() -> None:
    """R2: anything else is refused by name."""
    cases: list[object] = [b"bytes", 7, object(), [b"x"], [7], [{"no": "type"}], {"type": 7}]
    for content in cases:
        with pytest.raises(InvalidMessage, match=r"neither text nor|not a content part|needs a type"):
            Message(content=content)


def test_trust_is_ordered_and_known_by_speaker() -> None:
    """DESIGN decision 9: the least of several is what a summary inherits; alone a summary is worth no more than a tool."""
    assert Trust.OUTSIDE < Trust.MODEL < Trust.HUMAN < Trust.HARNESS
    assert [each.trust for each in (Speaker.HUMAN, Speaker.HARNESS)] == [Trust.HUMAN, Trust.HARNESS]
    assert {each.trust for each in (Speaker.TOOL, Speaker.SUMMARY)} == {Trust.OUTSIDE}
    spoken = {role: Message(role=role, contents=[TextContent("x")]).speaker for role in Role}
    assert spoken[Role.COMPACTION_SUMMARY] is spoken[Role.BRANCH_SUMMARY] is Speaker.SUMMARY
    assert Message(role="user", content="x", speaker="harness").speaker is Speaker.HARNESS


def test_importing_messages_is_light() -> None:
    """R55: no Pillow, no numpy, no network library comes with a message."""
    script = "import sys, palaver.messages; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert "palaver" in loaded
    assert not loaded & {"PIL", "numpy", "httpx", "apsw", "tiktoken", "typer", "rich", "litellm", "asyncio"}


# --- usage means the same for every provider -----------------------------------------------------------------------------

# One call as each provider reports it: 100 tokens read, 60 of them from the cache and 10 into it where the provider says so, and 30
# written, 20 of them reasoning where it says so. First the cache write and the reasoning.
VOCABULARIES = {
    "openai chat": (0, 20, '{"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130, "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 20}}'),
    "openai responses": (0, 20, '{"input_tokens": 100, "output_tokens": 30, "total_tokens": 130, "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 20}}'),
    "codex": (0, 20, '{"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 30, "reasoning_output_tokens": 20}'),
    "anthropic": (10, 0, '{"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 30}'),
    "litellm for anthropic": (10, 0, '{"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10}}'),
    "gemini": (0, 20, '{"promptTokenCount": 90, "toolUsePromptTokenCount": 10, "candidatesTokenCount": 10, "thoughtsTokenCount": 20, "cachedContentTokenCount": 60, "totalTokenCount": 130}'),
    "gemini in Python": (0, 20, '{"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 20, "cached_content_token_count": 60, "total_token_count": 130}'),
    "gemini interactions": (0, 20, '{"total_input_tokens": 90, "total_tool_use_tokens": 10, "total_output_tokens": 10, "total_thought_tokens": 20, "total_cached_tokens": 60, "total_tokens": 130}'),
    "gemini command line": (0, 20, '{"input": 100, "output": 10, "cached": 60, "thoughts": 20, "tool": 0, "total": 130}'),
    "pi": (10, 0, '{"input": 30, "output": 30, "cacheRead": 60, "cacheWrite": 10, "totalTokens": 130}'),
    "inspect": (10, 20, '{"input_tokens": 30, "output_tokens": 30, "total_tokens": 130, "input_tokens_cache_read": 60, "input_tokens_cache_write": 10, "reasoning_tokens": 20}'),
    "camel case": (0, 20, '{"inputTokens": 100, "outputTokens": 30, "cachedInputTokens": 60, "reasoningTokens": 20}'),
    "palaver": (10, 0, '{"input_tokens": 100, "output_tokens": 30, "cache_read_tokens": 60, "cache_write_tokens": 10}'),
}  # fmt: skip


def test_every_vocabulary_means_the_same() -> None:
    """C7, R14, R235: input is everything read, cache figures are parts of it, output is everything written."""
    for written, reasoning, record in VOCABULARIES.values():
        usage = Usage(json.loads(record))
        assert usage == json.loads(record)
        assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 30, 60)
        assert (usage.cache_write_tokens, usage.reasoning_tokens) == (written, reasoning)
        assert usage.uncached_tokens == 40 - written
        assert usage.total_tokens == usage.context_tokens == 130
        cost = usage.invoke_cost
        assert (cost.prompt_tokens, cost.completion_tokens, cost.total_tokens) == (100, 30, 130)
        assert cost.cached_prompt_tokens == 60


def test_context_size_is_of_one_request() -> None:
    """D22: twelve calls were added up in the parts; the total is the last call's and is the context (openclaw 99843)."""
    parts = {"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130}
    assert Usage({**parts, "totalTokens": 163_978}).context_tokens == 163_978
    assert Usage({**parts, "total": 163_978}).context_tokens == 163_978
    assert Usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}).context_tokens == 15
    assert Usage({"total_tokens": 99}).context_tokens == 99  # all that is known


def test_what_is_no_count_is_zero() -> None:
    """R14: missing, None, booleans, text and negative figures are zero, and nothing fails."""
    cases: list[dict[str, Any]] = [
        {},
        {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None},
        {"prompt_tokens": True, "completion_tokens": "12"},
        {"input_tokens": -5},
        {"cost": None},
    ]
    for raw in cases:
        usage = Usage(raw)
        assert usage.invoke_cost == InvokeCost()
        assert usage.context_tokens == 0
        assert usage.cost == UsageCost()


def test_dollars_are_read_as_recorded() -> None:
    """R236: a mapping by kind of token, a bare number, LiteLLM's response cost; prices are not guessed here."""
    dollars = {"input": 0.1, "output": 0.2, "cacheRead": 0.3, "cacheWrite": 0.4, "total": 1.0}
    pi = Usage({"input": 1, "output": 1, "cacheRead": 0, "cost": dollars})
    assert pi.cost == UsageCost(input=0.1, output=0.2, cache_read=0.3, cache_write=0.4, total=1.0)
    assert pi.invoke_cost.cost == 1.0
    assert Usage({"prompt_tokens": 1, "cost": 0.25}).cost.total == 0.25
    assert Usage({"prompt_tokens": 1, "response_cost": 0.5}).invoke_cost.cost == 0.5
    by_parts = Usage({"prompt_tokens": 1, "prompt_cost": 0.25, "completion_cost": 0.5}).invoke_cost
    assert (by_parts.prompt_cost, by_parts.completion_cost, by_parts.cost) == (0.25, 0.5, 0.75)


def test_costs_add_up_without_rates() -> None:
    """R23: tokens and dollars are summed; a rate belongs to one call."""
    one = InvokeCost(prompt_tokens=1, cost=0.5, input_cost_per_token=0.1, cache_read_input_token_cost=0.1)
    assert one + one == sum([one, one], InvokeCost()) == InvokeCost(prompt_tokens=2, cost=1.0)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


class Foreign(BaseModel):
    """The usage object of some provider's package."""

    prompt_tokens: int
    completion_tokens: int


def test_usage_objects_of_providers_are_read() -> None:
    """An invoker passes on what the provider's client returned."""
    message = AssistantMessage("x", usage=Foreign(prompt_tokens=3, completion_tokens=4))  # type: ignore[arg-type]
    assert (message.usage, message.cost.total_tokens) == ({"prompt_tokens": 3, "completion_tokens": 4}, 7)


@given(some.usages())
def test_the_raw_record_cannot_change(usage: Usage) -> None:
    """R7: it equals a plain dict, survives pickles, and no typed attribute is negative."""
    assert Message("assistant", "x", usage=usage).usage == dict(usage)
    again = pickle.loads(pickle.dumps(usage))  # noqa: S301 - our own bytes
    assert (type(again), again) == (Usage, usage)
    assert usage.uncached_tokens + usage.cache_read_tokens + usage.cache_write_tokens >= usage.input_tokens
    assert min(usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.context_tokens) >= 0
    with pytest.raises(TypeError):
        usage["x"] = 1
