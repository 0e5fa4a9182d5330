"""OpenTelemetry on its way: what a collector in another process has of a turn, sent by the SDK's own exporter over OTLP."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from pytest_examples import find_examples

from palaver import tool
from palaver.agent import subagent
from palaver.agent.telemetry import CONTEXT_EDIT, Telemetry
from palaver.dialects.genai import COMPACTED
from palaver.errors import AgentFailure, InvalidInput
from palaver.log.entries import Compaction
from tests.agent.helper import MODEL, calling, entries, kinds, scripted
from tests.collector import Arrived, Collector, collecting, tree

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "telemetry.md"
AT_ONCE = 0.05
"""Seconds of an exporter that does not wait for a collector to come back."""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collector]:
    """A running collector."""
    with collecting(tmp_path) as running:
        yield running


def sending(processor: SpanProcessor) -> TracerProvider:
    """Return a provider of a service `shop` whose spans go through a processor."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def batches(collector: Collector) -> TracerProvider:
    """Return a provider that sends batches to a collector, compressed."""
    return sending(BatchSpanProcessor(OTLPSpanExporter(collector.endpoint, compression=Compression.Gzip)))


def about(span: Arrived, *names: str) -> list[Any]:
    """Return attributes of a span, None for one that it lacks."""
    return [span.attributes.get(name) for name in names]


@tool
def weigh(parcel: str) -> int:
    """Weigh a parcel."""
    return len(parcel)


# --- what arrives ---------------------------------------------------------------------------------------------------------


def test_sub_agent_arrives_under_its_parent(collector: Collector) -> None:
    """One turn is one trace: the sub-agent's turn, its model calls and its tool are inside the call that began it, all of one conversation."""
    provider = batches(collector)
    usage = {"prompt_tokens": 11, "completion_tokens": 3}
    helper, _ = scripted([calling("weigh", parcel="a lamp"), {"text": "six", "usage": usage}], tools=[weigh])
    agent, _ = scripted(
        [calling("scales", task="Weigh it."), "It weighs six."],
        tools=[subagent(helper, "scales")],
        tracer=Telemetry(provider),
    )
    agent.respond("How heavy is my parcel?")
    provider.shutdown()
    spans = collector.spans()
    assert tree(spans).splitlines() == [
        "invoke_agent tester",
        f"    chat {MODEL}",
        "    execute_tool scales",
        "        invoke_agent tester",
        f"            chat {MODEL}",
        "            execute_tool weigh",
        f"            chat {MODEL}",
        f"    chat {MODEL}",
    ]
    assert len({span.trace_id for span in spans}) == 1
    assert {span.service for span in spans} == {"shop"}
    assert not any(span.failed for span in spans)
    kind = {"chat": "SPAN_KIND_CLIENT", "execute_tool": "SPAN_KIND_INTERNAL", "invoke_agent": "SPAN_KIND_INTERNAL"}
    assert all(span.kind == kind[span.attributes["gen_ai.operation.name"]] for span in spans)
    talks = [span for span in spans if not span.name.startswith("execute_tool")]
    assert {span.attributes["gen_ai.conversation.id"] for span in talks} == {agent.current_dialog.session_id}
    told = next(
        span for span in talks if "gen_ai.usage.input_tokens" in span.attributes and span.name.startswith("chat")
    )
    names = ("provider.name", "request.model", "usage.input_tokens", "usage.output_tokens", "response.finish_reasons")
    assert about(told, *(f"gen_ai.{name}" for name in names)) == ["scripted", MODEL, 11, 3, ("stop",)]


def test_no_content_leaves_unless_asked_for(collector: Collector) -> None:
    """Without the option, nothing that a person, a model or a tool said reaches the collector, nor the instructions; with it, all of it does."""
    said = (
        "You are tested.",
        "How heavy is my parcel?",
        "a green lamp",
        "Let me weigh.",
        '"response":"12"',
        "It weighs twelve.",
    )
    for content in (False, True):
        provider = batches(collector)
        script = [{**calling("weigh", parcel="a green lamp"), "text": "Let me weigh."}, "It weighs twelve."]
        agent, _ = scripted(script, tools=[weigh], tracer=Telemetry(provider, content=content))
        agent.respond("How heavy is my parcel?")
        provider.shutdown()
        there = "".join(str(value) for span in collector.spans() for value in span.attributes.values())
        assert [text in there for text in said] == [content] * len(said)
    ran = next(span for span in reversed(collector.spans()) if span.name == "execute_tool weigh")
    assert about(ran, "gen_ai.tool.call.arguments", "gen_ai.tool.call.result") == ['{"parcel":"a green lamp"}', "12"]
    last = next(span for span in reversed(collector.spans()) if span.name.startswith("chat"))
    assert json.loads(last.attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "It weighs twelve."}], "finish_reason": "stop"}
    ]


