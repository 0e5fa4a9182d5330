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
    """Why a model stopped, in one vocabulary for all providers: what a loop does next depends on it."""

    STOP = "stop"
    """The answer is complete."""
    LENGTH = "length"
    """The answer reached the most tokens that it may have. A call at its end is cut off and never runs."""
    TOOL_CALLS = "tool_calls"
    """The model calls tools."""
    CONTENT_FILTER = "content_filter"
    """The provider's filter stopped the answer, or hid it."""
    ABORT = "abort"
    """The caller stopped it."""
    ERROR = "error"
    """It failed."""
    PAUSE = "pause"
    """Tools of the provider's own still run: the answer goes on when it is sent back as it is, with the same tools."""
    COMPACTION = "compaction"
    """The provider compacted the conversation: the block is kept, and the next request goes on from it."""
    CONTINUE = "continue"
    """The answer goes on in the next request."""
    REFUSAL = "refusal"
    """The model refused. What it had said until then is discarded; another model may be asked."""
    OVERFLOW = "overflow"
    """The context window was full: the conversation has to become smaller."""
    RETRY = "retry"
    """What the model wrote is malformed, or the server broke off: the same request may succeed, and nothing of the answer is sent again."""
    DEFECT = "defect"
    """The request lacked what the provider wants back: a defect of whoever wrote it."""


DISCARDED = frozenset({StopReason.REFUSAL, StopReason.RETRY, StopReason.DEFECT})
"""Why an answer is never sent again."""

UNFINISHED = frozenset({StopReason.PAUSE, StopReason.COMPACTION, StopReason.CONTINUE})
"""Why an answer goes on when the model is asked again."""

WAITS = "waits"
"""The key in the metadata of an answer that says that a tool of the provider's own has not answered in it: only results of the caller's tools may
come before the next answer."""

# OpenAI chat completions, finish_reason, and responses, incomplete_details.reason (openai 3.57); Anthropic, stop_reason (anthropic 2.14, types/beta); Gemini,
# FinishReason, and the status of an interaction (google-genai 3.6); DeepSeek, finish_reason; pi, stopReason.
_PROVIDER_WORDS = {
    StopReason.STOP: "stop end_turn stop_sequence steered",
    StopReason.LENGTH: "length max_tokens max_output_tokens max_messages incomplete budget_exceeded",
    StopReason.TOOL_CALLS: "tool_calls function_call tool_use tooluse requires_action",
    StopReason.CONTENT_FILTER: "content_filter safety recitation blocklist prohibited_content spii language model_armor escalation OTHER no_image "
    "image_safety image_prohibited_content image_recitation image_other pup_limited_disabled",
    StopReason.ABORT: "abort aborted",
    StopReason.ERROR: "error failed",
    StopReason.PAUSE: "pause_turn",
    StopReason.COMPACTION: "compaction",
    StopReason.CONTINUE: "continuation requires_continuation",
    StopReason.REFUSAL: "refusal",
    StopReason.OVERFLOW: "model_context_window_exceeded",
    StopReason.RETRY: "malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response insufficient_system_resource",
    StopReason.DEFECT: "missing_thought_signature",
}
_STOP_REASONS = {word: reason for reason, words in _PROVIDER_WORDS.items() for word in words.split()}


def stop_reason_of(word: str | None) -> StopReason | None:
    """Return the stop reason for a provider's word, or None if the word is unknown. Only Gemini's words are in capitals."""
    return (_STOP_REASONS.get(word) or _STOP_REASONS.get(word.lower())) if word else None


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
