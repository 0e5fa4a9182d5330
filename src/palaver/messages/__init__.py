"""Content blocks, the message family, media, usage, and their canonical bytes.

Everything here is a frozen value. Start with :class:`Message`; :func:`encode` and :func:`decode` write and read a message by itself. A store
holds entries (:mod:`palaver.log`), which have messages in them.
"""

from palaver.messages.blocks import (
    AssistantContent,
    AudioContent,
    Content,
    ImageContent,
    SystemContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolContent,
    ToolResultContent,
    UnknownContent,
    UserContent,
    words_of,
)
from palaver.messages.codec import decode, encode, hydrate
from palaver.messages.family import (
    AgentMessage,
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    LLMMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from palaver.messages.forms import FunctionCall
from palaver.messages.frozen import FrozenDict, FrozenList, Replaced, clean_text, freeze, is_plain, restore, thaw
from palaver.messages.media import Media
from palaver.messages.message import BaseMessage, Message, from_anthropic_dict, from_chat_dict, media_of, payloads
from palaver.messages.roles import (
    APITypes,
    MessageRole,
    Modalities,
    Role,
    Roles,
    Speaker,
    StopReason,
    ToolKind,
    Trust,
    stop_reason_of,
)
from palaver.messages.usage import InvokeCost, TokenLogprob, Usage, UsageCost
from palaver.messages.value import canonical_json, digest

__all__ = [
    "APITypes",
    "AgentMessage",
    "AssistantContent",
    "AssistantMessage",
    "AudioContent",
    "BaseMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "Content",
    "CustomMessage",
    "FrozenDict",
    "FrozenList",
    "FunctionCall",
    "ImageContent",
    "InvokeCost",
    "LLMMessage",
    "Media",
    "Message",
    "MessageRole",
    "Modalities",
    "Replaced",
    "Role",
    "Roles",
    "Speaker",
    "StopReason",
    "SystemContent",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "TokenLogprob",
    "ToolCallContent",
    "ToolContent",
    "ToolKind",
    "ToolMessage",
    "ToolResultContent",
    "Trust",
    "UnknownContent",
    "Usage",
    "UsageCost",
    "UserContent",
    "UserMessage",
    "canonical_json",
    "clean_text",
    "decode",
    "digest",
    "encode",
    "freeze",
    "from_anthropic_dict",
    "from_chat_dict",
    "hydrate",
    "is_plain",
    "media_of",
    "payloads",
    "restore",
    "stop_reason_of",
    "thaw",
    "words_of",
]
