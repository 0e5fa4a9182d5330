"""The doctor's kinds of findings: each has a case that shows it and a twin that does not; and a file of any length is read in the same memory."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UnsupportedTranscript
from palaver.messages import AssistantMessage, ThinkingContent, ToolCallContent
from palaver.testing.logs import Log, model, result, user
from palaver.transcripts import REMEDIES, Diagnosis, Finding, examine, examine_file, refusals, scan_file, to_quarantine
from palaver.transcripts.scanning import LISTED
from palaver.wire import PROFILES
from tests.formats.transcripts import Claude, call, codex, item, said, text
from tests.recorded import Recording, recordings
from tests.transcripts.test_doctor import CASES, HEALTHY, broken, pi, swapped

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")
WIDE = PNG[:16] + (9_000).to_bytes(4, "big") + PNG[20:]
OTHERS = "openai-chat", "openai-responses", "anthropic", "gemini"


def block(kind: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Give a block."""
    return {"type": kind, **fields}


def picture(data: bytes, media_type: str = "image/png") -> dict[str, Any]:
    """Give an image block."""
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}
    return block("image", source=source)


def session(*blocks: Mapping[str, Any], result_: str = "t1") -> bytes:
    """Give a short session whose model says these blocks; the result of call `t1` follows, where there is one."""
    said_ = Claude()
    said_.user("u1", "Go.")
    said_.model("a1", "m1", *blocks)
    if any(one["type"] == "tool_use" for one in blocks):
        said_.result("r1", result_)
    said_.model("a2", "m2", text("Done."))
    return said_.bytes()


def shown(picture_: Mapping[str, Any]) -> bytes:
    """Give a short session in which the user shows a picture."""
    data = json.dumps([picture_]).encode()
    return swapped(session(text("I see.")), b'"content": "Go."', b'"content": ' + data)


