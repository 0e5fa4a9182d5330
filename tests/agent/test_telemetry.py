"""OpenTelemetry: a turn as spans in the words of the GenAI conventions, seen by the SDK's own exporter."""

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from palaver import Prompt
from palaver.agent import subagent
from palaver.agent.telemetry import Telemetry
from palaver.dialects.genai import COMPACTED, part_of
from palaver.errors import AgentFailure
from palaver.messages.blocks import UnknownContent
from palaver.tools import tool
from tests.agent.helper import MODEL, OVERFLOW, calling, scripted, talkative


def traced(**options: Any) -> tuple[Telemetry, InMemorySpanExporter, TracerProvider]:  # noqa: ANN401 - Telemetry's own
    """Return a tracer, and where its spans go."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Telemetry(provider, **options), exporter, provider


def named(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """Return the finished spans by name; the last one of a name."""
    return {span.name: span for span in exporter.get_finished_spans()}


def inside(child: ReadableSpan, parent: ReadableSpan) -> bool:
    """Return whether a span lies within another."""
    return child.parent is not None and parent.context is not None and child.parent.span_id == parent.context.span_id


@tool
def add(a: int, b: int) -> int:
    """Add."""
    get_current_span().set_attribute("seen.within", threading.current_thread().name)
    return a + b


PROMPT = Prompt(path="t/t", prompt="Add.", function_list=[add])


def test_a_turn_is_a_tree_of_spans() -> None:
    """invoke_agent holds chat and execute_tool; names, kinds and attributes are those of the conventions."""
    tracer, exporter, _ = traced(content=True)
    usage = {"prompt_tokens": 11, "completion_tokens": 3}
    agent, _ = scripted(
        [{**calling("add", a=1, b=2), "usage": usage}, {"text": "3", "usage": usage}],
        PROMPT,
        tracer=tracer,
        model_args={"temperature": 0.5},
    )
    agent.respond("go")
    spans = named(exporter)
    turn, chat, ran = spans["invoke_agent tester"], spans[f"chat {MODEL}"], spans["execute_tool add"]
    assert inside(chat, turn)
    assert inside(ran, turn)
    assert len(exporter.get_finished_spans()) == 4
    facts: dict[str, Any] = {
        "operation.name": "chat",
        "provider.name": "scripted",
        "request.model": MODEL,
        "usage.input_tokens": 11,
        "usage.output_tokens": 3,
        "response.finish_reasons": ("stop",),
    }
    assert dict(chat.attributes or {}).items() >= {f"gen_ai.{name}": fact for name, fact in facts.items()}.items()
    did, whole = dict(ran.attributes or {}), dict(turn.attributes or {})
    assert (did["gen_ai.tool.name"], did["gen_ai.tool.call.result"]) == ("add", "3")
    assert did["gen_ai.tool.call.id"] == agent.current_dialog.messages[2].tool_calls()[0].id
    assert "seen.within" in did, "what runs within a tool finds its span"
    assert whole["gen_ai.conversation.id"] == agent.current_dialog.session_id
    assert (whole["gen_ai.usage.input_tokens"], whole["palaver.turn.state"]) == (22, "success")


def test_the_callers_span_is_the_parent() -> None:
    """A span that is current where `respond()` is called holds the turn, although the turn runs in another thread."""
    tracer, exporter, provider = traced()
    agent, _ = scripted(["hi"], tracer=tracer)
    agent.receive("go")
    with provider.get_tracer("caller").start_as_current_span("request"):
        agent.respond()
    spans = named(exporter)
    assert inside(spans["invoke_agent tester"], spans["request"])
    assert "gen_ai.output.messages" not in dict(spans[f"chat {MODEL}"].attributes or {}), "what was said stays out"


def test_sub_agents_are_traced_by_their_caller() -> None:
    """The turn of a sub-agent, and of its own one, is inside the call that began it, although only the first caller has a tracer."""
    tracer, exporter, _ = traced()
    deeper, _ = scripted(["deep"])
    helper, _ = scripted([calling("deeper", task="Dig."), "dug"], tools=[subagent(deeper, "deeper")])
    agent, _ = scripted([calling("helper", task="Dig."), "done"], tools=[subagent(helper, "helper")], tracer=tracer)
    agent.respond("go")
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}
    (chat,) = (span for span in spans.values() if span.name == f"chat {MODEL}" and len(path_of(span, spans)) == 6)
    assert path_of(chat, spans) == [
        f"chat {MODEL}",
        "invoke_agent tester",
        "execute_tool deeper",
        "invoke_agent tester",
        "execute_tool helper",
        "invoke_agent tester",
    ]


def path_of(span: ReadableSpan, spans: Mapping[int, ReadableSpan]) -> list[str]:
    """Return the names of a span and of those around it."""
    names = [span.name]
    while span.parent is not None:
        span = spans[span.parent.span_id]
        names.append(span.name)
    return names


def test_failures_are_errors_of_their_spans() -> None:
    """A provider that fails, and a tool that is unknown: error status and error.type, and the turn's own. A name that the model made up stays out."""
    tracer, exporter, _ = traced()
    agent, _ = scripted([calling("ad"), {"error": "rate"}], PROMPT, tracer=tracer)
    with pytest.raises(AgentFailure):
        agent.respond("go")
    spans = named(exporter)
    refused = dict(spans["execute_tool"].attributes or {})
    assert refused["error.type"] == "unknown_tool"
    assert "gen_ai.tool.name" not in refused
    assert dict(spans[f"chat {MODEL}"].attributes or {})["error.type"] == "rate"
    assert dict(spans["invoke_agent tester"].attributes or {})["error.type"] == "AgentFailure"
    assert all(span.status.status_code is StatusCode.ERROR for span in spans.values())


