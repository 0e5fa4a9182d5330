"""OpenTelemetry: trace a turn as spans with the names of the GenAI semantic conventions.

`Telemetry` listens to events. It needs only the API (the extra `telemetry`); without an SDK nothing is recorded. The names are
written out here, because the published package marks all of them as moved and deprecated. They follow semconv 1.41:
github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, gen-ai-agent-spans.md and execute-tool.md, which
have the status "Development".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import Token
from dataclasses import dataclass, field
from typing import Any

import anyio

from palaver.agent.events import (
    AgentEvent,
    AnswerRefused,
    Asking,
    CallEnded,
    CallStarting,
    Compacted,
    Retrying,
    TurnFinished,
    TurnStarting,
)
from palaver.agent.trace import Trace
from palaver.dialects.genai import COMPACTED, COMPACTIONS, messages_of, part_of
from palaver.errors import InvalidInput, MissingExtra, ProviderError
from palaver.messages import Message, ToolCallContent, canonical_json
from palaver.providers import End
from palaver.view import Reason
from palaver.wire import Request

try:
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
except ImportError as error:
    raise MissingExtra("Telemetry", "telemetry", package="opentelemetry-sdk") from error

_SHORTER = frozenset(
    {Reason.OVER_BUDGET, Reason.OFFLOADED, Reason.SHORTENED, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER}
)

CONTEXT_EDIT = "palaver.context_edit"
"""The event of a compaction. The conventions have no name for it or for its attributes."""


@dataclass(slots=True, eq=False)
class _Open:
    """An open span, its place in the context, and the tool calls within it."""

    span: Span
    token: Token[otel_context.Context]
    provider: str = ""
    conversation: str = ""
    tools: frozenset[str] = frozenset()
    calls: dict[tuple[int, str], _Open] = field(default_factory=dict)
    chat: _Open | None = None


class Telemetry:
    """Traces turns: `Agent(..., tracer=Telemetry())`.

    A turn is a span `invoke_agent`. It contains a span `chat` for each model call and a span `execute_tool` for each tool call; a
    sub-agent's turn is inside the call that began it. Compactions are events of the turn's span, and the spans of later model calls say
    that their conversation is compacted. In a fleet the turn is inside the span of its job.
    """

    def __init__(self, provider: TracerProvider | None = None, *, content: bool = False) -> None:
        """Create a tracer.

        Args:
            provider: The destination of spans. Default: the process's provider.
            content: Whether spans contain the conversation: instructions, requests, arguments, results and answers. Off by default, because they may be secret.

        Raises:
            InvalidInput: `provider` is not a TracerProvider.
        """
        given: object = provider
        if given is not None and not isinstance(given, TracerProvider):
            hint = "Pass a TracerProvider that has the exporter: provider.add_span_processor(BatchSpanProcessor(exporter))."
            raise InvalidInput(f"Telemetry() got a {type(given).__name__} as its provider.", hint=hint)
        self._tracer = get_tracer("palaver", tracer_provider=provider)
        self._content = content
        self._turns: list[_Open] = []

    def __call__(self, event: AgentEvent) -> None:
        """Handle an event in the task that does the work, so that its context applies to everything that runs inside."""
        match event:
            case TurnStarting():
                self._start_turn(event)
            case TurnFinished(trace=trace):
                self._finish_turn(trace)
            case CallStarting(call=call):
                self._start_call(call)
            case CallEnded():
                self._end_call(event)
            case _:
                turn = self._current()
                if turn is not None:
                    self._in_turn(turn, event)

    def _current(self) -> _Open | None:
        """Return the turn whose span, or whose `chat` span, is the current one."""
        span = get_current_span()
        return next((turn for turn in self._turns if span in (turn.span, turn.chat and turn.chat.span)), None)

    def _open(self, name: str, kind: SpanKind, attributes: Mapping[str, Any]) -> _Open:
        known = {key: value for key, value in attributes.items() if value not in (None, "", 0)}
        span = self._tracer.start_span(name, kind=kind, attributes=known)
        return _Open(span, otel_context.attach(set_span_in_context(span)))

    @contextmanager
    def job(self, queue: str, number: int | None, session_id: str) -> Iterator[None]:
        """Trace a job of a queue as a span `process`, with the names of messaging-spans.md. The turns inside are its children.

        Args:
            queue: The name of the queue.
            number: The number of the job.
            session_id: The session that the job is about.
        """
        attributes = {
            "messaging.system": "procrastinate",
            "messaging.operation.type": "process",
            "messaging.operation.name": "process",
            "messaging.destination.name": queue,
            "messaging.message.id": "" if number is None else str(number),
            "gen_ai.conversation.id": session_id,
        }
        opened, failed = self._open(f"process {queue}", SpanKind.CONSUMER, attributes), ""
        try:
            yield
        except BaseException as error:
            failed = type(error).__qualname__ if isinstance(error, Exception) else "cancelled"
            raise
        finally:
            otel_context.detach(opened.token)
            _end(opened.span, failed)

    # --- turns ----------------------------------------------------------------------------------------------------------------

    def _start_turn(self, event: TurnStarting) -> None:
        trace: Trace = event.trace
        conversation = getattr(trace.dialog, "session_id", "")
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": trace.agent_name,
            "gen_ai.provider.name": event.provider,
            "gen_ai.request.model": event.model,
            "gen_ai.conversation.id": conversation,
            "palaver.dialog.id": trace.dialog_id,
        }
        turn = self._open(f"invoke_agent {trace.agent_name}", SpanKind.INTERNAL, attributes)
        turn.provider, turn.conversation, turn.tools = event.provider, conversation, frozenset(event.tools)
        self._turns.append(turn)

    def _finish_turn(self, trace: Trace) -> None:
        turn = self._current()
        if turn is None:
            return
        failed = trace.error is not None or trace.state == "interrupted"
        error = type(trace.error).__qualname__ if trace.error is not None else "cancelled"
        cause = getattr(trace.error, "error", None)
        self._end_chat(turn, (cause.kind if isinstance(cause, ProviderError) else error) if failed else "")
        for call in turn.calls.values():
            _end(call.span, "cancelled")
        turn.span.set_attribute("palaver.turn.state", trace.state)
        turn.span.set_attributes(_usage(trace.cost.prompt_tokens, trace.cost.completion_tokens))
        otel_context.detach(turn.token)
        self._turns.remove(turn)
        _end(turn.span, error if failed else "")

    def _in_turn(self, turn: _Open, event: AgentEvent) -> None:
        match event:
            case Asking(request=request):
                self._ask(turn, request)
            case End(message=message):
                self._answered(turn, message)
            case Retrying(error=error):
                self._end_chat(turn, error.kind)
            case AnswerRefused():
                self._end_chat(turn, "refused")
            case Compacted():
                attributes: dict[str, Any] = {
                    "palaver.policy": event.policy,
                    "palaver.tokens.before": event.tokens_before,
                    "palaver.tokens.after": event.tokens_after,
                }
                turn.span.add_event(CONTEXT_EDIT, attributes)
            case _:
                pass

    def _ask(self, turn: _Open, request: Request) -> None:
        self._end_chat(turn, "overflow")  # a call that is still open was refused as too long
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": turn.provider or request.profile.name,
            "gen_ai.request.model": request.model,
            "gen_ai.conversation.id": turn.conversation,
        }
        if request.call is not None:
            attributes["gen_ai.request.max_tokens"] = request.call.max_tokens
        if _is_compacted(request):
            attributes[COMPACTED] = True
            turn.span.set_attribute(COMPACTED, value=True)
        if self._content and request.view is not None:
            attributes["gen_ai.input.messages"] = canonical_json(list(messages_of(request.view))).decode()
            if request.view.system:
                said = [part_of(block.content) for block in request.view.system]
                attributes["gen_ai.system_instructions"] = canonical_json(said).decode()
        turn.chat = self._open(f"chat {request.model}", SpanKind.CLIENT, attributes)

    def _answered(self, turn: _Open, message: Message) -> None:
        if turn.chat is None:
            return
        span, usage = turn.chat.span, message.usage
        facts: dict[str, Any] = {
            "gen_ai.response.model": message.model,
            "gen_ai.response.id": message.response_id,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            **_usage(usage.input_tokens, usage.output_tokens),
        }
        span.set_attributes({name: value for name, value in facts.items() if value})
        reason = "" if message.stop_reason is None else message.stop_reason.value
        if reason:
            span.set_attribute("gen_ai.response.finish_reasons", (reason,))
        if self._content:
            parts = list(map(part_of, message.contents))
            said = {"role": "assistant", "parts": parts, "finish_reason": reason}
            span.set_attribute("gen_ai.output.messages", canonical_json([said]).decode())
        self._end_chat(turn)

    def _end_chat(self, turn: _Open, error: str = "") -> None:
        if turn.chat is not None:
            otel_context.detach(turn.chat.token)
            _end(turn.chat.span, error)
            turn.chat = None

    # --- calls of tools ---------------------------------------------------------------------------------------------------------

    def _start_call(self, call: ToolCallContent) -> None:
        turn = self._current()
        if turn is not None:
            turn.calls[_key(call)] = self._tool_span(turn, call)

    def _tool_span(self, turn: _Open | None, call: ToolCallContent) -> _Open:
        """Open a call's span. A name that is not a declared tool's is the model's own words, and stays out."""
        name = call.name if turn is not None and call.name in turn.tools else ""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = call.arguments
        return self._open(f"execute_tool {name}".rstrip(), SpanKind.INTERNAL, attributes)

    def _end_call(self, event: CallEnded) -> None:
        """End a call's span. A call that was refused before it began has a span of no duration."""
        key = _key(event.call)
        turn = next((turn for turn in self._turns if key in turn.calls), None)
        opened = turn.calls.pop(key) if turn is not None else self._tool_span(self._current(), event.call)
        otel_context.detach(opened.token)
        if self._content:
            opened.span.set_attribute("gen_ai.tool.call.result", event.result.text())
        _end(opened.span, event.ending if event.result.is_error else "")


def _key(call: ToolCallContent) -> tuple[int, str]:
    """Return a key that distinguishes calls of the same id in different dialogs: each begins and ends in its own task."""
    return anyio.get_current_task().id, call.id


def _end(span: Span, error: str = "") -> None:
    if error:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end()


def _usage(read: int, written: int) -> dict[str, int]:
    return {"gen_ai.usage.input_tokens": read, "gen_ai.usage.output_tokens": written} if read or written else {}


def _is_compacted(request: Request) -> bool:
    """Return whether a request has a shorter form of the conversation, made here, by the provider, or by the agent that recorded it."""
    view = request.view
    if bool(request.anew) or view is None:
        return bool(request.anew)
    derived = any(exchange.derived in COMPACTIONS for exchange in view.exchanges)
    return derived or any(omission.reason in _SHORTER for omission in view.omissions)
