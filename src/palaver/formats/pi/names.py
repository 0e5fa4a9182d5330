"""The words of pi's session files (versions 1 to 3 of the format, read from the sources of its session manager and from recorded sessions)."""

from __future__ import annotations

NAME = "pi"

OURS = "palaver"
"""The field in which a message that palaver wrote has what pi's form has no place for; the beginning of the types of its own records."""

SPOKEN_TYPES = frozenset({"message", "custom_message"})
"""Types of entries that hold a message."""

TYPES = frozenset(
    {
        "session",
        "message",
        "model_change",
        "thinking_level_change",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "label",
        "session_info",
    }
)
"""Types of entries."""

ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary"})
"""Roles of messages."""

CARRIED = frozenset(
    {
        "role",
        "content",
        "timestamp",
        "api",
        "provider",
        "model",
        "usage",
        "stopReason",
        "errorMessage",
        "responseId",
        "toolCallId",
        "toolName",
        "isError",
        "details",
        "command",
        "output",
        "exitCode",
        "cancelled",
        "truncated",
        "fullOutputPath",
        "excludeFromContext",
        "customType",
        "display",
        "summary",
        "fromId",
        "tokensBefore",
        OURS,
    }
)
"""Fields of messages that ours hold."""
