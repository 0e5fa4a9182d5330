"""palaver keeps the conversation state of LLM agents: the log only grows; what the model sees is computed from it.

Conversations: `Session`, `Dialog`, `DialogTreeNode`, `ReplayLog`, `rebuild`, `SessionManager`, `erase`,
    `preview_erasure`, `retain`, `Handle`, `PatternRedactor`.

Stores: `MemoryStore`, `SqliteStore`, `Store`, `open_store`, `redacting`, `sync`, `archive`, `restore`.

Messages: `AssistantMessage`, `AudioContent`, `BranchSummaryMessage`, `CompactionSummaryMessage`,
    `CustomMessage`, `ImageContent`, `InvokeCost`, `Media`, `Message`, `Role`, `Speaker`, `SystemMessage`,
    `TextContent`, `ThinkingContent`, `ToolCallContent`, `ToolMessage`, `ToolResultContent`, `Trust`, `Usage`,
    `UserMessage`.

Lists of other programs: `read_messages`, `write_messages`, `WrittenList`.

What the model sees: `Fit`, `fit`, `ContextManager`, `Policy`, `compose`, `DefaultContextManager`, `RepoMap`,
    `Budget`, `Plan`, `View`, `Call`, `Profile`, `Request`.

Prompts and tools: `DefaultTagParser`, `Format`, `Prompt`, `Runtime`, `CallContext`, `Function`, `Toolbox`,
    `ToolReply`, `tool`.

Agents and models: `Agent`, `AgentEvent`, `Answer`, `Decision`, `Invoker`, `Limits`, `ModelSummarizer`,
    `ProviderInvoker`, `Tactic`, `Trace`, `TurnStream`, `build_agents`, `decide`, `load_config`, `subagent`, `Provider`, `Retry`,
    `ScriptedProvider`, `TextDelta`, `collect`, `connect_model`.

Memory: `ArchivalMemory`, `CoreMemory`, `Files`, `SubjectMemory`, `Values`.

Errors: `AgentFailure`, `Conflict`, `InfeasibleBudget`, `InvalidInput`, `NotFound`, `PalaverError`,
    `ProviderError`, `StoreError`; the rest are in `palaver.errors`.

A room is loaded when one of its names is first used.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.agent import (
        Agent as Agent,
        AgentEvent as AgentEvent,
        Answer as Answer,
        Decision as Decision,
        Invoker as Invoker,
        Limits as Limits,
        ModelSummarizer as ModelSummarizer,
        ProviderInvoker as ProviderInvoker,
        Trace as Trace,
        TurnStream as TurnStream,
        decide as decide,
        subagent as subagent,
    )
    from palaver.compat.building import build_agents as build_agents
    from palaver.compat.config import load_config as load_config
    from palaver.compat.tactic import Tactic as Tactic
    from palaver.context import ContextManager as ContextManager, Policy as Policy, compose as compose
    from palaver.context.fit import Fit as Fit, fit as fit
    from palaver.context.presets.own import DefaultContextManager as DefaultContextManager
    from palaver.context.repo_map import RepoMap as RepoMap
    from palaver.dialects import (
        WrittenList as WrittenList,
        read_messages as read_messages,
        write_messages as write_messages,
    )
    from palaver.errors import (
        AgentFailure as AgentFailure,
        Conflict as Conflict,
        InfeasibleBudget as InfeasibleBudget,
        InvalidInput as InvalidInput,
        NotFound as NotFound,
        PalaverError as PalaverError,
        ProviderError as ProviderError,
        StoreError as StoreError,
    )
    from palaver.log import Handle as Handle, PatternRedactor as PatternRedactor
    from palaver.messages import (
        AssistantMessage as AssistantMessage,
        AudioContent as AudioContent,
        BranchSummaryMessage as BranchSummaryMessage,
        CompactionSummaryMessage as CompactionSummaryMessage,
        CustomMessage as CustomMessage,
        ImageContent as ImageContent,
        InvokeCost as InvokeCost,
        Media as Media,
        Message as Message,
        Role as Role,
        Speaker as Speaker,
        SystemMessage as SystemMessage,
        TextContent as TextContent,
        ThinkingContent as ThinkingContent,
        ToolCallContent as ToolCallContent,
        ToolMessage as ToolMessage,
        ToolResultContent as ToolResultContent,
        Trust as Trust,
        Usage as Usage,
        UserMessage as UserMessage,
    )
    from palaver.providers import (
        Provider as Provider,
        Retry as Retry,
        ScriptedProvider as ScriptedProvider,
        TextDelta as TextDelta,
        collect as collect,
        connect_model as connect_model,
    )
    from palaver.prompts import (
        DefaultTagParser as DefaultTagParser,
        Format as Format,
        Prompt as Prompt,
        Runtime as Runtime,
    )
    from palaver.session import (
        Dialog as Dialog,
        DialogTreeNode as DialogTreeNode,
        ReplayLog as ReplayLog,
        Session as Session,
        rebuild as rebuild,
    )
    from palaver.erasure import erase as erase, preview_erasure as preview_erasure
    from palaver.compat.manager import SessionManager as SessionManager
    from palaver.memory import (
        ArchivalMemory as ArchivalMemory,
        CoreMemory as CoreMemory,
        Files as Files,
        SubjectMemory as SubjectMemory,
        Values as Values,
    )
    from palaver.session.retention import retain as retain
    from palaver.store import (
        MemoryStore as MemoryStore,
        SqliteStore as SqliteStore,
        Store as Store,
        open_store as open_store,
        redacting as redacting,
    )
    from palaver.tokens import Budget as Budget
    from palaver.tools import (
        CallContext as CallContext,
        Function as Function,
        Toolbox as Toolbox,
        ToolReply as ToolReply,
        tool as tool,
    )
    from palaver.transfer.archives import archive as archive, restore as restore
    from palaver.transfer.sync import sync as sync
    from palaver.view import Plan as Plan, View as View
    from palaver.wire import Call as Call, Profile as Profile, Request as Request

__all__ = open_door(  # noqa: PLE0605 - type checkers read the aliases above
    __name__,
    {
        "palaver.agent": "Agent AgentEvent Answer Decision Invoker Limits ModelSummarizer ProviderInvoker Trace TurnStream decide subagent",
        "palaver.compat.building": "build_agents",
        "palaver.compat.config": "load_config",
        "palaver.compat.tactic": "Tactic",
        "palaver.context": "ContextManager Policy compose",
        "palaver.context.fit": "Fit fit",
        "palaver.dialects": "WrittenList read_messages write_messages",
        "palaver.context.presets.own": "DefaultContextManager",
        "palaver.context.repo_map": "RepoMap",
        "palaver.errors": "AgentFailure Conflict InfeasibleBudget InvalidInput NotFound PalaverError ProviderError StoreError",
        "palaver.log": "Handle PatternRedactor",
        "palaver.messages": "AssistantMessage AudioContent BranchSummaryMessage CompactionSummaryMessage CustomMessage ImageContent InvokeCost Media Message Role Speaker SystemMessage TextContent ThinkingContent ToolCallContent ToolMessage ToolResultContent Trust Usage UserMessage",
        "palaver.providers": "Provider Retry ScriptedProvider TextDelta collect connect_model",
        "palaver.prompts": "DefaultTagParser Format Prompt Runtime",
        "palaver.session": "Dialog DialogTreeNode ReplayLog Session rebuild",
        "palaver.erasure": "erase preview_erasure",
        "palaver.compat.manager": "SessionManager",
        "palaver.memory": "ArchivalMemory CoreMemory Files SubjectMemory Values",
        "palaver.session.retention": "retain",
        "palaver.store": "MemoryStore SqliteStore Store open_store redacting",
        "palaver.tokens": "Budget",
        "palaver.tools": "CallContext Function ToolReply Toolbox tool",
        "palaver.transfer.archives": "archive restore",
        "palaver.transfer.sync": "sync",
        "palaver.view": "Plan View",
        "palaver.wire": "Call Profile Request",
    },
)
