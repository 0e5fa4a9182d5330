"""The words of Codex rollout files (read from recorded sessions of versions 0.139 to 0.142, and from the sources' protocol types)."""

from __future__ import annotations

NAME = "codex"

SPOKEN = frozenset(
    {
        "reasoning",
        "function_call",
        "custom_tool_call",
        "tool_search_call",
        "local_shell_call",
        "web_search_call",
        "image_generation_call",
    }
)
"""Types of response items that the model makes, beside its messages."""

OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"}
)
"""Types of response items that answer a call."""

ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
"""Types of records."""

HARNESS_SAID = (
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<permissions instructions>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
)
"""How items of the role `user` begin that the harness put in."""

CARRIED = frozenset(
    {
        "type",
        "role",
        "content",
        "id",
        "call_id",
        "name",
        "namespace",
        "arguments",
        "input",
        "output",
        "action",
        "summary",
        "encrypted_content",
        "tools",
        "phase",
        "end_turn",
    }
)
"""Fields of response items that messages hold."""

ENCRYPTED = "[The summary of what came before is encrypted for the provider and cannot be read.]"
"""What stands for a compaction's summary that only the provider can read."""

FAILURES = frozenset({"error", "stream_error", "background_error"})
"""Events that say that something failed."""
