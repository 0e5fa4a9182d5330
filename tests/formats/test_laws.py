"""Laws of every reader: damage costs what it hits and is reported; reading again, or a grown file, says the same."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from palaver.errors import UnsupportedTranscript
from palaver.store.memory import MemoryStore
from tests.formats.reading import Read, imported, read_bytes, read_file, refused, views, written
from tests.formats.samples import DOCUMENTS, GOLDEN, JSON, KINDS, LINES, ROWS, document, jsonl, packed, sample, value_of

SLOW = settings(
    max_examples=max(settings().max_examples // 3, 20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
GZIP = b"\x1f\x8b\x08"
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["\ud800", "\0", "user", "tool", "assistant", "c1", "1e999", "{", []]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["type", "text", "role", "id", "name"]), st.text(max_size=3), max_size=2),
)


@cache
def read_sample(kind: str) -> Read:
    """Read a small file of a format."""
    return read_file(GOLDEN / f"{kind}.file")


def read_or_refused(folder: Path, data: bytes) -> Read | None:
    """Read a file; None when it is refused as no transcript."""
    try:
        return read_bytes(folder, data)
    except UnsupportedTranscript:
        return None


# --- cut ------------------------------------------------------------------------------------------------------------------------


def test_cut_file_that_is_whole_again_goes_on(tmp_path: Path) -> None:
    """What an import of a cut file took stands; the whole file adds the rest to it."""
    for kind in KINDS:
        whole = sample(kind)
        straight = imported(MemoryStore(), written(tmp_path, whole))
        for cut in range(len(whole) * 3 // 5, len(whole), max(len(whole) // 9, 1)):
            store = MemoryStore()
            before = imported(store, written(tmp_path, whole[:cut]))
            after = imported(store, written(tmp_path, whole))
            assert {one.outcome for one in after} <= {"grown", "new", "unchanged"}, kind
            assert [(one.records, one.dialogs) for one in after] == [(one.records, one.dialogs) for one in straight], (
                kind
            )
            assert {one.session_id for one in before} <= {one.session_id for one in after}, kind


def test_line_end_after_a_cut_changes_nothing(tmp_path: Path) -> None:
    """A cut document is read or refused alike with a line end after it, as an editor adds one."""
    for kind in DOCUMENTS:
        whole = sample(kind)
        for cut in range(len(whole) // 2, len(whole), max(len(whole) // 7, 1)):
            found, ended = (read_or_refused(tmp_path, whole[:cut] + end) for end in (b"", b"\n"))
            assert (found and (found.puts, found.codes())) == (ended and (ended.puts, ended.codes())), (kind, cut)


@pytest.mark.parametrize(
    ("kind", "key"), [("atif", "steps"), ("inspect", "samples"), ("moatless", "nodes"), ("tau2-bench", "simulations")]
)
def test_report_of_a_cut_element_is_true(tmp_path: Path, kind: str, key: str) -> None:
    """The report on the element in which a document ends says "not read" exactly where no message of it was."""
    value, whole = value_of(kind), sample(kind)
    for number in range(1, len(value[key])):
        before = read_bytes(tmp_path, document({**value, key: value[key][:number]})).counted()
        start = whole.index(document(value[key][number]).strip())
        for cut in range(start + 1, len(whole), max(len(whole) // 16, 1)):
            found = read_bytes(tmp_path, whole[:cut])
            for loss in found.losses:
                if loss.code == "torn_tail" and loss.place == f"{key}[{number}]":
                    assert loss.reason.endswith(", and not read.") == (found.counted() <= before), loss


# --- changed ----------------------------------------------------------------------------------------------------------------------


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Return the path of every value in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from paths(one, (*path, name))


PATHS = {kind: list(paths(value_of(kind))) for kind in JSON}


def put(value: Any, path: tuple[Any, ...], junk: object) -> None:  # noqa: ANN401
    """Replace what stands at a path, unless what leads there was replaced."""
    for name in path[:-1]:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(value, dict) or (isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value)):
        value[path[-1]] = junk


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}], ids=repr)
def test_format_is_detected_whatever_a_key_holds(tmp_path: Path, junk: object) -> None:
    """A record with the keys of every format, each with a value of another type, is refused or read."""
    values = (value if isinstance(value, list) else [value] for value in map(value_of, JSON))
    keys = {key for listed in values for record in listed if isinstance(record, dict) for key in record}
    assert "kind" in keys
    read_or_refused(tmp_path, jsonl(dict.fromkeys(sorted(keys), junk)))


@SLOW
@pytest.mark.parametrize("kind", JSON)
@given(data=st.data())
def test_any_value_anywhere(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """Up to three fields hold something else: the file is refused or imported, and providers take what its views show."""
    value = copy.deepcopy(value_of(kind))
    changed = data.draw(st.lists(st.sampled_from(PATHS[kind]), min_size=1, max_size=3))
    for path in changed:
        put(value, path, data.draw(JUNK))
    store, path = MemoryStore(), written(tmp_path, packed(kind, value))
    try:
        found = imported(store, path)
    except UnsupportedTranscript:
        return
    assert [one.entries for one in imported(store, path)] == [0] * len(found)
    for view in views(store, found):
        assert refused(store, view) == []
    if kind in LINES and len(changed) == 1:
        assert read_file(path).counted() >= read_sample(kind).counted() - 1


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@given(at=st.integers(0, 1 << 20), gone=st.integers(0, 3), new=st.binary(max_size=3))
@example(at=0, gone=0, new=GZIP)
def test_any_bytes_changed_anywhere(tmp_path: Path, kind: str, at: int, gone: int, new: bytes) -> None:
    """Bytes replaced, taken out or put in: refused, or read; of JSON lines a byte costs two records at most, and that is reported.

    Lines that begin as gzip does are refused as damaged gzip data.
    """
    whole = bytearray(sample(kind))
    before = read_sample(kind)
    at %= len(whole)
    whole[at : at + gone] = new
    if kind in LINES and whole.startswith(GZIP):
        with pytest.raises(UnsupportedTranscript, match="its compressed data is damaged"):
            read_bytes(tmp_path, bytes(whole))
        return
    found = read_or_refused(tmp_path, bytes(whole))
    if kind in LINES:
        assert found is not None
        assert found.counted() >= before.counted() - 4
        assert found.counted() == before.counted() or found.codes() != before.codes() or found.events != before.events


@SLOW
@pytest.mark.parametrize("kind", LINES)
@given(data=st.data())
def test_records_in_any_order_and_number(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """Records left out, repeated and shuffled are read, and no message record vanishes."""
    # such a record sets the whole history of Gemini CLI: a repeated record before it makes another history
    lines = [line for line in sample(kind).splitlines() if b'"$set":{"messages"' not in line]
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=14))
    found = read_or_refused(tmp_path, b"\n".join(chosen))
    if found is not None:
        assert found.counted() >= read_bytes(tmp_path, b"\n".join(dict.fromkeys(chosen))).counted()


# --- the same ---------------------------------------------------------------------------------------------------------------------


def test_grown_file_begins_with_what_it_was(tmp_path: Path) -> None:
    """Of a longer file the same puts come in the same dialogs, and then more."""
    for kind in LINES:
        lines = sample(kind).splitlines(keepends=True)
        for count in range(3, len(lines)):
            before, after = (
                read_bytes(tmp_path, b"".join(lines[:count])),
                read_bytes(tmp_path, b"".join(lines[: count + 1])),
            )
            assert [(put.dialog, put.record, put.digest) for put in after.puts][: len(before.puts)] == [
                (put.dialog, put.record, put.digest) for put in before.puts
            ], kind


@SLOW
@pytest.mark.parametrize("kind", [*ROWS, *DOCUMENTS])
@given(seed=st.integers(0, 1 << 30))
def test_order_of_keys_means_nothing(tmp_path: Path, kind: str, seed: int) -> None:
    """However the keys of every object are ordered, the same messages are read under the same keys."""
    plain = read_sample(kind)
    other = read_bytes(tmp_path, packed(kind, shuffled(value_of(kind), random.Random(seed))))  # noqa: S311 - an order
    assert [one.key for one in other.conversations] == [one.key for one in plain.conversations]
    assert other.identities() == plain.identities()


def shuffled(value: Any, chance: random.Random) -> Any:  # noqa: ANN401
    """Return a value with the keys of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(one, chance) for one in value]
    if not isinstance(value, dict):
        return value
    items = list(value.items())
    chance.shuffle(items)
    return {name: shuffled(one, chance) for name, one in items}