def test_context_edits_are_events() -> None:
    """A policy that made a request smaller is an event of its chat, a compaction one of the turn: policy, sizes before and after."""
    tracer, exporter, _ = traced()
    agent, _ = scripted([OVERFLOW, "ok"], tracer=tracer)
    talkative(agent)
    agent.respond("go")
    (event,) = named(exporter)["invoke_agent tester"].events
    about: dict[str, Any] = dict(event.attributes or {})
    assert (event.name, about["palaver.policy"]) == ("palaver.context_edit", "palaver")
    assert about["palaver.tokens.before"] > about["palaver.tokens.after"] > 0


def test_a_compacted_conversation_is_marked() -> None:
    """From the compaction on, model calls and their turns say so; calls before it say nothing, and no content is in any span."""
    tracer, exporter, _ = traced()
    agent, _ = scripted(["before", OVERFLOW, "ok", "after"], tracer=tracer)
    talkative(agent)
    for text in ("go", "go on", "and on"):
        agent.respond(text)
    spans = exporter.get_finished_spans()
    assert [dict(span.attributes or {}).get(COMPACTED) for span in spans] == [None, None, None, True, True, True, True]
    assert not any("word word" in str(dict(span.attributes or {})) for span in spans)


def test_a_compaction_is_a_part_of_the_input() -> None:
    """Where content is asked for, the record that replaces older exchanges is a part of type `compaction`, and so is a provider's own block."""
    tracer, exporter, _ = traced(content=True)
    agent, _ = scripted([OVERFLOW, {**calling("add", a=1, b=2), "text": "I add."}, "3"], PROMPT, tracer=tracer)
    talkative(agent)
    agent.respond("go")
    read = [
        json.loads(str(dict(span.attributes or {}).get("gen_ai.input.messages", "[]")))
        for span in exporter.get_finished_spans()
    ]
    parts = [part for message in read[-2] for part in message["parts"]]
    (compaction,) = [part for part in parts if part["type"] == "compaction"]
    assert "question" in compaction["content"]
    assert {"type": "tool_call_response", "id": parts[-1]["id"], "response": "3"} == parts[-1]
    assert parts[-2]["arguments"] == {"a": 1, "b": 2}
    block = UnknownContent.model_validate({"type": "compaction", "id": "cmp_1", "encrypted_content": "secret"})
    assert part_of(block) == {"type": "compaction", "id": "cmp_1"}
