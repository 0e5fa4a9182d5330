"""What may follow what: the table is complete, and a header carries what a walk through the log would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput
from palaver.ids import new_dialog_id
from palaver.log import (
    KINDS,
    NOTHING,
    CallStarted,
    Header,
    Label,
    MessageEntry,
    Place,
    TurnEnded,
    TurnStarted,
    draft,
    next_header,
)
from palaver.log.headers import RULES
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)


def call(*ids: str, response: str | None = None) -> Message:
    """A fragment of a response that makes calls."""
    contents = tuple(ToolCallContent(id=one, name="t") for one in ids)
    return AssistantMessage(contents=contents, response_id=response, fragment=response is not None)


def result(one: str) -> Message:
    """A tool's result."""
    return ToolMessage.from_result(ToolResultContent(id=one, content="ok"))


def chain(*said: Message) -> list[Header]:
    """Return the headers of messages that follow each other."""
    headers: list[Header] = []
    last = NOTHING
    for message in said:
        last = next_header(draft(MessageEntry(message=message))[0], last)
        headers.append(last)
    return headers


def test_every_kind_has_a_rule() -> None:
    """The table and the union name the same kinds; a kind names others where its entries have a field for places or runs of entries."""
    assert set(RULES) == set(KINDS)
    for kind, law in RULES.items():
        schema = KINDS[kind].model_json_schema()
        assert law.places == bool({"Place", "Run"} & schema.get("$defs", {}).keys()), kind


def test_label_beside_a_turn_moves_no_turn_head() -> None:
    """An annotation takes the next number and leaves the turn head where it was; each kind is refused in the place of the other."""
    first = chain(UserMessage.text("hi"))[0]
    label = draft(Label(target=Place(dialog=new_dialog_id("0001"), seq=0), label="x"))[0]
    beside = next_header(label, first, turn=False)
    assert (beside.seq, beside.turn_head) == (1, 0)
    with pytest.raises(InvalidInput, match="annotate"):
        next_header(label, first)
    with pytest.raises(InvalidInput, match="append"):
        next_header(draft(MessageEntry(message=UserMessage.text("hi")))[0], turn=False)


def test_call_can_start_only_while_it_is_open() -> None:
    """A start is written for a call that was made and has no result; anything else is refused by name."""
    started = draft(CallStarted(call_id="a"))[0]
    asked, answered = chain(call("a"), result("a"))

    assert next_header(started, asked).open_calls == ("a",)
    with pytest.raises(InvalidInput, match="open call"):
        next_header(started, answered)


def test_turns_open_and_close_once() -> None:
    """A turn cannot begin inside another, nor end when none is open."""
    begun = next_header(draft(TurnStarted(agent="a"))[0])
    ended = next_header(draft(TurnEnded())[0], begun)

    assert (begun.open_turn, ended.open_turn) == (0, -1)
    with pytest.raises(InvalidInput):
        next_header(draft(TurnStarted())[0], begun)
    with pytest.raises(InvalidInput):
        next_header(draft(TurnEnded())[0], ended)


def test_response_ends_where_another_message_begins() -> None:
    """Fragments join over results and over messages that say nothing; equal ids in two turns are two responses."""
    cases: list[tuple[list[Message], list[int]]] = [
        ([], [1, 1]),
        ([result("a")], [1, 2, 2]),
        ([AssistantMessage(contents=(), error="cut off")], [1, 2, 2]),
        ([UserMessage.text("and?")], [1, 2, 3]),
        ([AssistantMessage(contents=(TextContent("no id"),))], [1, 2, 3]),
        ([UserMessage(contents=(ToolResultContent(id="a", content="ok"),))], [1, 2, 2]),
    ]
    for between, numbers in cases:
        headers = chain(call("a", response="r"), *between, call("b", response="r"))
        assert [one.number for one in headers] == numbers, between
        assert headers[-1].begins is (numbers[-1] > numbers[-2]), between
        assert (headers[-1].open_calls[-1], headers[-1].response) == ("b", "r"), between


def test_unanswered_calls_go_on_in_a_message_of_their_own() -> None:
    """Calls without a response id directly after calls that nothing answered are of one response; after a result they begin another."""
    once, again, answered = chain(call("a"), call("b"), result("a"))
    assert (once.continues, again.continues, again.number, again.begins) == ("", "calls", 2, True)
    assert again.open_calls == ("a", "b")
    assert next_header(draft(MessageEntry(message=call("c")))[0], answered).continues == ""


@given(
    st.lists(
        st.one_of(
            st.just(UserMessage.text("u")),
            st.sampled_from(["a", "b", "c"]).map(result),
            st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2, unique=True).map(lambda ids: call(*ids)),
        ),
        max_size=12,
    )
)
def test_header_carries_what_a_walk_would_find(said: list[Message]) -> None:
    """Totals, numbers and open calls in the newest header equal what reading every message gives."""
    headers = chain(*said)
    open_calls: list[str] = []
    for seq, message in enumerate(said):
        made = [block.id for block in message.contents if isinstance(block, ToolCallContent)]
        given_back = [block.id for block in message.contents if isinstance(block, ToolResultContent)]
        goes_on = bool(made) and bool(open_calls) and bool(said[seq - 1].tool_calls())
        open_calls = [*open_calls, *made] if goes_on else made or [one for one in open_calls if one not in given_back]
        header = headers[seq]
        assert (header.seq, header.turn_head, header.number) == (seq, seq, seq + 1)
        assert header.total == sum(one.size for one in headers[: seq + 1])
        assert list(header.open_calls) == open_calls