def test_third_compaction_arrives(collector: Collector) -> None:
    """Each compaction is an event of the turn in which it happened, and from the first on each call says that it is compacted, the third included."""
    provider = batches(collector)
    agent, _ = scripted(lambda _: "answer " * 400, tracer=Telemetry(provider, content=True), budget=4_000)
    turns = 0
    while sum(isinstance(entry, Compaction) for entry in entries(agent.current_dialog)) < 3:
        agent.respond(f"question {turns} " + "word " * 400)
        turns += 1
    provider.shutdown()
    whole = [span for span in collector.spans() if span.name.startswith("invoke_agent")]
    asked = [span for span in collector.spans() if span.name.startswith("chat")]
    edits = [[facts for name, facts in span.events if name == CONTEXT_EDIT] for span in whole]
    assert (len(whole), len(asked), sum(map(len, edits))) == (turns, turns, 3)
    first = next(number for number, made in enumerate(edits) if made)
    marked = [None] * first + [True] * (turns - first)
    assert [span.attributes.get(COMPACTED) for span in whole] == marked
    assert [span.attributes.get(COMPACTED) for span in asked] == marked
    (third,) = edits[-1]
    made = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)][-1]
    assert third["palaver.policy"] == "palaver"
    assert third["palaver.tokens.before"] > third["palaver.tokens.after"] == made.tokens_after
    read = [part for message in json.loads(asked[-1].attributes["gen_ai.input.messages"]) for part in message["parts"]]
    (compaction,) = [part for part in read if part["type"] == "compaction"]
    assert "question 0" in compaction["content"]


def test_failures_arrive_as_errors(collector: Collector) -> None:
    """A sub-agent whose provider fails: each span from its model call up to the call of the tool is an error with its type; the caller goes on."""
    provider = batches(collector)
    helper, _ = scripted([{"error": "auth"}])
    agent, _ = scripted(
        [calling("scales", task="Weigh it."), {"error": "auth"}],
        tools=[subagent(helper, "scales")],
        tracer=Telemetry(provider),
    )
    with pytest.raises(AgentFailure):
        agent.respond("How heavy is my parcel?")
    provider.shutdown()
    failed = [(span.name, span.attributes["error.type"]) for span in collector.spans() if span.failed]
    assert failed == [
        (f"chat {MODEL}", "auth"),
        ("invoke_agent tester", "AgentFailure"),
        ("execute_tool scales", "failed"),
        (f"chat {MODEL}", "auth"),
        ("invoke_agent tester", "AgentFailure"),
    ]
    assert collector.spans()[-1].attributes["palaver.turn.state"] == "failure"


def test_exporter_is_no_provider(collector: Collector) -> None:
    """An exporter, or an address, in the provider's place is refused at once, and the error says where it belongs."""
    wrong: tuple[Any, ...] = (OTLPSpanExporter(collector.endpoint), collector.endpoint)
    for given in wrong:
        with pytest.raises(InvalidInput, match="add_span_processor"):
            Telemetry(given)


# --- a collector that is down ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processor", [BatchSpanProcessor, SimpleSpanProcessor])
def test_turn_goes_on_without_a_collector(
    collector: Collector, processor: type[SpanProcessor], caplog: pytest.LogCaptureFixture
) -> None:
    """A collector that dies in the middle of a turn, and is down in the next: both turns end, the log is whole, and the SDK says what it lost."""
    chosen: Any = processor
    provider = sending(chosen(OTLPSpanExporter(collector.endpoint, timeout=AT_ONCE)))

    @tool(allow_repeat=True)
    def post() -> str:
        """Post the parcel."""
        collector.stop()
        return "posted"

    agent, _ = scripted([calling("post"), "It is on its way.", "Yes."], tools=[post], tracer=Telemetry(provider))
    assert agent.respond("Send it.").content == "It is on its way."
    assert agent.respond("Really?").content == "Yes."
    provider.shutdown()
    ends = ["turn_started", "turn_ended"]
    assert [kind for kind in kinds(agent.current_dialog) if kind in ends] == ends * 2
    assert "Failed to export" in caplog.text


# --- the page -------------------------------------------------------------------------------------------------------------


def test_page_shows_what_arrives(collector: Collector, tmp_path: Path) -> None:
    """The page's Python, run as a program beside a collector, sends the tree of spans that the page shows, and no content but where it says so."""
    blocks = [example.source for example in find_examples(PAGE) if "test" not in example.prefix_settings()]
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    (shown,) = re.findall(r"```text\n(invoke_agent .*?)\n```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    roots = [span for span in collector.spans() if not span.parent_id]
    first = [span for span in collector.spans() if span.trace_id == roots[0].trace_id]
    assert tree(first) == shown
    assert [any("gen_ai.input.messages" in span.attributes for span in collector.spans() if span.trace_id == root.trace_id) for root in roots] == [False, True]  # fmt: skip
