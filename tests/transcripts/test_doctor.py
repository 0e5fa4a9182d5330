"""The doctor: each fault of a broken transcript is named with its place, a branch is written without it, and nothing else is touched."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from palaver.context import Meter
from palaver.errors import NotFound, StoreDamaged
from palaver.ids import DialogId
from palaver.log import Compaction, MessageEntry, ModelChange, Omitted, Run, draft
from palaver.messages import AssistantMessage, Content, ImageContent, TextContent, ToolCallContent, UserMessage
from palaver.session import Session
from palaver.store.memory import MemoryStore
from palaver.testing.logs import Log, model, result, user
from palaver.tokens import counter, model_info
from palaver.transcripts import Diagnosis, Importer, examine, examine_file, repair
from palaver.transcripts.sources import kept
from palaver.view import Reason, fold
from tests.formats.reading import refused
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


def broken(kind: str) -> dict[str, tuple[bytes, set[str]]]:
    """Return broken copies of a session: for each fault its bytes, and the codes the doctor must name."""
    data, result_, call_ = HEALTHY[kind], RESULT[kind], CALL[kind]
    lines = data.splitlines(keepends=True)
    no_result, no_call = (b"".join(line for line in lines if mark not in line) for mark in (result_, call_))
    return {
        "": (data, set()),
        "missing result": (no_result, {"open_call" if kind == "codex" else "unanswered_call"}),
        "orphaned result": (
            swapped(data, result_, result_.replace(b"t2", b"t9")),
            {"orphan_result", "unanswered_call"},
        ),
        "missing call": (no_call, {"orphan_result"}),
        "duplicate call id": (swapped(data, b'"t2"', b'"t1"'), {"duplicate_id"}),
        "bad line": (b"".join([*lines[:3], b"{bad\n", *lines[3:]]), {"bad_record"}),
        "torn tail": (data[:-20], {"torn_tail"}),
        "surrogate": (swapped(data, b"Done.", b"Done \\ud99c."), {"surrogate"}),
        "nul": (swapped(data, b"Done.", b"Done \\u0000."), {"nul"}),
    }


def codes(found: Diagnosis) -> set[str]:
    """Return the codes of the faults."""
    return {finding.code for finding in found.findings if finding.severity == "fault"}


def examined(path: Path) -> Diagnosis:
    """Examine a file of one conversation."""
    (found,) = examine_file(path)
    return found


def test_each_fault_is_named_and_repaired_in_a_branch(tmp_path: Path) -> None:
    """Named once with its place; the branch is healthy and valid; the file, the kept copy of it and the original are byte-identical."""
    path = tmp_path / "s.jsonl"
    for case, (data, expected) in [((kind, fault), one) for kind in HEALTHY for fault, one in broken(kind).items()]:
        path.write_bytes(data)
        found = examined(path)
        assert expected <= {finding.code for finding in found.findings}, case
        assert set(Counter(one.code for one in found.findings if one.severity == "fault").values()) <= {1}, case
        # Codex says nowhere that the response after an open call is another one
        assert found.healthy == (expected <= {"open_call"}), case
        assert all(re.match(r"(line|record|whole file)\b", one.place) and one.what for one in found.findings), case
        assert set(found.valid.values()) == {True}, "what palaver sends is valid whatever was recorded"

        store = MemoryStore()
        (one,) = Importer(store).import_path(path)
        assert one.main is not None, case
        before = list(store.bodies(one.main))
        branch = repair(store, one.main)
        mended_ = examine(store, one.session_id, branch.dialog_id)
        assert (codes(mended_), mended_.dialogs, set(mended_.valid.values())) == (set(), 1, {True}), case
        assert list(store.bodies(one.main)) == before, case
        (source,) = store.sources(one.session_id)
        assert source.raw is not None, case
        assert b"".join(kept(store, one.session_id, source.raw)) == path.read_bytes() == data, case
        assert (branch.relation, branch.metadata["of"]) == ("repair", one.main), case


def alone(log: Log) -> Diagnosis:
    """Examine a log's session."""
    return examine(log.store, log.session)


def mended(log: Log) -> list[Content]:
    """Repair a log's dialog, say that it is healthy, and give what the branch says."""
    branch = repair(log.store, log.dialog)
    found = examine(log.store, log.session, branch.dialog_id)
    assert (codes(found), set(found.valid.values())) == (set(), {True})
    view = fold(log.store, branch.dialog_id)
    assert refused(log.store, view) == []
    return [block.content for exchange in view.exchanges for block in exchange.blocks()]


def shown(log: Log) -> list[str]:
    """Repair a log's dialog, and return the texts and call ids that the branch shows."""
    return [one.content if isinstance(one, TextContent) else str(getattr(one, "id", one.type)) for one in mended(log)]


def test_arguments_that_cannot_be_read_are_kept_as_text() -> None:
    """A call whose arguments are no JSON is named; the branch holds what the model wrote, in an object."""
    log = Log()
    bad = AssistantMessage(contents=(ToolCallContent(id="a", name="f", args='{"path": '),))
    log.put(user("go"), bad, result("a"), user("on"))
    assert codes(alone(log)) == {"malformed_arguments"}
    (made,) = [one for one in mended(log) if isinstance(one, ToolCallContent)]
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


@pytest.mark.parametrize("window", [(2, 1), (1, 2)])
def test_pair_that_a_fork_parts_is_noted(window: tuple[int, int]) -> None:
    """A window may share a result without its call, or a call without its result: nothing is wrong with the log, whose parent has both."""
    session = Session.create(MemoryStore(), "parted")
    session.root.append([user("go"), model("", "a"), result("a"), model("done")])
    fork = session.root.fork(*window)
    diagnosis = examine(session.store, session.session_id, fork.dialog_id)
    assert [finding.severity for finding in diagnosis.findings if finding.code == "parted_call"] == ["note"]
    assert (diagnosis.healthy, codes(diagnosis) - {"parted_call"}) == (True, set())


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
    dense = Log()
    dense.put(ModelChange(model="gpt-4"), user(b64encode(Random(7).randbytes(10_500)).decode()))  # noqa: S311 - a text
    assert codes(alone(dense)) == {"over_window"}, "also with few bytes for a token"


def test_ids_that_return_every_turn_are_told_apart() -> None:
    """Providers that number calls anew in each turn give duplicate ids; on the branch each call and its result have one of their own."""
    log = Log()
    log.put(
        user("go"), model("", "a"), result("a"), user("on"), model("", "a", "b"), result("a"), result("b"), user("x")
    )
    assert codes(alone(log)) == {"duplicate_id"}
    with pytest.raises(NotFound):
        examine(log.store, log.session, DialogId("0" * 32))
    assert shown(log) == ["go", "a", "a", "on", "a_2", "b", "a_2", "b", "x"]


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
    assert shown(log) == ["see", f"[image/png, {len(data)} bytes: its payload was lost]"]


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
