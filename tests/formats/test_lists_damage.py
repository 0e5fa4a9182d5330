"""Damaged lists of messages: cut, shuffled or changed anywhere, they are read as far as they can be, and nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import UnsupportedTranscript
from palaver.formats import Loss
from palaver.store.memory import MemoryStore
from tests.formats.chats import SAMPLES, document, imported, refused, series, tar, views, written
from tests.formats.transcripts import Read, read_bytes

KINDS = (*SAMPLES, "openhands-llm-calls")
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
SLOW = settings(
    max_examples=max(settings().max_examples // 3, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def sample(kind: str) -> Any:  # noqa: ANN401
    """Give the values of a small file."""
    return series() if kind == "openhands-llm-calls" else SAMPLES[kind]()


def packed(kind: str, value: Any) -> bytes:  # noqa: ANN401
    """Write the values as a file of the kind."""
    return tar(value) if kind == "openhands-llm-calls" else document(value)


def read_or_refused(folder: Path, data: bytes) -> Read | None:
    """Read a file; None when it is refused as no transcript."""
    try:
        return read_bytes(folder, data)
    except UnsupportedTranscript:
        return None


def messages_before(whole: bytes, kind: str) -> list[int]:
    """Give where each message of a document ends, in order."""
    lists: dict[str, Callable[[Any], list[Any]]] = {
        "tau-bench": lambda value: [one for run in value for one in run["traj"]],
        "tau2-bench": lambda value: [one for run in value["simulations"] for one in run["messages"]],
    }
    value = json.loads(whole)
    found = lists[kind](value) if kind in lists else value if isinstance(value, list) else value["messages"]
    ends, at = [], 0
    for one in found:
        text = document(one)
        at = whole.index(text, at) + len(text)
        ends.append(at)
    return ends


@pytest.mark.parametrize("kind", SAMPLES)
def test_cut_at_every_byte(tmp_path: Path, kind: str) -> None:
    """Every message before the cut is read, and the cut is reported; a file too short to show its format is refused."""
    whole = packed(kind, sample(kind))
    ends = messages_before(whole, kind)
    last: Read | None = None
    for cut in range(0, len(whole), len(whole) // 200):
        found = read_or_refused(tmp_path, whole[:cut])
        if found is None:
            assert last is None, "a longer file is refused"
            continue
        last = found
        assert found.counted() == sum(1 for end in ends if end <= cut)
        assert "torn_tail" in found.codes()
    assert last is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_that_is_whole_again_goes_on(tmp_path: Path, kind: str) -> None:
    """What an import of a cut file took stands; the whole file adds the rest to it, and changes nothing."""
    whole = packed(kind, sample(kind))
    alone = MemoryStore()
    straight = imported(alone, written(tmp_path, whole))
    for cut in range(len(whole) * 3 // 5, len(whole), max(len(whole) // 9, 1)):
        store = MemoryStore()
        before = imported(store, written(tmp_path, whole[:cut]))
        after = imported(store, written(tmp_path, whole))
        assert {one.outcome for one in after} <= {"grown", "new", "unchanged"}
        assert [(one.records, one.dialogs) for one in after] == [(one.records, one.dialogs) for one in straight]
        assert {one.session_id for one in before} <= {one.session_id for one in after}


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 1 << 30))
def test_the_order_of_keys_means_nothing(tmp_path: Path, kind: str, seed: int) -> None:
    """However the keys of every object are ordered, the same messages are read under the same keys."""
    plain = read_bytes(tmp_path, packed(kind, sample(kind)))
    other = read_bytes(tmp_path, packed(kind, _shuffled(sample(kind), random.Random(seed))))  # noqa: S311 - an order
    assert [one.key for one in other.conversations] == [one.key for one in plain.conversations]
    kept = [[(p.dialog, p.record, p.digest, p.counted) for p in one.puts if not p.derived] for one in (plain, other)]
    assert kept[0] == kept[1]


def _shuffled(value: Any, chance: random.Random) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_shuffled(one, chance) for one in value]
    if not isinstance(value, dict):
        return value
    items = list(value.items())
    chance.shuffle(items)
    return {name: _shuffled(one, chance) for name, one in items}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from _paths(one, (*path, name))


PATHS = {kind: list(_paths(sample(kind))) for kind in KINDS}


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_field_of_any_other_kind(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """Whatever stands in place of up to three fields: the file is refused or imported, what it gives folds, and providers take it."""
    value = copy.deepcopy(sample(kind))
    for path in data.draw(st.lists(st.sampled_from(PATHS[kind]), min_size=1, max_size=3)):
        _put(value, path, data.draw(JUNK))
    store = MemoryStore()
    file = written(tmp_path, packed(kind, value))
    try:
        found = imported(store, file)
    except UnsupportedTranscript:
        return
    assert [one.entries for one in imported(store, file)] == [0] * len(found)
    for view in views(store, found):
        assert refused(store, view) == []


def _put(value: Any, path: tuple[Any, ...], junk: object) -> None:  # noqa: ANN401
    for name in path[:-1]:
        try:
            value = value[name]
        except (KeyError, IndexError, TypeError):  # what led there was replaced
            return
    if isinstance(value, dict) or (isinstance(value, list) and isinstance(path[-1], int) and path[-1] < len(value)):
        value[path[-1]] = junk


@SLOW
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_bytes_changed_anywhere(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """Bytes replaced, taken out or put in: refused, or read with a report, never anything else."""
    whole = bytearray(packed(kind, sample(kind)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    found = read_or_refused(tmp_path, bytes(whole))
    assert found is None or all(isinstance(loss, Loss) for loss in found.losses)
