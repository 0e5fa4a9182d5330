"""Records: what a line holds is the same, whichever of the two readers of JSON read it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.formats.records import parse

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(_VALUES, st.booleans())
def test_one_value_is_read_as_python_reads_it(value: object, escaped: bool) -> None:
    """Any JSON value, spelt with escapes or without, is what Python's own reader makes of it, down to the type of each number."""
    text = json.dumps(value, ensure_ascii=escaped)
    data = text.encode(errors="surrogatepass")
    parsed = parse(data)
    if parsed.repairs:
        return  # infinity, or a lone surrogate's bytes: replaced, and reported

    assert not parsed.fault
    assert [repr(found) for found, _ in parsed.values] == [repr(json.loads(text))]


@given(_VALUES, _VALUES)
def test_glued_values_are_read_one_by_one(first: object, second: object) -> None:
    """Two values on one line are two values, each with the offset behind it, whatever they are."""
    one, other = json.dumps([first]), json.dumps([second])
    parsed = parse((one + other).encode())

    assert parsed.values[0][1] == len(one)
    if not parsed.repairs:
        assert [repr(found) for found, _ in parsed.values] == [repr(json.loads(one)), repr(json.loads(other))]


@pytest.mark.parametrize(
    ("data", "value", "code"),
    [
        (b'{"a":NaN}', {"a": "NaN"}, "nonfinite"),
        (b'{"a":"\xff"}', {"a": "\ufffd"}, "encoding"),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}, ""),
        (b'{"a":"x\ty"}', {"a": "x\ty"}, ""),
        (b'{"a":"\\ud800"}', {"a": "\ud800"}, ""),
        (b' {"a":1,"a":2} \r', {"a": 2}, ""),
        (b"[" * 150 + b"]" * 150, json.loads("[" * 150 + "]" * 150), ""),
        (b"[" * 250 + b"]" * 250, json.loads("[" * 250 + "]" * 250), ""),
    ],
)
def test_what_the_faster_reader_refuses_is_read_patiently(data: bytes, value: object, code: str) -> None:
    """Numbers that JSON lacks, broken encodings, marks of byte order, raw control characters, depth: read, and reported where changed."""
    parsed = parse(data)

    assert [repr(found) for found, _ in parsed.values] == [repr(value)]
    assert [found for found, _ in parsed.repairs] == ([code] if code else [])
    assert not parsed.fault
