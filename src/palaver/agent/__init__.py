"""Agents: someone who answers in durable dialogs, with tools, step by step."""

from palaver.agent.agent import Agent
from palaver.agent.approvals import Decision, decide, open_calls
from palaver.agent.auto_compact import AutoCompact
from palaver.agent.building import build_invoker, register_invoker
from palaver.agent.call_session import AgentCallSession
from palaver.agent.config import AgentSpec, Config, build_agent, build_agents, load_config
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
    Quarantined,
    Retrying,
    TurnFinished,
)
from palaver.agent.invoking import Invoker, InvokeResult, ProviderInvoker, StreamHandler
from palaver.agent.settings import OnRefused
from palaver.agent.streaming import TurnStream
from palaver.agent.subagents import subagent
from palaver.agent.summarizing import ModelSummarizer
from palaver.agent.tactic import Tactic, build_tactic
from palaver.agent.tactic_session import TacticCallSession
from palaver.tools.portal import shut_down

__all__ = [
    "Agent",
    "AgentCallSession",
    "AgentEvent",
    "AgentSpec",
    "AnswerRefused",
    "Asking",
    "AutoCompact",
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
    "OnRefused",
    "ProviderInvoker",
    "Quarantined",
    "Retrying",
    "StreamHandler",
    "Tactic",
    "TacticCallSession",
    "TurnFinished",
    "TurnStream",
    "build_agent",
    "build_agents",
    "build_invoker",
    "build_tactic",
    "decide",
    "load_config",
    "open_calls",
    "register_invoker",
    "shut_down",
    "subagent",
]
