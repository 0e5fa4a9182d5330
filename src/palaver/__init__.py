"""palaver keeps the conversation state of LLM agents: the log only grows; what the model sees is computed from it.

Conversations: `Session`, `Dialog`, `DialogTreeNode`, `ReplayLog`, `rebuild`, `SessionManager`, `erase`,
    `preview_erasure`, `retain`, `Handle`, `PatternRedactor`.

Stores: `MemoryStore`, `SqliteStore`, `Store`, `open_store`, `redacting`.

Messages: `AssistantMessage`, `AudioContent`, `BranchSummaryMessage`, `CompactionSummaryMessage`,
    `CustomMessage`, `ImageContent`, `InvokeCost`, `Media`, `Message`, `Role`, `Speaker`, `SystemMessage`,
    `TextContent`, `ThinkingContent`, `ToolCallContent`, `ToolMessage`, `ToolResultContent`, `Trust`, `Usage`,
    `UserMessage`.

What the model sees: `Fit`, `fit`, `ContextManager`, `Policy`, `compose`, `DefaultContextManager`, `RepoMap`,
    `Budget`, `Plan`, `View`, `Call`, `Profile`, `Request`.

Prompts and tools: `DefaultTagParser`, `Format`, `Prompt`, `Runtime`, `CallContext`, `Function`, `Toolbox`,
    `ToolReply`, `tool`.

Agents and models: `Agent`, `AgentCallSession`, `AgentEvent`, `Decision`, `Invoker`, `ModelSummarizer`,
    `ProviderInvoker`, `Tactic`, `TurnStream`, `build_agents`, `decide`, `load_config`, `subagent`,
    `Assembly`, `Provider`, `Retry`, `ScriptedProvider`, `TextDelta`, `collect`, `connect_model`.

Memory: `ArchivalMemory`, `CoreMemory`, `Files`, `SubjectMemory`.

Errors: `AgentFailure`, `Conflict`, `InfeasibleBudget`, `InvalidInput`, `NotFound`, `PalaverError`,
    `ProviderError`, `StoreError`; the rest are in `palaver.errors`.

A room is loaded when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from palaver.errors import (
    AgentFailure,
    Conflict,
    InfeasibleBudget,
    InvalidInput,
    NotFound,
    PalaverError,
    ProviderError,
    StoreError,
)

if TYPE_CHECKING:
    from palaver.agent import (
        Agent,
        AgentCallSession,
        AgentEvent,
        Decision,
        Invoker,
        ModelSummarizer,
        ProviderInvoker,
        Tactic,
        TurnStream,
        build_agents,
        decide,
        load_config,
        subagent,
    )
    from palaver.context import ContextManager, Policy, compose
    from palaver.context.fit import Fit, fit
    from palaver.context.presets.own import DefaultContextManager
    from palaver.context.repo_map import RepoMap
    from palaver.log import Handle, PatternRedactor
    from palaver.messages import (
        AssistantMessage,
        AudioContent,
        BranchSummaryMessage,
        CompactionSummaryMessage,
        CustomMessage,
        ImageContent,
        InvokeCost,
        Media,
        Message,
        Role,
        Speaker,
        SystemMessage,
        TextContent,
        ThinkingContent,
        ToolCallContent,
        ToolMessage,
        ToolResultContent,
        Trust,
        Usage,
        UserMessage,
    )
    from palaver.models import Assembly, Provider, Retry, ScriptedProvider, TextDelta, collect, connect_model
    from palaver.prompts import DefaultTagParser, Format, Prompt, Runtime
    from palaver.session import Dialog, DialogTreeNode, ReplayLog, Session, rebuild
    from palaver.session.erasure import erase, preview_erasure
    from palaver.session.manager import SessionManager
    from palaver.session.memory import ArchivalMemory, CoreMemory, Files, SubjectMemory
    from palaver.session.retention import retain
    from palaver.store import MemoryStore, SqliteStore, Store, open_store, redacting
    from palaver.tokens import Budget
    from palaver.tools import CallContext, Function, Toolbox, ToolReply, tool
    from palaver.view import Plan, View
    from palaver.wire import Call, Profile, Request

__all__ = [
    "Agent",
    "AgentCallSession",
    "AgentEvent",
    "AgentFailure",
    "ArchivalMemory",
    "Assembly",
    "AssistantMessage",
    "AudioContent",
    "BranchSummaryMessage",
    "Budget",
    "Call",
    "CallContext",
    "CompactionSummaryMessage",
    "Conflict",
    "ContextManager",
    "CoreMemory",
    "CustomMessage",
    "Decision",
    "DefaultContextManager",
    "DefaultTagParser",
    "Dialog",
    "DialogTreeNode",
    "Files",
    "Fit",
    "Format",
    "Function",
    "Handle",
    "ImageContent",
    "InfeasibleBudget",
    "InvalidInput",
    "InvokeCost",
    "Invoker",
    "Media",
    "MemoryStore",
    "Message",
    "ModelSummarizer",
    "NotFound",
    "PalaverError",
    "PatternRedactor",
    "Plan",
    "Policy",
    "Profile",
    "Prompt",
    "Provider",
    "ProviderError",
    "ProviderInvoker",
    "ReplayLog",
    "RepoMap",
    "Request",
    "Retry",
    "Role",
    "Runtime",
    "ScriptedProvider",
    "Session",
    "SessionManager",
    "Speaker",
    "SqliteStore",
    "Store",
    "StoreError",
    "SubjectMemory",
    "SystemMessage",
    "Tactic",
    "TextContent",
    "TextDelta",
    "ThinkingContent",
    "ToolCallContent",
    "ToolMessage",
    "ToolReply",
    "ToolResultContent",
    "Toolbox",
    "Trust",
    "TurnStream",
    "Usage",
    "UserMessage",
    "View",
    "build_agents",
    "collect",
    "compose",
    "connect_model",
    "decide",
    "erase",
    "fit",
    "load_config",
    "open_store",
    "preview_erasure",
    "rebuild",
    "redacting",
    "retain",
    "subagent",
    "tool",
]

_ROOMS = {
    "palaver.agent": "Agent AgentCallSession AgentEvent Decision Invoker ModelSummarizer ProviderInvoker Tactic TurnStream build_agents decide load_config subagent",
    "palaver.context": "ContextManager Policy compose",
    "palaver.context.fit": "Fit fit",
    "palaver.context.presets.own": "DefaultContextManager",
    "palaver.context.repo_map": "RepoMap",
    "palaver.log": "Handle PatternRedactor",
    "palaver.messages": "AssistantMessage AudioContent BranchSummaryMessage CompactionSummaryMessage CustomMessage ImageContent InvokeCost Media Message Role Speaker SystemMessage TextContent ThinkingContent ToolCallContent ToolMessage ToolResultContent Trust Usage UserMessage",
    "palaver.models": "Assembly Provider Retry ScriptedProvider TextDelta collect connect_model",
    "palaver.prompts": "DefaultTagParser Format Prompt Runtime",
    "palaver.session": "Dialog DialogTreeNode ReplayLog Session rebuild",
    "palaver.session.erasure": "erase preview_erasure",
    "palaver.session.manager": "SessionManager",
    "palaver.session.memory": "ArchivalMemory CoreMemory Files SubjectMemory",
    "palaver.session.retention": "retain",
    "palaver.store": "MemoryStore SqliteStore Store open_store redacting",
    "palaver.tokens": "Budget",
    "palaver.tools": "CallContext Function ToolReply Toolbox tool",
    "palaver.view": "Plan View",
    "palaver.wire": "Call Profile Request",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever a room holds
    """Load the room that a name comes from."""
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
