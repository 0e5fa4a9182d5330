"""Counting messages: monotone, additive within a bound, deterministic, and right about what is no text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palaver.messages import (
    AssistantMessage,
    AudioContent,
    Content,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UserMessage,
)
from palaver.tokens import (
    ModelCounter,
    count_block,
    count_message,
    count_request,
    count_tools,
    counter,
)
from tests.tokens.test_images import picture

SLACK = 3
"""Tokens that one join of two texts can save or cost, before the family's factor."""

MODELS = ["gpt-4o", "claude-opus-4-6", "claude-opus-5", "gemini-2.5-pro", "deepseek-chat", "nobody-knows-me"]
COUNTERS = st.sampled_from([counter(model) for model in MODELS])
TEXT = st.text(max_size=200)
BLOCKS = st.one_of(
    st.builds(TextContent, content=TEXT),
    st.builds(ThinkingContent, content=TEXT, signature=st.sampled_from(["", "c2ln" * 50])),
    st.builds(lambda text: ToolCallContent("c1", "read", args={"path": text}), TEXT),
    st.builds(ToolResultContent, id=st.just("c1"), content=TEXT),
    st.builds(ToolResultContent, id=st.just("c1"), content=st.tuples(st.builds(TextContent, content=TEXT))),
    st.just(ImageContent(images=(Media(url="https://example.org/a.png"),))),
    st.just(AudioContent(audio=(Media(url="https://example.org/a.wav"),))),
)
SCHEMA = {"type": "function", "function": {"name": "read", "description": "Reads a file.", "parameters": {}}}


@given(COUNTERS, st.lists(TEXT, min_size=1, max_size=8))
def test_texts_add_up(counting: ModelCounter, texts: list[str]) -> None:
    """Parts counted apart are at least the whole, and at most the whole and what each join and rounding can cost."""
    whole, apart = counting.text("".join(texts)), sum(map(counting.text, texts))
    slack = (SLACK * counting.family.factor + 1) * len(texts)
    assert whole - slack <= apart <= whole + slack


@given(COUNTERS, st.lists(BLOCKS, max_size=5))
def test_a_message_is_its_blocks_and_its_frame(counting: ModelCounter, blocks: list[Content]) -> None:
    """A message counts exactly its blocks and what stands around a message, and counts the same again."""
    message = AssistantMessage(contents=tuple(blocks))
    count = count_message(message, counting)
    assert count == counting.family.per_message + sum(count_block(block, counting) for block in blocks)
    assert count_message(message, counting) == count


@given(COUNTERS, st.lists(BLOCKS, max_size=4), st.text(max_size=50), st.integers(0, 3))
def test_a_request_is_the_sum_of_its_parts(
    counting: ModelCounter, blocks: list[Content], system: str, tools: int
) -> None:
    """C17, D22, R156, T1: instructions, tool schemas and messages all count (langchain#34664), and adding any of them never counts less."""
    messages = [UserMessage.text("go"), AssistantMessage(contents=tuple(blocks))]
    schemas = [SCHEMA] * tools
    whole = count_request(messages, counting, system=system, tools=schemas)
    said = sum(count_message(message, counting) for message in messages)
    instructions = counting.family.per_message + counting.text(system) if system else 0
    assert whole == counting.family.per_request + instructions + count_tools(schemas, counting) + said
    assert whole >= count_request(messages[:1], counting)


def test_an_image_counts_by_its_pixels_not_by_its_bytes() -> None:
    """T14: the figure is the provider's formula; base64 is never counted as text."""
    image = ImageContent(images=(Media.from_bytes(picture("PNG", 1024, 1024)),))
    assert count_block(image, counter("gpt-4o")) == 765
    assert count_block(image, counter("claude-sonnet-4-5")) == 1399
    assert count_block(image, counter("gemini-2.5-pro")) == 4 * 258
    unknown = ImageContent(images=(Media(media_type="image/png", digest="0" * 64, size=70_000),))
    assert count_block(unknown, counter("claude-sonnet-4-5")) == 1600, "without its bytes it costs as much as one can"
    sound = AudioContent(audio=(Media(media_type="audio/mpeg", digest="0" * 64, size=40_000),))
    assert count_block(sound, counter("gpt-4o")) == 100, "ten seconds at the assumed rate of 4,000 bytes"


def test_thinking_counts_its_text_or_the_length_of_its_seal() -> None:
    """Where only a signature or an encrypted form is there, its length decides: three bytes in four characters, four a token."""
    counting = counter("claude-sonnet-4-5")
    assert count_block(ThinkingContent(content="well", signature="x" * 1600), counting) == counting.text("well")
    assert count_block(ThinkingContent(signature="x" * 1600), counting) == 300
    assert count_block(ThinkingContent(redacted="x" * 160), counting) == 30
    assert count_block(ThinkingContent(artefact={"encrypted_content": "x" * 16}), counting) == 3
    assert count_block(ThinkingContent(), counting) == 0
