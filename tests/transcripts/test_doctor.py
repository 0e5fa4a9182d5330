"""The doctor: each fault of a broken transcript is named with its place, a branch is written without it, and nothing else is touched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from palaver.context import Meter
from palaver.errors import NotFound, StoreDamaged
from palaver.ids import BlobId, DialogId
from palaver.log import Compaction, MessageEntry, ModelChange, Omitted, Run, draft
from palaver.messages import AssistantMessage, ImageContent, TextContent, ToolCallContent, UserMessage
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, model, result, user
from palaver.tokens import counter, model_info
from palaver.transcripts import Diagnosis, Importer, examine, examine_file, repair
from palaver.transcripts.sources import kept
from palaver.view import Reason, fold
from palaver.wire import PROFILES, Call, compile, validate  # noqa: A004 - the word for it
from tests.formats.samples import Claude, Pi, call, codex, item, pi_call, said, text


def claude() -> bytes:
    """Return a short healthy session."""
    session = Claude()
    session.user("u1", "Go.")
    session.model("a1", "m1", text("I look."), call("t1"))
    session.result("r1", "t1")
    session.model("a2", "m2", call("t2"))
    session.result("r2", "t2")
    session.model("a3", "m3", text("Done."))
    return session.bytes()


def rollout() -> bytes:
    """Return a short healthy session of Codex."""
    records = [said("user", "Go.")]
    for name in ("t1", "t2"):
        records.append(item("function_call", call_id=name, name="shell", arguments='{"command": "ls"}'))
        records.append(item("function_call_output", call_id=name, output="done"))
    return codex(*records, said("assistant", "Done."))


def pi() -> bytes:
    """Return a short healthy session of pi."""
    session = Pi().user("Go.")
    for name in ("t1", "t2"):
        session.model(pi_call(name), stopReason="toolUse").result(name, "done")
    return session.model(text("Done.")).bytes()


HEALTHY = {"claude-code": claude(), "codex": rollout(), "pi": pi()}
RESULT = {"claude-code": b'"tool_use_id": "t2"', "codex": b'"call_id": "t2", "output"', "pi": b'"toolCallId": "t2"'}
CALL = {"claude-code": b'"tool_use", "id": "t2"', "codex": b'"call_id": "t2", "name"', "pi": b'"toolCall", "id": "t2"'}


def swapped(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace something that is there."""
    assert old in data
    return data.replace(old, new)


def without_line(data: bytes, mark: bytes) -> bytes:
    """Leave out the line that holds a mark."""
    return b"".join(line for line in data.splitlines(keepends=True) if mark not in line)


def broken(kind: str) -> dict[str, tuple[bytes, set[str]]]:
    """Return broken copies of a session: for each fault its bytes, and the codes the doctor must name."""
    data, result_, call_ = HEALTHY[kind], RESULT[kind], CALL[kind]
    lines = data.splitlines(keepends=True)
    return {
        "missing result": (without_line(data, result_), {"open_call" if kind == "codex" else "unanswered_call"}),
        "orphaned result": (
            swapped(data, result_, result_.replace(b"t2", b"t9")),
            {"orphan_result", "unanswered_call"},
        ),
        "missing call": (without_line(data, call_), {"orphan_result"}),
        "duplicate call id": (swapped(data, b'"t2"', b'"t1"'), {"duplicate_id"}),
        "bad line": (b"".join([*lines[:3], b"{bad\n", *lines[3:]]), {"bad_record"}),
        "torn tail": (data[:-20], {"torn_tail"}),
        "surrogate": (swapped(data, b"Done.", b"Done \\ud99c."), {"surrogate"}),
        "nul": (swapped(data, b"Done.", b"Done \\u0000."), {"nul"}),
    }


CASES = [(kind, fault) for kind in HEALTHY for fault in broken(kind)]


def codes(found: Diagnosis) -> set[str]:
    """Return the codes of the faults."""
    return {finding.code for finding in found.findings if finding.severity == "fault"}


def examined(path: Path) -> Diagnosis:
    """Examine a file of one conversation."""
    (found,) = examine_file(path)
    return found


def test_healthy_transcript_has_no_fault(tmp_path: Path) -> None:
    """The formats are told apart, and what is whole is called healthy and valid for every provider."""
    for kind, data in HEALTHY.items():
        path = tmp_path / "s.jsonl"
        path.write_bytes(data)
        found = examined(path)

        assert (found.healthy, codes(found), set(found.valid.values())) == (True, set(), {True}), kind
        assert (found.total, found.unreachable, found.session_id) == (found.reachable, 0, None), kind


