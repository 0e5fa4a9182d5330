"""Events of OpenTelemetry: one for each answer."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from palaver import Session
from palaver.dialects.genai import COMPACTED
from palaver.ids import SessionId
from palaver.log import MessageEntry
from palaver.messages import AssistantMessage, TextContent, Usage
from palaver.store import Store
from palaver.testing.logs import Log, model, result, user
from palaver.transcripts import export


def events(store: Store, session: SessionId) -> list[dict[str, Any]]:
    """Return the events of a session, decoded with the protocol's own messages, their values as JSON."""
    said = []
    for line in b"".join(export(store, session, "otel-events").pieces).splitlines():
        request = json_format.Parse(line, ExportLogsServiceRequest())
        (record,) = request.resource_logs[0].scope_logs[0].log_records
        assert record.event_name == "gen_ai.client.inference.operation.details"
        said.append({pair.key: plain(json_format.MessageToDict(pair.value)) for pair in record.attributes})
        said[-1]["time"] = record.time_unix_nano
    return said


def plain(value: dict[str, Any]) -> Any:  # noqa: ANN401 - a JSON value
    """Return the JSON value of an AnyValue."""
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [plain(item) for item in held.get("values", [])]
    if kind == "kvlistValue":
        return {item["key"]: plain(item["value"]) for item in held.get("values", [])}
    return int(held) if kind == "intValue" else held


def test_each_answer_is_an_event_with_what_the_model_saw() -> None:
    """The input of an answer is the conversation before it, with calls and results; the output is the answer; tokens are attributes."""
    session = Session.create()
    usage = Usage(input_tokens=100, output_tokens=7, cached_tokens=0)
    session.root.append([{"role": "system", "content": "Be brief."}, user("go"), model("I look.", "a"), result("a")])
    session.root.append(AssistantMessage(contents=(TextContent("Done."),), model="gpt-5", usage=usage))
    first, second = events(session.store, session.session_id)
    assert [message["role"] for message in first["gen_ai.input.messages"]] == ["user"]
    assert first["gen_ai.output.messages"][0]["parts"][1] == {
        "type": "tool_call",
        "id": "a",
        "name": "shell",
        "arguments": {"cmd": "a"},
    }
    assert [message["role"] for message in second["gen_ai.input.messages"]] == ["user", "assistant", "tool"]
    assert second["gen_ai.input.messages"][2]["parts"][0]["response"] == "done"
    assert second["gen_ai.system_instructions"] == [{"type": "text", "content": "Be brief."}]
    assert (second["gen_ai.usage.input_tokens"], second["gen_ai.usage.output_tokens"]) == (100, 7)
    assert second["gen_ai.conversation.id"] == session.session_id
    assert second["time"] >= first["time"] > 0


def test_input_after_a_compaction_is_the_shorter_one() -> None:
    """After a compaction an event has the record in place of what it stands for, and says that the conversation is compacted."""
    session = Session.create()
    for number in range(40):
        session.root.append([user(f"go {number} " + "word " * 40), model("ok")])
    assert session.root.compaction.preview(budget=1_500, model="gpt-5").approve()
    session.root.append([user("and now"), model("done")])
    *before, last = events(session.store, session.session_id)
    assert len(before) == 40
    assert not any(COMPACTED in event for event in before)
    assert last[COMPACTED] is True
    assert last["gen_ai.input.messages"][0]["parts"][0]["type"] == "compaction"
    assert last["gen_ai.input.messages"][-1]["parts"][0]["content"] == "and now"
    assert len(json.dumps(last)) < len(json.dumps(before[-1]))


def test_message_without_an_answer_is_reported() -> None:
    """What no answer followed is in no event: the report names it."""
    session = Session.create()
    session.root.append([user("go"), model("ok", "a"), result("a"), user("and?")])
    lost = export(session.store, session.session_id, "otel-events").report.lost()
    handles = [f"{session.root.messages.handle(2)}:0", str(session.root.messages.handle(3))]
    assert {(str(change.handle), change.what) for change in lost} == set(
        zip(handles, ("result", "message"), strict=True)
    )


def test_event_is_not_before_an_earlier_one() -> None:
    """Some tools note when an answer began. An event has the newest time so far, and the report names the changed one."""
    log = Log()
    for at in (20.0, 15.0, 30.0):
        log.put(MessageEntry(message=user("go"), at=at), MessageEntry(message=model("ok"), at=at))
    log.store.update_session(log.session, root=log.dialog)
    assert [event["time"] for event in events(log.store, log.session)] == [20e9, 20e9, 30e9]
    (changed,) = export(log.store, log.session, "otel-events").report
    assert (changed.handle, changed.what) == (log.at(3), "time")


def test_fork_has_the_answers_of_its_ancestors() -> None:
    """A branch is exported whole: what it shares with its parent, and its own."""
    session = Session.create()
    session.root.append([user("go"), model("ok")])
    branch = session.root.fork()
    branch.append([user("on"), model("further")])
    session.store.update_session(session.session_id, root=branch.dialog_id)
    said = [
        event["gen_ai.output.messages"][0]["parts"][0]["content"] for event in events(session.store, session.session_id)
    ]
    assert said == ["ok", "further"]
