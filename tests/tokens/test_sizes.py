"""The size of a context: one request's, carried by what the provider reported where that is possible."""

from __future__ import annotations

import pytest

from palaver.messages import AssistantMessage, StopReason, TextContent, Usage, UserMessage
from palaver.tokens import context_size, count_message, count_request, counter

WORDS = "The quick brown fox jumps over the lazy dog. " * 200
COUNTING = counter("gpt-4o")
ASKED = UserMessage.text(WORDS)
SINCE = UserMessage.text("And then?")


def answer(stop: StopReason = StopReason.STOP, model: str = "gpt-4o", **usage: int) -> AssistantMessage:
    """Make an answer with usage."""
    text = (TextContent(content="It sleeps."),)
    return AssistantMessage(contents=text, model=model, stop_reason=stop, usage=Usage(**usage))


ESTIMATE = count_request([ASKED, answer()], COUNTING)


def test_a_reported_figure_carries_the_size() -> None:
    """C17, R238: the last usage, input and output together, plus an estimate of what came since and its error bar."""
    said = [ASKED, answer(prompt_tokens=ESTIMATE, completion_tokens=5), SINCE]
    since = count_message(SINCE, COUNTING)
    size = context_size(said, COUNTING)
    assert (size.tokens, size.basis) == (ESTIMATE + 5 + since, "reported")
    assert size.high - size.low <= 2 * COUNTING.bound * since + 2


@pytest.mark.parametrize(
    "reply",
    [
        answer(),  # nobody said
        answer(stop=StopReason.ABORT, prompt_tokens=ESTIMATE, completion_tokens=5),
        answer(stop=StopReason.ERROR, prompt_tokens=ESTIMATE, completion_tokens=5),
        answer(model="claude-opus-4-6", input_tokens=ESTIMATE, output_tokens=5),  # another tokenizer
        answer(prompt_tokens=ESTIMATE * 12, completion_tokens=5),  # summed over calls
        answer(prompt_tokens=ESTIMATE // 3, completion_tokens=5),  # before something was added
    ],
)
def test_a_figure_of_another_request_is_not_used(reply: AssistantMessage) -> None:
    """P16: no sums over calls, nothing broken off, no other model, nothing that the estimate rules out."""
    said = [ASKED, reply, SINCE]
    size = context_size(said, COUNTING)
    assert (size.tokens, size.basis) == (count_request(said, COUNTING), "estimated")
    assert size.low <= size.tokens <= size.high


def test_d22_token_size() -> None:
    """openclaw#99843: the total of the last request is the context, not its cached tokens added up over twelve calls."""
    counting = counter("claude-opus-4-6")
    filler = UserMessage.text(WORDS * 60 + "ends")
    usage = {"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130, "totalTokens": 163_978}
    reply = AssistantMessage(contents=(TextContent(content="Done."),), model="claude-opus-4-6", usage=Usage(usage))
    assert reply.usage.context_tokens == 163_978
    size = context_size([filler, reply], counting, system=WORDS * 4)
    assert size.basis == "reported"
    assert size.tokens == 163_978


def test_tools_and_instructions_count() -> None:
    """langchain#34664: what is sent beside the messages is part of the size."""
    schema = {"name": "read", "description": WORDS}
    plain = context_size([ASKED], COUNTING)
    whole = context_size([ASKED], COUNTING, system=WORDS, tools=[schema])
    assert whole.tokens - plain.tokens >= 2 * COUNTING.text(WORDS)
