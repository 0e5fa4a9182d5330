"""OpenTelemetry's traces and events: calls of models become dialogs, and what palaver exports comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from palaver import Agent, ScriptedProvider, Session, subagent
from palaver.agent.telemetry import Telemetry
from palaver.errors import UnsupportedTranscript
from palaver.log import Invocation
from palaver.store.memory import MemoryStore
from palaver.testing.logs import model, result, user
from palaver.transcripts import export
from palaver.view import fold
from tests.formats.reading import Read, imported, read_bytes, read_file, shown, written
from tests.formats.samples import GOLDEN, jsonl, value_of


def sample() -> Read:
    """Read the small file: a trace of four calls, one of them a sub-agent's, and three events of the same conversation."""
    return read_file(GOLDEN / "opentelemetry.file")


def test_requests_that_grow_are_one_dialog() -> None:
    """Each message is there once, also where a span has JSON texts and an event structured values; each call is an invocation."""
    found = sample()
    said = [line.partition(":")[0] for line in found.shown(whole=True)]
    assert said == [
        "user",
        *["assistant"] * 3,
        "tool",
        "assistant",
        "tool",
        "assistant",
        "user",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert sum(isinstance(entry, Invocation) for entry in found.entries()) == 5
    answer = found.said()[1]
    assert (answer.model, answer.provider, answer.response_id) == ("gpt-5-mini", "openai", "resp-1")
    assert (answer.usage.input_tokens, answer.usage.cache_read_tokens) == (10, 5)


def test_compaction_shows_what_was_sent() -> None:
    """A text in place of earlier messages is a compaction: the view is the request, and the whole dialog stays."""
    text = "The user asked what is there: a stone and an oak."
    assert sample().shown() == [
        f"user: {text}",
        "user: And this?",
        "user: image",
        "assistant: A pixel.",
        "user: And now?",
        "assistant: Nothing new.",
    ]


def test_agent_inside_an_agent_is_a_subagent() -> None:
    """Its calls are a dialog of their own, which names the call that began it. A span around the calls repeats them."""
    found = sample()
    branch = found.branch("branch:1")
    assert (branch.relation, branch.parent, branch.owner, branch.metadata["inside"]) == (
        "subagent",
        "main",
        "gardener",
        "c2",
    )
    assert found.shown("branch:1") == ["user: Which tree?", "assistant: An oak."]


def test_other_request_is_a_branch() -> None:
    """A request that an earlier one does not begin is a branch."""
    assert sample().branch("branch:2").relation == "fork"
    assert "tool: c1=a pearl" in sample().shown("branch:2")


def test_exported_events_come_back(tmp_path: Path) -> None:
    """What palaver exports imports as the same dialog, with what the model saw after a compaction."""
    session = Session.create()
    for number in range(40):
        session.root.append(
            [user(f"go {number} " + "word " * 40), model("", f"c{number}"), result(f"c{number}"), model("ok")]
        )
        if number in {20, 35}:
            assert session.root.compaction.preview(budget=1_500, model="gpt-5").approve()
    events = b"".join(export(session.store, session.session_id, "otel-events").pieces)
    store = MemoryStore()
    (one,) = imported(store, written(tmp_path, events))
    assert (one.dialogs, one.losses) == (1, ())
    assert one.main is not None
    for whole in (True, False):
        assert shown(fold(store, one.main, whole=whole)) == shown(
            fold(session.store, session.root.dialog_id, whole=whole)
        )


def weigh(parcel: str) -> int:  # noqa: ARG001 - a tool's
    """Weigh a parcel."""
    return 12


def test_traces_of_agents_come_back(tmp_path: Path) -> None:
    """The spans of palaver's own agents, with what was said: two turns are one dialog, and a sub-agent has its own."""

    def asks(name: str, **arguments: str) -> dict[str, object]:
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    inner = ScriptedProvider([asks("weigh", parcel="lamp"), "12 kg."])
    outer = ScriptedProvider([asks("porter", task="Weigh it."), "It weighs 12 kg.", "Tomorrow."])
    porter = Agent("porter", "You weigh.", "gpt-5-mini", inner, tools=[weigh])
    tracer = Telemetry(provider, content=True)
    clerk = Agent("clerk", "You send parcels.", "gpt-5-mini", outer, tools=[subagent(porter)], tracer=tracer)
    clerk.respond("How heavy is it?")
    clerk.respond("When does it leave?")
    lines = [MessageToJson(encode_spans([span]), indent=None).encode() for span in spans.get_finished_spans()]
    found = read_bytes(tmp_path, b"\n".join(lines))
    assert {loss.severity for loss in found.losses} == {"note"}
    said = [line.partition(": ")[2] for line in found.shown()]
    assert [said[0], *said[3:]] == ["How heavy is it?", "It weighs 12 kg.", "When does it leave?", "Tomorrow."]
    assert (found.branch("branch:1").relation, found.branch("branch:1").owner) == ("subagent", "porter")
    assert found.shown("branch:1")[-1] == "assistant: 12 kg."


def test_trace_that_is_still_written_grows(tmp_path: Path) -> None:
    """The spans around calls come last. Whatever is there already, an import of the rest adds to it."""
    lines = value_of("opentelemetry")
    for count in range(1, len(lines)):
        store = MemoryStore()
        imported(store, written(tmp_path, jsonl(*lines[:count])))
        (one,) = imported(store, written(tmp_path, jsonl(*lines)))
        assert (one.outcome, one.dialogs) in {("grown", 3), ("unchanged", 3)}, count


def test_trace_without_messages_says_how_to_record_them(tmp_path: Path) -> None:
    """Most traces have no messages: the error names the variable that asks for them."""
    spans = [line for line in value_of("opentelemetry") if "execute_tool" in json.dumps(line)]
    for data in (jsonl(*spans), jsonl(*spans) + b'{"resourceSpans"'):
        with pytest.raises(UnsupportedTranscript, match="CAPTURE_MESSAGE_CONTENT"):
            imported(MemoryStore(), written(tmp_path, data))


def test_result_that_no_request_has_is_reported(tmp_path: Path) -> None:
    """What a tool returned after the last request is only in its span, and the report says so."""
    lines = value_of("opentelemetry")
    reasons = [loss.reason for loss in read_bytes(tmp_path, jsonl(*lines[:2], lines[4])).losses]
    assert any("gen_ai.tool.call.result" in reason for reason in reasons)
    assert not any("gen_ai.tool.call.result" in loss.reason for loss in sample().losses)
