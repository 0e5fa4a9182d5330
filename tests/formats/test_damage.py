"""Damaged transcripts: cut anywhere, changed anywhere, they are read as far as they can be, and every fault is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import UnsupportedTranscript
from tests.formats.transcripts import (
    Claude,
    Landed,
    Read,
    call,
    codex,
    event,
    item,
    jsonl,
    read_bytes,
    said,
    text,
    tokens,
)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.just({"type": "text"}),
)


def claude() -> bytes:
    """Write a session with a branch, a sub-agent, a compaction and a cleared result."""
    session = Claude()
    session.user("u1", "Go.", permissionMode="plan")
    session.model("a1", "m1", call("t1", "Task", prompt="P"), call("t2"))
    session.user("s1", "P", after=None, isSidechain=True)
    session.result("r1", "t1", after="a1")
    session.result("r2", "t2", after="a1")
    session.record("system", "b0", subtype="microcompact_boundary", microcompactMetadata={"compactedToolIds": ["t2"]})
    session.user("u2", "More.")
    session.user("u3", "Else.", after="b0")
    session.record(
        "system", "b1", after=None, logicalParentUuid="u3", subtype="compact_boundary", compactMetadata={"preTokens": 9}
    )
    session.user("c1", "Sum.", isCompactSummary=True)
    session.model("a2", "m2", text("Done."))
    for record in session.records:
        for name in ("cwd", "userType", "version", "gitBranch", "requestId", "toolUseResult", "timestamp"):
            record.pop(name, None)
        for name in ("usage", "stop_reason", "stop_sequence"):
            record.get("message", {}).pop(name, None)
        if not record["isSidechain"]:
            del record["isSidechain"]
        record["sessionId"] = "s"
    return session.bytes()


def rollout() -> bytes:
    """Write a rollout with a response of several items, a compaction and a rollback."""
    history = [said("user", "Go.")[1], {"type": "compaction"}]
    return codex(
        ("turn_context", {"model": "m", "effort": "low"}),
        said("user", "Go."),
        item("reasoning", summary=[]),
        item("function_call", call_id="c", name="f", arguments="{}"),
        item("function_call_output", call_id="c", output="x"),
        tokens(5, 5),
        ("compacted", {"message": "", "replacement_history": history}),
        said("assistant", "Done."),
        event("thread_rolled_back", num_turns=1),
        said("user", "Else."),
    )


def pi() -> bytes:
    """Write a tree with a compaction."""
    records: list[dict[str, Any]] = [{"type": "session", "id": "s", "cwd": "/", "version": 3}]
    for key, parent, role in (("1", None, "user"), ("2", "1", "assistant"), ("3", "2", "user"), ("4", "2", "user")):
        records.append(
            {"type": "message", "id": key, "parentId": parent, "message": {"role": role, "content": [text("x")]}}
        )
    records.append({"type": "compaction", "id": "5", "parentId": "4", "summary": "S", "firstKeptEntryId": "2"})
    records.append({"type": "label", "id": "6", "parentId": "5", "targetId": "1", "label": "l"})
    return jsonl(*records)


FORMATS: dict[str, Callable[[], bytes]] = {"claude_code": claude, "codex": rollout, "pi": pi}


def read_or_refused(folder: Path, data: bytes, *, land: bool = True) -> Read | None:
    """Read a file, and put all that was read into a store; None when it is refused as no transcript."""
    try:
        found = read_bytes(folder, data)
    except UnsupportedTranscript:
        return None
    if land:
        Landed(found)
    return found


@pytest.mark.parametrize("kind", FORMATS)
def test_cut_at_every_byte(tmp_path: Path, kind: str) -> None:
    """Every record before the cut is read, what was cut is reported, and nothing else goes wrong."""
    whole = FORMATS[kind]()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    counted = [0] * (len(whole) + 1)
    for cut in range(len(whole)):
        found = read_or_refused(tmp_path, whole[:cut], land=cut in ends)
        torn = cut > 0 and whole[cut - 1] != ord("\n") and cut not in ends
        if found is None:
            assert cut <= ends[2]
            continue
        counted[cut] = found.counted()
        assert found.codes()["torn_tail"] == torn
        assert counted[cut] >= counted[cut - 1]
    assert counted[len(whole) - 1] == read_bytes(tmp_path, whole).counted()


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any JSON value
    """Give the path of every value in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, item in inner for path in places(item, (*at, key)))]


def replaced(value: Any, at: tuple[Any, ...], junk: object) -> Any:  # noqa: ANN401 - any JSON value
    """Give a value with what stands at a path replaced."""
    if not at:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[at[0]] = replaced(copy[at[0]], at[1:], junk)
    return copy


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_of_any_kind_anywhere(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """A value of an unexpected kind costs at most its own record."""
    records = [json.loads(line) for line in FORMATS[kind]().splitlines()]
    number = data.draw(st.integers(0, len(records) - 1), label="record")
    at = data.draw(st.sampled_from(places(records[number])), label="place")
    whole = read_bytes(tmp_path, jsonl(*records)).counted()
    records[number] = replaced(records[number], at, data.draw(JUNK, label="junk"))
    found = read_or_refused(tmp_path, jsonl(*records))
    assert found is not None
    assert found.counted() >= whole - 1


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_byte_changed_anywhere(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """A changed byte costs at most its own record and, where it was the line's end, the next; what is lost is reported."""
    whole = bytearray(FORMATS[kind]())
    before = read_bytes(tmp_path, bytes(whole))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    found = read_or_refused(tmp_path, bytes(whole))
    assert found is not None
    assert found.counted() >= before.counted() - 2
    assert found.counted() == before.counted() or found.codes() or found.events != before.events


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_records_in_any_order_and_number(tmp_path: Path, kind: str, data: st.DataObject) -> None:
    """Records left out, repeated and shuffled are read without an exception, and no message record vanishes unreported."""
    lines = FORMATS[kind]().splitlines()
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=14))
    found = read_or_refused(tmp_path, b"\n".join(chosen))
    if found is None:
        return
    known = read_bytes(tmp_path, b"\n".join(dict.fromkeys(chosen)))
    assert found.counted() >= known.counted()
