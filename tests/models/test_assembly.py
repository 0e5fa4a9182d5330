"""Answers assembled from events: every cut gives the same message, every prefix a valid one."""

from collections.abc import AsyncIterator, Iterable
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import ProviderError
from palaver.messages import AssistantMessage, TextContent, ThinkingContent, ToolCallContent, Usage, decode, encode
from palaver.models import (
    Assembly,
    BlockEvent,
    End,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageEvent,
    collect,
)
from palaver.models.assembly import NO_ARGUMENTS_YET, events_of
from tests.messages.strategies import blocks, clean_texts, tool_calls, usages

TEXTS = st.builds(TextContent, clean_texts()) | st.builds(ThinkingContent, clean_texts(), clean_texts(8))
ANSWERS = st.builds(
    lambda contents, usage: AssistantMessage(contents=contents, usage=usage),
    st.lists(TEXTS | tool_calls() | blocks(), max_size=4),
    usages(),
)


def assembled(events: Iterable[Event]) -> Assembly:
    """Assemble events."""
    assembly = Assembly(model="m")
    for event in events:
        assembly.add(event)
    return assembly


@given(ANSWERS, st.integers(0, 5), st.randoms(use_true_random=False))
def test_any_cut_and_order_gives_the_same_blocks(message: AssistantMessage, chunk: int, random: Random) -> None:
    """Pieces of any length, and blocks interleaved in any order."""
    queues: dict[int, list[Event]] = {}
    for event in events_of(message, chunk):
        queues.setdefault(event.index, []).append(event)
    mixed: list[Event] = []
    while any(queues.values()):
        mixed.append(queues[random.choice([index for index, queue in queues.items() if queue])].pop(0))
    assert assembled(mixed).message().contents == message.contents


@given(ANSWERS, st.integers(1, 5), st.data())
def test_any_prefix_is_a_valid_message(message: AssistantMessage, chunk: int, data: st.DataObject) -> None:
    """It can be stored and read, begins as the whole does, and invents no call."""
    events = list(events_of(message, chunk))
    partial = assembled(events[: data.draw(st.integers(0, len(events)))]).partial
    assert decode(encode(partial)[0]) == partial
    assert message.text_content().startswith(partial.text_content())
    for block, whole in zip(partial.contents, message.contents, strict=False):
        assert type(block) is type(whole)
        if isinstance(block, ToolCallContent) and isinstance(whole, ToolCallContent):
            assert block == whole or block.error is not None or block.arguments.strip() == whole.arguments.strip()


def test_partial_has_the_id_and_time_of_the_whole() -> None:
    """Indices order the blocks; the newest usage replaces the older."""
    assembly = assembled([ToolCallDelta(9, "c1", "bash", "{}"), TextDelta("Hel", 4), ThinkingDelta("Hm.", 1)])
    early = assembly.partial
    assembly.add(TextDelta("lo", 4))
    for usage in ({"input_tokens": 3}, {"input_tokens": 3, "output_tokens": 1}):
        assembly.add(UsageEvent(Usage(usage)))
    whole = assembly.message()
    assert (early.id, early.timestamp, early.model) == (whole.id, whole.timestamp, "m")
    assert [block.type for block in whole.contents] == ["thinking", "text", "tool_call"]
    assert whole.text_content() == "Hello"
    assert assembly.partial.usage == assembly.usage == {"input_tokens": 3, "output_tokens": 1}


def test_cut_arguments_keep_the_reason() -> None:
    """They are never read as an empty object; at the end, no arguments are none."""
    cut = assembled([ToolCallDelta(0, "c1", "bash", '{"command": "rm -')]).partial.tool_calls()[0]
    assert (cut.raw_args, cut.args) == ('{"command": "rm -', {})
    assert cut.error
    named = assembled([ToolCallDelta(0, "c1", "bash")])
    assert named.partial.tool_calls()[0].error == NO_ARGUMENTS_YET
    assert named.message().tool_calls()[0] == ToolCallContent("c1", "bash")


def test_signatures_and_fields_stay_on_their_block() -> None:
    """The provider requires them back with the block."""
    artefact = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    events: list[Event] = [
        ThinkingDelta("a", 0, "sig"),
        ThinkingDelta("", 1, fields={"redacted": "xyz", "provider": "anthropic"}),
        ThinkingDelta("", 2, fields={"artefact": artefact}),
        TextDelta("", 3, {"phase": "commentary"}),
    ]
    assert assembled(events).message().contents == (
        ThinkingContent("a", "sig"),
        ThinkingContent(redacted="xyz", provider="anthropic"),
        ThinkingContent(artefact=artefact),
        TextContent.from_dict({"phase": "commentary"}),
    )


def test_block_cannot_change_its_type() -> None:
    """The error has what arrived before."""
    cases: list[Event] = [ThinkingDelta("x", 0), BlockEvent(TextContent("x"), 0)]
    for wrong in cases:
        assembly = assembled([TextDelta("Hello")])
        with pytest.raises(ProviderError) as caught:
            assembly.add(wrong)
        assert (caught.value.kind, caught.value.partial.content) == ("broken", "Hello")


def test_nothing_follows_the_end() -> None:
    """The end is the last event."""
    assembly = assembled([End(AssistantMessage(content="Hello"))])
    with pytest.raises(ProviderError, match="follows the end"):
        assembly.add(TextDelta("!"))


async def _events(*events: Event) -> AsyncIterator[Event]:
    for event in events:
        yield event


def test_collect_returns_the_message_of_the_end() -> None:
    """Without an end it raises, with what arrived."""
    message = AssistantMessage(content="Hello")
    assert anyio.run(collect, _events(TextDelta("Hello"), End(message))) is message
    with pytest.raises(ProviderError) as caught:
        anyio.run(collect, _events(TextDelta("Hel")))
    assert (caught.value.kind, caught.value.partial.content) == ("broken", "Hel")
