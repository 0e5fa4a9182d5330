"""The words of Claude Code's session files (read from recorded sessions of versions 2.1.5 to 2.1.39)."""

from __future__ import annotations

NAME = "claude-code"

MESSAGES = frozenset({"user", "assistant"})
CHAIN = frozenset({"user", "assistant", "system", "progress", "attachment"})
"""Types of records that stand in the chain of parents."""

SYNTHETIC = "<synthetic>"
"""The model of an assistant record that the harness wrote."""

HARNESS_SAID = (
    "<local-command-caveat>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<command-name>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "[Request interrupted by user",
)
"""How user records begin whose words the harness wrote."""

CLEARED = "[Old tool result content cleared]"
"""What Claude Code shows in place of a result that its microcompaction cleared."""

CARRIED = frozenset(
    {
        "type",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "sessionId",
        "timestamp",
        "isSidechain",
        "agentId",
        "message",
        "isMeta",
        "isCompactSummary",
        "isApiErrorMessage",
        "requestId",
        "permissionMode",
        "version",
        "cwd",
        "gitBranch",
    }
)
"""Fields of message records that entries, dialogs or the session hold."""

SAID = frozenset({"id", "type", "role", "model", "content", "usage", "stop_reason"})
"""Fields of the message within them that messages hold."""

TELEMETRY = {
    "file-history-snapshot": "names of backups of files; the files are not in the session",
    "summary": "titles; the newest one is the session's",
    "custom-title": "titles; the newest one is the session's",
    "ai-title": "titles; the newest one is the session's",
}
"""Types of records that become no entry, and why."""
