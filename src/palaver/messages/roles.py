"""The closed vocabularies of a message: who speaks, in what form, why it ended, and how far it is trusted."""

from __future__ import annotations

from enum import IntEnum, StrEnum

from palaver.errors import InvalidMessage


class Role(StrEnum):
    """The part that a message plays in the conversation.

    ``developer``, OpenAI's newer word for instructions, is read as SYSTEM. TOOL_CALL is an assistant message that calls tools,
    in dialogs that keep it apart; providers receive it as assistant. The last three never go to a model as they are.
    """

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    TOOL_CALL = "tool_call"
    CUSTOM = "custom"
    BRANCH_SUMMARY = "branch_summary"
    COMPACTION_SUMMARY = "compaction_summary"

    @classmethod
    def _missing_(cls, value: object) -> Role:
        if value == "developer":
            return cls.SYSTEM
        raise InvalidMessage(f"{value!r} is not a role.", hint=f"Roles are: {', '.join(cls)}.")


Roles = MessageRole = Role


class Modalities(StrEnum):
    """What a message mainly consists of; an image or sound outweighs the text of the message."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    FUNCTION_CALL = "function_call"


class APITypes(StrEnum):
    """Which of OpenAI's two interfaces produced a message: chat completions or responses."""

    COMPLETION = "completion"
    RESPONSE = "response"


class StopReason(StrEnum):
    """Why a model stopped, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    ABORT = "abort"
    ERROR = "error"


# OpenAI chat completions, finish_reason; Anthropic, stop_reason; Gemini, FinishReason; pi, stopReason.
_PROVIDER_WORDS = {
    StopReason.STOP: "stop end_turn stop_sequence pause_turn",
    StopReason.LENGTH: "length max_tokens model_context_window_exceeded",
    StopReason.TOOL_CALLS: "tool_calls function_call tool_use tooluse",
    StopReason.CONTENT_FILTER: "content_filter safety recitation blocklist prohibited_content spii",
    StopReason.ERROR: "refusal malformed_function_call error",
    StopReason.ABORT: "abort aborted",
}
_STOP_REASONS = {word: reason for reason, words in _PROVIDER_WORDS.items() for word in words.split()}


def stop_reason_of(word: str | None) -> StopReason | None:
    """Return the stop reason for a provider's word, or None if the word is unknown."""
    return _STOP_REASONS.get(word.lower()) if word else None


class ToolKind(StrEnum):
    """What sort of thing a tool does: a hint for user interfaces."""

    READ = "read"
    EDIT = "edit"
    WRITE = "write"
    EXECUTE = "execute"
    WEB = "web"
    UNKNOWN = "unknown"


class Trust(IntEnum):
    """How far a speaker's words may be believed, lowest first: a summary inherits the minimum of its sources."""

    OUTSIDE = 0
    MODEL = 1
    HUMAN = 2
    HARNESS = 3


class Speaker(StrEnum):
    """Who said something; the role it is sent in may be another."""

    HUMAN = "human"
    MODEL = "model"
    TOOL = "tool"
    HARNESS = "harness"
    SUMMARY = "summary"

    @property
    def trust(self) -> Trust:
        """How far this speaker may be believed; a summary counts as the least of what it may have come from."""
        return _TRUST[self]


_TRUST = {
    Speaker.HUMAN: Trust.HUMAN,
    Speaker.MODEL: Trust.MODEL,
    Speaker.TOOL: Trust.OUTSIDE,
    Speaker.HARNESS: Trust.HARNESS,
    Speaker.SUMMARY: Trust.OUTSIDE,
}

SPEAKER_OF_ROLE = {
    Role.SYSTEM: Speaker.HARNESS,
    Role.USER: Speaker.HUMAN,
    Role.ASSISTANT: Speaker.MODEL,
    Role.TOOL: Speaker.TOOL,
    Role.TOOL_CALL: Speaker.MODEL,
    Role.CUSTOM: Speaker.HARNESS,
    Role.BRANCH_SUMMARY: Speaker.SUMMARY,
    Role.COMPACTION_SUMMARY: Speaker.SUMMARY,
}
"""Who speaks in a role unless the message says otherwise."""