def test_each_fault_is_named_with_its_place(tmp_path: Path) -> None:
    """Broken copies of each format: the fault is named once, by its code, with a place; the next request is still valid."""
    for kind, fault in CASES:
        data, expected = broken(kind)[fault]
        path = tmp_path / "s.jsonl"
        path.write_bytes(data)
        found = examined(path)

        assert expected <= {finding.code for finding in found.findings}, (kind, fault)
        assert set(Counter(finding.code for finding in found.findings if finding.severity == "fault").values()) <= {
            1
        }, (kind, fault)
        assert found.healthy == (expected == {"open_call"}), (
            kind,
            fault,
        )  # Codex says nowhere that the response after it is another one
        assert all(
            re.match(r"(line|record|whole file)\b", finding.place) and finding.what for finding in found.findings
        ), (kind, fault)
        assert set(found.valid.values()) == {True}, "what palaver sends is valid whatever was recorded"


def test_place_of_a_fault_is_that_of_the_record(tmp_path: Path) -> None:
    """In a file that was not imported a fault stands at the number of its record, counted from 1, as in the reader's report."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(broken("claude-code")["orphaned result"][0])
    places = {finding.code: finding.place for finding in examined(path).findings if finding.severity == "fault"}
    assert places == {"orphan_result": "record 5", "unanswered_call": "record 4"}


def test_repair_writes_a_branch_without_the_fault(tmp_path: Path) -> None:
    """The branch is healthy and valid; the file, the kept copy of it and the original dialog are byte-identical."""
    for kind, fault in CASES:
        data, _ = broken(kind)[fault]
        path = tmp_path / "s.jsonl"
        path.write_bytes(data)
        store = MemoryStore()
        (one,) = Importer(store).import_path(path)
        assert one.main is not None, (kind, fault)
        before = list(store.bodies(one.main))
        branch = repair(store, one.main)
        found = examine(store, one.session_id, branch.dialog_id)

        assert (codes(found), found.dialogs) == (set(), 1), (kind, fault)
        assert set(found.valid.values()) == {True}, (kind, fault)
        assert list(store.bodies(one.main)) == before, (kind, fault)
        assert path.read_bytes() == data, (kind, fault)
        (source,) = store.sources(one.session_id)
        assert source.raw is not None, (kind, fault)
        assert b"".join(kept(store, source.raw)) == data, (kind, fault)
        assert branch.relation == "repair", (kind, fault)
        assert branch.metadata["of"] == one.main, (kind, fault)


def alone(log: Log) -> Diagnosis:
    """Examine a log's session."""
    return examine(log.store, log.session)


def mended(log: Log) -> list[str]:
    """Repair a log's dialog, say that it is healthy, and give what the branch says."""
    branch = repair(log.store, log.dialog)
    assert codes(examine(log.store, log.session, branch.dialog_id)) == set()
    view = fold(log.store, branch.dialog_id)
    for name in PROFILES:
        request = compile(
            view, PROFILES[name], Call(model="m", then="Go on."), lambda digest: log.store.blob(BlobId(digest))
        )
        assert not validate(request.body, PROFILES[name], as_history=request.history)
    return list(shown(log.store, branch.dialog_id))


def shown(store: MemoryStore, dialog: DialogId) -> Iterable[str]:
    """Return the texts and call ids that a dialog shows."""
    for exchange in fold(store, dialog).exchanges:
        for block in exchange.blocks():
            content = block.content
            yield content.content if isinstance(content, TextContent) else str(getattr(content, "id", content.type))


def test_arguments_that_cannot_be_read_are_kept_as_text() -> None:
    """A call whose arguments are no JSON is named; the branch holds what the model wrote, in an object."""
    log = Log()
    bad = AssistantMessage(contents=(ToolCallContent(id="a", name="f", args='{"path": '),))
    log.put(user("go"), bad, result("a"), user("on"))
    assert codes(alone(log)) == {"malformed_arguments"}
    mended(log)
    branch = log.store.nodes(log.session)[-1]
    (made,) = [
        block.content
        for exchange in fold(log.store, branch.dialog_id).exchanges
        for block in exchange.blocks()
        if isinstance(block.content, ToolCallContent)
    ]
    assert dict(made.args) == {"malformed_arguments": '{"path": '}