def use(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Give a call, with some of its fields otherwise."""
    return {**call("t1"), **changes}


THOUGHT = block("thinking", thinking="hm", signature="c2lnbmVk")
POISON: dict[str, tuple[bytes, bytes, tuple[str, ...]]] = {
    "empty_text": (session(text("")), session(text("x")), ("anthropic", "gemini")),
    "bad_call_id": (
        session(use(id="functions.read:0"), result_="functions.read:0"),
        session(use()),
        ("anthropic",),
    ),
    "bad_tool_name": (session(use(name="read file")), session(use(name="read_file")), OTHERS),
    "malformed_arguments": (session(use(input='{"path": ')), session(use()), ("anthropic", "gemini")),
    "unsigned_thinking": (
        session({**THOUGHT, "signature": ""}, text("x")),
        session(THOUGHT, text("x")),
        ("anthropic",),
    ),
    "bad_media": (shown(picture(b"this is no image at all")), shown(picture(PNG)), OTHERS),
    "oversized_media": (shown(picture(WIDE)), shown(picture(PNG)), ("anthropic",)),
    "nul": (session(text("a\0b")), session(text("a\\u0000b")), OTHERS),
    "surrogate": (session(text("a\ud99c")), session(text("a\U0001f600")), OTHERS),
    "orphan_result": (session(use(), result_="t9"), session(use()), OTHERS),
    "unanswered_call": (session(use(), result_="t9"), session(use()), OTHERS),
    "duplicate_id": (session(use(), use()), session(use(), use(id="t2")), OTHERS),
    "torn_tail": (session(text("x"))[:-20], session(text("x")), ()),
    "bad_record": (session(text("x")) + b"{nonsense\n" + session(text("x")), session(text("x")), ()),
    "dangling_parent": (
        swapped(session(text("x")), b'"parentUuid": "a1"', b'"parentUuid": "gone"'),
        session(text("x")),
        (),
    ),
}
"""For each kind: a transcript that has it, a twin that has not, and who refuses what was recorded."""

ONLY_LISTED = {
    "damaged_entry",
    "damaged_source",
    "damaged_store",
    "failed_response",
    "empty_message",
    "misplaced_result",
    "over_window",
}
"""Kinds that stand between entries of a log: `test_doctor` has a case of each."""


def scanned(folder: Path, data: bytes) -> Diagnosis:
    """Scan bytes as a file."""
    path = folder / "s.jsonl"
    path.write_bytes(data)
    (found,) = scan_file(path)
    return found


def deeply(folder: Path, data: bytes) -> Diagnosis:
    """Examine bytes as a file in memory."""
    path = folder / "s.jsonl"
    path.write_bytes(data)
    (found,) = examine_file(path)
    return found


def of_code(found: Diagnosis, code: str) -> list[Finding]:
    """Give the findings of a kind."""
    return [one for one in found.findings if one.code == code]


@pytest.mark.parametrize("code", POISON)
def test_each_kind_is_found_and_its_twin_is_not(tmp_path: Path, code: str) -> None:
    """Record by record: the case is named with its place, with who refuses it and why, and with what is done about it; the twin is not."""
    case, twin, who = POISON[code]
    (one, *_) = of_code(scanned(tmp_path, case), code)
    assert one.place.startswith(("line", "whole file"))
    assert one.providers == who == tuple(one.refused)
    assert all(": " in why for why in one.refused.values())
    assert one.remedy == REMEDIES[code]
    assert not of_code(scanned(tmp_path, twin), code)


@pytest.mark.parametrize("code", POISON)
def test_importing_into_memory_finds_the_same(tmp_path: Path, code: str) -> None:
    """The deep look names the same kinds, refused by the same providers, and what palaver sends is valid for every one of them."""
    case, twin, who = POISON[code]
    found = deeply(tmp_path, case)
    if code != "empty_text" or of_code(found, code):
        (one, *_) = of_code(found, code)
        assert one.providers == who
    assert set(found.valid.values()) == {True}
    assert not of_code(deeply(tmp_path, twin), code)


def test_every_kind_that_the_doctor_knows_a_remedy_for_is_shown_by_a_case() -> None:
    """No kind is without a case: here, among the structural ones, or among those of logs."""
    elsewhere = {"foreign_reasoning", "too_many_images", "missing_blob", "open_call", "duplicate_result"}
    assert set(REMEDIES) == set(POISON) | ONLY_LISTED | elsewhere


def test_kinds_of_whole_conversations(tmp_path: Path) -> None:
    """Reasoning of two families, more images than some provider takes, a second result, a call that still waits: each with a twin."""
    head, *rest = pi().splitlines(keepends=True)

    def thinking(provider: str) -> bytes:
        content = [{"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, {"type": "text", "text": "x"}]
        message = {"role": "assistant", "provider": provider, "model": "m", "content": content, "stopReason": "stop"}
        return json.dumps({"type": "message", "timestamp": "2026-01-01T00:00:00Z", "message": message}).encode() + b"\n"

    mixed = scanned(tmp_path, head + b"".join(rest) + thinking("anthropic") + thinking("openai"))
    assert [one.severity for one in of_code(mixed, "foreign_reasoning")] == ["note"]
    assert not of_code(scanned(tmp_path, head + b"".join(rest) + thinking("openai") * 2), "foreign_reasoning")

    many = [
        item(
            "message",
            role="user",
            content=[{"type": "input_image", "image_url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}],
        )
    ]
    (crowd,) = of_code(scanned(tmp_path, codex(said("user", "Go."), *many * 101)), "too_many_images")
    assert crowd.providers == ("anthropic",)
    assert not of_code(scanned(tmp_path, codex(said("user", "Go."), *many * 100)), "too_many_images")

    answer = item("function_call_output", call_id="t1", output="done")
    asked = item("function_call", call_id="t1", name="shell", arguments="{}")
    assert len(of_code(scanned(tmp_path, codex(said("user", "Go."), asked, answer, answer)), "duplicate_result")) == 1
    assert not of_code(scanned(tmp_path, codex(said("user", "Go."), asked, answer)), "duplicate_result")
    assert len(of_code(scanned(tmp_path, codex(said("user", "Go."), asked)), "open_call")) == 1


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_broken_copies_are_told_by_both_looks(tmp_path: Path, kind: str, fault: str) -> None:
    """The broken copies of every format: record by record the same kinds are named as in memory, but for what only a view can tell."""
    data, expected = broken(kind)[fault]
    quick = {one.code for one in scanned(tmp_path, data).findings}
    assert expected - {"open_call"} <= quick, quick


@pytest.mark.parametrize("kind", HEALTHY)
def test_a_healthy_file_has_nothing_to_tell(tmp_path: Path, kind: str) -> None:
    """Every record is counted, none is lost, and there is no finding."""
    found = scanned(tmp_path, HEALTHY[kind])
    assert (found.findings, found.unreachable, found.valid, found.dialogs) == ((), 0, {}, 0)
    assert found.total == len(HEALTHY[kind].splitlines())


def test_a_record_of_an_odd_shape_is_named_and_the_next_one_is_read(tmp_path: Path) -> None:
    """A message that is a number, content that is no list of blocks: a bad record each, and no defect."""
    odd = [b'"content": [5]', b'"content": [{"no": "type"}]', b'"content": 7', b'"content": [{"type": "tool_use"}]']
    for change in odd:
        data = swapped(session(text("x")), b'"content": [{"type": "text", "text": "x"}]', change)
        found = scanned(tmp_path, data)
        assert [one.code for one in found.findings if one.severity == "fault"] == ["bad_record"], change
        assert found.total == found.reachable + 1


def test_findings_of_a_kind_are_listed_up_to_a_bound_and_counted_beyond(tmp_path: Path) -> None:
    """A file full of one fault costs a bounded list; how many more there are is told."""
    many = Claude()
    for number in range(LISTED + 50):
        many.user(f"u{number}", "")
    found = scanned(tmp_path, many.bytes())
    assert (len(of_code(found, "empty_text")), found.more) == (LISTED, {"empty_text": 50})


def test_memory_does_not_grow_with_what_was_said(tmp_path: Path) -> None:
    """Four times as many records, each of 20 KB: the peak stays within a few dozen bytes a record."""
    peaks = []
    for turns in (100, 400):
        said_ = Claude()
        for number in range(turns):
            said_.user(f"u{number}", "word " * 4_000)
        path = tmp_path / f"{turns}.jsonl"
        path.write_bytes(said_.bytes())
        del said_
        list(scan_file(path))
        tracemalloc.start()
        list(scan_file(path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 400 * 1_000


@pytest.mark.parametrize("recording", recordings("codex", "pi", "mini_swe_agent", each=1))
def test_both_looks_agree_on_recorded_sessions(recording: Recording) -> None:
    """What both can tell of the pairing of a recorded file, they tell alike."""
    looks = (scan_file(recording.path), examine_file(recording.path))
    quick, deep = (Counter(one.code for found in look for one in found.findings) for look in looks)
    structural = ("orphan_result", "duplicate_id", "duplicate_result")
    assert [quick[code] for code in structural] == [deep[code] for code in structural]


@pytest.mark.soak
@pytest.mark.parametrize("recording", recordings())
def test_every_recorded_file_of_a_known_format_is_scanned(recording: Recording) -> None:
    """No recorded file makes the scan fail, and every record of it is counted."""
    try:
        found = list(scan_file(recording.path))
    except UnsupportedTranscript:
        pytest.skip(f"{recording.kind} is in no format that is read")
    assert sum(one.total for one in found) > 0


# --- refusals -----------------------------------------------------------------------------------------------------------------------


def _healthy() -> Iterator[tuple[refusals.Refusal, ...]]:
    yield refusals.text("Hello.")
    yield refusals.image("image/png", base64.b64encode(PNG).decode())
    yield refusals.call("c1")
    yield refusals.thought("hm", "sig")


def test_what_is_whole_is_refused_by_nobody() -> None:
    """The small requests around a block are themselves valid: a refusal is about the block."""
    assert [*_healthy()] == [()] * 4


def test_refusals_are_those_of_the_strict_validators() -> None:
    """For each kind the rules that are named are the validators' own, and every profile says something of its own."""
    assert {one.rule for one in refusals.call("x" * 200)} == {"call-id"}
    assert {one.profile for one in refusals.unanswered()} == set(PROFILES)
    assert [(one.profile, one.rule) for one in refusals.orphan()][2] == ("anthropic", "result-orphan")
    assert {one.rule for one in refusals.image("image/bmp", "AAAA")} == {"media-kind"}


# --- in a store ---------------------------------------------------------------------------------------------------------------------


def test_poison_of_a_log_is_named_by_its_block() -> None:
    """A store: arguments and thoughts have the handle of their block, and those that no provider takes whole would be set aside."""
    log = Log()
    thought = ThinkingContent(content="hm", provider="anthropic", model="claude")
    broken_call = ToolCallContent(id="a", name="f", args='{"path": ')
    log.put(user("go"), AssistantMessage(contents=(thought, broken_call)), result("a"), user("on"), model("done"))
    places = {one.code: one.place for one in examine(log.store, log.session).findings}
    assert places["unsigned_thinking"] == str(log.at(1, 0))
    assert places["malformed_arguments"] == str(log.at(1, 1))
    assert to_quarantine(examine(log.store, log.session)) == (str(log.at(1, 1)),)
