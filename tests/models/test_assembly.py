"""Answers put together from events: every cut gives the same message, every prefix a valid one."""

from collections.abc import AsyncIterator
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import BrokenAnswer
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    Usage,
    decode,
    encode,
)
from palaver.models import (
    Assembly,
    BlockEvent,
    Delta,
    End,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageEvent,
    collect,
    spoken,
)
from palaver.models.assembly import NO_ARGUMENTS_YET
from palaver.testing.strategies import blocks, clean_texts, tool_calls, usages

TEXTS = st.builds(TextContent, clean_texts()) | st.builds(ThinkingContent, clean_texts(), clean_texts(8))
ANSWERS = st.builds(
    lambda contents, usage: AssistantMessage(contents=contents, usage=usage),
    st.lists(TEXTS | tool_calls() | blocks(), max_size=4),
    usages(),
)


def assembled(events: list[Delta | BlockEvent]) -> Assembly:
    """Put events together."""
    assembly = Assembly()
    for event in events:
        assembly.add(event)
    return assembly


@given(ANSWERS, st.integers(0, 5))
def test_any_cut_of_any_answer_gives_the_same_blocks(message: AssistantMessage, chunk: int) -> None:
    """However long the pieces are, the deltas of an answer add up to its blocks."""
    assert assembled(list(spoken(message, chunk))).made().contents == message.contents


@given(ANSWERS, st.integers(1, 5), st.data())
def test_any_prefix_of_any_answer_is_a_valid_message(
    message: AssistantMessage, chunk: int, data: st.DataObject
) -> None:
    """What has come so far can be stored and read again, begins as the whole does, and no call in it was made up."""
    events = list(spoken(message, chunk))
    partial = assembled(events[: data.draw(st.integers(0, len(events)))]).partial
    assert decode(encode(partial)[0]) == partial
    assert message.text_content().startswith(partial.text_content())
    for block, whole in zip(partial.contents, message.contents, strict=False):
        assert type(block) is type(whole)
        if isinstance(block, ToolCallContent) and isinstance(whole, ToolCallContent):
            assert block == whole or block.error is not None or block.arguments.strip() == whole.arguments.strip()


@given(ANSWERS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_blocks_may_come_interleaved(message: AssistantMessage, chunk: int, random: Random) -> None:
    """Parallel calls come in any order between each other, as long as each block's own pieces are in order."""
    queues: dict[int, list[Delta | BlockEvent]] = {}
    for event in spoken(message, chunk):
        queues.setdefault(event.index, []).append(event)
    mixed: list[Delta | BlockEvent] = []
    while queues:
        index = random.choice(sorted(queues))
        mixed.append(queues[index].pop(0))
        if not queues[index]:
            del queues[index]
    assert assembled(mixed).made().contents == message.contents


@given(clean_texts())
def test_a_character_cut_in_two_is_put_together(text: str) -> None:
    """JSON escapes write a character beyond the basic plane as two halves, and providers cut between them."""
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2)]
    assert assembled([TextDelta(half) for half in halves]).made().text_content() == text


def test_the_partial_answer_has_the_id_and_time_of_the_whole_one() -> None:
    """Whoever shows an answer while it comes can tell that it is the same one at the end."""
    assembly = Assembly(model="m")
    assembly.add(TextDelta("Hel"))
    early = assembly.partial
    assembly.add(TextDelta("lo"))
    assert (early.id, early.timestamp, early.model) == (assembly.made().id, assembly.made().timestamp, "m")
    assert assembly.partial.content == "Hello"


def test_indices_order_the_blocks_and_may_be_left_out() -> None:
    """A text that comes after a call stands before it where its index says so."""
    assembly = assembled([ToolCallDelta(9, "c1", "bash", "{}"), TextDelta("Looking.", 4), ThinkingDelta("Hm.", 1)])
    assert [block.type for block in assembly.made().contents] == ["thinking", "text", "tool_call"]


def test_a_call_of_which_only_the_name_has_come_is_no_call_without_arguments() -> None:
    """An empty text is the beginning of any arguments; only at the end of the answer does it mean none."""
    assembly = assembled([ToolCallDelta(0, "c1", "bash")])
    assert assembly.partial.tool_calls()[0].error == NO_ARGUMENTS_YET
    assert assembly.made().tool_calls()[0] == ToolCallContent("c1", "bash")


def test_cut_arguments_are_kept_as_text_with_the_reason() -> None:
    """They are never read as an empty object."""
    call = assembled([ToolCallDelta(0, "c1", "bash", '{"command": "rm -')]).partial.tool_calls()[0]
    assert call.raw_args == '{"command": "rm -'
    assert call.args == {}
    assert call.error


def test_the_usage_so_far_is_in_the_partial_answer() -> None:
    """A later record replaces an earlier one: providers send sums."""
    assembly = Assembly()
    assembly.add(UsageEvent(Usage({"input_tokens": 3})))
    assembly.add(UsageEvent(Usage({"input_tokens": 3, "output_tokens": 1})))
    assert assembly.partial.usage == assembly.usage == {"input_tokens": 3, "output_tokens": 1}


def test_signatures_and_fields_belong_to_their_block() -> None:
    """What a provider wants back with a block arrives with it."""
    artefact = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    assembly = assembled(
        [
            ThinkingDelta("a", 0, "sig"),
            ThinkingDelta("", 1, fields={"redacted": "xyz", "provider": "anthropic"}),
            ThinkingDelta("", 2, fields={"artefact": artefact}),
            TextDelta("", 3, {"phase": "commentary"}),
        ]
    )
    assert assembly.made().contents == (
        ThinkingContent("a", "sig"),
        ThinkingContent(redacted="xyz", provider="anthropic"),
        ThinkingContent(artefact=artefact),
        TextContent.from_dict({"phase": "commentary"}),
    )


@pytest.mark.parametrize("wrong", [ThinkingDelta("x", 0), BlockEvent(TextContent("x"), 0)])
def test_a_block_cannot_change_its_kind(wrong: Event) -> None:
    """An answer that says so makes no sense, and what came before is at hand."""
    assembly = assembled([TextDelta("Hello")])
    with pytest.raises(BrokenAnswer) as caught:
        assembly.add(wrong)
    assert caught.value.partial.content == "Hello"


def test_nothing_follows_the_end() -> None:
    """The end is the end."""
    assembly = Assembly()
    assembly.add(End(AssistantMessage(content="Hello")))
    with pytest.raises(BrokenAnswer, match="after the end"):
        assembly.add(TextDelta("!"))


async def _events(*events: Event) -> AsyncIterator[Event]:
    for event in events:
        yield event


def test_collecting_reads_to_the_end() -> None:
    """The message of the end is given, whatever the deltas were."""
    message = AssistantMessage(content="Hello")
    assert anyio.run(collect, _events(TextDelta("Hello"), End(message))) is message


def test_collecting_what_stops_early_is_a_broken_answer_with_its_beginning() -> None:
    """A generator that ends without an end is no answer."""
    with pytest.raises(BrokenAnswer) as caught:
        anyio.run(collect, _events(TextDelta("Hel")))
    assert isinstance(caught.value.partial, Message)
    assert caught.value.partial.content == "Hel"
