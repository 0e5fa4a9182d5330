"""Agents: dialogs that answer, turn by turn, with tools, approvals, sub-agents and tactics."""

from palaver.agent.agent import Agent
from palaver.agent.answer import Answer
from palaver.agent.approvals import Decision, decide, open_calls, question
from palaver.agent.building import build_agents
from palaver.agent.call_session import AgentCallSession, TacticCallSession
from palaver.agent.compacting import ModelSummarizer
from palaver.agent.config import AgentSpec, Config, load_config
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
    TurnStarting,
)
from palaver.agent.invoking import (
    Invoker,
    InvokeResult,
    ProviderInvoker,
    StreamHandler,
    build_invoker,
    register_invoker,
)
from palaver.agent.streaming import TurnStream
from palaver.agent.subagents import subagent
from palaver.agent.tactic import Tactic, build_tactic
from palaver.tools.portal import shut_down

__all__ = [
    "Agent",
    "AgentCallSession",
    "AgentEvent",
    "AgentSpec",
    "Answer",
    "AnswerRefused",
    "Asking",
    "CallEnded",
    "CallProgress",
    "CallStarting",
    "Compacted",
    "Config",
    "Decision",
    "DecisionAwaited",
    "Delivered",
    "InvokeResult",
    "Invoker",
    "ModelSummarizer",
    "ProviderInvoker",
    "Retrying",
    "StreamHandler",
    "Tactic",
    "TacticCallSession",
    "TurnFinished",
    "TurnStarting",
    "TurnStream",
    "build_agents",
    "build_invoker",
    "build_tactic",
    "decide",
    "load_config",
    "open_calls",
    "question",
    "register_invoker",
    "shut_down",
    "subagent",
]
