"""OpenTelemetry: a turn as spans, in the words of the GenAI semantic conventions.

Only the API is needed (the extra `otel`); without an SDK nothing is recorded and next to nothing is paid. The words are constants of our own,
because the published package of constants has all of them marked as moved and deprecated. They follow the conventions as of semconv 1.41:
github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, gen-ai-agent-spans.md, execute-tool.md; all of it has the
status "Development".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Token
from typing import Any

import anyio
from opentelemetry import context as otel_context
from opentelemetry.trace import (
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    get_tracer,
    set_span_in_context,
)

from palaver.agent.call_session import AgentCallSession
from palaver.agent.invoking import InvokeResult
from palaver.agent.settings import Settings
from palaver.context import Composed
from palaver.messages import Message, ToolCallContent, ToolResultContent, canonical_json

__all__ = ["Telemetry"]

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
CALL_ID = "gen_ai.tool.call.id"
CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
CALL_RESULT = "gen_ai.tool.call.result"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"

CONTEXT_EDIT = "palaver.context_edit"
"""The event for which the conventions have no word: a view was made smaller. Its attributes are ours, too."""

_DIALOG = "palaver.dialog.id"
_STATE = "palaver.turn.state"


class Telemetry:
    """Traces turns: `Agent(..., tracer=Telemetry())`.

    A turn is a span `invoke_agent`, with a span `chat` for each time the model is asked and a span `execute_tool` for each call of a tool within
    it; a sub-agent's turn lies within the call that began it. Contexts that were edited are events of these spans.
    """

    def __init__(self, provider: TracerProvider | None = None, *, content: bool = False) -> None:
        """Take a tracer provider.

        Args:
            provider: Where spans go; the process's own when not given.
            content: Whether what was said goes into the spans, too: arguments, results and answers. Off, because it may be anybody's secret.
        """
        self._tracer = get_tracer("palaver", tracer_provider=provider)
        self._content = content
        self._calls: dict[tuple[int, str], tuple[Span, Token[otel_context.Context], Span]] = {}

    @contextmanager
    def turn(self, settings: Settings, session: AgentCallSession) -> Iterator[None]:
        """Surround a turn with a span `invoke_agent`."""
        attributes = {OPERATION: "invoke_agent", AGENT: settings.name, **_about(settings, session)}
        with self._span(f"invoke_agent {settings.name}", SpanKind.INTERNAL, attributes) as span:
            try:
                yield
            finally:
                self._cut_off(span)
            span.set_attribute(_STATE, session.state)
            span.set_attributes(_usage(session.cost.prompt_tokens, session.cost.completion_tokens))

    @contextmanager
    def asking(self, settings: Settings, session: AgentCallSession) -> Iterator[_Chat]:
        """Surround a call of the model with a span `chat`."""
        attributes: dict[str, Any] = {OPERATION: "chat", **_about(settings, session)}
        for name, word in (("max_tokens", REQUEST_MAX_TOKENS), ("temperature", REQUEST_TEMPERATURE)):
            if settings.model_args.get(name) is not None:
                attributes[word] = settings.model_args[name]
        with self._span(f"chat {settings.model}", SpanKind.CLIENT, attributes) as span:
            yield _Chat(span, content=self._content)

    def compacted(self, composed: Composed) -> None:
        """Make the compaction an event of the turn."""
        _edited(get_current_span(), composed, committed=True)

    def call_begun(self, call: ToolCallContent) -> None:
        """Begin a span `execute_tool`, which is the current one in the tool's own task."""
        turn = get_current_span()
        span = self._tool_span(call)
        self._calls[_key(call)] = span, otel_context.attach(set_span_in_context(span)), turn

    def call_ended(self, call: ToolCallContent, result: ToolResultContent, ending: str) -> None:
        """End it; a call that was refused before it began has a span without length."""
        begun = self._calls.pop(_key(call), None)
        span = self._tool_span(call) if begun is None else begun[0]
        if begun is not None:
            otel_context.detach(begun[1])
        if self._content:
            span.set_attribute(CALL_RESULT, result.text())
        if result.is_error:
            span.set_attribute(ERROR_TYPE, ending)
            span.set_status(Status(StatusCode.ERROR, ending))
        span.end()

    def _cut_off(self, turn: Span) -> None:
        """End the spans of a turn's calls that were cut off with it: nobody else will."""
        for key in [key for key, (_, _, owner) in self._calls.items() if owner is turn]:
            span, _, _ = self._calls.pop(key)
            span.set_attribute(ERROR_TYPE, "cancelled")
            span.set_status(Status(StatusCode.ERROR, "cancelled"))
            span.end()

    def _tool_span(self, call: ToolCallContent) -> Span:
        attributes = {OPERATION: "execute_tool", TOOL_NAME: call.name, TOOL_TYPE: "function", CALL_ID: call.id}
        if self._content:
            attributes[CALL_ARGUMENTS] = call.arguments
        return self._tracer.start_span(f"execute_tool {call.name}", kind=SpanKind.INTERNAL, attributes=attributes)

    @contextmanager
    def _span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> Iterator[Span]:
        """Make a span the current one; what ends it, a cancellation included, is its error."""
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:  # a cancellation ends a span, too
                span.set_attribute(ERROR_TYPE, type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


class _Chat:
    """One call of the model."""

    def __init__(self, span: Span, *, content: bool) -> None:
        self._span = span
        self._content = content

    def seen(self, composed: Composed) -> None:
        """Make what the context manager did an event, where it did something."""
        if composed.plan or composed.fallback:
            _edited(self._span, composed, committed=False)

    def answered(self, result: InvokeResult) -> None:
        """Take the answer's facts."""
        message = result.message
        if message is None:
            return
        usage = message.usage
        facts: dict[str, Any] = {
            RESPONSE_MODEL: message.model,
            RESPONSE_ID: message.response_id,
            CACHE_READ: usage.cache_read_tokens,
            CACHE_WRITE: usage.cache_write_tokens,
        }
        self._span.set_attributes({name: value for name, value in facts.items() if value})
        self._span.set_attributes(_usage(message.usage.input_tokens, message.usage.output_tokens))
        if message.stop_reason is not None:
            self._span.set_attribute(FINISH_REASONS, (message.stop_reason.value,))
        if self._content:
            self._span.set_attribute(OUTPUT_MESSAGES, _as_parts(message))


def _key(call: ToolCallContent) -> tuple[int, str]:
    """Tell a call from those of the same id in other dialogs: each is begun and ended in a task of its own."""
    return anyio.get_current_task().id, call.id


def _about(settings: Settings, session: AgentCallSession) -> dict[str, Any]:
    provider = getattr(getattr(settings.invoker, "provider", None), "name", "")
    facts = {PROVIDER: provider, REQUEST_MODEL: settings.model, _DIALOG: session.dialog_id}
    if session.dialog is not None:
        facts[CONVERSATION] = session.dialog.session_id
    return {name: value for name, value in facts.items() if value}


def _usage(read: int, written: int) -> dict[str, int]:
    return {INPUT_TOKENS: read, OUTPUT_TOKENS: written} if read or written else {}


def _edited(span: Span, composed: Composed, *, committed: bool) -> None:
    attributes: dict[str, Any] = {
        "palaver.policy": composed.plan.policy,
        "palaver.tokens.before": composed.tokens_before,
        "palaver.tokens.after": composed.tokens_after,
        "palaver.committed": committed,
    }
    span.add_event(CONTEXT_EDIT, attributes)


def _as_parts(message: Message) -> str:
    """Give a message in the conventions' form: a role, and parts."""
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.text_content()}]
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls()
    ]
    return canonical_json([{"role": "assistant", "parts": parts}]).decode()
