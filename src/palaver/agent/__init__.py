"""Agents: dialogs that answer, turn by turn, with tools, approvals and sub-agents."""

from palaver.agent.agent import Agent
from palaver.agent.approvals import Decision, WaitingCall, decide, open_calls, waiting_calls
from palaver.agent.attention import needs_work
from palaver.agent.checkpoints import Checkpoint, CheckpointWarning, files_at, git_checkpoint, restore_files
from palaver.agent.compacting import ModelSummarizer
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
)
from palaver.agent.limits import LimitReached, Limits
from palaver.agent.streaming import TurnStream
from palaver.agent.subagents import subagent
from palaver.agent.trace import Answer, Trace

__all__ = [
    "Agent",
    "AgentEvent",
    "Answer",
    "AnswerRefused",
    "Asking",
    "CallEnded",
    "CallProgress",
    "CallStarting",
    "Checkpoint",
    "CheckpointWarning",
    "Compacted",
    "Decision",
    "DecisionAwaited",
    "Delivered",
    "InvokeResult",
    "Invoker",
    "LimitReached",
    "Limits",
    "ModelSummarizer",
    "ProviderInvoker",
    "Retrying",
    "StreamHandler",
    "Trace",
    "TurnFinished",
    "TurnStarting",
    "TurnStream",
    "WaitingCall",
    "decide",
    "files_at",
    "git_checkpoint",
    "needs_work",
    "open_calls",
    "restore_files",
    "subagent",
    "waiting_calls",
]
