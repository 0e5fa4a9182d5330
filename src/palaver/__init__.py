"""palaver keeps the conversation state of LLM agents: the log only grows; what the model sees is computed from it.

Messages and errors are at hand at once; the rooms above them are loaded when one of their names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from palaver.errors import (
    Ambiguous,
    Conflict,
    IllegalEntry,
    InfeasibleBudget,
    InvalidBundle,
    InvalidHandle,
    InvalidInput,
    InvalidMedia,
    InvalidMessage,
    InvalidPrompt,
    InvalidRequest,
    MediaUnavailable,
    MissingBlob,
    MissingStore,
    NotFound,
    PalaverError,
    ParseError,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    UnknownDialog,
    UnknownHandle,
    UnknownModel,
    UnknownPolicy,
    UnknownProfile,
    UnknownPrompt,
    UnknownSession,
    UnsupportedCapability,
    UnsupportedTranscript,
)
from palaver.messages import (
    AgentMessage,
    APITypes,
    AssistantMessage,
    AudioContent,
    BaseMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    FunctionCall,
    ImageContent,
    InvokeCost,
    LLMMessage,
    Media,
    Message,
    MessageRole,
    Modalities,
    Role,
    Roles,
    Speaker,
    StopReason,
    SystemMessage,
    TextContent,
    ThinkingContent,
    TokenLogprob,
    ToolCallContent,
    ToolKind,
    ToolMessage,
    ToolResultContent,
    Trust,
    UnknownContent,
    Usage,
    UsageCost,
    UserMessage,
)

if TYPE_CHECKING:
    from palaver.context import (
        Composed,
        ContextManager,
        DefaultContextManager,
        FullContext,
        OffloadContextManager,
        Policy,
        compose,
    )
    from palaver.context import ContextManager, DefaultContextManager, Fit, Policy, fit
    from palaver.log import Handle, Span
    from palaver.prompts import (
        DefaultTagParser,
        Prompt,
        Runtime,
        StringFormatterRenderer,
        get_default_runtime,
        set_default_runtime,
    )
    from palaver.session import Dialog, DialogTreeNode, ReplayLog, ReplayLogWarning, Session, UnknownPromptWarning, rebuild
    from palaver.store import Durability, MemoryStore, SqliteStore, Store, open_store
    from palaver.tokens import Budget
    from palaver.view import Plan, View
    from palaver.wire import PROFILES, Call, Profile, Request

__all__ = [
    "APITypes",
    "AgentMessage",
    "Ambiguous",
    "AssistantMessage",
    "AudioContent",
    "BaseMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "Conflict",
    "ContextManager",
    "CustomMessage",
    "DefaultContextManager",
    "DefaultTagParser",
    "Dialog",
    "DialogTreeNode",
    "Durability",
    "Fit",
    "FunctionCall",
    "Handle",
    "IllegalEntry",
    "ImageContent",
    "InfeasibleBudget",
    "InvalidBundle",
    "InvalidHandle",
    "InvalidInput",
    "InvalidMedia",
    "InvalidMessage",
    "InvalidPrompt",
    "InvalidRequest",
    "InvokeCost",
    "LLMMessage",
    "Media",
    "MediaUnavailable",
    "MemoryStore",
    "Message",
    "MessageRole",
    "MissingBlob",
    "MissingStore",
    "Modalities",
    "NotFound",
    "PalaverError",
    "ParseError",
    "Plan",
    "Policy",
    "Prompt",
    "ReplayLog",
    "ReplayLogWarning",
    "Role",
    "Roles",
    "Runtime",
    "Session",
    "Span",
    "Speaker",
    "SqliteStore",
    "StopReason",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StringFormatterRenderer",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "TokenLogprob",
    "ToolCallContent",
    "ToolKind",
    "ToolMessage",
    "ToolResultContent",
    "Trust",
    "UnknownContent",
    "UnknownDialog",
    "UnknownHandle",
    "UnknownModel",
    "UnknownPolicy",
    "UnknownProfile",
    "UnknownPrompt",
    "UnknownSession",
    "UnsupportedCapability",
    "UnsupportedTranscript",
    "Usage",
    "UsageCost",
    "UserMessage",
    "View",
    "fit",
    "get_default_runtime",
    "open_store",
    "rebuild",
    "set_default_runtime",
]

_ROOMS = {
    "palaver.context": (
        "Composed",
        "ContextManager",
        "DefaultContextManager",
        "FullContext",
        "OffloadContextManager",
        "Policy",
        "compose",
    ),
    "palaver.context": ("ContextManager", "DefaultContextManager", "Fit", "Policy", "fit"),
    "palaver.log": ("Handle", "Span"),
    "palaver.prompts": (
        "DefaultTagParser",
        "Prompt",
        "Runtime",
        "StringFormatterRenderer",
        "get_default_runtime",
        "set_default_runtime",
    ),
    "palaver.session": ("Dialog", "DialogTreeNode", "ReplayLog", "ReplayLogWarning", "Session", "UnknownPromptWarning", "rebuild"),
    "palaver.store": ("Durability", "MemoryStore", "SqliteStore", "Store", "open_store"),
    "palaver.tokens": ("Budget",),
    "palaver.view": ("Plan", "View"),
    "palaver.wire": ("PROFILES", "Call", "Profile", "Request"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


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