def test_result_that_does_not_follow_its_call_is_misplaced() -> None:
    """A word of the user between a call and its result: the view joins them, the record as it stands is refused, and is named with its place."""
    log = Log()
    log.put(user("go"), model("", "a", "b"), result("a"), user("wait"), result("b"), model("done"))
    found = [one for one in alone(log).findings if one.severity == "fault"]
    assert [(one.code, one.place) for one in found] == [("misplaced_result", str(log.at(4, 0)))]
    fork = log.fork()
    fork.put(user("more"))
    assert codes(alone(log)) == {"misplaced_result"}
    mended(log)


def test_view_larger_than_the_window_is_a_fault() -> None:
    """With a model whose window is known both numbers are named; a commit that makes the view fit heals it; the form is valid all along."""
    log = Log()
    log.put(ModelChange(model="gpt-4"), user("go"), model("a word " * 9_000), user("on"))
    (found,) = [one for one in alone(log).findings if one.severity == "fault"]
    size = Meter(counter("gpt-4")).view(fold(log.store, log.dialog)).total
    assert (found.code, found.place) == ("over_window", log.dialog[:12])
    assert f"{size:,}" in found.what
    assert f"{model_info('gpt-4').max_input:,}" in found.what
    assert set(alone(log).valid.values()) == {True}
    piece = Run(dialog=log.dialog, start=3, stop=4)
    gone = Omitted(run=Run(dialog=log.dialog, start=1, stop=3), reason=Reason.OVER_BUDGET.value)
    log.put(Compaction(base=3, pieces=(Run(dialog=log.dialog, start=0, stop=1), piece), omitted=(gone,)))
    assert codes(alone(log)) == set()


def test_over_window_in_a_file_has_the_file_as_its_place(tmp_path: Path) -> None:
    """A file that was not imported has no dialogs that could be named."""
    path = tmp_path / "s.jsonl"
    session = Claude()
    session.user("u1", "word " * 250_000)
    session.model("a1", "m1", text("I look."))
    path.write_bytes(session.bytes().replace(b'"model": "claude-opus-4-6"', b'"model": "claude-3-opus"'))
    assert {one.code: one.place for one in examined(path).findings if one.severity == "fault"} == {
        "over_window": "whole file"
    }


def test_ids_that_return_every_turn_are_told_apart() -> None:
    """Providers that number calls anew in each turn give duplicate ids; on the branch each call and its result have one of their own."""
    log = Log()
    log.put(
        user("go"), model("", "a"), result("a"), user("on"), model("", "a", "b"), result("a"), result("b"), user("x")
    )
    assert codes(alone(log)) == {"duplicate_id"}
    assert mended(log) == ["go", "a", "a", "on", "a_2", "b", "a_2", "b", "x"]


def test_payload_that_is_gone_is_named_and_replaced() -> None:
    """A picture whose bytes the store lost, or changed, is found; the branch says what was there."""
    log = Log()
    log.put(UserMessage(contents=(TextContent("see"), ImageContent(images=(b"\x89PNG\r\n\x1a\n" + bytes(60),)))))
    (blob,) = log.store.contents.blobs
    data = log.store.contents.blobs[blob]
    log.store.contents.blobs[blob] = data + b"!"
    assert codes(alone(log)) == {"missing_blob"}
    del log.store.contents.blobs[blob]
    assert codes(alone(log)) == {"missing_blob"}
    assert mended(log) == ["see", f"[image/png, {len(data)} bytes: its payload was lost]"]


def test_damage_in_an_ancestor_spoils_its_forks() -> None:
    """An entry changed behind the store's back is named by its handle; no dialog that holds it is called valid, and none is repaired from it."""
    log = Log()
    log.put(user("go"), model("done"))
    fork = log.fork()
    fork.put(user("more"))
    store = log.store
    other = draft(MessageEntry(message=UserMessage("lie")))[0].body
    store.contents.logs[log.dialog].bodies[0] = other
    found = alone(log)

    assert [(one.place, one.code) for one in found.findings if one.severity == "fault"] == [
        (f"{log.dialog[:12]}:0", "damaged_entry")
    ]
    assert (found.total, found.unreachable) == (3, 1)
    assert set(found.valid.values()) == {False}
    with pytest.raises(StoreDamaged, match=":0"):
        repair(store, fork.dialog)


def test_dialog_can_be_examined_alone() -> None:
    """What is wrong elsewhere in the session is not told; a dialog of another session is refused."""
    log = Log()
    log.put(user("go"), model("", "a"), user("on"), model("well"))
    other = log.fork()
    found = examine(log.store, log.session, log.dialog)
    assert "unanswered_call" in codes(found)
    assert examine(log.store, log.session, other.dialog).dialogs == 1
    with pytest.raises(NotFound):
        examine(log.store, log.session, DialogId("0" * 32))
