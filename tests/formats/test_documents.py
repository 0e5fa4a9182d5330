"""JSON as it is read: a line's values, and a document element by element, wherever the chunks end."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from palaver.formats.documents import Element, elements
from palaver.formats.records import parse
from palaver.formats.streams import Chunks, ReadLimits

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(VALUES, st.booleans())
def test_one_value_is_read_as_python_reads_it(value: object, escaped: bool) -> None:
    """Spelt with escapes or without, down to the type of each number."""
    written = json.dumps(value, ensure_ascii=escaped)
    parsed = parse(written.encode(errors="surrogatepass"))
    if parsed.repairs:
        return  # a lone surrogate's bytes: replaced, and reported
    assert not parsed.fault
    assert [repr(found) for found, _ in parsed.values] == [repr(json.loads(written))]


def read(data: bytes, size: int = 1 << 16, into: tuple[str, ...] = ()) -> tuple[list[Element], str]:
    """Read a document that arrives in pieces of a size; return its elements, and why it ended early."""

    def chunks() -> Chunks:
        for start in range(0, len(data), size):
            yield data[start : start + size]
        return ""

    reader = elements(chunks(), ReadLimits(), into)
    found: list[Element] = []
    while True:
        try:
            found.append(next(reader))
        except StopIteration as end:
            return found, end.value


@given(st.lists(VALUES, max_size=5), st.integers(1, 9), st.sampled_from([None, 1]))
def test_array_is_its_elements(values: list[Any], size: int, indent: int | None) -> None:
    """However the bytes arrive."""
    found, early = read(json.dumps(values, indent=indent, ensure_ascii=False).encode(), size)
    assert early == ""
    assert repr([one.value for one in found]) == repr(values)
    assert [one.path for one in found] == [f"[{n}]" for n in range(len(values))]


@given(st.dictionaries(st.sampled_from(["a", "list", "b c", "é"]), VALUES, max_size=4), st.integers(1, 9))
def test_object_is_its_values(values: dict[str, Any], size: int) -> None:
    """An array that is named is read element by element."""
    found, early = read(json.dumps(values, ensure_ascii=False).encode(), size, ("list",))
    again: dict[str, Any] = {key: [] for key, value in values.items() if key == "list" and isinstance(value, list)}
    for one in found:
        if one.nth >= 0:
            again[one.key].append(one.value)
        else:
            again[one.key] = one.value
    assert (again, early) == (values, "")


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_cut_document_gives_what_was_whole(values: list[Any], data: st.DataObject) -> None:
    """Every element before the cut is there; the one that was cut is marked, and the end is explained."""
    whole = json.dumps(values).encode()
    found, early = read(whole[: data.draw(st.integers(0, len(whole) - 1))], 5)
    assert early
    complete = [one.value for one in found if one.whole]
    same = sum(repr(one) == repr(other) for one, other in zip(complete, values, strict=False))
    assert same == len(complete) or isinstance(values[len(complete) - 1], int | float)  # a number may be cut to another


def test_long_string_is_looked_through_a_few_times_only() -> None:
    """An element that arrives in many chunks costs its length, not the square of it."""
    found, early = read(json.dumps(["x" * (1 << 24), 1]).encode(), 1 << 12)
    assert ([len(str(one.value)) for one in found], early) == ([1 << 24, 1], "")
