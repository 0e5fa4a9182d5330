"""Large documents are taken apart at their commas, wherever the chunks end and whatever the strings hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.formats.splitting import Part, split
from palaver.formats.streams import Chunks

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def pieces(data: bytes, size: int) -> Chunks:
    """Give data in pieces of a size."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
    return ""


def taken(data: bytes, size: int = 1 << 16, into: tuple[str, ...] = ()) -> tuple[list[Part], str]:
    """Take a document apart, and give why it ended early."""
    parts = split(pieces(data, size), into)
    found: list[Part] = []
    while True:
        try:
            found.append(next(parts))
        except StopIteration as end:
            return found, end.value


@given(st.lists(VALUES, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_an_array_is_its_elements(values: list[Any], size: int, indent: int | None, ascii_only: bool) -> None:
    """Joined again, the parts are the document."""
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    parts, early = taken(data, size)
    assert early == ""
    assert [json.loads(part.data.decode("utf-8", "surrogatepass")) for part in parts] == values
    assert [part.path for part in parts] == [f"[{n}]" for n in range(len(values))]
    assert all(data[part.offset : part.offset + len(part.data)] == part.data for part in parts)


@given(st.dictionaries(st.sampled_from(["a", "list", "b c", "é"]), VALUES, max_size=4), st.integers(1, 9))
def test_an_object_is_its_values_and_named_arrays_are_their_elements(values: dict[str, Any], size: int) -> None:
    """A value is a part, or, for an array that is named, each of its elements is."""
    parts, early = taken(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"), size, ("list",))
    assert early == ""
    again: dict[str, Any] = {key: [] for key, value in values.items() if key == "list" and isinstance(value, list)}
    for part in parts:
        value = json.loads(part.data.decode("utf-8", "surrogatepass"))
        if part.nth >= 0:
            again[part.key].append(value)
        else:
            again[part.key] = value
    assert again == values


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_a_cut_document_gives_what_was_whole_and_says_so(values: list[Any], data: st.DataObject) -> None:
    """Every part before the cut is there; the one that was cut is marked, and the end is explained."""
    whole = json.dumps(values).encode()
    cut = data.draw(st.integers(0, len(whole) - 1))
    parts, early = taken(whole[:cut], 5)
    assert early
    complete = [json.loads(part.data) for part in parts if part.whole]
    assert complete[: len(values)] == values[: len(complete)] or isinstance(values[len(complete) - 1], int | float)


@pytest.mark.parametrize("data", [b"[1 2]", b'{"a" 1}', b"{1: 2}", b"[,]", b"[1,]", b"]", b'{"a": }', b"hello"])
def test_what_is_no_json_ends_with_a_reason(data: bytes) -> None:
    """A document that goes wrong is given up with a sentence, never with an exception."""
    assert taken(data)[1]


def test_a_long_string_is_looked_through_a_few_times_only() -> None:
    """An element that arrives in many chunks costs its length, not the square of it."""
    data = json.dumps(["x" * (1 << 24), 1]).encode()
    parts, early = taken(data, 1 << 12)
    assert (len(parts), early) == (2, "")
    assert len(parts[0].data) == (1 << 24) + 2
