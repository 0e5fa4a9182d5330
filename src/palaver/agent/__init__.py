"""Agents: someone who answers in durable dialogs, with tools, step by step."""

from palaver.agent.agent import Agent
from palaver.agent.approvals import Decision, decide, open_calls
from palaver.agent.building import build_invoker, register_invoker
from palaver.agent.call_session import AgentCallSession
from palaver.agent.events import (
    AgentEvent,
    AnswerRefused,
    Asking,
    CallEnded,
    CallProgress,
    CallStarting,
    Compacted,
    DecisionAwaited,
    Delivered,
    Retrying,
    TurnFinished,
)
from palaver.agent.face import shut_down
from palaver.agent.invoking import Invoker, InvokeResult, ProviderInvoker, StreamHandler
from palaver.agent.streaming import TurnStream

__all__ = [
    "Agent",
    "AgentCallSession",
    "AgentEvent",
    "AnswerRefused",
    "Asking",
    "CallEnded",
    "CallProgress",
    "CallStarting",
    "Compacted",
    "Decision",
    "DecisionAwaited",
    "Delivered",
    "InvokeResult",
    "Invoker",
    "ProviderInvoker",
    "Retrying",
    "StreamHandler",
    "TurnFinished",
    "TurnStream",
    "build_invoker",
    "decide",
    "open_calls",
    "register_invoker",
    "shut_down",
]
