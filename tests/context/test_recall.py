"""Recall: what a model writes for a handle is read, and its answer is a page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.context.recall import PAGE, RECALL_TOOLS, Said, recalled, searched
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Handle, Span, places

ID = "3f2a91c07b5e"
SEQS = st.integers(0, 10**6)


def test_places_are_read_as_views_print_them() -> None:
    """Handles, lists, ranges, and several of them."""
    cases: list[tuple[str, tuple[Handle | Span, ...]]] = [
        (f"{ID}:12", (Handle(DialogId(ID), 12),)),
        (f" {ID}:12:0 ", (Handle(DialogId(ID), 12, 0),)),
        (f"{ID}:12-40", (Span(DialogId(ID), 12, 41),)),
        (f"{ID}:40-12", (Span(DialogId(ID), 12, 41),)),
        (f"{ID}:12 to {ID}:40", (Span(DialogId(ID), 12, 41),)),
        (f"{ID}:1,7, 9", tuple(Handle(DialogId(ID), seq) for seq in (1, 7, 9))),
        (f"{ID}:1,5-6; {ID}:9", (Handle(DialogId(ID), 1), Span(DialogId(ID), 5, 7), Handle(DialogId(ID), 9))),
    ]
    for text, expected in cases:
        assert places(text) == expected, (text, expected)


def test_what_is_not_a_handle_is_refused() -> None:
    """Only handles, lists and ranges are read."""
    for text in ["", ";", "12", "the third message", f"{ID}:x", "%s" * 50, f"{ID}:1,"]:
        with pytest.raises(InvalidInput):
            places(text)


@given(st.lists(SEQS, min_size=1, max_size=9, unique=True))
def test_law_9_a_printed_list_is_read_back(seqs: list[int]) -> None:
    """The short form of a record names the same entries."""
    printed = f"{ID}:" + ",".join(map(str, seqs))
    assert places(printed) == tuple(Handle(DialogId(ID), seq) for seq in seqs)


def _read(place: Handle | Span) -> Iterator[Said]:
    seqs = range(place.start, place.stop) if isinstance(place, Span) else [place.seq]
    for seq in seqs:
        if seq > 50:
            raise NotFound(f"{ID}:{seq}", what="handle")
        yield Said(Handle(DialogId(ID), seq), "user", f"text {seq} " + "x" * 30_000 * (seq == 7))


def test_recall_quotes_with_handle_and_speaker() -> None:
    """What comes back is quoted, so that it is not taken for something that was just said."""
    assert recalled({"handle": f"{ID}:1,2"}, _read) == f"[{ID}:1] user:\ntext 1 \n\n[{ID}:2] user:\ntext 2 "


def test_recall_is_paged() -> None:
    """A page says how much follows, and from where."""
    first = recalled({"handle": f"{ID}:7"}, _read)
    assert first.endswith(f"offset {PAGE}]")
    second = recalled({"handle": f"{ID}:7", "offset": PAGE, "limit": 25_000}, _read)
    assert not second.endswith("]")
    assert len(first) + len(second) > 30_000


def test_a_page_reads_no_more_than_it_shows() -> None:
    """A range of any length is read page by page."""
    read: list[int] = []

    def endless(place: Handle | Span) -> Iterator[Said]:
        assert isinstance(place, Span)
        for seq in range(place.start, place.stop):
            read.append(seq)
            yield Said(Handle(place.dialog, seq), "user", "x" * 1_000)

    assert recalled({"handle": f"{ID}:0-99999999999"}, endless).endswith(f"[more follows; offset {PAGE}]")
    assert len(read) < 20


def test_a_wrong_call_is_answered() -> None:
    """A model reads what is wrong; nothing raises."""
    cases: list[dict[str, object]] = [
        {},
        {"handle": "7"},
        {"handle": 7},
        {"handle": f"{ID}:99"},
        {"handle": f"{ID}:1", "offset": 10**9},
    ]
    for args in cases:
        assert recalled(args, _read), args


def test_search_finds_messages_with_all_words() -> None:
    """R325, R326: newest first as given, case aside; a query that finds nothing says so."""
    said = [Said(Handle(DialogId(ID), seq), "tool", f"Line {seq} of Text, " + "y" * 500) for seq in range(30, 0, -1)]
    found = searched({"query": "text LINE", "limit": 3}, said)
    assert found.splitlines()[0].startswith(f"{ID}:30 (tool): Line 30 of Text")
    assert found.splitlines()[-1] == "[27 more; offset 3]"
    assert searched({"query": "line 7 of"}, said).startswith(f"{ID}:27")
    assert "No message" in searched({"query": "nowhere"}, said)
    assert "No message" in searched({}, said)


def test_the_tools_declare_what_they_take() -> None:
    """Two tools, each with one required argument."""
    assert [(tool.name, tool.parameters["required"]) for tool in RECALL_TOOLS] == [
        ("recall", ["handle"]),
        ("search_history", ["query"]),
    ]
